//! The bearer tokens the EL sees.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use http::HeaderValue;
use tokio::sync::watch;

use crate::jwt::Secret;

/// A token is refused when its `iat` is further than this from the EL's clock
/// (`authentication.md`, *JWT claims*).
const TOKEN_LIFE_SECONDS: u64 = 60;

/// Where the bearer tokens towards the EL come from.
#[derive(Clone, Debug)]
pub enum Tokens {
    /// Freshly minted for the current second from the secret shared with the EL. The CL's own
    /// token does not go further.
    Mint(Secret),
    /// Each call carries the CL's bearer as it came; probes borrow the newest one seen, as long as
    /// it is younger than 60 s.
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
    Borrow { newest: watch::Sender<Option<Stamped>> },
}

/// A header and the second it was minted or first seen in.
#[derive(Clone)]
struct Stamped {
    second: u64,
    header: HeaderValue,
}

impl TokenSource {
    pub(super) fn new(tokens: Tokens, clock: Clock) -> Self {
        let kind = match tokens {
            Tokens::Mint(secret) => Kind::Mint { secret, minted: Mutex::new(None) },
            Tokens::Borrow => Kind::Borrow { newest: watch::Sender::new(None) },
        };
        Self { clock, kind }
    }

    /// Remembers the caller's bearer for the probes.
    pub(super) fn note(&self, caller: &Caller) {
        let (Kind::Borrow { newest }, Some(bearer)) = (&self.kind, &caller.bearer) else { return };
        let second = self.clock.now();
        newest.send_if_modified(|newest| {
            // Some CLs send one token for many seconds: its age counts from the first time.
            if newest.as_ref().is_some_and(|known| known.header == bearer) {
                return false;
            }
            *newest = Some(Stamped { second, header: sensitive(bearer.clone()) });
            true
        });
    }

    /// The header for a call of this caller.
    pub(super) fn for_call(&self, caller: &Caller) -> Option<HeaderValue> {
        match &self.kind {
            Kind::Mint { secret, minted } => self.mint(secret, minted),
            Kind::Borrow { .. } => caller.bearer.clone().map(sensitive),
        }
    }

    /// The header for a question of our own; `None` while there is none the EL would take.
    pub(super) fn for_probe(&self) -> Option<HeaderValue> {
        match &self.kind {
            Kind::Mint { secret, minted } => self.mint(secret, minted),
            Kind::Borrow { newest } => self.fresh(newest.borrow().as_ref()),
        }
    }

    /// Waits until there is a header for a question of our own.
    pub(super) async fn wait_for_probe(&self) {
        if let Kind::Borrow { newest } = &self.kind {
            // The sender is in `self`, so it cannot be gone.
            let _ =
                newest.subscribe().wait_for(|newest| self.fresh(newest.as_ref()).is_some()).await;
        }
    }

    fn fresh(&self, stamped: Option<&Stamped>) -> Option<HeaderValue> {
        stamped
            .filter(|known| self.clock.now().saturating_sub(known.second) < TOKEN_LIFE_SECONDS)
            .map(|known| known.header.clone())
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
