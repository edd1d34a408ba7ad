//! How long an exchange may take.
//!
//! The CL decides when to leave (`common.md`, *Timeouts*): a deadline here only ends what nobody
//! waits for any more, so that it holds no lane for ever. So it is never shorter than the
//! specification's, nor than what the most patient CL waits, and there is a margin on top.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use tokio::time::Instant;

/// The longest wait of any known CL that does not scale its waits: Lodestar gives every call 12 s.
const LONGEST_CL_WAIT: Duration = Duration::from_secs(12);
/// For the CL's bytes to come in before the clock starts here, and for its own clock.
const MARGIN: Duration = Duration::from_secs(1);
/// For calls that have no timeout in the specification, such as `eth_getLogs` over many blocks.
const RELAY_LIMIT: Duration = Duration::from_secs(60);

/// When an exchange is given up, counted from the moment in which this was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    pub(super) at: Instant,
    pub(super) limit: Duration,
}

impl Deadline {
    fn after(limit: Duration) -> Self {
        Self { at: Instant::now() + limit, limit }
    }

    pub(super) fn has_passed(self) -> bool {
        Instant::now() >= self.at
    }

    /// Waits until it is over.
    pub(super) async fn over(self) {
        tokio::time::sleep_until(self.at).await;
    }
}

/// By how much the specification's timeouts are stretched: a decimal from 1 to 100. For an operator
/// who has told the CL to wait longer (Lighthouse's `--execution-timeout-multiplier`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeoutMultiplier(f64);

impl TimeoutMultiplier {
    /// The deadline of a call that the specification gives `timeout`: that much times the
    /// multiplier, but at least the 12 s of the most patient CL, and a margin of 1 s.
    pub(super) fn deadline(self, timeout: Duration) -> Deadline {
        Deadline::after(self.stretch(timeout).max(LONGEST_CL_WAIT) + MARGIN)
    }

    /// The deadline of a call that the specification gives no timeout.
    pub(super) fn relay_deadline(self) -> Deadline {
        Deadline::after(self.stretch(RELAY_LIMIT))
    }

    /// A duration times the multiplier; hours stay hours and never overflow.
    pub(super) fn stretch(self, duration: Duration) -> Duration {
        Duration::try_from_secs_f64(duration.as_secs_f64() * self.0).unwrap_or(duration)
    }
}

impl Default for TimeoutMultiplier {
    fn default() -> Self {
        Self(1.0)
    }
}

impl fmt::Display for TimeoutMultiplier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for TimeoutMultiplier {
    type Err = TimeoutMultiplierError;

    /// # Errors
    ///
    /// When the text is no decimal from 1 to 100: a CL may wait longer than the specification says,
    /// never shorter.
    fn from_str(text: &str) -> Result<Self, TimeoutMultiplierError> {
        match text.parse() {
            Ok(factor) if (1.0..=100.0).contains(&factor) => Ok(Self(factor)),
            _ => Err(TimeoutMultiplierError),
        }
    }
}

/// A text that is no [`TimeoutMultiplier`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is no number from 1 to 100")]
pub struct TimeoutMultiplierError;

#[cfg(test)]
mod tests {
    use super::{Duration, TimeoutMultiplier};

    fn limits(factor: &str) -> [f64; 4] {
        let factor: TimeoutMultiplier = factor.parse().unwrap();
        let of = |seconds| factor.deadline(Duration::from_secs(seconds)).limit.as_secs_f64();
        [of(1), of(8), of(10), factor.relay_deadline().limit.as_secs_f64()]
    }

    #[test]
    fn no_deadline_is_shorter_than_any_cl_waits() {
        // Lodestar waits 12 s for any answer; Lighthouse with a multiplier of 2, 16 s for a payload.
        assert_eq!(limits("1"), [13.0, 13.0, 13.0, 60.0]);
        assert_eq!(limits("2"), [13.0, 17.0, 21.0, 120.0]);
        assert_eq!(limits("1.75"), [13.0, 15.0, 18.5, 105.0]);
    }

    #[test]
    fn no_multiplier_shortens_and_none_overflows() {
        for text in ["0.9", "0", "-1", "101", "inf", "NaN", "", "1s", "1,5"] {
            assert!(text.parse::<TimeoutMultiplier>().is_err(), "{text}");
        }
        let most: TimeoutMultiplier = "100".parse().unwrap();
        assert_eq!(most.stretch(Duration::MAX), Duration::MAX);
    }
}
