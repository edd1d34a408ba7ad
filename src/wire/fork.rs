//! The named forks that have wire shapes of their own.

use std::fmt;

/// A named execution-layer fork, in activation order.
///
/// These are the values of the `Eth-Execution-Version` header (refactor.md, "Versioning model").
/// Blob-parameter-only forks have no value of their own: they use the named fork below them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fork {
    /// The merge.
    Paris,
    /// Withdrawals (EIP-4895).
    Shanghai,
    /// Blobs (EIP-4844) and the parent beacon block root (EIP-4788).
    Cancun,
    /// Execution requests (EIP-7685).
    Prague,
    /// Cell proofs (EIP-7594).
    Osaka,
    /// Block access lists (EIP-7928) and the slot number.
    Amsterdam,
    /// Inclusion lists (EIP-7805). Experimental: the REST-SSZ specification does not have it yet.
    Bogota,
}

impl Fork {
    /// Every fork known here, oldest first.
    pub const ALL: [Self; 7] = [
        Self::Paris,
        Self::Shanghai,
        Self::Cancun,
        Self::Prague,
        Self::Osaka,
        Self::Amsterdam,
        Self::Bogota,
    ];

    /// The forks that the REST-SSZ specification defines, oldest first; the others may change shape
    /// and are carried on request only.
    pub const SPECIFIED: [Self; 6] =
        [Self::Paris, Self::Shanghai, Self::Cancun, Self::Prague, Self::Osaka, Self::Amsterdam];

    /// The lower-case name, as the `Eth-Execution-Version` header carries it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Paris => "paris",
            Self::Shanghai => "shanghai",
            Self::Cancun => "cancun",
            Self::Prague => "prague",
            Self::Osaka => "osaka",
            Self::Amsterdam => "amsterdam",
            Self::Bogota => "bogota",
        }
    }

    /// The fork of that exact lower-case name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fork| fork.name() == name)
    }
}

impl fmt::Display for Fork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
