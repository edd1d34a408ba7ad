//! Every case from the field that is within reach, end to end: a CL's request through a whole sidecar, what
//! the CL got and what the EL received. A test bears the id of its case; README.md lists the rest.

#[allow(dead_code, reason = "shared with the tests of the door to the EL")]
#[path = "../el/peer.rs"]
mod peer;
#[path = "../support/mod.rs"]
mod support;
#[allow(dead_code, reason = "shared with the tests of WebSockets")]
#[path = "../websocket/client.rs"]
mod websocket;

mod auth;
mod blob;
mod body;
mod chain;
mod fork;
mod h1;
mod h2;
mod json;
mod life;
mod log;
mod net;
mod ord;
#[allow(dead_code, reason = "each kind of peer is whole, whatever is used of it")]
mod peers;
#[allow(dead_code, reason = "each kind of peer is whole, whatever is used of it")]
mod port;
#[allow(dead_code, reason = "each kind of peer is whole, whatever is used of it")]
mod raw;
mod req;
mod rest;
mod scene;
mod size;
mod ssz;
mod status;
#[allow(dead_code, reason = "each kind of peer is whole, whatever is used of it")]
mod streams;
mod time;
