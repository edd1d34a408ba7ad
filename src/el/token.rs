//! The bearer tokens the EL sees.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use http::HeaderValue;
use tokio::sync::watch;

use crate::jwt::Secret;

/// A token is refused when its `iat` is further than this from the EL's clock
/// (`authentication.md`, *JWT claims*).
const TOKEN_LIFE_SECONDS: u64 = 60;
/// Bearers kept while the EL has not judged them: as many as callers have calls in flight, and few
/// enough that nobody fills the memory with them.
const MAX_UNPROVEN: usize = 16;

/// Where the bearer tokens towards the EL come from.
#[derive(Clone, Debug)]
pub enum Tokens {
    /// Freshly minted for the current second from the secret shared with the EL. The CL's own
    /// token does not go further.
    Mint(Secret),
    /// Each call carries the CL's bearer as it came; probes borrow the newest one that is younger
    /// than 60 s, and one that the EL is known to take before any other: whoever reaches the
    /// sidecar's port can show it a bearer.
    Borrow,
}

/// What of a CL's call goes along to the EL.
#[derive(Clone, Default)]
pub struct Caller {
    /// The `Authorization` header as the CL sent it, scheme included.
    pub bearer: Option<HeaderValue>,
    /// The `traceparent` header (W3C Trace Context), if the CL traces.
    pub traceparent: Option<HeaderValue>,
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("bearer", &self.bearer.as_ref().map(|_| "…"))
            .field("traceparent", &self.traceparent)
            .finish()
    }
}

/// The time of day, in seconds since the Unix epoch.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        Self::from_fn(|| {
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
        })
    }

    /// A clock of the caller's own, for tests.
    pub fn from_fn(seconds: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(seconds))
    }

    fn now(&self) -> u64 {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// Gives every request its `Authorization`.
pub(super) struct TokenSource {
    clock: Clock,
    kind: Kind,
}

enum Kind {
    Mint { secret: Secret, minted: Mutex<Option<Stamped>> },
    Borrow(watch::Sender<Bearers>),
}

/// A header and the second it was minted or first seen in.
#[derive(Clone)]
struct Stamped {
    second: u64,
    header: HeaderValue,
}

/// The callers' bearers.
#[derive(Default)]
struct Bearers {
    /// The newest one the EL is known to take.
    proven: Option<Stamped>,
    /// The newest ones it has not judged yet, the newest last.
    unproven: VecDeque<Stamped>,
    /// How often one was proven.
    proofs: u64,
}

impl Bearers {
    /// Whether that is news. Some CLs send one token for many seconds: its age counts from the
    /// first time.
    fn note(&mut self, bearer: Stamped) -> bool {
        if self.by_preference().any(|known| known.header == bearer.header) {
            return false;
        }
        if self.unproven.len() >= MAX_UNPROVEN {
            self.unproven.pop_front();
        }
        self.unproven.push_back(bearer);
        true
    }

    /// Whether that is news.
    fn prove(&mut self, bearer: &HeaderValue) -> bool {
        let place = self.unproven.iter().position(|known| known.header == bearer);
        let Some(proven) = place.and_then(|place| self.unproven.remove(place)) else {
            return false;
        };
        if self.proven.as_ref().is_none_or(|known| known.second <= proven.second) {
            self.proven = Some(proven);
        }
        self.proofs += 1;
        true
    }

    fn by_preference(&self) -> impl Iterator<Item = &Stamped> {
        self.proven.iter().chain(self.unproven.iter().rev())
    }
}

/// Tells that the EL was found to take a bearer it had not judged before.
pub(super) struct Proofs(Option<(watch::Receiver<Bearers>, u64)>);

impl Proofs {
    /// Waits for the first since this was made. Minted tokens are never proven.
    pub(super) async fn next(self) {
        let Some((mut bearers, known)) = self.0 else { return std::future::pending().await };
        // The sender lives as long as the door, and so do those who wait.
        let _ = bearers.wait_for(|bearers| bearers.proofs != known).await;
    }
}

impl TokenSource {
    pub(super) fn new(tokens: Tokens, clock: Clock) -> Self {
        let kind = match tokens {
            Tokens::Mint(secret) => Kind::Mint { secret, minted: Mutex::new(None) },
            Tokens::Borrow => Kind::Borrow(watch::Sender::default()),
        };
        Self { clock, kind }
    }

    /// Remembers the caller's bearer for the probes.
    pub(super) fn note(&self, caller: &Caller) {
        let (Kind::Borrow(bearers), Some(bearer)) = (&self.kind, &caller.bearer) else { return };
        let second = self.clock.now();
        bearers.send_if_modified(|bearers| {
            bearers.note(Stamped { second, header: sensitive(bearer.clone()) })
        });
    }

    /// The EL has answered an exchange with this `Authorization` and did not refuse it.
    pub(super) fn prove(&self, bearer: Option<&HeaderValue>) {
        let (Kind::Borrow(bearers), Some(bearer)) = (&self.kind, bearer) else { return };
        bearers.send_if_modified(|bearers| bearers.prove(bearer));
    }

    /// What tells the proof of each bearer from now on.
    pub(super) fn proofs(&self) -> Proofs {
        Proofs(match &self.kind {
            Kind::Mint { .. } => None,
            Kind::Borrow(bearers) => {
                let bearers = bearers.subscribe();
                let seen = bearers.borrow().proofs;
                Some((bearers, seen))
            }
        })
    }

    /// The header for a call of this caller.
    pub(super) fn for_call(&self, caller: &Caller) -> Option<HeaderValue> {
        match &self.kind {
            Kind::Mint { secret, minted } => self.mint(secret, minted),
            Kind::Borrow(_) => caller.bearer.clone().map(sensitive),
        }
    }

    /// The header for a question of our own; `None` while there is none the EL would take.
    pub(super) fn for_probe(&self) -> Option<HeaderValue> {
        match &self.kind {
            Kind::Mint { secret, minted } => self.mint(secret, minted),
            Kind::Borrow(bearers) => self.fresh(&bearers.borrow()),
        }
    }

    /// Waits until there is a header for a question of our own.
    pub(super) async fn wait_for_probe(&self) {
        if let Kind::Borrow(bearers) = &self.kind {
            // The sender is in `self`, so it cannot be gone.
            let _ = bearers.subscribe().wait_for(|bearers| self.fresh(bearers).is_some()).await;
        }
    }

    fn fresh(&self, bearers: &Bearers) -> Option<HeaderValue> {
        let now = self.clock.now();
        let is_fresh = |known: &&Stamped| now.saturating_sub(known.second) < TOKEN_LIFE_SECONDS;
        bearers.by_preference().find(is_fresh).map(|known| known.header.clone())
    }

    /// Signs at most once a second; `iat` is the current second and never ahead of it.
    fn mint(&self, secret: &Secret, minted: &Mutex<Option<Stamped>>) -> Option<HeaderValue> {
        let second = self.clock.now();
        let mut minted = minted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = minted.as_ref().filter(|known| known.second == second) {
            return Some(known.header.clone());
        }
        let header = HeaderValue::try_from(format!("Bearer {}", secret.mint(second))).ok()?;
        let header = sensitive(header);
        *minted = Some(Stamped { second, header: header.clone() });
        Some(header)
    }
}

/// Keeps the header out of debug output and of HPACK's table.
fn sensitive(mut header: HeaderValue) -> HeaderValue {
    header.set_sensitive(true);
    header
}
