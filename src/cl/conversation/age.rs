//! How long a WebSocket lasts whose handshake's token goes to the EL with every call.

use std::future::pending;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::jwt::WINDOW;

/// The age of a token, in seconds, from which on a quiet moment is taken to have it renewed.
const RENEWED_FROM: Duration = Duration::from_secs(WINDOW / 2);

/// The age of a token with which no further call is begun. The EL's clock may be ahead of ours, and
/// a call may have to wait for its turn.
const LAST_CALL: Duration = Duration::from_secs(WINDOW - 10);

/// A token may be old when it comes. Its socket serves a few calls all the same.
const AT_LEAST: Duration = Duration::from_secs(5);

/// The end of a socket, by the age of its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cl) struct Age(Option<Times>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Times {
    /// From here on the socket ends as soon as it is quiet.
    renewed_from: Instant,
    /// Here it ends.
    last_call: Instant,
}

impl Age {
    /// For a socket whose token does not go to the EL, or does not tell its age.
    pub(in crate::cl) const NONE: Self = Self(None);

    /// For a token made at `iat` that has come at `now`, both in seconds since the Unix epoch. An EL
    /// that takes one from outside the [`WINDOW`] does not mind how old it is.
    pub(in crate::cl) fn of(iat: f64, now: u64) -> Self {
        let age = now as f64 - iat;
        if age.is_nan() || age.abs() > WINDOW as f64 {
            return Self::NONE;
        }
        // One from a clock ahead of ours may well be new.
        let age = Duration::try_from_secs_f64(age).unwrap_or_default();
        let in_time = |limit: Duration| Instant::now() + limit.saturating_sub(age).max(AT_LEAST);
        Self(Some(Times { renewed_from: in_time(RENEWED_FROM), last_call: in_time(LAST_CALL) }))
    }

    /// Waits until a quiet moment may be taken for the end.
    pub(super) async fn to_be_renewed(self) {
        until(self.0.map(|times| times.renewed_from)).await;
    }

    /// Waits until no further call is to be begun.
    pub(super) async fn over(self) {
        until(self.0.map(|times| times.last_call)).await;
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000;

    fn seconds(iat: f64) -> Option<(u64, u64)> {
        let start = Instant::now();
        let Age(times) = Age::of(iat, NOW);
        times.map(|Times { renewed_from, last_call }| {
            ((renewed_from - start).as_secs(), (last_call - start).as_secs())
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_socket_ends_well_before_its_token_and_not_at_once() {
        let now = NOW as f64;
        for (iat, expected) in [
            (now, Some((30, 50))),
            (now - 20.0, Some((10, 30))),
            (now - 20.5, Some((9, 29))),
            (now - 40.0, Some((5, 10))),
            (now - 60.0, Some((5, 5))),
            (now + 60.0, Some((30, 50))),
            // No EL would take these for their age.
            (now - 61.0, None),
            (now + 61.0, None),
            (0.0, None),
            (f64::MAX, None),
            (f64::MIN, None),
            (f64::NAN, None),
        ] {
            assert_eq!(seconds(iat), expected, "{iat}");
        }
    }
}
