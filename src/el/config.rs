//! What the operator can set about the way to the EL.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::time::Duration;

use super::deadline::TimeoutMultiplier;
use super::dial::Resolver;
use super::endpoint::{Endpoint, RestBase};
use super::token::{Clock, Tokens};

/// How to reach the EL. Start from [`Config::new`] and change what differs.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the EL listens.
    pub endpoint: Endpoint,
    /// Which rungs of the ladder h2c → HTTP/1.1 → JSON-RPC may be used.
    pub transport: TransportChoice,
    /// Where the bearer tokens come from.
    pub tokens: Tokens,
    /// The path REST-SSZ lives under.
    pub rest_base: RestBase,
    /// How long a TCP connection may take to come up. Short, so that the CL has a definite error
    /// in time when packets vanish.
    pub connect_timeout: Duration,
    /// How long one question about the surface may take.
    pub probe_timeout: Duration,
    /// How often a standing surface is asked again: on JSON-RPC whether REST has come, on REST
    /// whether it is still what it was. REST over HTTP/1.1 is asked every 10 s at least, so that
    /// the EL does not close the connection by which it would notice a restart.
    pub reprobe_interval: Duration,
    /// The first pause between two tries while the EL cannot be asked; doubled each time.
    pub backoff_min: Duration,
    /// The longest pause between two tries while the EL cannot be reached.
    pub backoff_max: Duration,
    /// How long a command waits for those before it. Longer than any CL waits for an answer, so
    /// that nobody misses the command that is given up, and than any deadline of the one before.
    pub command_wait: Duration,
    /// By how much the specification's timeouts are stretched.
    pub timeout_multiplier: TimeoutMultiplier,
    /// How large the lanes are.
    pub lanes: LaneSizes,
    /// What gives the endpoint's host name its addresses, before each connection.
    pub resolver: Resolver,
    /// The largest answer body read, in bytes.
    pub answer_limit: usize,
    /// Where the time of day comes from.
    pub clock: Clock,
}

impl Config {
    /// The defaults: every transport, the CL's own bearer, `/engine/v1`, 1 s to connect and to
    /// probe, asked again every 30 s, pauses from 100 ms to 2 s, 30 s in the line
    /// of commands, answers up to 512 MiB.
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            transport: TransportChoice::Auto,
            tokens: Tokens::Borrow,
            rest_base: RestBase::default(),
            connect_timeout: Duration::from_secs(1),
            probe_timeout: Duration::from_secs(1),
            reprobe_interval: Duration::from_secs(30),
            backoff_min: Duration::from_millis(100),
            backoff_max: Duration::from_secs(2),
            command_wait: Duration::from_secs(30),
            timeout_multiplier: TimeoutMultiplier::default(),
            lanes: LaneSizes::default(),
            resolver: Resolver::system(),
            answer_limit: 512 << 20,
            clock: Clock::system(),
        }
    }
}

/// How large the lanes are. Commands have one connection, and one exchange at a time on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneSizes {
    /// h2c connections that payloads and blobs share. An answer of megabytes does not hold up one
    /// on another connection. Over HTTP/1.1 each exchange has a connection to itself.
    pub build_connections: NonZeroUsize,
    /// Bulk reads of old blocks in flight at once. Some ELs stall under more than a few.
    pub history_in_flight: NonZeroUsize,
    /// Relayed calls other than those of the other lanes in flight at once, each on an HTTP/1.1
    /// connection to itself.
    pub relay_connections: NonZeroUsize,
}

impl Default for LaneSizes {
    /// 2, 2 and 128.
    fn default() -> Self {
        let two = NonZeroUsize::MIN.saturating_add(1);
        Self {
            build_connections: two,
            history_in_flight: two,
            relay_connections: NonZeroUsize::MIN.saturating_add(127),
        }
    }
}

/// Which rungs of the ladder may be used. Written `auto`, `h2c`, `http1` or `json`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransportChoice {
    /// REST over h2c, else REST over HTTP/1.1, else JSON-RPC.
    #[default]
    Auto,
    /// REST over h2c, else JSON-RPC.
    H2c,
    /// REST over HTTP/1.1, else JSON-RPC.
    Http1,
    /// JSON-RPC alone; REST is not asked for.
    Json,
}

impl TransportChoice {
    const ALL: [Self; 4] = [Self::Auto, Self::H2c, Self::Http1, Self::Json];

    fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::H2c => "h2c",
            Self::Http1 => "http1",
            Self::Json => "json",
        }
    }
}

impl fmt::Display for TransportChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for TransportChoice {
    type Err = TransportChoiceError;

    /// # Errors
    ///
    /// When the text is none of the four names.
    fn from_str(text: &str) -> Result<Self, TransportChoiceError> {
        Self::ALL
            .into_iter()
            .find(|choice| choice.name() == text)
            .ok_or_else(|| TransportChoiceError(text.to_owned()))
    }
}

/// A text that is no [`TransportChoice`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the transport must be auto, h2c, http1 or json, not `{0}`")]
pub struct TransportChoiceError(String);
