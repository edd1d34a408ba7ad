//! What is counted and logged of one call.

use crate::{
    cl::Outcome,
    el,
    engine::Exchange,
    telemetry::{Carried, Tally, tally},
};
use std::time::Instant;

/// One call from its request to its outcome. Only lengths are looked at, never a body.
#[derive(Debug)]
pub(super) struct Trip {
    method: &'static str,
    started: Instant,
    carried: Carried,
    request_bytes: usize,
    ssz_bytes: usize,
}

impl Trip {
    pub(super) fn begin(method: &'static str, request_bytes: usize) -> Self {
        let started = Instant::now();
        Self { method, started, carried: Carried::Sidecar, request_bytes, ssz_bytes: 0 }
    }

    pub(super) fn sent(&mut self, exchange: &Exchange, over: Carried) {
        self.carried = over;
        self.ssz_bytes += exchange.request.body().len();
    }

    pub(super) fn received(&mut self, answer: &el::Answer) {
        self.ssz_bytes += answer.body().len();
    }

    pub(super) fn relayed(&mut self) {
        self.carried = Carried::JsonRpc;
    }

    pub(super) fn end(self, outcome: Outcome, tally: &Tally) -> Outcome {
        let answer_bytes = match &outcome {
            Outcome::Json(reply) => reply.len(),
            Outcome::Status(_, text) => text.len(),
        };
        let json = (self.request_bytes + answer_bytes) as u64;
        let ssz = self.ssz_bytes as u64;
        tally.call(self.method, self.carried, tally::Bytes { json, ssz });
        tracing::debug!(
            method = self.method,
            transport = self.carried.label(),
            json_bytes = json,
            ssz_bytes = ssz,
            ms = self.started.elapsed().as_secs_f64() * 1e3,
            "call"
        );
        outcome
    }
}
