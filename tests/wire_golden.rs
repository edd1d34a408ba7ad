//! What real execution clients said in JSON-RPC and in REST-SSZ about the same things: each pair is
//! turned into the other and compared.

use std::fs;
use std::path::PathBuf;

use engine_ssz_proxy::wire::{
    self, Container, Fork, Source, json_array, json_member, member_to_json, schema, to_json, to_ssz,
};
use serde_json::Value;

/// The blocks of which there are pairs.
const BLOCKS: [(&str, Fork); 11] = [
    ("01", Fork::Paris),
    ("03", Fork::Shanghai),
    ("04", Fork::Shanghai),
    ("06", Fork::Cancun),
    ("07", Fork::Cancun),
    ("09", Fork::Prague),
    ("10", Fork::Prague),
    ("12", Fork::Osaka),
    ("13", Fork::Osaka),
    ("15", Fork::Amsterdam),
    ("16", Fork::Amsterdam),
];

fn read(name: &str) -> Vec<u8> {
    let path: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "tests", "data", "golden", name].iter().collect();
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn pair(block: &str, fork: Fork, call: &str) -> (Vec<u8>, Vec<u8>) {
    (read(&format!("{block}-{fork}-{call}.json")), read(&format!("{block}-{fork}-{call}.ssz")))
}

fn member<'a>(message: &'a [u8], name: &str) -> &'a [u8] {
    json_member(message, name).unwrap().unwrap()
}

fn value(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap()
}

fn assert_same_value(ours: &[u8], theirs: &[u8], what: &str) {
    assert_eq!(value(ours), value(theirs), "{what}");
}

#[test]
fn built_payloads_print_as_the_client_prints_them() {
    for (block, fork) in BLOCKS {
        let (json, ssz) = pair(block, fork, "getPayload");
        let ours = to_json(schema::BUILT_PAYLOAD, fork, &ssz).unwrap();
        // The client prints in the order of the structures too: every byte must agree.
        let theirs = member(&json, "result");
        assert!(ours == theirs, "block {block}: {} bytes, not {}", ours.len(), theirs.len());
    }
}

#[test]
fn a_built_payload_printed_and_encoded_again_is_the_same_body() {
    for (block, fork) in BLOCKS {
        let (json, ssz) = pair(block, fork, "getPayload");
        let source = Source::Object(member(&json, "result"));
        assert!(to_ssz(schema::BUILT_PAYLOAD, fork, source).unwrap() == ssz, "block {block}");
    }
}

#[test]
fn the_bare_payload_of_get_payload_v1_is_the_member() {
    let (json, ssz) = pair("01", Fork::Paris, "getPayload");
    let bare =
        member_to_json(schema::BUILT_PAYLOAD, Fork::Paris, &ssz, "executionPayload").unwrap();
    assert_eq!(bare, member(member(&json, "result"), "executionPayload"));
}

#[test]
fn submitted_payloads_encode_to_what_the_client_took_as_valid() {
    for (block, fork) in BLOCKS {
        let (json, ssz) = pair(block, fork, "newPayload");
        let mut params = json_array(member(&json, "params"), usize::MAX).unwrap();
        if params.len() > 1 {
            // The versioned hashes are not in the envelope.
            params.remove(1);
        }
        let ours =
            to_ssz(schema::EXECUTION_PAYLOAD_ENVELOPE, fork, Source::Fields(&params)).unwrap();
        assert!(ours == ssz, "block {block}");

        let (json, ssz) = pair(block, fork, "newPayload-answer");
        let ours = to_json(schema::PAYLOAD_STATUS, fork, &ssz).unwrap();
        assert_same_value(&ours, member(&json, "result"), block);
    }
}

#[test]
fn forkchoice_updates_encode_to_what_the_client_took() {
    for (block, fork) in BLOCKS {
        let (json, ssz) = pair(block, fork, "forkchoiceUpdated");
        let mut params = json_array(member(&json, "params"), usize::MAX).unwrap();
        if fork >= Fork::Amsterdam {
            // Left out by the CL: the same as `null`.
            params.push(b"null");
        }
        let ours = to_ssz(schema::FORKCHOICE_UPDATE, fork, Source::Fields(&params)).unwrap();
        assert_eq!(ours, ssz, "block {block}");

        let (json, ssz) = pair(block, fork, "forkchoiceUpdated-answer");
        let ours = to_json(schema::FORKCHOICE_UPDATE_RESPONSE, fork, &ssz).unwrap();
        assert_same_value(&ours, member(&json, "result"), block);
    }
}

#[test]
fn the_timestamp_of_a_submitted_payload_is_found_in_place() {
    for (block, fork) in BLOCKS {
        let (json, ssz) = pair(block, fork, "newPayload");
        let payload = json_array(member(&json, "params"), usize::MAX).unwrap()[0];
        let timestamp = wire::json_u64(member(payload, "timestamp")).unwrap();
        let path = ["payload", "timestamp"];
        let region = wire::field(schema::EXECUTION_PAYLOAD_ENVELOPE, fork, &ssz, &path);
        assert_eq!(region, Some(timestamp.to_le_bytes().as_slice()), "block {block}");
    }
}

#[test]
fn transactions_are_found_in_place() {
    for (block, fork) in BLOCKS {
        let (json, ssz) = pair(block, fork, "newPayload");
        let payload = json_array(member(&json, "params"), usize::MAX).unwrap()[0];
        let path = ["payload", "transactions"];
        let region = wire::field(schema::EXECUTION_PAYLOAD_ENVELOPE, fork, &ssz, &path).unwrap();
        let ours: Vec<Value> =
            wire::elements(region).map(|tx| Value::from(const_hex::encode_prefixed(tx))).collect();
        assert_eq!(Value::from(ours), value(member(payload, "transactions")), "block {block}");
    }
}

/// The JSON answers are about the first three blocks, the SSZ ones about some more.
#[test]
fn bodies_print_as_the_client_prints_them() {
    for fork in [Fork::Prague, Fork::Osaka, Fork::Amsterdam] {
        let ssz = read(&format!("bodies-{fork}.ssz"));
        let json = read(&format!("bodies-{fork}.json"));
        assert_prefix(schema::BODIES_RESPONSE_V1, fork, &ssz, &json, 3);
    }
}

#[test]
fn blobs_print_as_the_client_prints_them() {
    let fork = Fork::Amsterdam;
    for (container, version) in
        [(schema::BLOBS_V3_RESPONSE, "v3"), (schema::BLOBS_V4_RESPONSE, "v4")]
    {
        let ssz = read(&format!("blobs-{version}.ssz"));
        let json = read(&format!("blobs-{version}.json"));
        assert_prefix(container, fork, &ssz, &json, 2);
    }
}

fn assert_prefix(container: &Container, fork: Fork, ssz: &[u8], json: &[u8], count: usize) {
    let ours = to_json(container, fork, ssz).unwrap();
    let ours = json_array(&ours, usize::MAX).unwrap();
    let theirs = json_array(member(json, "result"), usize::MAX).unwrap();
    assert_eq!(theirs.len(), count);
    assert!(ours[..count] == theirs[..], "{}", container.name());
}

/// The SSZ requests ask for one hash more.
#[test]
fn blob_requests_encode_to_what_the_client_took() {
    for (container, version, fixed_part) in
        [(schema::BLOBS_REQUEST, "v3", 4), (schema::BLOBS_V4_REQUEST, "v4", 20)]
    {
        let json = read(&format!("blobs-{version}-request.json"));
        let params = json_array(member(&json, "params"), usize::MAX).unwrap();
        let ours = to_ssz(container, Fork::Amsterdam, Source::Fields(&params)).unwrap();
        let theirs = read(&format!("blobs-{version}-request.ssz"));
        assert_eq!(ours.len(), fixed_part + 2 * 32);
        assert_eq!(ours, theirs[..ours.len()]);
    }
}
