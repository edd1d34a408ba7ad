//! Bodies: in whole, out in pieces.

use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use std::vec;

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::time::Instant;

use super::bounds::{BodyShare, Busy, Share};
use super::claim::Claim;
use super::pace::Pace;
use super::{FIRST_BYTES, StreamedBody};
use crate::jsonrpc::Reply;

/// Most of a body is asked for up to here before the first byte of it has come: a head may say any
/// length and send nothing.
const RESERVED_AT_ONCE: usize = 16 * 1024 * 1024;

/// Why there is no body, as the CL is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unread {
    /// Longer than the limit, by its head or by what has come.
    #[error("body too large")]
    TooLarge,
    /// It broke off, or its framing is wrong.
    #[error("incomplete body")]
    Broken,
    /// Nothing came for too long, or too little in all.
    #[error("body timed out")]
    Stalled,
    /// There is no room for it.
    #[error(transparent)]
    NoRoom(#[from] Busy),
}

/// A body that was read whole, and what was taken for it meanwhile.
pub(super) struct Whole<P> {
    pub(super) body: Bytes,
    /// The call's place in a line, if it is worth one and has not lost it.
    pub(super) place: Option<P>,
    /// The room that the body takes.
    pub(super) share: Option<Share>,
}

/// Reads a body whole. A body that came in one piece is not copied.
///
/// A head that gives a length over `limit` is refused without a read, which is also what keeps
/// hyper from asking for the body with a `100 Continue`.
pub(super) async fn read<B, P, F>(
    mut body: B,
    limit: usize,
    pause: Duration,
    mut share: BodyShare<'_>,
    mut claim: Claim<P, F>,
) -> Result<Whole<P>, Unread>
where
    B: Body<Data = Bytes> + Unpin,
    F: FnMut(&[u8]) -> Option<P>,
{
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(Unread::TooLarge);
    }
    let mut pace = Pace::default();
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    loop {
        let asked = Instant::now();
        let next = tokio::time::timeout(pace.patience(pause), body.frame());
        let frame = match claim.wait(next).await {
            Err(_) => return Err(Unread::Stalled),
            Ok(None) => break,
            Ok(Some(Err(_))) => return Err(Unread::Broken),
            Ok(Some(Ok(frame))) => frame,
        };
        let come = frame.data_ref().map_or(0, Bytes::len);
        pace.came(come, asked.elapsed());
        // Trailers mean nothing here.
        let Ok(data) = frame.into_data() else { continue };
        let before = first.len() + joined.len();
        let length = before + data.len();
        if length > limit {
            return Err(Unread::TooLarge);
        }
        claim.wait(share.hold(length)).await?;
        if before == 0 {
            first = data;
        } else {
            if joined.is_empty() {
                joined.reserve(announced.min(RESERVED_AT_ONCE).max(length));
                joined.extend_from_slice(&std::mem::take(&mut first));
            }
            joined.extend_from_slice(&data);
        }
        if before < FIRST_BYTES {
            let come: &[u8] = if joined.is_empty() { &first } else { &joined };
            claim.show(come.get(..FIRST_BYTES).unwrap_or(come));
        }
    }
    let body = if joined.is_empty() { first } else { joined.freeze() };
    Ok(Whole { body, place: claim.into_place(), share: share.into_share() })
}

/// A reply on its way out: its pieces as they are, its length known from the start.
pub(super) struct Pieces {
    rest: vec::IntoIter<Bytes>,
    length: u64,
}

impl From<Reply> for Pieces {
    fn from(reply: Reply) -> Self {
        let length = reply.len() as u64;
        Self { rest: reply.into_segments().into_iter(), length }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.rest.next();
        self.length -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.length == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}

/// What goes out to the CL.
pub(super) enum Outgoing {
    /// A reply of JSON-RPC, or a refusal.
    Reply(Pieces),
    /// What the EL answers to a request that was passed on.
    Passed(StreamedBody),
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::Reply(pieces) => Pin::new(pieces)
                .poll_frame(cx)
                .map(|frame| frame.map(|frame| frame.map_err(|never| match never {}))),
            Self::Passed(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Reply(pieces) => pieces.is_end_stream(),
            Self::Passed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Reply(pieces) => pieces.size_hint(),
            Self::Passed(body) => body.size_hint(),
        }
    }
}
