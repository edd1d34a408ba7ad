//! newPayload, forkchoiceUpdated, getPayload and getClientVersion.

use crate::support::*;
use alloy_primitives::B256;
use alloy_rpc_types_engine::{
    PayloadId,
    ssz_engine_types::{ForkchoiceUpdateResponse, Optional, PayloadStatusKind},
};
use engine_ssz_proxy::{
    engine::{Answer, Limits, Offer, RelayReason, Replay, Step},
    wire::Fork,
};
use http::StatusCode;
use serde_json::{Value, json};

const BLOCKS: [(&str, &str); 6] = [
    ("01-paris", "paris"),
    ("03-shanghai", "shanghai"),
    ("06-cancun", "cancun"),
    ("09-prague", "prague"),
    ("12-osaka", "osaka"),
    ("15-amsterdam", "amsterdam"),
];

#[test]
fn each_fork_goes_under_its_header_with_the_clients_own_bytes() {
    for (block, name) in BLOCKS {
        let (_, exchange) = Scene::scheduled().sent(&golden(block, "newPayload"));
        assert_eq!(exchange.request.method(), "POST");
        assert_eq!(exchange.request.uri(), "/payloads");
        assert_eq!(fork(&exchange), name);
        assert_eq!(header(&exchange, "content-type"), SSZ);
        assert_eq!(header(&exchange, "accept"), SSZ);
        assert_eq!(exchange.replay, Replay::Harmless);
        let path =
            format!("{}/tests/data/golden/{block}-newPayload.ssz", env!("CARGO_MANIFEST_DIR"));
        assert_eq!(exchange.request.body(), &std::fs::read(path).unwrap(), "{block}");
    }
}

#[test]
fn a_payload_status_reaches_the_cl_as_it_is() {
    let request = golden("12-osaka", "newPayload");
    let own = block_hash(&request);
    let parent = B256::repeat_byte(2);
    use PayloadStatusKind::*;
    for (said, wanted) in [
        (
            status(Valid, Some(own), None),
            json!({"status": "VALID", "latestValidHash": own, "validationError": null}),
        ),
        (
            status(Invalid, Some(parent), Some("bad state root")),
            json!({"status": "INVALID", "latestValidHash": parent, "validationError": "bad state root"}),
        ),
        (
            status(Invalid, Some(B256::ZERO), None),
            json!({"status": "INVALID", "latestValidHash": B256::ZERO, "validationError": null}),
        ),
        (
            status(Syncing, None, None),
            json!({"status": "SYNCING", "latestValidHash": null, "validationError": null}),
        ),
        (
            status(Accepted, None, None),
            json!({"status": "ACCEPTED", "latestValidHash": null, "validationError": null}),
        ),
    ] {
        let scene = Scene::scheduled();
        let (mut call, _) = scene.sent(&request);
        assert_eq!(result(scene.hear(&mut call, ok(said))), wanted);
    }
}

#[test]
fn ssz_08_a_status_that_contradicts_its_hash_is_asked_again_over_json_rpc() {
    let request = golden("12-osaka", "newPayload");
    let own = block_hash(&request);
    use PayloadStatusKind::{Invalid, Valid};
    for said in [
        status(Valid, None, None),
        status(Valid, Some(B256::repeat_byte(3)), None),
        status(Invalid, Some(own), None),
    ] {
        let scene = Scene::scheduled();
        let (mut call, _) = scene.sent(&request);
        let reason = relay(scene.hear(&mut call, ok(said)));
        assert!(matches!(reason, RelayReason::BadAnswer(_)), "{reason}");
    }
}

#[test]
fn invalid_for_a_hash_under_a_guessed_header_is_asked_again_over_json_rpc() {
    let request = golden("12-osaka", "newPayload");
    let mismatch = || status(PayloadStatusKind::Invalid, None, Some("block hash mismatch"));
    let guessing = Scene::new();
    let (mut call, _) = guessing.sent(&request);
    let reason = relay(guessing.hear(&mut call, ok(mismatch())));
    assert!(matches!(reason, RelayReason::InvalidUnderGuess(_)), "{reason}");

    let knowing = Scene::scheduled();
    let (mut call, _) = knowing.sent(&request);
    assert_eq!(result(knowing.hear(&mut call, ok(mismatch())))["status"], "INVALID");
}

#[test]
fn blob_05_hashes_other_than_the_payloads_are_invalid_at_once() {
    let wanted = json!({
        "status": "INVALID", "latestValidHash": null,
        "validationError":
            "the blob versioned hashes of the payload's transactions are not the expected ones"
    });
    let mut with_blobs = golden("07-cancun", "newPayload");
    assert!(!with_blobs["params"][1].as_array().unwrap().is_empty(), "the block has blobs");
    let hashes = with_blobs["params"][1].clone();
    for wrong in [json!([]), json!([hashes[1], hashes[0]]), json!([B256::repeat_byte(1)])] {
        with_blobs["params"][1] = wrong;
        assert_eq!(result(Scene::new().begin(&with_blobs).1), wanted);
    }
}

#[test]
fn blob_05_null_hashes_and_unreadable_transactions_are_the_els_to_judge() {
    let mut request = golden("06-cancun", "newPayload");
    request["params"][1] = Value::Null;
    assert_eq!(Scene::new().relayed(&request).label(), "not_transcodable");
    let mut request = golden("06-cancun", "newPayload");
    request["params"][0]["transactions"] = json!(["0x03c0"]);
    request["params"][1] = json!([]);
    assert_eq!(Scene::new().relayed(&request).label(), "unreadable_transaction");
}

#[test]
fn an_unsupported_fork_is_tried_once_under_the_sibling_of_the_same_shape() {
    let scene = Scene::new();
    let request = golden("09-prague", "newPayload");
    let (mut call, first) = scene.sent(&request);
    assert_eq!(fork(&first), "osaka");
    let second = again(scene.hear(&mut call, problem(400, "unsupported-fork")));
    assert_eq!(fork(&second), "prague");
    assert_eq!(second.request.body(), first.request.body());
    let reason = relay(scene.hear(&mut call, problem(400, "unsupported-fork")));
    assert_eq!(reason.without_json_rpc().code.0, -38005);
}

#[test]
fn what_the_retry_proved_saves_the_next_one() {
    let scene = Scene::new();
    let request = golden("09-prague", "newPayload");
    let (mut call, _) = scene.sent(&request);
    again(scene.hear(&mut call, problem(400, "unsupported-fork")));
    let valid = status(PayloadStatusKind::Valid, Some(block_hash(&request)), None);
    result(scene.hear(&mut call, ok(valid)));
    assert_eq!(fork(&scene.sent(&golden("10-prague", "newPayload")).1), "prague");
}

#[test]
fn a_fork_without_a_sibling_is_asked_over_json_rpc_at_once() {
    for block in ["01-paris", "03-shanghai", "06-cancun", "15-amsterdam"] {
        let scene = Scene::new();
        let (mut call, _) = scene.sent(&golden(block, "newPayload"));
        let reason = relay(scene.hear(&mut call, problem(400, "unsupported-fork")));
        assert_eq!(reason.without_json_rpc().code.0, -38005, "{block}");
    }
}

#[test]
fn a_refused_payload_is_asked_over_json_rpc_and_never_an_error_of_our_own() {
    for refusal in [
        problem(400, "parse-error"),
        problem(400, "ssz-decode-error"),
        problem(400, "invalid-request"),
        problem(404, "method-not-found"),
        problem(413, "request-too-large"),
        problem(415, "unsupported-media-type"),
        problem(422, "invalid-body"),
        problem(500, "internal"),
        answer(404, "", ""),
        answer(405, "text/plain", "no"),
        answer(500, "text/plain", "invalid ssz"),
        answer(502, "text/html", "<html>"),
        answer(200, "application/json", "{}"),
        answer(200, "", vec![2, 9, 0, 0, 0, 9, 0, 0, 0]),
        answer(200, SSZ, ""),
        answer(200, SSZ, vec![4, 9, 0, 0, 0, 9, 0, 0, 0]),
        answer(204, "", ""),
        answer(302, "", ""),
    ] {
        let scene = Scene::scheduled();
        let (mut call, _) = scene.sent(&golden("15-amsterdam", "newPayload"));
        let what = format!("{refusal:?}");
        let reason = relay(scene.hear(&mut call, refusal));
        assert!(reason.is_fault_of_el(), "{what}: {reason}");
    }
}

#[test]
fn a_refused_token_keeps_its_http_status() {
    for code in [401, 403] {
        for request in [golden("12-osaka", "newPayload"), build("12-osaka").0] {
            let scene = Scene::scheduled();
            let (mut call, _) = scene.sent(&request);
            let step = scene.hear(&mut call, answer(code, "text/plain", "no"));
            let wanted = StatusCode::from_u16(code).unwrap();
            assert!(matches!(step, Step::Answer(Answer::Refused(said)) if said == wanted));
        }
    }
}

#[test]
fn attributes_go_under_the_fork_of_their_timestamp() {
    for (block, name) in BLOCKS {
        let (request, ssz) = build(block);
        let (_, exchange) = Scene::scheduled().sent(&request);
        assert_eq!(exchange.request.uri(), "/forkchoice");
        assert_eq!(fork(&exchange), name);
        assert_eq!(exchange.replay, Replay::OnlyIfNeverSent, "a build must not be asked twice");
        assert_eq!(exchange.request.body(), &ssz, "{block}");
    }
}

#[test]
fn json_06_left_out_and_null_attributes_and_custody_are_the_same() {
    let state = build("15-amsterdam").0["params"][0].clone();
    let mut bodies = Vec::new();
    for params in [json!([state]), json!([state, null]), json!([state, null, null])] {
        let request = json!({"method": "engine_forkchoiceUpdatedV4", "params": params});
        let (_, exchange) = Scene::new().sent(&request);
        assert_eq!(exchange.replay, Replay::Harmless);
        bodies.push(exchange.request.body().clone());
    }
    assert_eq!(bodies[0].len(), 104);
    assert_eq!(&bodies[0][96..], [104, 0, 0, 0, 104, 0, 0, 0]);
    assert!(bodies.iter().all(|body| *body == bodies[0]));
}

#[test]
fn custody_columns_are_copied_verbatim() {
    let state = build("15-amsterdam").0["params"][0].clone();
    let request = json!({
        "method": "engine_forkchoiceUpdatedV4",
        "params": [state, null, "0x81010000000000000000000000000080"]
    });
    let (_, exchange) = Scene::new().sent(&request);
    let body = exchange.request.body();
    assert_eq!(body[104..], [0x81, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80]);
}

#[test]
fn fork_04_what_cannot_be_written_as_ssz_is_the_els_to_refuse() {
    let request = build("12-osaka").0;
    let with = |change: &dyn Fn(&mut Value)| {
        let mut request = request.clone();
        change(&mut request["params"]);
        Scene::scheduled().relayed(&request)
    };
    with(&|params| params[1]["parentBeaconBlockRoot"] = Value::Null);
    with(&|params| params[1]["timestamp"] = json!("0x01"));
    with(&|params| params[1]["slotNumber"] = json!("0x1"));
    with(&|params| params[0]["headBlockHash"] = json!("0x"));
    with(&|params| params[0] = Value::Null);
    with(&|params| *params = json!([]));
    with(&|params| *params = json!({}));
    with(&|params| {
        let custody = json!("0x81010000000000000000000000000080");
        params.as_array_mut().unwrap().push(custody);
    });
    let shanghai = with(&|params| params[1]["timestamp"] = json!("0x24"));
    assert!(matches!(shanghai, RelayReason::ForkDisagrees { .. }), "{shanghai}");
}

#[test]
fn the_els_verdict_on_a_forkchoice_is_never_asked_twice() {
    for (refusal, code) in [
        (problem(409, "invalid-forkchoice"), -38002),
        (problem(409, "reorg-too-deep"), -38006),
        (problem(409, "too-deep-reorg"), -38006),
        (problem(422, "invalid-attributes"), -38003),
        (problem(400, "invalid-attributes"), -38003),
        (problem(422, "invalid-body"), -32602),
        (problem(503, "service-unavailable"), -32000),
    ] {
        let scene = Scene::scheduled();
        let (mut call, _) = scene.sent(&build("12-osaka").0);
        assert_eq!(error_code(scene.hear(&mut call, refusal)), code);
    }
}

#[test]
fn attributes_of_an_unsupported_fork_are_asked_over_json_rpc_which_applies_the_forkchoice_first() {
    let scene = Scene::scheduled();
    let (mut call, _) = scene.sent(&build("12-osaka").0);
    let reason = relay(scene.hear(&mut call, problem(400, "unsupported-fork")));
    assert_eq!(reason.label(), "unsupported_fork");
}

#[test]
fn ssz_08_a_forkchoice_status_that_contradicts_its_head_is_asked_again_over_json_rpc() {
    use PayloadStatusKind::{Invalid, Syncing, Valid};
    let (request, _) = build("12-osaka");
    let head = head_of(&request);
    let id = Some(PayloadId::new([1; 8]));
    for (kind, latest_valid, payload_id) in [
        (Valid, None, None),
        (Valid, Some(B256::repeat_byte(1)), id),
        (Invalid, Some(head), None),
        (Invalid, Some(B256::repeat_byte(1)), id),
        (Syncing, None, id),
    ] {
        let scene = Scene::scheduled();
        let (mut call, _) = scene.sent(&request);
        let said = ForkchoiceUpdateResponse {
            payload_status: status(kind, latest_valid, None),
            payload_id: payload_id.into(),
        };
        let reason = relay(scene.hear(&mut call, ok(said)));
        assert!(matches!(reason, RelayReason::BadAnswer(_)), "{reason}");
        assert_eq!(scene.memory.build([1; 8]), None, "such an id is not remembered");
    }
}

#[test]
fn fork_04_attributes_refused_under_a_guessed_header_are_asked_over_json_rpc() {
    let refusal = || problem(422, "invalid-attributes");
    let (request, _) = build("15-amsterdam");
    let guessing = Scene::new();
    let (mut call, _) = guessing.sent(&request);
    relay(guessing.hear(&mut call, refusal()));
    let knowing = Scene::scheduled();
    let (mut call, _) = knowing.sent(&request);
    assert_eq!(error_code(knowing.hear(&mut call, refusal())), -38003);
}

#[test]
fn an_unreadable_forkchoice_answer_is_asked_over_json_rpc() {
    let no_optional = [8, 0, 0, 0, 17, 0, 0, 0, 3, 9, 0, 0, 0, 9, 0, 0, 0];
    for refusal in [
        answer(500, "text/plain", "forkchoice update error: invalid forkchoice state"),
        problem(500, "internal"),
        answer(404, "", ""),
        answer(409, "text/plain", "no"),
        answer(200, SSZ, no_optional.to_vec()),
    ] {
        let scene = Scene::scheduled();
        let (mut call, _) = scene.sent(&build("12-osaka").0);
        relay(scene.hear(&mut call, refusal));
    }
}

#[test]
fn without_attributes_no_fork_is_wrong_to_the_cl() {
    let scene = Scene::new();
    let state = build("12-osaka").0["params"][0].clone();
    let request = json!({"method": "engine_forkchoiceUpdatedV3", "params": [state, null]});
    let (mut call, first) = scene.sent(&request);
    assert_eq!(fork(&first), "osaka");
    let second = again(scene.hear(&mut call, problem(400, "unsupported-fork")));
    assert_eq!(fork(&second), "prague");
    relay(scene.hear(&mut call, problem(400, "unsupported-fork")));
}

#[test]
fn status_08_syncing_without_an_id_is_passed_on() {
    let scene = Scene::scheduled();
    let (mut call, _) = scene.sent(&build("12-osaka").0);
    let said = ForkchoiceUpdateResponse {
        payload_status: status(PayloadStatusKind::Syncing, None, None),
        payload_id: Optional::none(),
    };
    assert_eq!(
        result(scene.hear(&mut call, ok(said))),
        json!({
            "payloadStatus": {"status": "SYNCING", "latestValidHash": null, "validationError": null},
            "payloadId": null
        })
    );
}

/// Asks for a build and gives the memory of it.
fn built(scene: &Scene, block: &str, id: [u8; 8]) {
    let request = build(block).0;
    let (mut call, _) = scene.sent(&request);
    let said = result(scene.hear(&mut call, ok(updated(&request, Some(id)))));
    assert_eq!(said["payloadId"], const_hex::encode_prefixed(id));
}

fn get_payload(version: &str, id: &str) -> Value {
    json!({"method": format!("engine_getPayload{version}"), "params": [id]})
}

#[test]
fn fork_11_the_payload_id_is_copied_whole_and_in_lower_case() {
    let (_, exchange) = Scene::new().sent(&get_payload("V5", "0x00000000000000AA"));
    assert_eq!(exchange.request.method(), "GET");
    assert_eq!(exchange.request.uri(), "/payloads/0x00000000000000aa");
    assert!(exchange.request.body().is_empty());
    assert_eq!(header(&exchange, "content-type"), "");
    for ill_formed in ["0xAA", "0x1", "0x", "00000000000000aa", "0x00000000000000aa00"] {
        Scene::new().relayed(&get_payload("V5", ill_formed));
    }
}

#[test]
fn fork_08_v2_asks_under_the_fork_that_the_build_was_asked_under() {
    let scene = Scene::new();
    built(&scene, "01-paris", [1; 8]);
    built(&scene, "03-shanghai", [2; 8]);
    assert_eq!(fork(&scene.sent(&get_payload("V2", "0x0101010101010101")).1), "paris");
    assert_eq!(fork(&scene.sent(&get_payload("V2", "0x0202020202020202")).1), "shanghai");
}

#[test]
fn fork_08_v2_tries_both_forks_for_an_id_it_does_not_know() {
    let scene = Scene::new();
    let (mut call, first) = scene.sent(&get_payload("V2", "0x0303030303030303"));
    assert_eq!(fork(&first), "shanghai");
    let second = again(scene.hear(&mut call, problem(400, "unsupported-fork")));
    assert_eq!(fork(&second), "paris");
    let reason = relay(scene.hear(&mut call, problem(400, "unsupported-fork")));
    assert_eq!(reason.without_json_rpc().code.0, -38005);
}

#[test]
fn fork_08_a_build_of_another_fork_is_the_els_to_refuse() {
    let scene = Scene::new();
    built(&scene, "09-prague", [1; 8]);
    let (mut call, exchange) = scene.sent(&get_payload("V3", "0x0101010101010101"));
    assert_eq!(fork(&exchange), "cancun");
    let reason = relay(scene.hear(&mut call, problem(400, "unsupported-fork")));
    assert_eq!(reason.without_json_rpc().code.0, -38005);
}

#[test]
fn a_build_served_teaches_the_fork_of_its_timestamp() {
    let scene = Scene::new();
    assert_eq!(fork(&scene.sent(&golden("09-prague", "newPayload")).1), "osaka");
    built(&scene, "09-prague", [1; 8]);
    let (mut call, _) = scene.sent(&get_payload("V4", "0x0101010101010101"));
    let body = std::fs::read(format!(
        "{}/tests/data/golden/09-prague-getPayload.ssz",
        env!("CARGO_MANIFEST_DIR")
    ));
    result(scene.hear(&mut call, answer(200, SSZ, body.unwrap())));
    assert_eq!(fork(&scene.sent(&golden("09-prague", "newPayload")).1), "prague");
}

#[test]
fn life_02_only_the_problem_type_makes_a_payload_unknown() {
    let hear = |said| {
        let scene = Scene::new();
        let (mut call, _) = scene.sent(&get_payload("V5", "0x0000000000000001"));
        scene.hear(&mut call, said)
    };
    // JSON-RPC may know it; without JSON-RPC it is unknown.
    let reason = relay(hear(problem(404, "unknown-payload")));
    assert_eq!((reason.label(), reason.without_json_rpc().code.0), ("unknown_payload", -38001));
    assert!(!reason.verdict().is_proof(Some(b"{}")));
    relay(hear(problem(404, "method-not-found")));
    relay(hear(answer(404, "text/plain", "Unknown payload")));
    relay(hear(problem(500, "internal")));
    relay(hear(answer(200, SSZ, "short")));
}

#[test]
fn fork_07_v1_prints_the_bare_payload_and_v2_of_paris_no_withdrawals() {
    let path = format!("{}/tests/data/golden/01-paris-getPayload.ssz", env!("CARGO_MANIFEST_DIR"));
    let ssz = std::fs::read(path).unwrap();
    let wrapped = golden("01-paris", "getPayload")["result"].clone();
    for (version, wanted) in [("V1", &wrapped["executionPayload"]), ("V2", &wrapped)] {
        let scene = Scene::new();
        built(&scene, "01-paris", [1; 8]);
        let (mut call, _) = scene.sent(&get_payload(version, "0x0101010101010101"));
        assert_eq!(&result(scene.hear(&mut call, answer(200, SSZ, ssz.clone()))), wanted);
    }
}

#[test]
fn without_rest_or_the_fork_a_call_is_relayed() {
    let requests = [
        golden("12-osaka", "newPayload"),
        build("12-osaka").0,
        get_payload("V5", "0x0000000000000001"),
    ];
    for request in &requests {
        let nothing = Scene { offer: None, ..Scene::new() };
        assert_eq!(nothing.relayed(request).label(), "no_rest");
        let old = Scene { offer: Some(Offer::of_forks(&[Fork::Paris])), ..Scene::new() };
        assert_eq!(old.relayed(request).label(), "fork_not_offered");
    }
}

#[test]
fn size_02_a_body_over_the_els_limit_is_relayed() {
    let request = golden("12-osaka", "newPayload");
    let (_, exchange) = Scene::new().sent(&request);
    let bytes = exchange.request.body().len();
    let limited = |payload_max_bytes| {
        let limits = Limits { payload_max_bytes, ..Offer::of_forks(&[]).limits() };
        Scene { offer: Some(Offer::new(["osaka"], limits)), ..Scene::new() }
    };
    assert_eq!(limited(bytes - 1).relayed(&request).label(), "too_large");
    limited(bytes).sent(&request);
}

#[test]
fn any_number_of_parameters_but_the_methods_own_is_relayed() {
    for (block, _) in BLOCKS {
        let request = golden(block, "newPayload");
        let count = request["params"].as_array().unwrap().len();
        for wrong in (0..6).filter(|n| *n != count) {
            let mut request = request.clone();
            let params = request["params"].as_array_mut().unwrap();
            params.resize(wrong, Value::Null);
            Scene::new().relayed(&request);
        }
    }
    Scene::new().relayed(&json!({"method": "engine_getPayloadV1"}));
    Scene::new().relayed(&json!({"method": "engine_getPayloadV1", "params": []}));
}

fn client_version() -> Value {
    json!({"method": "engine_getClientVersionV1", "params": [
        {"code": "LH", "name": "Lighthouse", "version": "v8.0.0", "commit": "0xdeadbeef"}
    ]})
}

#[test]
fn a_cl_that_does_not_say_who_it_is_by_the_rules_is_relayed() {
    for own in [json!(["LH", "v8.0.0"]), json!({"code": "LH"}), json!("LH/v8.0.0"), Value::Null] {
        Scene::new().relayed(&json!({"method": "engine_getClientVersionV1", "params": [own]}));
    }
}

#[test]
fn json_16_the_els_identity_is_passed_on_as_it_is() {
    let list = r#"[ {"code":"RH","name":"Reth","version":"2.5.0","commit":"6e7aecc7"}]"#;
    for body in [list.to_owned(), format!(r#"{{"versions":{list}}}"#)] {
        let scene = Scene::new();
        let (mut call, exchange) = scene.sent(&client_version());
        assert_eq!(exchange.request.uri(), "/identity");
        assert_eq!(fork(&exchange), "");
        assert_eq!(header(&exchange, "accept"), "application/json");
        match scene.hear(&mut call, answer(200, "application/json", body)) {
            Step::Answer(Answer::Result(result)) => assert_eq!(result, list),
            step => panic!("{step:?}"),
        }
    }
}

#[test]
fn an_identity_that_is_none_is_asked_over_json_rpc() {
    for said in [
        answer(200, "application/json", "null"),
        answer(200, "application/json", r#"{"version":1}"#),
        answer(200, "text/html", "[]"),
        answer(404, "", ""),
        problem(500, "internal"),
    ] {
        let scene = Scene::new();
        let (mut call, _) = scene.sent(&client_version());
        relay(scene.hear(&mut call, said));
    }
}

#[test]
fn who_the_cl_is_goes_with_every_later_exchange() {
    let scene = Scene::new();
    assert_eq!(
        header(&scene.sent(&golden("12-osaka", "newPayload")).1, "x-engine-client-version"),
        ""
    );
    scene.sent(&client_version());
    for request in [golden("12-osaka", "newPayload"), get_payload("V1", "0x0000000000000001")] {
        let (_, exchange) = scene.sent(&request);
        assert_eq!(header(&exchange, "x-engine-client-version"), "LH/v8.0.0");
    }
}
