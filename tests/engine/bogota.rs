//! Inclusion lists: newPayloadV6, forkchoiceUpdatedV5, getInclusionListV1 and what becomes of them
//! without an EL, or without the wish, to carry them.

use crate::support::*;
use alloy_primitives::{B256, Bytes as Data, FixedBytes};
use alloy_rpc_types_engine::{
    ForkchoiceState,
    ssz_engine_types::{
        ExecutionPayloadEnvelopeAmsterdam, ForkchoiceUpdateAmsterdam, Optional, PayloadStatusKind,
    },
};
use bytes::Bytes;
use engine_ssz_proxy::{
    engine::{Horizon, Memory, Method, Offer, Order, RelayReason, Replay, Step},
    wire::Fork,
};
use serde_json::{Value, json};
use ssz::{Decode, Encode, SszEncoder};

const LIST: [&[u8]; 2] = [&[0x02, 0xaa, 0xbb], &[0xf8]];

fn transactions() -> Vec<Data> {
    LIST.iter().map(|tx| Data::from_static(tx)).collect()
}

/// A scene where all is on.
fn bogota() -> Scene {
    let memory = Memory::new(None).within(Horizon::Bogota);
    Scene { memory, offer: Some(Offer::of_forks(&Fork::ALL)) }
}

/// Scenes where something is off, with what that is.
fn without_bogota() -> [(&'static str, Scene); 3] {
    let limits = Offer::of_forks(&[]).limits();
    let names = Fork::ALL.map(Fork::name);
    [
        (
            "the EL does not offer it",
            Scene { offer: Some(Offer::of_forks(&Fork::SPECIFIED)), ..bogota() },
        ),
        ("nobody asked for it", Scene { offer: Some(Offer::new(names, limits)), ..Scene::new() }),
        ("no REST", Scene { offer: None, ..bogota() }),
    ]
}

/// A block of Amsterdam, whose payload Bogota shares, with a list.
fn new_payload() -> Value {
    let mut request = golden("15-amsterdam", "newPayload");
    request["method"] = json!("engine_newPayloadV6");
    request["params"].as_array_mut().unwrap().push(json!(transactions()));
    request
}

/// Attributes of Amsterdam with a list.
fn build_with_list() -> Value {
    let (mut request, _) = build("15-amsterdam");
    request["method"] = json!("engine_forkchoiceUpdatedV5");
    request["params"][1]["inclusionListTransactions"] = json!(transactions());
    request
}

fn get_inclusion_list() -> Value {
    json!({"method": "engine_getInclusionListV1", "params": []})
}

/// The SSZ of a container, as ethereum_ssz lays out those fields.
fn container(fixed_part: usize, fields: &[&dyn Field]) -> Vec<u8> {
    let mut ssz = Vec::new();
    let mut encoder = SszEncoder::container(&mut ssz, fixed_part);
    for field in fields {
        field.append(&mut encoder);
    }
    encoder.finalize();
    ssz
}

trait Field {
    fn append(&self, encoder: &mut SszEncoder<'_>);
}

impl<T: Encode> Field for T {
    fn append(&self, encoder: &mut SszEncoder<'_>) {
        encoder.append(self);
    }
}

/// `PayloadStatus` of Bogota.
fn status_with_list(
    kind: PayloadStatusKind,
    latest_valid_hash: Option<B256>,
    satisfied: Option<bool>,
) -> Vec<u8> {
    let error = Optional::<Data>::from(None);
    let (hash, satisfied) = (Optional::from(latest_valid_hash), Optional::from(satisfied));
    container(13, &[&kind, &hash, &error, &satisfied])
}

fn raw(ssz: Vec<u8>) -> http::Response<Bytes> {
    answer(200, SSZ, ssz)
}

#[test]
fn a_payload_goes_under_bogota_with_its_list_behind_the_requests() {
    let request = new_payload();
    let (_, exchange) = bogota().sent(&request);
    assert_eq!(exchange.request.uri(), "/payloads");
    assert_eq!(fork(&exchange), "bogota");
    assert_eq!(exchange.replay, Replay::Harmless);

    let path =
        format!("{}/tests/data/golden/15-amsterdam-newPayload.ssz", env!("CARGO_MANIFEST_DIR"));
    let older = ExecutionPayloadEnvelopeAmsterdam::from_ssz_bytes(&std::fs::read(path).unwrap());
    let older = older.unwrap();
    let requests: Vec<Data> = older.execution_requests.iter().cloned().collect();
    let wanted = container(
        44,
        &[&older.payload, &older.parent_beacon_block_root, &requests, &transactions()],
    );
    assert!(exchange.request.body()[..] == wanted);
}

#[test]
fn attributes_go_under_bogota_with_their_list_last() {
    let (_, exchange) = bogota().sent(&build_with_list());
    assert_eq!(exchange.request.uri(), "/forkchoice");
    assert_eq!(fork(&exchange), "bogota");
    assert_eq!(exchange.replay, Replay::OnlyIfNeverSent);

    let older = ForkchoiceUpdateAmsterdam::from_ssz_bytes(&build("15-amsterdam").1).unwrap();
    let state: ForkchoiceState = older.forkchoice_state;
    let attributes = older.payload_attributes.into_option().unwrap();
    let attributes = container(
        116,
        &[
            &attributes.timestamp,
            &attributes.prev_randao,
            &attributes.suggested_fee_recipient,
            &attributes.withdrawals,
            &attributes.parent_beacon_block_root,
            &attributes.slot_number,
            &attributes.target_gas_limit,
            &transactions(),
        ],
    );
    // An optional of variable size: one offset, then the value.
    let attributes = [&[4, 0, 0, 0][..], &attributes].concat();
    let custody = Optional::<FixedBytes<16>>::from(None);
    let wanted = container(104, &[&state, &Data::from(attributes), &custody]);
    assert_eq!(exchange.request.body()[..], wanted);
}

#[test]
fn whether_the_list_was_satisfied_reaches_the_cl() {
    let request = new_payload();
    let own = block_hash(&request);
    use PayloadStatusKind::*;
    for (kind, hash, satisfied) in [
        (Valid, Some(own), Some(true)),
        (Valid, Some(own), Some(false)),
        (Syncing, None, None),
        (Accepted, None, None),
        (Invalid, Some(B256::ZERO), None),
    ] {
        let scene = bogota();
        let (mut call, _) = scene.sent(&request);
        let said = result(scene.hear(&mut call, raw(status_with_list(kind, hash, satisfied))));
        assert_eq!(said["inclusionListSatisfied"], json!(satisfied), "{said}");
        assert_eq!(said["latestValidHash"], json!(hash));
        assert_eq!(said.as_object().unwrap().len(), 4);
    }
}

#[test]
fn the_status_of_an_older_fork_is_printed_as_the_newer_one() {
    let request = new_payload();
    let scene = bogota();
    let (mut call, _) = scene.sent(&request);
    let said = scene.hear(&mut call, ok(status(PayloadStatusKind::Syncing, None, None)));
    let wanted = json!({
        "status": "SYNCING", "latestValidHash": null, "validationError": null,
        "inclusionListSatisfied": null
    });
    assert_eq!(result(said), wanted);

    let request = build_with_list();
    let (mut call, _) = scene.sent(&request);
    let said = result(scene.hear(&mut call, ok(updated(&request, Some([5; 8])))));
    assert_eq!(said["payloadId"], "0x0505050505050505");
    assert_eq!(said["payloadStatus"]["inclusionListSatisfied"], Value::Null);
    assert!(said["payloadStatus"].as_object().unwrap().contains_key("inclusionListSatisfied"));
}

#[test]
fn a_valid_payload_that_does_not_say_whether_its_list_was_satisfied_is_asked_over_json_rpc() {
    let request = new_payload();
    let own = Some(block_hash(&request));
    for said in [
        ok(status(PayloadStatusKind::Valid, own, None)),
        raw(status_with_list(PayloadStatusKind::Valid, own, None)),
    ] {
        let scene = bogota();
        let (mut call, _) = scene.sent(&request);
        let reason = relay(scene.hear(&mut call, said));
        assert!(reason.to_string().contains("satisfied"), "{reason}");
    }
}

#[test]
fn a_status_that_is_neither_shape_or_contradicts_itself_is_asked_over_json_rpc() {
    let request = new_payload();
    let own = block_hash(&request);
    let good = status_with_list(PayloadStatusKind::Valid, Some(own), Some(true));
    let stranger = status_with_list(PayloadStatusKind::Valid, Some(B256::ZERO), Some(true));
    let not_a_boolean = [&good[..good.len() - 1], &[2]].concat();
    let twice = [&good[..], &[1]].concat();
    let another_offset = [&good[..1], &[17], &good[2..]].concat();
    for said in [stranger, not_a_boolean, twice, another_offset, good[..12].to_vec(), vec![]] {
        let scene = bogota();
        let (mut call, _) = scene.sent(&request);
        let reason = relay(scene.hear(&mut call, raw(said.clone())));
        assert!(matches!(reason, RelayReason::BadAnswer(_)), "{said:?}: {reason}");
    }
}

#[test]
fn the_answer_of_a_forkchoice_carries_the_newer_status_and_the_build() {
    let scene = bogota();
    let request = build_with_list();
    let (mut call, _) = scene.sent(&request);
    let hash = head_of(&request);
    let status = status_with_list(PayloadStatusKind::Valid, Some(hash), Some(false));
    let id = Optional::from(Some(FixedBytes([7; 8])));
    let said = raw(container(8, &[&Data::from(status), &id]));
    let wanted = json!({
        "payloadStatus": {
            "status": "VALID", "latestValidHash": hash, "validationError": null,
            "inclusionListSatisfied": false
        },
        "payloadId": "0x0707070707070707"
    });
    assert_eq!(result(scene.hear(&mut call, said)), wanted);

    let get = json!({"method": "engine_getPayloadV6", "params": ["0x0707070707070707"]});
    let (mut call, exchange) = scene.sent(&get);
    assert_eq!(fork(&exchange), "bogota");
    let path =
        format!("{}/tests/data/golden/15-amsterdam-getPayload.ssz", env!("CARGO_MANIFEST_DIR"));
    let built = result(scene.hear(&mut call, raw(std::fs::read(path).unwrap())));
    assert_eq!(built, golden("15-amsterdam", "getPayload")["result"]);
}

#[test]
fn a_build_of_amsterdam_stays_one() {
    let scene = bogota();
    let (request, _) = build("15-amsterdam");
    let (mut call, exchange) = scene.sent(&request);
    assert_eq!(fork(&exchange), "amsterdam");
    let said = result(scene.hear(&mut call, ok(updated(&request, Some([7; 8])))));
    assert!(said["payloadStatus"].get("inclusionListSatisfied").is_none());
    let get = json!({"method": "engine_getPayloadV6", "params": ["0x0707070707070707"]});
    assert_eq!(fork(&scene.sent(&get).1), "amsterdam");
}

#[test]
fn without_attributes_v5_goes_under_bogota_whatever_the_head() {
    let mut request = build_with_list();
    request["params"][1] = Value::Null;
    for custody in [None, Some(json!("0x000102030405060708090a0b0c0d0e0f"))] {
        if let Some(custody) = custody {
            request["params"].as_array_mut().unwrap().resize(3, custody);
        }
        let scene = bogota();
        let head: B256 = request["params"][0]["headBlockHash"].as_str().unwrap().parse().unwrap();
        scene.memory.note_block(head.0, Fork::Amsterdam);
        let (_, exchange) = scene.sent(&request);
        assert_eq!(fork(&exchange), "bogota");
        assert_eq!(exchange.replay, Replay::Harmless);
    }
    for (what, scene) in without_bogota() {
        let reason = scene.relayed(&request);
        assert!(["no_rest", "fork_not_offered"].contains(&reason.label()), "{what}: {reason}");
    }
}

#[test]
fn hashes_other_than_the_payloads_are_invalid_with_every_member() {
    let mut request = new_payload();
    request["params"][1] = json!([B256::repeat_byte(1)]);
    let said = result(bogota().begin(&request).1);
    assert_eq!(said["status"], "INVALID");
    assert_eq!(said.as_object().unwrap().get("inclusionListSatisfied"), Some(&Value::Null));
}

#[test]
fn a_shape_of_another_draft_is_relayed() {
    let good = new_payload();
    for count in [0, 1, 4, 6, 7] {
        let mut request = good.clone();
        request["params"].as_array_mut().unwrap().resize(count, json!([]));
        assert_eq!(bogota().relayed(&request).label(), "params", "{count}");
    }
    let mut request = build_with_list();
    request["params"][1]["inclusionListMembership"] = json!([]);
    assert_eq!(bogota().relayed(&request).label(), "not_transcodable");
    for missing in [Value::Null, json!("0x"), json!(["0x0"])] {
        let mut request = good.clone();
        request["params"][4] = missing.clone();
        assert_eq!(bogota().relayed(&request).label(), "not_transcodable");
        let mut request = build_with_list();
        request["params"][1]["inclusionListTransactions"] = missing;
        assert_eq!(bogota().relayed(&request).label(), "not_transcodable");
    }
}

#[test]
fn without_the_els_offer_or_the_wish_everything_is_relayed() {
    for (what, scene) in without_bogota() {
        for request in [new_payload(), build_with_list(), get_inclusion_list()] {
            let reason = scene.relayed(&request);
            assert!(["no_rest", "fork_not_offered"].contains(&reason.label()), "{what}: {reason}");
            assert!(!reason.is_fault_of_el());
        }
    }
}

#[test]
fn older_methods_do_not_see_bogota_beyond_the_horizon() {
    let limits = Offer::of_forks(&[]).limits();
    let offer = Offer::new(Fork::ALL.map(Fork::name), limits);
    let scene = Scene { offer: Some(offer), ..Scene::new() };
    let request = golden("15-amsterdam", "newPayload");
    let (mut call, exchange) = scene.sent(&request);
    assert_eq!(fork(&exchange), "amsterdam");
    result(
        scene.hear(
            &mut call,
            ok(status(PayloadStatusKind::Valid, Some(block_hash(&request)), None)),
        ),
    );
    // Known now, as the newest fork there is: an INVALID is believed.
    let (mut call, _) = scene.sent(&request);
    let invalid = status(PayloadStatusKind::Invalid, None, Some("block hash mismatch"));
    assert_eq!(result(scene.hear(&mut call, ok(invalid)))["status"], "INVALID");
    let get = json!({"method": "engine_getPayloadV6", "params": ["0x0000000000000001"]});
    assert_eq!(fork(&scene.sent(&get).1), "amsterdam");
}

fn list_answer() -> http::Response<Bytes> {
    raw(container(4, &[&transactions()]))
}

#[test]
fn an_inclusion_list_is_printed_as_an_array() {
    let scene = bogota();
    let (mut call, exchange) = scene.sent(&get_inclusion_list());
    assert_eq!(exchange.request.method(), "GET");
    assert_eq!(exchange.request.uri(), "/inclusion-list");
    assert_eq!(fork(&exchange), "bogota");
    assert_eq!(header(&exchange, "accept"), SSZ);
    assert_eq!(exchange.replay, Replay::Harmless);
    assert_eq!(result(scene.hear(&mut call, list_answer())), json!(transactions()));

    let (mut call, _) = scene.sent(&get_inclusion_list());
    assert_eq!(result(scene.hear(&mut call, raw(vec![4, 0, 0, 0]))), json!([]));
}

#[test]
fn a_list_on_top_of_a_given_block_is_the_json_rpcs_and_one_on_top_of_the_head_is_carried() {
    let request = |params: Value| json!({"method": "engine_getInclusionListV1", "params": params});
    let hash = json!(B256::repeat_byte(1));
    for params in [json!([]), json!([null])] {
        assert_eq!(bogota().sent(&request(params)).1.request.uri(), "/inclusion-list");
    }
    bogota().sent(&json!({"method": "engine_getInclusionListV1"}));
    for params in [json!([hash]), json!(["0x01"]), json!([null, hash]), json!({})] {
        let reason = bogota().relayed(&request(params.clone()));
        assert_eq!(reason.without_json_rpc().code.0, -32602, "{params}: {reason}");
    }
}

#[test]
fn the_other_path_is_tried_once_and_remembered_for_the_els_process() {
    for unknown in [answer(404, "", ""), problem(404, "method-not-found")] {
        let scene = bogota();
        let (mut call, _) = scene.sent(&get_inclusion_list());
        let second = again(scene.hear(&mut call, unknown));
        assert_eq!(second.request.uri(), "/inclusion_list");
        assert_eq!(fork(&second), "bogota");
        result(scene.hear(&mut call, list_answer()));

        let (mut call, first) = scene.sent(&get_inclusion_list());
        assert_eq!(first.request.uri(), "/inclusion_list");
        let second = again(scene.hear(&mut call, answer(404, "", "")));
        assert_eq!(second.request.uri(), "/inclusion-list");
        let reason = relay(scene.hear(&mut call, answer(404, "", "")));
        assert!(reason.is_fault_of_el(), "{reason}");

        scene.memory.forget_process();
        let (_, first) = scene.sent(&get_inclusion_list());
        assert_eq!(first.request.uri(), "/inclusion-list");
    }
}

#[test]
fn a_list_that_is_none_is_asked_over_json_rpc() {
    let long = Data::from(vec![2; 8193]);
    for said in [
        raw(vec![]),
        raw(vec![8, 0, 0, 0]),
        raw(container(4, &[&vec![long]])),
        answer(200, "application/json", "[]"),
        answer(204, "", ""),
        problem(400, "unsupported-fork"),
        answer(500, "text/plain", "no"),
    ] {
        let scene = bogota();
        let (mut call, _) = scene.sent(&get_inclusion_list());
        relay(scene.hear(&mut call, said));
    }
}

#[test]
fn no_list_now_is_asked_over_json_rpc_and_proves_nothing() {
    let scene = bogota();
    let (mut call, _) = scene.sent(&get_inclusion_list());
    let reason = relay(scene.hear(&mut call, answer(204, "", "")));
    assert!(!reason.verdict().is_proof(Some(br#"["0x02aa"]"#)), "{reason}");
}

#[test]
fn an_inclusion_list_is_a_read_that_no_command_holds_up() {
    for name in ["engine_newPayloadV6", "engine_forkchoiceUpdatedV5"] {
        assert_eq!(Order::of_name(name), Order::Command, "{name}");
    }
    for name in ["engine_getInclusionListV1", "engine_getInclusionListV2"] {
        assert_eq!(Order::of_name(name), Order::Build, "{name}");
    }
}

#[test]
fn methods_with_a_witness_have_no_meaning_here() {
    for version in ["V1", "V4", "V5", "V6"] {
        assert_eq!(Method::from_name(&format!("engine_newPayloadWithWitness{version}")), None);
    }
}

#[test]
fn an_unsupported_bogota_is_asked_over_json_rpc_and_never_under_another_shape() {
    for request in [new_payload(), build_with_list()] {
        let scene = bogota();
        let (mut call, _) = scene.sent(&request);
        let step = scene.hear(&mut call, problem(400, "unsupported-fork"));
        assert!(matches!(step, Step::Relay(RelayReason::UnsupportedFork)), "{step:?}");
    }
}
