//! How much is taken on at once: connections, calls, bytes of bodies.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::LINE_PAUSE;
use crate::telemetry::Seldom;

/// What the door takes on at once. A node's own traffic is far below all of it: a CL keeps a handful
/// of connections and calls, and its largest body has a few megabytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Open connections, WebSockets among them. One more is closed as soon as it is there: in the
    /// backlog it would wait for a CL that leaks connections to let one go.
    pub connections: usize,
    /// Calls and passed requests under way, over all connections. A call lasts until its exchange
    /// with the EL is over, also when the CL is gone. As many again may have a
    /// [place](super::Handler::Place), over whatever protocol, so that calls without one which the EL
    /// never answers keep no command out. A command that has no place before it is whole is counted
    /// with the others.
    pub calls: usize,
    /// Bytes of the request bodies of all calls that are being read or are under way. One body of
    /// [`Config::body_limit`](super::Config::body_limit) is let in whatever this says.
    ///
    /// Not counted is what has come and nobody has read: up to 32 MiB for each connection of HTTP/2,
    /// up to 400 KiB for each of HTTP/1.1, up to 128 KiB for each WebSocket; nor are answers.
    pub bodies: usize,
    /// How long a call waits for its share before it is answered with `-32603`.
    pub patience: Duration,
}

impl Bounds {
    /// The usual values: 256 connections, 512 calls, four of the longest bodies, one second.
    pub const fn new(body_limit: usize) -> Self {
        Self {
            connections: 256,
            calls: 512,
            bodies: body_limit.saturating_mul(4),
            patience: Duration::from_secs(1),
        }
    }
}

/// A bound that was met, as the CL and the log are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub(super) enum Busy {
    #[error("busy: no more connections are taken (--max-connections)")]
    Connections,
    #[error("busy: no more calls are taken on at once (--max-calls)")]
    Calls,
    #[error("busy: the bodies of the calls under way fill the memory for them (--body-limit)")]
    Bodies,
}

/// Bodies are counted in units of this many bytes, so that small ones cost no more than they should
/// and a count fits into the 32 bits that a semaphore takes at once.
const PAGE: usize = 4096;

/// What is left of the bounds.
#[derive(Debug)]
pub(super) struct Budget {
    connections: Arc<Semaphore>,
    calls: Arc<Semaphore>,
    in_line: Arc<Semaphore>,
    pages: Arc<Semaphore>,
    patience: Duration,
    lines: Seldom<Busy>,
}

/// Which calls one is counted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Those that have a place in a line, which moves on even if the EL does not answer.
    InLine,
    /// All others, which wait for the EL as long as it takes.
    Free,
}

/// A share of a bound, given back on drop.
pub(super) type Share = OwnedSemaphorePermit;

impl Budget {
    pub(super) fn new(bounds: Bounds, body_limit: usize) -> Self {
        let semaphore = |permits: usize| Arc::new(Semaphore::new(permits.min(u32::MAX as usize)));
        Self {
            connections: semaphore(bounds.connections),
            calls: semaphore(bounds.calls),
            in_line: semaphore(bounds.calls),
            pages: semaphore(bounds.bodies.max(body_limit).div_ceil(PAGE)),
            patience: bounds.patience,
            lines: Seldom::every(LINE_PAUSE),
        }
    }

    /// Room for one more connection, now or not at all.
    pub(super) fn connection(&self) -> Result<Share, Busy> {
        let share = Arc::clone(&self.connections).try_acquire_owned();
        share.map_err(|_| self.met(Busy::Connections))
    }

    /// Room for one more call.
    pub(super) async fn call(&self, kind: Kind) -> Result<Share, Busy> {
        let calls = match kind {
            Kind::InLine => &self.in_line,
            Kind::Free => &self.calls,
        };
        self.wait_for(calls, 1, Busy::Calls).await
    }

    /// Room for a body of which nothing has come yet.
    pub(super) fn body(&self) -> BodyShare<'_> {
        BodyShare { budget: self, pages: None }
    }

    async fn wait_for(&self, of: &Arc<Semaphore>, permits: u32, busy: Busy) -> Result<Share, Busy> {
        // The first try looks at no clock.
        if let Ok(share) = Arc::clone(of).try_acquire_many_owned(permits) {
            return Ok(share);
        }
        match timeout(self.patience, Arc::clone(of).acquire_many_owned(permits)).await {
            Ok(Ok(share)) => Ok(share),
            // They are never closed.
            Ok(Err(_)) | Err(_) => Err(self.met(busy)),
        }
    }

    fn met(&self, busy: Busy) -> Busy {
        if let Some(held_back) = self.lines.is_due(busy, Instant::now().into_std()) {
            tracing::warn!(
                held_back,
                "{busy}; if that is a node's own traffic, raise the limit, else find who calls"
            );
        }
        busy
    }
}

/// Room for the bytes of one body, as they come.
pub(super) struct BodyShare<'a> {
    budget: &'a Budget,
    pages: Option<Share>,
}

impl BodyShare<'_> {
    /// Makes it enough for a body of `length` bytes; waits a little for others to be done.
    pub(super) async fn hold(&mut self, length: usize) -> Result<(), Busy> {
        let held = self.pages.as_ref().map_or(0, Share::num_permits);
        let missing = length.div_ceil(PAGE).saturating_sub(held);
        if missing == 0 {
            return Ok(());
        }
        let missing = u32::try_from(missing).map_err(|_| Busy::Bodies)?;
        let more = self.budget.wait_for(&self.budget.pages, missing, Busy::Bodies).await?;
        match &mut self.pages {
            Some(pages) => pages.merge(more),
            None => self.pages = Some(more),
        }
        Ok(())
    }

    /// The share by itself, to go with the call. An empty body has none.
    pub(super) fn into_share(self) -> Option<Share> {
        self.pages
    }
}

impl fmt::Debug for BodyShare<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyShare").field("pages", &self.pages).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(bodies: usize, body_limit: usize) -> Budget {
        let patience = Duration::ZERO;
        Budget::new(Bounds { connections: 1, calls: 2, bodies, patience }, body_limit)
    }

    #[tokio::test]
    async fn a_share_comes_back_when_it_is_dropped() {
        let budget = budget(0, 0);
        let connection = budget.connection().unwrap();
        assert_eq!(budget.connection().unwrap_err(), Busy::Connections);
        drop(connection);
        assert!(budget.connection().is_ok());
        let calls =
            (budget.call(Kind::Free).await.unwrap(), budget.call(Kind::Free).await.unwrap());
        assert_eq!(budget.call(Kind::Free).await.unwrap_err(), Busy::Calls);
        assert!(budget.call(Kind::InLine).await.is_ok());
        drop(calls);
        assert!(budget.call(Kind::Free).await.is_ok());
    }

    #[tokio::test]
    async fn bodies_are_counted_as_they_grow_and_the_longest_one_always_fits() {
        let budget = budget(0, 3 * PAGE);
        let mut one = budget.body();
        for length in [0, 1, PAGE, PAGE + 1, 2 * PAGE] {
            one.hold(length).await.unwrap();
        }
        let mut other = budget.body();
        other.hold(PAGE).await.unwrap();
        assert_eq!(other.hold(PAGE + 1).await, Err(Busy::Bodies));
        drop(one.into_share());
        other.hold(3 * PAGE).await.unwrap();
        assert_eq!(other.hold(3 * PAGE + 1).await, Err(Busy::Bodies));
    }

    #[tokio::test(start_paused = true)]
    async fn a_share_is_waited_for_a_little() {
        let bounds = Bounds { calls: 1, ..Bounds::new(1) };
        let budget = Budget::new(bounds, 1);
        let held = budget.call(Kind::Free).await.unwrap();
        let (waited, ()) = tokio::join!(budget.call(Kind::Free), async {
            tokio::time::sleep(bounds.patience / 2).await;
            drop(held);
        });
        let held = waited.unwrap();
        assert_eq!(budget.call(Kind::Free).await.unwrap_err(), Busy::Calls);
        drop(held);
    }
}
