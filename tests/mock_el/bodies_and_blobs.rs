//! Historical bodies with their era filter, and the blob pool, over both dialects.

use alloy_eips::eip4844::{BlobAndProofV2, BlobCellsAndProofsV1};
use alloy_primitives::{B128, B256};
use alloy_rpc_types_engine::{PayloadAttributes, ssz_engine_types as rest};
use engine_ssz_proxy::mock_el::MockEl;
use serde_json::{Value, json};
use ssz::{Decode, Encode};

use super::{
    client::{Peer, config, start},
    conversation::{BLOCKS, Built, attributes, fork, state, whole_chain},
};

const NOWHERE: B256 = B256::repeat_byte(0xee);
const FORKS: [&str; 6] = ["paris", "shanghai", "cancun", "prague", "osaka", "amsterdam"];

async fn with_chain() -> (MockEl, Vec<Built>) {
    let el = start(config()).await;
    let chain = whole_chain(&el).await;
    (el, chain)
}

/// Bodies of a REST answer as JSON-RPC's second version would put them; `None` for unavailable.
fn bodies(fork: &str, bytes: &[u8]) -> Vec<Option<Value>> {
    fn list<T: Encode + Decode>(bytes: &[u8], json: impl Fn(T) -> Value) -> Vec<Option<Value>> {
        let response = rest::BodiesResponse::<T>::from_ssz_bytes(bytes).unwrap();
        let entry = |entry: rest::BodyEntry<T>| entry.available.then(|| json(entry.body));
        response.entries.into_iter().map(entry).collect()
    }
    match fork {
        "paris" => list(
            bytes,
            |body: rest::ExecutionPayloadBodyParis| json!({"transactions": body.transactions, "withdrawals": null, "blockAccessList": null}),
        ),
        "amsterdam" => list(bytes, |body: rest::ExecutionPayloadBodyAmsterdam| {
            json!({
                "transactions": body.transactions,
                "withdrawals": body.withdrawals,
                "blockAccessList": body.block_access_list,
            })
        }),
        _ => list(bytes, |body: rest::ExecutionPayloadBodyShanghai| {
            json!({
                "transactions": body.transactions,
                "withdrawals": body.withdrawals,
                "blockAccessList": null,
            })
        }),
    }
}

fn expected(built: &Built) -> Value {
    json!({
        "transactions": built.payload.transactions(),
        "withdrawals": built.payload.withdrawals(),
        "blockAccessList": built.payload.block_access_list(),
    })
}

#[tokio::test]
async fn rest_bodies_are_those_of_the_named_era_and_no_other() {
    let (el, chain) = with_chain().await;
    let peer = Peer::h2(&el);
    let mut block_hashes: Vec<_> = chain.iter().map(|built| built.payload.block_hash()).collect();
    block_hashes.push(NOWHERE);
    let request = rest::BodiesByHashRequest { block_hashes }.as_ssz_bytes();
    for name in FORKS {
        let in_era =
            |(number, built): (u64, &Built)| (fork(number) == name).then(|| expected(built));
        let mut wanted: Vec<_> = (1..).zip(&chain).map(in_era).collect();
        let range = peer.get("/engine/v1/bodies?from=1&count=32", name).await;
        assert_eq!(bodies(name, &range.body), wanted, "cut at the head, not padded");
        wanted.push(None);
        let by_hash = peer.post("/engine/v1/bodies/hash", name, request.clone()).await;
        assert_eq!(bodies(name, &by_hash.body), wanted);
    }
}

#[tokio::test]
async fn an_unavailable_body_is_an_empty_one() {
    let el = start(config()).await;
    let peer = Peer::h1(&el);
    let request = rest::BodiesByHashRequest { block_hashes: vec![NOWHERE] }.as_ssz_bytes();
    let answer = peer.post("/engine/v1/bodies/hash", "osaka", request).await;
    let container = [4, 0, 0, 0, 4, 0, 0, 0];
    let entry = [0, 5, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0];
    assert_eq!(*answer.body, *[container.as_slice(), &entry].concat());
}

#[tokio::test]
async fn json_bodies_span_the_eras_and_end_at_the_head() {
    let (el, chain) = with_chain().await;
    let peer = Peer::h1(&el);
    let v2: Vec<_> = chain.iter().map(expected).collect();
    let without_list = |mut body: Value| {
        body.as_object_mut().unwrap().remove("blockAccessList");
        body
    };
    let v1: Vec<_> = v2.iter().cloned().map(without_list).collect();
    let range = json!(["0x1", "0x400"]);
    assert_eq!(peer.result("engine_getPayloadBodiesByRangeV1", range.clone()).await, json!(v1));
    assert_eq!(peer.result("engine_getPayloadBodiesByRangeV2", range).await, json!(v2));
    let last = json!([format!("0x{BLOCKS:x}"), "0x2"]);
    assert_eq!(peer.result("engine_getPayloadBodiesByRangeV2", last).await, json!(v2[16..]));
    let beyond = json!(["0x12", "0x2"]);
    assert_eq!(peer.result("engine_getPayloadBodiesByRangeV1", beyond).await, json!([]));

    let hash = |number: usize| chain[number - 1].payload.block_hash();
    let asked = json!([[hash(16), NOWHERE, hash(1)]]);
    let answer = peer.result("engine_getPayloadBodiesByHashV2", asked.clone()).await;
    assert_eq!(answer, json!([v2[15], null, v2[0]]));
    let answer = peer.result("engine_getPayloadBodiesByHashV1", asked).await;
    assert_eq!(answer, json!([v1[15], null, v1[0]]));

    for version in ["V1", "V2"] {
        let range = format!("engine_getPayloadBodiesByRange{version}");
        for zero in [json!(["0x0", "0x1"]), json!(["0x1", "0x0"])] {
            assert_eq!(peer.error_code(&range, zero).await, -32602);
        }
        assert_eq!(peer.error_code(&range, json!(["0x1", "0x401"])).await, -38004);
        let by_hash = format!("engine_getPayloadBodiesByHash{version}");
        assert_eq!(peer.error_code(&by_hash, json!([vec![NOWHERE; 1025]])).await, -38004);
    }
}

#[tokio::test]
async fn bodies_follow_a_reorg() {
    let (el, chain) = with_chain().await;
    let peer = Peer::h1(&el);
    let head = chain[1].payload.block_hash();
    let state = json!({"headBlockHash": head, "safeBlockHash": B256::ZERO, "finalizedBlockHash": B256::ZERO});
    peer.result("engine_forkchoiceUpdatedV1", json!([state])).await;
    let range = peer.result("engine_getPayloadBodiesByRangeV2", json!(["0x1", "0x20"])).await;
    assert_eq!(range.as_array().map(Vec::len), Some(2));
    // A block off the chain still has a body.
    let hash = chain[16].payload.block_hash();
    let by_hash = peer.result("engine_getPayloadBodiesByHashV2", json!([[hash]])).await;
    assert_eq!(by_hash[0], expected(&chain[16]));
}

#[tokio::test]
async fn a_reorg_to_a_sibling_replaces_the_numbers_above_the_common_ancestor() {
    let (el, chain) = with_chain().await;
    let peer = Peer::h1(&el);
    let hash = |number: usize| chain[number - 1].payload.block_hash();
    let other = PayloadAttributes { prev_randao: NOWHERE, ..attributes(2) };
    let params = json!([state(hash(1)), other]);
    let id = peer.result("engine_forkchoiceUpdatedV1", params).await["payloadId"].take();
    let sibling = peer.result("engine_getPayloadV1", json!([id])).await;
    assert_ne!(sibling["blockHash"], json!(hash(2)));
    assert_eq!(peer.result("engine_newPayloadV1", json!([sibling])).await["status"], "VALID");
    let at = async |number: &str| {
        peer.result("eth_getBlockByNumber", json!([number, false])).await["hash"].take()
    };
    let mut update = json!(state(NOWHERE));
    update["headBlockHash"] = sibling["blockHash"].clone();
    peer.result("engine_forkchoiceUpdatedV1", json!([update])).await;
    assert_eq!(at("0x1").await, json!(hash(1)));
    assert_eq!(at("0x2").await, sibling["blockHash"]);
    assert_eq!(at("0x3").await, Value::Null);
    // The old branch does not hold the sibling.
    let mut update = json!(state(hash(17)));
    update["finalizedBlockHash"] = sibling["blockHash"].clone();
    assert_eq!(peer.error_code("engine_forkchoiceUpdatedV4", json!([update])).await, -38002);
    peer.result("engine_forkchoiceUpdatedV4", json!([state(hash(17))])).await;
    assert_eq!(at("0x2").await, json!(hash(2)));
    assert_eq!(at("0x11").await, json!(hash(17)));
}

/// A versioned hash with one proof a blob, three with one a cell.
fn versioned_hashes(chain: &[Built]) -> (B256, [B256; 3]) {
    let cells = chain[12].versioned_hashes().try_into().unwrap();
    (chain[6].versioned_hashes()[0], cells)
}

async fn blobs(peer: &Peer, revision: &str, versioned_hashes: Vec<B256>) -> Option<Vec<u8>> {
    let request = rest::BlobsV1Request { versioned_hashes }.as_ssz_bytes();
    let answer = peer.post(&format!("/engine/v1/blobs/{revision}"), "", request).await;
    if answer.status == 204 {
        assert_eq!((answer.content_type(), answer.body.len()), (None, 0));
        return None;
    }
    assert_eq!(answer.status, 200);
    Some(answer.body.to_vec())
}

#[tokio::test]
async fn the_first_revision_has_blob_proofs_and_gaps_and_ends_on_json_rpc_with_osaka() {
    let (el, chain) = with_chain().await;
    let (old, [new, ..]) = versioned_hashes(&chain);
    let asked = vec![NOWHERE, old, new];
    let body = blobs(&Peer::h2(&el), "v1", asked.clone()).await.expect("partial answers");
    let rest = rest::BlobsV1Response::from_ssz_bytes(&body).unwrap();
    assert_eq!(
        rest.entries.iter().map(|entry| entry.available).collect::<Vec<_>>(),
        [false, true, false]
    );
    let bundle = &chain[6].json["blobsBundle"];
    assert_eq!(json!(rest.entries[1].contents.blob), bundle["blobs"][0]);
    assert_eq!(json!(rest.entries[1].contents.proof), bundle["proofs"][0]);
    let code = Peer::h1(&el).error_code("engine_getBlobsV1", json!([asked])).await;
    assert_eq!(code, -38005);
}

#[tokio::test]
async fn the_second_revision_is_all_or_nothing() {
    let (el, chain) = with_chain().await;
    let (old, cells) = versioned_hashes(&chain);
    let (rest_peer, json_peer) = (Peer::h2(&el), Peer::h1(&el));
    for miss in [NOWHERE, old] {
        let asked = vec![cells[0], miss];
        assert_eq!(json_peer.result("engine_getBlobsV2", json!([asked])).await, Value::Null);
        assert_eq!(blobs(&rest_peer, "v2", asked).await, None);
    }
    let json = json_peer.result("engine_getBlobsV2", json!([cells])).await;
    let json: Vec<BlobAndProofV2> = serde_json::from_value(json).unwrap();
    let body = blobs(&rest_peer, "v2", cells.to_vec()).await.expect("all there");
    let rest = rest::BlobsV2Response::from_ssz_bytes(&body).unwrap();
    assert!(rest.entries.iter().all(|entry| entry.available && entry.contents.proofs.len() == 128));
    assert!(rest.entries.iter().map(|entry| &entry.contents).eq(&json));
    let bundle = &chain[12].json["blobsBundle"];
    assert_eq!(json!(json[2].proofs), json!(bundle["proofs"].as_array().unwrap()[256..]));
}

#[tokio::test]
async fn the_third_revision_has_gaps() {
    let (el, chain) = with_chain().await;
    let (old, [first, ..]) = versioned_hashes(&chain);
    let (rest_peer, json_peer) = (Peer::h2(&el), Peer::h1(&el));
    let asked = vec![old, first, NOWHERE];
    let json = json_peer.result("engine_getBlobsV3", json!([asked])).await;
    let json: Vec<Option<BlobAndProofV2>> = serde_json::from_value(json).unwrap();
    let body = blobs(&rest_peer, "v3", asked).await.expect("partial answers");
    let rest = rest::BlobsV3Response::from_ssz_bytes(&body).unwrap();
    let found: Vec<_> =
        rest.entries.iter().map(|entry| entry.available.then_some(&entry.contents)).collect();
    assert_eq!(found, json.iter().map(Option::as_ref).collect::<Vec<_>>());
    assert_eq!(json.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, false]);
}

#[tokio::test]
async fn the_fourth_revision_has_the_cells_of_the_bits_that_are_set() {
    let (el, chain) = with_chain().await;
    let (_, [first, second, _]) = versioned_hashes(&chain);
    let (rest_peer, json_peer) = (Peer::h2(&el), Peer::h1(&el));
    let mut bits = B128::ZERO;
    bits[0] = 0b1000_0001; // cells 0 and 7
    bits[15] = 0b1000_0000; // cell 127
    for (bits, count) in [(bits, 3), (B128::ZERO, 0), (B128::repeat_byte(0xff), 128)] {
        let asked = vec![second, NOWHERE, first];
        let json = json_peer.result("engine_getBlobsV4", json!([asked, bits])).await;
        let json: Vec<Option<BlobCellsAndProofsV1>> = serde_json::from_value(json).unwrap();
        assert_eq!(json.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true]);
        let request =
            rest::BlobsV4Request { versioned_hashes: asked, indices_bitarray: bits }.as_ssz_bytes();
        let answer = rest_peer.post("/engine/v1/blobs/v4", "", request).await;
        let rest = rest::BlobsV4Response::from_ssz_bytes(&answer.body).unwrap();
        for (entry, json) in rest.entries.into_iter().zip(json) {
            assert_eq!(entry.available, json.is_some());
            let json = json.unwrap_or_default();
            let option = |cells: Vec<rest::Optional<_>>| cells.into_iter().map(Option::from);
            assert!(option(entry.contents.blob_cells).eq(json.blob_cells.iter().cloned()));
            assert_eq!(json.blob_cells.len(), if entry.available { count } else { 0 });
            assert_eq!(json.proofs.len(), json.blob_cells.len());
        }
    }
    let blob = chain[12].json["blobsBundle"]["blobs"][0].as_str().unwrap();
    let json = json_peer.result("engine_getBlobsV4", json!([[first], bits])).await;
    let cell = json[0]["blob_cells"][1].as_str().unwrap();
    assert_eq!(cell[2..], blob[2 + 2 * 7 * 2048..][..2 * 2048], "cell 7 is the blob's eighth");
    let short = json!([[first], "0x00"]);
    assert_eq!(json_peer.error_code("engine_getBlobsV4", short).await, -32602);
}

#[tokio::test]
async fn more_than_128_hashes_are_too_many_for_every_version() {
    let el = start(config()).await;
    let peer = Peer::h1(&el);
    for version in ["V1", "V2", "V3", "V4"] {
        let method = format!("engine_getBlobs{version}");
        let with = |count| json!([vec![NOWHERE; count], B128::ZERO]);
        assert_eq!(peer.error_code(&method, with(129)).await, -38004);
        peer.result(&method, with(128)).await;
    }
}
