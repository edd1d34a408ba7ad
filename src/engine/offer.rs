//! What the EL at hand offers over REST-SSZ, in the terms of the translation.

use super::{Horizon, ListedEndpoint, Method};
use crate::wire::Fork;

/// The part of `GET /capabilities` that decides whether and how a call can be carried
/// (refactor.md, "Capabilities & identification").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    forks: Vec<Fork>,
    /// Whether the EL offers forks beside those.
    others: Others,
    limits: Limits,
    /// What the EL lists all the others beside.
    unlisted: Vec<ListedEndpoint>,
}

/// Forks that the EL offers and that are not asked for here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Others {
    None,
    Some,
}

/// What the EL takes in one request (refactor.md, `limits`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The greatest SSZ body in bytes.
    pub payload_max_bytes: usize,
    /// Hashes or block numbers.
    pub bodies_max: usize,
    /// Versioned hashes.
    pub blobs_max: usize,
}

impl Offer {
    /// Reads the names in `supported_forks`; names of forks unknown here, and of those beyond the
    /// specification, are left out.
    pub fn new<'a>(supported_forks: impl IntoIterator<Item = &'a str>, limits: Limits) -> Self {
        Self::within(Horizon::Specified, supported_forks, limits)
    }

    /// The same up to that horizon.
    pub fn within<'a>(
        horizon: Horizon,
        supported_forks: impl IntoIterator<Item = &'a str>,
        limits: Limits,
    ) -> Self {
        let mut others = Others::None;
        let mut forks = Vec::new();
        for name in supported_forks {
            match Fork::from_name(name).filter(|fork| *fork <= horizon.newest()) {
                Some(fork) => forks.push(fork),
                None => others = Others::Some,
            }
        }
        forks.sort_unstable();
        forks.dedup();
        Self { forks, others, limits, unlisted: Vec::new() }
    }

    /// An EL that offers those forks and no limit on sizes: for translating without an EL.
    pub fn of_forks(forks: &[Fork]) -> Self {
        let limits =
            Limits { payload_max_bytes: usize::MAX, bodies_max: usize::MAX, blobs_max: usize::MAX };
        Self { forks: forks.to_vec(), others: Others::None, limits, unlisted: Vec::new() }
    }

    /// The same from an EL that lists those endpoints alone.
    pub fn listing(self, lists: impl Fn(ListedEndpoint) -> bool) -> Self {
        let unlisted = ListedEndpoint::LISTED.into_iter().filter(|endpoint| !lists(*endpoint));
        Self { unlisted: unlisted.collect(), ..self }
    }

    /// Whether the EL has the endpoint that carries the method.
    pub fn serves(&self, method: Method) -> bool {
        !self.unlisted.contains(&method.endpoint())
    }

    /// Whether the EL takes that fork's containers.
    pub fn has(&self, fork: Fork) -> bool {
        self.forks.contains(&fork)
    }

    /// Whether a block of any of those forks can be asked for, and the EL has no forks but those
    /// known here.
    pub fn covers(&self, mut forks: impl Iterator<Item = Fork>) -> bool {
        self.others == Others::None && forks.all(|fork| self.has(fork))
    }

    /// The forks offered, oldest first.
    pub fn forks(&self) -> &[Fork] {
        &self.forks
    }

    /// What the EL takes in one request.
    pub const fn limits(&self) -> Limits {
        self.limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn life_09_unknown_forks_are_left_out() {
        let names = ["osaka", "bogota", "paris", "Osaka", "osaka", "paisley"];
        let limits = Offer::of_forks(&[]).limits();
        assert_eq!(Offer::new(names, limits).forks(), [Fork::Paris, Fork::Osaka]);
        let wider = Offer::within(Horizon::Bogota, names, limits);
        assert_eq!(wider.forks(), [Fork::Paris, Fork::Osaka, Fork::Bogota]);
    }

    #[test]
    fn an_offer_covers_no_chain_whose_forks_it_does_not_all_know() {
        let covers = |names: &[&str], forks: &[Fork]| {
            let limits = Offer::of_forks(&[]).limits();
            Offer::new(names.iter().copied(), limits).covers(forks.iter().copied())
        };
        assert!(covers(&["paris", "shanghai"], &[Fork::Paris, Fork::Shanghai]));
        assert!(covers(&["paris", "shanghai"], &[Fork::Shanghai]));
        assert!(!covers(&["shanghai"], &[Fork::Paris, Fork::Shanghai]));
        assert!(!covers(&["paris", "bogota"], &[Fork::Paris]), "beyond the horizon");
        assert!(!covers(&["paris", "paisley"], &[Fork::Paris]), "unknown");
    }
}
