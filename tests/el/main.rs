//! The door to the EL against scripted peers on loopback.

mod connections;
mod documents;
mod endpoints;
mod faults;
mod lanes;
mod life;
mod peer;
mod reuse;
mod surfaces;
mod tokens;
