//! The program's end: what a signal lets go on, and what it does not.

mod support;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, ChildStderr, Command, Stdio},
    sync::Arc,
    time::Duration,
};
use support::{
    Answer, post,
    scripted_el::{ScriptedEl, json},
};
use tokio::{net::TcpStream, sync::Semaphore};
use tokio_tungstenite::tungstenite::{Message, protocol::frame::coding::CloseCode};

const SLOW: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_slow"}"#;
const QUICK: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_quick"}"#;
const RESULT: &str = r#"{"jsonrpc":"2.0","id":1,"result":"0x1"}"#;

/// An EL whose slow calls wait to be let go.
async fn slow_el() -> (ScriptedEl, Arc<Semaphore>) {
    let go = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&go);
    let el = ScriptedEl::start(move |seen| {
        let gate = Arc::clone(&gate);
        async move {
            if seen.body == SLOW {
                gate.acquire().await.unwrap().forget();
            }
            json(RESULT)
        }
    })
    .await;
    (el, go)
}

/// The program at work.
struct Program {
    child: Child,
    log: BufReader<ChildStderr>,
    address: std::net::SocketAddr,
}

impl Program {
    fn start(el: &ScriptedEl, grace: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_engine-ssz-proxy"))
            .args(["--listen-port", "0", "--log-format", "json", "--transport", "json"])
            .args(["--grace-period", grace, &format!("http://{}", el.address)])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        log.read_line(&mut line).unwrap();
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        let address = line["address"].as_str().unwrap().parse().unwrap();
        Self { child, log, address }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Waits until no one gets in any more.
    async fn closed(&self) {
        soon(async {
            while TcpStream::connect(self.address).await.is_ok() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    /// The exit code, and what was written since the start.
    async fn end(mut self) -> (Option<i32>, String) {
        let end = tokio::task::spawn_blocking(move || {
            let mut log = String::new();
            self.log.read_to_string(&mut log).unwrap();
            (self.child.wait().unwrap().code(), log)
        });
        soon(end).await.unwrap()
    }
}

async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(30), future).await.expect("nothing came")
}

fn request(address: std::net::SocketAddr, body: &'static str) -> Request<Full<Bytes>> {
    let request = Request::post(format!("http://{address}/")).header("host", address.to_string());
    request.body(Full::from(body)).unwrap()
}

async fn answer(response: http::Response<hyper::body::Incoming>) -> Answer {
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer { status: head.status, headers: head.headers, body }
}

#[tokio::test]
async fn life_a_stop_ends_every_kind_of_connection_once_its_calls_are_answered() {
    let (mut el, go) = slow_el().await;
    let program = Program::start(&el, "60");
    let address = program.address;
    let stream = || async { TokioIo::new(TcpStream::connect(address).await.unwrap()) };
    // Each is used once, so that it is established and idle; then half of them has a call.
    let (mut idle_h1, idle_h1_end) = http1::handshake(stream().await).await.unwrap();
    let (mut busy_h1, busy_h1_end) = http1::handshake(stream().await).await.unwrap();
    let executor = TokioExecutor::new();
    let (mut idle_h2, idle_h2_end) =
        http2::handshake(executor.clone(), stream().await).await.unwrap();
    let (mut busy_h2, busy_h2_end) = http2::handshake(executor, stream().await).await.unwrap();
    let idle_h1_end = tokio::spawn(idle_h1_end);
    let ends = [tokio::spawn(busy_h1_end)];
    let h2_ends = [tokio::spawn(idle_h2_end), tokio::spawn(busy_h2_end)];
    for h1 in [&mut idle_h1, &mut busy_h1] {
        h1.ready().await.unwrap();
        let said = answer(h1.send_request(request(address, QUICK)).await.unwrap()).await;
        assert_eq!(said.body, RESULT);
    }
    for h2 in [&mut idle_h2, &mut busy_h2] {
        let said = answer(h2.send_request(request(address, QUICK)).await.unwrap()).await;
        assert_eq!(said.body, RESULT);
    }
    let url = format!("ws://{address}/");
    let (mut idle_ws, _) = tokio_tungstenite::connect_async(&url).await.unwrap();
    let (mut busy_ws, _) = tokio_tungstenite::connect_async(&url).await.unwrap();

    busy_h1.ready().await.unwrap();
    let over_h1 = tokio::spawn(busy_h1.send_request(request(address, SLOW)));
    let over_h2 = tokio::spawn(busy_h2.send_request(request(address, SLOW)));
    busy_ws.send(Message::text(SLOW)).await.unwrap();
    let mut slow = 0;
    while slow < 3 {
        slow += usize::from(soon(el.arrival()).await.body == SLOW);
    }
    program.signal("-TERM");
    program.closed().await;
    // What is idle is over at once.
    soon(idle_h1_end).await.unwrap().unwrap();
    let goodbye = soon(idle_ws.next()).await.unwrap().unwrap();
    let Message::Close(Some(frame)) = goodbye else { panic!("{goodbye:?}") };
    assert_eq!(frame.code, CloseCode::Away);
    assert!(soon(idle_ws.next()).await.is_none());
    assert!(!over_h1.is_finished() && !over_h2.is_finished());

    go.add_permits(3);
    for over in [over_h1, over_h2] {
        let said = answer(soon(over).await.unwrap().unwrap()).await;
        assert_eq!((said.status, &said.body[..]), (StatusCode::OK, RESULT.as_bytes()));
    }
    assert_eq!(soon(busy_ws.next()).await.unwrap().unwrap(), Message::text(RESULT));
    let goodbye = soon(busy_ws.next()).await.unwrap().unwrap();
    assert!(goodbye.is_close(), "{goodbye:?}");
    assert!(soon(busy_ws.next()).await.is_none());
    for end in ends {
        soon(end).await.unwrap().unwrap();
    }
    let (code, log) = program.end().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("stopping"), "{log}");
    for end in h2_ends {
        soon(end).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn life_a_stop_does_not_wait_longer_than_the_grace_period() {
    let (mut el, _go) = slow_el().await;
    let program = Program::start(&el, "0");
    let held = tokio::spawn(post(program.address, SLOW));
    assert_eq!(soon(el.arrival()).await.body, SLOW);
    program.signal("-INT");
    let (code, log) = program.end().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("calls under way are cut"), "{log}");
    assert!(held.await.is_err(), "cut");
}

#[tokio::test]
async fn life_a_second_signal_ends_it_at_once() {
    let (mut el, _go) = slow_el().await;
    let program = Program::start(&el, "3600");
    let _held = tokio::spawn(post(program.address, SLOW));
    assert_eq!(soon(el.arrival()).await.body, SLOW);
    program.signal("-TERM");
    program.closed().await;
    program.signal("-INT");
    let (code, log) = program.end().await;
    assert_eq!(code, Some(1), "{log}");
    let last = log.lines().last().unwrap();
    assert_eq!(last, "engine-ssz-proxy: stopped at once by a second signal", "{log}");
}
