//! Which endpoints of the EL at hand deviate from the specification.

use crate::{
    engine::RestEndpoint,
    telemetry::{First, Seldom},
};
use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// An EL that comes and goes is not complained of each time.
const TELL_AGAIN: Duration = Duration::from_secs(60 * 60);

/// The endpoints found to deviate within one epoch of the surface. Another epoch may be another EL
/// process, so what was found is forgotten with it and the endpoints are asked again.
#[derive(Debug)]
pub(super) struct Dialects {
    found: Mutex<Found>,
    told: Seldom<RestEndpoint>,
}

#[derive(Debug, Default)]
struct Found {
    epoch: u64,
    endpoints: BTreeSet<RestEndpoint>,
}

impl Default for Dialects {
    fn default() -> Self {
        Self { found: Mutex::default(), told: Seldom::every(TELL_AGAIN) }
    }
}

impl Dialects {
    /// Whether the endpoint was found to deviate in that epoch.
    pub(super) fn has(&self, epoch: u64, endpoint: RestEndpoint) -> bool {
        let found = self.lock();
        found.epoch == epoch && found.endpoints.contains(&endpoint)
    }

    /// Notes that the endpoint deviates in that epoch, and says whether that is news. A call that
    /// outlived its epoch has nothing to say of the next one.
    pub(super) fn note(&self, epoch: u64, endpoint: RestEndpoint) -> First {
        let mut found = self.lock();
        if found.epoch < epoch {
            found.epoch = epoch;
            found.endpoints.clear();
        }
        let is_news = found.epoch == epoch && found.endpoints.insert(endpoint);
        if is_news { First::Yes } else { First::No }
    }

    /// What was found in one epoch holds in the next one too.
    pub(super) fn carry_over(&self, old: u64, new: u64) {
        let mut found = self.lock();
        if found.epoch == old {
            found.epoch = new;
        }
    }

    /// Whether it is time to tell the operator of the endpoint; if so, he is told now.
    pub(super) fn tell(&self, endpoint: RestEndpoint, now: Instant) -> First {
        if self.told.is_due(endpoint, now).is_some() { First::Yes } else { First::No }
    }

    fn lock(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Version;

    const SUBMIT: RestEndpoint = RestEndpoint::PayloadSubmit;
    const BLOBS: RestEndpoint = RestEndpoint::Blobs(Version::V2);

    #[test]
    fn each_endpoint_is_news_once_in_an_epoch_and_by_itself() {
        let dialects = Dialects::default();
        assert_eq!(dialects.note(1, SUBMIT), First::Yes);
        assert_eq!(dialects.note(1, SUBMIT), First::No);
        assert!(dialects.has(1, SUBMIT));
        assert!(!dialects.has(1, BLOBS));
        assert!(!dialects.has(1, RestEndpoint::Blobs(Version::V3)));
        assert_eq!(dialects.note(1, BLOBS), First::Yes);
        assert!(dialects.has(1, SUBMIT));
    }

    #[test]
    fn the_operator_is_told_of_an_endpoint_once_an_hour_however_often_the_el_comes_back() {
        let dialects = Dialects::default();
        let start = Instant::now();
        let after = |minutes| start + Duration::from_secs(60 * minutes);
        assert_eq!(dialects.tell(SUBMIT, start), First::Yes);
        for epoch in 1..10 {
            assert_eq!(dialects.note(epoch, SUBMIT), First::Yes);
            assert_eq!(dialects.tell(SUBMIT, after(6 * epoch)), First::No);
        }
        assert_eq!(dialects.tell(BLOBS, after(59)), First::Yes, "each by itself");
        assert_eq!(dialects.tell(SUBMIT, after(60)), First::Yes);
        assert_eq!(dialects.tell(SUBMIT, after(61)), First::No);
    }

    #[test]
    fn what_is_carried_over_holds_in_the_next_epoch_alone() {
        let dialects = Dialects::default();
        dialects.note(1, SUBMIT);
        dialects.carry_over(1, 2);
        assert!(dialects.has(2, SUBMIT));
        assert!(!dialects.has(1, SUBMIT));
        assert_eq!(dialects.note(2, SUBMIT), First::No);
        // A call was quicker than the news of its epoch.
        dialects.note(4, BLOBS);
        dialects.carry_over(2, 4);
        assert!(dialects.has(4, BLOBS) && !dialects.has(4, SUBMIT));
    }

    #[test]
    fn a_new_epoch_asks_again_and_a_late_call_of_the_old_one_changes_nothing() {
        let dialects = Dialects::default();
        dialects.note(1, SUBMIT);
        assert!(!dialects.has(2, SUBMIT));
        assert_eq!(dialects.note(2, BLOBS), First::Yes);
        assert_eq!(dialects.note(1, SUBMIT), First::No);
        assert!(!dialects.has(2, SUBMIT));
        assert!(!dialects.has(1, SUBMIT));
        assert!(dialects.has(2, BLOBS));
    }
}
