//! Logs and counts.

mod logging;
mod seldom;
pub mod tally;

pub use logging::{Format, check_filter, init};
pub use seldom::Seldom;
pub use tally::{Carried, First, OTHER, Tally};
