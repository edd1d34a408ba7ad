//! H2-01 to H2-10: HTTP/2 with prior knowledge, on the way to the EL.

use crate::{
    peer::{Http1, Peer, Preface},
    peers::{self, call, call_at, calls, in_front, in_front_of},
    port::{self, Asked, Port},
    raw::Connection,
    scene::{FORKCHOICE_SYNCING, SYNCING, attributes, changed, forkchoice, golden, hex, rpc},
    streams::{self, Deed, Frames, Streams, serve, serve_plainly},
};
use alloy_rpc_types_engine::ssz_engine_types::{
    BodiesResponse, BodyEntry, ExecutionPayloadBodyShanghai,
};
use engine_ssz_proxy::el::{Transport, TransportChoice};
use h2::{Reason, server};
use http::Version;
use serde_json::{Value, json};
use ssz::Encode;
use std::{
    num::NonZeroUsize,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    net::TcpStream,
    sync::{Notify, mpsc},
};

const ETH: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_syncing"}"#;

fn new_payload() -> Value {
    golden("12-osaka-newPayload")
}

fn get_blobs() -> String {
    rpc("engine_getBlobsV2", json!([[format!("0x01{}", "00".repeat(31))]])).to_string()
}

/// The HTTP/1.1 half of an EL that syncs.
async fn syncing(asked: Asked) -> port::Deed {
    port::Deed::Answer(port::syncing(&asked))
}

/// Does the same with every stream.
fn always(deed: impl Fn() -> Deed) -> impl Fn(streams::Streamed) -> std::future::Ready<Deed> {
    move |_| std::future::ready(deed())
}

#[tokio::test]
async fn h2_01_streams_above_the_goaways_last_are_sent_again_elsewhere_and_the_others_complete() {
    let (tell, mut after) = mpsc::unbounded_channel();
    let fresh = Streams::default();
    let to_log = fresh.clone();
    let el = Port::both(syncing, move |nth, stream| {
        let (tell, log) = (tell.clone(), to_log.clone());
        async move {
            // The first one is that of the probe.
            if nth != 1 {
                return serve_plainly(stream, log, always(|| Deed::NoContent)).await;
            }
            let mut old = Frames::open(stream).await.unwrap();
            let warm_up = old.request().await.unwrap();
            old.no_content(warm_up).await;
            let [first, ..] = [old.request().await, old.request().await, old.request().await];
            old.go_away(first.unwrap(), Reason::NO_ERROR).await;
            old.no_content(first.unwrap()).await;
            tell.send(old.rest().await).unwrap();
        }
    })
    .await;
    let sidecar = in_front(el.address, |config| {
        // All three over the old connection.
        config.el.lanes.build_connections = NonZeroUsize::MIN;
    })
    .await;
    assert!(call(&sidecar, get_blobs()).await["error"].is_null());
    let three = [(); 3].map(|()| tokio::spawn(call_at(sidecar.address(), get_blobs())));
    let mut by_rest = 0;
    for said in three {
        let said = said.await.unwrap();
        assert!(said["error"].is_null(), "{said}");
        by_rest += usize::from(said["result"].is_null());
    }
    assert!(by_rest >= 1, "the stream below the last one completes");
    assert!(call(&sidecar, get_blobs()).await["error"].is_null());
    assert_eq!(after.recv().await, Some(0), "nothing more over the old connection");
    let elsewhere = fresh.lock().unwrap().len() + el.calls().len();
    assert_eq!(elsewhere, 3, "two sent again, once each, and the call after");
}

#[tokio::test]
async fn h2_02_a_refused_stream_is_asked_again_and_a_reset_one_as_if_its_answer_was_lost() {
    let build = forkchoice("V3", &[attributes(0x90)]);
    for (reason, request, copies) in [
        (Reason::REFUSED_STREAM, new_payload(), 2),
        (Reason::REFUSED_STREAM, build.clone(), 2),
        (Reason::INTERNAL_ERROR, new_payload(), 2),
        (Reason::INTERNAL_ERROR, build.clone(), 1),
        (Reason::CANCEL, new_payload(), 2),
        (Reason::CANCEL, build.clone(), 1),
    ] {
        let log = Streams::default();
        let to_log = log.clone();
        let el = Port::both(syncing, move |_, stream| {
            serve_plainly(stream, to_log.clone(), always(move || Deed::Reset(reason)))
        })
        .await;
        let sidecar = in_front(el.address, |_| {}).await;
        let said = call(&sidecar, &request).await;
        if copies == 2 {
            assert_eq!(said["result"], "by JSON-RPC", "{reason}: {said}");
        } else {
            assert_eq!(said["error"]["code"], -32603, "{reason}: {said}");
        }
        assert_eq!(log.lock().unwrap().len() + el.calls().len(), copies, "{reason}");
        assert!(sidecar.proxy().el().surface().rest.is_some(), "a stream is not the EL");
    }
}

#[tokio::test]
async fn h2_02_a_payload_reset_where_a_forkchoice_was_answered_is_asked_for_by_json_rpc() {
    for reason in [Reason::INTERNAL_ERROR, Reason::CANCEL] {
        let log = Streams::default();
        let to_log = log.clone();
        let el = Port::both(syncing, move |_, stream| {
            serve_plainly(stream, to_log.clone(), move |asked| {
                std::future::ready(match asked.path.as_str() {
                    "/engine/v1/payloads" => Deed::Reset(reason),
                    _ => Deed::Answer(FORKCHOICE_SYNCING.to_vec()),
                })
            })
        })
        .await;
        let sidecar = in_front(el.address, |_| {}).await;
        for slot in 1..=3 {
            let said = call(&sidecar, forkchoice("V3", &[])).await;
            assert_eq!(said["result"]["payloadStatus"]["status"], "SYNCING", "{reason}");
            let said = call(&sidecar, new_payload()).await;
            assert_eq!(said["result"], "by JSON-RPC", "{reason}: {said}");
            let copies = log.lock().unwrap().len() + el.calls().len();
            assert_eq!(copies, 3 * slot, "{reason}: one copy over REST, one over JSON-RPC");
        }
    }
}

/// GOAWAY with that reason as soon as a connection is there.
async fn turned_away(stream: TcpStream, reason: Reason) {
    if let Some(mut frames) = Frames::open(stream).await {
        frames.go_away(0, reason).await;
        frames.rest().await;
    }
}

/// Calls are carried over REST and HTTP/1.1 alone.
async fn assert_http1(
    el: &Port,
    prefaces: usize,
    change: impl FnOnce(&mut engine_ssz_proxy::config::Config),
) {
    let sidecar = in_front(el.address, change).await;
    let surface = sidecar.proxy().el().surface();
    assert_eq!(surface.rest.as_ref().map(|rest| rest.transport), Some(Transport::Http1));
    for _ in 0..4 {
        assert_eq!(call(&sidecar, new_payload()).await["result"]["status"], "SYNCING");
        assert_eq!(call(&sidecar, ETH).await["result"], "by JSON-RPC");
    }
    assert_eq!(el.paths(), ["/engine/v1/payloads", "/"].repeat(4));
    assert!(el.prefaces() <= prefaces, "{} prefaces", el.prefaces());
}

#[tokio::test]
async fn h2_03_an_el_that_asks_for_calm_is_spoken_to_over_http1() {
    let el = Port::both(syncing, |_, stream| turned_away(stream, Reason::ENHANCE_YOUR_CALM)).await;
    assert_http1(&el, 3, |_| {}).await;
}

#[tokio::test]
async fn h2_03_an_el_that_asks_for_calm_later_is_asked_once_more_and_then_over_json_rpc() {
    let el = Port::both(syncing, |nth, stream| async move {
        // The first one is that of the probe.
        match nth {
            0 => serve_plainly(stream, Streams::default(), always(|| Deed::NoContent)).await,
            _ => turned_away(stream, Reason::ENHANCE_YOUR_CALM).await,
        }
    })
    .await;
    let sidecar = in_front(el.address, |_| {}).await;
    for calls in 1..=3 {
        assert_eq!(call(&sidecar, new_payload()).await["result"], "by JSON-RPC");
        assert_eq!(el.paths().len(), calls, "once each");
        assert!(el.prefaces() <= 1 + 2 * calls, "{} prefaces", el.prefaces());
    }
}

#[tokio::test]
async fn h2_04_a_port_without_h2c_is_known_as_one_until_it_comes_back() {
    assert_http1(&Port::http1(syncing).await, 1, |_| {}).await;
    // Closed at once may be a port without a process yet: it is asked a second time.
    assert_http1(&Port::both(syncing, |_, stream| async { drop(stream) }).await, 2, |_| {}).await;
    let silent = |_, stream| async move {
        let _open: TcpStream = stream;
        std::future::pending().await
    };
    let patience = |config: &mut engine_ssz_proxy::config::Config| {
        config.el.probe_timeout = Duration::from_millis(500);
    };
    assert_http1(&Port::both(syncing, silent).await, 1, patience).await;

    let script = || peers::el(|seen| async move { peers::syncing(&seen) });
    let old = Peer::speaking(Preface::Answered400, Http1::Served, script()).await;
    let address = old.address;
    let sidecar = in_front_of(&old).await;
    old.stop().await;
    let new = Peer::at(address, Preface::Served, Http1::Served, script()).await;
    peers::until(&sidecar, |surface| {
        surface.rest.as_ref().is_some_and(|rest| rest.transport == Transport::H2c)
    })
    .await;
    call(&sidecar, new_payload()).await;
    assert_eq!(calls(&new)[0].version, Version::HTTP_2);
}

#[tokio::test]
async fn h2_05_http_1_1_required_is_about_http2_and_not_about_rest() {
    let el = Port::both(syncing, |_, stream| turned_away(stream, Reason::HTTP_1_1_REQUIRED)).await;
    assert_http1(&el, 2, |_| {}).await;
    let el = Port::both(syncing, |_, stream| async {
        let mut frames = Frames::open(stream).await.unwrap();
        while let Some(stream) = frames.request().await {
            frames.reset(stream, Reason::HTTP_1_1_REQUIRED).await;
        }
    })
    .await;
    assert_http1(&el, 2, |_| {}).await;

    // Said to a command, it is a promise that nothing was processed.
    let log = Streams::default();
    let to_log = log.clone();
    let el = Port::both(syncing, move |_, stream| {
        let deed = || Deed::Reset(Reason::HTTP_1_1_REQUIRED);
        serve_plainly(stream, to_log.clone(), always(deed))
    })
    .await;
    let sidecar = in_front(el.address, |_| {}).await;
    let build = forkchoice("V3", &[attributes(0x90)]);
    assert!(call(&sidecar, build).await["error"].is_null());
    assert_eq!((log.lock().unwrap().len(), el.calls().len()), (1, 1));
}

#[tokio::test]
async fn h2_06_an_upgrade_to_h2c_is_neither_taken_nor_asked_for() {
    let el = Port::http1(syncing).await;
    let sidecar = in_front(el.address, |_| {}).await;
    for body in [new_payload().to_string(), ETH.to_owned()] {
        let mut connection = Connection::to(sidecar.address()).await;
        let head = format!(
            "POST / HTTP/1.1\r\nhost: x\r\nauthorization: Bearer a.b.c\r\n\
             connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\n\
             http2-settings: AAMAAABkAAQAAP__\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        connection.write(head.as_bytes()).await;
        let (head, _) = connection.response().await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert!(!head.contains("upgrade"), "{head}");
    }
    assert_eq!(el.paths(), ["/engine/v1/payloads", "/"]);
    for asked in el.seen() {
        assert_eq!(asked.header("upgrade"), None, "{}", asked.head);
        assert_eq!(asked.header("http2-settings"), None, "{}", asked.head);
    }
}

/// One body that is not there.
const AMSTERDAM_UNAVAILABLE: &str = "04000000 04000000 00 05000000 0c0000000c0000000c000000";

#[tokio::test]
async fn h2_07_large_bodies_pass_small_windows_and_the_own_ones_are_wide() {
    const MEGABYTE: usize = 1 << 20;
    let transactions = vec![vec![7; MEGABYTE].into(); 34];
    let body = ExecutionPayloadBodyShanghai { transactions, withdrawals: vec![] };
    let bodies = BodiesResponse { entries: vec![BodyEntry::available(body)] }.as_ssz_bytes();
    let log = Streams::default();
    let windows = Arc::new(Mutex::new(Vec::new()));
    let (to_log, to_windows) = (log.clone(), windows.clone());
    let el = Port::both(syncing, move |_, stream| {
        let (log, windows, bodies) = (to_log.clone(), to_windows.clone(), bodies.clone());
        async move {
            let opened = streams::peek_windows(&stream).await;
            windows.lock().unwrap().push(opened);
            let mut builder = server::Builder::new();
            builder.initial_window_size(65_535).max_frame_size(16_384);
            let script = move |asked: streams::Streamed| {
                std::future::ready(Deed::Answer(match asked.path.as_str() {
                    "/engine/v1/payloads" => SYNCING.to_vec(),
                    _ if asked.headers["eth-execution-version"] == "osaka" => bodies.clone(),
                    _ => hex(AMSTERDAM_UNAVAILABLE),
                }))
            };
            serve(stream, builder, 60_000, log, script).await;
        }
    })
    .await;
    let sidecar = in_front(el.address, |config| config.el.transport = TransportChoice::H2c).await;
    let large = format!("0x02{}", "ab".repeat(8 * MEGABYTE));
    let request = changed(new_payload(), "/params/0/transactions/0", json!(large));
    assert_eq!(call(&sidecar, &request).await["result"]["status"], "SYNCING");
    assert!(log.lock().unwrap()[0].length > 8 * MEGABYTE);

    let request = rpc("engine_getPayloadBodiesByRangeV1", json!(["0x1", "0x1"]));
    let said = call(&sidecar, request).await;
    let transactions = said["result"][0]["transactions"].as_array().unwrap();
    assert_eq!(transactions.len(), 34);
    assert!(transactions.iter().all(|text| text.as_str().unwrap().len() == 2 + 2 * MEGABYTE));
    assert_eq!(el.paths(), [""; 0], "all of it over HTTP/2");
    let windows = windows.lock().unwrap();
    assert!(windows.len() >= 3, "the probe's, the commands', the bodies'");
    for (of_stream, of_connection) in &*windows {
        assert!(*of_stream as usize >= MEGABYTE && *of_connection as usize >= MEGABYTE);
    }
}

#[tokio::test]
async fn h2_10_one_stream_at_a_time_holds_up_no_side_call_and_none_at_all_means_http1() {
    let release = Arc::new(Notify::new());
    let (gate, log) = (release.clone(), Streams::default());
    let to_log = log.clone();
    let el = Port::both(syncing, move |_, stream| {
        let (gate, log) = (gate.clone(), to_log.clone());
        async move {
            let mut builder = server::Builder::new();
            builder.max_concurrent_streams(1);
            let script = move |asked: streams::Streamed| {
                let gate = gate.clone();
                async move {
                    if asked.path != "/engine/v1/payloads" {
                        return Deed::NoContent;
                    }
                    gate.notified().await;
                    Deed::Answer(SYNCING.to_vec())
                }
            };
            serve(stream, builder, 1, log, script).await;
        }
    })
    .await;
    let sidecar = in_front(el.address, |_| {}).await;
    let held = tokio::spawn(call_at(sidecar.address(), new_payload().to_string()));
    for _ in 0..4 {
        let said = call(&sidecar, get_blobs()).await;
        assert!(said["error"].is_null() && said["result"].is_null(), "{said}");
    }
    assert_eq!(call(&sidecar, ETH).await["result"], "by JSON-RPC");
    release.notify_one();
    assert_eq!(held.await.unwrap()["result"]["status"], "SYNCING");
    assert_eq!((log.lock().unwrap().len(), el.paths()), (5, vec!["/".to_owned()]));

    let el = Port::both(syncing, |_, stream| async {
        let mut builder = server::Builder::new();
        builder.max_concurrent_streams(0);
        serve(stream, builder, 1, Streams::default(), always(|| Deed::NoContent)).await;
    })
    .await;
    let patience = |config: &mut engine_ssz_proxy::config::Config| {
        config.el.probe_timeout = Duration::from_millis(500);
    };
    assert_http1(&el, 2, patience).await;
}
