//! One request: who it is from, what it brings, what it gets.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use http::header::{ALLOW, CONNECTION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use hyper::body::Incoming;
use tokio::sync::mpsc;

use super::auth::{Denied, Gate};
use super::body::{self, Pieces, Unread};
use super::{Call, Config, Handler, Outcome};
use crate::jsonrpc::Reply;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// Everything the requests of a server share.
pub(super) struct Service<H> {
    config: Config,
    gate: Gate,
    handler: H,
    /// Held by every call in flight, so that a stopping server knows when the last one is done.
    in_flight: mpsc::Sender<Infallible>,
}

/// A request the door itself answers.
enum Refusal {
    NotFound,
    Verb(Method),
    Denied(Denied),
    MediaType,
    Body(Unread),
    Panicked,
}

impl<H: Handler> Service<H> {
    pub(super) fn new(config: Config, handler: H, in_flight: mpsc::Sender<Infallible>) -> Self {
        let gate = Gate::new(config.auth.clone(), config.clock);
        Self { config, gate, handler, in_flight }
    }

    /// Answers one request. To be dropped at any time without harm to a call under way.
    pub(super) async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Pieces> {
        let version = request.version();
        match self.serve(request).await {
            Ok(Outcome::Json(reply)) => response(StatusCode::OK, JSON, reply),
            Ok(Outcome::Status(status, text)) => response(status, TEXT, Reply::raw(text)),
            Err(refusal) => refusal.response(version),
        }
    }

    /// The order matters: nothing of a body is read, and no `100 Continue` sent, before the head
    /// has passed every check.
    async fn serve(&self, request: Request<Incoming>) -> Result<Outcome, Refusal> {
        let received = Instant::now();
        route(request.method(), request.uri())?;
        let caller = self.gate.admit(request.headers()).map_err(Refusal::Denied)?;
        if !is_json(request.headers()) {
            return Err(Refusal::MediaType);
        }
        let Config { body_limit, body_timeout, .. } = self.config;
        let body = body::read(request.into_body(), body_limit, body_timeout)
            .await
            .map_err(Refusal::Body)?;
        self.run(Call { body, caller, received }).await
    }

    /// Has the handler run in a task of its own: this future is dropped when the CL hangs up, the
    /// call goes on.
    async fn run(&self, call: Call) -> Result<Outcome, Refusal> {
        let handler = self.handler.clone();
        let in_flight = self.in_flight.clone();
        let task = tokio::spawn(async move {
            let outcome = handler.call(call).await;
            drop(in_flight);
            outcome
        });
        task.await.map_err(|error| {
            tracing::error!(%error, "call ended without an answer");
            Refusal::Panicked
        })
    }
}

/// What a request is by its first line.
fn route(method: &Method, uri: &Uri) -> Result<(), Refusal> {
    if *method != Method::POST {
        return Err(Refusal::Verb(method.clone()));
    }
    // The REST-SSZ API's own paths. ELs take JSON-RPC on any other one, `/engine` included.
    if uri.path().starts_with("/engine/") {
        return Err(Refusal::NotFound);
    }
    Ok(())
}

/// Whether the content type may be that of JSON. CLs have been seen to send none, or one with
/// parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE) else { return true };
    let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    ["application/json", "application/json-rpc", "application/jsonrequest", "text/plain"]
        .iter()
        .any(|accepted| essence.eq_ignore_ascii_case(accepted))
}

impl Refusal {
    fn response(&self, version: Version) -> Response<Pieces> {
        let (status, text) = match self {
            Self::NotFound => (StatusCode::NOT_FOUND, String::new()),
            // hyper takes the body off an answer to HEAD over HTTP/1.1 only.
            Self::Verb(Method::HEAD) => (StatusCode::METHOD_NOT_ALLOWED, String::new()),
            Self::Verb(_) => (StatusCode::METHOD_NOT_ALLOWED, "JSON-RPC is POST only".to_owned()),
            Self::Denied(denied) => (StatusCode::UNAUTHORIZED, denied.to_string()),
            Self::MediaType => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "content type is not JSON".to_owned())
            }
            Self::Body(unread) => match unread {
                Unread::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "body too large".to_owned()),
                Unread::Broken => (StatusCode::BAD_REQUEST, "incomplete body".to_owned()),
                Unread::Stalled => (StatusCode::REQUEST_TIMEOUT, "body timed out".to_owned()),
            },
            Self::Panicked => (StatusCode::INTERNAL_SERVER_ERROR, "internal error".to_owned()),
        };
        let mut response = response(status, TEXT, Reply::raw(text.into()));
        if matches!(self, Self::Verb(_)) {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        }
        // The body of these is not read to its end, so what follows it on the connection cannot be
        // found. A stream of HTTP/2 is reset instead, its connection stays.
        let unread = matches!(self, Self::Denied(_) | Self::MediaType | Self::Body(_));
        if unread && version <= Version::HTTP_11 {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

fn response(status: StatusCode, content_type: HeaderValue, reply: Reply) -> Response<Pieces> {
    let has_body = !reply.is_empty();
    let mut response = Response::new(Pieces::from(reply));
    *response.status_mut() = status;
    if has_body {
        response.headers_mut().insert(CONTENT_TYPE, content_type);
    }
    response
}
