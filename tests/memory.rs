//! How much memory calls take that wait behind an EL which does not answer.

mod support;

use axum::{Router, body::to_bytes, extract::Request, response::Response};
use bytes::Bytes;
use engine_ssz_proxy::serve::Sidecar;
use serde_json::{Value, json};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    net::SocketAddr,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use support::{any_port, post, scripted_el, settings};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};

/// The system's allocator, with a count of what is allocated.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn taken(size: usize) {
    PEAK.fetch_max(LIVE.fetch_add(size, SeqCst) + size, SeqCst);
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), SeqCst);
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both are there while it moves.
        taken(size);
        LIVE.fetch_sub(layout.size(), SeqCst);
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CALLS: usize = 64;
/// Calls at once whose answers are large.
const PARALLEL: usize = 16;
/// Half of it is what becomes of a body of hex digits.
const BODY: usize = 8_000_000;
/// SYNCING as `PayloadStatus`.
const SYNCING: [u8; 9] = [2, 9, 0, 0, 0, 9, 0, 0, 0];

/// An EL that keeps nothing, and answers payloads when it is let go.
async fn stuck_el(go: Arc<Semaphore>) -> SocketAddr {
    let listener = TcpListener::bind(any_port()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new().fallback(move |request: Request| {
        let go = Arc::clone(&go);
        async move {
            let path = request.uri().path().to_owned();
            let body = to_bytes(request.into_body(), usize::MAX).await.unwrap();
            let length = body.len();
            let is_large = length < 1000 && {
                let body = String::from_utf8_lossy(&body);
                body.contains("eth_getLogs") || body.contains("engine_getPayload")
            };
            drop(body);
            match path.as_str() {
                "/engine/v1/capabilities" => scripted_el::json(scripted_el::CAPABILITIES),
                "/engine/v1/payloads" => {
                    assert!(length > BODY / 2 - 10_000, "{length}");
                    go.acquire().await.unwrap().forget();
                    scripted_el::ssz(SYNCING.to_vec())
                }
                "/" if is_large => download(),
                "/" if length > 0 => json_rpc(),
                _ => scripted_el::answer(404, "text/plain", ""),
            }
        }
    });
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    address
}

fn json_rpc() -> Response {
    scripted_el::json(r#"{"jsonrpc":"2.0","id":0,"result":null}"#)
}

/// An answer of [`BODY`] bytes, which takes no memory for each.
fn download() -> Response {
    static ANSWER: LazyLock<Bytes> = LazyLock::new(|| {
        let result = "a".repeat(BODY);
        format!(r#"{{"jsonrpc":"2.0","id":0,"result":"0x{result}"}}"#).into()
    });
    let head = Response::builder().header("content-type", "application/json");
    head.body(ANSWER.clone().into()).unwrap()
}

/// Calls that go beside each other, over the lane of the relayed and over that of what a proposal
/// waits for: little more than their answers is held for them.
async fn answers_that_nobody_reads(address: SocketAddr) {
    // Not in the measure: the answer itself, and a first connection of each lane.
    drop(download());
    let before = LIVE.load(SeqCst);
    PEAK.store(before, SeqCst);
    let mut connections = Vec::new();
    for method in ["eth_getLogs", "engine_getPayloadV5"].into_iter().cycle().take(PARALLEL) {
        let params = json!(["0x0000000000000001"]);
        let body =
            json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": params}).to_string();
        let request = format!(
            "POST / HTTP/1.1\r\nhost: x\r\nauthorization: Bearer a.b.c\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut connection = TcpStream::connect(address).await.unwrap();
        connection.write_all(request.as_bytes()).await.unwrap();
        connections.push(connection);
    }
    // What the sockets on the way have room for is not held here.
    let held = PARALLEL * BODY / 2;
    until("every answer is there", || LIVE.load(SeqCst) >= before + held).await;
    for mut connection in connections {
        let mut read = 0;
        let mut piece = [0; 1 << 16];
        loop {
            match connection.read(&mut piece).await.unwrap() {
                0 => break,
                length => read += length,
            }
        }
        assert!(read > BODY, "{read}");
    }
    let peak = PEAK.load(SeqCst) - before;
    assert!(peak <= PARALLEL * BODY * 5 / 2, "{} MB at most", peak >> 20);
    until("all is given back", || LIVE.load(SeqCst) <= before + BODY).await;
}

/// A request with a payload of [`BODY`] bytes.
fn upload() -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/golden/12-osaka-newPayload.json");
    let mut call: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    // No transaction that it could be judged by.
    call["params"][1] = json!([]);
    let space = BODY - 2 - call.to_string().len();
    call["params"][0]["transactions"] = json!([format!("0x02{}", "a".repeat(space & !1))]);
    let body = call.to_string();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: x\r\nauthorization: Bearer a.b.c\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    (head + &body).into_bytes()
}

/// Waits for something that others bring about.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    let come = tokio::time::timeout(Duration::from_secs(120), waiting).await;
    assert!(come.is_ok(), "{what}: {} MB", LIVE.load(SeqCst) >> 20);
}

#[tokio::test]
async fn calls_that_wait_hold_little_more_than_their_bodies_and_give_all_of_it_back() {
    let go = Arc::new(Semaphore::new(0));
    let el = stuck_el(Arc::clone(&go)).await;
    let mut config = settings(el).check().unwrap();
    config.el.command_wait = Duration::from_secs(3600);
    let sidecar = Sidecar::start(config).await.unwrap();
    let address = sidecar.address();
    post(address, r#"{"jsonrpc":"2.0","id":0,"method":"eth_chainId"}"#).await;
    sidecar.el_found().await;

    let request: &'static [u8] = upload().leak();
    let before = LIVE.load(SeqCst);
    PEAK.store(before, SeqCst);
    let calls: Vec<_> = (0..CALLS)
        .map(|_| {
            tokio::spawn(async move {
                let mut connection = TcpStream::connect(address).await.unwrap();
                connection.write_all(request).await.unwrap();
                let mut start = [0; 512];
                let length = connection.read(&mut start).await.unwrap();
                String::from_utf8_lossy(&start[..length]).into_owned()
            })
        })
        .collect();
    until("every body is there", || LIVE.load(SeqCst) >= before + CALLS * BODY).await;
    assert!(calls.iter().all(|call| !call.is_finished()));
    go.add_permits(CALLS);
    for call in calls {
        let said = call.await.unwrap();
        assert!(said.contains("SYNCING"), "{said}");
    }
    let peak = PEAK.load(SeqCst) - before;
    // Commands are translated one after the other, so there is one translation at a time.
    assert!(peak <= CALLS * BODY * 13 / 10, "{} MB at most", peak >> 20);
    until("all is given back", || LIVE.load(SeqCst) <= before + BODY).await;
    answers_that_nobody_reads(address).await;
}
