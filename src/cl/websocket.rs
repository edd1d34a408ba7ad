//! The opening of a WebSocket (RFC 6455, section 4.2).

use http::header::{
    CONNECTION, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::body::Outgoing;
use super::refusal::{Refusal, TEXT, response};
use crate::jsonrpc::Reply;

const WEBSOCKET: HeaderValue = HeaderValue::from_static("websocket");
const VERSION: HeaderValue = HeaderValue::from_static("13");

/// 16 bytes in base64.
const KEY_LENGTH: usize = 24;

/// Whether the request asks for a WebSocket. Over HTTP/2 that would take an extended `CONNECT`,
/// which no CL is known to speak.
pub(super) fn is_asked_for<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    *request.method() == Method::GET
        && request.version() == Version::HTTP_11
        && lists(headers, UPGRADE, "websocket")
        && lists(headers, CONNECTION, "upgrade")
}

/// The answer that turns the connection into a WebSocket. Neither extensions nor subprotocols are
/// taken up: both are offers.
pub(super) fn opening(headers: &HeaderMap) -> Result<Response<Outgoing>, Refusal> {
    if headers.get(SEC_WEBSOCKET_VERSION) != Some(&VERSION) {
        return Err(Refusal::Handshake(BadHandshake::Version));
    }
    let key = headers.get(SEC_WEBSOCKET_KEY).map_or(&[][..], HeaderValue::as_bytes);
    if key.len() != KEY_LENGTH {
        return Err(Refusal::Handshake(BadHandshake::Key));
    }
    let accept = HeaderValue::try_from(derive_accept_key(key))
        .map_err(|_| Refusal::Handshake(BadHandshake::Key))?;
    let mut opening = response(StatusCode::SWITCHING_PROTOCOLS, TEXT, Reply::empty());
    upgrade(opening.headers_mut());
    opening.headers_mut().insert(SEC_WEBSOCKET_ACCEPT, accept);
    Ok(opening)
}

/// Why a request for a WebSocket cannot be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadHandshake {
    /// Of another version of the protocol than the one there is.
    Version,
    /// Without a key, or with one that is none.
    Key,
}

impl BadHandshake {
    pub(super) fn response(self) -> Response<Outgoing> {
        match self {
            Self::Version => {
                let text = Reply::raw("WebSocket version 13 only".into());
                let mut response = response(StatusCode::UPGRADE_REQUIRED, TEXT, text);
                upgrade(response.headers_mut());
                response.headers_mut().insert(SEC_WEBSOCKET_VERSION, VERSION);
                response
            }
            Self::Key => {
                let text = Reply::raw("bad Sec-WebSocket-Key".into());
                response(StatusCode::BAD_REQUEST, TEXT, text)
            }
        }
    }
}

fn upgrade(headers: &mut HeaderMap) {
    headers.insert(UPGRADE, WEBSOCKET);
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
}

/// Whether a header that is a list has that token.
fn lists(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .any(|listed| listed.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}
