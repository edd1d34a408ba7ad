//! Which endpoints of the EL at hand deviate from the specification.

use crate::{engine::RestEndpoint, telemetry::First};
use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The endpoints found to deviate within one epoch of the surface. Another epoch may be another EL
/// process, so what was found is forgotten with it and the endpoints are asked again.
#[derive(Debug, Default)]
pub(super) struct Dialects(Mutex<Found>);

#[derive(Debug, Default)]
struct Found {
    epoch: u64,
    endpoints: BTreeSet<RestEndpoint>,
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
            *found = Found { epoch, endpoints: BTreeSet::new() };
        }
        let is_news = found.epoch == epoch && found.endpoints.insert(endpoint);
        if is_news { First::Yes } else { First::No }
    }

    fn lock(&self) -> MutexGuard<'_, Found> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
