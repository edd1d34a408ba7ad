//! Bodies of answers: whole ones, and those that stop on the way.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use h2::Reason;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

use super::line::{Ending, Hand};

/// Zero bytes of a huge body come in pieces of this size.
const PIECE: u64 = 64 * 1024;
static ZEROS: [u8; PIECE as usize] = [0; PIECE as usize];

/// What happens once the first part of a body is on its way.
#[derive(Debug)]
pub(super) enum Interruption {
    /// The rest comes after this time, or never.
    Pause(Option<Duration>),
    /// The connection ends.
    End(Ending),
    /// The stream is reset.
    ResetStream(Reason),
}

/// The body of an answer.
#[derive(Debug)]
pub(super) enum AnswerBody {
    /// All at once, with its length.
    Whole(Option<Bytes>),
    /// All at once, and no length told.
    NoLength(Option<Bytes>),
    /// So many zero bytes.
    Zeros(u64),
    /// A first part, an interruption, and perhaps a rest.
    Broken(Broken),
}

#[derive(Debug)]
pub(super) struct Broken {
    first: Option<Bytes>,
    rest: Bytes,
    interruption: Interruption,
    hand: Hand,
    /// Flushes seen when the first part had been taken.
    since: Option<u64>,
    sleep: Option<Pin<Box<Sleep>>>,
    over: bool,
}

impl AnswerBody {
    pub(super) fn whole(bytes: Bytes) -> Self {
        Self::Whole(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }

    /// The first `after` bytes, or all but one, then the interruption.
    pub(super) fn broken(
        mut bytes: Bytes,
        after: usize,
        interruption: Interruption,
        hand: Hand,
    ) -> Self {
        let first = bytes.split_to(after.min(bytes.len().saturating_sub(1)));
        let first = Some(first).filter(|first| !first.is_empty());
        let (since, sleep) = (None, None);
        Self::Broken(Broken { first, rest: bytes, interruption, hand, since, sleep, over: false })
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        match &mut *self {
            Self::Whole(bytes) | Self::NoLength(bytes) => {
                Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes))))
            }
            Self::Zeros(0) => Poll::Ready(None),
            Self::Zeros(left) => {
                let piece = (*left).min(PIECE);
                *left -= piece;
                let piece = usize::try_from(piece).unwrap_or_default();
                Poll::Ready(ZEROS.get(..piece).map(|piece| Ok(Frame::data(piece.into()))))
            }
            Self::Broken(broken) => broken.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) | Self::NoLength(bytes) => bytes.is_none(),
            Self::Zeros(left) => *left == 0,
            Self::Broken(broken) => broken.over,
        }
    }

    fn size_hint(&self) -> SizeHint {
        let length = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, |bytes| bytes.len() as u64);
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(length(bytes)),
            Self::NoLength(_) => SizeHint::default(),
            Self::Zeros(left) => SizeHint::with_exact(*left),
            Self::Broken(broken) => {
                SizeHint::with_exact(length(&broken.first) + broken.rest.len() as u64)
            }
        }
    }
}

impl Broken {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        let since = *self.since.get_or_insert_with(|| self.hand.flushes());
        ready!(self.hand.poll_flushed(since, cx));
        match &self.interruption {
            Interruption::Pause(None) => return Poll::Pending,
            Interruption::Pause(Some(pause)) => {
                let pause = *pause;
                let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(pause)));
                ready!(sleep.as_mut().poll(cx));
            }
            Interruption::End(ending) => {
                self.hand.end(*ending);
                return Poll::Pending;
            }
            Interruption::ResetStream(reason) => return Poll::Ready(Some(Err((*reason).into()))),
        }
        self.over = true;
        let rest = std::mem::take(&mut self.rest);
        Poll::Ready(Some(rest).filter(|rest| !rest.is_empty()).map(|rest| Ok(Frame::data(rest))))
    }
}
