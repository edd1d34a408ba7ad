//! A request read whole: what it is about, and running it.

use std::sync::PoisonError;

use alloy_primitives::B256;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};

use super::{
    super::{
        faults::{Dialect, Operation},
        rest, rpc,
        seen::Ticket,
        surface::Surface,
    },
    Answer, El, empty,
};

/// The REST body limit (refactor.md, MAX_REQUEST_BODY_SIZE), in bytes.
const REST_BODY_LIMIT: usize = 64 * 1024 * 1024;

/// The JSON-RPC body limit, in bytes: hex takes twice the room.
const JSON_BODY_LIMIT: usize = 128 * 1024 * 1024;

/// A request with its body.
#[derive(Debug)]
pub(super) enum Call {
    /// A known REST endpoint.
    Rest { route: rest::Route, headers: HeaderMap, body: Bytes },
    /// A JSON-RPC message with the method of its only or first call.
    JsonRpc { method: Option<String>, body: Bytes },
    /// Refused before anything could be run.
    Refused(Answer),
}

impl Call {
    /// The dialect of a request.
    pub(super) fn dialect<B>(request: &Request<B>) -> Dialect {
        if request.uri().path().starts_with("/engine/") { Dialect::Rest } else { Dialect::JsonRpc }
    }

    /// The operation a head alone tells: that of a REST endpoint.
    pub(super) fn operation_of_head<B>(request: &Request<B>) -> Option<Operation> {
        rest::Route::of(request.method(), request.uri()).map(|route| route.operation())
    }

    /// The operation.
    pub(super) fn operation(&self) -> Option<Operation> {
        match self {
            Self::Rest { route, .. } => Some(route.operation()),
            Self::JsonRpc { method, .. } => method.as_deref().and_then(Operation::of_method),
            Self::Refused(_) => None,
        }
    }

    /// The JSON-RPC method.
    pub(super) fn method(&self) -> Option<&str> {
        match self {
            Self::JsonRpc { method, .. } => method.as_deref(),
            Self::Rest { .. } | Self::Refused(_) => None,
        }
    }

    /// The block it is about: that of a payload, or the head of a forkchoice.
    fn block_hash(&self) -> Option<B256> {
        match self {
            Self::Rest { route, body, .. } => rest::block_hash(route, body),
            Self::JsonRpc { body, .. } => rpc::block_hash(self.operation()?, body),
            Self::Refused(_) => None,
        }
    }
}

impl El {
    /// Reads a request's body, and refuses what cannot be run.
    pub(super) async fn read(&self, ticket: Ticket, request: Request<Incoming>) -> Call {
        let call = match (Call::dialect(&request), self.standing().surface) {
            (Dialect::Rest, Surface::JsonOnly) | (Dialect::JsonRpc, Surface::RestOnly) => {
                Call::Refused(empty(StatusCode::NOT_FOUND))
            }
            (Dialect::Rest, _) => self.read_rest(ticket, request).await,
            (Dialect::JsonRpc, _) => self.read_json_rpc(ticket, request).await,
        };
        self.log.about(ticket, call.operation(), call.block_hash());
        call
    }

    async fn read_rest(&self, ticket: Ticket, request: Request<Incoming>) -> Call {
        let (parts, body) = request.into_parts();
        let Some(route) = rest::Route::of(&parts.method, &parts.uri) else {
            return Call::Refused(rest::not_found());
        };
        let body = match read(body, REST_BODY_LIMIT).await {
            Ok(body) => body,
            Err(Unread::TooLarge) => return Call::Refused(rest::too_large(REST_BODY_LIMIT)),
            Err(Unread::Broken) => return Call::Refused(empty(StatusCode::BAD_REQUEST)),
        };
        self.log.body(ticket, &body);
        Call::Rest { route, headers: parts.headers, body }
    }

    async fn read_json_rpc(&self, ticket: Ticket, request: Request<Incoming>) -> Call {
        if request.method() != Method::POST {
            return Call::Refused(empty(StatusCode::METHOD_NOT_ALLOWED));
        }
        let body = match read(request.into_body(), JSON_BODY_LIMIT).await {
            Ok(body) => body,
            Err(Unread::TooLarge) => return Call::Refused(empty(StatusCode::PAYLOAD_TOO_LARGE)),
            Err(Unread::Broken) => return Call::Refused(empty(StatusCode::BAD_REQUEST)),
        };
        self.log.body(ticket, &body);
        let method = match rpc::Message::parse(&body) {
            rpc::Message::Single(call) => {
                let method = call.method().map(ToOwned::to_owned);
                if let Some(method) = &method {
                    self.log.rpc_method(ticket, method.clone());
                }
                method
            }
            rpc::Message::Batch(calls) => {
                let methods: Vec<String> =
                    calls.iter().filter_map(rpc::Item::method).map(Into::into).collect();
                let first = methods.first().cloned();
                self.log.rpc_batch(ticket, methods);
                first
            }
            rpc::Message::Unreadable(_) => None,
        };
        Call::JsonRpc { method, body }
    }

    /// Runs a call against the chain; the log knows the order.
    pub(super) fn run(&self, ticket: Ticket, call: &Call) -> Answer {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = match call {
            Call::Refused(answer) => return answer.clone(),
            Call::Rest { route, headers, body } => {
                rest::answer(&self.chain, self.standing().offer, route, headers, body)
            }
            Call::JsonRpc { body, .. } => {
                let text = rpc::Message::parse(body).answer(&self.chain);
                let mut answer = Response::new(Full::new(Bytes::from(text)));
                answer
                    .headers_mut()
                    .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
                answer
            }
        };
        self.log.processed(ticket);
        drop(running);
        answer
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
