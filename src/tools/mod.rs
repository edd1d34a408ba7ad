//! The subcommands for the field.

pub mod decode;
pub mod demo;
pub mod encode;
pub mod mock_el;
