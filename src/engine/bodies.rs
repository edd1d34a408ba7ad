//! `engine_getPayloadBodiesByHashV1/V2` → `POST /bodies/hash`, `engine_getPayloadBodiesByRangeV1/V2` →
//! `GET /bodies?from&count`.
//!
//! Over REST an answer holds only blocks of the fork that is asked for, over JSON-RPC those of all
//! (refactor.md, "Historical bodies"). So the forks are asked one after the other, newest first, in
//! pieces that the EL takes, and the entries are merged in the order of the request. What is missing
//! then is known to be so only if every fork that the chain has was asked; else JSON-RPC is.

mod by_hash;
mod by_range;
mod era_filter;

pub(super) use by_hash::BodiesByHash;
pub(super) use by_range::BodiesByRange;

use super::{
    Answer, Context, Problem, ProblemKind, RelayReason, Step,
    exchange::{bad_answer, ssz_body},
    method::{RestEndpoint, Version},
};
use crate::wire::{self, Container, Fork, schema};
use bytes::Bytes;
use http::Response;

/// More than this is the EL's own to serve or to refuse (-38004): no EL takes more, and each 32 are
/// an exchange per fork.
const MAX_ENTRIES: usize = 1024;

/// The raw JSON of a body; `None`: not available under the forks asked so far.
type Entry = Option<Bytes>;

/// V1 prints no block access list, V2 does (amsterdam.md).
fn container(version: Version) -> &'static Container {
    match version {
        Version::V1 => schema::BODIES_RESPONSE_V1,
        _ => schema::BODIES_RESPONSE_V2,
    }
}

/// The entries of a 200; what to do instead for anything else.
fn entries(
    answer: &Response<Bytes>,
    version: Version,
    fork: Fork,
) -> Result<Result<Vec<Entry>, Step>, RelayReason> {
    let Some(ssz) = ssz_body(answer)? else {
        let problem = Problem::read(answer);
        return match problem.kind {
            ProblemKind::Auth(_) => Ok(Err(Step::Answer(problem.to_answer()))),
            _ => Err(problem.to_relay(RestEndpoint::Bodies)),
        };
    };
    let printed = wire::to_json(container(version), fork, ssz)?;
    let texts = wire::json_array(&printed, schema::MAX_BODIES_REQUEST)?;
    let entry = |text: &[u8]| (!wire::is_null(text)).then(|| printed.slice_ref(text));
    Ok(Ok(texts.into_iter().map(entry).collect()))
}

/// The JSON array of all entries.
fn print(entries: &[Entry]) -> Bytes {
    const NULL: &[u8] = b"null";
    let texts = || entries.iter().map(|entry| entry.as_deref().unwrap_or(NULL));
    let length = 2 + texts().map(|text| text.len() + 1).sum::<usize>();
    let mut printed = Vec::with_capacity(length);
    printed.push(b'[');
    for (place, text) in texts().enumerate() {
        if place > 0 {
            printed.push(b',');
        }
        printed.extend_from_slice(text);
    }
    printed.push(b']');
    printed.into()
}

/// How many entries may be asked for at once.
fn piece(context: Context<'_>) -> usize {
    let advertised =
        context.offer.map_or(schema::MAX_BODIES_REQUEST, |offer| offer.limits().bodies_max);
    advertised.clamp(1, schema::MAX_BODIES_REQUEST)
}

/// The forks to ask, newest first.
fn forks(context: Context<'_>) -> Result<Vec<Fork>, RelayReason> {
    let offer = context.offer.ok_or(RelayReason::NoRest)?;
    let forks: Vec<_> = offer.forks().iter().rev().copied().collect();
    if forks.is_empty() { Err(RelayReason::ForkNotOffered) } else { Ok(forks) }
}

/// The end of a call that found these, once every fork offered was asked for the others.
fn end(found: &[Entry], context: Context<'_>) -> Step {
    let offers_all = || context.offer.is_some_and(|offer| offer.covers(context.memory.eras()));
    if found.iter().all(Option::is_some) || offers_all() {
        Step::Answer(Answer::Result(print(found)))
    } else {
        Step::Consult(Some(RelayReason::EraNotOffered))
    }
}

fn wrong_number(got: usize, wanted: usize) -> RelayReason {
    bad_answer(format_args!("{got} bodies where {wanted} were asked for"))
}
