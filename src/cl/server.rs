//! Connections in, an orderly end.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::bounds::{Budget, Share};
use super::linger::{Duplex, Lingering};
use super::listener::{Accepted, BindError, Listener, Place};
use super::service::Service;
use super::write_timeout::{WRITE_TIMEOUT, WriteTimeout};
use super::{Config, Handler};

/// With the default of 64 KiB a body of a megabyte waits for window updates most of its time.
const WINDOW: u32 = 16 * 1024 * 1024;

/// Bodies are read before their turn, so what they hold of this is only what waits for room
/// ([`Bounds::patience`](super::Bounds::patience)), or for the EL when it is passed on as it comes. One
/// of those may take a whole window, and there is another for those whose turn it is.
const CONNECTION_WINDOW: u32 = 2 * WINDOW;

/// A head of HTTP/1.1 with more headers is answered with 431. CLs send about ten.
const MAX_HEADERS: usize = 100;

/// What a connection of HTTP/1.1 reads at once, which bounds its heads too (431).
const BUFFER: usize = 400 * 1024;

/// Streams of HTTP/2 that were reset before anybody looked at them, and streams that we reset for an
/// error: with more of either the connection is closed (CVE-2023-44487).
const MAX_RESET_STREAMS: usize = 20;
const MAX_ERRORS: usize = 256;

/// Neither an h2 connection nor a WebSocket is idle-closed; a ping tells one whose CL is gone.
pub(super) const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// A place that is bound and not yet served.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    place: Place,
}

/// How far a server is on its way to the end, for connections that are not hyper's any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It serves.
    Open,
    /// Calls under way may end, new ones are not begun.
    Closing,
    /// Nothing may go on.
    Cut,
}

/// How a server came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Every call was answered.
    Drained,
    /// The grace period ran out first: the connections were cut. Calls still under way run on until
    /// the runtime is dropped.
    Cut,
}

impl Server {
    /// Binds a port or a socket file. From here on the system takes connections; they wait for
    /// [`Self::serve`]. Must be called in a Tokio runtime.
    ///
    /// # Errors
    ///
    /// [`BindError`] names the place.
    pub async fn bind(place: impl Into<Place>) -> Result<Self, BindError> {
        let (listener, place) = Listener::bind(place.into()).await?;
        Ok(Self { listener, place })
    }

    /// What was bound, with the port the system chose when asked for port 0.
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// Serves until `shutdown` is ready; then takes no more connections, lets the calls in flight
    /// end for as long as [`Config::grace`] says, and returns.
    pub async fn serve<H: Handler>(
        self,
        config: Config,
        handler: H,
        shutdown: impl Future<Output = ()>,
    ) -> Stopped {
        let Config { grace, head_timeout, bounds, body_limit, .. } = config;
        let (in_flight, mut all_done) = mpsc::channel(1);
        let (tell_phase, phase) = watch::channel(Phase::Open);
        let budget = Arc::new(Budget::new(bounds, body_limit));
        let service =
            Arc::new(Service::new(config, handler, Arc::clone(&budget), in_flight, phase));
        let http = http(head_timeout);
        let graceful = GracefulShutdown::new();
        let mut connections = JoinSet::new();
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                accepted = self.listener.accept() => {
                    // One too many is closed with the end of this turn.
                    let Ok(room) = budget.connection() else { continue };
                    let connection = Connection {
                        http: http.clone(),
                        service: Arc::clone(&service),
                        head_timeout,
                        watcher: graceful.watcher(),
                        room: Arc::new(room),
                    };
                    match accepted {
                        Accepted::Tcp(stream) => {
                            // Small answers must not wait for the acknowledgement of the one before.
                            if let Err(error) = stream.set_nodelay(true) {
                                tracing::debug!(%error, "cannot set TCP_NODELAY");
                            }
                            connections.spawn(connection.run(stream))
                        }
                        Accepted::Unix(stream) => connections.spawn(connection.run(stream)),
                    };
                }
                Some(_) = connections.join_next() => {}
            }
        }
        drop(self.listener);
        drop(service);
        tell_phase.send_replace(Phase::Closing);
        let drained = async {
            graceful.shutdown().await;
            while connections.join_next().await.is_some() {}
            // No message is ever sent: this waits for the last sender, that of the last call.
            let _: Option<Infallible> = all_done.recv().await;
        };
        let stopped = match tokio::time::timeout(grace, drained).await {
            Ok(()) => Stopped::Drained,
            Err(_) => Stopped::Cut,
        };
        tell_phase.send_replace(Phase::Cut);
        stopped
    }
}

fn http(head_timeout: Duration) -> auto::Builder<TokioExecutor> {
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(head_timeout)
        .max_headers(MAX_HEADERS)
        .max_buf_size(BUFFER)
        // Some tools close their sending side after the request and still wait for the answer.
        .half_close(true);
    http.http2()
        .timer(TokioTimer::new())
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(256)
        .max_pending_accept_reset_streams(MAX_RESET_STREAMS)
        .max_local_error_reset_streams(MAX_ERRORS)
        .max_header_list_size(32 * 1024)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    http
}

/// What one connection needs.
struct Connection<H> {
    http: auto::Builder<TokioExecutor>,
    service: Arc<Service<H>>,
    head_timeout: Duration,
    watcher: Watcher,
    /// Its share of the bounds; a WebSocket takes it over.
    room: Arc<Share>,
}

impl<H: Handler> Connection<H> {
    async fn run(self, stream: impl Duplex) {
        let Self { http, service, head_timeout, watcher, room } = self;
        let begun = Arc::new(AtomicBool::new(false));
        let requests = service_fn({
            let begun = Arc::clone(&begun);
            move |request| {
                begun.store(true, Ordering::Relaxed);
                let answer = Arc::clone(&service).answer(request, Arc::clone(&room));
                async move { Ok::<_, Infallible>(answer.await) }
            }
        });
        let stream = WriteTimeout::new(stream, WRITE_TIMEOUT);
        let connection =
            http.serve_connection_with_upgrades(TokioIo::new(Lingering::new(stream)), requests);
        tokio::select! {
            ended = watcher.watch(connection) => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "connection from the CL ended");
                }
            }
            () = silence(head_timeout, &begun) => {
                tracing::debug!("connection from the CL brought no request");
            }
        }
    }
}

/// Ends when a connection has brought no request at all for `limit`. hyper has no such limit
/// before it knows which version of HTTP is spoken, nor for one of h2.
async fn silence(limit: Duration, begun: &AtomicBool) {
    tokio::time::sleep(limit).await;
    if begun.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}
