//! A CL that speaks JSON-RPC over a WebSocket.

mod client;
mod ends;
#[path = "../support/mod.rs"]
mod support;

use client::{Socket, call, forkchoice};
use engine_ssz_proxy::{
    config::Settings,
    jwt::Secret,
    mock_el::{Http, MockEl, Surface},
};
use http::StatusCode;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use support::{
    mock_config, post,
    scripted_el::{ScriptedEl, Seen, json as json_answer, ssz},
    settings, sidecar, sidecar_of_secret,
};
use tokio::sync::{Notify, Semaphore, mpsc};

/// SYNCING, as `PayloadStatus` and as `ForkchoiceUpdateResponse`.
const SYNCING: [u8; 9] = [2, 9, 0, 0, 0, 9, 0, 0, 0];
const FORKCHOICE_SYNCING: [u8; 17] = [8, 0, 0, 0, 17, 0, 0, 0, 2, 9, 0, 0, 0, 9, 0, 0, 0];

/// An EL that is always syncing over REST, and over JSON-RPC gives the parameters back.
async fn agreeable(seen: Seen) -> axum::response::Response {
    match seen.path.as_str() {
        "/engine/v1/payloads" => ssz(SYNCING.to_vec()),
        "/engine/v1/forkchoice" => ssz(FORKCHOICE_SYNCING.to_vec()),
        _ => {
            let request: Value = serde_json::from_slice(&seen.body).unwrap();
            let answer =
                |request: &Value| json!({"id": request["id"], "result": request["params"]});
            match &request {
                Value::Array(requests) => {
                    json_answer(Value::from_iter(requests.iter().map(answer)).to_string())
                }
                request => json_answer(answer(request).to_string()),
            }
        }
    }
}

fn new_payload(id: u64) -> Value {
    let mut request: Value =
        serde_json::from_str(include_str!("../data/golden/12-osaka-newPayload.json")).unwrap();
    request["id"] = id.into();
    request
}

#[tokio::test]
async fn answers_go_out_as_they_come_and_are_matched_by_id() {
    let go = Arc::new(Notify::new());
    let el = ScriptedEl::start({
        let go = go.clone();
        move |seen: Seen| {
            let go = go.clone();
            async move {
                if seen.body.ends_with(br#""slow"]}"#) {
                    go.notified().await;
                }
                agreeable(seen).await
            }
        }
    })
    .await;
    let sidecar = sidecar(settings(el.address)).await;
    let mut socket = Socket::open(&sidecar).await;
    socket.send(call("a", "eth_call", json!(["slow"]))).await;
    socket.send(call("b", "eth_call", json!(["quick"]))).await;
    let first = socket.json().await;
    assert_eq!((&first["id"], &first["result"][0]), (&json!("b"), &json!("quick")));
    go.notify_one();
    let second = socket.json().await;
    assert_eq!((&second["id"], &second["result"][0]), (&json!("a"), &json!("slow")));
}

#[tokio::test]
async fn a_whole_chain_call_is_translated_as_over_http() {
    let mock = MockEl::start(mock_config(Surface::RestAndJson, Http::Both)).await.unwrap();
    let sidecar = sidecar(settings(mock.addr())).await;
    let mut socket = Socket::open(&sidecar).await;
    let request = forkchoice(7, &mock.genesis_hash().to_string());
    socket.send(request.clone()).await;
    let over_socket = socket.json().await;
    assert_eq!(over_socket["result"]["payloadStatus"]["status"], "VALID");
    assert_eq!(over_socket, post(sidecar.address(), request.to_string()).await.json());
    let over_rest = mock.log().into_iter().filter(|seen| seen.path == "/engine/v1/forkchoice");
    assert_eq!(over_rest.count(), 2);
}

#[tokio::test]
async fn messages_of_five_megabytes_go_both_ways_at_once() {
    let el = ScriptedEl::start(agreeable).await;
    let sidecar = sidecar(settings(el.address)).await;
    let mut socket = Socket::open(&sidecar).await;
    let big = "ab".repeat(5 << 20);
    let mut payload = new_payload(1);
    let transactions = payload["params"][0]["transactions"].as_array_mut().unwrap();
    transactions.push(json!(format!("0x02{}", &big[..10 << 20])));
    socket.send(payload).await;
    for id in 2..5 {
        socket.send(call(id, "eth_call", json!([big]))).await;
    }
    let mut left = BTreeSet::from([1, 2, 3, 4]);
    while !left.is_empty() {
        let answer = socket.json().await;
        let id = answer["id"].as_u64().unwrap();
        match id {
            1 => assert_eq!(answer["result"]["status"], "SYNCING"),
            _ => assert!(answer["result"][0] == big),
        }
        assert!(left.remove(&id), "{id} twice");
    }
    let over_rest = el.seen().into_iter().find(|seen| seen.path == "/engine/v1/payloads").unwrap();
    assert!(over_rest.body.len() > 5 << 20);
}

/// On several threads, where tasks that are spawned one after the other begin in any order.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn commands_keep_the_order_of_their_messages() {
    let el = ScriptedEl::start(agreeable).await;
    let sidecar = sidecar(settings(el.address)).await;
    let mut socket = Socket::open(&sidecar).await;
    const PAIRS: u64 = 40;
    for pair in 0..PAIRS {
        // Much to read, then little: what is begun last is ready first.
        socket.feed(new_payload(2 * pair)).await;
        socket.feed(forkchoice(2 * pair + 1, &format!("0x{pair:064x}"))).await;
    }
    socket.flush().await;
    let mut answered = BTreeSet::new();
    for _ in 0..2 * PAIRS {
        answered.insert(socket.json().await["id"].as_u64().unwrap());
    }
    assert_eq!(answered.len() as u64, 2 * PAIRS);
    let arrived: Vec<_> = el
        .seen()
        .into_iter()
        .filter(|seen| seen.path.starts_with("/engine"))
        .map(|seen| match seen.path.as_str() {
            "/engine/v1/forkchoice" => Some(u64::from(seen.body[31])),
            _ => None,
        })
        .collect();
    let expected: Vec<_> = (0..PAIRS).flat_map(|pair| [None, Some(pair)]).collect();
    assert_eq!(arrived, expected);
}

#[tokio::test]
async fn a_notification_is_carried_out_and_gets_no_message() {
    let el = ScriptedEl::start(agreeable).await;
    let sidecar = sidecar(settings(el.address)).await;
    let mut socket = Socket::open(&sidecar).await;
    let mut notification = forkchoice(1, &format!("0x{}", "11".repeat(32)));
    notification.as_object_mut().unwrap().remove("id");
    socket.send(notification).await;
    // In the same line, so it is answered after the notification would have been.
    socket.send(forkchoice(2, &format!("0x{}", "22".repeat(32)))).await;
    assert_eq!(socket.json().await["id"], 2);
    assert_eq!(el.paths(), ["/engine/v1/forkchoice", "/engine/v1/forkchoice"]);
}

#[tokio::test]
async fn a_batch_is_one_message_and_so_is_its_answer() {
    let el = ScriptedEl::start(agreeable).await;
    let sidecar = sidecar(settings(el.address)).await;
    let mut socket = Socket::open(&sidecar).await;
    let batch = json!([
        call(1, "eth_call", json!(["x"])),
        forkchoice(2, &format!("0x{}", "11".repeat(32))),
        7
    ]);
    socket.send(batch).await;
    let answers = socket.json().await;
    assert_eq!(answers.as_array().unwrap().len(), 3);
    assert_eq!(answers[0]["result"][0], "x");
    assert_eq!(answers[1]["result"]["payloadStatus"]["status"], "SYNCING");
    assert_eq!(answers[2]["error"]["code"], -32600);
}

#[tokio::test]
async fn binary_messages_are_calls_too_and_junk_is_answered() {
    let el = ScriptedEl::start(agreeable).await;
    let sidecar = sidecar(settings(el.address)).await;
    let mut socket = Socket::open(&sidecar).await;
    socket.binary(call(1, "eth_call", json!(["x"])).to_string()).await;
    assert_eq!(socket.json().await["id"], 1);
    socket.binary("{").await;
    let answer = socket.json().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32700)));
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

#[tokio::test]
async fn the_token_is_checked_at_the_handshake_and_only_there() {
    let hex = "11".repeat(32);
    let secret: Secret = hex.parse().unwrap();
    let el = ScriptedEl::start(agreeable).await;
    let sidecar = sidecar_of_secret(settings(el.address), &hex).await;
    let bearer = |token: String| Some(format!("Bearer {token}"));
    for bad in [
        None,
        bearer("any.token.will-do".to_owned()),
        bearer(secret.mint(now() - 100)),
        bearer(Secret::new([9; 32]).mint(now())),
    ] {
        let refused = Socket::open_as(&sidecar, bad).await;
        assert_eq!(refused.unwrap_err(), StatusCode::UNAUTHORIZED);
    }
    let token = secret.mint(now() - 30);
    let mut socket = Socket::open_as(&sidecar, bearer(token.clone())).await.unwrap();
    socket.send(call(1, "eth_call", json!(["x"]))).await;
    assert_eq!(socket.json().await["result"][0], "x");
    let at_the_el = el.seen().last().unwrap().headers["authorization"].clone();
    assert!(at_the_el.to_str().unwrap().starts_with("Bearer ") && at_the_el != token);
}

#[tokio::test]
async fn without_a_secret_the_handshakes_token_goes_with_every_message() {
    let el = ScriptedEl::start(agreeable).await;
    let sidecar = sidecar(settings(el.address)).await;
    let bearer = "bearer  my.own.token".to_owned();
    let mut socket = Socket::open_as(&sidecar, Some(bearer)).await.unwrap();
    for request in [call(1, "eth_call", json!([])), forkchoice(2, &format!("0x{:064x}", 1))] {
        socket.send(request).await;
        socket.json().await;
        assert_eq!(el.seen().last().unwrap().headers["authorization"], "Bearer my.own.token");
    }
}

/// The 65th waits in the socket until one of the 64 is answered.
#[tokio::test]
async fn no_more_than_64_calls_are_under_way_in_one_socket() {
    let go = Arc::new(Semaphore::new(0));
    let mut el = ScriptedEl::start({
        let go = go.clone();
        move |seen: Seen| {
            let go = go.clone();
            async move {
                if seen.body.ends_with(br#""slow"]}"#) {
                    go.acquire().await.unwrap().forget();
                }
                agreeable(seen).await
            }
        }
    })
    .await;
    let sidecar = sidecar(settings(el.address)).await;
    let mut socket = Socket::open(&sidecar).await;
    for id in 0..100 {
        socket.send(call(id, "eth_call", json!(["slow"]))).await;
    }
    for _ in 0..64 {
        el.arrival().await;
    }
    // Another CL is served meanwhile, so a 65th call had its chance.
    for _ in 0..5 {
        post(sidecar.address(), r#"{"jsonrpc":"2.0","id":0,"method":"eth_chainId"}"#).await;
    }
    assert_eq!(el.paths().len(), 64);
    go.add_permits(100);
    let mut answered = BTreeSet::new();
    for _ in 0..100 {
        answered.insert(socket.json().await["id"].as_u64().unwrap());
    }
    assert_eq!(answered.len(), 100);
}
