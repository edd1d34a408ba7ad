//! Each fault as it looks on the wire.

mod answers;
mod breaks;
mod connections;
mod raw;
mod restarts;
