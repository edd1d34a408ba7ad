//! TIME-01 to TIME-06: who waits for whom, and for how long. Once a call is on its way the clock is
//! paused: it stands still but for those who wait for it.

use crate::{
    peer::{Http1, Peer, Preface, Reply, Seen, reply},
    peers::{self, call, call_at, calls, in_front_of, unaware},
    raw::Connection,
    scene::{FORKCHOICE_SYNCING, SYNCING, forkchoice, golden, golden_ssz, rpc},
    support::any_port,
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::Notify;

const ETH: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_syncing"}"#;

fn new_payload() -> Value {
    golden("12-osaka-newPayload")
}

fn get_payload() -> Value {
    rpc("engine_getPayloadV5", json!(["0x0000000000000001"]))
}

#[tokio::test]
async fn time_01_an_answer_is_waited_for_as_long_as_the_cl_waits() {
    let bodies = || rpc("engine_getPayloadBodiesByRangeV1", json!(["0x1", "0x1"]));
    for preface in [Preface::Served, Preface::Answered400] {
        for (path, request, seconds) in [
            ("/engine/v1/payloads", new_payload(), 7.8),
            ("/engine/v1/payloads", new_payload(), 11.0),
            ("/engine/v1/payloads", new_payload(), 12.5),
            ("/engine/v1/forkchoice", forkchoice("V3", &[]), 7.9),
            ("/engine/v1/bodies?from=1&count=1", bodies(), 9.5),
            ("/", rpc("eth_slow", json!([])), 50.0),
        ] {
            let release = Arc::new(Notify::new());
            let gate = release.clone();
            let script = peers::el(move |seen: Seen| {
                let gate = gate.clone();
                async move {
                    let is_slow = seen.body.windows(8).any(|part| part == b"eth_slow");
                    if seen.path == path || is_slow {
                        gate.notified().await;
                    }
                    match seen.path.as_str() {
                        // An empty list.
                        path if path.starts_with("/engine/v1/bodies") => peers::ssz([4, 0, 0, 0]),
                        _ => peers::syncing(&seen),
                    }
                }
            });
            let el = Peer::speaking(preface, Http1::Served, script).await;
            let sidecar = in_front_of(&el).await;
            let asked = tokio::spawn(call_at(sidecar.address(), request.to_string()));
            el.until_seen(path, 1).await;
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs_f64(seconds)).await;
            tokio::time::resume();
            release.notify_one();
            let said = asked.await.unwrap();
            assert!(!said["result"].is_null(), "{path} {seconds}: {said}");
            assert_eq!(calls(&el).len(), 1, "{path} {seconds}");
        }
    }
}

#[tokio::test]
async fn time_02_a_delivered_command_is_not_asked_again_elsewhere_and_a_refused_one_at_once() {
    let el = Peer::start(peers::el(|seen: Seen| async move {
        match seen.path.as_str() {
            "/engine/v1/payloads" => std::future::pending().await,
            "/engine/v1/forkchoice" => peers::syncing(&seen),
            _ => peers::by_json_rpc(&seen),
        }
    }))
    .await;
    let sidecar = in_front_of(&el).await;
    let held = tokio::spawn(call_at(sidecar.address(), new_payload().to_string()));
    el.until_seen("/engine/v1/payloads", 1).await;
    let next = tokio::spawn(call_at(sidecar.address(), forkchoice("V3", &[]).to_string()));
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(12)).await;
    tokio::time::resume();
    // No CL waits longer.
    assert!(!held.is_finished() && !next.is_finished());
    assert_eq!(peers::paths(&el), ["/engine/v1/payloads"], "the next command waits");
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(1)).await;
    tokio::time::resume();
    let said = held.await.unwrap();
    assert_error(&said, -32603);
    assert!(said["error"]["message"].as_str().unwrap().contains("within 13 s"), "{said}");
    assert!(next.await.unwrap()["error"].is_null());
    assert_eq!(peers::paths(&el), ["/engine/v1/payloads", "/engine/v1/forkchoice"]);

    let refusals: [fn() -> Reply; 6] = [
        || peers::problem(404, "method-not-found"),
        || peers::problem(415, "unsupported-media-type"),
        || reply(501, ""),
        || peers::problem(400, "ssz-decode-error"),
        || peers::ssz([1, 2, 3]),
        || peers::answer(200, "text/html", "<html>"),
    ];
    for refusal in refusals {
        let el = Peer::start(peers::el(move |seen: Seen| async move {
            match seen.path.as_str() {
                "/" => peers::by_json_rpc(&seen),
                _ => refusal(),
            }
        }))
        .await;
        let sidecar = in_front_of(&el).await;
        for request in [new_payload(), get_payload()] {
            let said = without_waiting(call(&sidecar, request)).await;
            assert_eq!(said["result"], "by JSON-RPC");
        }
        let id = "/engine/v1/payloads/0x0000000000000001";
        assert_eq!(peers::paths(&el), ["/engine/v1/payloads", "/", id, "/"]);
    }
}

/// Runs on a clock that stands still: nothing in it may wait for a time to come.
async fn without_waiting<F: Future>(future: F) -> F::Output {
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    // A paused clock does not go on by itself while a blocking task runs. This one lets go after a
    // while, so that a wait fails the test and does not hang it.
    let holding =
        tokio::task::spawn_blocking(move || is_done.recv_timeout(Duration::from_secs(10)));
    tokio::time::pause();
    let start = tokio::time::Instant::now();
    let output = future.await;
    let waited = start.elapsed();
    drop(done);
    assert!(holding.await.is_ok());
    tokio::time::resume();
    assert_eq!(waited, Duration::ZERO, "something waited");
    output
}

/// The CL has an error, and no status that the EL did not say.
fn assert_error(said: &Value, code: i64) {
    assert_eq!(said["error"]["code"], code, "{said}");
    assert_eq!(said["result"], Value::Null, "{said}");
}

#[tokio::test]
async fn time_03_an_el_that_says_nothing_is_never_said_to_be_syncing() {
    let build = forkchoice("V3", &[crate::scene::attributes(0x90)]);
    let requests = || [new_payload(), forkchoice("V3", &[]), build.clone()];
    // Nobody there.
    let nobody = std::net::TcpListener::bind(any_port()).unwrap();
    let address = nobody.local_addr().unwrap();
    drop(nobody);
    let sidecar = unaware(address, |_| {}).await;
    for request in requests() {
        assert_error(&call(&sidecar, request).await, -32603);
    }
    // Statuses without a word of the Engine API.
    let statuses: [(fn() -> Reply, i64); 3] = [
        (
            || {
                let mut answer = reply(503, "");
                answer.headers_mut().insert("retry-after", "2".parse().unwrap());
                answer
            },
            -32000,
        ),
        (|| peers::answer(500, "text/plain", "forkchoice update error"), -32603),
        (|| peers::answer(502, "text/html", "<html>"), -32603),
    ];
    for (status, code) in statuses {
        let el = Peer::start(peers::el(move |_| async move { status() })).await;
        let sidecar = in_front_of(&el).await;
        for request in requests() {
            assert_error(&call(&sidecar, request).await, code);
        }
    }
    // Eight seconds of silence are no answer, and then the EL is gone.
    for request in requests() {
        let el = Peer::start(peers::el(|_| std::future::pending())).await;
        let sidecar = in_front_of(&el).await;
        let held = tokio::spawn(call_at(sidecar.address(), request.to_string()));
        let path =
            if request["method"] == "engine_newPayloadV4" { "payloads" } else { "forkchoice" };
        el.until_seen(&format!("/engine/v1/{path}"), 1).await;
        tokio::time::pause();
        tokio::time::sleep(Duration::from_secs(8)).await;
        tokio::time::resume();
        assert!(!held.is_finished());
        el.stop().await;
        assert_error(&held.await.unwrap(), -32603);
    }
}

/// A call of a CL that hangs up once the EL has it.
async fn abandoned(
    sidecar: &engine_ssz_proxy::serve::Sidecar,
    el: &Peer,
    path: &str,
    body: &Value,
) {
    let body = body.to_string();
    let mut connection = Connection::to(sidecar.address()).await;
    let head = format!(
        "POST / HTTP/1.1\r\nhost: x\r\nauthorization: Bearer a.b.c\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let before = el.seen_on(path).len();
    connection.write(head.as_bytes()).await;
    el.until_seen(path, before + 1).await;
    connection.0.set_zero_linger().unwrap();
}

/// VALID for the head of [`forkchoice`], and a build of that id.
fn building(id: u8) -> Vec<u8> {
    let mut ssz = vec![8, 0, 0, 0, 49, 0, 0, 0, 0, 9, 0, 0, 0, 41, 0, 0, 0];
    ssz.extend([0x11; 32]);
    ssz.extend([id; 8]);
    ssz
}

#[tokio::test]
async fn time_04_a_command_whose_cl_is_gone_runs_to_its_end_and_is_remembered() {
    let release = Arc::new(Notify::new());
    let gate = release.clone();
    let el = Peer::start(peers::el(move |seen: Seen| {
        let gate = gate.clone();
        async move {
            match seen.path.as_str() {
                "/engine/v1/forkchoice" if seen.body.len() > 110 => {
                    gate.notified().await;
                    peers::ssz(building(7))
                }
                "/engine/v1/forkchoice" => peers::ssz(FORKCHOICE_SYNCING),
                "/engine/v1/payloads" => {
                    gate.notified().await;
                    peers::ssz(SYNCING)
                }
                "/" => peers::by_json_rpc(&seen),
                _ => peers::problem(404, "unknown-payload"),
            }
        }
    }))
    .await;
    let sidecar = in_front_of(&el).await;
    // A build of Paris, which is not the fork that getPayloadV2 is tried under first.
    let mut attributes = crate::scene::attributes(1);
    let members = attributes.as_object_mut().unwrap();
    members.remove("withdrawals");
    members.remove("parentBeaconBlockRoot");
    let build = forkchoice("V2", &[attributes]);
    for (path, request) in
        [("/engine/v1/forkchoice", build), ("/engine/v1/payloads", new_payload())]
    {
        let before = calls(&el).len();
        abandoned(&sidecar, &el, path, &request).await;
        let next = tokio::spawn(call_at(sidecar.address(), forkchoice("V3", &[]).to_string()));
        assert_eq!(call(&sidecar, ETH).await["result"], "by JSON-RPC");
        assert_eq!(peers::paths(&el)[before..], [path, "/"], "the next command waits");
        release.notify_one();
        assert!(next.await.unwrap()["error"].is_null());
        let seen = calls(&el).split_off(before);
        assert_eq!(seen[2].path, "/engine/v1/forkchoice");
        assert_eq!(seen[2].connection, seen[0].connection, "read to its end, so used again");
    }
    let id = "0x0707070707070707";
    let said = call(&sidecar, rpc("engine_getPayloadV2", json!([id]))).await;
    assert_eq!(said["result"], "by JSON-RPC", "{said}");
    let asked = el.seen_on(&format!("/engine/v1/payloads/{id}"));
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].header("eth-execution-version"), Some("paris"));
}

#[tokio::test]
async fn time_05_a_call_made_again_is_sent_again_and_each_has_its_own_answer() {
    for preface in [Preface::Served, Preface::Answered400] {
        let release = Arc::new(Notify::new());
        let (gate, count) = (release.clone(), Arc::new(AtomicUsize::new(0)));
        let script = peers::el(move |seen: Seen| {
            let (gate, nth) = (gate.clone(), count.fetch_add(1, Ordering::SeqCst));
            async move {
                if nth > 0 {
                    return peers::syncing(&seen);
                }
                gate.notified().await;
                // VALID.
                peers::ssz(golden_ssz("12-osaka-newPayload-answer"))
            }
        });
        let el = Peer::speaking(preface, Http1::Served, script).await;
        let sidecar = in_front_of(&el).await;
        abandoned(&sidecar, &el, "/engine/v1/payloads", &new_payload()).await;
        let mut again = new_payload();
        again["id"] = json!("again");
        let again = tokio::spawn(call_at(sidecar.address(), again.to_string()));
        assert_eq!(call(&sidecar, ETH).await["result"], "by JSON-RPC");
        release.notify_one();
        let said = again.await.unwrap();
        assert_eq!((&said["id"], &said["result"]["status"]), (&json!("again"), &json!("SYNCING")));
        let seen = el.seen_on("/engine/v1/payloads");
        assert_eq!(seen.len(), 2, "no status is kept for later");
        assert_eq!(seen[0].body, seen[1].body);
    }
}

#[tokio::test]
async fn time_06_a_delay_that_the_el_asks_for_is_the_cls_to_keep() {
    let el = Peer::start(peers::el(|seen: Seen| async move {
        let mut answer = match seen.path.as_str() {
            "/" => peers::answer(503, "text/plain", "starting"),
            _ => peers::problem(503, "service-unavailable"),
        };
        answer.headers_mut().insert("retry-after", "120".parse().unwrap());
        answer
    }))
    .await;
    let sidecar = in_front_of(&el).await;
    let start = tokio::time::Instant::now();
    tokio::time::pause();
    for (request, code) in [
        (new_payload().to_string(), -32000),
        (forkchoice("V3", &[]).to_string(), -32000),
        (get_payload().to_string(), -32000),
        (ETH.to_owned(), -32603),
    ] {
        assert_error(&call(&sidecar, request).await, code);
    }
    // What is waited for on a paused clock is at once over, and counted.
    assert!(start.elapsed() < Duration::from_secs(100), "{:?}", start.elapsed());
    tokio::time::resume();
    assert_eq!(calls(&el).len(), 4, "{:?}", peers::paths(&el));
}

#[tokio::test]
async fn time_02_a_batch_of_commands_to_an_el_that_is_stuck_is_over_at_one_deadline() {
    let el = Peer::start(peers::el(|seen: Seen| async move {
        match seen.path.as_str() {
            "/engine/v1/payloads" => std::future::pending().await,
            _ => peers::syncing(&seen),
        }
    }))
    .await;
    let sidecar = in_front_of(&el).await;
    let batch = json!([new_payload(), new_payload(), rpc("eth_slow", json!([])), new_payload()]);
    let held = tokio::spawn(call_at(sidecar.address(), batch.to_string()));
    el.until_seen("/engine/v1/payloads", 1).await;
    let next = tokio::spawn(call_at(sidecar.address(), forkchoice("V3", &[]).to_string()));
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(13)).await;
    tokio::time::resume();
    let said = held.await.unwrap();
    assert_eq!(said.as_array().map(Vec::len), Some(4), "{said}");
    for said in said.as_array().unwrap() {
        assert_error(said, -32603);
    }
    assert!(next.await.unwrap()["error"].is_null());
    assert_eq!(peers::paths(&el), ["/engine/v1/payloads", "/engine/v1/forkchoice"]);
}
