//! Faults on demand: what can go wrong at an EL, and when it shall.
//!
//! A [`Faults`] script holds two ordered lists of rules, one for requests and one for connections; a
//! [`FaultsHandle`] shares it between the EL and whoever runs it, who may add rules while it runs.
//! Of the rules for one request the first that wants it is the one that takes place.
//!
//! Every fault tells whether the EL runs the request under it ([`Fault::processes`]), so that an
//! oracle may know what the chain must look like however the answer got lost.

mod damage;
mod fault;
mod file;
mod handle;
mod kind;
mod rule;
mod shape;
#[cfg(test)]
mod tests;

pub use fault::{
    Accepted, At, Damage, Encoding, Fault, JsonDamage, LastStream, Media, Memory, Pause, Refusal,
    ResetReason, Restart, When,
};
pub use file::FaultsError;
pub use handle::{FaultsHandle, Injected, Injection};
pub use kind::Kind;
pub use rule::{
    ConnectionRule, Dialect, Faults, HttpVersion, Operation, OutOfRange, Probability, Rule, Target,
    Times,
};

pub(super) use damage::damaged;
pub(super) use handle::{Asked, Chosen, Stage};
pub(super) use shape::Container;
