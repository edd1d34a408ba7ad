//! A connection's socket with a hand on it: its end, and frames of one's own, at the time one wants.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// FIN.
    Closed,
    /// RST.
    Reset,
}

/// The socket, as the HTTP server reads and writes it.
#[derive(Debug)]
pub(super) struct Line {
    stream: TcpStream,
    hand: Hand,
}

/// The hand on a [`Line`]; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Hand(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    ending: Option<Ending>,
    /// Whole frames to write at the next boundary.
    frames: Vec<u8>,
    /// Times that all the server had written was handed to the kernel.
    flushes: u64,
    /// The task that drives the connection.
    driver: Option<Waker>,
    waiting: Vec<Waker>,
}

impl Line {
    pub(super) fn new(stream: TcpStream) -> (Self, Hand) {
        let hand = Hand::default();
        (Self { stream, hand: hand.clone() }, hand)
    }

    /// Small answers go out at once, instead of waiting for the peer's acknowledgement.
    pub(super) fn no_delay(&self) {
        let _ = self.stream.set_nodelay(true);
    }

    /// Resets the connection (RST).
    pub(super) fn reset(self) {
        let _ = self.stream.set_zero_linger();
    }

    /// An error if the line is to end now.
    fn alive(&self, cx: &Context<'_>) -> io::Result<()> {
        let mut state = self.hand.state();
        state.driver = Some(cx.waker().clone());
        match state.ending {
            None => Ok(()),
            Some(ending) => {
                if ending == Ending::Reset {
                    // Closing it now throws away what is unsent and sends RST.
                    self.stream.set_zero_linger()?;
                }
                Err(io::ErrorKind::ConnectionAborted.into())
            }
        }
    }
}

impl Hand {
    /// Ends the connection as soon as its task runs.
    pub(super) fn end(&self, ending: Ending) {
        let mut state = self.state();
        state.ending = Some(ending);
        state.wake_driver();
    }

    /// Writes whole frames between those of the server.
    pub(super) fn inject(&self, frames: &[u8]) {
        let mut state = self.state();
        state.frames.extend_from_slice(frames);
        state.wake_driver();
    }

    /// Flushes so far, for [`poll_flushed`](Self::poll_flushed).
    pub(super) fn flushes(&self) -> u64 {
        self.state().flushes
    }

    /// Ready once all that was given to the server before `since` was read has been written.
    ///
    /// The first flush may have begun before the bytes were queued; the second one has them.
    pub(super) fn poll_flushed(&self, since: u64, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.flushes >= since.saturating_add(2) || state.ending.is_some() {
            return Poll::Ready(());
        }
        state.waiting.push(cx.waker().clone());
        state.wake_driver();
        Poll::Pending
    }

    /// Waits for [`poll_flushed`](Self::poll_flushed) from now on.
    pub(super) async fn flushed(&self) {
        let since = self.flushes();
        std::future::poll_fn(|cx| self.poll_flushed(since, cx)).await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn wake_driver(&mut self) {
        if let Some(driver) = &self.driver {
            driver.wake_by_ref();
        }
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.alive(cx)?;
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.alive(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    /// The server has written all it had, so that this is the boundary of a frame.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.alive(cx)?;
        let line = &mut *self;
        let mut state = line.hand.state();
        while !state.frames.is_empty() {
            let written = ready!(Pin::new(&mut line.stream).poll_write(cx, &state.frames))?;
            state.frames.drain(..written);
        }
        ready!(Pin::new(&mut line.stream).poll_flush(cx))?;
        state.flushes = state.flushes.saturating_add(1);
        state.waiting.drain(..).for_each(Waker::wake);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.alive(cx)?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
