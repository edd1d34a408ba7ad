//! `engine_getClientVersionV1` → `GET /identity`.

use super::{
    Answer, Context, Exchange, Problem, ProblemKind, RelayReason, Replay, Step,
    exchange::{Endpoint, bad_answer, is_ok_with},
    method::RestEndpoint,
    params::{exactly, params},
};
use bytes::Bytes;
use http::{HeaderValue, Response};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// What the header needs of the CL's own `ClientVersionV1` (identification.md).
#[derive(Deserialize)]
struct ClientVersion<'a> {
    #[serde(borrow)]
    code: Cow<'a, str>,
    #[serde(borrow)]
    version: Cow<'a, str>,
}

/// The EL's list, as the spec has it or wrapped as go-ethereum has it.
#[derive(Deserialize)]
struct Wrapped<'a> {
    #[serde(borrow)]
    versions: &'a RawValue,
}

/// Also notes who the CL is, for the header of all later exchanges.
pub(super) fn begin(raw: Option<&[u8]>, context: Context<'_>) -> Result<Exchange, RelayReason> {
    context.offer.ok_or(RelayReason::NoRest)?;
    let [own] = exactly(&params(raw)?)?;
    // A CL that does not say who it is by the rules is the EL's to answer.
    let own = own_version(own).ok_or(RelayReason::NoParams)?;
    if let Ok(header) = HeaderValue::from_str(&format!("{}/{}", own.code, own.version)) {
        context.memory.note_client_version(header);
    }
    Ok(Exchange::new(Endpoint::Identity, Replay::Harmless, context.memory))
}

/// Hands the EL's list on as it is: the form of `commit`, for one, differs between ELs.
pub(super) fn resume(answer: &Response<Bytes>) -> Result<Step, RelayReason> {
    if !answer.status().is_success() {
        let problem = Problem::read(answer);
        return match problem.kind {
            ProblemKind::Auth(_) => Ok(Step::Answer(problem.to_answer())),
            _ => Err(problem.to_relay(RestEndpoint::Identity)),
        };
    }
    if !is_ok_with(answer, "application/json") {
        return Err(bad_answer("an identity that is not JSON"));
    }
    let body = answer.body();
    let list = versions(body).ok_or_else(|| bad_answer("an identity that is not a list"))?;
    Ok(Step::Answer(Answer::Result(body.slice_ref(list.as_bytes()))))
}

/// Of an object only: serde would take an array for the members in their order.
fn own_version(own: &[u8]) -> Option<ClientVersion<'_>> {
    own.starts_with(b"{").then(|| serde_json::from_slice(own).ok())?
}

fn versions(body: &[u8]) -> Option<&str> {
    let document: &RawValue = serde_json::from_slice(body).ok()?;
    let list = match document.get() {
        object if object.starts_with('{') => {
            serde_json::from_str::<Wrapped<'_>>(object).ok()?.versions.get()
        }
        list => list,
    };
    list.starts_with('[').then_some(list)
}
