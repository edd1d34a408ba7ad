//! What the fuzz targets do with an input. The oracle is that of the property tests.

#![allow(dead_code, reason = "the property tests use more of the oracle")]

#[path = "../../tests/wire_properties/differences.rs"]
mod differences;
#[path = "../../tests/wire_properties/draw.rs"]
mod draw;
#[path = "../../tests/wire_properties/judge.rs"]
mod judge;
#[path = "../../tests/wire_properties/oracle/mod.rs"]
mod oracle;
mod targets;

pub use targets::*;
