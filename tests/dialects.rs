//! An EL whose endpoints deviate: each goes to JSON-RPC by itself, until the EL is another one.

mod support;

use axum::response::Response;
use engine_ssz_proxy::{el::Surface, serve::Sidecar};
use serde_json::{Value, json};
use std::{
    io::{self, Write},
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};
use support::{
    any_port, post,
    scripted_el::{ScriptedEl, Seen, answer, is_greeting, json as json_answer, problem, ssz},
    settings, sidecar,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// SYNCING, as `PayloadStatus` and as `ForkchoiceUpdateResponse`.
const SYNCING: [u8; 9] = [2, 9, 0, 0, 0, 9, 0, 0, 0];
const FORKCHOICE_SYNCING: [u8; 17] = [8, 0, 0, 0, 17, 0, 0, 0, 2, 9, 0, 0, 0, 9, 0, 0, 0];

fn new_payload() -> Value {
    serde_json::from_str(include_str!("data/golden/12-osaka-newPayload.json")).unwrap()
}

fn forkchoice() -> Value {
    let hash = format!("0x{}", "11".repeat(32));
    let state = json!({
        "headBlockHash": hash, "safeBlockHash": hash, "finalizedBlockHash": hash
    });
    call("engine_forkchoiceUpdatedV3", json!([state, null]))
}

fn call(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// The EL's JSON-RPC for any call.
fn by_json_rpc(seen: &Seen, result: &Value) -> Response {
    let request: Value = serde_json::from_slice(&seen.body).unwrap();
    json_answer(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string())
}

async fn said(sidecar: &Sidecar, request: &Value) -> Value {
    post(sidecar.address(), request.to_string()).await.json()["result"].clone()
}

fn deviations(sidecar: &Sidecar) -> Vec<(&'static str, u64)> {
    sidecar.proxy().tally().deviations().into_iter().collect()
}

/// An EL that answers that path so, and everything else well.
async fn el_with(path: &'static str, says: fn() -> Response) -> ScriptedEl {
    ScriptedEl::start(move |seen| async move {
        match seen.path.as_str() {
            said if said == path => says(),
            "/engine/v1/payloads" => ssz(SYNCING.to_vec()),
            "/engine/v1/forkchoice" => ssz(FORKCHOICE_SYNCING.to_vec()),
            "/" => by_json_rpc(&seen, &json!("by JSON-RPC")),
            _ => problem(404, "unknown-payload"),
        }
    })
    .await
}

#[tokio::test]
async fn life_02_a_deviating_endpoint_is_asked_once_and_the_others_go_on_over_rest() {
    let unknown = || answer(404, "text/plain", "unknown engine ssz endpoint");
    let el = el_with("/engine/v1/payloads", unknown).await;
    let sidecar = sidecar(settings(el.address)).await;
    for _ in 0..3 {
        assert_eq!(said(&sidecar, &new_payload()).await, "by JSON-RPC");
    }
    assert_eq!(el.paths(), ["/engine/v1/payloads", "/", "/", "/"]);
    assert_eq!(el.seen().last().unwrap().body, new_payload().to_string());

    let updated = said(&sidecar, &forkchoice()).await;
    assert_eq!(updated["payloadStatus"]["status"], "SYNCING");
    let id = "0x0000000000000001";
    post(sidecar.address(), call("engine_getPayloadV5", json!([id])).to_string()).await;
    let paths = el.paths();
    assert_eq!(paths[4..], ["/engine/v1/forkchoice", &format!("/engine/v1/payloads/{id}"), "/"]);
    assert_eq!(deviations(&sidecar), [("payloads_submit", 1)]);
}

#[tokio::test]
async fn a_refusal_that_the_specification_has_turns_nothing() {
    let el = el_with("/engine/v1/payloads", || problem(500, "internal")).await;
    let sidecar = sidecar(settings(el.address)).await;
    for _ in 0..2 {
        assert_eq!(said(&sidecar, &new_payload()).await, "by JSON-RPC");
    }
    assert_eq!(el.paths(), ["/engine/v1/payloads", "/", "/engine/v1/payloads", "/"]);
    assert_eq!(deviations(&sidecar), []);
}

#[tokio::test]
async fn an_endpoint_is_asked_on_while_the_el_has_no_json_rpc() {
    let says: [fn() -> Response; 3] = [
        || answer(500, "text/plain", "a hiccup"),
        || problem(404, "method-not-found"),
        || answer(502, "text/html", "<html>"),
    ];
    for (nth, says) in says.into_iter().enumerate() {
        let is_well = Arc::new(AtomicBool::new(false));
        let is_well_now = is_well.clone();
        let el = ScriptedEl::start(move |seen| {
            let is_well = is_well_now.load(Ordering::SeqCst);
            async move {
                match seen.path.as_str() {
                    "/engine/v1/payloads" if is_well => ssz(SYNCING.to_vec()),
                    "/engine/v1/payloads" => answer(500, "text/plain", "a hiccup"),
                    _ if is_greeting(&seen) => by_json_rpc(&seen, &json!("0x1")),
                    _ => says(),
                }
            }
        })
        .await;
        let sidecar = sidecar(settings(el.address)).await;
        let refused = post(sidecar.address(), new_payload().to_string()).await.json();
        assert_eq!(refused["error"]["code"], -32603, "{nth}: {refused}");
        is_well.store(true, Ordering::SeqCst);
        assert_eq!(said(&sidecar, &new_payload()).await["status"], "SYNCING", "{nth}");
        assert_eq!(deviations(&sidecar), [], "{nth}");
    }
}

#[tokio::test]
async fn an_endpoint_found_to_deviate_is_asked_again_once_json_rpc_is_gone() {
    let is_gone = Arc::new(AtomicBool::new(false));
    let is_gone_now = is_gone.clone();
    let el = ScriptedEl::start(move |seen| {
        let is_gone = is_gone_now.load(Ordering::SeqCst);
        async move {
            match seen.path.as_str() {
                "/engine/v1/payloads" if is_gone => ssz(SYNCING.to_vec()),
                "/engine/v1/payloads" => answer(500, "text/plain", "a hiccup"),
                _ if is_gone => problem(404, "method-not-found"),
                _ => by_json_rpc(&seen, &json!("by JSON-RPC")),
            }
        }
    })
    .await;
    let sidecar = sidecar(settings(el.address)).await;
    assert_eq!(said(&sidecar, &new_payload()).await, "by JSON-RPC");
    is_gone.store(true, Ordering::SeqCst);
    let refused = post(sidecar.address(), new_payload().to_string()).await.json();
    assert!(!refused["error"].is_null(), "this call finds out: {refused}");
    assert_eq!(said(&sidecar, &new_payload()).await["status"], "SYNCING");
}

/// What runs between the sidecar and the EL; cutting it is what a restart of the EL looks like.
struct Cable {
    address: SocketAddr,
    lines: Arc<Mutex<JoinSet<()>>>,
}

impl Cable {
    async fn to(el: SocketAddr) -> Self {
        let listener = TcpListener::bind(any_port()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let lines = Arc::new(Mutex::new(JoinSet::new()));
        let open = lines.clone();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                open.lock().unwrap().spawn(async move {
                    let mut far = TcpStream::connect(el).await.unwrap();
                    drop(tokio::io::copy_bidirectional(&mut near, &mut far).await);
                });
            }
        });
        Self { address, lines }
    }

    fn cut(&self) {
        self.lines.lock().unwrap().abort_all();
    }
}

#[tokio::test]
async fn an_el_that_restarted_is_asked_again() {
    let is_new = Arc::new(AtomicBool::new(false));
    let is_new_now = is_new.clone();
    let el = ScriptedEl::start(move |seen| {
        let is_new = is_new_now.load(Ordering::SeqCst);
        async move {
            match seen.path.as_str() {
                "/engine/v1/payloads" if is_new => ssz(SYNCING.to_vec()),
                "/engine/v1/payloads" => answer(415, "text/plain", ""),
                _ => by_json_rpc(&seen, &json!("by JSON-RPC")),
            }
        }
    })
    .await;
    let cable = Cable::to(el.address).await;
    let sidecar = sidecar(settings(cable.address)).await;
    assert_eq!(said(&sidecar, &new_payload()).await, "by JSON-RPC");
    assert_eq!(deviations(&sidecar), [("payloads_submit", 1)]);

    let mut surfaces = sidecar.proxy().el().surface_changed();
    let before = surfaces.borrow_and_update().epoch;
    is_new.store(true, Ordering::SeqCst);
    cable.cut();
    let is_found = |surface: &Arc<Surface>| surface.epoch > before && surface.rest.is_some();
    drop(surfaces.wait_for(is_found).await.unwrap());
    assert_eq!(said(&sidecar, &new_payload()).await["status"], "SYNCING");
}

async fn cells(result: Value) -> (ScriptedEl, Sidecar) {
    let el = ScriptedEl::start(move |seen| {
        let result = result.clone();
        async move {
            match seen.path.as_str() {
                "/" => by_json_rpc(&seen, &result),
                _ => Response::builder().status(204).body(Default::default()).unwrap(),
            }
        }
    })
    .await;
    let sidecar = sidecar(settings(el.address)).await;
    let columns = format!("0x{}", "ff".repeat(16));
    let get = call("engine_getBlobsV4", json!([[format!("0x{:064x}", 1)], columns]));
    said(&sidecar, &get).await;
    said(&sidecar, &get).await;
    (el, sidecar)
}

#[tokio::test]
async fn rest_03_cells_that_json_rpc_alone_has_are_asked_there_from_then_on() {
    let (el, sidecar) = cells(json!([null, {"blob_cells": [], "proofs": []}])).await;
    assert_eq!(el.paths(), ["/engine/v1/blobs/v4", "/", "/"]);
    assert_eq!(deviations(&sidecar), [("blobs_v4", 1)]);
}

#[tokio::test]
async fn life_08_cells_that_nobody_has_are_no_deviation() {
    for nothing in [json!(null), json!([null]), json!([])] {
        let (el, sidecar) = cells(nothing).await;
        assert_eq!(el.paths(), ["/engine/v1/blobs/v4", "/", "/engine/v1/blobs/v4", "/"]);
        assert_eq!(deviations(&sidecar), []);
    }
}

/// Lines of the log of this whole program.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_deviation_is_told_once_with_what_was_seen_and_what_was_due() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .init();
    // Other tests of this program share the log: only this one has such an answer.
    let says = || answer(500, "text/x-dialect; charset=utf-8", "forkchoice update error");
    let el = el_with("/engine/v1/forkchoice", says).await;
    let sidecar = sidecar(settings(el.address)).await;
    for _ in 0..3 {
        said(&sidecar, &forkchoice()).await;
    }
    let lines = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<_> = lines.lines().filter(|line| line.contains("text/x-dialect")).collect();
    let [line] = lines[..] else { panic!("{lines:?}") };
    for part in [
        "WARN",
        "endpoint=\"forkchoice\"",
        "epoch=",
        "seen=HTTP 500 Internal Server Error (text/x-dialect)",
        "expected=\"application/problem+json with a type of the specification\"",
        "--transport json",
    ] {
        assert!(line.contains(part), "{part} not in {line}");
    }
}
