//! The door to the CL over real sockets.

mod bounds;
mod calls;
mod limits;
mod lives;
mod passages;
mod places;
mod support;
