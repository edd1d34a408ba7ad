//! A stream whose peer has to read what it is told.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// For as long may a CL take not a single byte. Longer than any pause of its machine.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// A stream that breaks when nothing can be written to it for too long: without that a CL which
/// reads nothing would keep its connection and its answer for ever.
pub(super) struct WriteTimeout<S> {
    stream: S,
    limit: Duration,
    stuck: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeout<S> {
    pub(super) const fn new(stream: S, limit: Duration) -> Self {
        Self { stream, limit, stuck: None }
    }

    fn judge<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let limit = self.limit;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(stuck.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.judge(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.judge(cx, written)
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

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_a_little_keeps_the_stream_and_one_that_reads_nothing_does_not() {
        let (stream, mut peer) = duplex(1);
        let mut stream = WriteTimeout::new(stream, WRITE_TIMEOUT);
        let writing = tokio::spawn(async move { stream.write_all(&[0; 10]).await });
        let begun = Instant::now();
        for _ in 0..5 {
            sleep(WRITE_TIMEOUT - Duration::from_secs(1)).await;
            peer.read_u8().await.unwrap();
        }
        let error = writing.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed(), 6 * WRITE_TIMEOUT - Duration::from_secs(5));
    }
}
