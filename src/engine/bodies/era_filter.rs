//! Whether the EL keeps to the fork that it is asked for.

use super::{Context, RelayReason, bad_answer};
use crate::wire::Fork;

/// The check that one body gets, once for each EL process: a block is of one fork, so an EL that
/// serves it under a second one has no era filter, and nothing it serves tells a block's fork. Some
/// ELs were released without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EraFilter {
    /// Not known; no body was seen.
    Untested,
    /// The body at that place of the request is being asked for under a second fork.
    Testing {
        /// Place in the request.
        place: usize,
        /// The second fork.
        under: Fork,
    },
    /// Known to be there, or never needed.
    Settled,
}

impl EraFilter {
    pub(super) fn new(context: Context<'_>) -> Self {
        let several = context.offer.is_some_and(|offer| offer.forks().len() > 1);
        match several && !context.memory.has_era_filter() {
            true => Self::Untested,
            false => Self::Settled,
        }
    }

    /// A body was found at that place under that fork: gives the fork to try it under.
    pub(super) fn found(&mut self, place: usize, fork: Fork, context: Context<'_>) -> Option<Fork> {
        if *self != Self::Untested {
            return None;
        }
        let forks = context.offer.map_or(&[][..], |offer| offer.forks());
        let under = forks.iter().rev().copied().find(|other| *other != fork)?;
        *self = Self::Testing { place, under };
        Some(under)
    }

    /// What the second fork gave for it.
    pub(super) fn tested<T>(
        &mut self,
        entries: &[Option<T>],
        context: Context<'_>,
    ) -> Result<(), RelayReason> {
        *self = Self::Settled;
        match entries {
            [None] => {
                context.memory.note_era_filter();
                Ok(())
            }
            [Some(_)] => Err(bad_answer("the same body under two forks")),
            entries => Err(super::wrong_number(entries.len(), 1)),
        }
    }
}
