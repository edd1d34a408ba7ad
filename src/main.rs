//! The `engine-ssz-proxy` program.

fn main() {}
