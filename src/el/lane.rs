//! Lanes, and the line the commands stand in.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::sync::{Mutex, OwnedMutexGuard};

/// Which connections an exchange may use. Lanes share none, so that no call waits behind another
/// lane's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// What changes the EL's state: one exchange at a time over one held connection. Callers hold
    /// a [`CommandTurn`].
    Command,
    /// What a proposal waits for: payloads and blobs, in parallel.
    Build,
    /// Bulk reads of old blocks: at most two at once, since some ELs stall under more.
    History,
    /// Everything else.
    Relay,
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
    /// Takes a place at the end of the line now; the future resolves when it is first.
    pub(super) fn turn(&self) -> impl Future<Output = CommandTurn> + Send + use<> {
        // A lock takes its place when first polled, and tasks are polled in any order: so it is
        // polled here.
        let mut place = Box::pin(Arc::clone(&self.0).lock_owned());
        let first = place.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        async move {
            let held = match first {
                Poll::Ready(held) => held,
                Poll::Pending => place.await,
            };
            CommandTurn { _held: held }
        }
    }
}
