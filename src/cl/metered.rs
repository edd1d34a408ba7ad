//! A body on its way through, held to the limits of one that is read here.

use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

use super::body::Unread;
use super::pace::Pace;

/// Counts a body against the limit and its pauses against the clock while somebody else reads it.
///
/// The clock runs only while the reader waits for the CL, never while the CL waits for the reader.
pub(super) struct Metered<B> {
    body: B,
    /// How many bytes may still come.
    left: u64,
    pause: Duration,
    pace: Pace,
    waiting: Option<Waiting>,
    fault: Fault,
}

/// The wait for the next bytes.
struct Waiting {
    since: Instant,
    end: Pin<Box<Sleep>>,
}

/// What went wrong with the body, for the one who has to tell the CL.
#[derive(Clone, Default)]
pub(super) struct Fault(Arc<OnceLock<Unread>>);

impl Fault {
    pub(super) fn get(&self) -> Option<Unread> {
        self.0.get().copied()
    }
}

impl<B: Body> Metered<B> {
    /// A body whose head gives a length over `limit` is refused at once.
    pub(super) fn new(body: B, limit: usize, pause: Duration) -> Result<(Self, Fault), Unread> {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        if body.size_hint().lower() > limit {
            return Err(Unread::TooLarge);
        }
        let fault = Fault::default();
        let (pace, waiting) = (Pace::default(), None);
        let metered = Self { body, left: limit, pause, pace, waiting, fault: fault.clone() };
        Ok((metered, fault))
    }

    fn fail(&self, unread: Unread) -> Box<dyn Error + Send + Sync> {
        // The first fault is the cause of the others.
        let _ = self.fault.0.set(unread);
        unread.into()
    }
}

impl<B> Body for Metered<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) else {
            let patience = this.pace.patience(this.pause);
            let waiting = this.waiting.get_or_insert_with(|| Waiting {
                since: Instant::now(),
                end: Box::pin(sleep(patience)),
            });
            ready!(waiting.end.as_mut().poll(cx));
            return Poll::Ready(Some(Err(this.fail(Unread::Stalled))));
        };
        let waited = this.waiting.take().map_or(Duration::ZERO, |waiting| waiting.since.elapsed());
        Poll::Ready(match frame {
            None => None,
            Some(Err(_)) => Some(Err(this.fail(Unread::Broken))),
            Some(Ok(frame)) => {
                let length = frame.data_ref().map_or(0, Bytes::len);
                this.pace.came(length, waited);
                match this.left.checked_sub(length as u64) {
                    Some(left) => {
                        this.left = left;
                        Some(Ok(frame))
                    }
                    None => Some(Err(this.fail(Unread::TooLarge))),
                }
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
