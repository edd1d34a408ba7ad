//! A scripted EL on loopback.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use engine_ssz_proxy::el::{Config, El, Endpoint, Surface};
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinHandle, JoinSet};

pub const CAPABILITIES: &str = r#"{"supported_forks":["paris","osaka"],"fork_scoped_endpoints":["payloads","forkchoice"],"independently_versioned":{"blobs":["v1","v2"]},"limits":{"bodies.max_count":16,"blobs.max_versioned_hashes":64,"payload.max_bytes":1000},"unscoped_endpoints":["capabilities","identity"]}"#;

/// What a peer does with the HTTP/2 preface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preface {
    Served,
    Answered400,
    Closed,
    /// The first connection is closed; later ones are served.
    ClosedOnce,
    Ignored,
    /// SETTINGS, then GOAWAY(HTTP_1_1_REQUIRED).
    Http11Required,
    /// The first connection is served; on later ones SETTINGS, then GOAWAY(last stream 0, NO_ERROR)
    /// once a request is in.
    ServedOnceThenGoAway,
}

/// What a peer does with everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http1 {
    Served,
    /// Handed to an HTTP/2 server, which cannot make sense of it.
    Misread,
}

/// A request as it came in.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Counted from 0 in the order of accepting.
    pub connection: usize,
    pub version: Version,
    pub method: Method,
    pub path: String,
    pub authority: Option<String>,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Ends the connection it came over.
    pub hang_up: Arc<Notify>,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

pub type Reply = Response<Full<Bytes>>;
type Handler = dyn Fn(Seen) -> Pin<Box<dyn Future<Output = Reply> + Send>> + Send + Sync;

pub struct Peer {
    pub address: SocketAddr,
    log: Arc<watch::Sender<Vec<Seen>>>,
    task: JoinHandle<()>,
}

impl Peer {
    /// Serves both protocols.
    pub async fn start<F, Fut>(handler: F) -> Self
    where
        F: Fn(Seen) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Reply> + Send + 'static,
    {
        Self::speaking(Preface::Served, Http1::Served, handler).await
    }

    pub async fn speaking<F, Fut>(preface: Preface, http1: Http1, handler: F) -> Self
    where
        F: Fn(Seen) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Reply> + Send + 'static,
    {
        Self::at("127.0.0.1:0".parse().unwrap(), preface, http1, handler).await
    }

    pub async fn at<F, Fut>(address: SocketAddr, preface: Preface, http1: Http1, handler: F) -> Self
    where
        F: Fn(Seen) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Reply> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(watch::Sender::new(Vec::new()));
        let handler: Arc<Handler> = Arc::new(move |seen| Box::pin(handler(seen)));
        let script = Script { preface, http1, handler, log: Arc::clone(&log) };
        let task = tokio::spawn(accept(listener, script));
        Self { address, log, task }
    }

    /// Ends all connections and frees the port.
    pub async fn stop(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.log.borrow().clone()
    }

    /// The requests on this path.
    pub fn seen_on(&self, path: &str) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.path == path).collect()
    }

    /// Waits until `count` requests on this path have come in.
    pub async fn until_seen(&self, path: &str, count: usize) {
        let mut log = self.log.subscribe();
        let enough = |seen: &Vec<Seen>| seen.iter().filter(|s| s.path == path).count() >= count;
        patiently(log.wait_for(enough)).await.unwrap();
    }

    pub fn endpoint(&self) -> Endpoint {
        format!("http://{}", self.address).parse().unwrap()
    }

    pub fn config(&self) -> Config {
        config(self.endpoint())
    }
}

#[derive(Clone)]
struct Script {
    preface: Preface,
    http1: Http1,
    handler: Arc<Handler>,
    log: Arc<watch::Sender<Vec<Seen>>>,
}

async fn accept(listener: TcpListener, script: Script) {
    let mut connections = JoinSet::new();
    let prefaces = Arc::new(Mutex::new(0));
    let mut count = 0;
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, count, Arc::clone(&prefaces), script.clone()));
        count += 1;
    }
}

async fn serve(
    mut stream: TcpStream,
    connection: usize,
    prefaces: Arc<Mutex<u32>>,
    script: Script,
) {
    let mut start = [0; 3];
    while stream.peek(&mut start).await.is_ok_and(|length| (1..3).contains(&length)) {
        tokio::task::yield_now().await;
    }
    if &start == b"PRI" {
        let nth = {
            let mut prefaces = prefaces.lock().unwrap();
            *prefaces += 1;
            *prefaces
        };
        match script.preface {
            Preface::Served => serve_http(stream, connection, script).await,
            Preface::ServedOnceThenGoAway if nth == 1 => {
                serve_http(stream, connection, script).await
            }
            Preface::ServedOnceThenGoAway => go_away_on_request(stream).await,
            Preface::Answered400 => {
                stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await.unwrap();
                drain(stream).await;
            }
            Preface::ClosedOnce if nth > 1 => serve_http(stream, connection, script).await,
            Preface::Closed | Preface::ClosedOnce => drop(stream),
            Preface::Ignored => std::future::pending().await,
            Preface::Http11Required => {
                stream.write_all(&[SETTINGS, &go_away(0xd)].concat()).await.unwrap();
                drain(stream).await;
            }
        }
    } else {
        serve_http(stream, connection, script).await;
    }
}

/// Reads to the end, so that closing does not take back what was written.
async fn drain(mut stream: TcpStream) {
    let _ = stream.shutdown().await;
    let mut sink = [0; 1024];
    while stream.read(&mut sink).await.is_ok_and(|length| length > 0) {}
}

const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

/// GOAWAY with last stream 0.
fn go_away(reason: u8) -> Vec<u8> {
    vec![0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, reason]
}

async fn go_away_on_request(mut stream: TcpStream) {
    const HEADERS: u8 = 1;
    stream.write_all(SETTINGS).await.unwrap();
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await.unwrap();
    loop {
        let mut frame = [0; 9];
        if stream.read_exact(&mut frame).await.is_err() {
            return;
        }
        let length = u32::from_be_bytes([0, frame[0], frame[1], frame[2]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await.unwrap();
        if frame[3] == HEADERS {
            stream.write_all(&go_away(0)).await.unwrap();
            return drain(stream).await;
        }
    }
}

async fn serve_http(stream: TcpStream, connection: usize, script: Script) {
    let Script { handler, log, http1, .. } = script;
    let hang_up = Arc::new(Notify::new());
    let hung_up = Arc::clone(&hang_up);
    let service = service_fn(move |request: Request<Incoming>| {
        let (handler, log) = (Arc::clone(&handler), Arc::clone(&log));
        let hang_up = Arc::clone(&hang_up);
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let seen = Seen {
                connection,
                version: head.version,
                method: head.method,
                path: head.uri.path_and_query().unwrap().to_string(),
                authority: head.uri.authority().map(ToString::to_string),
                headers: head.headers,
                body,
                hang_up,
            };
            log.send_modify(|log| log.push(seen.clone()));
            Ok::<_, hyper::Error>(handler(seen).await)
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    if http1 == Http1::Misread {
        builder = builder.http2_only();
    }
    tokio::select! {
        _ = builder.serve_connection(TokioIo::new(stream), service) => {}
        () = hung_up.notified() => {}
    }
}

/// Settings for tests: nothing is asked again by the clock, tries follow each other closely.
pub fn config(endpoint: Endpoint) -> Config {
    let mut config = Config::new(endpoint);
    config.tokens = engine_ssz_proxy::el::Tokens::Mint(secret());
    config.probe_timeout = std::time::Duration::from_secs(20);
    config.reprobe_interval = std::time::Duration::from_secs(3600);
    config.backoff_min = std::time::Duration::from_millis(1);
    config.backoff_max = std::time::Duration::from_millis(10);
    config
}

pub const SECRET: &str = "7365637265747365637265747365637265747365637265747365637265747365";

pub fn secret() -> engine_ssz_proxy::jwt::Secret {
    SECRET.parse().unwrap()
}

/// An EL door whose surface is kept.
pub fn open(config: Config) -> El {
    let el = El::new(config);
    tokio::spawn(el.keep_surface());
    el
}

/// The first surface that is so.
pub async fn until(el: &El, is_so: impl Fn(&Surface) -> bool) -> Arc<Surface> {
    let mut changes = el.surface_changed();
    let found = patiently(changes.wait_for(|surface| is_so(surface))).await.unwrap();
    Arc::clone(&found)
}

/// A test that waits for what never comes fails instead of hanging.
pub async fn patiently<F: Future>(future: F) -> F::Output {
    match tokio::time::timeout(std::time::Duration::from_secs(60), future).await {
        Ok(output) => output,
        Err(_) => panic!("waited in vain"),
    }
}

pub fn reply(status: u16, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = StatusCode::from_u16(status).unwrap();
    reply
}

/// Offers REST and answers everything with its own path.
pub async fn rest_el(seen: Seen) -> Reply {
    match seen.path.as_str() {
        path if path.ends_with("/capabilities") => reply(200, CAPABILITIES),
        path => reply(200, path.to_owned()),
    }
}

/// Knows JSON-RPC alone.
pub async fn json_el(seen: Seen) -> Reply {
    if seen.path.starts_with("/engine/") { reply(404, "") } else { reply(200, "{}") }
}
