//! The chain that both dialects build.

use alloy_primitives::U256;
use serde_json::json;

use super::client::{Peer, config, hash, start};
use super::conversation::{BLOCKS, fork, json_block, rest_block, version, whole_chain};

#[tokio::test]
async fn both_dialects_build_the_same_chain_over_six_forks() {
    let (json_el, rest_el) = (start(config()).await, start(config()).await);
    let (json_peer, rest_peer) = (Peer::h1(&json_el), Peer::h2(&rest_el));
    assert_eq!(json_el.genesis_hash(), rest_el.genesis_hash());
    let mut head = json_el.genesis_hash();
    for number in 1..=BLOCKS {
        let (json_id, json) = json_block(&json_peer, number, head).await;
        let (rest_id, rest) = rest_block(&rest_peer, number, head).await;
        assert_eq!(json_id, rest_id, "block {number}");
        assert_eq!(json.json, rest.json, "block {number}");
        assert_eq!(json.payload.block_number(), number);
        head = json.payload.block_hash();
    }
}

#[tokio::test]
async fn a_payload_built_over_one_dialect_can_be_fetched_over_the_other_and_again() {
    let el = start(config()).await;
    let (json_peer, rest_peer) = (Peer::h1(&el), Peer::h2(&el));
    let mut head = el.genesis_hash();
    for number in 1..=BLOCKS {
        let (id, built) = rest_block(&rest_peer, number, head).await;
        let method = version("getPayload", number).replace("V1", "V2");
        for _ in 0..2 {
            assert_eq!(json_peer.result(&method, json!([id])).await, built.json);
        }
        head = built.payload.block_hash();
    }
    let head_block = json_peer.result("eth_getBlockByNumber", json!(["latest", false])).await;
    assert_eq!(hash(&head_block["hash"]), head);
    assert_eq!(json_peer.result("eth_blockNumber", json!([])).await, "0x11");
}

#[tokio::test]
async fn the_chain_has_what_a_translation_can_go_wrong_on() {
    let el = start(config()).await;
    let chain = whole_chain(&el).await;
    let by_fork = |name: &str| {
        let numbered = (1..).zip(&chain);
        let of_fork: Vec<_> = numbered.filter(|(n, _)| fork(*n) == name).collect();
        of_fork.into_iter().map(|(_, built)| built)
    };
    for name in ["cancun", "prague", "osaka", "amsterdam"] {
        assert!(by_fork(name).any(|built| !built.commitments.is_empty()), "{name} has blobs");
        assert!(
            by_fork(name).any(|built| built.commitments.is_empty()),
            "{name} has blocks without"
        );
    }
    for name in ["prague", "osaka", "amsterdam"] {
        assert!(by_fork(name).any(|built| !built.requests.is_empty()), "{name} has requests");
        assert!(by_fork(name).any(|built| built.requests.is_empty()), "{name} has blocks without");
    }
    let lists: Vec<_> =
        by_fork("amsterdam").map(|built| built.payload.block_access_list()).collect();
    assert!(lists.iter().any(|list| list.unwrap().as_ref() == [0xc0]));
    assert!(lists.iter().any(|list| list.unwrap().len() > 100));
    let types: std::collections::BTreeSet<u8> = chain
        .iter()
        .flat_map(|built| built.payload.transactions())
        .map(|transaction| if transaction[0] >= 0xc0 { 0 } else { transaction[0] })
        .collect();
    assert_eq!(types.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    let values =
        chain.iter().map(|built| built.json["blockValue"].as_str().unwrap().parse::<U256>());
    assert!(values.map(Result::unwrap).all(|value| value > U256::from(u64::MAX)));
    let flags: Vec<_> = chain.iter().map(|built| &built.json["shouldOverrideBuilder"]).collect();
    assert!(flags.contains(&&json!(true)) && flags.contains(&&json!(false)));
}

#[tokio::test]
async fn the_amsterdam_payload_takes_slot_and_gas_target_from_the_attributes() {
    let el = start(config()).await;
    let chain = whole_chain(&el).await;
    let (parent, block) = (&chain[13].payload, &chain[14].payload);
    assert_eq!(block.slot_number(), Some(1015));
    assert!(block.gas_limit() < parent.gas_limit());
}
