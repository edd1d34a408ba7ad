//! How far into the future the translation reaches.

use crate::wire::Fork;

/// The newest fork that is carried over REST-SSZ. Calls that belong to later ones are relayed, and
/// no timestamp is taken to belong to one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Horizon {
    /// Amsterdam, the newest fork of the REST-SSZ specification.
    #[default]
    Specified,
    /// Bogota, whose shapes are those that the ELs with inclusion lists agree on, and may change.
    Bogota,
}

impl Horizon {
    /// The newest fork within.
    pub const fn newest(self) -> Fork {
        match self {
            Self::Specified => Fork::Amsterdam,
            Self::Bogota => Fork::Bogota,
        }
    }
}
