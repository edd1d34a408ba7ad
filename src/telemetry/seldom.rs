//! What many calls could cause to be said, said once in a while.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// When each of a few things was last told, and how often it was held back since.
#[derive(Debug)]
pub struct Seldom<K> {
    pause: Duration,
    told: Mutex<BTreeMap<K, Told>>,
}

#[derive(Debug)]
struct Told {
    last: Instant,
    held_back: u64,
}

impl<K: Ord> Seldom<K> {
    /// Nothing was told yet; each thing is told once in that time.
    pub const fn every(pause: Duration) -> Self {
        Self { pause, told: Mutex::new(BTreeMap::new()) }
    }

    /// How often that thing was held back since it was last told, if it is time to tell of it; it is
    /// told now. Otherwise it is held back once more.
    pub fn is_due(&self, thing: K, now: Instant) -> Option<u64> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(told) = told.get_mut(&thing) else {
            told.insert(thing, Told { last: now, held_back: 0 });
            return Some(0);
        };
        if now.saturating_duration_since(told.last) < self.pause {
            told.held_back += 1;
            return None;
        }
        told.last = now;
        Some(std::mem::take(&mut told.held_back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_is_told_once_in_its_time_and_the_others_are_counted() {
        let seldom = Seldom::every(Duration::from_secs(60));
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(seldom.is_due("a", start), Some(0));
        for seconds in [0, 1, 59] {
            assert_eq!(seldom.is_due("a", after(seconds)), None);
        }
        assert_eq!(seldom.is_due("b", after(59)), Some(0), "each by itself");
        assert_eq!(seldom.is_due("a", after(60)), Some(3));
        assert_eq!(seldom.is_due("a", after(61)), None);
        assert_eq!(seldom.is_due("b", after(119)), Some(0));
    }
}
