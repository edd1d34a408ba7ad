//! Logs.

pub mod logging;
