//! Lines that many calls could cause, written once a minute.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

const PAUSE: Duration = Duration::from_secs(60);

/// Tells for each of a few kinds of lines whether it is time for one.
#[derive(Debug)]
pub(super) struct Seldom<K>(Mutex<BTreeMap<K, Said>>);

#[derive(Debug)]
struct Said {
    last: Instant,
    held_back: u64,
}

impl<K> Default for Seldom<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord> Seldom<K> {
    /// How many lines of that kind were held back since the last one, if it is time for one;
    /// otherwise it is one more of them.
    pub(super) fn say(&self, kind: K) -> Option<u64> {
        let now = Instant::now();
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(said) = kinds.get_mut(&kind) else {
            kinds.insert(kind, Said { last: now, held_back: 0 });
            return Some(0);
        };
        if now.duration_since(said.last) < PAUSE {
            said.held_back += 1;
            return None;
        }
        said.last = now;
        Some(std::mem::take(&mut said.held_back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_line_a_minute_of_each_kind_and_the_others_are_counted() {
        let lines = Seldom::default();
        assert_eq!(lines.say("a"), Some(0));
        assert_eq!(lines.say("a"), None);
        assert_eq!(lines.say("b"), Some(0), "kinds do not silence each other");
        tokio::time::advance(PAUSE - Duration::from_millis(1)).await;
        assert_eq!(lines.say("a"), None);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(lines.say("a"), Some(2));
        assert_eq!(lines.say("a"), None);
        assert_eq!(lines.say("b"), Some(0));
    }
}
