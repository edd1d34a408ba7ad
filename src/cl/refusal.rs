//! The answers the door gives by itself.

use http::header::{ALLOW, CONNECTION, CONTENT_TYPE};
use http::{HeaderValue, Method, Response, StatusCode, Version};

use super::auth::Denied;
use super::body::{Outgoing, Pieces, Unread};
use super::websocket::BadHandshake;
use crate::jsonrpc::Reply;

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(super) const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// A request that goes no further.
#[derive(Debug)]
pub(super) enum Refusal {
    Verb(Method),
    Denied(Denied),
    MediaType,
    Body(Unread),
    Handshake(BadHandshake),
    Panicked,
}

impl Refusal {
    pub(super) fn response(&self, version: Version) -> Response<Outgoing> {
        let (status, text) = match self {
            // hyper takes the body off an answer to HEAD over HTTP/1.1 only.
            Self::Verb(Method::HEAD) => (StatusCode::METHOD_NOT_ALLOWED, String::new()),
            Self::Verb(_) => (StatusCode::METHOD_NOT_ALLOWED, "JSON-RPC is POST only".to_owned()),
            Self::Denied(denied) => (StatusCode::UNAUTHORIZED, denied.to_string()),
            Self::MediaType => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "content type is not JSON".to_owned())
            }
            Self::Body(unread) => (status_of(*unread), unread.to_string()),
            Self::Handshake(bad) => return bad.response(),
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

const fn status_of(unread: Unread) -> StatusCode {
    match unread {
        Unread::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Unread::Broken => StatusCode::BAD_REQUEST,
        Unread::Stalled => StatusCode::REQUEST_TIMEOUT,
    }
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
