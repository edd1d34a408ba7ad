//! Tokens that the EL refuses.

use super::outcome::Relayed;
use crate::{
    jsonrpc::{self, Code},
    telemetry::Seldom,
};
use http::StatusCode;
use std::time::{Duration, Instant};

/// The refusals told of: each kind once a minute.
#[derive(Debug)]
pub(super) struct Refusals(Seldom<Refusal>);

/// How the EL said it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Refusal {
    /// HTTP 401.
    Unauthorized,
    /// HTTP 403.
    Forbidden,
    /// HTTP 200 with a JSON-RPC error to no call in particular.
    InWords,
}

impl Default for Refusals {
    fn default() -> Self {
        Self(Seldom::every(Duration::from_secs(60)))
    }
}

impl Refusals {
    /// Looks at the status of an answer over REST.
    pub(super) fn note_rest(&self, status: StatusCode) {
        self.tell(of_status(status));
    }

    /// Looks at an answer of JSON-RPC.
    pub(super) fn note_json_rpc(&self, relayed: &Relayed) {
        self.tell(match relayed {
            Relayed::Refused(status, _) => of_status(*status),
            Relayed::Answer(_, body) => in_words(body),
            Relayed::NoJsonRpc => None,
        });
    }

    fn tell(&self, refusal: Option<Refusal>) {
        let Some(refusal) = refusal else { return };
        if let Some(held_back) = self.0.is_due(refusal, Instant::now()) {
            tracing::warn!(
                kind = refusal.name(),
                held_back,
                "the EL refused the token: the secrets of both sides have to be the same, and \
                 their clocks within a minute"
            );
        }
    }
}

impl Refusal {
    const fn name(self) -> &'static str {
        match self {
            Self::Unauthorized => "HTTP 401",
            Self::Forbidden => "HTTP 403",
            Self::InWords => "HTTP 200 with a JSON-RPC error",
        }
    }
}

fn of_status(status: StatusCode) -> Option<Refusal> {
    match status {
        StatusCode::UNAUTHORIZED => Some(Refusal::Unauthorized),
        StatusCode::FORBIDDEN => Some(Refusal::Forbidden),
        _ => None,
    }
}

/// Some ELs call a bad signature a parse error of a call without an id: -32700 with words about
/// authentication.
fn in_words(body: &[u8]) -> Option<Refusal> {
    /// Such an answer is short; nothing longer is read for it.
    const LONGEST: usize = 1024;
    let body = Some(body).filter(|body| body.len() <= LONGEST)?;
    let answer = jsonrpc::answer_of(body)?;
    let error = answer.verdict.error()?;
    let message = error.message.to_ascii_lowercase();
    let is_one = error.code == Code::PARSE
        && ["authent", "unauthor", "jwt"].iter().any(|word| message.contains(word));
    is_one.then_some(Refusal::InWords)
}
