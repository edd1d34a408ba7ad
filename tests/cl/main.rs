//! The door to the CL over real sockets.

mod bounds;
mod calls;
mod limits;
mod lives;
#[path = "../cases/log.rs"]
mod log;
mod passages;
mod places;
mod support;
