//! Answers that are whole and wrong.

use alloy_rpc_types_engine::ssz_engine_types::PayloadStatus;
use engine_ssz_proxy::mock_el::{
    MockEl,
    faults::{
        Damage, Dialect, Encoding, Fault, Faults, JsonDamage, Kind, Media, Operation, Refusal,
        Rule, Target, When,
    },
};
use http::Method;
use serde_json::json;
use ssz::Decode;

use super::raw::{CAPABILITIES, End, H2, HEADERS, Line, el_of, el_with, get, h1, post};
use crate::client::{Answer, Peer, SSZ, config, start};

/// An update to an unknown head: 200 with SSZ in one dialect, with JSON in the other.
fn update() -> Vec<u8> {
    let state = [[0x11; 32], [0; 32], [0; 32]].concat();
    [state.as_slice(), &[100, 0, 0, 0]].concat()
}

async fn forkchoice(el: &MockEl) -> Answer {
    Peer::h2(el).post("/engine/v1/forkchoice", "paris", update()).await
}

#[tokio::test]
async fn early_413_comes_before_the_body_and_ends_the_connection() {
    let el = el_with(Fault::TooLargeEarly).await;
    let whole = post("/engine/v1/payloads", SSZ, &"x".repeat(1000));
    let head = &whole[..whole.len() - 1000];
    let mut line = Line::to(&el).await;
    line.send(head).await;
    assert!(line.head().await.starts_with("http/1.1 413 "));
    let (_, end) = line.rest().await;
    assert_eq!(end, End::Fin);
    assert_eq!(Peer::h2(&el).post("/", "", "{}").await.status, 413);
    for seen in el.log() {
        assert_eq!((seen.processed, seen.body_bytes, seen.status), (false, 0, Some(413)));
    }
}

#[tokio::test]
async fn a_refusal_is_plain_text_before_or_after_the_run() {
    for (when, processed) in [(When::Before, false), (When::After, true)] {
        for (refusal, status) in [
            (Refusal::Unauthorized, 401),
            (Refusal::NotFound, 404),
            (Refusal::Internal, 500),
            (Refusal::Unavailable, 503),
        ] {
            let el = el_with(Fault::Refuse { when, refusal }).await;
            for (peer, n) in [(Peer::h1(&el), 0), (Peer::h2(&el), 1)] {
                let answer = peer.text(r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#).await;
                assert_eq!(answer.status, status);
                assert_eq!(answer.content_type(), Some("text/plain"));
                let retry = answer.headers.get("retry-after").map(|value| value.to_str().unwrap());
                assert_eq!(retry, (status == 503).then_some("1"));
                assert_eq!(el.log()[n].processed, processed);
            }
        }
    }
}

#[tokio::test]
async fn a_media_type_is_another_one() {
    let honest = forkchoice(&start(config()).await).await.body;
    for (media, content_type, same) in [
        (Media::JsonOnSsz, Some("application/json"), true),
        (Media::Html, Some("text/html"), false),
        (Media::Missing, None, true),
    ] {
        let el = el_with(Fault::Media(media)).await;
        let answer = forkchoice(&el).await;
        assert_eq!((answer.status.as_u16(), answer.content_type()), (200, content_type));
        assert_eq!(answer.body == honest, same);
        assert_eq!(answer.body.starts_with(b"<!DOCTYPE html>"), !same);
    }
}

#[tokio::test]
async fn gzip_is_gzip_and_no_length_is_chunked() {
    let honest = Peer::h1(&start(config()).await).get(CAPABILITIES, "").await.body;
    let el = el_with(Fault::Encoding(Encoding::Gzip)).await;
    let answer = Peer::h2(&el).get(CAPABILITIES, "").await;
    assert_eq!(answer.headers["content-encoding"], "gzip");
    // One stored block between a head of 10 bytes and a tail of 8.
    let (head, rest) = answer.body.split_at(15);
    assert_eq!(head[..4], [0x1f, 0x8b, 8, 0]);
    assert_eq!(head[10], 1);
    assert_eq!(usize::from(u16::from_le_bytes([head[11], head[12]])), honest.len());
    let (stored, tail) = rest.split_at(honest.len());
    assert_eq!(stored, honest);
    assert_eq!(tail[4..], u32::try_from(honest.len()).unwrap().to_le_bytes());

    let el = el_with(Fault::Encoding(Encoding::NoLength)).await;
    let mut line = Line::to(&el).await;
    line.send(get(CAPABILITIES)).await;
    let head = line.head().await;
    assert!(head.contains("transfer-encoding: chunked") && !head.contains("content-length"));
    let answer = Peer::h2(&el).get(CAPABILITIES, "").await;
    assert_eq!((answer.headers.get("content-length"), answer.body), (None, honest));
}

#[tokio::test]
async fn an_answer_may_be_204_or_empty_or_huge() {
    let el = el_with(Fault::NoContent).await;
    let answer = forkchoice(&el).await;
    assert_eq!((answer.status.as_u16(), answer.content_type(), answer.body.len()), (204, None, 0));

    let el = el_with(Fault::EmptyBody).await;
    let answer = forkchoice(&el).await;
    assert_eq!((answer.status.as_u16(), answer.body.len()), (200, 0));
    assert_eq!(answer.content_type(), Some(SSZ));

    let el = el_with(Fault::Huge { bytes: 1_000_001 }).await;
    let answer = forkchoice(&el).await;
    assert_eq!((answer.content_type(), answer.body.len()), (Some(SSZ), 1_000_001));
    assert!(answer.body.iter().all(|byte| *byte == 0));
    // The length is promised, however large.
    let el = el_with(Fault::Huge { bytes: 1 << 40 }).await;
    let mut line = Line::to(&el).await;
    line.send(get(CAPABILITIES)).await;
    assert!(line.head().await.contains("content-length: 1099511627776"));
}

#[tokio::test]
async fn damaged_ssz_differs_and_is_no_status() {
    let honest = forkchoice(&start(config()).await).await.body;
    let el = el_with(Fault::Ssz(Damage::FirstOffset)).await;
    let answer = forkchoice(&el).await;
    assert_eq!(answer.content_type(), Some(SSZ));
    assert_eq!(answer.body[1..], honest[1..]);
    assert_eq!(answer.body[0], honest[0] + 1);
    assert!(PayloadStatus::from_ssz_bytes(&answer.body[8..]).is_ok(), "the rest is honest");
}

#[tokio::test]
async fn a_damage_without_a_place_leaves_the_answer_honest_and_the_rule_unspent() {
    let rule = Rule::new(Target::Any, Fault::Ssz(Damage::BooleanTwo)).times(1);
    let el = el_of(Faults::new(1).with(rule)).await;
    let honest = forkchoice(&start(config()).await).await.body;
    // Neither a status nor JSON has a boolean; no SSZ at all is there in JSON-RPC and refusals.
    assert_eq!(forkchoice(&el).await.body, honest);
    assert_eq!(Peer::h1(&el).get(CAPABILITIES, "").await.status, 200);
    assert_eq!(Peer::h1(&el).result("eth_chainId", json!([])).await, "0x539");
    assert_eq!(Peer::h1(&el).get("/engine/v1/bodies?from=x", "paris").await.status, 400);
    assert_eq!(el.faults().injected().total(), 0);
    assert!(el.log().iter().all(|seen| seen.fault.is_none()));
    let bodies = Peer::h1(&el).get("/engine/v1/bodies?from=1&count=1", "paris").await;
    // No block yet, hence no entry with its boolean.
    assert_eq!(bodies.body.as_ref(), [4, 0, 0, 0]);
    let hashes = [[4, 0, 0, 0].as_slice(), &[7; 32]].concat();
    let bodies = Peer::h1(&el).post("/engine/v1/bodies/hash", "paris", hashes).await;
    assert_eq!(bodies.body[8], 2, "{:?}", bodies.body);
    assert_eq!(el.faults().injected().of(Kind::Ssz), 1);
}

#[tokio::test]
async fn damaged_json_is_garbage_another_id_or_short() {
    let call = r#"{"jsonrpc":"2.0","id":41,"method":"eth_chainId"}"#;
    for (damage, wanted) in [
        (JsonDamage::Garbage, "<no json>"),
        (JsonDamage::WrongId, r#"{"jsonrpc":"2.0","id":42,"result":"0x539"}"#),
        (JsonDamage::Truncated, r#"{"jsonrpc":"2.0","id":41,"result":"0x539""#),
    ] {
        let el = el_with(Fault::Json(damage)).await;
        let answer = Peer::h1(&el).text(call).await;
        assert_eq!((answer.status.as_u16(), answer.body.as_ref()), (200, wanted.as_bytes()));
        assert_eq!(answer.content_type(), Some("application/json"));
        assert_eq!(Peer::h1(&el).get(CAPABILITIES, "").await.body[0], b'{');
        assert_eq!(el.faults().injected().total(), 1);
    }
}

#[tokio::test]
async fn rules_choose_by_operation_method_dialect_order_and_number() {
    let refuse = |refusal| Fault::Refuse { when: When::Before, refusal };
    let script = Faults::new(1)
        .with(Rule::on(Operation::Identity, refuse(Refusal::NotFound)).after(1).times(1))
        .with(
            Rule::on(Operation::Identity, refuse(Refusal::Internal))
                .over(Dialect::JsonRpc)
                .times(1),
        )
        .with(Rule::new(Target::Method("eth_syncing".into()), refuse(Refusal::Unavailable)));
    let el = el_of(script).await;
    let (h1, identity) = (Peer::h1(&el), "/engine/v1/identity");
    let version = json!({"jsonrpc": "2.0", "id": 1, "method": "engine_getClientVersionV1",
        "params": [{"code": "XX", "name": "x", "version": "1", "commit": "0x00000000"}]});
    let call = |method: &str| json!({"jsonrpc": "2.0", "id": 1, "method": method}).to_string();
    assert_eq!(h1.get(identity, "").await.status, 200);
    assert_eq!(h1.get(identity, "").await.status, 404);
    assert_eq!(h1.get(identity, "").await.status, 200);
    assert_eq!(h1.text(version.to_string()).await.status, 500);
    assert_eq!(h1.text(version.to_string()).await.status, 200);
    assert_eq!(h1.text(call("eth_syncing")).await.status, 503);
    assert_eq!(h1.text(call("eth_chainId")).await.status, 200);
    assert_eq!(el.faults().injected().of(Kind::Refuse), 3);
    el.faults().clear();
    assert_eq!(h1.text(call("eth_syncing")).await.status, 200);
    el.faults().add(Rule::new(Target::Any, refuse(Refusal::Internal)).times(1));
    assert_eq!(h1.send(Method::GET, "/engine/nowhere", &[], "").await.unwrap().status, 500);
    assert_eq!(el.faults().injected().total(), 4);
}

#[tokio::test]
async fn the_log_tells_block_operation_and_the_order_of_runs() {
    let script = Faults::new(1).with(
        Rule::on(Operation::ForkchoiceUpdated, Fault::Silence { when: When::Before }).times(1),
    );
    let el = el_of(script).await;
    let mut h2 = H2::to(&el).await;
    let mut line = Line::to(&el).await;
    let state = json!({"headBlockHash": format!("0x{}", "22".repeat(32)),
        "safeBlockHash": format!("0x{}", "00".repeat(32)),
        "finalizedBlockHash": format!("0x{}", "00".repeat(32))});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "engine_forkchoiceUpdatedV1",
        "params": [state, null]});
    line.send(post("/", "application/json", &call.to_string())).await;
    super::raw::until(|| el.faults().injected().total() == 1).await;
    forkchoice(&el).await;
    h2.get(CAPABILITIES).await;
    assert_eq!(h2.telling().await.unwrap().kind, HEADERS);
    let log = el.log();
    assert_eq!(log[0].operation, Some(Operation::ForkchoiceUpdated));
    assert_eq!(log[0].block_hash, Some([0x22; 32].into()));
    assert_eq!((log[0].processed, log[0].run), (false, None));
    assert_eq!(log[1].operation, Some(Operation::ForkchoiceUpdated));
    assert_eq!(log[1].block_hash, Some([0x11; 32].into()));
    assert_eq!((log[1].processed, log[1].run), (true, Some(0)));
    assert_eq!((log[2].operation, log[2].run), (Some(Operation::Capabilities), Some(1)));
}

#[tokio::test]
async fn an_honest_el_ends_no_connection() {
    let el = start(config()).await;
    let (got, _) =
        h1(&el, "GET /engine/v1/identity HTTP/1.1\r\nhost: el\r\nconnection: close\r\n\r\n").await;
    assert!(got.starts_with("http/1.1 200"));
    assert_eq!(el.faults().injected().total(), 0);
}
