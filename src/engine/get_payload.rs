//! `engine_getPayloadV1` to `V6` → `GET /payloads/{id}`.

use super::{
    Answer, Context, Exchange, Problem, ProblemKind, RelayReason, Replay, Step,
    exchange::{Endpoint, ssz_body},
    method::{Method, RestEndpoint, Version},
    params::{exactly, params},
};
use crate::wire::{self, Fork, schema};
use bytes::Bytes;
use http::Response;

/// A build being asked for.
#[derive(Debug)]
pub(super) struct GetPayload {
    version: Version,
    id: [u8; 8],
    fork: Fork,
    /// The other fork that the method version serves, where it is not known which one was built.
    other: Option<Fork>,
}

impl GetPayload {
    pub(super) fn begin(
        version: Version,
        raw: Option<&[u8]>,
        context: Context<'_>,
    ) -> Result<(Self, Exchange), RelayReason> {
        let offer = context.offer.ok_or(RelayReason::NoRest)?;
        let [id] = exactly(&params(raw)?)?;
        let id = wire::json_data(id)?;
        let forks = Method::GetPayload(version).forks();
        let built = context.memory.build(id).map(|build| build.fork);
        let built = built.filter(|fork| forks.contains(fork) && offer.has(*fork));
        let mut offered = forks.iter().rev().copied().filter(|fork| offer.has(*fork));
        let (fork, other) = match built {
            Some(fork) => (fork, None),
            None => (offered.next().ok_or(RelayReason::ForkNotOffered)?, offered.next()),
        };
        let state = Self { version, id, fork, other };
        let exchange = state.exchange(context);
        Ok((state, exchange))
    }

    fn exchange(&self, context: Context<'_>) -> Exchange {
        Exchange::new(Endpoint::Payload(self.fork, self.id), Replay::Harmless, context.memory)
    }

    pub(super) fn resume(
        &mut self,
        answer: &Response<Bytes>,
        context: Context<'_>,
    ) -> Result<Step, RelayReason> {
        match ssz_body(answer)? {
            Some(body) => self.built(body, context),
            None => self.refused(&Problem::read(answer), context),
        }
    }

    fn built(&self, ssz: &[u8], context: Context<'_>) -> Result<Step, RelayReason> {
        let container = schema::BUILT_PAYLOAD;
        let result = match self.version {
            // paris.md: the bare payload.
            Version::V1 => wire::member_to_json(container, self.fork, ssz, "executionPayload")?,
            _ => wire::to_json(container, self.fork, ssz)?,
        };
        // The EL serves a build only under its own fork, so this tells where the chain is.
        if let Some(build) = context.memory.build(self.id) {
            context.memory.learn(build.timestamp, self.fork);
        }
        Ok(Step::Answer(Answer::Result(result)))
    }

    fn refused(&mut self, problem: &Problem, context: Context<'_>) -> Result<Step, RelayReason> {
        match problem.kind {
            ProblemKind::UnsupportedFork => match self.other.take() {
                Some(other) => {
                    self.fork = other;
                    Ok(Step::send(self.exchange(context)))
                }
                None => Err(problem.to_relay(RestEndpoint::PayloadFetch)),
            },
            // Over REST an id may be gone after the first fetch (refactor.md, "Build a payload"), or
            // its build was begun over JSON-RPC: there it may still be known.
            ProblemKind::UnknownPayload => Err(RelayReason::UnknownPayload),
            ProblemKind::Auth(_) | ProblemKind::NotReady => Ok(Step::Answer(problem.to_answer())),
            _ => Err(problem.to_relay(RestEndpoint::PayloadFetch)),
        }
    }
}
