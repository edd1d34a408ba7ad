//! The door to the CL: HTTP/1.1, h2c and WebSocket on one port or socket file, JWT check. Knows nothing of engine methods.
//!
//! A request that gets in is a [`Call`] and goes to the [`Handler`]; everything the envelope of
//! HTTP decides by itself is answered here:
//!
//! | request | answer |
//! |-|-|
//! | anything under `/engine/` | a [`Passage`]: the CL speaks REST-SSZ itself |
//! | `POST` on any other path | a call |
//! | a WebSocket's handshake on any other path | 101; from then on each message is a call |
//! | any other verb | 405 |
//! | no good token | 401, before the body is read |
//! | content type that is neither JSON nor plain text | 415 |
//! | body over the limit | 413, at the head when that tells the length |
//! | body that breaks off or stalls | 400, 408 |
//!
//! Every other answer to a call is 200: a CL takes any other status for a broken EL and sends the
//! call again.

mod auth;
mod body;
mod call;
mod conversation;
mod linger;
mod listener;
mod metered;
mod refusal;
mod server;
mod service;
mod websocket;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::jwt::Secret;

pub use call::{Call, Caller, Handler, Outcome, Passage, StreamedBody};
pub use listener::{BindError, Place};
pub use server::{Server, Stopped};

/// How the door is kept.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who is let in.
    pub auth: Auth,
    /// The longest request body or WebSocket message, in bytes. The Engine API names no limit for JSON-RPC; ELs take
    /// 128 MiB and more on this port.
    pub body_limit: usize,
    /// How long a connection may go without a complete request head: at its start, between two
    /// requests and inside a head; and a WebSocket without a message or a sign of life. It must outlast the idle time of a CL's pool (up to 90 s), or
    /// the CL sends into a connection that is just being closed.
    pub head_timeout: Duration,
    /// How long a body may go without a further byte.
    pub body_timeout: Duration,
    /// How long calls in flight may take once the server is to stop.
    pub grace: Duration,
    /// The clock a token's `iat` is held against.
    pub clock: Clock,
}

impl Config {
    /// The usual values: 128 MiB, 120 s for a head, 30 s for the next byte of a body, 10 s of
    /// grace, the system's clock.
    pub fn new(auth: Auth) -> Self {
        Self {
            auth,
            body_limit: 128 * 1024 * 1024,
            head_timeout: Duration::from_secs(120),
            body_timeout: Duration::from_secs(30),
            grace: Duration::from_secs(10),
            clock: system_clock,
        }
    }
}

/// Tells the time in seconds since the Unix epoch.
pub type Clock = fn() -> u64;

/// The system's clock. One set before 1970 reads as 0.
pub fn system_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// Who is let in.
#[derive(Clone, Debug)]
pub enum Auth {
    /// Whoever bears a token made with this secret less than a minute from now
    /// (`authentication.md`).
    Check(Secret),
    /// Everybody: the bearer goes to the EL as it came and the EL is the judge, also of a request
    /// that bears none. Only an `Authorization` that cannot be passed on as one bearer is refused.
    Forward,
}
