//! Sockets and HTTP: from a connection to the one place where a request is answered.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use alloy_rpc_types_engine::JwtSecret;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::{
    body::{Body, Incoming},
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinSet,
};

use super::{
    Config,
    chain::Chain,
    faults::FaultsHandle,
    fork::Fork,
    rest, rpc,
    seen::{Log, Ticket},
    surface::{Http, Surface},
};

/// HTTP/2 flow-control window, of a stream and of the connection, in bytes: above any body but a
/// full bundle of blobs, so that an upload never waits for an update.
const WINDOW: u32 = 16 * 1024 * 1024;

/// The REST body limit (refactor.md, MAX_REQUEST_BODY_SIZE), in bytes.
const REST_BODY_LIMIT: usize = 64 * 1024 * 1024;

/// The JSON-RPC body limit, in bytes: hex takes twice the room.
const JSON_BODY_LIMIT: usize = 128 * 1024 * 1024;

/// How long to wait when no connection can be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// What an HTTP/1.1 server has to say to an HTTP/2 preface.
const BAD_REQUEST: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// The answer to a request, whole.
pub(super) type Answer = Response<Full<Bytes>>;

/// What all connections share.
#[derive(Debug)]
pub(super) struct El {
    chain: Mutex<Chain>,
    jwt_secret: Option<JwtSecret>,
    surface: Surface,
    pub(super) log: Log,
    pub(super) faults: FaultsHandle,
}

impl El {
    pub(super) fn new(config: Config, faults: FaultsHandle) -> Self {
        Self {
            chain: Mutex::new(Chain::new(config.genesis)),
            jwt_secret: config.jwt_secret,
            surface: config.surface,
            log: Log::default(),
            faults,
        }
    }

    pub(super) fn chain(&self) -> MutexGuard<'_, Chain> {
        self.chain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers one request: log, token, dialect. Every answer comes from here.
    async fn answer(&self, connection: u64, request: Request<Incoming>) -> Answer {
        let ticket = self.log.arrived(connection, &request);
        let answer = match self.authorize(request.headers()) {
            Ok(()) => self.dispatch(ticket, request).await,
            Err(reason) => unauthorized(reason),
        };
        self.log.answered(ticket, answer.status());
        answer
    }

    /// The token check (authentication.md). The scheme must be `Bearer` to the letter, as real ELs
    /// want it.
    fn authorize(&self, headers: &HeaderMap) -> Result<(), &'static str> {
        let Some(secret) = &self.jwt_secret else { return Ok(()) };
        let token = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "))
            .ok_or("missing or malformed bearer token")?;
        secret
            .validate(token)
            .map_err(|_| "the token is not valid now or not signed with the secret")
    }

    async fn dispatch(&self, ticket: Ticket, request: Request<Incoming>) -> Answer {
        let is_rest = request.uri().path().starts_with("/engine/");
        match (is_rest, self.surface) {
            (true, Surface::JsonOnly) | (false, Surface::RestOnly) => empty(StatusCode::NOT_FOUND),
            (true, _) => self.rest(ticket, request).await,
            (false, _) => self.json_rpc(ticket, request).await,
        }
    }

    async fn rest(&self, ticket: Ticket, request: Request<Incoming>) -> Answer {
        let (parts, body) = request.into_parts();
        let Some(route) = rest::Route::of(&parts.method, &parts.uri) else {
            return rest::not_found();
        };
        let body = match read(body, REST_BODY_LIMIT).await {
            Ok(body) => body,
            Err(Unread::TooLarge) => return rest::too_large(REST_BODY_LIMIT),
            Err(Unread::Broken) => return empty(StatusCode::BAD_REQUEST),
        };
        self.log.body(ticket, &body);
        let offer = rest::Offer { limits: rest::Limits::default(), newest_fork: Fork::Amsterdam };
        rest::answer(&self.chain, offer, &route, &parts.headers, &body)
    }

    async fn json_rpc(&self, ticket: Ticket, request: Request<Incoming>) -> Answer {
        if request.method() != Method::POST {
            return empty(StatusCode::METHOD_NOT_ALLOWED);
        }
        let body = match read(request.into_body(), JSON_BODY_LIMIT).await {
            Ok(body) => body,
            Err(Unread::TooLarge) => return empty(StatusCode::PAYLOAD_TOO_LARGE),
            Err(Unread::Broken) => return empty(StatusCode::BAD_REQUEST),
        };
        self.log.body(ticket, &body);
        let message = rpc::Message::parse(&body);
        match &message {
            rpc::Message::Single(call) => {
                if let Some(method) = call.method() {
                    self.log.rpc_method(ticket, method.into());
                }
            }
            rpc::Message::Batch(calls) => {
                let methods = calls.iter().filter_map(rpc::Item::method).map(Into::into).collect();
                self.log.rpc_batch(ticket, methods);
            }
            rpc::Message::Unreadable(_) => {}
        }
        let text = message.answer(&self.chain);
        let mut answer = Response::new(Full::new(Bytes::from(text)));
        answer
            .headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        answer
    }
}

/// Accepts until told to stop, or aborted; then no connection outlives it.
pub(super) async fn serve(
    listener: TcpListener,
    http: Http,
    el: Arc<El>,
    mut stopped: oneshot::Receiver<()>,
) {
    let mut connections = JoinSet::new();
    let mut accepted = 0;
    loop {
        tokio::select! {
            _ = &mut stopped => break,
            stream = listener.accept() => {
                match stream {
                    Ok((stream, _)) => {
                        connections.spawn(converse(stream, http, el.clone(), accepted));
                        accepted += 1;
                    }
                    // Out of descriptors, mostly: asking again at once would only burn the CPU.
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                }
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
    drop(listener);
    connections.shutdown().await;
}

async fn converse(stream: TcpStream, http: Http, el: Arc<El>, number: u64) {
    // Without it small answers wait for the peer's acknowledgement.
    let _ = stream.set_nodelay(true);
    let io = TokioIo::new(stream);
    let service = service_fn(move |request| {
        let el = el.clone();
        async move { Ok::<_, Infallible>(el.answer(number, request).await) }
    });
    // A connection's end, good or bad, concerns only its peer.
    match http {
        Http::H1 => {
            let mut connection = http1::Builder::new().serve_connection(io, service);
            if (&mut connection).await.is_err_and(|error| error.is_parse_version_h2()) {
                // hyper hangs up on an HTTP/2 preface without a word; other servers say 400 first.
                let mut stream = connection.into_parts().io.into_inner();
                let _ = stream.write_all(BAD_REQUEST).await;
                let _ = stream.shutdown().await;
            }
        }
        Http::H2 => {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder.initial_stream_window_size(WINDOW).initial_connection_window_size(WINDOW);
            drop(builder.serve_connection(io, service).await);
        }
        Http::Both => {
            let mut builder = auto::Builder::new(TokioExecutor::new());
            builder
                .http2()
                .initial_stream_window_size(WINDOW)
                .initial_connection_window_size(WINDOW);
            drop(builder.serve_connection(io, service).await);
        }
    }
}

enum Unread {
    TooLarge,
    Broken,
}

/// Reads a body up to the limit; one that announces more is not read at all.
async fn read(body: Incoming, limit: usize) -> Result<Bytes, Unread> {
    if body.size_hint().lower() > limit as u64 {
        return Err(Unread::TooLarge);
    }
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Unread::TooLarge),
        Err(_) => Err(Unread::Broken),
    }
}

/// An answer without body and content type.
pub(super) fn empty(status: StatusCode) -> Answer {
    let mut answer = Answer::default();
    *answer.status_mut() = status;
    answer
}

fn unauthorized(reason: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from_static(reason.as_bytes())));
    *answer.status_mut() = StatusCode::UNAUTHORIZED;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    answer
}
