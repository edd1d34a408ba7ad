//! An EL whose every answer the test writes.

use super::any_port;
use axum::{Router, body::to_bytes, extract::Request, response::Response};
use bytes::Bytes;
use http::Version;
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle};

/// What an EL offers when it offers everything.
pub const CAPABILITIES: &str = r#"{"supported_forks":["paris","shanghai","cancun","prague","osaka","amsterdam"],"fork_scoped_endpoints":["payloads","forkchoice","bodies"],"independently_versioned":{"blobs":["v1","v2","v3","v4"]},"unscoped_endpoints":["capabilities","identity"],"limits":{"bodies.max_count":32,"blobs.max_versioned_hashes":128,"payload.max_bytes":67108864}}"#;

/// The answer to `eth_config` of an EL that does not know it.
const NO_CONFIG: &str =
    r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"the method does not exist"}}"#;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Seen {
    pub path: String,
    pub version: Version,
    pub headers: http::HeaderMap,
    pub body: Bytes,
}

/// A running one; every request but the capabilities and `eth_config`, which the sidecar asks for by
/// itself, is told to the test, in order of arrival.
pub struct ScriptedEl {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    arrivals: mpsc::UnboundedReceiver<Seen>,
    questions: mpsc::UnboundedReceiver<Seen>,
    server: JoinHandle<()>,
}

impl Drop for ScriptedEl {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl ScriptedEl {
    /// Starts on a free port. Answers `GET /engine/v1/capabilities` with everything, an empty
    /// request for `/` with 405, and anything else as the script says.
    pub async fn start<S, F>(script: S) -> Self
    where
        S: Fn(Seen) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response> + Send,
    {
        Self::start_offering(CAPABILITIES, NO_CONFIG, script).await
    }

    /// The same with another capabilities document.
    pub async fn offering<S, F>(capabilities: impl Into<Bytes>, script: S) -> Self
    where
        S: Fn(Seen) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response> + Send,
    {
        Self::start_offering(capabilities, NO_CONFIG, script).await
    }

    /// The same with capabilities and an answer to `eth_config` of its own.
    pub async fn start_offering<S, F>(
        capabilities: impl Into<Bytes>,
        eth_config: &'static str,
        script: S,
    ) -> Self
    where
        S: Fn(Seen) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response> + Send,
    {
        let capabilities = capabilities.into();
        let listener = TcpListener::bind(any_port()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (tell, arrivals) = mpsc::unbounded_channel();
        let (ask, questions) = mpsc::unbounded_channel();
        let log = seen.clone();
        let app = Router::new().fallback(move |request: Request| {
            let (script, log) = (script.clone(), log.clone());
            let (tell, ask, capabilities) = (tell.clone(), ask.clone(), capabilities.clone());
            async move {
                let (head, body) = request.into_parts();
                let body = to_bytes(body, usize::MAX).await.unwrap();
                let path = head.uri.path().to_owned();
                if path == "/engine/v1/capabilities" {
                    return json(capabilities);
                }
                if path == "/" && body.is_empty() {
                    // Being asked whether HTTP/1.1 is spoken at all.
                    return answer(405, "text/plain", "POST JSON-RPC here");
                }
                let seen = Seen { path, version: head.version, headers: head.headers, body };
                if is_own_question(&seen) {
                    ask.send(seen).ok();
                    return json(eth_config);
                }
                log.lock().unwrap().push(seen.clone());
                tell.send(seen.clone()).ok();
                script(seen).await
            }
        });
        let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, seen, arrivals, questions, server }
    }

    /// Everything received so far but capabilities.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Paths received so far but capabilities and the support's own greeting.
    pub fn paths(&self) -> Vec<String> {
        let seen = self.seen().into_iter().filter(|seen| !is_greeting(seen));
        seen.map(|seen| seen.path).collect()
    }

    /// Waits until the sidecar asks for `eth_config`.
    pub async fn question(&mut self) -> Seen {
        self.questions.recv().await.unwrap()
    }

    /// Waits for the next request but the greeting.
    pub async fn arrival(&mut self) -> Seen {
        loop {
            let seen = self.arrivals.recv().await.unwrap();
            if !is_greeting(&seen) {
                return seen;
            }
        }
    }
}

fn is_own_question(seen: &Seen) -> bool {
    seen.path == "/" && seen.body.ends_with(br#""method":"eth_config","params":[]}"#)
}

pub fn is_greeting(seen: &Seen) -> bool {
    seen.body.ends_with(br#""id":0,"method":"eth_chainId"}"#)
}

pub fn answer(status: u16, content_type: &str, body: impl Into<Bytes>) -> Response {
    Response::builder()
        .status(status)
        .header("content-type", content_type)
        .body(body.into().into())
        .unwrap()
}

pub fn json(body: impl Into<Bytes>) -> Response {
    answer(200, "application/json", body)
}

pub fn ssz(body: impl Into<Bytes>) -> Response {
    answer(200, "application/octet-stream", body)
}

pub fn problem(status: u16, name: &str) -> Response {
    let body = format!(r#"{{"type":"/engine-api/errors/{name}"}}"#);
    answer(status, "application/problem+json", body)
}
