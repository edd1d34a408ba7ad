//! When which fault took place, and what of a CL's answers it explains.

use crate::mock_el::{
    Http,
    faults::{Accepted, Dialect, Fault, Injection, LastStream, Operation, Refusal},
};
use std::{
    collections::VecDeque,
    fmt,
    time::{Duration, Instant},
};
use tokio::sync::mpsc::UnboundedReceiver;

/// How long a fault of a connection, or a restart, goes on to be felt: until the connection is gone
/// and what was on its way has failed.
const AFTERMATH: Duration = Duration::from_millis(400);

/// The same of a restart after which the EL does not speak HTTP/1.1 any more: until the sidecar has
/// asked anew, with the longest pause between two questions before it.
const AFTERMATH_OF_H2_ALONE: Duration = Duration::from_secs(4);

/// Older incidents concern no call under way.
const KEPT: Duration = Duration::from_secs(90);

/// Incidents that a violation is told with.
const TOLD: usize = 12;

/// What has happened so far.
#[derive(Debug)]
pub(super) struct Incidents {
    injections: UnboundedReceiver<(Instant, Injection)>,
    seen: VecDeque<(Instant, Injection)>,
    outages: VecDeque<Outage>,
}

#[derive(Clone, Copy, Debug)]
struct Outage {
    from: Instant,
    until: Option<Instant>,
    builds: Builds,
    aftermath: Duration,
}

impl fmt::Display for Excuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unauthorized => f.write_str("HTTP 401"),
            Self::Error(code) => write!(f, "error {code}"),
            Self::NoBlobs => f.write_str("no blobs"),
            Self::RestAlone => f.write_str("what REST-SSZ alone knows"),
            Self::BuiltTwice => f.write_str("a build begun twice"),
        }
    }
}

/// What becomes of builds in a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Builds {
    /// They are still there.
    Kept,
    /// Their ids are unknown from then on.
    Lost,
}

/// A call that was answered by something else than the truth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// What was asked; nothing for what is no call of the Engine API.
    pub operation: Option<Operation>,
    /// Whether a second time would do harm.
    pub builds: bool,
    /// When it was sent.
    pub sent: Instant,
    /// When it was answered.
    pub answered: Instant,
}

/// What a CL heard in place of the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Excuse {
    /// HTTP 401.
    Unauthorized,
    /// An error of that code.
    Error(i64),
    /// No blobs where there are some.
    NoBlobs,
    /// What is known over REST-SSZ alone, in place of what JSON-RPC has.
    RestAlone,
    /// A build was carried out twice.
    BuiltTwice,
}

impl Incidents {
    pub(super) fn new(injections: UnboundedReceiver<(Instant, Injection)>) -> Self {
        Self { injections, seen: VecDeque::new(), outages: VecDeque::new() }
    }

    /// The EL goes down.
    pub(super) fn outage_begins(&mut self, builds: Builds, comes_back_with: Http) {
        let aftermath = match comes_back_with {
            Http::H1 | Http::Both => AFTERMATH,
            Http::H2 => AFTERMATH_OF_H2_ALONE,
        };
        self.outages.push_back(Outage { from: Instant::now(), until: None, builds, aftermath });
    }

    /// It is back.
    pub(super) fn outage_ends(&mut self) {
        if let Some(outage) = self.outages.back_mut() {
            outage.until = Some(Instant::now());
        }
    }

    /// Whether builds of that time may be unknown by now.
    pub(super) fn builds_lost_since(&self, then: Instant) -> bool {
        self.outages.iter().any(|outage| {
            outage.builds == Builds::Lost && outage.until.is_none_or(|until| until >= then)
        })
    }

    /// Whether something that happened explains that answer.
    pub(super) fn explain(&mut self, window: Window, heard: Excuse) -> bool {
        self.read();
        let Window { sent, answered, .. } = window;
        let is_down = self.outages.iter().any(|outage| {
            outage.from <= answered
                && outage.until.is_none_or(|until| until + outage.aftermath >= sent)
        });
        if is_down && heard == Excuse::Error(-32603) {
            return true;
        }
        self.seen.iter().any(|(at, injection)| {
            let felt = if ends_connection(injection) { AFTERMATH } else { Duration::ZERO };
            *at <= answered && *at + felt >= sent && explains(injection, window, heard)
        })
    }

    /// What struck while a call was under way, in words.
    pub(super) fn told(&mut self, window: Window) -> String {
        self.read();
        let Window { sent, answered, .. } = window;
        let told: Vec<_> = self
            .seen
            .iter()
            .rev()
            .filter(|(at, _)| *at + AFTERMATH >= sent && *at <= answered)
            .take(TOLD)
            .map(|(at, injection)| {
                let before = answered.duration_since(*at).as_millis();
                format!("{before} ms before the answer {injection:?}")
            })
            .collect();
        if told.is_empty() { "nothing".to_owned() } else { told.join(", ") }
    }

    fn read(&mut self) {
        let now = Instant::now();
        while let Ok(seen) = self.injections.try_recv() {
            self.seen.push_back(seen);
        }
        while self.seen.front().is_some_and(|(at, _)| *at + KEPT < now) {
            self.seen.pop_front();
        }
        while self.outages.len() > 64 {
            self.outages.pop_front();
        }
    }
}

/// Whether calls beside the one struck may feel it.
const fn ends_connection(injection: &Injection) -> bool {
    match injection {
        Injection::Connection(Accepted::TinyWindow(_) | Accepted::MaxStreamsOne) => false,
        Injection::Connection(_) => true,
        Injection::Request { fault, .. } => matches!(
            fault,
            Fault::Cut { .. }
                | Fault::Reset { .. }
                | Fault::GoAway { .. }
                | Fault::TooLargeEarly
                | Fault::Restart { .. }
        ),
    }
}

fn explains(injection: &Injection, window: Window, heard: Excuse) -> bool {
    let (dialect, operation, fault) = match injection {
        Injection::Connection(_) => {
            return ends_connection(injection) && heard == Excuse::Error(-32603);
        }
        Injection::Request { dialect, operation, fault } => (*dialect, *operation, fault),
    };
    let strikes = operation == window.operation;
    match (dialect, heard) {
        (_, Excuse::Unauthorized) => {
            strikes && matches!(fault, Fault::Refuse { refusal: Refusal::Unauthorized, .. })
        }
        // The last rung: whatever spoils that exchange leaves nothing.
        (Dialect::JsonRpc, Excuse::Error(-32603)) => strikes || ends_connection(injection),
        // A server without JSON-RPC says the same.
        (Dialect::JsonRpc, Excuse::Error(_) | Excuse::RestAlone) => {
            strikes && matches!(fault, Fault::Refuse { refusal: Refusal::NotFound, .. })
        }
        // Whether it was carried out is not known, and it must not be carried out twice.
        (Dialect::Rest, Excuse::Error(-32603)) => {
            // A WebSocket has no statuses.
            let is_refused = matches!(fault, Fault::Refuse { refusal: Refusal::Unauthorized, .. });
            strikes && (is_refused || window.builds && leaves_doubt(fault))
        }
        (Dialect::Rest, Excuse::Error(-32000)) => {
            strikes && matches!(fault, Fault::Refuse { refusal: Refusal::Unavailable, .. })
        }
        (Dialect::Rest, Excuse::NoBlobs) => strikes && matches!(fault, Fault::NoContent),
        (Dialect::Rest, Excuse::BuiltTwice) => strikes && answers_whole(fault),
        (Dialect::Rest, Excuse::Error(_) | Excuse::RestAlone) | (Dialect::JsonRpc, _) => false,
    }
}

/// Whether the sidecar cannot know if the request was run.
const fn leaves_doubt(fault: &Fault) -> bool {
    match fault {
        Fault::Cut { .. }
        | Fault::Reset { .. }
        | Fault::ResetStream { .. }
        | Fault::Silence { .. }
        | Fault::Stall { .. }
        | Fault::Restart { .. } => true,
        Fault::GoAway { last } => !matches!(last, LastStream::Below),
        _ => false,
    }
}

/// Whether an answer comes, whole and of no use, to a request that was run: then it is asked again,
/// since without the payload id a slot would be missed.
const fn answers_whole(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::Refuse { .. }
            | Fault::Media(_)
            | Fault::Encoding(_)
            | Fault::NoContent
            | Fault::EmptyBody
            | Fault::Huge { .. }
            | Fault::Ssz(_)
    )
}
