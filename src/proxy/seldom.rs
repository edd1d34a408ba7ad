//! What the operator is told again and again, but not each time.

use crate::telemetry::First;
use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// When the operator was last told of each of a few things.
#[derive(Debug)]
pub(super) struct Seldom<K> {
    pause: Duration,
    told: Mutex<BTreeMap<K, Instant>>,
}

impl<K: Ord> Seldom<K> {
    /// Nothing was told yet; each thing is told once in that time.
    pub(super) const fn every(pause: Duration) -> Self {
        Self { pause, told: Mutex::new(BTreeMap::new()) }
    }

    /// Whether it is time to tell of that; if so, it is told now.
    pub(super) fn is_due(&self, thing: K, now: Instant) -> First {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let last = told.get(&thing);
        if last.is_some_and(|last| now.saturating_duration_since(*last) < self.pause) {
            return First::No;
        }
        told.insert(thing, now);
        First::Yes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_is_told_once_in_its_time() {
        let seldom = Seldom::every(Duration::from_secs(60));
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(seldom.is_due("a", start), First::Yes);
        for seconds in [0, 1, 59] {
            assert_eq!(seldom.is_due("a", after(seconds)), First::No);
        }
        assert_eq!(seldom.is_due("b", after(59)), First::Yes, "each by itself");
        assert_eq!(seldom.is_due("a", after(60)), First::Yes);
        assert_eq!(seldom.is_due("a", after(61)), First::No);
    }
}
