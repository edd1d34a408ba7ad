//! The connections of a lane in which calls go beside each other.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Extensions, Request, Response};
use http_body::Body;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{CaptureConnection, capture_connection};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::answer::{self, Answer};
use super::connection::{
    BoxError, Connector, ElRequest, H2_PING_INTERVAL, H2_PING_TIMEOUT, H2_WINDOW, Past,
};
use super::error::{Failure, Phase};
use super::held::{HTTP1_IDLE, Opener};
use super::resend::Next;
use super::surface::Transport;
use super::terms::Plan;

/// As many connections as it takes over HTTP/1.1, a set number over h2c.
pub(super) struct Pool<B> {
    /// Over h2c a connection each; over HTTP/1.1 one, which has as many as it takes.
    members: Vec<Member<B>>,
    opener: Opener,
}

/// What becomes of a request that comes back from a used connection before any of it was written: the
/// EL had closed the connection meanwhile.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unwritten {
    /// The rule of resends has it. The pool would try one idle connection after the other.
    Told,
    /// It goes over the next connection. The only way for one whose body cannot be had twice.
    GoesOn,
}

struct Member<B> {
    client: legacy::Client<Connector, B>,
    load: AtomicUsize,
}

/// An exchange that weighs on a member until this is dropped.
struct Load<'a>(&'a AtomicUsize);

impl<'a> Load<'a> {
    fn on(load: &'a AtomicUsize) -> Self {
        load.fetch_add(1, Ordering::Relaxed);
        Self(load)
    }
}

impl Drop for Load<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<B> Pool<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    /// `h2c_connections` is of no account over HTTP/1.1.
    pub(super) fn new(
        connector: &Connector,
        transport: Transport,
        h2c_connections: NonZeroUsize,
        unwritten: Unwritten,
    ) -> Self {
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .retry_canceled_requests(matches!(unwritten, Unwritten::GoesOn));
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
        let members = match transport {
            Transport::Http1 => 1,
            Transport::H2c => h2c_connections.get(),
        };
        let member =
            |_| Member { client: builder.build(connector.clone()), load: AtomicUsize::new(0) };
        let members = (0..members).map(member).collect();
        Self { members, opener: Opener { connector: connector.clone(), transport } }
    }

    /// The member with the least in flight, the first of several: what comes one after the other
    /// stays on one connection.
    fn least_loaded(&self) -> Result<&Member<B>, Failure> {
        let least = self.members.iter().min_by_key(|member| member.load.load(Ordering::Relaxed));
        // There is always one.
        least.ok_or_else(|| Failure::unreachable("a pool without connections".into()))
    }

    /// The head of an answer; nothing of which a byte was written is sent twice.
    pub(super) async fn head(&self, request: Request<B>) -> Result<Response<Incoming>, Failure> {
        let member = self.least_loaded()?;
        let _load = Load::on(&member.load);
        member.client.request(request).await.map_err(|error| {
            if error.is_connect() {
                Failure::unreachable(error.into())
            } else {
                Failure::exchange(Phase::BeforeAnswer, error.into())
            }
        })
    }
}

impl Pool<Full<Bytes>> {
    pub(super) async fn exchange(
        &self,
        request: ElRequest,
        plan: Plan,
        limit: usize,
    ) -> Result<Answer, Failure> {
        let member = self.least_loaded()?;
        let load = Load::on(&member.load);
        let mut attempt = request.clone();
        let trouble = Trouble(Some(capture_connection(&mut attempt)));
        let error = match member.client.request(attempt).await {
            Ok(response) => {
                if let Some(past) = response.extensions().get::<Past>() {
                    past.note_answer();
                }
                let answer = answer::read(response, limit).await?;
                trouble.none();
                return Ok(answer);
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
        drop(load);
        // Too rare to be worth a place in the pool.
        let (answer, _connection) = self.opener.exchange(request, limit, Some(&failure)).await?;
        Ok(answer)
    }
}

/// Retires the pooled connection of an exchange that is not known to have gone well: what others
/// have on it goes on, and nothing new is begun on it. A dead peer swallows one request and not all
/// that come until a ping tells.
struct Trouble(Option<CaptureConnection>);

impl Trouble {
    /// There was none.
    fn none(mut self) {
        self.0 = None;
    }
}

impl Drop for Trouble {
    fn drop(&mut self) {
        let Some(captured) = &self.0 else { return };
        if let Some(connection) = captured.connection_metadata().as_ref() {
            connection.poison();
        }
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
