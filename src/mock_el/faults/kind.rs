//! The kinds of faults.

use std::fmt;

use super::Fault;

/// A kind of fault, to count by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "each is told at the fault of its name")]
pub enum Kind {
    Delay,
    Silence,
    Stall,
    Cut,
    Reset,
    ResetStream,
    GoAway,
    TooLargeEarly,
    Refuse,
    Media,
    Encoding,
    NoContent,
    EmptyBody,
    Huge,
    Ssz,
    Json,
    Restart,
    /// A fault of a connection, at its accepting.
    Connection,
}

impl Fault {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Delay { .. } => Kind::Delay,
            Self::Silence { .. } => Kind::Silence,
            Self::Stall { .. } => Kind::Stall,
            Self::Cut { .. } => Kind::Cut,
            Self::Reset { .. } => Kind::Reset,
            Self::ResetStream { .. } => Kind::ResetStream,
            Self::GoAway { .. } => Kind::GoAway,
            Self::TooLargeEarly => Kind::TooLargeEarly,
            Self::Refuse { .. } => Kind::Refuse,
            Self::Media(_) => Kind::Media,
            Self::Encoding(_) => Kind::Encoding,
            Self::NoContent => Kind::NoContent,
            Self::EmptyBody => Kind::EmptyBody,
            Self::Huge { .. } => Kind::Huge,
            Self::Ssz(_) => Kind::Ssz,
            Self::Json(_) => Kind::Json,
            Self::Restart { .. } => Kind::Restart,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Delay => "delay",
            Self::Silence => "silence",
            Self::Stall => "stall",
            Self::Cut => "cut",
            Self::Reset => "reset",
            Self::ResetStream => "reset-stream",
            Self::GoAway => "goaway",
            Self::TooLargeEarly => "too-large-early",
            Self::Refuse => "refuse",
            Self::Media => "media",
            Self::Encoding => "encoding",
            Self::NoContent => "no-content",
            Self::EmptyBody => "empty-body",
            Self::Huge => "huge",
            Self::Ssz => "ssz",
            Self::Json => "json",
            Self::Restart => "restart",
            Self::Connection => "connection",
        })
    }
}
