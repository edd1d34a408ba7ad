//! The meaning of a call: which REST exchanges a method is, under which fork header, and what the
//! EL's answer means to the CL. No I/O: a [`Call`] is a small state machine that says what to do
//! next ([`Step`]) and is told what the EL said ([`Said`]).

mod blobs;
mod bodies;
mod bounds;
mod capabilities;
mod client_version;
mod exchange;
mod forkchoice;
mod get_payload;
mod header_fork;
mod horizon;
mod inclusion_list;
mod memory;
mod method;
mod new_payload;
mod offer;
mod params;
mod payload_status;
mod problem;
mod relay;
mod schedule;
mod versioned_hashes;

pub use blobs::requested_cells;
pub use bounds::Bounds;
pub use exchange::{Exchange, Replay};
pub use horizon::Horizon;
pub use inclusion_list::InclusionListPath;
pub use memory::{Build, Memory};
pub use method::{ListedEndpoint, Method, Order, RestEndpoint, Version};
pub use offer::{Limits, Offer};
pub use problem::{Problem, ProblemKind};
pub use relay::{Deviation, RelayReason, Verdict};
pub use schedule::{Network, Schedule, ScheduleError};

use crate::jsonrpc;
use bytes::Bytes;
use http::StatusCode;

/// What to do next for a call.
#[derive(Debug)]
pub enum Step {
    /// Send this to the EL over REST-SSZ and tell the call what it said.
    Send(Box<Exchange>),
    /// Send the CL's own bytes to the EL's JSON-RPC and tell the call its result, or that there is
    /// no JSON-RPC; an error of its is the CL's answer. With the reason, where it is not the method
    /// itself.
    Consult(Option<RelayReason>),
    /// Send the CL's own bytes to the EL's JSON-RPC; its answer is the CL's answer.
    Relay(RelayReason),
    /// The call is over: this is the CL's answer.
    Answer(Answer),
}

impl Step {
    fn send(exchange: Exchange) -> Self {
        Self::Send(Box::new(exchange))
    }
}

/// The end of a call that was not relayed.
#[derive(Debug)]
pub enum Answer {
    /// Raw JSON text of `result`.
    Result(Bytes),
    /// A JSON-RPC error.
    Error(jsonrpc::Error),
    /// The EL refused the token: the CL gets the same HTTP status (401 or 403).
    Refused(StatusCode),
}

/// What the EL said to a [`Step::Send`] or [`Step::Consult`].
#[derive(Debug)]
pub enum Said {
    /// Its whole answer over REST.
    Rest(http::Response<Bytes>),
    /// Its JSON-RPC answer: the raw text of `result`.
    JsonResult(Bytes),
    /// It has no JSON-RPC.
    NoJsonRpc,
}

/// What a call may know.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// What was learned from earlier calls.
    pub memory: &'a Memory,
    /// What the EL offers over REST-SSZ; `None`: nothing.
    pub offer: Option<&'a Offer>,
}

/// One call of the CL on its way.
#[derive(Debug)]
pub struct Call(State);

#[derive(Debug)]
enum State {
    NewPayload(new_payload::NewPayload),
    Forkchoice(forkchoice::Forkchoice),
    GetPayload(get_payload::GetPayload),
    BodiesByHash(bodies::BodiesByHash),
    BodiesByRange(bodies::BodiesByRange),
    Blobs(blobs::Blobs),
    InclusionList(inclusion_list::InclusionList),
    ClientVersion,
    Capabilities,
    /// Relayed or answered: there is nothing more to say.
    Over,
}

impl Call {
    /// Begins a call. `params` is the raw JSON text of the request's `params`, if it has any.
    pub fn begin(method: Method, params: Option<&[u8]>, context: Context<'_>) -> (Self, Step) {
        let begun = match method {
            Method::NewPayload(version) => new_payload::NewPayload::begin(version, params, context)
                .map(|(state, step)| (state.map_or(State::Over, State::NewPayload), step)),
            Method::ForkchoiceUpdated(version) => {
                forkchoice::Forkchoice::begin(version, params, context)
                    .map(|(state, exchange)| (State::Forkchoice(state), Step::send(exchange)))
            }
            Method::GetPayload(version) => get_payload::GetPayload::begin(version, params, context)
                .map(|(state, exchange)| (State::GetPayload(state), Step::send(exchange))),
            Method::BodiesByHash(version) => bodies::BodiesByHash::begin(version, params, context)
                .map(|(state, exchange)| (State::BodiesByHash(state), Step::send(exchange))),
            Method::BodiesByRange(version) => {
                bodies::BodiesByRange::begin(version, params, context)
                    .map(|(state, exchange)| (State::BodiesByRange(state), Step::send(exchange)))
            }
            Method::Blobs(version) => blobs::Blobs::begin(version, params, context)
                .map(|(state, exchange)| (State::Blobs(state), Step::send(exchange))),
            Method::InclusionList => inclusion_list::InclusionList::begin(params, context)
                .map(|(state, exchange)| (State::InclusionList(state), Step::send(exchange))),
            Method::ClientVersion => client_version::begin(params, context)
                .map(|exchange| (State::ClientVersion, Step::send(exchange))),
            Method::ExchangeCapabilities => Ok((State::Capabilities, Step::Consult(None))),
        };
        match begun {
            Ok((state, step)) => (Self(state), step),
            Err(reason) => (Self(State::Over), Step::Relay(reason)),
        }
    }

    /// Goes on with what the EL said.
    pub fn resume(&mut self, said: Said, context: Context<'_>) -> Step {
        let step = match (&mut self.0, said) {
            (State::NewPayload(state), Said::Rest(answer)) => state.resume(&answer, context),
            (State::Forkchoice(state), Said::Rest(answer)) => state.resume(&answer, context),
            (State::GetPayload(state), Said::Rest(answer)) => state.resume(&answer, context),
            (State::BodiesByHash(state), Said::Rest(answer)) => state.resume(&answer, context),
            (State::BodiesByRange(state), Said::Rest(answer)) => state.resume(&answer, context),
            (State::Blobs(state), Said::Rest(answer)) => state.resume(&answer, context),
            (State::InclusionList(state), Said::Rest(answer)) => state.resume(&answer, context),
            (State::ClientVersion, Said::Rest(answer)) => client_version::resume(&answer),
            (State::BodiesByHash(_) | State::BodiesByRange(_), Said::JsonResult(result)) => {
                Ok(Step::Answer(Answer::Result(result)))
            }
            (State::BodiesByHash(state), Said::NoJsonRpc) => Ok(state.end()),
            (State::BodiesByRange(state), Said::NoJsonRpc) => Ok(state.end()),
            (State::Capabilities, Said::JsonResult(result)) => {
                Ok(Step::Answer(capabilities::of_json_rpc(result)))
            }
            (State::Capabilities, Said::NoJsonRpc) => {
                capabilities::of_offer(context.offer).map(Step::Answer)
            }
            _ => Err(RelayReason::BadAnswer("an answer to nothing that was asked".into())),
        };
        step.unwrap_or_else(Step::Relay)
    }
}
