//! The connections of each lane.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Extensions;
use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::{Mutex, Semaphore};

use super::answer::{self, Answer};
use super::connection::{
    BoxError, Connection, Connector, ElRequest, H2_PING_INTERVAL, H2_PING_TIMEOUT, H2_WINDOW, Past,
    StreamedBody,
};
use super::error::{Failure, Phase, Plan};
use super::lane::Lane;
use super::resend::Next;
use super::surface::Transport;

/// How long an idle HTTP/1.1 connection is kept: longer than a slot, so that one connection serves
/// slot after slot, and shorter than any EL keeps its end.
const HTTP1_IDLE: Duration = Duration::from_secs(15);
/// Bulk reads in flight at once.
const HISTORY_AT_ONCE: usize = 2;

/// Every lane's connections, over either transport. No lane uses another's.
pub(super) struct Clients {
    h2c: Lanes<Held, Pool<Full<Bytes>>>,
    http1: Lanes<Held, Pool<Full<Bytes>>>,
    /// Those of requests that are passed on as they come in: they cannot be sent a second time, and
    /// one may take as long as the CL likes.
    passing_h2c: Lanes<Pool<StreamedBody>, Pool<StreamedBody>>,
    passing_http1: Lanes<Pool<StreamedBody>, Pool<StreamedBody>>,
    history: Arc<Semaphore>,
    limit: usize,
}

/// One of each lane; `C` is what keeps the commands in their order.
struct Lanes<C, P> {
    command: C,
    build: P,
    history: P,
    relay: P,
}

impl<C, P> Lanes<C, P> {
    fn new(command: C, pool: impl Fn() -> P) -> Self {
        Self { command, build: pool(), history: pool(), relay: pool() }
    }
}

impl Clients {
    /// `limit` is the largest answer body in bytes. Opens nothing.
    pub(super) fn new(connector: &Connector, limit: usize) -> Self {
        let lanes = |transport| {
            Lanes::new(Held::new(connector.clone(), transport), || Pool::new(connector, transport))
        };
        let passing = |transport| {
            Lanes::new(Pool::new(connector, transport), || Pool::new(connector, transport))
        };
        Self {
            h2c: lanes(Transport::H2c),
            http1: lanes(Transport::Http1),
            passing_h2c: passing(Transport::H2c),
            passing_http1: passing(Transport::Http1),
            history: Arc::new(Semaphore::new(HISTORY_AT_ONCE)),
            limit,
        }
    }

    /// One exchange over the lane's own connection, read to its end; once more over a new one if
    /// the rule of resends says so. The next idle one may be as dead as the first.
    pub(super) async fn exchange(
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
        match lane {
            Lane::Command => lanes.command.exchange(request, plan, self.limit).await,
            Lane::Build => lanes.build.exchange(request, plan, self.limit).await,
            Lane::Relay => lanes.relay.exchange(request, plan, self.limit).await,
            Lane::History => {
                // The semaphore is never closed, so the permit is always one.
                let _permit = self.history.acquire().await;
                lanes.history.exchange(request, plan, self.limit).await
            }
        }
    }
}

impl Clients {
    /// One exchange of which neither body is held here. It is over when the answer's body is
    /// dropped.
    pub(super) async fn pass(
        &self,
        lane: Lane,
        transport: Transport,
        request: Request<StreamedBody>,
    ) -> Result<Response<StreamedBody>, Failure> {
        let lanes = match transport {
            Transport::H2c => &self.passing_h2c,
            Transport::Http1 => &self.passing_http1,
        };
        let (pool, permit) = match lane {
            Lane::Command => (&lanes.command, None),
            Lane::Build => (&lanes.build, None),
            Lane::Relay => (&lanes.relay, None),
            Lane::History => (&lanes.history, Arc::clone(&self.history).acquire_owned().await.ok()),
        };
        let answer = pool.head(request).await?;
        Ok(answer.map(|body| {
            StreamedBody::new(body.map_err(move |error| {
                // Named here so that it lives as long as the body does.
                let _in_flight = &permit;
                BoxError::from(error)
            }))
        }))
    }
}

/// Opens connections of one lane over one transport.
struct Opener {
    connector: Connector,
    transport: Transport,
}

impl Opener {
    /// One exchange over a new connection, after `first` had failed over a used one.
    async fn exchange(
        &self,
        request: ElRequest,
        limit: usize,
        first: Option<&Failure>,
    ) -> Result<(Answer, Connection), Failure> {
        let exchange = async {
            let mut connection =
                Connection::open(&self.connector, self.transport, request.uri()).await?;
            let response = connection.send(request).await?;
            Ok((answer::read(response, limit).await?, connection))
        };
        exchange.await.map_err(|failure: Failure| failure.after(first))
    }
}

/// As many connections as it takes over HTTP/1.1, one over h2c.
struct Pool<B> {
    client: legacy::Client<Connector, B>,
    opener: Opener,
}

impl<B> Pool<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    fn new(connector: &Connector, transport: Transport) -> Self {
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            // It would try one idle connection after the other.
            .retry_canceled_requests(false);
        match transport {
            Transport::Http1 => builder.pool_idle_timeout(HTTP1_IDLE),
            // Held open by pings, so that no proposal waits for a connection.
            Transport::H2c => builder
                .pool_idle_timeout(None)
                .http2_only(true)
                .http2_initial_stream_window_size(H2_WINDOW)
                .http2_initial_connection_window_size(H2_WINDOW)
                .http2_keep_alive_interval(H2_PING_INTERVAL)
                .http2_keep_alive_timeout(H2_PING_TIMEOUT)
                .http2_keep_alive_while_idle(true),
        };
        let client = builder.build(connector.clone());
        Self { client, opener: Opener { connector: connector.clone(), transport } }
    }

    /// The head of an answer; nothing is sent twice.
    async fn head(&self, request: Request<B>) -> Result<Response<Incoming>, Failure> {
        self.client.request(request).await.map_err(|error| {
            if error.is_connect() {
                Failure::unreachable(error.into())
            } else {
                Failure::exchange(Phase::BeforeAnswer, error.into())
            }
        })
    }
}

impl Pool<Full<Bytes>> {
    async fn exchange(
        &self,
        request: ElRequest,
        plan: Plan,
        limit: usize,
    ) -> Result<Answer, Failure> {
        let error = match self.client.request(request.clone()).await {
            Ok(response) => {
                if let Some(past) = response.extensions().get::<Past>() {
                    past.note_answer();
                }
                return answer::read(response, limit).await;
            }
            Err(error) => error,
        };
        if error.is_connect() {
            return Err(Failure::unreachable(error.into()));
        }
        let was_used = was_used(&error);
        let failure = Failure::exchange(Phase::BeforeAnswer, error.into());
        let failure = if was_used { failure.on_reused() } else { failure };
        if plan.next(&failure) != Next::NewConnection {
            return Err(failure);
        }
        // Too rare to be worth a place in the pool.
        let (answer, _connection) = self.opener.exchange(request, limit, Some(&failure)).await?;
        Ok(answer)
    }
}

/// Whether the connection on which a pooled request failed had answered one before.
fn was_used(error: &legacy::Error) -> bool {
    let mut told = Extensions::new();
    if let Some(connected) = error.connect_info() {
        connected.get_extras(&mut told);
    }
    told.get().is_some_and(Past::has_answered)
}

/// One connection, one exchange at a time.
///
/// A pool would not do: it opens a second connection when the next request comes before the first
/// one is back, and then commands could overtake each other on the way.
struct Held {
    opener: Opener,
    slot: Mutex<Option<Idle>>,
}

struct Idle {
    connection: Connection,
    since: Instant,
}

impl Held {
    fn new(connector: Connector, transport: Transport) -> Self {
        Self { opener: Opener { connector, transport }, slot: Mutex::new(None) }
    }

    async fn exchange(
        &self,
        request: ElRequest,
        plan: Plan,
        limit: usize,
    ) -> Result<Answer, Failure> {
        let mut slot = self.slot.lock().await;
        let mut first = None;
        // Taken out for the exchange: if this future is dropped or fails, so is the connection.
        if let Some(mut connection) = self.reusable(slot.take()).await {
            match connection.send(request.clone()).await {
                Ok(response) => {
                    let answer = answer::read(response, limit).await?;
                    *slot = self.keep(connection, &answer);
                    return Ok(answer);
                }
                Err(failure) => {
                    let failure = failure.on_reused();
                    if plan.next(&failure) != Next::NewConnection {
                        return Err(failure);
                    }
                    first = Some(failure);
                }
            }
        }
        let (answer, connection) = self.opener.exchange(request, limit, first.as_ref()).await?;
        *slot = self.keep(connection, &answer);
        Ok(answer)
    }

    async fn reusable(&self, idle: Option<Idle>) -> Option<Connection> {
        let Idle { mut connection, since } = idle?;
        let kept_alive = self.opener.transport == Transport::H2c || since.elapsed() < HTTP1_IDLE;
        (kept_alive && connection.is_usable().await).then_some(connection)
    }

    fn keep(&self, connection: Connection, answer: &Answer) -> Option<Idle> {
        let closes = self.opener.transport == Transport::Http1 && ends_connection(answer);
        (!closes).then(|| Idle { connection, since: Instant::now() })
    }
}

/// Whether an HTTP/1.1 peer closes after this answer.
pub(super) fn ends_connection(answer: &Answer) -> bool {
    answer.version() < http::Version::HTTP_11
        || answer.headers().get_all(CONNECTION).iter().any(|value: &HeaderValue| {
            value
                .as_bytes()
                .split(|byte| *byte == b',')
                .any(|token| token.trim_ascii().eq_ignore_ascii_case(b"close"))
        })
}
