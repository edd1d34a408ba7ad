//! The bytes of a WebSocket as they come, of which tungstenite tells only when a message is whole.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::Message;

/// What may come of a message before there has to be room for it: about what is read at once.
const FREE: usize = 128 * 1024;

/// How much more room is asked for at a time.
const STEP: usize = 1024 * 1024;

/// The head of a short frame of a client: two bytes and the mask.
const HEAD: usize = 6;

/// A stream that is read no further than it is allowed to.
///
/// tungstenite asks for the memory of a frame as soon as its head says how long it will be, but
/// touches no more of it than has come: what is read is what it takes.
pub(super) struct Inflow<S> {
    stream: S,
    meter: Arc<Meter>,
}

/// What has come, and how much more may.
pub(super) struct Meter {
    level: Mutex<Level>,
    full: Notify,
}

struct Level {
    /// Since the beginning, to see whether anything comes at all.
    total: u64,
    /// Of the message that is not whole yet. What was read ahead of it is not counted, and is no more
    /// than [`FREE`].
    message: usize,
    /// How far `message` may go, and by one read over it.
    allowed: usize,
    /// Of the reader that waits until it may go further.
    waiting: Option<Waker>,
}

impl<S> Inflow<S> {
    pub(super) fn new(stream: S) -> (Self, Arc<Meter>) {
        let level = Level { total: 0, message: 0, allowed: FREE, waiting: None };
        let meter = Arc::new(Meter { level: Mutex::new(level), full: Notify::new() });
        (Self { stream, meter: Arc::clone(&meter) }, meter)
    }
}

impl Meter {
    /// How much has come since the beginning.
    pub(super) fn total(&self) -> u64 {
        self.level().total
    }

    /// Waits until a message needs more room than it has, and tells how much.
    pub(super) async fn wanted(&self) -> usize {
        loop {
            let Level { message, allowed, .. } = *self.level();
            if message >= allowed {
                return message.saturating_add(STEP);
            }
            self.full.notified().await;
        }
    }

    /// Lets a message go on to that length.
    pub(super) fn allow(&self, length: usize) {
        let mut level = self.level();
        level.allowed = length;
        if let Some(waiting) = level.waiting.take() {
            waiting.wake();
        }
    }

    /// Is told what was read: a call's message, or one between its parts.
    pub(super) fn taken(&self, message: &Message) {
        match message {
            Message::Text(_) | Message::Binary(_) => {
                self.level().message = 0;
                self.allow(FREE);
            }
            control => {
                let mut level = self.level();
                level.message = level.message.saturating_sub(HEAD + control.len());
            }
        }
    }

    fn level(&self) -> MutexGuard<'_, Level> {
        self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Inflow<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let mut level = this.meter.level();
        if level.message >= level.allowed {
            level.waiting = Some(cx.waker().clone());
            this.meter.full.notify_one();
            return Poll::Pending;
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, buf);
        let come = buf.filled().len() - before;
        level.message += come;
        level.total += come as u64;
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Inflow<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
