//! Lanes, and the line the commands stand in.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard};

use super::error::Failure;

/// Which connections an exchange may use. Lanes share none, so that no call waits behind another
/// lane's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// What changes the EL's state: one exchange at a time over one held connection. Callers hold
    /// a [`CommandTurn`].
    Command,
    /// What a proposal waits for: payloads and blobs, in parallel.
    Build,
    /// Bulk reads of old blocks: few at once, since some ELs stall under more.
    History,
    /// Everything else.
    Relay,
}

impl Lane {
    /// Every lane.
    pub const ALL: [Self; 4] = [Self::Command, Self::Build, Self::History, Self::Relay];

    /// A label for logs and metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Build => "build",
            Self::History => "history",
            Self::Relay => "relay",
        }
    }
}

/// The right to send commands, held for the whole of one logical call: the attempt and what it
/// falls back to. Dropping it lets the next one go.
#[derive(Debug)]
#[must_use = "the turn ends when this is dropped"]
pub struct CommandTurn {
    _held: OwnedMutexGuard<()>,
}

/// The line the commands stand in: strictly first come, first served.
#[derive(Debug, Default)]
pub(super) struct CommandLine(Arc<Mutex<()>>);

impl CommandLine {
    /// Takes a place at the end of the line now; the future resolves when it is first, or leaves
    /// the line when that takes longer than `patience` from its first poll on.
    ///
    /// A command that is never answered holds its turn for ever. Those behind it must not pile up
    /// with their bodies, nor go to the EL long after their callers are gone.
    pub(super) fn turn(
        &self,
        patience: Duration,
    ) -> impl Future<Output = Result<CommandTurn, Failure>> + Send + use<> {
        // A lock takes its place when first polled, and tasks are polled in any order: so it is
        // polled here.
        let mut place = Box::pin(Arc::clone(&self.0).lock_owned());
        let first = place.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        async move {
            let held = match first {
                Poll::Ready(held) => held,
                Poll::Pending => tokio::time::timeout(patience, place)
                    .await
                    .map_err(|_| Failure::busy(patience))?,
            };
            Ok(CommandTurn { _held: held })
        }
    }
}
