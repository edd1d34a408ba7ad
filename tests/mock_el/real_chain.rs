//! Blocks of a real EL, all six forks: they prove the genesis hash and the block hash function.

use std::{fs, path::Path};

use alloy_primitives::B256;
use engine_ssz_proxy::mock_el::{Config, Genesis};
use serde_json::{Value, json};

use super::client::{Peer, config, hash, start};

fn data(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mock_el").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn request(name: &str) -> Value {
    serde_json::from_slice(&data(name)).unwrap()
}

/// Blocks of a second chain that lacks some numbers; most carry blobs and execution requests.
const WITH_BLOBS: [&str; 11] = [
    "01-paris",
    "03-shanghai",
    "04-shanghai",
    "06-cancun",
    "07-cancun",
    "09-prague",
    "10-prague",
    "12-osaka",
    "13-osaka",
    "15-amsterdam",
    "16-amsterdam",
];

#[tokio::test]
async fn the_built_in_genesis_is_that_of_the_test_data() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/genesis/genesis-allforks.json");
    let genesis = Genesis::parse(&fs::read_to_string(path).unwrap()).unwrap();
    let (ours, theirs) = (start(config()).await, start(Config { genesis, ..config() }).await);
    assert_eq!(ours.genesis_hash(), theirs.genesis_hash());
    assert_eq!(json!(ours.genesis_hash()), request("chain/01.json")["params"][0]["parentHash"]);
}

#[tokio::test]
async fn a_real_chain_is_valid_block_by_block() {
    let el = start(config()).await;
    let peer = Peer::h1(&el);
    for number in 1..=17 {
        let request = request(&format!("chain/{number:02}.json"));
        let head = &request["params"][0]["blockHash"];
        let answer = peer.text(request.to_string()).await.json();
        let valid = json!({"status": "VALID", "latestValidHash": head, "validationError": null});
        assert_eq!(answer["result"], valid, "block {number}");
    }
    let head = &request("chain/17.json")["params"][0]["blockHash"];
    let state = json!({"headBlockHash": head, "safeBlockHash": head, "finalizedBlockHash": head});
    let answer = peer.result("engine_forkchoiceUpdatedV4", json!([state, null])).await;
    assert_eq!(answer["payloadStatus"]["status"], "VALID");
    assert_eq!(peer.result("eth_blockNumber", json!([])).await, "0x11");
}

#[tokio::test]
async fn real_blocks_keep_their_hash_in_both_dialects_and_lose_it_with_one_bit() {
    let el = start(config()).await;
    let peer = Peer::h2(&el);
    for name in WITH_BLOBS {
        let (_, fork) = name.split_once('-').unwrap();
        let mut request = request(&format!("blobs/{name}.json"));
        let ssz = data(&format!("blobs/{name}.ssz"));
        // Only the first one's parent is there; a wrong hash would be INVALID all the same.
        let known = name == "01-paris";
        let status = if known { "VALID" } else { "SYNCING" };
        let answer = peer.text(request.to_string()).await.json();
        assert_eq!(answer["result"]["status"], status, "{name}: {answer}");
        let answer = peer.post("/engine/v1/payloads", fork, ssz.clone()).await;
        assert_eq!(answer.body[0], if known { 0 } else { 2 }, "{name}");

        let mut root = hash(&request["params"][0]["stateRoot"]);
        root[31] ^= 1;
        request["params"][0]["stateRoot"] = json!(root);
        let answer = peer.text(request.to_string()).await.json();
        assert_eq!(answer["result"]["status"], "INVALID", "{name}");
        assert_eq!(answer["result"]["latestValidHash"], Value::Null, "{name}");
        let error = answer["result"]["validationError"].as_str().unwrap();
        assert!(error.starts_with("block hash mismatch: "), "{error}");

        // The same bit in SSZ: the state root follows the parent hash and the fee recipient.
        let payload = u32::from_le_bytes(ssz[..4].try_into().unwrap()) as usize;
        let mut ssz = ssz;
        ssz[payload + 32 + 20 + 31] ^= 1;
        let answer = peer.post("/engine/v1/payloads", fork, ssz).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.body[..9], [1, 9, 0, 0, 0, 9, 0, 0, 0], "{name}");
        assert_eq!(&answer.body[13..33], b"block hash mismatch:", "{name}");
    }
}

#[tokio::test]
async fn the_beacon_root_and_the_requests_are_part_of_the_hash() {
    let el = start(config()).await;
    let peer = Peer::h1(&el);
    for (index, other) in [(2, json!(B256::repeat_byte(7))), (3, json!([]))] {
        let mut request = request("blobs/09-prague.json");
        request["params"][index] = other;
        let answer = peer.text(request.to_string()).await.json();
        let error = answer["result"]["validationError"].as_str().expect("INVALID");
        assert!(error.starts_with("block hash mismatch: "), "{error}");
    }
}

#[tokio::test]
async fn an_amsterdam_genesis_is_the_block_a_real_el_makes_of_it() {
    let mut genesis: Value =
        serde_json::from_str(include_str!("../data/genesis/genesis-allforks.json")).unwrap();
    for fork in ["shanghaiTime", "cancunTime", "pragueTime", "osakaTime", "amsterdamTime"] {
        genesis["config"][fork] = json!(0);
    }
    let genesis = Genesis::parse(&genesis.to_string()).unwrap();
    let el = start(Config { genesis, ..config() }).await;
    let ours = Peer::h1(&el).result("eth_getBlockByNumber", json!(["earliest", false])).await;
    assert_eq!(ours, request("amsterdam-genesis-block.json")["result"]);
}
