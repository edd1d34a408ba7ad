//! Requests as the EL sees them.

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST,
    HeaderName, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, Version};
use http_body_util::Full;

use super::connection::{ElRequest, StreamedBody};
use super::token::Caller;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Headers that belong to one connection or to the framing of one message (RFC 9110, section
/// 7.6.1): they are made anew for this one.
const NOT_CARRIED: [HeaderName; 7] =
    [CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TE, TRANSFER_ENCODING, UPGRADE];

/// What beside them concerns two neighbours alone and is not handed on; all of `Proxy-*` neither.
const HOP_BY_HOP: [HeaderName; 7] = [
    CONNECTION,
    EXPECT,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
];

/// The path and query below the REST base.
pub(super) fn relative<B>(request: &Request<B>) -> &str {
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

/// A request as the CL made it, sent to `uri` under that token.
pub(super) fn passed(
    request: Request<StreamedBody>,
    uri: Uri,
    token: Option<HeaderValue>,
) -> Request<StreamedBody> {
    let (head, body) = request.into_parts();
    // Nothing but these is carried over: not the version, nor what a server noted beside the head.
    let mut request = Request::new(body);
    *request.method_mut() = head.method;
    *request.uri_mut() = uri;
    let headers = request.headers_mut();
    *headers = head.headers;
    remove_hop_by_hop(headers);
    headers.remove(HOST);
    set(headers, AUTHORIZATION, token);
    request
}

/// An answer as the EL made it.
pub(super) fn passed_back(answer: Response<StreamedBody>) -> Response<StreamedBody> {
    let (head, body) = answer.into_parts();
    let mut answer = Response::new(body);
    *answer.status_mut() = head.status;
    *answer.headers_mut() = head.headers;
    remove_hop_by_hop(answer.headers_mut());
    answer
}

/// Removes what is meant for the neighbour alone (RFC 9110, section 7.6.1), also what `Connection`
/// says is.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .collect();
    let of_proxies: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with("proxy-")).cloned().collect();
    for name in HOP_BY_HOP.into_iter().chain(named).chain(of_proxies) {
        headers.remove(name);
    }
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
