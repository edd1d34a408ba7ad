//! The subcommands for the field.

mod cl;
pub mod decode;
pub mod demo;
mod difference;
pub mod encode;
mod eras;
pub mod mock_el;
pub mod soak;
