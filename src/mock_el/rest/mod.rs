//! The REST-SSZ surface (refactor.md): routes, headers and statuses around the bodies in `ssz`.
//!
//! `/blobs/vN` are served whatever the fork of the chain's head or of the wall clock: refactor.md
//! versions them independently and lets an EL serve older revisions. A revision only knows blobs
//! with the proofs it is about (see [`super::blobs`]).

mod problem;
mod ssz;

use std::sync::{Mutex, MutexGuard, PoisonError};

use alloy_primitives::{B64, B256};
use alloy_rpc_types_engine::PayloadId;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri, header};
use http_body_util::Full;
use serde::Deserialize;
use serde_json::json;

use super::{
    chain::{Chain, Head},
    error::EngineError,
    faults::{Container, Operation},
    fork::Fork,
    identity::IDENTITY,
    server::{Answer, empty},
};
use problem::Problem;

/// What the capabilities tell under `limits`, and what is held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Limits {
    /// Bodies in one request, at most.
    pub bodies: u64,
    /// Blobs in one request, at most.
    pub blobs: u64,
    /// Bytes of a payload, at most.
    pub payload_bytes: u64,
}

impl Default for Limits {
    /// Those of the specification (refactor.md, "Constants"): 32, 128 and 64 MiB.
    fn default() -> Self {
        Self { bodies: 32, blobs: 128, payload_bytes: 1 << 26 }
    }
}

/// What the REST surface offers just now.
#[derive(Clone, Copy, Debug)]
pub(in crate::mock_el) struct Offer {
    pub(in crate::mock_el) limits: Limits,
    pub(in crate::mock_el) newest_fork: Fork,
}

/// An endpoint with what its URL says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::mock_el) enum Route {
    NewPayload,
    GetPayload { id: String },
    Forkchoice,
    BodiesByHash,
    BodiesByRange { query: Option<String> },
    Blobs(Revision),
    Capabilities,
    Identity,
}

/// A revision of the blobs endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mock_el) enum Revision {
    V1,
    V2,
    V3,
    V4,
}

impl Route {
    /// The endpoint of a request; the spec has no 405, so a known path with another method is none.
    pub(in crate::mock_el) fn of(method: &Method, uri: &Uri) -> Option<Self> {
        let path = uri.path().strip_prefix("/engine/v1/")?;
        let query = uri.query().map(ToOwned::to_owned);
        Some(match (method.as_str(), path) {
            ("POST", "payloads") => Self::NewPayload,
            ("POST", "forkchoice") => Self::Forkchoice,
            ("POST", "bodies/hash") => Self::BodiesByHash,
            ("GET", "bodies") => Self::BodiesByRange { query },
            ("POST", "blobs/v1") => Self::Blobs(Revision::V1),
            ("POST", "blobs/v2") => Self::Blobs(Revision::V2),
            ("POST", "blobs/v3") => Self::Blobs(Revision::V3),
            ("POST", "blobs/v4") => Self::Blobs(Revision::V4),
            ("GET", "capabilities") => Self::Capabilities,
            ("GET", "identity") => Self::Identity,
            ("GET", path) => {
                let id = path.strip_prefix("payloads/").filter(|id| !id.contains('/'))?;
                Self::GetPayload { id: id.to_owned() }
            }
            _ => return None,
        })
    }

    /// The operation it is an endpoint of.
    pub(in crate::mock_el) fn operation(&self) -> Operation {
        match self {
            Self::NewPayload => Operation::NewPayload,
            Self::GetPayload { .. } => Operation::GetPayload,
            Self::Forkchoice => Operation::ForkchoiceUpdated,
            Self::BodiesByHash => Operation::BodiesByHash,
            Self::BodiesByRange { .. } => Operation::BodiesByRange,
            Self::Blobs(_) => Operation::GetBlobs,
            Self::Capabilities => Operation::Capabilities,
            Self::Identity => Operation::Identity,
        }
    }

    /// Whether the request carries an SSZ body.
    fn takes_ssz(&self) -> bool {
        match self {
            Self::NewPayload | Self::Forkchoice | Self::BodiesByHash | Self::Blobs(_) => true,
            Self::GetPayload { .. }
            | Self::BodiesByRange { .. }
            | Self::Capabilities
            | Self::Identity => false,
        }
    }
}

/// What a served request has to say.
enum Reply {
    Ssz(Vec<u8>),
    /// SSZ that must not be cached.
    Snapshot(Vec<u8>),
    Json(Vec<u8>),
    Nothing,
}

/// Answers a request on a known endpoint.
pub(in crate::mock_el) fn answer(
    chain: &Mutex<Chain>,
    offer: Offer,
    route: &Route,
    headers: &HeaderMap,
    body: &[u8],
) -> Answer {
    match reply(chain, offer, route, headers, body) {
        Ok(Reply::Ssz(body)) => with_type("application/octet-stream", body),
        Ok(Reply::Snapshot(body)) => {
            let mut answer = with_type("application/octet-stream", body);
            answer
                .headers_mut()
                .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            answer
        }
        Ok(Reply::Json(body)) => with_type("application/json", body),
        Ok(Reply::Nothing) => empty(StatusCode::NO_CONTENT),
        Err(problem) => problem.into(),
    }
}

/// The block a body is about: that of the payload, or the head of the forkchoice state.
///
/// Both stand at the same place in every fork: the head comes first, the hash after the 472 bytes of
/// the payload's other fixed fields.
pub(in crate::mock_el) fn block_hash(route: &Route, body: &[u8]) -> Option<B256> {
    let at = match route {
        Route::NewPayload => {
            let offset = u32::from_le_bytes(*body.first_chunk()?);
            usize::try_from(offset).ok()?.checked_add(472)?
        }
        Route::Forkchoice => 0,
        _ => return None,
    };
    body.get(at..at.checked_add(32)?).map(B256::from_slice)
}

/// The container of an endpoint's answer.
pub(in crate::mock_el) fn container(route: &Route, headers: &HeaderMap) -> Option<Container> {
    let fork = only(headers, "eth-execution-version").and_then(Fork::named);
    Some(match route {
        Route::NewPayload => Container::PayloadStatus,
        Route::GetPayload { .. } => Container::BuiltPayload(fork?),
        Route::Forkchoice => Container::ForkchoiceUpdateResponse,
        Route::BodiesByHash | Route::BodiesByRange { .. } => Container::Bodies(fork?),
        Route::Blobs(Revision::V1) => Container::BlobsV1,
        Route::Blobs(Revision::V2 | Revision::V3) => Container::BlobsV2,
        Route::Blobs(Revision::V4) => Container::BlobsV4,
        Route::Capabilities | Route::Identity => return None,
    })
}

/// The answer on a path or method that is no endpoint.
pub(in crate::mock_el) fn not_found() -> Answer {
    Problem::NoEndpoint.into()
}

/// The answer to a body above the limit.
pub(in crate::mock_el) fn too_large(limit: usize) -> Answer {
    Problem::BodyTooLarge { limit }.into()
}

fn reply(
    chain: &Mutex<Chain>,
    offer: Offer,
    route: &Route,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Reply, Problem> {
    let limits = offer.limits;
    if route.takes_ssz() && only(headers, "content-type") != Some("application/octet-stream") {
        return Err(Problem::MediaType);
    }
    let mut chain: MutexGuard<'_, Chain> = chain.lock().unwrap_or_else(PoisonError::into_inner);
    match route {
        Route::NewPayload => {
            let fork = fork(&chain, offer, headers)?;
            new_payload(&mut chain, fork, body)
        }
        Route::GetPayload { id } => {
            // Before the fork: a malformed id is wrong in every one.
            let id = payload_id(id)?;
            get_payload(&chain, fork(&chain, offer, headers)?, id)
        }
        Route::Forkchoice => {
            let fork = fork(&chain, offer, headers)?;
            forkchoice(&mut chain, fork, body)
        }
        Route::BodiesByHash => bodies_by_hash(&chain, limits, fork(&chain, offer, headers)?, body),
        Route::BodiesByRange { query } => {
            let (from, count) = range(query.as_deref().unwrap_or_default())?;
            within(count, limits.bodies)?;
            bodies_by_range(&chain, fork(&chain, offer, headers)?, from, count)
        }
        Route::Blobs(revision) => blobs(&chain, limits, *revision, body),
        Route::Capabilities => capabilities(&chain, offer),
        Route::Identity => json_reply(&IDENTITY),
    }
}

impl Offer {
    /// The forks that the chain has and that are offered.
    fn forks(self, chain: &Chain) -> impl Iterator<Item = Fork> {
        chain.genesis().schedule().forks().filter(move |fork| *fork <= self.newest_fork)
    }
}

/// The fork the client names, if this chain has it and it is offered.
fn fork(chain: &Chain, offer: Offer, headers: &HeaderMap) -> Result<Fork, Problem> {
    let known = || offer.forks(chain);
    only(headers, "eth-execution-version")
        .and_then(Fork::named)
        .filter(|named| known().any(|fork| fork == *named))
        .ok_or_else(|| {
            let names: Vec<_> = known().map(Fork::name).collect();
            let expected = format!("Eth-Execution-Version must be one of {}", names.join(", "));
            EngineError::UnsupportedFork(expected).into()
        })
}

fn new_payload(chain: &mut Chain, fork: Fork, body: &[u8]) -> Result<Reply, Problem> {
    let new = ssz::new_payload(fork, body)?;
    let actual = chain.fork_at(new.payload.timestamp());
    if actual != fork {
        return Err(EngineError::wrong_fork("the payload", actual).into());
    }
    Ok(Reply::Ssz(ssz::payload_status(chain.new_payload(new))?))
}

fn get_payload(chain: &Chain, fork: Fork, id: PayloadId) -> Result<Reply, Problem> {
    let built = chain.payload(id, &[fork])?;
    Ok(Reply::Snapshot(ssz::built_payload(&built)))
}

fn forkchoice(chain: &mut Chain, fork: Fork, body: &[u8]) -> Result<Reply, Problem> {
    let update = ssz::forkchoice(fork, body)?;
    // A request that names the wrong fork is refused whole, its forkchoice state too.
    if let Some(attributes) = &update.attributes {
        let actual = chain.fork_at(attributes.timestamp);
        if actual != fork {
            return Err(EngineError::wrong_fork("the payload to build", actual).into());
        }
    }
    let head = chain.update_head(&update.state)?;
    let payload_id = match (&head, &update.attributes) {
        (Head::Valid(_), Some(attributes)) => Some(chain.start_build(attributes)?),
        _ => None,
    };
    if let Some(columns) = update.custody_columns {
        chain.set_custody(columns);
    }
    Ok(Reply::Ssz(ssz::forkchoice_response(head, payload_id)?))
}

fn bodies_by_hash(
    chain: &Chain,
    limits: Limits,
    fork: Fork,
    body: &[u8],
) -> Result<Reply, Problem> {
    within(ssz::list_len(body, 4), limits.bodies)?;
    let hashes = ssz::body_hashes(body)?;
    let blocks = hashes.iter().map(|hash| chain.block(hash)).collect();
    Ok(Reply::Ssz(ssz::bodies(fork, blocks)))
}

fn bodies_by_range(chain: &Chain, fork: Fork, from: u64, count: u64) -> Result<Reply, Problem> {
    if from == 0 || count == 0 {
        return Err(EngineError::InvalidParams("from and count must be at least 1".into()).into());
    }
    Ok(Reply::Ssz(ssz::bodies(fork, chain.range(from, count))))
}

fn blobs(chain: &Chain, limits: Limits, revision: Revision, body: &[u8]) -> Result<Reply, Problem> {
    let fixed_part = match revision {
        Revision::V1 | Revision::V2 | Revision::V3 => 4,
        Revision::V4 => 4 + 16,
    };
    within(ssz::list_len(body, fixed_part), limits.blobs)?;
    let pool = &chain.blobs;
    Ok(Reply::Ssz(match revision {
        Revision::V1 => ssz::blobs_v1(pool.v1(&ssz::blob_hashes(body)?))?,
        Revision::V2 => match pool.v2(&ssz::blob_hashes(body)?) {
            Some(all) => ssz::blobs_v2(all)?,
            None => return Ok(Reply::Nothing),
        },
        Revision::V3 => ssz::blobs_v3(pool.v3(&ssz::blob_hashes(body)?))?,
        Revision::V4 => {
            let (hashes, indices) = ssz::blob_cells(body)?;
            ssz::blobs_v4(pool.v4(&hashes, indices))?
        }
    }))
}

fn capabilities(chain: &Chain, offer: Offer) -> Result<Reply, Problem> {
    let forks: Vec<_> = offer.forks(chain).map(Fork::name).collect();
    let limits = offer.limits;
    json_reply(&json!({
        "supported_forks": forks,
        "fork_scoped_endpoints": ["payloads", "forkchoice", "bodies"],
        "independently_versioned": { "blobs": ["v1", "v2", "v3", "v4"] },
        "unscoped_endpoints": ["capabilities", "identity"],
        "limits": {
            "bodies.max_count": limits.bodies,
            "blobs.max_versioned_hashes": limits.blobs,
            "payload.max_bytes": limits.payload_bytes,
        },
    }))
}

fn json_reply(value: &impl serde::Serialize) -> Result<Reply, Problem> {
    serde_json::to_vec(value).map(Reply::Json).map_err(|error| Problem::Internal(error.to_string()))
}

fn within(asked: u64, limit: u64) -> Result<(), Problem> {
    if asked > limit { Err(EngineError::TooLarge { asked, limit }.into()) } else { Ok(()) }
}

/// The id in a path: `0x` and 16 hexadecimal digits.
fn payload_id(text: &str) -> Result<PayloadId, Problem> {
    let malformed =
        || Problem::InvalidRequest("a payload id is 0x and 16 hexadecimal digits".into());
    let digits = text.strip_prefix("0x").ok_or_else(malformed)?;
    let mut id = B64::ZERO;
    const_hex::decode_to_slice(digits, id.as_mut_slice()).map_err(|_| malformed())?;
    Ok(PayloadId(id))
}

/// `from` and `count` of a query: both there, once, in decimal, and nothing else.
fn range(query: &str) -> Result<(u64, u64), Problem> {
    let invalid =
        || Problem::InvalidRequest("the query must be from=<number>&count=<number>".into());
    let (mut from, mut count) = (None, None);
    for pair in query.split('&') {
        let (key, value) = pair.split_once('=').ok_or_else(invalid)?;
        let slot = match key {
            "from" => &mut from,
            "count" => &mut count,
            _ => return Err(invalid()),
        };
        // u64's own parser would take a plus sign.
        if !value.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(invalid());
        }
        let number: u64 = value.parse().map_err(|_| invalid())?;
        if slot.replace(number).is_some() {
            return Err(invalid());
        }
    }
    from.zip(count).ok_or_else(invalid)
}

/// The value of a header that is there once.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    value.to_str().ok()
}

fn with_type(content_type: &'static str, body: Vec<u8>) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}
