//! Counts of what was carried how, for the sidecar to say whether it pays.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// How the answer to a call came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Carried {
    /// REST-SSZ over HTTP/2 cleartext.
    H2c,
    /// REST-SSZ over HTTP/1.1.
    Http1,
    /// The CL's own bytes over JSON-RPC.
    JsonRpc,
    /// By the sidecar, without the EL.
    Sidecar,
}

impl Carried {
    /// A label for tables and metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::H2c => "h2c",
            Self::Http1 => "http1",
            Self::JsonRpc => "json-rpc",
            Self::Sidecar => "sidecar",
        }
    }
}

/// One call that is over.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bytes {
    /// JSON from and to the CL.
    pub json: u64,
    /// SSZ to and from the EL.
    pub ssz: u64,
}

/// Sums for one method and one way of carrying it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Calls that are over.
    pub calls: u64,
    /// Bytes of JSON from and to the CL.
    pub json_bytes: u64,
    /// Bytes of SSZ to and from the EL.
    pub ssz_bytes: u64,
}

impl Sums {
    /// What came on top of `before`.
    pub const fn since(self, before: Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(before.calls),
            json_bytes: self.json_bytes.saturating_sub(before.json_bytes),
            ssz_bytes: self.ssz_bytes.saturating_sub(before.ssz_bytes),
        }
    }

    /// Adds another sum.
    pub const fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.json_bytes += other.json_bytes;
        self.ssz_bytes += other.ssz_bytes;
    }
}

/// Counts since the start. The labels are a bounded set: methods known to the translation, `other`,
/// reasons and endpoints.
#[derive(Debug, Default)]
pub struct Tally {
    calls: Mutex<BTreeMap<(&'static str, Carried), Sums>>,
    relays: Mutex<BTreeMap<(&'static str, &'static str), u64>>,
    deviations: Mutex<BTreeMap<&'static str, u64>>,
    panics: AtomicU64,
}

/// Label of the methods that are only relayed.
pub const OTHER: &str = "other";

impl Tally {
    /// Counts a call that is over.
    pub fn call(&self, method: &'static str, carried: Carried, bytes: Bytes) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let sums = calls.entry((method, carried)).or_default();
        sums.add(Sums { calls: 1, json_bytes: bytes.json, ssz_bytes: bytes.ssz });
    }

    /// Counts a call of that method that was relayed for that reason, and says whether it is the
    /// first such one.
    pub fn relayed(&self, method: &'static str, reason: &'static str) -> First {
        let mut relays = self.relays.lock().unwrap_or_else(PoisonError::into_inner);
        let count = relays.entry((method, reason)).or_default();
        *count += 1;
        if *count == 1 { First::Yes } else { First::No }
    }

    /// Counts that an endpoint of the EL was found to deviate; once for each EL process.
    pub fn deviates(&self, endpoint: &'static str) {
        let mut deviations = self.deviations.lock().unwrap_or_else(PoisonError::into_inner);
        *deviations.entry(endpoint).or_default() += 1;
    }

    /// Counts a call that panicked.
    pub fn panicked(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    /// Calls that panicked: not one, unless the sidecar has a fault.
    pub fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// The sums by method and way.
    pub fn calls(&self) -> BTreeMap<(&'static str, Carried), Sums> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// By endpoint, how many EL processes were found to deviate.
    pub fn deviations(&self) -> BTreeMap<&'static str, u64> {
        self.deviations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Relayed calls by method and reason.
    pub fn relays(&self) -> BTreeMap<(&'static str, &'static str), u64> {
        self.relays.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Whether something was seen for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// Worth a line at warn.
    Yes,
    /// Said before.
    No,
}
