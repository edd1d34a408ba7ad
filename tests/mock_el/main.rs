//! The embedded EL, driven over real sockets on both dialects and both versions of HTTP.

mod bodies_and_blobs;
mod chain;
mod client;
mod conversation;
mod faults;
mod json_rpc_rules;
mod real_chain;
mod rest_rules;
mod transport;
