//! What is taken on at once, and what is said to the rest.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine_ssz_proxy::cl::{Bounds, Call, Config, Outcome};
use engine_ssz_proxy::jsonrpc::Reply;
use futures_util::{SinkExt, StreamExt};
use http::{Request, StatusCode};
use tokio::io::AsyncReadExt;
use tokio::sync::{Semaphore, mpsc};
use tokio_tungstenite::tungstenite::Message;

use crate::log::Log;
use crate::support::{BOTH, Door, Fed, Http, Script, h2_fed, open, soon};

/// Bounds that are met at once, or not at all.
fn bounded(bounds: Bounds) -> Config {
    Config { bounds: Bounds { patience: Duration::ZERO, ..bounds }, ..open() }
}

/// A handler whose calls wait to be let go.
fn waiting() -> (Script, mpsc::UnboundedReceiver<()>, Arc<Semaphore>) {
    let (tell, begun) = mpsc::unbounded_channel();
    let go = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&go);
    let script = Script::new(move |_: Call| {
        let (tell, gate) = (tell.clone(), Arc::clone(&gate));
        async move {
            tell.send(()).unwrap();
            gate.acquire().await.unwrap().forget();
            Outcome::Json(Reply::raw(Bytes::from_static(b"served")))
        }
    });
    (script, begun, go)
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":"x","method":"m"}"#;

fn assert_busy(body: &[u8], id: &str, flag: &str) {
    let said: serde_json::Value = serde_json::from_slice(body).unwrap();
    assert_eq!((said["id"].to_string().as_str(), &said["error"]["code"]), (id, &(-32603).into()));
    let message = said["error"]["message"].as_str().unwrap();
    assert!(message.contains("busy") && message.contains(flag), "{message}");
}

#[tokio::test]
async fn a_connection_too_many_is_closed_and_the_others_are_served() {
    let log = Log::of_this_thread();
    let config = bounded(Bounds { connections: 2, ..open().bounds });
    let door = Door::new(config, Script::names()).await;
    let mut one = door.client(Http::One).await;
    let mut two = door.client(Http::Two).await;
    assert_eq!(one.post(CALL).await.status, StatusCode::OK);
    assert_eq!(two.post(CALL).await.status, StatusCode::OK);
    let mut third = door.raw().await;
    // A close with bytes unread would come as a reset.
    assert_eq!(soon(third.0.read(&mut [0; 64])).await.unwrap_or(0), 0);
    assert_eq!(one.post(CALL).await.status, StatusCode::OK);
    let warnings = log.lines("WARN");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("--max-connections"), "{warnings:?}");
    drop(two);
    // Its end may be seen a little later than it is there.
    loop {
        let mut fourth = door.raw().await;
        let request =
            format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{CALL}", CALL.len());
        let _ = fourth.0.try_write(request.as_bytes());
        if soon(fourth.0.read(&mut [0; 64])).await.unwrap_or(0) > 0 {
            break;
        }
    }
    assert_eq!(log.lines("WARN").len(), 1, "once a minute");
}

#[tokio::test]
async fn a_websocket_keeps_the_share_of_its_connection() {
    let config = bounded(Bounds { connections: 1, ..open().bounds });
    let door = Door::new(config, Script::names()).await;
    let url = format!("ws://{}/", door.addr);
    let (mut socket, _) = tokio_tungstenite::connect_async(&url).await.unwrap();
    socket.send(Message::text(CALL)).await.unwrap();
    assert!(soon(socket.next()).await.unwrap().unwrap().is_text());
    let mut second = door.raw().await;
    assert_eq!(soon(second.0.read(&mut [0; 64])).await.unwrap_or(0), 0);
    drop(socket);
    soon(async { while tokio_tungstenite::connect_async(&url).await.is_err() {} }).await;
}

#[tokio::test]
async fn a_call_too_many_is_answered_with_its_id_over_everything() {
    let (script, mut begun, go) = waiting();
    let door = Door::new(bounded(Bounds { calls: 1, ..open().bounds }), script).await;
    let mut first = door.client(Http::One).await;
    let first = tokio::spawn(async move { first.post(CALL).await });
    begun.recv().await.unwrap();
    for http in BOTH {
        let mut client = door.client(http).await;
        let answer = client.post(CALL).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert_busy(&answer.body, r#""x""#, "--max-calls");
        assert_eq!(client.post(r#"{"method":"notification"}"#).await.body, "");
    }
    let url = format!("ws://{}/", door.addr);
    let (mut socket, _) = tokio_tungstenite::connect_async(&url).await.unwrap();
    socket.send(Message::text(CALL)).await.unwrap();
    let answer = soon(socket.next()).await.unwrap().unwrap();
    assert_busy(&answer.into_data(), r#""x""#, "--max-calls");
    go.add_permits(2);
    assert_eq!(first.await.unwrap().body, "served");
    assert_eq!(door.client(Http::One).await.post(CALL).await.body, "served");
}

#[tokio::test]
async fn a_stream_that_the_cl_resets_leaves_no_more_calls_than_the_bound() {
    let (script, mut begun, go) = waiting();
    let door = Door::new(bounded(Bounds { calls: 3, ..open().bounds }), script).await;
    let mut client = h2_fed(door.addr).await;
    for nth in 0..20 {
        let (sender, body) = Fed::new();
        sender.send(Bytes::from_static(CALL.as_bytes())).unwrap();
        drop(sender);
        let answer = client.send_request(Request::post("http://x/").body(body).unwrap());
        match nth {
            // Dropping the future resets the stream; the call goes on.
            0..3 => tokio::select! {
                _ = answer => panic!("answered"),
                () = async { begun.recv().await.unwrap() } => {}
            },
            _ => assert_eq!(soon(answer).await.unwrap().status(), StatusCode::OK),
        }
    }
    assert!(begun.is_empty());
    go.add_permits(4);
    let mut client = door.client(Http::One).await;
    while client.post(CALL).await.body != "served" {}
}

#[tokio::test]
async fn bodies_that_are_held_leave_no_room_for_one_more_until_they_are_over() {
    let (script, mut begun, go) = waiting();
    let large = format!(r#"{{"id":"x","method":"m","params":["{}"]}}"#, "a".repeat(90_000));
    let bounds = Bounds { bodies: 150_000, ..open().bounds };
    let config = Config { body_limit: 100_000, ..bounded(bounds) };
    let door = Door::new(config, script).await;
    for http in BOTH {
        let mut first = door.client(http).await;
        let body = large.clone();
        let first = tokio::spawn(async move { first.post(body).await });
        begun.recv().await.unwrap();
        // In part, or in whole if it came in one piece, it was not read.
        let mut connection = door.raw().await;
        let head = format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", large.len());
        connection.write(head + &large).await;
        let (head, body) = connection.response().await;
        assert!(head.starts_with("HTTP/1.1 200 ") && head.contains("connection: close"), "{head}");
        assert_busy(body.as_bytes(), "null", "--body-limit");
        assert_eq!(connection.rest().await, b"");
        // A small one fits.
        go.add_permits(1);
        let mut small = door.client(http).await;
        let small = tokio::spawn(async move { small.post(CALL).await });
        begun.recv().await.unwrap();
        go.add_permits(1);
        assert_eq!(first.await.unwrap().body, "served");
        assert_eq!(small.await.unwrap().body, "served");
    }
}

#[tokio::test]
async fn heads_are_bounded_in_number_and_size() {
    let door = Door::new(open(), Script::names()).await;
    for (headers, status) in [
        ("a: b\r\n".repeat(90), "200"),
        ("a: b\r\n".repeat(101), "431"),
        (format!("a: {}\r\n", "b".repeat(1024 * 1024)), "431"),
    ] {
        let mut connection = door.raw().await;
        let length = CALL.len();
        let request = format!(
            "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n{headers}\r\n{CALL}"
        );
        connection.write(request).await;
        let head = connection.head().await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
    }
    let mut client = door.client(Http::Two).await;
    let request = Request::post("/").header("a", "b".repeat(40 * 1024));
    let request = request.body(http_body_util::Full::from(CALL)).unwrap();
    let answer = client.send(request).await;
    assert_eq!(answer.status, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
}
