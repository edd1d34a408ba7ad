//! The door to the CL: HTTP/1.1, h2c and WebSocket on one port or socket file, JWT check. Knows
//! nothing of engine methods.
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
//! | content type that is neither JSON nor plain text | 400 |
//! | body over the limit | 413, at the head when that tells the length |
//! | body that breaks off or stalls | 400 |
//! | more than the [`Bounds`] take | 200 with `-32603`; 503 under `/engine/`; a connection is closed |
//! | a handler that panics | 200 with `-32603`; 500 under `/engine/` |
//!
//! A CL that takes not a byte of what it is told for 60 s loses its connection. Over HTTP/2 it can hold
//! back a stream alone, and keeps that for as long as it answers pings.
//!
//! Every other answer to a call is 200: a CL takes any other status for a broken EL and sends the
//! call again.
//!
//! A call or passage that must keep its order takes its place early: a call at the first bytes of its
//! body ([`Handler::begun`]), a passage at its head ([`Handler::in_order`]). It has its turn when its
//! body is there as a whole, and a body that pauses loses the place: neither door lets a CL that
//! stalls hold up another one's calls. A caller without a bearer, which [`Auth::Forward`] lets in,
//! has no place before its body is whole.
//!
//! Over HTTP/2 each stream is served by itself: of two that are sent without waiting for the answer
//! to the first, either may take its place before the other. Over a WebSocket, and over HTTP/1.1,
//! what is sent first is first.
//!
//! The token of a WebSocket's handshake lets in all its messages. Where it goes to the EL with each
//! of them ([`Auth::Forward`]) the socket is closed before it is too old (`authentication.md`, "JWT
//! Claims"), so that the CL comes back with a new one.

mod attempt;
mod auth;
mod body;
mod bounds;
mod call;
mod claim;
mod conversation;
mod linger;
mod listener;
mod metered;
mod pace;
mod refusal;
mod server;
mod service;
mod socket_file;
mod websocket;
mod write_timeout;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::jwt::Secret;

pub use bounds::Bounds;
pub use call::{Call, Caller, FIRST_BYTES, Handler, Outcome, Passage, StreamedBody};
pub use listener::{BindError, Place};
pub use server::{Server, Stopped};

/// How the door is kept.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who is let in.
    pub auth: Auth,
    /// The longest request body or WebSocket message, in bytes. The Engine API names no limit for
    /// JSON-RPC; ELs take 128 MiB and more on this port.
    pub body_limit: usize,
    /// How long a connection may go without a complete request head: at its start, between two
    /// requests and inside a head; and a WebSocket without a byte, be it of the answer to a ping. It
    /// must outlast the idle time of a CL's pool (up to 90 s), or the CL sends into a connection that
    /// is just being closed.
    pub head_timeout: Duration,
    /// How long a body may go without a further byte. In all it has 120 s, and a second more for each
    /// 64 KiB that come.
    pub body_timeout: Duration,
    /// How long a body may pause before it loses the place that was taken for its beginning, so
    /// that a CL that stalls does not hold up another one's calls. A body that takes
    /// [`PLACE_PAUSES`] times as long loses it too, however it comes, and one whose head does not say
    /// that it is longer than [`SHORT_BODY`] after [`SHORT_PLACE_PAUSES`] of them.
    pub place_pause: Duration,
    /// How much is taken on at once.
    pub bounds: Bounds,
    /// How long calls in flight may take once the server is to stop.
    pub grace: Duration,
    /// The clock a token's `iat` is held against.
    pub clock: Clock,
}

impl Config {
    /// The usual values: 128 MiB, 120 s for a head, 30 s for the next byte of a body, 1 s before a
    /// body that pauses loses its place, the usual [`Bounds`], 10 s of grace, the system's clock.
    pub const fn new(auth: Auth) -> Self {
        const BODY_LIMIT: usize = 128 * 1024 * 1024;
        Self {
            auth,
            body_limit: BODY_LIMIT,
            head_timeout: Duration::from_secs(120),
            body_timeout: Duration::from_secs(30),
            place_pause: Duration::from_secs(1),
            bounds: Bounds::new(BODY_LIMIT),
            grace: Duration::from_secs(10),
            clock: system_clock,
        }
    }
}

/// Pauses that a body with a place may take in all. By then, at 8 s, the CL has given the call up
/// itself (`paris.md`, *Timeout*).
pub const PLACE_PAUSES: u32 = 8;

/// The same for a body that is short, or whose head does not give its length.
pub const SHORT_PLACE_PAUSES: u32 = 2;

/// What is short, in bytes: all but large payloads.
pub const SHORT_BODY: u64 = 1024 * 1024;

/// A line that many callers could cause is written once in this time for each kind.
const LINE_PAUSE: Duration = Duration::from_secs(60);

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
