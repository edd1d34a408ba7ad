//! What a peer offers and what is made of it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine_ssz_proxy::el::{
    Caller, ErrorKind, JsonRpc, Lane, Reach, Repeat, Resend, Spoken, Transport, TransportChoice,
};
use http::{Request, Version};
use tokio::sync::Semaphore;

use crate::peer::{CAPABILITIES, Http1, Peer, Preface, json_el, open, reply, rest_el, until};

async fn relayed_over(el: &engine_ssz_proxy::el::El, peer: &Peer) -> Version {
    el.relay(Lane::Relay, &Caller::default(), Bytes::from_static(b"body"), Repeat::Harmless)
        .await
        .unwrap();
    peer.seen().into_iter().rfind(|seen| seen.body == "body").unwrap().version
}

#[tokio::test]
async fn rest_over_h2c_comes_first() {
    let peer = Peer::start(rest_el).await;
    let el = open(peer.config());
    let surface = until(&el, |surface| surface.epoch == 1).await;
    let rest = surface.rest.as_ref().unwrap();
    assert_eq!(rest.transport, Transport::H2c);
    assert_eq!(rest.capabilities.supported_forks, ["paris", "osaka"]);
    assert_eq!((surface.h2c, surface.http1), (Spoken::Yes, Spoken::Yes));
    assert_eq!(surface.reach, Reach::Up);
    assert_eq!(surface.why, "REST-SSZ over h2c");
    assert_eq!(relayed_over(&el, &peer).await, Version::HTTP_11);
}

async fn falls_to_http1(preface: Preface, probe_timeout: Duration) {
    let peer = Peer::speaking(preface, Http1::Served, rest_el).await;
    let mut config = peer.config();
    config.probe_timeout = probe_timeout;
    let el = open(config);
    let surface = until(&el, |surface| surface.rest.is_some()).await;
    assert_eq!(surface.rest.as_ref().unwrap().transport, Transport::Http1);
    assert_eq!((surface.h2c, surface.http1), (Spoken::No, Spoken::Yes));
    let request = Request::get("/x").body(Bytes::new()).unwrap();
    el.send(Lane::Build, &Caller::default(), request, Repeat::Harmless).await.unwrap();
    assert_eq!(peer.seen_on("/engine/v1/x")[0].version, Version::HTTP_11);
}

#[tokio::test]
async fn h2_04_a_400_to_the_preface_is_no_h2c_and_rest_stays() {
    falls_to_http1(Preface::Answered400, Duration::from_secs(20)).await;
}

#[tokio::test]
async fn h2_04_a_close_on_the_preface_is_no_h2c_and_rest_stays() {
    falls_to_http1(Preface::Closed, Duration::from_secs(20)).await;
}

#[tokio::test]
async fn h2_04_silence_on_the_preface_is_no_h2c_and_rest_stays() {
    falls_to_http1(Preface::Ignored, Duration::from_millis(500)).await;
}

#[tokio::test]
async fn h2_04_a_port_that_closed_once_is_asked_once_more_for_h2c() {
    // As a container's port does while the process behind it comes up.
    let peer = Peer::speaking(Preface::ClosedOnce, Http1::Served, rest_el).await;
    let el = open(peer.config());
    let surface = until(&el, |surface| surface.rest.is_some()).await;
    assert_eq!(surface.rest.as_ref().unwrap().transport, Transport::H2c);
}

#[tokio::test]
async fn h2_05_http_1_1_required_is_no_h2c_and_rest_stays() {
    falls_to_http1(Preface::Http11Required, Duration::from_secs(20)).await;
}

#[tokio::test]
async fn json_rpc_goes_over_h2c_to_a_peer_that_speaks_nothing_else() {
    let peer = Peer::speaking(Preface::Served, Http1::Misread, json_el).await;
    let el = open(peer.config());
    let surface = until(&el, |surface| surface.epoch == 1).await;
    assert_eq!(surface.rest, None);
    assert_eq!((surface.h2c, surface.http1), (Spoken::Yes, Spoken::No));
    assert_eq!(relayed_over(&el, &peer).await, Version::HTTP_2);
}

#[tokio::test]
async fn json_rpc_goes_over_h2c_to_such_a_peer_even_if_rest_is_not_wanted() {
    for choice in [TransportChoice::Json, TransportChoice::Http1] {
        let peer = Peer::speaking(Preface::Served, Http1::Misread, rest_el).await;
        let mut config = peer.config();
        config.transport = choice;
        let el = open(config);
        let surface = until(&el, |surface| surface.epoch == 1).await;
        assert_eq!(surface.rest, None);
        assert_eq!(relayed_over(&el, &peer).await, Version::HTTP_2);
    }
}

#[tokio::test]
async fn rest_05_a_peer_without_rest_is_served_over_json_rpc_from_the_first_call() {
    let peer = Peer::start(json_el).await;
    let el = open(peer.config());
    assert_eq!(relayed_over(&el, &peer).await, Version::HTTP_11);
    let surface = until(&el, |surface| surface.epoch == 1).await;
    assert_eq!(surface.rest, None);
    assert!(surface.why.ends_with("with status 404"), "{}", surface.why);
    // One question over each transport, and none again.
    assert_eq!(peer.seen_on("/engine/v1/capabilities").len(), 2);
    let request = Request::post("/payloads").body(Bytes::new()).unwrap();
    let error =
        el.send(Lane::Command, &Caller::default(), request, Repeat::Harmless).await.unwrap_err();
    assert_eq!((error.kind(), error.resend()), (&ErrorKind::NoRest, Resend::NeverSent));
    assert!(peer.seen_on("/engine/v1/payloads").is_empty());
}

#[tokio::test]
async fn transport_choices_leave_out_rungs() {
    for (choice, transport) in [
        (TransportChoice::H2c, Some(Transport::H2c)),
        (TransportChoice::Http1, Some(Transport::Http1)),
        (TransportChoice::Json, None),
    ] {
        let peer = Peer::start(rest_el).await;
        let mut config = peer.config();
        config.transport = choice;
        let el = open(config);
        let surface = until(&el, |surface| surface.epoch == 1).await;
        assert_eq!(surface.rest.as_ref().map(|rest| rest.transport), transport);
        let asked = peer.seen_on("/engine/v1/capabilities").len();
        assert_eq!(asked, usize::from(transport.is_some()), "{choice}");
    }
}

#[tokio::test]
async fn a_choice_the_peer_does_not_speak_leaves_json_rpc() {
    let peer = Peer::speaking(Preface::Answered400, Http1::Served, rest_el).await;
    let mut config = peer.config();
    config.transport = TransportChoice::H2c;
    let el = open(config);
    let surface = until(&el, |surface| surface.epoch == 1).await;
    assert_eq!(surface.rest, None);
    assert_eq!(relayed_over(&el, &peer).await, Version::HTTP_11);
}

#[tokio::test]
async fn rest_06_calls_go_over_json_rpc_while_the_probe_hangs() {
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let peer = Peer::start(move |seen| {
        let gate = Arc::clone(&opened);
        async move {
            if seen.path == "/engine/v1/capabilities" {
                let _ = gate.acquire().await.unwrap();
                return reply(200, CAPABILITIES);
            }
            json_el(seen).await
        }
    })
    .await;
    let el = open(peer.config());
    peer.until_seen("/engine/v1/capabilities", 1).await;
    assert_eq!(el.surface().rest, None);
    el.relay(Lane::Command, &Caller::default(), Bytes::from_static(b"{}"), Repeat::Harmless)
        .await
        .unwrap();
    assert_eq!(el.surface().epoch, 0);

    gate.add_permits(1);
    until(&el, |surface| surface.rest.is_some()).await;
}

#[tokio::test]
async fn rest_06_a_probe_without_an_answer_leaves_the_question_open() {
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let peer = Peer::start(move |_| {
        let gate = Arc::clone(&opened);
        async move {
            let _ = gate.acquire().await.unwrap();
            reply(200, CAPABILITIES)
        }
    })
    .await;
    let mut config = peer.config();
    config.probe_timeout = Duration::from_millis(200);
    let el = open(config);
    let surface = until(&el, |surface| surface.why.contains("does not answer")).await;
    assert_eq!((surface.rest.as_ref(), surface.epoch), (None, 0));
    gate.add_permits(1);
    until(&el, |surface| surface.rest.is_some()).await;
}

#[tokio::test]
async fn json_rpc_is_known_by_the_answers_to_calls() {
    let peer = Peer::start(|seen| async move {
        match (seen.path.as_str(), seen.body.as_ref()) {
            ("/", b"gone") => reply(404, ""),
            ("/", b"odd") => reply(500, ""),
            // Some servers give their errors a status too.
            ("/", b"unknown") => {
                reply(404, r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"x"}}"#)
            }
            _ => rest_el(seen).await,
        }
    })
    .await;
    let el = open(peer.config());
    until(&el, |surface| surface.epoch == 1).await;
    for (body, known) in [
        ("there", JsonRpc::Present),
        ("gone", JsonRpc::Absent),
        ("odd", JsonRpc::Absent),
        ("there", JsonRpc::Present),
        ("unknown", JsonRpc::Present),
    ] {
        el.relay(Lane::Relay, &Caller::default(), body.into(), Repeat::Harmless).await.unwrap();
        assert_eq!((el.surface().json_rpc, el.surface().epoch), (known, 1), "{body}");
    }
}
