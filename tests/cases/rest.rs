//! REST-02 to REST-08: where REST-SSZ is, and what goes beside it.

use crate::{
    log::Log,
    peer::{Http1, Peer, Preface, Reply, Seen, patiently, reply},
    peers::{
        self, call, call_at, calls, in_front, in_front_of, probes, unaware, until, until_rest,
    },
    scene::{FORKCHOICE_SYNCING, SYNCING, forkchoice, golden, golden_ssz, rpc, state},
};
use engine_ssz_proxy::{el::Transport, wire::Fork};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Notify, Semaphore};

const ETH: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_syncing"}"#;
const CAPABILITIES: &str = "/engine/v1/capabilities";

fn new_payload() -> Value {
    golden("12-osaka-newPayload")
}

#[tokio::test]
async fn rest_02_a_build_fetched_again_is_the_fresh_one() {
    let count = Arc::new(AtomicUsize::new(0));
    let fetched = count.clone();
    let el = Peer::start(peers::el(move |_| {
        let nth = fetched.fetch_add(1, Ordering::SeqCst);
        async move {
            let name = if nth == 0 { "12-osaka-getPayload" } else { "13-osaka-getPayload" };
            let mut answer = peers::ssz(golden_ssz(name));
            let headers = answer.headers_mut();
            headers.insert("cache-control", "public, max-age=3600".parse().unwrap());
            headers.insert("etag", "\"same\"".parse().unwrap());
            answer
        }
    }))
    .await;
    let sidecar = in_front_of(&el).await;
    for name in ["12-osaka-getPayload", "13-osaka-getPayload"] {
        let said = call(&sidecar, rpc("engine_getPayloadV5", json!(["0x0000000000000001"]))).await;
        assert_eq!(said["result"], golden(name)["result"], "{name}");
    }
    let seen = calls(&el);
    assert_eq!(seen.len(), 2);
    for name in ["if-none-match", "if-modified-since", "cache-control"] {
        assert_eq!(seen[1].header(name), None, "{name}");
    }
}

#[tokio::test]
async fn rest_03_blobs_go_to_the_revision_of_their_version_and_only_if_it_is_listed() {
    let columns = format!("0x{}", "ff".repeat(16));
    let hashes = json!([format!("0x01{}", "11".repeat(31))]);
    let request = |version: &str| match version {
        "v4" => rpc("engine_getBlobsV4", json!([hashes, columns])),
        version => rpc(&format!("engine_getBlobs{}", version.to_uppercase()), json!([hashes])),
    };
    for listed in [&["v1", "v2", "v3"][..], &[], &["v4"], &["v2"]] {
        let document = json!({
            "supported_forks": ["osaka"], "independently_versioned": {"blobs": listed}
        });
        let script = |seen: Seen| async move {
            match seen.path.as_str() {
                "/" => peers::by_json_rpc(&seen),
                _ => reply(204, ""),
            }
        };
        let el = Peer::start(peers::offering(document.to_string(), script)).await;
        let sidecar = in_front_of(&el).await;
        for version in ["v1", "v2", "v3", "v4"] {
            let before = calls(&el).len();
            let said = call(&sidecar, request(version)).await;
            assert!(said["error"].is_null(), "{said}");
            let seen = calls(&el).split_off(before);
            if listed.contains(&version) {
                assert_eq!(seen[0].path, format!("/engine/v1/blobs/{version}"));
                assert_eq!(seen[0].header("eth-execution-version"), None);
            } else {
                assert_eq!(seen[0].path, "/", "{listed:?} {version}");
                assert_eq!(seen.len(), 1, "{listed:?} {version}");
            }
        }
    }
}

#[tokio::test]
async fn rest_04_a_prefix_is_kept_for_both_lanes_and_no_slash_is_doubled() {
    for (path, prefix) in [("", ""), ("/", ""), ("/some/prefix/", "/some/prefix"), ("/p", "/p")] {
        let el = Peer::start(peers::el(|seen: Seen| async move {
            match seen.path.ends_with("/engine/v1/payloads") {
                true => peers::ssz(SYNCING),
                false => peers::by_json_rpc(&seen),
            }
        }))
        .await;
        let endpoint = format!("http://{}{path}", el.address);
        let sidecar = in_front(el.address, |config| {
            config.el.endpoint = endpoint.parse().unwrap();
        })
        .await;
        assert_eq!(call(&sidecar, new_payload()).await["result"]["status"], "SYNCING");
        assert_eq!(call(&sidecar, ETH).await["result"], "by JSON-RPC");
        let json_rpc = if prefix.is_empty() { "/" } else { prefix };
        let wanted = [format!("{prefix}/engine/v1/payloads"), json_rpc.to_owned()];
        assert_eq!(peers::paths(&el), wanted, "{path}");
        let allowed = [format!("{prefix}{CAPABILITIES}"), wanted[0].clone(), wanted[1].clone()];
        assert!(el.seen().iter().all(|seen| allowed.contains(&seen.path)), "{path}");
    }
    // A wrong path: told, and not for good.
    let log = Log::of_this_thread();
    let is_mended = Arc::new(AtomicBool::new(false));
    let mended = is_mended.clone();
    let el = Peer::start(move |seen: Seen| {
        let is_mended = mended.load(Ordering::SeqCst);
        let serve = peers::el(|seen| async move { peers::syncing(&seen) });
        async move {
            match seen.path == CAPABILITIES && !is_mended {
                true => reply(405, ""),
                false => serve(seen).await,
            }
        }
    })
    .await;
    let sidecar = in_front(el.address, |config| {
        config.el.reprobe_interval = Duration::from_millis(10);
    })
    .await;
    assert_eq!(call(&sidecar, new_payload()).await["result"], "by JSON-RPC");
    let warnings = log.lines("WARN");
    assert!(warnings.iter().any(|line| line.contains("405")), "{warnings:?}");
    is_mended.store(true, Ordering::SeqCst);
    until_rest(&sidecar).await;
    assert_eq!(call(&sidecar, new_payload()).await["result"]["status"], "SYNCING");
}

/// An EL that has JSON-RPC alone.
fn json_alone(seen: &Seen) -> Reply {
    match seen.body.is_empty() || seen.path.starts_with("/engine/") {
        true => reply(404, ""),
        false => peers::by_json_rpc(seen),
    }
}

#[tokio::test]
async fn rest_05_an_el_without_rest_is_asked_once_in_each_protocol_and_serves_from_the_first_call()
{
    let log = Log::of_this_thread();
    let el = Peer::start(|seen: Seen| async move { json_alone(&seen) }).await;
    let sidecar = unaware(el.address, |_| {}).await;
    assert_eq!(call(&sidecar, new_payload()).await["result"], "by JSON-RPC");
    patiently(sidecar.el_found()).await;
    for _ in 0..10 {
        assert_eq!(call(&sidecar, new_payload()).await["result"], "by JSON-RPC");
        assert_eq!(call(&sidecar, forkchoice("V3", &[])).await["result"], "by JSON-RPC");
    }
    assert_eq!(peers::paths(&el), ["/"].repeat(21));
    // h2c and REST are two facts, so it takes one question over each transport.
    assert_eq!(probes(&el), 2);
    assert_eq!(log.lines("ERROR"), [""; 0]);
    assert_eq!(log.lines("WARN").len(), 1, "{:?}", log.lines("WARN"));
}

#[tokio::test]
async fn rest_06_calls_do_not_wait_for_the_probe_and_the_lane_changes_between_them() {
    let answered = Arc::new(Semaphore::new(0));
    let (gate, release) = (answered.clone(), Arc::new(Notify::new()));
    let held = release.clone();
    let el = Peer::start(move |seen: Seen| {
        let (gate, held) = (gate.clone(), held.clone());
        let serve = peers::el(|seen| async move { peers::syncing(&seen) });
        async move {
            if seen.path == CAPABILITIES {
                gate.acquire().await.unwrap().forget();
            }
            if seen.body.windows(4).any(|part| part == b"held") {
                held.notified().await;
            }
            serve(seen).await
        }
    })
    .await;
    let sidecar = unaware(el.address, |config| {
        config.el.probe_timeout = Duration::from_secs(60);
    })
    .await;
    el.until_seen(CAPABILITIES, 2).await;
    for request in [new_payload(), forkchoice("V3", &[])] {
        assert_eq!(call(&sidecar, request).await["result"], "by JSON-RPC");
    }
    // REST comes while a command is out over JSON-RPC: that one ends as it began.
    let mut request = new_payload();
    request["id"] = json!("held");
    let out = tokio::spawn(call_at(sidecar.address(), request.to_string()));
    let count = || peers::paths(&el).len();
    while count() < 3 {
        tokio::task::yield_now().await;
    }
    answered.add_permits(100);
    until_rest(&sidecar).await;
    release.notify_one();
    assert_eq!(out.await.unwrap()["result"], "by JSON-RPC");
    assert_eq!(call(&sidecar, new_payload()).await["result"]["status"], "SYNCING");
    assert_eq!(peers::paths(&el), ["/", "/", "/", "/engine/v1/payloads"]);

    // One that never answers costs nothing either.
    let el = Peer::start(|seen: Seen| async move {
        match seen.path.as_str() {
            CAPABILITIES => std::future::pending().await,
            _ => json_alone(&seen),
        }
    })
    .await;
    let sidecar = unaware(el.address, |config| {
        config.el.probe_timeout = Duration::from_millis(50);
    })
    .await;
    until(&sidecar, |surface| surface.why.contains("in time")).await;
    assert_eq!(call(&sidecar, new_payload()).await["result"], "by JSON-RPC");
}

#[tokio::test]
async fn rest_07_a_read_sees_the_forkchoice_before_it_and_waits_for_no_payload() {
    for preface in [Preface::Served, Preface::Answered400] {
        let head = Arc::new(Mutex::new(0x00));
        let release = Arc::new(Notify::new());
        let gate = release.clone();
        let script = peers::el(move |seen: Seen| {
            let (head, gate) = (head.clone(), gate.clone());
            async move {
                match seen.path.as_str() {
                    "/engine/v1/forkchoice" => {
                        *head.lock().unwrap() = seen.body[8];
                        peers::ssz(FORKCHOICE_SYNCING)
                    }
                    "/engine/v1/payloads" => {
                        gate.notified().await;
                        peers::ssz(SYNCING)
                    }
                    _ => {
                        let latest = *head.lock().unwrap();
                        peers::result(&seen, &format!("\"{latest:02x}\""))
                    }
                }
            }
        });
        let el = Peer::speaking(preface, Http1::Served, script).await;
        let sidecar = in_front_of(&el).await;
        let latest = rpc("eth_getBlockByNumber", json!(["latest", false]));
        for head in ["aa", "bb", "cc"] {
            let mut update = forkchoice("V3", &[]);
            update["params"][0] = state(head);
            call(&sidecar, update).await;
            assert_eq!(call(&sidecar, &latest).await["result"], head);
        }
        let held = tokio::spawn(call_at(sidecar.address(), new_payload().to_string()));
        el.until_seen("/engine/v1/payloads", 1).await;
        assert_eq!(call(&sidecar, &latest).await["result"], "cc");
        release.notify_one();
        assert_eq!(held.await.unwrap()["result"]["status"], "SYNCING");
        let surface = sidecar.proxy().el().surface();
        let wanted = if preface == Preface::Served { Transport::H2c } else { Transport::Http1 };
        assert_eq!(surface.rest.as_ref().map(|rest| rest.transport), Some(wanted));
    }
}

#[tokio::test]
async fn rest_08_pieces_and_eras_of_one_call_follow_each_other_and_calls_are_two_at_most() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let gate = Arc::new(Semaphore::new(0));
    let (at, peak, opened) = (now.clone(), most.clone(), gate.clone());
    let document = r#"{"supported_forks":["prague","osaka"]}"#;
    let el = Peer::start(peers::offering(document, move |seen: Seen| {
        let (at, peak, gate) = (at.clone(), peak.clone(), opened.clone());
        async move {
            if !seen.path.starts_with("/engine/v1/bodies") {
                return peers::by_json_rpc(&seen);
            }
            peak.fetch_max(at.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            gate.acquire().await.unwrap().forget();
            at.fetch_sub(1, Ordering::SeqCst);
            // Entries that are not available.
            let count = ((seen.body.len() - 4) / 32) as u32;
            const ENTRY: [u8; 13] = [0, 5, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0];
            let offset = |place: u32| (4 * count + 13 * place).to_le_bytes();
            let offsets = (0..count).flat_map(offset).collect();
            let entries = ENTRY.repeat(count as usize);
            peers::ssz([vec![4, 0, 0, 0], offsets, entries].concat())
        }
    }))
    .await;
    let forks = [Fork::Prague, Fork::Osaka];
    let sidecar =
        in_front(el.address, |config| config.schedule = Some(peers::chain_of(&forks))).await;
    let hashes: Vec<_> = (0..64).map(|n| format!("0x{n:064x}")).collect();
    let request = rpc("engine_getPayloadBodiesByHashV1", json!([hashes])).to_string();
    // One call: two pieces under each of two forks, one after the other.
    let one = tokio::spawn(call_at(sidecar.address(), request.clone()));
    for sent in 1..=4 {
        el.until_seen("/engine/v1/bodies/hash", sent).await;
        call(&sidecar, ETH).await;
        assert_eq!(now.load(Ordering::SeqCst), 1);
        gate.add_permits(1);
    }
    let said = patiently(one).await.unwrap();
    assert_eq!(said["result"], json!(vec![Value::Null; 64]), "{said}");
    assert_eq!(most.load(Ordering::SeqCst), 1);
    // Ten calls.
    let ten = [(); 10].map(|()| tokio::spawn(call_at(sidecar.address(), request.clone())));
    el.until_seen("/engine/v1/bodies/hash", 6).await;
    for _ in 0..3 {
        call(&sidecar, ETH).await;
    }
    assert_eq!(now.load(Ordering::SeqCst), 2);
    gate.add_permits(40);
    for said in ten {
        assert_eq!(patiently(said).await.unwrap()["result"].as_array().unwrap().len(), 64);
    }
    assert_eq!(most.load(Ordering::SeqCst), 2);
    assert_eq!(el.seen_on("/engine/v1/bodies/hash").len(), 44);
}
