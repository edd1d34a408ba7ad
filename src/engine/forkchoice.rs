//! `engine_forkchoiceUpdatedV1` to `V5` → `POST /forkchoice`.

use super::{
    Answer, Build, Context, Exchange, Problem, ProblemKind, RelayReason, Replay, Step,
    exchange::{Endpoint, INVALID, VALID, bad_answer, ssz_body},
    header_fork::{self, Certainty, HeaderFork},
    method::{Method, RestEndpoint, Version},
    params::{note_time, params, shapes, timestamp},
    payload_status,
};
use crate::wire::{self, Fork, Source, schema};
use bytes::Bytes;
use http::Response;

/// A forkchoice on its way to the EL.
#[derive(Debug)]
pub(super) struct Forkchoice {
    version: Version,
    header: HeaderFork,
    body: Bytes,
    head: [u8; 32],
    /// Timestamp of the attributes in seconds, when a build is asked for.
    build_at: Option<u64>,
}

/// The parameters, with `null` and left out being the same (JSON-06).
struct Parts<'a> {
    state: &'a [u8],
    attributes: Option<&'a [u8]>,
    custody: Option<&'a [u8]>,
}

impl Forkchoice {
    pub(super) fn begin(
        version: Version,
        raw: Option<&[u8]>,
        context: Context<'_>,
    ) -> Result<(Self, Exchange), RelayReason> {
        let params = params(raw)?;
        let parts = Parts::of(version, &params)?;
        let method = Method::ForkchoiceUpdated(version);
        let head = wire::json_member(parts.state, "headBlockHash")?.unwrap_or_default();
        let head = wire::json_data(head)?;
        let build_at = parts.attributes.map(timestamp).transpose()?;
        let header = match (parts.attributes, build_at) {
            (Some(attributes), Some(timestamp)) => {
                let shapes = shapes(method, attributes)?;
                note_time(timestamp, shapes, context);
                header_fork::of_timestamp(shapes, timestamp, context)?
            }
            _ => header_fork::of_head(method, head, parts.custody, context)?,
        };
        let body = parts.to_ssz(header.fork)?;
        let state = Self { version, header, body, head, build_at };
        let exchange = state.exchange(context);
        Ok((state, exchange))
    }

    fn exchange(&self, context: Context<'_>) -> Exchange {
        let replay =
            if self.build_at.is_some() { Replay::OnlyIfNeverSent } else { Replay::Harmless };
        let endpoint = Endpoint::Forkchoice(self.header.fork, self.body.clone());
        Exchange::new(endpoint, replay, context.memory)
    }

    pub(super) fn resume(
        &mut self,
        answer: &Response<Bytes>,
        context: Context<'_>,
    ) -> Result<Step, RelayReason> {
        match ssz_body(answer)? {
            Some(body) => self.updated(body, context),
            None => self.refused(&Problem::read(answer), context),
        }
    }

    fn updated(&self, ssz: &[u8], context: Context<'_>) -> Result<Step, RelayReason> {
        let fork = self.header.fork;
        let container = payload_status::container(Method::ForkchoiceUpdated(self.version));
        let status = wire::field(container, fork, ssz, &["payloadStatus"]).unwrap_or_default();
        let shape = payload_status::shape(status, fork);
        let result = wire::to_json(container, shape, ssz)?;
        let status = |name| wire::field(container, shape, ssz, &["payloadStatus", name]);
        let id = wire::field(container, shape, ssz, &["payloadId"]).unwrap_or_default();
        let latest_valid = status("latestValidHash").unwrap_or_default();
        match status("status") {
            // paris.md, `engine_forkchoiceUpdatedV1`, points 2 and 8: VALID carries the head's own
            // hash, INVALID an ancestor's, and only VALID begins a build.
            Some(VALID) if latest_valid != self.head => {
                return Err(bad_answer("VALID without the hash of the head"));
            }
            Some(INVALID) if latest_valid == self.head => {
                return Err(bad_answer("INVALID with the hash of the head as the latest valid"));
            }
            Some(VALID) => {}
            _ if !id.is_empty() => return Err(bad_answer("a build without a valid head")),
            _ => {}
        }
        if let Ok(id) = <[u8; 8]>::try_from(id) {
            let timestamp = self.build_at.ok_or_else(|| bad_answer("a build nobody asked for"))?;
            context.memory.note_build(id, Build { fork, timestamp });
            if self.header.sibling.is_none() {
                context.memory.learn(timestamp, fork);
            }
        }
        Ok(Step::Answer(Answer::Result(result)))
    }

    fn refused(&mut self, problem: &Problem, context: Context<'_>) -> Result<Step, RelayReason> {
        match problem.kind {
            ProblemKind::UnsupportedFork => match self.header.sibling.take() {
                Some(sibling) => {
                    self.header.fork = sibling;
                    Ok(Step::send(self.exchange(context)))
                }
                // Nothing was applied. JSON-RPC applies the forkchoice before it looks at the
                // fork of the attributes, and without attributes no fork is wrong to it.
                None => Err(problem.to_relay(RestEndpoint::Forkchoice)),
            },
            // Under a header of another fork the attributes have the wrong shape.
            ProblemKind::InvalidAttributes
                if self.build_at.is_some() && self.header.certainty == Certainty::Guess =>
            {
                Err(problem.to_relay(RestEndpoint::Forkchoice))
            }
            // The EL read the call, and after invalid attributes it has applied the forkchoice
            // already (paris.md): asking again would be a second command.
            ProblemKind::InvalidForkchoice
            | ProblemKind::ReorgTooDeep
            | ProblemKind::InvalidAttributes
            | ProblemKind::InvalidBody
            | ProblemKind::Auth(_)
            | ProblemKind::NotReady => Ok(Step::Answer(problem.to_answer())),
            ProblemKind::UnknownPayload | ProblemKind::Other(_) => {
                Err(problem.to_relay(RestEndpoint::Forkchoice))
            }
        }
    }
}

impl<'a> Parts<'a> {
    fn of(version: Version, params: &[&'a [u8]]) -> Result<Self, RelayReason> {
        let given = |value: &&'a [u8]| Some(*value).filter(|value| !wire::is_null(value));
        match (version, params) {
            (_, [state]) => Ok(Self { state, attributes: None, custody: None }),
            (_, [state, attributes]) => {
                Ok(Self { state, attributes: given(attributes), custody: None })
            }
            (Version::V4 | Version::V5, [state, attributes, custody]) => {
                Ok(Self { state, attributes: given(attributes), custody: given(custody) })
            }
            _ => Err(RelayReason::ParamCount {
                wanted: if version >= Version::V4 { "1 to 3" } else { "1 or 2" },
                got: params.len(),
            }),
        }
    }

    fn to_ssz(&self, fork: Fork) -> Result<Bytes, RelayReason> {
        const NULL: &[u8] = b"null";
        let mut fields = vec![self.state, self.attributes.unwrap_or(NULL)];
        if fork >= Fork::Amsterdam {
            fields.push(self.custody.unwrap_or(NULL));
        }
        Ok(wire::to_ssz(schema::FORKCHOICE_UPDATE, fork, Source::Fields(&fields))?)
    }
}
