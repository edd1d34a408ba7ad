//! What comes through the door and what goes back.

use std::time::Instant;

use bytes::Bytes;
use http::{HeaderValue, StatusCode};

use crate::jsonrpc::Reply;

/// A request that has been let in, its body complete.
#[derive(Clone, Debug)]
pub struct Call {
    /// The body as it came: any bytes, up to the limit.
    pub body: Bytes,
    /// Who calls.
    pub caller: Caller,
    /// When the request's head was read. The handler is called once the body is complete, so the
    /// time from here to there is what the CL needed to send it.
    pub received: Instant,
}

/// What the request's head says of the caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// `Bearer TOKEN`, the scheme's name and the space normalised as some ELs take no other;
    /// marked sensitive. `None` only when the check is left to the EL.
    pub bearer: Option<HeaderValue>,
    /// The `traceparent` header (W3C Trace Context), to be handed on.
    pub traceparent: Option<HeaderValue>,
    /// The `X-Engine-Client-Version` header or, without one, the token's `clv` claim, which the
    /// REST-SSZ API replaces by that header (`refactor.md`, "Authentication"). Printable ASCII.
    pub client_version: Option<HeaderValue>,
}

/// How a call ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A JSON-RPC answer, also one with an error: goes out with 200 and `application/json`; an
    /// empty one (for notifications) with an empty body.
    Json(Reply),
    /// An answer of another status, with a text. For a 401 or 403 handed on from the EL.
    Status(StatusCode, Bytes),
}

/// What is behind the door.
pub trait Handler: Clone + Send + Sync + 'static {
    /// Serves one call. It runs in a task of its own and to its end, even when the CL hangs up: an
    /// exchange with the EL must not be cut in the middle.
    fn call(&self, call: Call) -> impl Future<Output = Outcome> + Send;
}
