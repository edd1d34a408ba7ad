//! What this EL process offers, as far as it is known.

use std::fmt;

use super::capabilities::Capabilities;

/// A snapshot of what the EL offers.
///
/// h2c, HTTP/1.1 and REST are separate facts: an EL may have any of them without the others. All
/// of them are facts of one EL process and are found anew whenever a connection was lost
/// (`refactor.md`, *Transition window*).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surface {
    /// Grows each time a surface is found that may belong to another EL process; 0 before the
    /// first. Whatever is remembered of an EL (routes, payload ids) is good for one epoch.
    ///
    /// With REST it stays the same only while one connection proves that the process does; while
    /// JSON-RPC alone is found there is nothing to remember, and it stays as long as the same is
    /// found.
    pub epoch: u64,
    /// Whether the EL can be reached.
    pub reach: Reach,
    /// REST-SSZ, if it is there and may be used now.
    pub rest: Option<Rest>,
    /// Whether the EL speaks HTTP/2 with prior knowledge.
    pub h2c: Spoken,
    /// Whether the EL speaks HTTP/1.1.
    pub http1: Spoken,
    /// Whether JSON-RPC is answered; learnt from the calls relayed.
    pub json_rpc: JsonRpc,
    /// How this was found, for people.
    pub why: String,
}

impl Surface {
    /// Before anything was asked.
    pub(super) fn unknown() -> Self {
        Self {
            epoch: 0,
            reach: Reach::Unknown,
            rest: None,
            h2c: Spoken::Unknown,
            http1: Spoken::Unknown,
            json_rpc: JsonRpc::Unknown,
            why: "not asked yet".to_owned(),
        }
    }

    /// What JSON-RPC goes over: HTTP/1.1, which every EL answers it on, unless the EL speaks
    /// HTTP/2 alone.
    pub fn relay_transport(&self) -> Transport {
        match (self.http1, self.h2c) {
            (Spoken::No, Spoken::Yes | Spoken::Unknown) => Transport::H2c,
            _ => Transport::Http1,
        }
    }

    /// Whether `self` and `other` were found to be the same in the same way.
    pub(super) fn agrees_with(&self, other: &Self) -> bool {
        (self.reach, &self.rest, self.h2c, self.http1, &self.why)
            == (other.reach, &other.rest, other.h2c, other.http1, &other.why)
    }
}

/// The REST-SSZ half of a surface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rest {
    /// What REST goes over.
    pub transport: Transport,
    /// What is offered.
    pub capabilities: Capabilities,
}

/// What an exchange goes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// HTTP/2 in cleartext with prior knowledge (RFC 9113, section 3.3).
    H2c,
    /// HTTP/1.1.
    Http1,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::H2c => "h2c",
            Self::Http1 => "HTTP/1.1",
        })
    }
}

/// Whether the EL speaks a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoken {
    /// Not found out.
    Unknown,
    /// It was answered in.
    Yes,
    /// It was asked in and not answered, or answered in another one.
    No,
}

/// Whether the EL answers JSON-RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonRpc {
    /// No call was relayed yet.
    Unknown,
    /// The last call relayed was answered with JSON.
    Present,
    /// The last call relayed was answered with a status that says there is no such thing.
    Absent,
}

/// Whether the EL can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Not tried yet.
    Unknown,
    /// It answered when it was last asked.
    Up,
    /// No connection came up, or it ended without an answer, when it was last asked.
    Down,
}
