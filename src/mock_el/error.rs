//! What an engine call can be refused with, in either dialect.

use thiserror::Error;

use super::fork::Fork;

/// A refused call. The REST and JSON-RPC surfaces each have their own name for every one of these
/// (refactor.md, "Error model"; common.md, "Errors").
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum EngineError {
    #[error("payload does not exist")]
    UnknownPayload,
    #[error("{0}")]
    InvalidForkchoice(String),
    #[error("{0}")]
    InvalidAttributes(String),
    #[error("{asked} asked for, {limit} allowed")]
    TooLarge { asked: u64, limit: u64 },
    #[error("{0}")]
    UnsupportedFork(String),
    #[error("{0}")]
    ReorgTooDeep(String),
    #[error("{0}")]
    InvalidParams(String),
}

impl EngineError {
    /// The call is made for other forks than the one the block or payload belongs to.
    pub(super) fn wrong_fork(what: &str, actual: Fork) -> Self {
        Self::UnsupportedFork(format!("{what} belongs to {actual}"))
    }
}
