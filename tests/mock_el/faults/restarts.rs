//! An EL that goes away and comes back as another.

use std::time::Duration;

use engine_ssz_proxy::mock_el::{
    Fork, Http, Limits, MockEl, Surface,
    faults::{Fault, Faults, Kind, Memory, Operation, Restart, Rule, When},
};
use http::Method;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::raw::{CAPABILITIES, H2, Line, el_of, get};
use crate::{
    client::{Peer, config, start},
    conversation::attributes,
};

/// Starts the build of block 1 and returns the payload id.
async fn build(el: &MockEl) -> Value {
    let hash = el.genesis_hash();
    let state = json!({"headBlockHash": hash, "safeBlockHash": hash, "finalizedBlockHash": hash});
    let update = json!([state, attributes(1)]);
    let mut result = Peer::h1(el).result("engine_forkchoiceUpdatedV1", update).await;
    assert_eq!(result["payloadStatus"]["status"], "VALID");
    result["payloadId"].take()
}

async fn capabilities(el: &MockEl) -> Value {
    Peer::h1(el).get(CAPABILITIES, "").await.json()
}

#[tokio::test]
async fn a_restart_cuts_every_connection_and_keeps_the_port() {
    let el = start(config()).await;
    let addr = el.addr();
    let (mut h2, mut line) = (H2::to(&el).await, Line::to(&el).await);
    h2.is_alive().await;
    line.send(get(CAPABILITIES)).await;
    line.head().await;
    el.restart(Restart::default()).await.unwrap();
    assert_eq!(h2.telling().await, None);
    line.rest().await;
    assert_eq!(el.addr(), addr);
    assert_eq!(Peer::h2(&el).get(CAPABILITIES, "").await.status, 200);
    assert_eq!(el.log().len(), 2, "the log spans restarts");
}

#[tokio::test]
async fn a_restart_changes_the_surface_and_only_what_it_names() {
    let el = start(config()).await;
    let change = Restart { surface: Some(Surface::JsonOnly), ..Restart::default() };
    el.restart(change).await.unwrap();
    assert_eq!(Peer::h2(&el).get(CAPABILITIES, "").await.status, 404);
    let change = Restart { http: Some(Http::H1), ..Restart::default() };
    el.restart(change).await.unwrap();
    assert!(Peer::h2(&el).send(Method::GET, CAPABILITIES, &[], "").await.is_err());
    assert_eq!(Peer::h1(&el).get(CAPABILITIES, "").await.status, 404);
    let limits = Limits { bodies: 2, ..Limits::default() };
    let change = Restart {
        surface: Some(Surface::RestAndJson),
        newest_fork: Some(Fork::Shanghai),
        limits: Some(limits),
        ..Restart::default()
    };
    el.restart(change).await.unwrap();
    let offered = capabilities(&el).await;
    assert_eq!(offered["supported_forks"], json!(["paris", "shanghai"]));
    assert_eq!(offered["limits"]["bodies.max_count"], 2);
    let peer = Peer::h1(&el);
    let cancun = peer.get("/engine/v1/bodies?from=1&count=1", "cancun").await;
    assert_eq!(cancun.problem(), (400, "unsupported-fork".to_owned()));
    let many = peer.get("/engine/v1/bodies?from=1&count=3", "paris").await;
    assert_eq!(many.problem(), (413, "request-too-large".to_owned()));
}

#[tokio::test]
async fn builds_outlive_a_restart_only_if_everything_is_kept() {
    for (memory, same_id, known) in [
        (Memory::Kept, true, true),
        (Memory::ChainOnly, false, false),
        (Memory::Lost, false, false),
    ] {
        let el = start(config()).await;
        let id = build(&el).await;
        el.restart(Restart { memory, ..Restart::default() }).await.unwrap();
        let peer = Peer::h1(&el);
        let answer = peer.call("engine_getPayloadV1", json!([id])).await;
        assert_eq!(answer.get("result").is_some(), known, "{memory:?}");
        assert_eq!(answer["error"]["code"] == -38001, !known, "{memory:?}");
        let again = build(&el).await;
        assert_eq!(again == id, same_id, "{memory:?}");
        assert!(peer.call("engine_getPayloadV1", json!([again])).await.get("result").is_some());
    }
}

#[tokio::test]
async fn the_chain_outlives_a_restart_unless_it_is_lost() {
    for (memory, height) in
        [(Memory::Kept, "0x1"), (Memory::ChainOnly, "0x1"), (Memory::Lost, "0x0")]
    {
        let el = start(config()).await;
        let (peer, id) = (Peer::h1(&el), build(&el).await);
        let payload = peer.result("engine_getPayloadV1", json!([id])).await;
        peer.result("engine_newPayloadV1", json!([payload])).await;
        let hash = &payload["blockHash"];
        let state =
            json!({"headBlockHash": hash, "safeBlockHash": hash, "finalizedBlockHash": hash});
        peer.result("engine_forkchoiceUpdatedV1", json!([state, null])).await;
        assert_eq!(peer.result("eth_blockNumber", json!([])).await, "0x1");
        el.restart(Restart { memory, ..Restart::default() }).await.unwrap();
        assert_eq!(Peer::h1(&el).result("eth_blockNumber", json!([])).await, height, "{memory:?}");
    }
}

#[tokio::test]
async fn a_port_that_is_down_refuses_until_it_is_up() {
    let el = start(config()).await;
    let mut line = Line::to(&el).await;
    line.send(get(CAPABILITIES)).await;
    line.head().await;
    el.down().await;
    line.rest().await;
    let refused = TcpStream::connect(el.addr()).await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    el.up().await.unwrap();
    el.up().await.unwrap();
    assert_eq!(capabilities(&el).await["supported_forks"][0], "paris");
}

#[tokio::test]
async fn a_request_may_bring_the_restart_and_has_no_answer() {
    for (when, processed) in [(When::Before, false), (When::After, true)] {
        let restart = Restart { surface: Some(Surface::JsonOnly), ..Restart::default() };
        let rule = Rule::on(Operation::Identity, Fault::Restart { when, restart }).times(1);
        let el = el_of(Faults::new(1).with(rule)).await;
        let mut line = Line::to(&el).await;
        line.send(get("/engine/v1/identity")).await;
        assert!(line.rest().await.0.is_empty());
        // Up again once this order's turn comes.
        el.restart(Restart::default()).await.unwrap();
        assert_eq!(Peer::h1(&el).get(CAPABILITIES, "").await.status, 404);
        assert_eq!(el.log()[0].processed, processed);
        assert_eq!(el.faults().injected().of(Kind::Restart), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_may_take_its_time() {
    let el = start(config()).await;
    let began = tokio::time::Instant::now();
    let down = Duration::from_secs(3600);
    el.restart(Restart { down, ..Restart::default() }).await.unwrap();
    assert!(began.elapsed() >= down);
    assert_eq!(Peer::h1(&el).get(CAPABILITIES, "").await.status, 200);
}
