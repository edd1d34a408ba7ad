//! Blobs: what is missing, pieces, cells.

use crate::support::*;
use alloy_eips::{
    eip4844::{Blob, BlobAndProofV1, BlobAndProofV2, Bytes48},
    eip7594::Cell,
};
use alloy_rpc_types_engine::ssz_engine_types::{
    BlobCellsAndProofs, BlobEntry, BlobsResponse, BlobsV1Response, BlobsV3Response, Optional,
};
use engine_ssz_proxy::{
    engine::{Limits, Offer, RelayReason, Step},
    wire::Fork,
};
use http::Response;
use serde_json::{Value, json};

fn get_blobs(version: &str, count: usize) -> Value {
    let hashes: Vec<_> = (0..count).map(|n| format!("0x{n:064x}")).collect();
    json!({"method": format!("engine_getBlobs{version}"), "params": [hashes]})
}

fn get_cells(columns: &str) -> Value {
    json!({"method": "engine_getBlobsV4", "params": [[format!("0x{:064x}", 1)], columns]})
}

fn v1(byte: Option<u8>) -> Option<BlobAndProofV1> {
    let blob = |byte| BlobAndProofV1 {
        blob: Box::new(Blob::repeat_byte(byte)),
        proof: Bytes48::repeat_byte(byte),
    };
    byte.map(blob)
}

fn v2(byte: Option<u8>) -> Option<BlobAndProofV2> {
    let blob = |byte| BlobAndProofV2 {
        blob: Box::new(Blob::repeat_byte(byte)),
        proofs: vec![Bytes48::repeat_byte(byte); 128],
    };
    byte.map(blob)
}

fn v1_answer(bytes: &[Option<u8>]) -> Response<bytes::Bytes> {
    ok(BlobsV1Response::try_from(bytes.iter().map(|byte| v1(*byte)).collect::<Vec<_>>()).unwrap())
}

fn v2_answer(bytes: &[Option<u8>]) -> Response<bytes::Bytes> {
    ok(BlobsV3Response::try_from(bytes.iter().map(|byte| v2(*byte)).collect::<Vec<_>>()).unwrap())
}

fn hear(request: &Value, said: Response<bytes::Bytes>) -> Step {
    let scene = Scene::new();
    let (mut call, exchange) = scene.sent(request);
    assert_eq!(fork(&exchange), "", "blobs have no fork header");
    assert_eq!(header(&exchange, "accept"), SSZ);
    scene.hear(&mut call, said)
}

fn no_content() -> Response<bytes::Bytes> {
    answer(204, "", "")
}

/// The first byte of each blob, or null.
fn shown(step: Step) -> Value {
    let blobs = result(step);
    let Some(blobs) = blobs.as_array() else {
        return blobs;
    };
    blobs.iter().map(|blob| blob["blob"].as_str().map(|text| text[2..4].to_owned())).collect()
}

#[test]
fn rest_03_each_version_has_the_path_of_its_own_number() {
    for version in ["V1", "V2", "V3"] {
        let (_, exchange) = Scene::new().sent(&get_blobs(version, 2));
        let path = format!("/blobs/{}", version.to_lowercase());
        assert_eq!(exchange.request.uri(), path.as_str());
        assert_eq!(exchange.request.body().len(), 4 + 64);
    }
    let (_, exchange) = Scene::new().sent(&get_cells("0x01000000000000000000000000000080"));
    assert_eq!(exchange.request.uri(), "/blobs/v4");
    let body = exchange.request.body();
    assert_eq!(body[..4], [20, 0, 0, 0]);
    assert_eq!(body[4..20], [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80]);
}

#[test]
fn v1_and_v3_have_a_null_for_what_is_missing() {
    let some = [Some(1), None, Some(3)];
    assert_eq!(shown(hear(&get_blobs("V1", 3), v1_answer(&some))), json!(["01", null, "03"]));
    assert_eq!(shown(hear(&get_blobs("V3", 3), v2_answer(&some))), json!(["01", null, "03"]));
}

#[test]
fn blob_01_v2_is_all_or_nothing_however_the_el_says_it() {
    let request = get_blobs("V2", 2);
    assert_eq!(shown(hear(&request, v2_answer(&[Some(1), Some(2)]))), json!(["01", "02"]));
    for miss in [no_content(), v2_answer(&[]), v2_answer(&[Some(1), None])] {
        assert_eq!(result(hear(&request, miss)), Value::Null);
    }
}

#[test]
fn life_08_no_content_is_null_where_the_method_has_a_null() {
    assert_eq!(result(hear(&get_blobs("V1", 2), no_content())), json!([null, null]));
    assert_eq!(result(hear(&get_blobs("V2", 2), no_content())), Value::Null);
    assert_eq!(result(hear(&get_blobs("V3", 2), no_content())), Value::Null);
    let reason = relay(hear(&get_cells("0x01000000000000000000000000000080"), no_content()));
    assert!(matches!(reason, RelayReason::NoContent), "{reason}");
}

#[test]
fn blob_02_a_request_within_128_goes_in_the_pieces_that_the_el_takes() {
    let limits = Limits { blobs_max: 2, ..Offer::of_forks(&[]).limits() };
    let limited = || Scene { offer: Some(Offer::new(["osaka"], limits)), ..Scene::new() };
    let play = |version: &str, answers: Vec<Response<bytes::Bytes>>| {
        let scene = limited();
        let (mut call, mut step) = scene.begin(&get_blobs(version, 5));
        let mut lengths = Vec::new();
        for said in answers {
            let exchange = again(step);
            lengths.push((exchange.request.body().len() - 4) / 32);
            step = scene.hear(&mut call, said);
        }
        (step, lengths)
    };
    let (step, lengths) = play(
        "V3",
        vec![v2_answer(&[Some(1), None]), v2_answer(&[Some(3), Some(4)]), v2_answer(&[Some(5)])],
    );
    assert_eq!(lengths, [2, 2, 1]);
    assert_eq!(shown(step), json!(["01", null, "03", "04", "05"]));
    let (step, lengths) =
        play("V2", vec![v2_answer(&[Some(1), Some(2)]), v2_answer(&[Some(3), None])]);
    assert_eq!(lengths, [2, 2], "nothing more is asked after a miss");
    assert_eq!(result(step), Value::Null);
}

#[test]
fn blob_02_nothing_and_more_than_128_are_the_els_to_answer() {
    Scene::new().sent(&get_blobs("V3", 128));
    for count in [0, 129] {
        assert_eq!(Scene::new().relayed(&get_blobs("V3", count)).label(), "count");
    }
}

#[test]
fn a_wrong_number_of_entries_is_asked_over_json_rpc() {
    for request in [get_blobs("V1", 2), get_blobs("V3", 2)] {
        let said = match request["method"].as_str() {
            Some("engine_getBlobsV1") => v1_answer(&[Some(1)]),
            _ => v2_answer(&[Some(1)]),
        };
        assert!(relay(hear(&request, said)).is_fault_of_el());
    }
}

#[test]
fn blob_03_a_proof_count_other_than_128_is_a_bad_answer() {
    let mut blob = v2(Some(1)).unwrap();
    blob.proofs.pop();
    let said = BlobsResponse { entries: vec![BlobEntry { available: true, contents: blob }] };
    assert!(relay(hear(&get_blobs("V3", 1), ok(said))).is_fault_of_el());
}

/// Cells whose bytes are their place in the list; those given are missing.
fn cells(count: usize, missing: &[usize]) -> Response<bytes::Bytes> {
    ok(BlobsResponse { entries: vec![entry_of_cells(count, missing)] })
}

fn entry_of_cells(count: usize, missing: &[usize]) -> BlobEntry<BlobCellsAndProofs> {
    let there = |place: &usize| !missing.contains(place);
    let cell = |place| there(&place).then(|| Box::new([place as u8; 2048]));
    let proof = |place: usize| there(&place).then(|| Bytes48::repeat_byte(place as u8));
    let contents = BlobCellsAndProofs {
        blob_cells: (0..count)
            .map(|place| Optional::from(cell(place).map(|bytes| Cell::from(*bytes))))
            .collect(),
        proofs: (0..count).map(|place| Optional::from(proof(place))).collect(),
    };
    BlobEntry { available: true, contents }
}

/// The first byte of each cell and of each proof.
fn places(step: Step) -> Value {
    let blobs = result(step);
    let first = |list: &Value| -> Value {
        let texts = list.as_array().unwrap().iter();
        texts.map(|text| text.as_str().map(|text| text[2..4].to_owned())).collect()
    };
    json!([first(&blobs[0]["blob_cells"]), first(&blobs[0]["proofs"])])
}

#[test]
fn blob_04_cells_are_those_asked_for_in_order_whether_the_el_sends_128_slots_or_only_them() {
    // Columns 0 and 127.
    let request = get_cells("0x01000000000000000000000000000080");
    let compact = places(hear(&request, cells(2, &[])));
    assert_eq!(compact, json!([["00", "01"], ["00", "01"]]));
    let slots = places(hear(&request, cells(128, &[])));
    assert_eq!(slots, json!([["00", "7f"], ["00", "7f"]]));
    let missing = places(hear(&request, cells(128, &[127])));
    assert_eq!(missing, json!([["00", null], ["00", null]]));
    for other in [0, 1, 3, 127] {
        assert!(relay(hear(&request, cells(other, &[]))).is_fault_of_el(), "{other}");
    }
}

#[test]
fn blob_04_cells_in_two_forms_at_once_are_a_bad_answer() {
    let mut request = get_cells("0x01000000000000000000000000000080");
    request["params"][0] = json!([format!("0x{:064x}", 1), format!("0x{:064x}", 2)]);
    let (compact, slots) = (entry_of_cells(2, &[]), entry_of_cells(128, &[]));
    let mut halved = compact.clone();
    halved.contents.proofs = slots.contents.proofs.clone();
    for entries in [[compact.clone(), slots.clone()], [slots.clone(), compact], [halved, slots]] {
        let reason = relay(hear(&request, ok(BlobsResponse { entries: entries.to_vec() })));
        assert!(matches!(reason, RelayReason::BadAnswer(_)), "{reason}");
    }
}

#[test]
fn blob_04_all_columns_and_none() {
    let all = places(hear(&get_cells(&format!("0x{}", "ff".repeat(16))), cells(128, &[5])));
    assert_eq!(all[0].as_array().unwrap().len(), 128);
    assert_eq!(all[0][5], Value::Null);
    let none = places(hear(&get_cells(&format!("0x{}", "00".repeat(16))), cells(0, &[])));
    assert_eq!(none, json!([[], []]));
}

#[test]
fn blob_04_a_bitarray_that_is_not_16_bytes_is_the_els_to_refuse() {
    for columns in ["0x01", "0x", &format!("0x{}", "00".repeat(17))] {
        assert_eq!(Scene::new().relayed(&get_cells(columns)).label(), "not_transcodable");
    }
}

#[test]
fn fork_10_v1_ends_with_osaka_which_is_json_rpcs_to_say() {
    let scene = Scene::new();
    scene.memory.note_block([1; 32], Fork::Prague);
    scene.sent(&get_blobs("V1", 1));
    scene.memory.note_block([2; 32], Fork::Osaka);
    let reason = scene.relayed(&get_blobs("V1", 1));
    assert_eq!(reason.without_json_rpc().code.0, -38005);
    scene.sent(&get_blobs("V2", 1));
    // An older block, or another process of the EL, does not turn the chain back.
    scene.memory.note_block([3; 32], Fork::Prague);
    scene.relayed(&get_blobs("V1", 1));
    scene.memory.forget_process();
    scene.relayed(&get_blobs("V1", 1));
}

#[test]
fn fork_10_v1_has_ended_once_the_cl_speaks_of_a_time_or_with_a_method_after_osakas_begin() {
    let ended = |scene: &Scene, spoken: &Value| {
        scene.begin(spoken);
        matches!(scene.begin(&get_blobs("V1", 1)).1, Step::Relay(RelayReason::EndedWithOsaka))
    };
    // Whether the EL has REST for them or not.
    for offer in [Some(Offer::of_forks(&Fork::SPECIFIED)), Some(Offer::of_forks(&[Fork::Prague]))] {
        let scheduled = || Scene { offer: offer.clone(), ..Scene::scheduled() };
        assert!(!ended(&scheduled(), &golden("09-prague", "newPayload")));
        assert!(ended(&scheduled(), &golden("12-osaka", "newPayload")));
        assert!(ended(&scheduled(), &build("12-osaka").0));
        let unscheduled = || Scene { offer: offer.clone(), ..Scene::new() };
        assert!(!ended(&unscheduled(), &golden("12-osaka", "newPayload")), "it may be of Prague");
        assert!(ended(&unscheduled(), &golden("15-amsterdam", "newPayload")));
    }
}

#[test]
fn fork_10_a_revision_that_the_el_does_not_serve_now_is_asked_over_json_rpc() {
    for said in [problem(400, "unsupported-fork"), answer(404, "", ""), problem(500, "internal")] {
        relay(hear(&get_blobs("V1", 1), said));
    }
}
