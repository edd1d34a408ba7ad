//! The forks this EL knows and when they start.

use std::fmt;

use serde::Deserialize;

/// A named fork, oldest first (refactor.md, "Versioning model").
///
/// Blob-parameter-only forks have no name here: they change no wire shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "they are the forks' own names")]
pub enum Fork {
    Paris,
    Shanghai,
    Cancun,
    Prague,
    Osaka,
    Amsterdam,
}

impl Fork {
    pub(super) const ALL: [Self; 6] =
        [Self::Paris, Self::Shanghai, Self::Cancun, Self::Prague, Self::Osaka, Self::Amsterdam];

    /// The value of the `Eth-Execution-Version` header.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Paris => "paris",
            Self::Shanghai => "shanghai",
            Self::Cancun => "cancun",
            Self::Prague => "prague",
            Self::Osaka => "osaka",
            Self::Amsterdam => "amsterdam",
        }
    }

    /// The fork whose header value this is, to the letter.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fork| fork.name() == name)
    }
}

impl fmt::Display for Fork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// When each fork starts, by block timestamp.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    /// Forks above Paris with their first timestamp, both ascending.
    later: Vec<(Fork, u64)>,
}

impl Schedule {
    /// A schedule out of fork starts in fork order; a fork without a start never comes.
    ///
    /// # Errors
    ///
    /// The two forks that are out of order, if a fork comes without, or before, the one below it.
    pub(super) fn new(starts: [(Fork, Option<u64>); 5]) -> Result<Self, (Fork, Fork)> {
        let mut later = Vec::new();
        let (mut below, mut from) = (Fork::Paris, Some(0));
        for (fork, start) in starts {
            match (from, start) {
                (Some(from), Some(start)) if start >= from => later.push((fork, start)),
                (_, None) => {}
                (_, Some(_)) => return Err((below, fork)),
            }
            (below, from) = (fork, start);
        }
        Ok(Self { later })
    }

    /// The fork a block of that timestamp belongs to.
    pub(super) fn at(&self, timestamp: u64) -> Fork {
        self.later
            .iter()
            .rev()
            .find(|(_, start)| *start <= timestamp)
            .map_or(Fork::Paris, |(fork, _)| *fork)
    }

    /// Every fork this chain has or will have, oldest first.
    pub(super) fn forks(&self) -> impl Iterator<Item = Fork> {
        std::iter::once(Fork::Paris).chain(self.later.iter().map(|(fork, _)| *fork))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(starts: [Option<u64>; 5]) -> Result<Schedule, (Fork, Fork)> {
        let mut forks = Fork::ALL.into_iter().skip(1);
        Schedule::new(starts.map(|start| (forks.next().unwrap(), start)))
    }

    #[test]
    fn a_fork_starts_with_its_own_second() {
        let schedule = schedule([Some(36), Some(72), Some(72), None, None]).unwrap();
        assert_eq!(schedule.at(0), Fork::Paris);
        assert_eq!(schedule.at(35), Fork::Paris);
        assert_eq!(schedule.at(36), Fork::Shanghai);
        assert_eq!(schedule.at(72), Fork::Prague);
        assert_eq!(schedule.at(u64::MAX), Fork::Prague);
        let known: Vec<_> = schedule.forks().collect();
        assert_eq!(known, [Fork::Paris, Fork::Shanghai, Fork::Cancun, Fork::Prague]);
    }

    #[test]
    fn forks_out_of_order_are_refused() {
        assert_eq!(
            schedule([Some(36), Some(35), None, None, None]).unwrap_err(),
            (Fork::Shanghai, Fork::Cancun)
        );
        assert_eq!(
            schedule([Some(36), None, Some(72), None, None]).unwrap_err(),
            (Fork::Cancun, Fork::Prague)
        );
    }
}
