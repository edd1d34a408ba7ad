//! The resident memory of the sidecar's process.

use std::{fmt, time::Duration};

/// What memory may grow by after warm-up and still be called flat: a tenth, and this much, which an
/// allocator takes and gives back as it likes.
const SLACK: u64 = 8 << 20;

/// Samples, in bytes, at equal intervals.
#[derive(Clone, Debug, Default)]
pub struct Memory(Vec<u64>);

/// Whether memory stays what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    /// The run was too short, or there is nothing to measure.
    Unknown,
    /// It does.
    Flat {
        /// Bytes in the middle of the run: the median of its second third.
        before: u64,
        /// Bytes at its end: the median of its last third.
        after: u64,
    },
    /// It grows.
    Grows {
        /// As above.
        before: u64,
        /// As above.
        after: u64,
    },
}

impl Memory {
    /// How often to measure.
    pub(super) const INTERVAL: Duration = Duration::from_millis(250);

    /// Measures the process of that id, where the system tells.
    pub(super) fn sample(&mut self, process: Option<u32>) {
        self.0.extend(process.and_then(resident));
    }

    /// The newest sample, in bytes.
    pub fn newest(&self) -> Option<u64> {
        self.0.last().copied()
    }

    /// The greatest sample, in bytes.
    pub fn peak(&self) -> Option<u64> {
        self.0.iter().max().copied()
    }

    /// The first third is warm-up; of the others the medians are compared. Under 30 s it is not
    /// judged.
    pub fn trend(&self) -> Trend {
        if Self::INTERVAL * u32::try_from(self.0.len()).unwrap_or(u32::MAX)
            < Duration::from_secs(30)
        {
            return Trend::Unknown;
        }
        let third = self.0.len() / 3;
        let middle = self.0.get(third..2 * third).and_then(median);
        let last = self.0.get(2 * third..).and_then(median);
        match (middle, last) {
            (Some(before), Some(after)) if after > before + before / 10 + SLACK => {
                Trend::Grows { before, after }
            }
            (Some(before), Some(after)) => Trend::Flat { before, after },
            _ => Trend::Unknown,
        }
    }
}

fn median(samples: &[u64]) -> Option<u64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

/// VmRSS of `/proc/PID/status` (proc(5)), in bytes.
fn resident(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Bytes for people.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mebibytes(pub u64);

impl fmt::Display for Mebibytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} MiB", self.0 as f64 / (1 << 20) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(at: impl Fn(u64) -> u64) -> Memory {
        Memory((0..240).map(|n| at(n) << 20).collect())
    }

    #[test]
    fn warm_up_and_waves_are_flat_and_a_slope_grows() {
        assert!(matches!(memory(|n| 30 + n.min(60)).trend(), Trend::Flat { .. }));
        assert!(matches!(memory(|n| 50 + n % 20).trend(), Trend::Flat { .. }));
        assert!(matches!(memory(|n| 30 + n / 2).trend(), Trend::Grows { .. }));
        assert_eq!(Memory(vec![1; 100]).trend(), Trend::Unknown);
        assert_eq!(memory(|n| n).peak(), Some(239 << 20));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_that_runs_has_memory_and_one_that_does_not_has_none() {
        let mut memory = Memory::default();
        memory.sample(Some(std::process::id()));
        assert!(memory.newest().is_some_and(|bytes| bytes > 1 << 20));
        memory.sample(Some(u32::MAX));
        memory.sample(None);
        assert_eq!(memory.0.len(), 1);
    }
}
