//! The connections of every lane, and one exchange over them.

use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::answer::Answer;
use super::config::LaneSizes;
use super::connection::{BoxError, Connector, ElRequest, StreamedBody};
use super::deadline::Deadline;
use super::error::Failure;
use super::gauge::{Flight, Gauges};
use super::held::Held;
use super::lane::Lane;
use super::lease::Lease;
use super::pool::{Pool, Unwritten};
use super::surface::Transport;
use super::terms::Plan;

/// Every lane's connections, over either transport. No lane uses another's.
pub(super) struct Clients {
    h2c: Lanes<Held, Pool<Full<Bytes>>>,
    http1: Lanes<Held, Pool<Full<Bytes>>>,
    /// Those of requests that are passed on as they come in: they cannot be sent a second time, and
    /// one may take as long as the CL likes.
    passing_h2c: Lanes<Pool<StreamedBody>, Pool<StreamedBody>>,
    passing_http1: Lanes<Pool<StreamedBody>, Pool<StreamedBody>>,
    places: Places,
    gauges: Gauges,
    limit: usize,
}

/// Places in the lanes that have a set number of them.
struct Places {
    history: Arc<Semaphore>,
    relay: Arc<Semaphore>,
}

impl Places {
    async fn take(&self, lane: Lane) -> Option<OwnedSemaphorePermit> {
        let places = match lane {
            Lane::History => &self.history,
            Lane::Relay => &self.relay,
            // Commands have a line of their own.
            Lane::Command | Lane::Build => return None,
        };
        // They are never closed, so the permit is always one.
        Arc::clone(places).acquire_owned().await.ok()
    }
}

/// One of each lane; `C` is what keeps the commands in their order.
struct Lanes<C, P> {
    command: C,
    build: P,
    history: P,
    relay: P,
}

impl<C, P> Lanes<C, P> {
    fn new(command: C, sizes: LaneSizes, pool: impl Fn(NonZeroUsize) -> P) -> Self {
        let (build, one) = (sizes.build_connections, NonZeroUsize::MIN);
        Self { command, build: pool(build), history: pool(one), relay: pool(one) }
    }
}

impl Clients {
    /// `limit` is the largest answer body in bytes. Opens nothing.
    pub(super) fn new(
        connector: &Connector,
        sizes: LaneSizes,
        gauges: Gauges,
        limit: usize,
    ) -> Self {
        let lanes = |transport| {
            Lanes::new(Held::new(connector.clone(), transport), sizes, |connections| {
                Pool::new(connector, transport, connections, Unwritten::Told)
            })
        };
        let passing = |transport| {
            let pool =
                |connections| Pool::new(connector, transport, connections, Unwritten::GoesOn);
            Lanes::new(pool(NonZeroUsize::MIN), sizes, pool)
        };
        let places = |number: NonZeroUsize| {
            Arc::new(Semaphore::new(number.get().min(Semaphore::MAX_PERMITS)))
        };
        Self {
            h2c: lanes(Transport::H2c),
            http1: lanes(Transport::Http1),
            passing_h2c: passing(Transport::H2c),
            passing_http1: passing(Transport::Http1),
            places: Places {
                history: places(sizes.history_in_flight),
                relay: places(sizes.relay_connections),
            },
            gauges,
            limit,
        }
    }

    /// One exchange over the lane's own connection, read to its end; once more over a new one if
    /// the rule of resends says so. The next idle one may be as dead as the first.
    ///
    /// At the deadline it is cancelled. A command's connection is gone then, so whatever the EL
    /// still does with it, the next command is not behind it.
    pub(super) async fn exchange(
        &self,
        lane: Lane,
        transport: Transport,
        request: ElRequest,
        plan: Plan,
    ) -> Result<Answer, Failure> {
        // Such as the rest of a batch whose time is up.
        if plan.deadline.has_passed() {
            return Err(Failure::too_late(plan.deadline));
        }
        // What is dropped in the middle takes its stream (RST_STREAM, CANCEL) or its HTTP/1.1
        // connection with it.
        let exchange = self.exchange_in(lane, transport, request, plan);
        match tokio::time::timeout_at(plan.deadline.at, exchange).await {
            Ok(exchanged) => exchanged,
            Err(_) => Err(Failure::timed_out(plan.deadline)),
        }
    }

    async fn exchange_in(
        &self,
        lane: Lane,
        transport: Transport,
        request: ElRequest,
        plan: Plan,
    ) -> Result<Answer, Failure> {
        let lanes = match transport {
            Transport::H2c => &self.h2c,
            Transport::Http1 => &self.http1,
        };
        let gauge = self.gauges.of(lane);
        let _place = self.place(lane).await;
        let flight = gauge.begin();
        let answer = match lane {
            Lane::Command => lanes.command.exchange(request, plan, self.limit).await,
            Lane::Build => lanes.build.exchange(request, plan, self.limit).await,
            Lane::History => lanes.history.exchange(request, plan, self.limit).await,
            Lane::Relay => lanes.relay.exchange(request, plan, self.limit).await,
        }?;
        flight.answered();
        Ok(answer)
    }

    /// Waits for a place in the lane.
    async fn place(&self, lane: Lane) -> Option<OwnedSemaphorePermit> {
        let _waiting = match lane {
            // It has waited for its turn already.
            Lane::Command => None,
            _ => Some(self.gauges.of(lane).wait()),
        };
        self.places.take(lane).await
    }
}

impl Clients {
    /// One exchange of which neither body is held here. It is over when the answer's body is
    /// dropped, or at the deadline if there is no head by then.
    pub(super) async fn pass(
        &self,
        lane: Lane,
        transport: Transport,
        request: Request<StreamedBody>,
        deadline: Deadline,
    ) -> Result<Response<StreamedBody>, Failure> {
        let lanes = match transport {
            Transport::H2c => &self.passing_h2c,
            Transport::Http1 => &self.passing_http1,
        };
        let pool = match lane {
            Lane::Command => &lanes.command,
            Lane::Build => &lanes.build,
            Lane::History => &lanes.history,
            Lane::Relay => &lanes.relay,
        };
        let head = async {
            let place = self.place(lane).await;
            let flight = self.gauges.of(lane).begin();
            Ok((pool.head(request).await?, place, flight))
        };
        let (answer, place, flight) = match tokio::time::timeout_at(deadline.at, head).await {
            Ok(headed) => headed?,
            Err(_) => return Err(Failure::timed_out(deadline)),
        };
        let lease = place.map(Lease::new);
        Ok(answer.map(|body| StreamedBody::new(Passing { body, flight: Some(flight), lease })))
    }
}

/// The answer to a request that is passed on, in flight until its last byte.
struct Passing {
    body: Incoming,
    flight: Option<Flight>,
    lease: Option<Lease>,
}

impl Body for Passing {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Err(_)) => (self.flight, self.lease) = (None, None),
            // Not when this is dropped: a CL may be slow to take what it has already been given.
            Some(Ok(_)) if self.body.is_end_stream() => self.end(),
            Some(Ok(_)) => {}
            None => self.end(),
        }
        Poll::Ready(frame.map(|frame| frame.map_err(BoxError::from)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Passing {
    fn end(&mut self) {
        self.lease = None;
        if let Some(flight) = self.flight.take() {
            flight.answered();
        }
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        // Who knows from its length that it is over does not ask again.
        if self.body.is_end_stream() {
            self.end();
        }
    }
}
