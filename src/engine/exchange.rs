//! One request of the REST-SSZ Engine API, and the reading of its answer.

use super::{Context, InclusionListPath, Memory, RelayReason, Version};
use crate::wire::{Fork, Malformed};
use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Method as Verb, Request, Response,
    header::{ACCEPT, CONTENT_TYPE},
};

/// Selects the containers of a fork-scoped endpoint (refactor.md, "Transport & framing").
pub const EXECUTION_VERSION: HeaderName = HeaderName::from_static("eth-execution-version");
/// Who the CL is (refactor.md, "Capabilities & identification").
pub const CLIENT_VERSION: HeaderName = HeaderName::from_static("x-engine-client-version");

/// Status bytes of `PayloadStatus` (refactor-ssz.md).
pub(super) const VALID: &[u8] = &[0];
pub(super) const INVALID: &[u8] = &[1];

const SSZ: HeaderValue = HeaderValue::from_static("application/octet-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A request for the EL, with a path below its REST base path.
#[derive(Debug)]
pub struct Exchange {
    /// Verb, path such as `/payloads`, engine headers, body.
    pub request: Request<Bytes>,
    /// When it may be sent, or its call relayed, a second time.
    pub replay: Replay,
}

/// Whether the EL may get a call twice (refactor.md, "Message ordering & idempotency").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// Idempotent.
    Harmless,
    /// It starts a build: when the exchange failed, only if the first copy provably never reached
    /// the EL. An answer that came whole and cannot be used is asked again all the same: without
    /// the payload id in it a slot would be missed, and ELs give the same id for the same build.
    OnlyIfNeverSent,
}

/// An endpoint with its body, without the headers that every exchange has.
pub(super) enum Endpoint {
    /// `POST /payloads`.
    Payloads(Fork, Bytes),
    /// `POST /forkchoice`.
    Forkchoice(Fork, Bytes),
    /// `GET /payloads/{id}`.
    Payload(Fork, [u8; 8]),
    /// `POST /bodies/hash`.
    BodiesByHash(Fork, Bytes),
    /// `GET /bodies?from&count`, both in decimal.
    BodiesByRange {
        /// The fork asked for.
        fork: Fork,
        /// First block number.
        from: u64,
        /// Number of blocks.
        count: usize,
    },
    /// `POST /blobs/vN`.
    Blobs(Version, Bytes),
    /// `GET /inclusion-list`, under the EL's name for it.
    InclusionList(Fork, InclusionListPath),
    /// `GET /identity`.
    Identity,
}

impl Exchange {
    pub(super) fn new(endpoint: Endpoint, replay: Replay, memory: &Memory) -> Self {
        let (verb, path, fork, body) = match endpoint {
            Endpoint::Payloads(fork, body) => (Verb::POST, "/payloads".into(), Some(fork), body),
            Endpoint::Forkchoice(fork, body) => {
                (Verb::POST, "/forkchoice".into(), Some(fork), body)
            }
            Endpoint::Payload(fork, id) => {
                let path = format!("/payloads/{}", const_hex::encode_prefixed(id));
                (Verb::GET, path, Some(fork), Bytes::new())
            }
            Endpoint::BodiesByHash(fork, body) => {
                (Verb::POST, "/bodies/hash".into(), Some(fork), body)
            }
            Endpoint::BodiesByRange { fork, from, count } => {
                let path = format!("/bodies?from={from}&count={count}");
                (Verb::GET, path, Some(fork), Bytes::new())
            }
            Endpoint::Blobs(version, body) => {
                (Verb::POST, format!("/blobs/{}", version.name()), None, body)
            }
            Endpoint::InclusionList(fork, path) => {
                (Verb::GET, path.as_str().into(), Some(fork), Bytes::new())
            }
            Endpoint::Identity => (Verb::GET, "/identity".into(), None, Bytes::new()),
        };
        let has_body = verb == Verb::POST;
        let is_document = !has_body && fork.is_none();
        let mut request = Request::new(body);
        *request.method_mut() = verb;
        // A path built from constants and hex digits is always a legal URI.
        *request.uri_mut() = path.parse().unwrap_or_default();
        let headers = request.headers_mut();
        if let Some(fork) = fork {
            headers.insert(EXECUTION_VERSION, HeaderValue::from_static(fork.name()));
        }
        if has_body {
            headers.insert(CONTENT_TYPE, SSZ);
        }
        headers.insert(ACCEPT, if is_document { JSON } else { SSZ });
        if let Some(version) = memory.client_version() {
            headers.insert(CLIENT_VERSION, version);
        }
        Self { request, replay }
    }
}

/// Refuses a body over the EL's advertised limit before it is sent.
pub(super) fn check_size(body: &[u8], context: Context<'_>) -> Result<(), RelayReason> {
    match context.offer.map(|offer| offer.limits().payload_max_bytes) {
        Some(limit) if body.len() > limit => {
            Err(RelayReason::TooLarge { bytes: body.len(), limit })
        }
        _ => Ok(()),
    }
}

/// A 200 with that media type; parameters are ignored.
pub(super) fn is_ok_with(answer: &Response<Bytes>, media_type: &str) -> bool {
    answer.status() == http::StatusCode::OK
        && self::media_type(answer).is_some_and(|said| said.eq_ignore_ascii_case(media_type))
}

/// The media type without parameters, cut to 64 characters; `None`: none, or none that is text.
pub(super) fn media_type<B>(answer: &Response<B>) -> Option<&str> {
    const LONGEST: usize = 64;
    let said = answer.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    let said = said.split(';').next()?.trim();
    Some(said.get(..LONGEST).unwrap_or(said)).filter(|said| !said.is_empty())
}

/// The body of a 200 that says it is SSZ; `None` for any other status.
///
/// A 200 of another media type is a dialect, never to be read as SSZ.
pub(super) fn ssz_body(answer: &Response<Bytes>) -> Result<Option<&Bytes>, RelayReason> {
    match answer.status() {
        http::StatusCode::OK if is_ok_with(answer, "application/octet-stream") => {
            Ok(Some(answer.body()))
        }
        http::StatusCode::OK => {
            let said = media_type(answer).unwrap_or("no content type");
            Err(bad_answer(format_args!("a 200 with {said} where SSZ was due")))
        }
        status if status.is_success() => {
            Err(bad_answer(format_args!("HTTP {status} where 200 was due")))
        }
        _ => Ok(None),
    }
}

pub(super) fn bad_answer(what: impl std::fmt::Display) -> RelayReason {
    RelayReason::BadAnswer(what.to_string().into_boxed_str())
}

impl From<Malformed> for RelayReason {
    fn from(malformed: Malformed) -> Self {
        bad_answer(malformed)
    }
}
