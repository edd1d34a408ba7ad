//! The answers the door gives by itself.

use http::header::{ALLOW, CONNECTION, CONTENT_TYPE};
use http::{HeaderValue, Method, Response, StatusCode, Version};

use super::auth::Denied;
use super::body::{Outgoing, Pieces, Unread};
use super::bounds::Busy;
use super::websocket::BadHandshake;
use crate::jsonrpc::{self, Code, RawId, Reply};

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(super) const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");

/// What the CL speaks, and is to be refused in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Speech {
    /// JSON-RPC. A refusal of HTTP's is a line of text.
    JsonRpc,
    /// REST-SSZ. A refusal is a problem document (RFC 9457; `refactor.md`, "Errors").
    Rest,
}

/// A request that goes no further.
#[derive(Debug)]
pub(super) enum Refusal {
    Verb(Method),
    Denied(Denied),
    MediaType,
    Body(Unread),
    Handshake(BadHandshake),
    /// A request of REST-SSZ that there is no room for.
    Busy(Busy),
    /// Nobody is left to answer.
    Panicked,
}

impl Refusal {
    pub(super) fn response(&self, speech: Speech, version: Version) -> Response<Outgoing> {
        let (status, text) = match self {
            // hyper takes the body off an answer to HEAD over HTTP/1.1 only.
            Self::Verb(Method::HEAD) => (StatusCode::METHOD_NOT_ALLOWED, String::new()),
            Self::Verb(_) => (StatusCode::METHOD_NOT_ALLOWED, "JSON-RPC is POST only".to_owned()),
            Self::Denied(denied) => (StatusCode::UNAUTHORIZED, denied.to_string()),
            Self::MediaType => (StatusCode::BAD_REQUEST, "content type is not JSON".to_owned()),
            Self::Body(Unread::NoRoom(busy)) => match speech {
                Speech::JsonRpc => return closing(unread_call(*busy), version),
                Speech::Rest => (StatusCode::SERVICE_UNAVAILABLE, busy.to_string()),
            },
            Self::Body(unread @ Unread::TooLarge) => {
                (StatusCode::PAYLOAD_TOO_LARGE, unread.to_string())
            }
            Self::Body(unread @ (Unread::Broken | Unread::Stalled)) => {
                (StatusCode::BAD_REQUEST, unread.to_string())
            }
            Self::Handshake(bad) => return bad.response(),
            Self::Busy(busy) => (StatusCode::SERVICE_UNAVAILABLE, busy.to_string()),
            Self::Panicked => (StatusCode::INTERNAL_SERVER_ERROR, "internal error".to_owned()),
        };
        let mut response = match speech {
            Speech::JsonRpc => response(status, TEXT, Reply::raw(text.into())),
            Speech::Rest => problem(status, &text),
        };
        if matches!(self, Self::Verb(_)) {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        }
        match self {
            Self::Denied(_) | Self::MediaType | Self::Body(_) | Self::Busy(_) => {
                closing(response, version)
            }
            _ => response,
        }
    }
}

/// A problem document. The API has types for what an EL may have against a request, and none for the
/// door's other refusals: those are told by their status alone (RFC 9457, section 4.2.1).
fn problem(status: StatusCode, detail: &str) -> Response<Outgoing> {
    let kind = match status {
        StatusCode::PAYLOAD_TOO_LARGE => "/engine-api/errors/request-too-large",
        StatusCode::INTERNAL_SERVER_ERROR => "/engine-api/errors/internal",
        _ => "about:blank",
    };
    let document = serde_json::json!({ "type": kind, "detail": detail });
    response(status, PROBLEM, Reply::raw(document.to_string().into()))
}

/// The body of the request is not read to its end, so what follows it on the connection cannot be
/// found. A stream of HTTP/2 is reset instead, its connection stays.
fn closing(mut response: Response<Outgoing>, version: Version) -> Response<Outgoing> {
    if version <= Version::HTTP_11 {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The answer to a call that there is no room for. It is JSON-RPC's to say so: to any other status a
/// CL would send the call again, and again. Nobody has read its id.
fn unread_call(busy: Busy) -> Response<Outgoing> {
    let error = jsonrpc::Error::new(Code::INTERNAL, busy.to_string());
    response(StatusCode::OK, JSON, Reply::error(&RawId::null(), &error))
}

/// An answer in whole.
pub(super) fn response(
    status: StatusCode,
    content_type: HeaderValue,
    reply: Reply,
) -> Response<Outgoing> {
    let has_body = !reply.is_empty();
    let mut response = Response::new(Outgoing::Reply(Pieces::from(reply)));
    *response.status_mut() = status;
    if has_body {
        response.headers_mut().insert(CONTENT_TYPE, content_type);
    }
    response
}
