//! What comes through the door and what goes back.

use std::error::Error;
use std::time::Instant;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;

use crate::jsonrpc::Reply;

/// A body that is handed on piece by piece, in either direction.
pub type StreamedBody = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

/// A request that has been let in, its body complete; or a message of a WebSocket that has.
#[derive(Clone, Debug)]
pub struct Call<P = ()> {
    /// The body as it came: any bytes, up to the limit.
    pub body: Bytes,
    /// Who calls.
    pub caller: Caller,
    /// When the request's head was read. The handler is called once the body is complete, so the
    /// time from here to there is what the CL needed to send it. Over a WebSocket, where messages
    /// have no head, when it was complete.
    pub received: Instant,
    /// What [`Handler::begun`] gave for the first bytes of the body. `None` also when the body came
    /// too slowly ([`Config::place_pause`](super::Config::place_pause)).
    pub place: Option<P>,
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

/// A request of a CL that speaks REST-SSZ itself: any verb, a path under `/engine/`.
#[derive(Debug)]
pub struct Passage<P = ()> {
    /// The request as it came. Its body is whole if [`Handler::in_order`] gave it a place.
    /// Otherwise it is still on its way, and fails when the CL breaks off, stalls or goes over the
    /// limit; the CL is then told so, whatever the handler answers.
    pub request: Request<StreamedBody>,
    /// Who asks.
    pub caller: Caller,
    /// What [`Handler::in_order`] gave, unless the body came too slowly
    /// ([`Config::place_pause`](super::Config::place_pause)).
    pub place: Option<P>,
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

/// How much of a body [`Handler::begun`] gets to see, in bytes.
pub const FIRST_BYTES: usize = 4096;

/// What is behind the door.
pub trait Handler: Clone + Send + Sync + 'static {
    /// A place in a line that is taken while a body is still on its way: a small call must not
    /// overtake a large one that was begun before it. Dropping it gives the place up.
    type Place: Send + 'static;

    /// Looks at the first bytes of a body and takes a place for the call, if it is one that must
    /// keep its order. Called at once, and again with more of the same body, up to
    /// [`FIRST_BYTES`], until there is a place. A place taken in vain does no harm. Not called for a
    /// caller without a bearer, and once for a message of a WebSocket, which is there as a whole.
    fn begun(&self, _first: &[u8]) -> Option<Self::Place> {
        None
    }

    /// Looks at the head of a request of the REST-SSZ API and takes a place for it, if it is one that
    /// must keep its order. Such a request is passed on with its body whole, so that nobody waits in
    /// the line for bytes of the CL; all others are passed on at once. The place is dropped at once if
    /// the caller has no bearer.
    fn in_order(&self, _head: &Parts) -> Option<Self::Place> {
        None
    }

    /// Is told that a call, or a request passed on, panicked. The CL has been answered.
    fn panicked(&self) {}

    /// Serves one call. It runs in a task of its own and to its end, even when the CL hangs up: an
    /// exchange with the EL must not be cut in the middle.
    ///
    /// The messages of a WebSocket are begun in order: each call is polled once before the next one
    /// is made. A handler that takes its place in a line when first polled keeps their order.
    fn call(&self, call: Call<Self::Place>) -> impl Future<Output = Outcome> + Send;

    /// Passes on a request of the REST-SSZ API. It runs in a task of its own up to the head of the
    /// answer, also when the CL hangs up; the answer's body is dropped with the CL's connection.
    ///
    /// A handler of JSON-RPC alone has no such paths: 404.
    fn pass(
        &self,
        _passage: Passage<Self::Place>,
    ) -> impl Future<Output = Response<StreamedBody>> + Send {
        let mut response = Response::new(StreamedBody::default());
        *response.status_mut() = StatusCode::NOT_FOUND;
        std::future::ready(response)
    }
}
