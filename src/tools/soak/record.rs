//! What is counted while the calls go on.

use super::incidents::Excuse;
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Violations that are kept with their words; further ones are counted only.
const TOLD: usize = 20;

/// A kind of violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An answer that is neither the EL's own nor explained by a fault.
    Wrong,
    /// A call without an answer.
    Lost,
    /// Commands in another order, once too often, or that nobody gave.
    Order,
    /// Something that is no call's: the fast path did not come back, memory grows, the sidecar died.
    Run,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wrong => "wrong",
            Self::Lost => "lost",
            Self::Order => "order",
            Self::Run => "run",
        })
    }
}

/// Counts, shared by all CLs.
#[derive(Debug, Default)]
pub(super) struct Record(Mutex<Counts>);

/// What was counted.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Calls that were answered or lost, by method.
    pub calls: BTreeMap<&'static str, u64>,
    /// Answers that a fault explains, by what was heard.
    pub excused: BTreeMap<Excuse, u64>,
    /// Violations by kind.
    pub violations: BTreeMap<Kind, u64>,
    /// The first ones, in words.
    pub told: Vec<String>,
}

impl Counts {
    /// All calls.
    pub fn total(&self) -> u64 {
        self.calls.values().sum()
    }

    /// One more violation.
    pub(super) fn add(&mut self, kind: Kind, words: String) {
        *self.violations.entry(kind).or_default() += 1;
        if self.told.len() < TOLD {
            self.told.push(words);
        }
    }

    /// How many violations of a kind.
    pub fn of(&self, kind: Kind) -> u64 {
        self.violations.get(&kind).copied().unwrap_or_default()
    }
}

impl Record {
    pub(super) fn call(&self, method: &'static str) {
        *self.counts().calls.entry(method).or_default() += 1;
    }

    pub(super) fn excused(&self, excuse: Excuse) {
        *self.counts().excused.entry(excuse).or_default() += 1;
    }

    pub(super) fn violation(&self, kind: Kind, words: String) {
        self.counts().add(kind, words);
    }

    pub(super) fn snapshot(&self) -> Counts {
        self.counts().clone()
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
