//! Which connection carries what, and what the requests look like on it.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use engine_ssz_proxy::el::{Caller, El, Lane, Repeat, TransportChoice};
use http::{Request, Version};
use tokio::sync::Semaphore;

use crate::peer::{Peer, Seen, open, patiently, reply, rest_el, until};

fn post(path: &str) -> Request<Bytes> {
    Request::post(path).body(Bytes::from_static(b"ssz")).unwrap()
}

fn connections(seen: &[Seen]) -> HashSet<usize> {
    seen.iter().map(|seen| seen.connection).collect()
}

async fn reuses_connections(choice: TransportChoice, version: Version) {
    let peer = Peer::start(rest_el).await;
    let mut config = peer.config();
    config.transport = choice;
    let el = open(config);
    until(&el, |surface| surface.rest.is_some()).await;
    let caller = Caller::default();
    for _ in 0..50 {
        el.send(Lane::Command, &caller, post("/command"), Repeat::Harmless).await.unwrap();
        el.send(Lane::Build, &caller, post("/build"), Repeat::Harmless).await.unwrap();
    }
    let (command, build) = (peer.seen_on("/engine/v1/command"), peer.seen_on("/engine/v1/build"));
    assert_eq!((command.len(), build.len()), (50, 50));
    assert!(command.iter().chain(&build).all(|seen| seen.version == version));
    assert_eq!(connections(&command).len(), 1);
    assert!(connections(&command).is_disjoint(&connections(&build)));
    let probes = connections(&peer.seen_on("/engine/v1/capabilities"));
    assert!(connections(&command).is_disjoint(&probes));
    if version == Version::HTTP_2 {
        assert_eq!(connections(&build).len(), 1);
    }
}

#[tokio::test]
async fn fifty_commands_share_one_h2c_connection_and_no_other_lane_does() {
    reuses_connections(TransportChoice::H2c, Version::HTTP_2).await;
}

#[tokio::test]
async fn fifty_commands_share_one_http1_connection_and_no_other_lane_does() {
    reuses_connections(TransportChoice::Http1, Version::HTTP_11).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_share_one_http1_connection_on_several_threads_too() {
    reuses_connections(TransportChoice::Http1, Version::HTTP_11).await;
}

#[tokio::test]
async fn commands_relayed_share_one_connection() {
    let peer = Peer::start(rest_el).await;
    let el = open(peer.config());
    until(&el, |surface| surface.rest.is_some()).await;
    for _ in 0..50 {
        el.relay(Lane::Command, &Caller::default(), Bytes::from_static(b"{}"), Repeat::Harmless)
            .await
            .unwrap();
    }
    assert_eq!(connections(&peer.seen_on("/")).len(), 1);
}

#[tokio::test]
async fn h1_09_no_lane_waits_behind_a_command() {
    for choice in [TransportChoice::H2c, TransportChoice::Http1] {
        let gate = Arc::new(Semaphore::new(0));
        let opened = Arc::clone(&gate);
        let peer = Peer::start(move |seen| {
            let gate = Arc::clone(&opened);
            async move {
                if seen.path == "/engine/v1/slow" {
                    let _ = gate.acquire().await.unwrap();
                }
                rest_el(seen).await
            }
        })
        .await;
        let mut config = peer.config();
        config.transport = choice;
        let el = open(config);
        until(&el, |surface| surface.rest.is_some()).await;
        let caller = Caller::default();
        let slow = tokio::spawn({
            let (el, caller) = (el.clone(), caller.clone());
            async move {
                el.send(Lane::Command, &caller, post("/slow"), Repeat::Harmless).await.map(drop)
            }
        });
        peer.until_seen("/engine/v1/slow", 1).await;
        for lane in [Lane::Build, Lane::History, Lane::Relay] {
            patiently(el.send(lane, &caller, post("/quick"), Repeat::Harmless)).await.unwrap();
            patiently(el.relay(lane, &caller, Bytes::new(), Repeat::Harmless)).await.unwrap();
        }
        assert!(!slow.is_finished());
        gate.add_permits(1);
        slow.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn rest_08_two_bulk_reads_at_most_are_in_flight() {
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let peer = Peer::start(move |seen| {
        let gate = Arc::clone(&opened);
        async move {
            if seen.path == "/engine/v1/bodies" {
                gate.acquire().await.unwrap().forget();
            }
            rest_el(seen).await
        }
    })
    .await;
    let el = open(peer.config());
    until(&el, |surface| surface.rest.is_some()).await;
    let reads: Vec<_> = (0..4)
        .map(|_| {
            let el = el.clone();
            tokio::spawn(async move {
                el.send(Lane::History, &Caller::default(), post("/bodies"), Repeat::Harmless)
                    .await
                    .map(drop)
            })
        })
        .collect();
    peer.until_seen("/engine/v1/bodies", 2).await;
    // The other two were sent before these were; without a cap they would be here by now.
    for _ in 0..20 {
        el.send(Lane::Build, &Caller::default(), post("/x"), Repeat::Harmless).await.unwrap();
    }
    assert_eq!(peer.seen_on("/engine/v1/bodies").len(), 2);
    gate.add_permits(4);
    for read in reads {
        read.await.unwrap().unwrap();
    }
    assert_eq!(peer.seen_on("/engine/v1/bodies").len(), 4);
}

#[tokio::test]
async fn a_rest_request_arrives_as_it_was_made_with_what_the_door_adds() {
    let peer = Peer::start(|seen| async move {
        match seen.path.as_str() {
            "/engine/v1/payloads" => {
                let mut reply = reply(409, "{}");
                reply
                    .headers_mut()
                    .insert("content-type", "application/problem+json".parse().unwrap());
                reply
            }
            _ => rest_el(seen).await,
        }
    })
    .await;
    for choice in [TransportChoice::H2c, TransportChoice::Http1] {
        let mut config = peer.config();
        config.transport = choice;
        let el = open(config);
        until(&el, |surface| surface.rest.is_some()).await;
        let caller = Caller { bearer: None, traceparent: Some("00-ab-cd-01".parse().unwrap()) };
        let request = Request::post("/payloads")
            .header("content-type", "application/octet-stream")
            .header("eth-execution-version", "osaka")
            .header("accept-encoding", "gzip")
            .header("traceparent", "another")
            .header("expect", "100-continue")
            .header("connection", "keep-alive, x")
            .body(Bytes::from_static(b"ssz"))
            .unwrap();
        let answer = el.send(Lane::Command, &caller, request, Repeat::Harmless).await.unwrap();
        assert_eq!(answer.status(), 409);
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
        assert_eq!(answer.body(), "{}");
    }
    let seen = peer.seen_on("/engine/v1/payloads");
    assert_eq!(seen.len(), 2);
    for seen in seen {
        assert_eq!(seen.method, "POST");
        assert_eq!(seen.body, "ssz");
        assert_eq!(seen.header("content-type"), Some("application/octet-stream"));
        assert_eq!(seen.header("eth-execution-version"), Some("osaka"));
        assert_eq!(seen.header("content-length"), Some("3"));
        assert_eq!(seen.header("accept-encoding"), Some("identity"));
        assert_eq!(seen.header("traceparent"), Some("00-ab-cd-01"));
        assert_eq!(seen.header("expect"), None);
        assert_eq!(seen.header("connection"), None);
    }
}

#[tokio::test]
async fn a_relayed_call_is_the_callers_bytes() {
    let peer = Peer::start(rest_el).await;
    // Nobody keeps the surface: relaying needs none.
    let el = El::new(peer.config());
    let caller = Caller { bearer: None, traceparent: Some("00-ab-cd-01".parse().unwrap()) };
    let body = Bytes::from_static(b" {\"id\":\"\\u0031\" , \"jsonrpc\":\"2.0\"}\n");
    el.relay(Lane::Relay, &caller, body.clone(), Repeat::Harmless).await.unwrap();
    let seen = &peer.seen()[0];
    assert_eq!((&seen.method, seen.path.as_str()), (&http::Method::POST, "/"));
    assert_eq!(seen.body, body);
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(seen.header("traceparent"), Some("00-ab-cd-01"));
    assert_eq!(seen.header("content-length"), Some(body.len().to_string().as_str()));
}
