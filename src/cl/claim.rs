//! The place that a call has in a line while its body is still on its way.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::{PLACE_PAUSES, SHORT_BODY, SHORT_PLACE_PAUSES};

/// Takes a place at the first bytes that are worth one, and gives it up if the rest takes too long.
pub(super) struct Claim<P, F> {
    begun: F,
    patience: Patience,
    state: State<P>,
}

/// How long a body may take and keep its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Until its next byte.
    pause: Duration,
    /// In all.
    total: Duration,
}

impl Patience {
    /// For a body whose head gives that length.
    pub(super) const fn of(announced: u64, pause: Duration) -> Self {
        let pauses = if announced > SHORT_BODY { PLACE_PAUSES } else { SHORT_PLACE_PAUSES };
        Self { pause, total: pause.saturating_mul(pauses) }
    }
}

enum State<P> {
    /// Nothing has come yet that is worth a place.
    Open,
    Held {
        place: P,
        /// When it is over whatever comes.
        end: Instant,
    },
    /// It was given up, and there is no other: that would be one behind calls that came later.
    GivenUp,
}

impl<P> Claim<P, fn(&[u8]) -> Option<P>> {
    /// With the place that was taken at the head, if there is one, and no other.
    pub(super) fn taken(patience: Patience, place: Option<P>) -> Self {
        let mut claim = Self::new(patience, |_: &[u8]| None);
        if let Some(place) = place {
            claim.hold(place);
        }
        claim
    }
}

impl<P, F: FnMut(&[u8]) -> Option<P>> Claim<P, F> {
    pub(super) const fn new(patience: Patience, begun: F) -> Self {
        Self { begun, patience, state: State::Open }
    }

    /// Shows what has come so far.
    pub(super) fn show(&mut self, first: &[u8]) {
        if let State::Open = self.state
            && let Some(place) = (self.begun)(first)
        {
            self.hold(place);
        }
    }

    fn hold(&mut self, place: P) {
        let end = Instant::now() + self.patience.total;
        self.state = State::Held { place, end };
    }

    /// Waits for what comes next, with the place or, when that takes too long, without.
    pub(super) async fn wait<T>(&mut self, next: impl Future<Output = T>) -> T {
        let mut next = pin!(next);
        if let State::Held { end, .. } = self.state {
            let patience = end.min(Instant::now() + self.patience.pause);
            if let Ok(next) = timeout_at(patience, &mut next).await {
                return next;
            }
            self.state = State::GivenUp;
            tracing::debug!("a body from the CL stalls and loses the place of its call");
        }
        next.await
    }

    pub(super) fn into_place(self) -> Option<P> {
        match self.state {
            State::Held { place, .. } => Some(place),
            State::Open | State::GivenUp => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::ready;
    use tokio::time::sleep;

    const PAUSE: Duration = Duration::from_secs(1);

    fn claim() -> Claim<usize, impl FnMut(&[u8]) -> Option<usize>> {
        claim_of(SHORT_BODY + 1)
    }

    fn claim_of(announced: u64) -> Claim<usize, impl FnMut(&[u8]) -> Option<usize>> {
        Claim::new(Patience::of(announced, PAUSE), |first: &[u8]| {
            first.ends_with(b"!").then_some(first.len())
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_taken_once_and_kept_over_short_pauses() {
        let mut claim = claim();
        claim.show(b"a");
        claim.show(b"ab!");
        claim.show(b"abcd!");
        claim.wait(sleep(PAUSE / 2)).await;
        claim.wait(sleep(PAUSE / 2)).await;
        assert_eq!(claim.into_place(), Some(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_costs_the_place_and_nothing_else() {
        let mut claim = claim();
        claim.show(b"!");
        claim.wait(sleep(PAUSE * 2)).await;
        claim.show(b"again!");
        claim.wait(ready(())).await;
        assert_eq!(claim.into_place(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_trickle_does_not_keep_the_place_for_ever() {
        let mut claim = claim();
        claim.show(b"!");
        for _ in 0..PLACE_PAUSES * 2 {
            claim.wait(sleep(PAUSE / 2 + Duration::from_millis(1))).await;
        }
        assert_eq!(claim.into_place(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_short_or_of_no_known_length_has_less_time() {
        for (announced, keeps) in [(0, None), (SHORT_BODY, None), (SHORT_BODY + 1, Some(1))] {
            let mut claim = claim_of(announced);
            claim.show(b"!");
            for _ in 0..=SHORT_PLACE_PAUSES * 2 {
                claim.wait(sleep(PAUSE / 2)).await;
            }
            assert_eq!(claim.into_place(), keeps, "{announced}");
        }
    }
}
