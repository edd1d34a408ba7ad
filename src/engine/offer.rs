//! What the EL at hand offers over REST-SSZ, in the terms of the translation.

use crate::wire::Fork;

/// The part of `GET /capabilities` that decides whether and how a call can be carried
/// (refactor.md, "Capabilities & identification").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    forks: Vec<Fork>,
    payload_max_bytes: usize,
}

impl Offer {
    /// Reads the names in `supported_forks`; names of forks unknown here are left out.
    ///
    /// `payload_max_bytes` is `limits.payload.max_bytes`: the greatest SSZ body in bytes.
    pub fn new<'a>(
        supported_forks: impl IntoIterator<Item = &'a str>,
        payload_max_bytes: usize,
    ) -> Self {
        let mut forks: Vec<_> = supported_forks.into_iter().filter_map(Fork::from_name).collect();
        forks.sort_unstable();
        forks.dedup();
        Self { forks, payload_max_bytes }
    }

    /// An EL that offers those forks and no limit on sizes: for translating without an EL.
    pub fn of_forks(forks: &[Fork]) -> Self {
        Self { forks: forks.to_vec(), payload_max_bytes: usize::MAX }
    }

    /// Whether the EL takes that fork's containers.
    pub fn has(&self, fork: Fork) -> bool {
        self.forks.contains(&fork)
    }

    /// The forks offered, oldest first.
    pub fn forks(&self) -> &[Fork] {
        &self.forks
    }

    /// The greatest SSZ body in bytes that the EL takes.
    pub const fn payload_max_bytes(&self) -> usize {
        self.payload_max_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn life_09_unknown_forks_are_left_out() {
        let offer = Offer::new(["osaka", "bogota", "paris", "Osaka", "osaka"], 10);
        assert_eq!(offer.forks(), [Fork::Paris, Fork::Osaka]);
    }
}
