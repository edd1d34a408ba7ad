//! Requests as the EL sees them.

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST,
    HeaderName, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Method, Request, Uri, Version};
use http_body_util::Full;

use super::connection::ElRequest;
use super::token::Caller;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Headers that belong to one connection or to the framing of one message (RFC 9110, section
/// 7.6.1): they are made anew for this one.
const NOT_CARRIED: [HeaderName; 7] =
    [CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TE, TRANSFER_ENCODING, UPGRADE];

/// The path and query below the REST base.
pub(super) fn relative(request: &Request<Bytes>) -> &str {
    request.uri().path_and_query().map_or("/", |path| path.as_str())
}

/// A REST request: what `request` says, sent to `uri`.
pub(super) fn rest(
    request: Request<Bytes>,
    uri: Uri,
    caller: &Caller,
    token: Option<HeaderValue>,
) -> ElRequest {
    let (mut head, body) = request.into_parts();
    for name in NOT_CARRIED {
        head.headers.remove(name);
    }
    head.uri = uri;
    head.version = Version::HTTP_11;
    add_common(&mut head.headers, caller, token);
    Request::from_parts(head, Full::new(body))
}

/// A JSON-RPC request: `body` posted to `uri`.
pub(super) fn json_rpc(
    body: Bytes,
    uri: Uri,
    caller: &Caller,
    token: Option<HeaderValue>,
) -> ElRequest {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri;
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(ACCEPT, JSON);
    add_common(headers, caller, token);
    request
}

fn add_common(headers: &mut HeaderMap, caller: &Caller, token: Option<HeaderValue>) {
    // Without this header any encoding would be as good as another.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    set(headers, AUTHORIZATION, token);
    set(headers, TRACEPARENT, caller.traceparent.clone());
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: Option<HeaderValue>) {
    match value {
        Some(value) => headers.insert(name, value),
        None => headers.remove(name),
    };
}
