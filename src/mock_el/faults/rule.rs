//! Which request or connection a fault is for.

use serde::Deserialize;
use thiserror::Error;

use super::{Accepted, Fault};

/// A call of the Engine API, by whichever dialect it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Operation {
    /// `engine_newPayload*`, `POST payloads`.
    NewPayload,
    /// `engine_forkchoiceUpdated*`, `POST forkchoice`.
    ForkchoiceUpdated,
    /// `engine_getPayloadV*`, `GET payloads/{id}`.
    GetPayload,
    /// `engine_getPayloadBodiesByHash*`, `POST bodies/hash`.
    BodiesByHash,
    /// `engine_getPayloadBodiesByRange*`, `GET bodies`.
    BodiesByRange,
    /// `engine_getBlobs*`, `POST blobs/v*`.
    GetBlobs,
    /// `engine_exchangeCapabilities`, `GET capabilities`.
    Capabilities,
    /// `engine_getClientVersionV1`, `GET identity`.
    Identity,
}

/// Which requests a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Every one.
    Any,
    /// Those of an operation; of a JSON-RPC batch the first call counts.
    Operation(Operation),
    /// Those of a JSON-RPC method, by its whole name; of a batch the first call counts.
    Method(String),
}

/// The dialect of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// REST-SSZ: paths under `/engine/`.
    Rest,
    /// JSON-RPC: every other path.
    JsonRpc,
}

/// The version of HTTP a request comes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub enum HttpVersion {
    /// HTTP/1.1.
    #[serde(rename = "h1")]
    Http1,
    /// HTTP/2.
    #[serde(rename = "h2")]
    Http2,
}

/// How often a rule takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Times {
    /// Whenever it matches.
    Always,
    /// The first so many times.
    Count(u64),
}

/// A probability, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probability(f64);

/// A number that is no probability.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("a probability is from 0 to 1, not {0}")]
pub struct OutOfRange(f64);

/// A fault for requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Which requests.
    pub target: Target,
    /// Those in one dialect only.
    pub dialect: Option<Dialect>,
    /// Those by one version of HTTP only.
    pub http: Option<HttpVersion>,
    /// How many matching requests pass unharmed first.
    pub skip: u64,
    /// With what probability each one after that is struck.
    pub probability: Probability,
    /// How many are struck.
    pub times: Times,
    /// By what.
    pub fault: Fault,
}

/// A fault for connections, chosen when one is accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConnectionRule {
    /// How many connections pass unharmed first.
    pub skip: u64,
    /// With what probability each one after that is struck.
    pub probability: Probability,
    /// How many are struck.
    pub times: Times,
    /// By what.
    pub fault: Accepted,
}

/// A script: ordered rules, and the seed all its chances come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// The same seed and the same order of requests make the same faults.
    pub seed: u64,
    /// Rules for requests; the first that wants a request has it.
    pub rules: Vec<Rule>,
    /// Rules for connections; the first that wants a connection has it.
    pub connections: Vec<ConnectionRule>,
}

impl Probability {
    /// Certainty.
    pub const ONE: Self = Self(1.0);

    /// A probability.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] below 0, above 1 and for NaN.
    pub fn new(value: f64) -> Result<Self, OutOfRange> {
        if (0.0..=1.0).contains(&value) { Ok(Self(value)) } else { Err(OutOfRange(value)) }
    }

    /// Whether it happens, for a uniformly drawn number.
    pub(super) fn happens(self, drawn: u64) -> bool {
        // The upper 53 bits are a double's own.
        const UNIT: f64 = 1.0 / (1u64 << 53) as f64;
        ((drawn >> 11) as f64) * UNIT < self.0
    }
}

impl Rule {
    /// That fault, always, whatever the dialect.
    #[must_use]
    pub const fn new(target: Target, fault: Fault) -> Self {
        Self {
            target,
            dialect: None,
            http: None,
            skip: 0,
            probability: Probability::ONE,
            times: Times::Always,
            fault,
        }
    }

    /// That fault on every request of an operation.
    #[must_use]
    pub const fn on(operation: Operation, fault: Fault) -> Self {
        Self::new(Target::Operation(operation), fault)
    }

    /// In that dialect only.
    #[must_use]
    pub const fn over(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// By that version of HTTP only.
    #[must_use]
    pub const fn by(mut self, http: HttpVersion) -> Self {
        self.http = Some(http);
        self
    }

    /// Only after so many matching requests.
    #[must_use]
    pub const fn after(mut self, skip: u64) -> Self {
        self.skip = skip;
        self
    }

    /// At most so many times.
    #[must_use]
    pub const fn times(mut self, times: u64) -> Self {
        self.times = Times::Count(times);
        self
    }

    /// With that probability.
    #[must_use]
    pub const fn with_probability(mut self, probability: Probability) -> Self {
        self.probability = probability;
        self
    }
}

impl ConnectionRule {
    /// That fault on every connection.
    #[must_use]
    pub const fn new(fault: Accepted) -> Self {
        Self { skip: 0, probability: Probability::ONE, times: Times::Always, fault }
    }

    /// At most so many times.
    #[must_use]
    pub const fn times(mut self, times: u64) -> Self {
        self.times = Times::Count(times);
        self
    }

    /// Only after so many connections.
    #[must_use]
    pub const fn after(mut self, skip: u64) -> Self {
        self.skip = skip;
        self
    }

    /// With that probability.
    #[must_use]
    pub const fn with_probability(mut self, probability: Probability) -> Self {
        self.probability = probability;
        self
    }
}

impl Faults {
    /// An empty script with that seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed, rules: Vec::new(), connections: Vec::new() }
    }

    /// With one more rule for requests, last in order.
    #[must_use]
    pub fn with(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// With one more rule for connections, last in order.
    #[must_use]
    pub fn with_connection(mut self, rule: ConnectionRule) -> Self {
        self.connections.push(rule);
        self
    }
}

impl Operation {
    /// The operation of a JSON-RPC method.
    pub(in crate::mock_el) fn of_method(name: &str) -> Option<Self> {
        match name {
            "engine_exchangeCapabilities" => return Some(Self::Capabilities),
            "engine_getClientVersionV1" => return Some(Self::Identity),
            _ => {}
        }
        let known = [
            ("engine_newPayloadV", Self::NewPayload),
            ("engine_forkchoiceUpdatedV", Self::ForkchoiceUpdated),
            ("engine_getPayloadV", Self::GetPayload),
            ("engine_getPayloadBodiesByHashV", Self::BodiesByHash),
            ("engine_getPayloadBodiesByRangeV", Self::BodiesByRange),
            ("engine_getBlobsV", Self::GetBlobs),
        ];
        known.into_iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, of)| of)
    }
}
