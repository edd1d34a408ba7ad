//! The way of a request of a CL that speaks REST-SSZ itself.

use super::{COMMAND_TIMEOUT, Place, Proxy, lane_of};
use crate::{
    cl,
    el::{self, CommandTurn, Deadline, Lane, StreamedBody},
    engine::Order,
};
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Instant,
};
use tokio::sync::oneshot;

impl Proxy {
    /// Passes a request on to the EL and its answer back. One that changes the EL's state stands in
    /// the same line as the calls that do, from its head to the end of its answer, but does not have
    /// its turn before its body is whole. By its deadline it is answered whole or cancelled, so that
    /// an EL which has forgotten it does not keep the line; any other has a deadline for the head.
    pub(super) async fn pass_on(&self, passage: cl::Passage<Place>) -> Response<StreamedBody> {
        let cl::Passage { request, caller, place } = passage;
        let caller = self.note(caller);
        let el = &self.0.el;
        let lane = lane_of(Order::of_rest(request.method(), request.uri().path()));
        let turn = match lane {
            Lane::Command => match place.unwrap_or_else(|| self.place()).turn().await {
                Ok(turn) => Some(turn),
                Err(error) => return not_passed(&error),
            },
            _ => None,
        };
        let (verb, path) = (request.method().clone(), request.uri().path().to_owned());
        let started = Instant::now();
        let deadline = match turn {
            Some(_) => el.deadline(COMMAND_TIMEOUT),
            None => el.relay_deadline(),
        };
        let passed = el.pass(lane, &caller, request, deadline).await;
        let response = match (passed, turn) {
            (Ok(response), Some(turn)) => response.map(|body| in_turn(body, turn, deadline)),
            (Ok(response), None) => response,
            (Err(error), _) => not_passed(&error),
        };
        tracing::debug!(
            %verb,
            path,
            status = response.status().as_u16(),
            ms = started.elapsed().as_secs_f64() * 1e3,
            "passed on"
        );
        response
    }
}

/// What the CL gets when the EL gave no answer. The problem has no type of the API's own: none of
/// those is about a peer that is not there.
fn not_passed(error: &el::ElError) -> Response<StreamedBody> {
    let status = match error.kind() {
        el::ErrorKind::BadRequest { .. } => StatusCode::BAD_REQUEST,
        el::ErrorKind::TimedOut { .. } => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::BAD_GATEWAY,
    };
    let problem = serde_json::json!({ "type": "about:blank", "detail": error.to_string() });
    let body = Full::new(Bytes::from(problem.to_string())).map_err(|never| match never {});
    let mut response = Response::new(StreamedBody::new(body));
    *response.status_mut() = status;
    let media_type = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}

fn in_turn(body: StreamedBody, turn: CommandTurn, deadline: Deadline) -> StreamedBody {
    if body.is_end_stream() {
        return body;
    }
    let held = Arc::new(Mutex::new(Some(Held { body, _turn: turn })));
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
    type Error = <StreamedBody as Body>::Error;

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
    use std::{future::pending, time::Duration};

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_reads_keeps_its_turn_to_its_deadline_and_no_longer() {
        let el = El::new(Config::new("http://127.0.0.1:1".parse().unwrap()));
        let turn = el.command_turn().await.unwrap();
        let (unread, mut was_reset) = oneshot::channel::<()>();
        let never = futures_util::stream::once(async move {
            let _unread = unread;
            pending::<Result<Frame<Bytes>, Box<dyn std::error::Error + Send + Sync>>>().await
        });
        let body = StreamedBody::new(http_body_util::StreamBody::new(never));
        let mut answer = in_turn(body, turn, el.deadline(Duration::from_secs(8)));
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
