//! Logs and counts.

mod logging;
pub mod tally;

pub use logging::{Format, check_filter, init};
pub use tally::{Carried, First, OTHER, Tally};
