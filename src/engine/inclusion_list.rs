//! `engine_getInclusionListV1` → `GET /inclusion-list`.
//!
//! The REST-SSZ specification does not have the endpoint yet, and the ELs that serve it do not agree
//! on its path.

use super::{
    Answer, Context, Exchange, Problem, ProblemKind, RelayReason, Replay, Step,
    exchange::{Endpoint, ssz_body},
    method::{Method, RestEndpoint},
    params::params,
};
use crate::wire::{self, Fork, schema};
use bytes::Bytes;
use http::{Response, StatusCode};

/// Where an EL serves inclusion lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InclusionListPath {
    /// `/inclusion-list`.
    Hyphen,
    /// `/inclusion_list`.
    Underscore,
}

impl InclusionListPath {
    /// The path below the REST base.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Hyphen => "/inclusion-list",
            Self::Underscore => "/inclusion_list",
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::Hyphen => Self::Underscore,
            Self::Underscore => Self::Hyphen,
        }
    }
}

/// An inclusion list being asked for.
#[derive(Debug)]
pub(super) struct InclusionList {
    fork: Fork,
    path: InclusionListPath,
    /// The path to try when the EL does not know this one.
    other: Option<InclusionListPath>,
}

impl InclusionList {
    pub(super) fn begin(
        raw: Option<&[u8]>,
        context: Context<'_>,
    ) -> Result<(Self, Exchange), RelayReason> {
        let offer = context.offer.ok_or(RelayReason::NoRest)?;
        match raw.map(|raw| params(Some(raw))).transpose()?.unwrap_or_default()[..] {
            [] => {}
            // A newer draft's parent, which the list has to fit on: `null` is the head. No path of
            // REST that ELs agree on has a place for it.
            [parent] if wire::is_null(parent) => {}
            [_] => return Err(RelayReason::ListOfParent),
            ref more => return Err(RelayReason::ParamCount { wanted: "0 or 1", got: more.len() }),
        }
        let mut forks = Method::InclusionList.forks().iter().rev().copied();
        let fork = forks.find(|fork| offer.has(*fork)).ok_or(RelayReason::ForkNotOffered)?;
        let path = context.memory.inclusion_list_path().unwrap_or(InclusionListPath::Hyphen);
        let state = Self { fork, path, other: Some(path.other()) };
        let exchange = state.exchange(context);
        Ok((state, exchange))
    }

    fn exchange(&self, context: Context<'_>) -> Exchange {
        let endpoint = Endpoint::InclusionList(self.fork, self.path);
        Exchange::new(endpoint, Replay::Harmless, context.memory)
    }

    pub(super) fn resume(
        &mut self,
        answer: &Response<Bytes>,
        context: Context<'_>,
    ) -> Result<Step, RelayReason> {
        if answer.status() == StatusCode::NO_CONTENT {
            // No list now says nothing of the next one.
            return Err(RelayReason::RestRefused(answer.status()));
        }
        if let Some(ssz) = ssz_body(answer)? {
            let result = wire::to_json(schema::INCLUSION_LIST_RESPONSE, self.fork, ssz)?;
            context.memory.note_inclusion_list_path(self.path);
            return Ok(Step::Answer(Answer::Result(result)));
        }
        let problem = Problem::read(answer);
        match problem.kind {
            ProblemKind::Other(StatusCode::NOT_FOUND) => match self.other.take() {
                Some(other) => {
                    self.path = other;
                    Ok(Step::send(self.exchange(context)))
                }
                None => Err(problem.to_relay(RestEndpoint::InclusionList)),
            },
            ProblemKind::Auth(_) => Ok(Step::Answer(problem.to_answer())),
            _ => Err(problem.to_relay(RestEndpoint::InclusionList)),
        }
    }
}
