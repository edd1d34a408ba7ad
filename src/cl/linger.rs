//! A stream that closes without tearing up what was just said.
//!
//! An early answer — 401 or 413 while the CL still sends — ends with a close. Were the socket
//! closed with bytes of the CL unread, TCP would send a reset, and a reset can destroy the answer
//! on its way (RFC 9112, section 9.6); a socket file does much the same. So the sending side is
//! closed first and what still comes is read and thrown away, within bounds.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

/// A CL that has not noticed by then will not.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// At most as much as the system may have buffered on both sides several times over.
const DISCARDED: u64 = 32 * 1024 * 1024;

/// What a stream has to be to be drained in the background.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Duplex for S {}

/// A stream that is drained in the background after its sending side was closed.
pub(super) struct Lingering<S: Duplex> {
    stream: Option<S>,
    closed: bool,
    at_end: bool,
}

impl<S: Duplex> Lingering<S> {
    pub(super) const fn new(stream: S) -> Self {
        Self { stream: Some(stream), closed: false, at_end: false }
    }

    fn stream(self: Pin<&mut Self>) -> io::Result<Pin<&mut S>> {
        // It is there until the drop.
        self.get_mut()
            .stream
            .as_mut()
            .map(Pin::new)
            .ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl<S: Duplex> AsyncRead for Lingering<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = self.as_mut().stream()?.poll_read(cx, buf);
        if matches!(read, Poll::Ready(Ok(())))
            && buf.remaining() > 0
            && buf.filled().len() == before
        {
            self.at_end = true;
        }
        read
    }
}

impl<S: Duplex> AsyncWrite for Lingering<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = self.as_mut().stream()?.poll_shutdown(cx);
        self.closed = matches!(shut, Poll::Ready(Ok(())));
        shut
    }
}

impl<S: Duplex> Drop for Lingering<S> {
    fn drop(&mut self) {
        let Some(stream) = self.stream.take() else { return };
        // After an end of file nothing more can come; without a close there is nothing to save.
        if !self.closed || self.at_end {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(discard(stream));
        }
    }
}

/// Reads until the CL closes too, patience ends, or enough has been thrown away.
async fn discard(stream: impl Duplex) {
    let mut rest = stream.take(DISCARDED);
    let _ =
        tokio::time::timeout(PATIENCE, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
}
