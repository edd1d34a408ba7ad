//! The turn of a command whose answer is handed on piece by piece.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::oneshot;

use super::connection::{BoxError, StreamedBody};
use super::deadline::Deadline;
use super::lane::CommandTurn;

impl CommandTurn {
    /// The answer to a command that is passed on, with its turn: that is over with the last byte from
    /// the EL, with the drop of the body, or at the deadline, whichever is first. At the deadline the
    /// exchange is cancelled and the body breaks off.
    pub fn until_end_of(self, body: StreamedBody, deadline: Deadline) -> StreamedBody {
        if body.is_end_stream() {
            return body;
        }
        let held = Arc::new(Mutex::new(Some(Held { body, _turn: self })));
        // Not left to whoever reads the body: a CL that reads nothing does not poll it.
        let (is_over, mut reader_is_gone) = oneshot::channel();
        let watched = Arc::downgrade(&held);
        tokio::spawn(async move {
            tokio::select! {
                () = deadline.over() => {}
                _ = &mut reader_is_gone => {}
            }
            if let Some(held) = watched.upgrade() {
                drop(locked(&held).take());
            }
        });
        let over = Box::pin(deadline.over());
        StreamedBody::new(InTurn { held, over, state: State::Open, _is_over: is_over })
    }
}

/// An answer on its way, and the turn that lasts as long. Dropping it resets the stream.
struct Held {
    body: StreamedBody,
    _turn: CommandTurn,
}

/// An answer that keeps its turn until its last byte has come from the EL, or its deadline.
struct InTurn {
    held: Arc<Mutex<Option<Held>>>,
    over: Pin<Box<dyn Future<Output = ()> + Send>>,
    state: State,
    _is_over: oneshot::Sender<()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// There may be more.
    Open,
    /// The answer was whole, or it broke.
    Ended,
}

fn locked(held: &Mutex<Option<Held>>) -> MutexGuard<'_, Option<Held>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Body for InTurn {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        if this.state == State::Ended {
            return Poll::Ready(None);
        }
        let mut held = locked(&this.held);
        let polled = match held.as_mut() {
            Some(held) => Pin::new(&mut held.body).poll_frame(cx),
            None => Poll::Pending,
        };
        let Poll::Ready(frame) = polled else {
            if held.is_some() {
                ready!(this.over.as_mut().poll(cx));
            }
            *held = None;
            this.state = State::Ended;
            return Poll::Ready(Some(Err("the EL's answer was not whole by its deadline".into())));
        };
        let is_last = held.as_ref().is_none_or(|held| held.body.is_end_stream());
        // Not when this is dropped: a CL may be slow to take what it has already been given.
        if is_last || !matches!(frame, Some(Ok(_))) {
            *held = None;
            this.state = State::Ended;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.state == State::Ended
    }

    fn size_hint(&self) -> SizeHint {
        match (self.state, locked(&self.held).as_ref()) {
            (State::Ended, _) => SizeHint::with_exact(0),
            (State::Open, Some(held)) => held.body.size_hint(),
            (State::Open, None) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::el::{Config, El};
    use http_body_util::BodyExt;
    use std::{future::pending, time::Duration};

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_reads_keeps_its_turn_to_its_deadline_and_no_longer() {
        let el = El::new(Config::new("http://127.0.0.1:1".parse().unwrap()));
        let turn = el.command_turn().await.unwrap();
        let (unread, mut was_reset) = oneshot::channel::<()>();
        let never = futures_util::stream::once(async move {
            let _unread = unread;
            pending::<Result<Frame<Bytes>, BoxError>>().await
        });
        let body = StreamedBody::new(http_body_util::StreamBody::new(never));
        let mut answer = turn.until_end_of(body, el.deadline(Duration::from_secs(8)));
        let mut next = Box::pin(el.command_turn());
        tokio::select! {
            biased;
            _ = &mut next => panic!("before its deadline"),
            () = tokio::time::sleep(Duration::from_secs(12)) => {}
        }
        assert_eq!(was_reset.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        let begun = tokio::time::Instant::now();
        drop(next.await.unwrap());
        assert_eq!(begun.elapsed().as_secs(), 1);
        assert_eq!(was_reset.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert!(answer.frame().await.unwrap().is_err());
        assert!(answer.frame().await.is_none());
    }
}
