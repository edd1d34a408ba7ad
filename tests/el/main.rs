//! The door to the EL against scripted peers on loopback.

mod addresses;
mod connections;
mod deadlines;
mod documents;
mod endpoints;
mod faults;
mod lanes;
mod life;
mod numbers;
mod peer;
mod reuse;
mod surfaces;
mod tokens;
