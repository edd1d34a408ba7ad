//! What can go wrong on the way to the EL, and whether the same request may be sent again.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use super::deadline::Deadline;
use super::endpoint::Endpoint;
use super::resend::{Earlier, Freshness, Next, Resend, Time};
use super::terms::Plan;

/// An exchange that gave no answer fit for use.
///
/// Its text is one line that names the endpoint and what to do about it.
#[derive(Debug)]
pub struct ElError {
    endpoint: String,
    failure: Failure,
    next: Next,
}

impl ElError {
    /// The failure of a request that is settled by `plan`; without one, of none that was made.
    pub(super) fn new(endpoint: &Endpoint, failure: Failure, plan: Option<Plan>) -> Self {
        let next = plan.map_or(Next::GiveUp, |plan| plan.next(&failure));
        Self { endpoint: endpoint.to_string(), failure, next }
    }

    /// What went wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.failure.kind
    }

    /// Who it comes from.
    pub fn origin(&self) -> Origin {
        self.failure.origin
    }

    /// How far the request got, all its copies taken together.
    pub fn resend(&self) -> Resend {
        match (self.failure.resend, self.failure.earlier) {
            (Resend::NeverSent, Earlier::Some) => Resend::MaybeProcessed,
            (resend, _) => resend,
        }
    }

    /// What comes next; [`Next::NewConnection`] has been tried already where it may be.
    pub fn next(&self) -> Next {
        self.next
    }
}

impl fmt::Display for ElError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { endpoint, failure, next: _ } = self;
        match &failure.kind {
            ErrorKind::Unreachable => {
                write!(
                    f,
                    "EL {endpoint} cannot be reached{failure}; is it running and is this its engine port?"
                )
            }
            ErrorKind::Broken { phase: Phase::BeforeAnswer } => {
                write!(
                    f,
                    "EL {endpoint} ended the exchange without an answer{failure}; see its log"
                )
            }
            ErrorKind::Broken { phase: Phase::InAnswer } => {
                write!(
                    f,
                    "EL {endpoint} ended the exchange within its answer{failure}; see its log"
                )
            }
            ErrorKind::TooLarge { limit } => {
                write!(
                    f,
                    "EL {endpoint} gave an answer of more than {limit} bytes; raise the answer limit"
                )
            }
            ErrorKind::NotHttp => {
                write!(
                    f,
                    "EL {endpoint} does not answer in HTTP{failure}; is this its engine port?"
                )
            }
            ErrorKind::BadAnswer { reason } => {
                write!(
                    f,
                    "EL {endpoint} gave an answer that cannot be read: {reason}; is something between it and here?"
                )
            }
            ErrorKind::NoRest => {
                write!(f, "EL {endpoint} does not offer REST-SSZ now; use JSON-RPC")
            }
            ErrorKind::Busy { waited } => {
                let seconds = waited.as_secs_f64();
                write!(
                    f,
                    "EL {endpoint} has not answered the command before this one for {seconds} s; see its log and restart it if it is stuck"
                )
            }
            ErrorKind::TimedOut { limit } => {
                let seconds = limit.as_secs_f64();
                write!(
                    f,
                    "EL {endpoint} has not answered within {seconds} s and the exchange was cancelled; see its log"
                )
            }
            ErrorKind::BadRequest { reason } => {
                write!(f, "no request to EL {endpoint} can be made of this: {reason}")
            }
        }
    }
}

impl Error for ElError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.failure.source.as_ref().map(|source| &**source as _)
    }
}

/// What went wrong in an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// No connection came up.
    Unreachable,
    /// The connection or the stream ended before the answer was whole.
    Broken {
        /// How much of the answer had come.
        phase: Phase,
    },
    /// The answer's body is larger than [`Config::answer_limit`](super::Config::answer_limit).
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// What came is no HTTP of the kind asked in.
    NotHttp,
    /// The answer is encoded in a way nobody asked for.
    BadAnswer {
        /// What is wrong with it.
        reason: String,
    },
    /// REST was asked for while the surface has none. Nothing was sent.
    NoRest,
    /// The commands before this one took longer than
    /// [`Config::command_wait`](super::Config::command_wait). Nothing was sent.
    Busy {
        /// How long this one waited in line.
        waited: Duration,
    },
    /// There was no answer by the call's deadline, and the exchange was cancelled. The EL may be at
    /// it still.
    TimedOut {
        /// How long the call had.
        limit: Duration,
    },
    /// The request has a path or headers that cannot be sent. Nothing was sent.
    BadRequest {
        /// What is wrong with it.
        reason: String,
    },
}

/// How much of an answer had come when an exchange broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing.
    BeforeAnswer,
    /// The status and headers, and perhaps a part of the body.
    InAnswer,
}

/// Who a failure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The caller: what it wanted passed on cannot be sent, or it broke off in the middle.
    Cl,
    /// The EL, or the way to it.
    El,
    /// The sidecar itself.
    Us,
}

impl Origin {
    /// A label for logs and metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Cl => "cl",
            Self::El => "el",
            Self::Us => "us",
        }
    }
}

/// An [`ElError`] before it knows its endpoint.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) kind: ErrorKind,
    origin: Origin,
    /// Of the last copy.
    pub(super) resend: Resend,
    /// Of the last copy.
    pub(super) connection: Freshness,
    pub(super) earlier: Earlier,
    reach: Extent,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// What a failure casts doubt on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// This exchange alone.
    Exchange,
    /// The connection, and with it all that is known of the EL.
    Connection,
}

impl Failure {
    pub(super) fn unreachable(source: Box<dyn Error + Send + Sync>) -> Self {
        Self {
            reach: Extent::Connection,
            source: Some(source),
            ..Self::unsent(ErrorKind::Unreachable)
        }
    }

    pub(super) fn no_rest() -> Self {
        Self::unsent(ErrorKind::NoRest)
    }

    pub(super) fn bad_request(origin: Origin, error: &http::Error) -> Self {
        let reason = error.to_string();
        Self { origin, ..Self::unsent(ErrorKind::BadRequest { reason }) }
    }

    pub(super) fn busy(waited: Duration) -> Self {
        Self::unsent(ErrorKind::Busy { waited })
    }

    fn unsent(kind: ErrorKind) -> Self {
        Self::new(kind, Resend::NeverSent)
    }

    fn new(kind: ErrorKind, resend: Resend) -> Self {
        Self {
            kind,
            origin: Origin::El,
            resend,
            connection: Freshness::New,
            earlier: Earlier::None,
            reach: Extent::Exchange,
            source: None,
        }
    }

    /// The deadline had passed before the request was begun.
    pub(super) fn too_late(deadline: Deadline) -> Self {
        Self::timed_out(deadline).never_sent()
    }

    pub(super) fn timed_out(deadline: Deadline) -> Self {
        // Whether it was written is not known for sure, and nothing hangs on it.
        Self::new(ErrorKind::TimedOut { limit: deadline.limit }, Resend::MaybeProcessed)
    }

    pub(super) fn too_large(limit: usize) -> Self {
        Self::new(ErrorKind::TooLarge { limit }, Resend::Unfit)
    }

    pub(super) fn bad_answer(reason: String) -> Self {
        Self::new(ErrorKind::BadAnswer { reason }, Resend::Unfit)
    }

    /// A failure of an exchange on a connection that was up.
    pub(super) fn exchange(phase: Phase, source: Box<dyn Error + Send + Sync>) -> Self {
        let hyper = find::<hyper::Error>(&*source);
        let h2 = find::<h2::Error>(&*source);
        let kind = match hyper {
            Some(error) if error.is_parse() => ErrorKind::NotHttp,
            _ => ErrorKind::Broken { phase },
        };
        let unsent = hyper.is_some_and(|error| error.is_canceled() || error.is_closed())
            || h2.is_some_and(never_processed);
        let resend = match (&kind, phase) {
            // Whoever has begun to answer has seen the request, whatever is said afterwards.
            (_, Phase::InAnswer) => Resend::Answered,
            (_, Phase::BeforeAnswer) if unsent => Resend::NeverSent,
            (ErrorKind::NotHttp, Phase::BeforeAnswer) => Resend::Answered,
            (_, Phase::BeforeAnswer) => Resend::MaybeProcessed,
        };
        // The body that was to be sent failed, which says nothing of the EL.
        let is_of_cl = h2.is_none() && hyper.is_some_and(hyper::Error::is_user);
        Self {
            origin: if is_of_cl { Origin::Cl } else { Origin::El },
            reach: match h2 {
                Some(error) if error.is_reset() => Extent::Exchange,
                None if is_of_cl => Extent::Exchange,
                _ => Extent::Connection,
            },
            source: Some(source),
            ..Self::new(kind, resend)
        }
    }

    /// Whether there is time for another attempt.
    pub(super) fn time(&self) -> Time {
        match self.kind {
            ErrorKind::TimedOut { .. } => Time::Up,
            _ => Time::Left,
        }
    }

    /// The peer of a request was told nothing of it, whatever else went wrong.
    pub(super) fn never_sent(self) -> Self {
        Self { resend: Resend::NeverSent, ..self }
    }

    /// It happened on a connection on which others were answered before. A stream that is reset on
    /// a connection that lives is not what an idle connection's end looks like: the EL had it.
    pub(super) fn on_reused(mut self) -> Self {
        self.connection = Freshness::Reused;
        if self.resend == Resend::MaybeProcessed && self.reach == Extent::Connection {
            self.resend = Resend::Stale;
        }
        self
    }

    /// The failure of a request that had failed before: what the EL may have had of either counts.
    pub(super) fn after(mut self, first: Option<&Self>) -> Self {
        if first.is_some_and(|first| first.resend != Resend::NeverSent) {
            self.earlier = Earlier::Some;
        }
        if first.is_some_and(Self::casts_doubt_on_surface) {
            self.reach = Extent::Connection;
        }
        self
    }

    /// Whether what is known of the EL has to be found out anew.
    pub(super) fn casts_doubt_on_surface(&self) -> bool {
        self.reach == Extent::Connection
    }

    /// The HTTP/2 error behind this one, if any.
    pub(super) fn h2_error(&self) -> Option<&h2::Error> {
        find(self.source.as_deref()?)
    }
}

/// The innermost cause in parentheses, or nothing.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(source) = &self.source else { return Ok(()) };
        let mut cause: &(dyn Error + 'static) = &**source;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        write!(f, " ({cause})")
    }
}

/// Whether HTTP/2 says that the peer did nothing with the stream.
fn never_processed(error: &h2::Error) -> bool {
    if !error.is_remote() {
        return false;
    }
    // The h2 crate hands a GOAWAY to the streams above its last stream id alone; the others go on.
    error.is_go_away()
        || (error.is_reset()
            && matches!(
                error.reason(),
                Some(h2::Reason::REFUSED_STREAM | h2::Reason::HTTP_1_1_REQUIRED)
            ))
}

/// The first error of type `E` in the chain of causes.
fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}
