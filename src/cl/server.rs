//! The port: connections in, an orderly end.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::linger::Lingering;
use super::service::Service;
use super::{Config, Handler};

/// With the default of 64 KiB a body of a megabyte waits for window updates most of its time.
const WINDOW: u32 = 16 * 1024 * 1024;

/// An h2 connection is never idle-closed; a ping tells one whose CL is gone.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Out of descriptors, say: nothing gets better by asking again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(250);

/// A port that is bound and not yet served.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    addr: SocketAddr,
}

/// The port cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {addr}: {error}")]
pub struct BindError {
    /// The address asked for.
    pub addr: SocketAddr,
    /// What the system says.
    pub error: io::Error,
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
    /// Binds `addr`. From here on the system takes connections; they wait for [`Self::serve`].
    /// Must be called in a Tokio runtime.
    ///
    /// # Errors
    ///
    /// [`BindError`] names the address.
    pub async fn bind(addr: SocketAddr) -> Result<Self, BindError> {
        let bound = async {
            let listener = TcpListener::bind(addr).await?;
            let addr = listener.local_addr()?;
            Ok(Self { listener, addr })
        };
        bound.await.map_err(|error| BindError { addr, error })
    }

    /// The address bound, with the port the system chose when asked for port 0.
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Serves until `shutdown` is ready; then takes no more connections, lets the calls in flight
    /// end for as long as [`Config::grace`] says, and returns.
    pub async fn serve<H: Handler>(
        self,
        config: Config,
        handler: H,
        shutdown: impl Future<Output = ()>,
    ) -> Stopped {
        let Config { grace, head_timeout, .. } = config;
        let (in_flight, mut all_done) = mpsc::channel(1);
        let service = Arc::new(Service::new(config, handler, in_flight));
        let http = http(head_timeout);
        let graceful = GracefulShutdown::new();
        let mut connections = JoinSet::new();
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                stream = accept(&self.listener) => {
                    let connection = Connection {
                        http: http.clone(),
                        service: Arc::clone(&service),
                        head_timeout,
                        watcher: graceful.watcher(),
                    };
                    connections.spawn(connection.run(stream));
                }
                Some(_) = connections.join_next() => {}
            }
        }
        drop(self.listener);
        drop(service);
        let drained = async {
            graceful.shutdown().await;
            while connections.join_next().await.is_some() {}
            // No message is ever sent: this waits for the last sender, that of the last call.
            let _: Option<Infallible> = all_done.recv().await;
        };
        match tokio::time::timeout(grace, drained).await {
            Ok(()) => Stopped::Drained,
            Err(_) => Stopped::Cut,
        }
    }
}

/// Waits for the next connection. A failure to take one is not the end of the server.
async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            // The CL was gone before its turn came.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn http(head_timeout: Duration) -> auto::Builder<TokioExecutor> {
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(head_timeout)
        // Some tools close their sending side after the request and still wait for the answer.
        .half_close(true);
    http.http2()
        .timer(TokioTimer::new())
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_concurrent_streams(256)
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
}

impl<H: Handler> Connection<H> {
    async fn run(self, stream: TcpStream) {
        let Self { http, service, head_timeout, watcher } = self;
        // Small answers must not wait for the acknowledgement of the one before.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let begun = Arc::new(AtomicBool::new(false));
        let requests = service_fn({
            let begun = Arc::clone(&begun);
            move |request| {
                begun.store(true, Ordering::Relaxed);
                let answer = Arc::clone(&service).answer(request);
                async move { Ok::<_, Infallible>(answer.await) }
            }
        });
        let connection = http.serve_connection(TokioIo::new(Lingering::new(stream)), requests);
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
