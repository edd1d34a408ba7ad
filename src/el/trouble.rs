//! What stands between the EL and its surface, told to the operator once.

use std::fmt;
use std::mem::discriminant;

use http::StatusCode;

use super::endpoint::Endpoint;
use super::error::Failure;
use super::probe::NotNow;

/// Why it is not known what the EL offers.
#[derive(Debug)]
pub(super) enum Trouble {
    Down(Failure),
    Mute,
    Silent,
    Unauthorized,
    Forbidden,
    Starting(StatusCode),
    Broken(String),
}

impl From<NotNow> for Trouble {
    fn from(why: NotNow) -> Self {
        match why {
            NotNow::Unauthorized => Self::Unauthorized,
            NotNow::Forbidden => Self::Forbidden,
            NotNow::Status(status) => Self::Starting(status),
            NotNow::Silent => Self::Silent,
            NotNow::Broken(why) => Self::Broken(why),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Down(failure) => write!(f, "the EL cannot be reached{failure}"),
            Self::Mute => f.write_str("the EL's port takes connections and answers none"),
            Self::Silent => f.write_str("the EL does not answer the capabilities request in time"),
            Self::Unauthorized => f.write_str("the EL refuses the token (401)"),
            Self::Forbidden => f.write_str("the EL refuses the host name or the address (403)"),
            Self::Starting(status) => write!(f, "the EL is not ready ({})", status.as_u16()),
            Self::Broken(why) => f.write_str(why),
        }
    }
}

impl Trouble {
    fn advice(&self) -> &'static str {
        match self {
            Self::Down(_) => "check that it runs and that this is its engine port; trying on",
            Self::Mute => "check that the EL process behind the port runs; trying on",
            Self::Silent | Self::Broken(_) => "see the EL's log; calls go over JSON-RPC meanwhile",
            Self::Unauthorized => {
                "check that EL and CL have the same JWT secret and that the clocks agree within 60 s"
            }
            Self::Forbidden => {
                "allow this host name in the EL's virtual hosts (geth: --authrpc.vhosts)"
            }
            Self::Starting(_) => "it may be starting; calls go over JSON-RPC meanwhile",
        }
    }
}

/// Tells each kind of trouble once, however often it is met in a row.
#[derive(Debug, Default)]
pub(super) struct Troubles {
    last: Option<Trouble>,
}

impl Troubles {
    pub(super) fn tell(&mut self, trouble: Trouble, endpoint: &Endpoint) {
        let known =
            self.last.as_ref().is_some_and(|last| discriminant(last) == discriminant(&trouble));
        if !known {
            tracing::warn!(%endpoint, advice = trouble.advice(), "{trouble}");
        }
        self.last = Some(trouble);
    }

    /// The surface was found: from now on everything is worth telling again.
    pub(super) fn over(&mut self) {
        self.last = None;
    }
}
