//! The faults themselves.

use std::time::Duration;

use serde::Deserialize;

use super::super::{
    fork::Fork,
    rest::Limits,
    surface::{Http, Surface},
};

/// Whether a fault strikes before or after the EL has run the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// The request is never run.
    Before,
    /// The request is run; its answer is lost, late or another.
    After,
}

/// Where an exchange breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum At {
    /// The request is read whole and never run; no byte of an answer comes.
    Before,
    /// The request is run; no byte of an answer comes.
    After,
    /// The request is run; the answer's head and this many bytes of its body come.
    InBody(usize),
}

/// How long a stall lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pause {
    /// Until the peer gives up.
    Endless,
    /// This long; then the rest of the honest answer comes.
    For(Duration),
}

/// The last stream a GOAWAY names (RFC 9113, section 6.8). A peer may send again what is above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LastStream {
    /// The one before this request's, which is never run and never answered, like all after it.
    Below,
    /// This request's, which is run and answered; later streams are not.
    This,
    /// This request's, which is run; the connection is then closed without its answer.
    ThisUnanswered,
}

/// The error code of a RST_STREAM (RFC 9113, section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResetReason {
    /// `REFUSED_STREAM`: the peer may take it that nothing was run, true or not.
    RefusedStream,
    /// `INTERNAL_ERROR`.
    InternalError,
    /// `CANCEL`.
    Cancel,
    /// `ENHANCE_YOUR_CALM`.
    EnhanceYourCalm,
    /// `HTTP_1_1_REQUIRED`.
    Http11Required,
}

/// A refusal that an EL, or something in front of it, makes of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// 401, `text/plain`.
    Unauthorized,
    /// 404, `text/plain`, as of a server that does not know the path.
    NotFound,
    /// 500, `text/plain`, as of a handler that panicked.
    Internal,
    /// 503, `text/plain`, with `Retry-After: 1`.
    Unavailable,
}

/// What an answer's `Content-Type` says, with status 200.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Media {
    /// `application/json` on an honest SSZ body.
    JsonOnSsz,
    /// A `text/html` page in place of the body.
    Html,
    /// No such header, the body honest.
    Missing,
}

/// An encoding of an honest body that nobody asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// `Content-Encoding: gzip`, and the body truly so.
    Gzip,
    /// No length told: chunked over HTTP/1.1, no `content-length` over HTTP/2.
    NoLength,
}

/// A malformation of an SSZ answer which a strict reader can tell. One that a container has no place
/// for (a boolean in a `PayloadStatus`) leaves that answer honest, and its rule unspent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Damage {
    /// Ends one byte before the end of its fixed part.
    TruncatedFixed,
    /// Ends one byte before the last of all its offsets points to.
    TruncatedTail,
    /// One byte more than its last field can hold; none if that field takes any number of bytes.
    ExtraTail,
    /// The outermost first offset is one too high, so that there is a gap behind the fixed part.
    FirstOffset,
    /// Two neighbouring offsets are exchanged.
    OffsetsOutOfOrder,
    /// The outermost last offset points one byte behind the end.
    OffsetPastEnd,
    /// A boolean is 2.
    BooleanTwo,
    /// An `Optional` has two elements.
    OptionalTwo,
    /// A list is one element longer than its bound.
    OverBound,
}

impl Damage {
    /// Every damage, in the order above.
    pub const ALL: [Self; 9] = [
        Self::TruncatedFixed,
        Self::TruncatedTail,
        Self::ExtraTail,
        Self::FirstOffset,
        Self::OffsetsOutOfOrder,
        Self::OffsetPastEnd,
        Self::BooleanTwo,
        Self::OptionalTwo,
        Self::OverBound,
    ];
}

/// A malformation of a JSON-RPC answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JsonDamage {
    /// No JSON at all, as `application/json`.
    Garbage,
    /// The honest answer with another id.
    WrongId,
    /// The honest answer without its last byte, in a body of that length.
    Truncated,
}

/// What an EL still knows after a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// Everything, builds too.
    Kept,
    /// The chain; builds are gone, and the same attributes get another payload id from now on.
    #[default]
    ChainOnly,
    /// Nothing but the genesis.
    Lost,
}

/// A restart on the same port: every connection is cut, then the EL is another where it says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restart {
    /// What it remembers.
    pub memory: Memory,
    /// The dialects it serves from then on; `None` for those of before.
    pub surface: Option<Surface>,
    /// The versions of HTTP it speaks from then on; `None` for those of before.
    pub http: Option<Http>,
    /// The newest fork it offers over REST from then on; `None` for the one of before.
    pub newest_fork: Option<Fork>,
    /// Its limits over REST from then on; `None` for those of before.
    pub limits: Option<Limits>,
    /// How long the port refuses connections in between.
    pub down: Duration,
}

impl Default for Restart {
    /// At once, with the same surface and the chain kept.
    fn default() -> Self {
        Self {
            memory: Memory::default(),
            surface: None,
            http: None,
            newest_fork: None,
            limits: None,
            down: Duration::ZERO,
        }
    }
}

/// What goes wrong with one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The honest answer comes this much later; with [`When::Before`] the request is run only then,
    /// unless the peer has left.
    Delay {
        /// Which side of the run the pause is on.
        when: When,
        /// How long.
        pause: Duration,
    },
    /// No answer ever comes; the connection stays open.
    Silence {
        /// Whether the request is run.
        when: When,
    },
    /// The head and this many bytes of the honest body come at once, the rest after the pause.
    Stall {
        /// Bytes of the body before the pause.
        after: usize,
        /// The pause.
        pause: Pause,
    },
    /// The connection is closed (FIN).
    Cut {
        /// Where the exchange breaks off.
        at: At,
    },
    /// The connection is reset (RST); the kernel may throw away bytes on the way.
    Reset {
        /// Where the exchange breaks off.
        at: At,
    },
    /// The stream is reset, over HTTP/2 only; the connection lives on.
    ResetStream {
        /// Where the exchange breaks off.
        at: At,
        /// The code.
        reason: ResetReason,
    },
    /// GOAWAY with `NO_ERROR`, over HTTP/2 only.
    GoAway {
        /// The last stream it names.
        last: LastStream,
    },
    /// 413 before a byte of the body is read, then the connection is closed over HTTP/1.1; over
    /// HTTP/2 the stream is reset with `NO_ERROR`. The request is not run. A rule with it sees no
    /// JSON-RPC method, so over JSON-RPC only [`Target::Any`](super::Target::Any) matches.
    TooLargeEarly,
    /// Another answer than the honest one.
    Refuse {
        /// Whether the request is run.
        when: When,
        /// The answer.
        refusal: Refusal,
    },
    /// An honest run, told under another media type.
    Media(Media),
    /// An honest run, its answer encoded.
    Encoding(Encoding),
    /// An honest run, answered with 204.
    NoContent,
    /// An honest run, answered with 200, the right content type and no byte.
    EmptyBody,
    /// An honest run, answered with 200, the right content type and this many zero bytes.
    Huge {
        /// Bytes of the body.
        bytes: u64,
    },
    /// An honest run, its SSZ answer damaged. REST only.
    Ssz(Damage),
    /// An honest run, its JSON-RPC answer damaged. JSON-RPC only.
    Json(JsonDamage),
    /// The EL restarts; this request gets no answer.
    Restart {
        /// Whether the request is run.
        when: When,
        /// The restart.
        restart: Restart,
    },
}

/// What a connection is like from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Accepted {
    /// Closed at once (FIN).
    Closed,
    /// Reset at once (RST).
    Reset,
    /// Open, and nothing is ever read or written.
    Mute,
    /// An empty SETTINGS frame is sent, and nothing else ever.
    SettingsOnly,
    /// HTTP/2 streams start with a window of this many bytes, 1 or more; the connection with the
    /// protocol's 65535.
    TinyWindow(u32),
    /// HTTP/2 allows one stream at a time.
    MaxStreamsOne,
}

impl Fault {
    /// Whether the EL runs the request under this fault. A delay before the run is none if the peer
    /// leaves meanwhile; [`Seen::processed`](super::super::Seen::processed) tells what happened.
    #[must_use]
    pub const fn processes(&self) -> bool {
        match self {
            Self::Delay { .. } => true,
            Self::Silence { when } | Self::Refuse { when, .. } | Self::Restart { when, .. } => {
                matches!(when, When::After)
            }
            Self::Cut { at } | Self::Reset { at } | Self::ResetStream { at, .. } => {
                !matches!(at, At::Before)
            }
            Self::GoAway { last } => !matches!(last, LastStream::Below),
            Self::TooLargeEarly => false,
            Self::Stall { .. }
            | Self::Media(_)
            | Self::Encoding(_)
            | Self::NoContent
            | Self::EmptyBody
            | Self::Huge { .. }
            | Self::Ssz(_)
            | Self::Json(_) => true,
        }
    }
}
