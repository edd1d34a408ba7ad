//! ORD-01 to ORD-05: what keeps its order, and what does not wait for it.

use crate::{
    peer::{Http1, Peer, Preface, Seen, patiently},
    peers::{self, call, call_at, calls, in_front, in_front_of},
    port::{self, Asked, Deed, Port},
    raw::Connection,
    scene::{FORKCHOICE_SYNCING, SYNCING, attributes, changed, forkchoice, golden, rpc, state},
    streams::{self, Frames, Streams, serve_plainly},
    support::post_with,
};
use engine_ssz_proxy::serve::Sidecar;
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::{Notify, Semaphore, mpsc};

const ETH: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_syncing"}"#;

fn new_payload() -> Value {
    golden("12-osaka-newPayload")
}

/// A forkchoice whose hashes repeat that byte.
fn forkchoice_of(byte: &str) -> Value {
    changed(forkchoice("V3", &[]), "/params/0", state(byte))
}

/// The first byte of the head hash of each forkchoice over REST.
fn heads(el: &Peer) -> Vec<u8> {
    el.seen_on("/engine/v1/forkchoice").iter().map(|seen| seen.body[8]).collect()
}

#[tokio::test]
async fn ord_01_forkchoices_arrive_one_at_a_time_and_a_payload_is_fetched_after_its_forkchoice() {
    for preface in [Preface::Served, Preface::Answered400] {
        let gate = Arc::new(Semaphore::new(0));
        let opened = gate.clone();
        let script = peers::el(move |seen: Seen| {
            let gate = gate.clone();
            async move {
                match seen.path.as_str() {
                    "/engine/v1/forkchoice" => {
                        gate.acquire().await.unwrap().forget();
                        peers::ssz(FORKCHOICE_SYNCING)
                    }
                    "/" => peers::by_json_rpc(&seen),
                    _ => peers::problem(404, "unknown-payload"),
                }
            }
        });
        let el = Peer::speaking(preface, Http1::Served, script).await;
        let sidecar = in_front_of(&el).await;
        // One connection of a CL that does not wait for answers.
        let build = forkchoice("V3", &[attributes(0x90)]).to_string();
        let fetch = rpc("engine_getPayloadV5", json!(["0x0000000000000001"])).to_string();
        let mut pipelining = Connection::to(sidecar.address()).await;
        for body in [&build, &fetch] {
            let head = format!(
                "POST / HTTP/1.1\r\nhost: x\r\nauthorization: Bearer a.b.c\r\n\
                 content-length: {}\r\n\r\n{body}",
                body.len()
            );
            pipelining.write(head.as_bytes()).await;
        }
        el.until_seen("/engine/v1/forkchoice", 1).await;
        // Each is let in before the next one is sent, over connections of their own.
        let mut behind = Vec::new();
        for head in ["22", "33", "44"] {
            let body = forkchoice_of(head).to_string();
            behind.push(tokio::spawn(call_at(sidecar.address(), body)));
            call(&sidecar, ETH).await;
        }
        assert_eq!(heads(&el).len(), 1, "one at a time");
        let others =
            || calls(&el).into_iter().filter(|seen| seen.path.contains("payloads")).count();
        assert_eq!(others(), 0, "no fetch before the answer");
        for sent in 2..=4 {
            opened.add_permits(1);
            el.until_seen("/engine/v1/forkchoice", sent).await;
            call(&sidecar, ETH).await;
            assert_eq!(heads(&el).len(), sent, "one at a time");
        }
        opened.add_permits(1);
        for said in behind {
            assert!(patiently(said).await.unwrap()["error"].is_null());
        }
        assert_eq!(heads(&el), [0x11, 0x22, 0x33, 0x44]);
        let (_, built) = pipelining.response().await;
        assert!(String::from_utf8(built).unwrap().contains("payloadStatus"));
        let (_, fetched) = pipelining.response().await;
        assert!(String::from_utf8(fetched).unwrap().contains("by JSON-RPC"));
        assert_eq!(others(), 1);
    }
}

#[tokio::test]
async fn ord_02_reads_pass_a_payload_that_takes_its_time_and_bulk_reads_are_few_at_once() {
    let (payload, bodies) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let (held_payload, held_bodies) = (payload.clone(), bodies.clone());
    let el = Peer::start(peers::el(move |seen: Seen| {
        let (payload, bodies) = (held_payload.clone(), held_bodies.clone());
        async move {
            match seen.path.as_str() {
                "/engine/v1/payloads" => {
                    payload.notified().await;
                    peers::ssz(SYNCING)
                }
                "/engine/v1/identity" => {
                    peers::json(r#"[{"code":"XX","name":"x","version":"1","commit":"0x00000000"}]"#)
                }
                path if path.starts_with("/engine/v1/bodies") => {
                    bodies.acquire().await.unwrap().forget();
                    // An empty list.
                    peers::ssz([4, 0, 0, 0])
                }
                _ => peers::by_json_rpc(&seen),
            }
        }
    }))
    .await;
    let sidecar = in_front_of(&el).await;
    let held = tokio::spawn(call_at(sidecar.address(), new_payload().to_string()));
    el.until_seen("/engine/v1/payloads", 1).await;
    let range = rpc("engine_getPayloadBodiesByRangeV1", json!(["0x1", "0x1"])).to_string();
    let ranges = [(); 8].map(|()| tokio::spawn(call_at(sidecar.address(), range.clone())));
    let bulk = "/engine/v1/bodies?from=1&count=1";
    el.until_seen(bulk, 2).await;
    // Any of the eight that could go would have gone by now.
    let me = json!([{"code": "YY", "name": "y", "version": "1", "commit": "0x00000000"}]);
    for _ in 0..3 {
        let block = rpc("eth_getBlockByNumber", json!(["latest", false]));
        assert_eq!(call(&sidecar, block).await["result"], "by JSON-RPC");
        let version = call(&sidecar, rpc("engine_getClientVersionV1", me.clone())).await;
        assert_eq!(version["result"][0]["code"], "XX", "{version}");
    }
    assert_eq!(el.seen_on(bulk).len(), 2);
    bodies.add_permits(8);
    for said in ranges {
        assert_eq!(patiently(said).await.unwrap()["result"], json!([]));
    }
    assert!(!held.is_finished());
    payload.notify_one();
    assert_eq!(held.await.unwrap()["result"]["status"], "SYNCING");
}

#[tokio::test]
async fn ord_03_a_small_forkchoice_does_not_overtake_a_large_payload() {
    let (tell, mut events) = mpsc::unbounded_channel();
    let go_on = Arc::new(Notify::new());
    let gate = go_on.clone();
    let syncing = |asked: Asked| async move { Deed::Answer(port::syncing(&asked)) };
    let el = Port::both(syncing, move |nth, stream| {
        let (tell, gate) = (tell.clone(), gate.clone());
        async move {
            // The first one is that of the probe.
            if nth != 1 {
                let deed = |_| std::future::ready(streams::Deed::NoContent);
                return serve_plainly(stream, Streams::default(), deed).await;
            }
            let mut commands = Frames::open(stream).await.unwrap();
            let payload = commands.request().await.unwrap();
            tell.send("payload begins").unwrap();
            gate.notified().await;
            commands.body(payload).await;
            tell.send("payload ends").unwrap();
            commands.ssz(payload, &SYNCING).await;
            let forkchoice = commands.request().await.unwrap();
            tell.send("forkchoice").unwrap();
            commands.ssz(forkchoice, &FORKCHOICE_SYNCING).await;
            commands.rest().await;
        }
    })
    .await;
    let sidecar = in_front(el.address, |_| {}).await;
    // No window lets all of it through at once.
    let large = json!(format!("0x02{}", "ab".repeat(10 << 20)));
    let payload = changed(new_payload(), "/params/0/transactions/0", large);
    let payload = tokio::spawn(call_at(sidecar.address(), payload.to_string()));
    assert_eq!(patiently(events.recv()).await, Some("payload begins"));
    let update = forkchoice("V3", &[]).to_string();
    let update = tokio::spawn(call_at(sidecar.address(), update));
    assert_eq!(call(&sidecar, ETH).await["result"], "by JSON-RPC");
    assert!(events.is_empty());
    assert_eq!((el.prefaces(), el.paths()), (2, vec!["/".to_owned()]), "over no other way either");
    go_on.notify_one();
    assert_eq!(payload.await.unwrap()["result"]["status"], "SYNCING");
    let said = patiently(update).await.unwrap();
    assert_eq!(said["result"]["payloadStatus"]["status"], "SYNCING");
    let (ends, then) = (events.recv().await, events.recv().await);
    assert_eq!((ends, then), (Some("payload ends"), Some("forkchoice")));
}

/// A payload of 20 MB as the bytes of a request.
fn large_upload() -> Vec<u8> {
    let large = json!(format!("0x02{}", "ab".repeat(10 << 20)));
    let body = changed(new_payload(), "/params/0/transactions/0", large);
    let method = body["method"].as_str().unwrap();
    // As CLs write it: the method before the parameters.
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{}}}"#, body["params"]);
    let length = body.len();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: x\r\nauthorization: Bearer a.b.c\r\ncontent-length: {length}\r\n\r\n"
    );
    (head + &body).into_bytes()
}

/// Commands as the EL received them.
fn commands(el: &Peer) -> Vec<String> {
    peers::paths(el).into_iter().filter(|path| path != "/").collect()
}

async fn syncing_behind(place_pause: Duration) -> (Peer, Sidecar) {
    let el = Peer::start(peers::el(|seen: Seen| async move { peers::syncing(&seen) })).await;
    let sidecar = in_front(el.address, |config| config.cl.place_pause = place_pause).await;
    (el, sidecar)
}

const IN_ORDER: [&str; 2] = ["/engine/v1/payloads", "/engine/v1/forkchoice"];
/// Longer than any machine stalls.
const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn ord_03_a_payload_that_is_still_being_uploaded_keeps_its_place() {
    let upload = large_upload();
    let (el, sidecar) = syncing_behind(LONG).await;
    for round in 1..=5 {
        let mut connection = Connection::to(sidecar.address()).await;
        // More than lies in the buffers of both ends, so its beginning has been read.
        let (most, rest) = upload.split_at(upload.len() / 4 * 3);
        connection.write(most).await;
        let uploaded = async {
            connection.write(rest).await;
            connection.response().await
        };
        let ((_, stored), updated) = tokio::join!(uploaded, call(&sidecar, forkchoice("V3", &[])));
        assert_eq!(updated["result"]["payloadStatus"]["status"], "SYNCING");
        assert!(String::from_utf8(stored).unwrap().contains(r#""id":7,"result""#));
        assert_eq!(commands(&el), IN_ORDER.repeat(round), "round {round}");
    }
}

#[tokio::test]
async fn ord_03_a_forkchoice_waits_for_the_last_bytes_of_a_payload() {
    let upload = large_upload();
    let (el, sidecar) = syncing_behind(LONG).await;
    let mut connection = Connection::to(sidecar.address()).await;
    let (most, rest) = upload.split_at(upload.len() - 10);
    connection.write(most).await;
    let update = forkchoice("V3", &[]).to_string();
    let update = tokio::spawn(call_at(sidecar.address(), update));
    for _ in 0..20 {
        assert_eq!(call(&sidecar, ETH).await["result"], "by JSON-RPC");
    }
    assert_eq!(commands(&el), [""; 0]);
    connection.write(rest).await;
    let said = patiently(update).await.unwrap();
    assert_eq!(said["result"]["payloadStatus"]["status"], "SYNCING");
    assert_eq!(commands(&el), IN_ORDER);
    connection.response().await;
}

#[tokio::test]
async fn ord_03_an_upload_that_stalls_holds_nobody_up_and_is_answered_later() {
    let upload = large_upload();
    let (el, sidecar) = syncing_behind(Duration::from_millis(1)).await;
    let mut connection = Connection::to(sidecar.address()).await;
    let (most, rest) = upload.split_at(upload.len() - 10);
    connection.write(most).await;
    let said = call(&sidecar, forkchoice("V3", &[])).await;
    assert_eq!(said["result"]["payloadStatus"]["status"], "SYNCING");
    connection.write(rest).await;
    let (_, said) = connection.response().await;
    assert!(String::from_utf8(said).unwrap().contains(r#""id":7,"result""#));
    let [payload, forkchoice] = IN_ORDER;
    assert_eq!(commands(&el), [forkchoice, payload]);
}

/// The members of a request come in any order, so a method may come last.
#[tokio::test]
async fn ord_03_a_method_after_its_parameters_is_a_command_when_it_is_whole() {
    let (el, sidecar) = syncing_behind(LONG).await;
    let request = new_payload();
    let body =
        format!(r#"{{"params":{},"method":{},"id":7}}"#, request["params"], request["method"]);
    let mut connection = Connection::to(sidecar.address()).await;
    let (most, rest) = body.split_at(body.len() - 10);
    let head = format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
    connection.write((head + most).as_bytes()).await;
    let said = call(&sidecar, forkchoice("V3", &[])).await;
    assert_eq!(said["result"]["payloadStatus"]["status"], "SYNCING");
    connection.write(rest.as_bytes()).await;
    let (_, said) = connection.response().await;
    assert!(String::from_utf8(said).unwrap().contains("SYNCING"));
    assert_eq!(commands(&el).len(), 2);
}

/// Nothing takes a call back that the EL has, so such calls pile up to the bound.
#[tokio::test]
async fn ord_02_calls_that_are_never_answered_keep_no_command_out() {
    let (tell, mut held) = mpsc::unbounded_channel();
    let el = Peer::start(peers::el(move |seen: Seen| {
        let tell = tell.clone();
        async move {
            match seen.path.as_str() {
                "/" => {
                    tell.send(()).unwrap();
                    std::future::pending().await
                }
                _ => peers::syncing(&seen),
            }
        }
    }))
    .await;
    let sidecar = in_front(el.address, |config| {
        config.cl.bounds.calls = 1;
        config.cl.bounds.patience = Duration::ZERO;
    })
    .await;
    let _waiting = tokio::spawn(call_at(sidecar.address(), ETH.to_owned()));
    patiently(held.recv()).await.unwrap();
    let refused = call(&sidecar, ETH).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("--max-calls"), "{refused}");
    for _ in 0..3 {
        assert_eq!(call(&sidecar, new_payload()).await["result"]["status"], "SYNCING");
        let said = call(&sidecar, forkchoice("V3", &[])).await;
        assert_eq!(said["result"]["payloadStatus"]["status"], "SYNCING");
    }
}

#[tokio::test]
async fn ord_05_forkchoices_of_two_cls_are_neither_merged_nor_dropped() {
    let bearers = Arc::new(Mutex::new(HashSet::new()));
    let log = bearers.clone();
    let el = Peer::start(peers::el(move |seen: Seen| {
        let bearer = seen.header("authorization").unwrap().to_owned();
        log.lock().unwrap().insert((bearer, seen.body[8]));
        async move { peers::syncing(&seen) }
    }))
    .await;
    let sidecar = in_front_of(&el).await;
    let order = [("one", "aa"), ("two", "bb"), ("one", "aa"), ("one", "aa"), ("two", "aa")];
    for (cl, head) in order {
        let bearer = format!("Bearer cl.number.{cl}");
        let body = forkchoice_of(head).to_string();
        let said = post_with(sidecar.address(), bearer, body).await.json();
        assert_eq!(said["result"]["payloadStatus"]["status"], "SYNCING");
    }
    assert_eq!(heads(&el), [0xaa, 0xbb, 0xaa, 0xaa, 0xaa]);
    let wanted = [("one", 0xaa), ("two", 0xbb), ("two", 0xaa)];
    let wanted = wanted.map(|(cl, head)| (format!("Bearer cl.number.{cl}"), head));
    assert_eq!(*bearers.lock().unwrap(), HashSet::from(wanted), "each under its own token");
}
