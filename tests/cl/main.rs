//! The door to the CL over real sockets.

mod calls;
mod limits;
mod lives;
mod passages;
mod support;
