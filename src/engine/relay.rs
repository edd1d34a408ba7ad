//! Why a call goes to the EL's JSON-RPC as the CL's own bytes.

use crate::{
    jsonrpc::{self, Code},
    wire::{self, Fork, NotTranscodable},
};
use http::StatusCode;

/// Why a call is not, or no longer, carried over REST-SSZ. None of these is the CL's error: the
/// EL's JSON-RPC says what there is to say.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RelayReason {
    /// The method has no REST form here.
    #[error("the method is not translated")]
    NotTranslated,
    /// The EL offers no REST-SSZ, or is not known to yet.
    #[error("the EL is not known to offer REST-SSZ")]
    NoRest,
    /// The call cannot be written as SSZ without changing it.
    #[error("the parameters cannot be written as SSZ: {0}")]
    NotTranscodable(#[from] NotTranscodable),
    /// `params` is not the array of values that the method version defines.
    #[error("the method takes {wanted} parameters, the call has {got}")]
    ParamCount {
        /// What the method version defines.
        wanted: &'static str,
        /// What the call has.
        got: usize,
    },
    /// `params` is missing.
    #[error("the call has no parameters")]
    NoParams,
    /// The EL does not offer the containers of the call's fork.
    #[error("the EL does not offer the fork of the call over REST-SSZ")]
    ForkNotOffered,
    /// Bodies are missing that may be of a fork which the EL does not offer over REST.
    #[error("a body may be of a fork that the EL does not offer over REST-SSZ")]
    EraNotOffered,
    /// Method version and timestamp belong to different forks: -38005 is the EL's to say.
    #[error("timestamp {timestamp} does not belong to a fork of this method version")]
    ForkDisagrees {
        /// Seconds.
        timestamp: u64,
    },
    /// An inclusion list for a block of a given parent, which REST has no place for.
    #[error("an inclusion list on top of a given block cannot be asked for over REST")]
    ListOfParent,
    /// Nothing, or more, is asked for than is split here.
    #[error("{0} entries are asked for")]
    Count(usize),
    /// A range that begins at block 0 or has no length: -32602 is the EL's to say (shanghai.md).
    #[error("a range of {count} blocks from block {start} is asked for")]
    EmptyRange {
        /// First block.
        start: u64,
        /// Length in blocks.
        count: u64,
    },
    /// osaka.md ends `engine_getBlobsV1` with -38005; over REST some ELs serve it on.
    #[error("engine_getBlobsV1 ended with Osaka, which is JSON-RPC's to say")]
    EndedWithOsaka,
    /// The head moved while a range was being put together.
    #[error("the head moved between two exchanges")]
    HeadMoved,
    /// The EL has nothing over REST where it may have something over JSON-RPC.
    #[error("204 over REST")]
    NoContent,
    /// The body is larger than the EL's advertised `limits.payload.max_bytes`.
    #[error("the SSZ body of {bytes} bytes is over the EL's limit of {limit}")]
    TooLarge {
        /// Length of the SSZ body.
        bytes: usize,
        /// The EL's limit.
        limit: usize,
    },
    /// The blob hashes of a transaction cannot be read, so they cannot be compared.
    #[error("{0}")]
    UnreadableTransaction(#[from] super::versioned_hashes::Unreadable),
    /// The EL's REST answer cannot be trusted.
    #[error("bad REST answer: {0}")]
    BadAnswer(Box<str>),
    /// The exchange failed below the level of answers.
    #[error("{0}")]
    Failed(Box<str>),
    /// The EL refused over REST in words that the specification does not have.
    #[error("{0}")]
    Dialect(Deviation),
    /// An earlier answer of the endpoint proved that it deviates.
    #[error("the endpoint deviates from the specification")]
    EndpointDeviates,
    /// The EL refused over REST in a way that would mislead the CL.
    #[error("the EL refused over REST with HTTP {0}")]
    RestRefused(StatusCode),
    /// The EL called every fork header of the call's shape unsupported. Over JSON-RPC it may not be
    /// the fork that decides (a forkchoice is applied before its attributes are looked at).
    #[error("the EL calls the fork of the call unsupported over REST")]
    UnsupportedFork,
    /// The EL does not know, or know any more, the build over REST.
    #[error("the EL does not know the payload over REST-SSZ")]
    UnknownPayload,
    /// The EL called a block invalid under a fork header that was a guess.
    #[error("INVALID without a valid ancestor under the guessed fork {0}")]
    InvalidUnderGuess(Fork),
}

/// What an answer says of the endpoint that gave it, beyond the call at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: the next call may fare better.
    Open,
    /// The endpoint does not speak as the specification has it, whatever it is asked.
    Deviates,
    /// The same, if JSON-RPC has something for the same call.
    DeviatesIfJsonRpcHas,
}

impl Verdict {
    /// Whether the endpoint is known to deviate, now that JSON-RPC has answered the same call.
    ///
    /// `json_result` is the raw text of that answer's `result`, if it has one. A list of nothing
    /// but `null` is nothing.
    pub fn is_proof(self, json_result: Option<&[u8]>) -> bool {
        let has_any = |result| {
            let most = wire::schema::MAX_BLOBS_REQUEST;
            let entries = wire::json_array(result, most).unwrap_or_default();
            entries.into_iter().any(|entry| !wire::is_null(entry))
        };
        match self {
            Self::Open => false,
            Self::Deviates => true,
            Self::DeviatesIfJsonRpcHas => json_result.is_some_and(has_any),
        }
    }
}

/// A refusal that the specification does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{seen} where {expected} was due")]
pub struct Deviation {
    /// What the EL said, in a few words.
    pub seen: Box<str>,
    /// What the specification has in its place.
    pub expected: &'static str,
}

impl RelayReason {
    /// A label for metrics; the set is bounded.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::NotTranslated => "not_translated",
            Self::NoRest => "no_rest",
            Self::NotTranscodable(_) => "not_transcodable",
            Self::ParamCount { .. } | Self::NoParams | Self::ListOfParent => "params",
            Self::ForkNotOffered => "fork_not_offered",
            Self::EraNotOffered => "era_not_offered",
            Self::ForkDisagrees { .. } => "fork_disagrees",
            Self::Count(_) | Self::EmptyRange { .. } => "count",
            Self::EndedWithOsaka => "ended_with_osaka",
            Self::HeadMoved => "head_moved",
            Self::NoContent => "no_content",
            Self::TooLarge { .. } => "too_large",
            Self::UnreadableTransaction(_) => "unreadable_transaction",
            Self::BadAnswer(_) => "bad_answer",
            Self::Failed(_) => "failed",
            Self::Dialect(_) => "dialect",
            Self::EndpointDeviates => "endpoint_deviates",
            Self::RestRefused(_) => "rest_refused",
            Self::UnsupportedFork => "unsupported_fork",
            Self::UnknownPayload => "unknown_payload",
            Self::InvalidUnderGuess(_) => "invalid_under_guess",
        }
    }

    /// Whether the EL, and not the call, is the reason.
    pub const fn is_fault_of_el(&self) -> bool {
        matches!(
            self,
            Self::BadAnswer(_) | Self::Dialect(_) | Self::Failed(_) | Self::RestRefused(_)
        )
    }

    /// What it says of the endpoint that was asked.
    pub const fn verdict(&self) -> Verdict {
        match self {
            Self::BadAnswer(_) | Self::Dialect(_) => Verdict::Deviates,
            Self::NoContent => Verdict::DeviatesIfJsonRpcHas,
            _ => Verdict::Open,
        }
    }

    /// What the specification has in place of an answer that proves a deviation.
    pub const fn expected(&self) -> &'static str {
        match self {
            Self::Dialect(deviation) => deviation.expected,
            Self::NoContent => "200 with what JSON-RPC has for the same call",
            _ => "200 with a body of the endpoint's own media type and container",
        }
    }

    /// What to tell the CL when the EL has no JSON-RPC to relay to.
    pub fn without_json_rpc(&self) -> jsonrpc::Error {
        let code = match self {
            Self::NotTranscodable(_)
            | Self::ParamCount { .. }
            | Self::NoParams
            | Self::ListOfParent
            | Self::EmptyRange { .. } => Code::INVALID_PARAMS,
            Self::ForkNotOffered
            | Self::ForkDisagrees { .. }
            | Self::EndedWithOsaka
            | Self::UnsupportedFork => Code::UNSUPPORTED_FORK,
            Self::TooLarge { .. }
            | Self::Count(1..)
            | Self::RestRefused(StatusCode::PAYLOAD_TOO_LARGE) => Code::TOO_LARGE,
            Self::UnknownPayload => Code::UNKNOWN_PAYLOAD,
            Self::NotTranslated => Code::METHOD_NOT_FOUND,
            _ => Code::INTERNAL,
        };
        jsonrpc::Error::new(code, format!("{self}, and the EL has no JSON-RPC to ask"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_cannot_be_the_endpoints_proves_that_it_deviates() {
        let seen = Deviation { seen: "HTTP 405 (no content type)".into(), expected: "200" };
        for reason in [RelayReason::BadAnswer("trailing bytes".into()), RelayReason::Dialect(seen)]
        {
            assert!(reason.verdict().is_proof(None), "{reason}");
            assert!(reason.is_fault_of_el(), "{reason}");
        }
    }

    #[test]
    fn what_depends_on_the_call_or_the_moment_proves_nothing() {
        for reason in [
            RelayReason::NotTranslated,
            RelayReason::NoRest,
            RelayReason::NoParams,
            RelayReason::Count(0),
            RelayReason::HeadMoved,
            RelayReason::UnsupportedFork,
            RelayReason::InvalidUnderGuess(Fork::Osaka),
            RelayReason::RestRefused(StatusCode::INTERNAL_SERVER_ERROR),
            RelayReason::EndpointDeviates,
        ] {
            assert!(!reason.verdict().is_proof(Some(b"[1]")), "{reason}");
        }
    }

    #[test]
    fn nothing_over_rest_is_a_deviation_only_if_json_rpc_has_something() {
        let verdict = RelayReason::NoContent.verdict();
        for nothing in [None, Some(&b"null"[..]), Some(b"[]"), Some(b"[null, null]"), Some(b"{")] {
            assert!(!verdict.is_proof(nothing), "{nothing:?}");
        }
        assert!(verdict.is_proof(Some(br#"[null,{"blob_cells":[],"proofs":[]}]"#)));
    }
}
