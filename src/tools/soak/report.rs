//! What the soak prints in the end.

use super::{
    memory::{Mebibytes, Memory, Trend},
    record::{Counts, Kind},
};
use crate::mock_el::faults::Injected;
use std::{fmt, time::Duration};

/// The outcome of a run.
#[derive(Debug)]
pub struct Report {
    /// What the same faults come from again.
    pub seed: u64,
    /// How long it took.
    pub took: Duration,
    /// Chains that were driven from their genesis on.
    pub laps: u64,
    /// Blocks that became the head.
    pub blocks: u64,
    /// Calls and violations.
    pub counts: Counts,
    /// Faults that took place.
    pub injected: Injected,
    /// Restarts of the EL, each a fault as well.
    pub restarts: u64,
    /// Requests that reached the EL's REST-SSZ, without those that ask for its capabilities.
    pub rest_requests: u64,
    /// Requests that reached the EL's JSON-RPC.
    pub json_rpc_requests: u64,
    /// The sidecar's memory; empty where it cannot be measured.
    pub memory: Memory,
}

impl Report {
    /// All faults, restarts among them.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.injected.total() + self.restarts
    }

    /// Whether nothing was wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.counts.violations.is_empty()
    }
}

/// The tables, and as the last line the whole in one.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (method, calls) in &self.counts.calls {
            writeln!(f, "{method:<36} {calls:>8}")?;
        }
        writeln!(f)?;
        for (excuse, count) in &self.counts.excused {
            writeln!(f, "{:<36} {count:>8}", format!("explained: {excuse}"))?;
        }
        for (kind, count) in self.injected.iter() {
            writeln!(f, "{:<36} {count:>8}", kind.to_string())?;
        }
        writeln!(f, "{:<36} {:>8}", "restart", self.restarts)?;
        writeln!(
            f,
            "\nseed {}, {:.1} s, {} laps, {} blocks; requests at the EL: {} REST-SSZ, {} JSON-RPC",
            self.seed,
            self.took.as_secs_f64(),
            self.laps,
            self.blocks,
            self.rest_requests,
            self.json_rpc_requests,
        )?;
        match self.memory.trend() {
            Trend::Unknown => {}
            Trend::Flat { before, after } | Trend::Grows { before, after } => writeln!(
                f,
                "resident memory of the sidecar after warm-up: {}, at the end: {}",
                Mebibytes(before),
                Mebibytes(after)
            )?,
        }
        write!(
            f,
            "soak: {} calls, {} faults injected, answers wrong {}, answers lost {}, order \
             violations {}",
            self.counts.total(),
            self.faults(),
            self.counts.of(Kind::Wrong),
            self.counts.of(Kind::Lost),
            self.counts.of(Kind::Order),
        )?;
        let others = self.counts.of(Kind::Run);
        if others > 0 {
            write!(f, ", other failures {others}")?;
        }
        match self.memory.peak() {
            Some(peak) => writeln!(f, ", peak memory {}", Mebibytes(peak)),
            None => writeln!(f, ", memory not measured"),
        }
    }
}
