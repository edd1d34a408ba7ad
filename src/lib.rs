//! `engine-ssz-proxy`: a transparent sidecar between an unmodified consensus client (CL) and an
//! execution client (EL).
//!
//! The CL speaks the JSON-RPC Engine API to it; the sidecar speaks the REST-SSZ Engine API to the
//! EL over pooled h2c connections and falls back h2c → HTTP/1.1 → JSON-RPC.
//!
//! [`proxy`] tells the way of one call and is the only module that knows all the rooms:
//!
//! ```text
//! CL ──▶ cl ─▶ jsonrpc ─▶ engine ─▶ wire ─▶ el ──▶ EL
//!      ◀── answer ◀── engine ◀── wire ◀──┘
//! ```
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod buffer;
pub mod cl;
pub mod cli;
pub mod config;
pub mod el;
pub mod engine;
pub mod jsonrpc;
pub mod jwt;
pub mod mock_el;
pub mod proxy;
pub mod serve;
pub mod telemetry;
pub mod tools;
pub mod wire;
