//! One connection to the EL that can be held open, watched and asked.

use std::error::Error;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::Full;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::client::legacy::connect::{self, Connected};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tower::Service;

use super::dial::{Resolver, dial};
use super::endpoint::Endpoint;
use super::error::{Failure, Phase};
use super::stream::Stream;
use super::surface::Transport;

/// The window of a stream and of a connection. With the 64 KiB of the standard a body of a
/// megabyte waits for window updates most of the time.
pub(super) const H2_WINDOW: u32 = 16 << 20;
/// An h2 connection is asked for a sign of life this often, idle or not. Together with the timeout it
/// is less than a CL waits for a command (8 s), so that a command to a peer that is gone without a
/// word still can go another way.
pub(super) const H2_PING_INTERVAL: Duration = Duration::from_secs(2);
/// A full garbage collection of an EL on the JVM or .NET seldom takes as long, nor does a body of
/// some MiB over a slow link, behind which the sign of life has to wait: a busy EL is not a dead one.
/// One taken for dead all the same is found anew, and is asked over JSON-RPC until then.
pub(super) const H2_PING_TIMEOUT: Duration = Duration::from_secs(5);
pub(super) type BoxError = Box<dyn Error + Send + Sync>;
pub(super) type ElRequest = Request<Full<Bytes>>;

/// A body that is handed on piece by piece, in either direction.
pub type StreamedBody = UnsyncBoxBody<Bytes, BoxError>;

/// Opens connections to the EL.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    way: Way,
    patience: Duration,
}

#[derive(Clone, Debug)]
enum Way {
    Tcp { resolver: Resolver, host: Arc<str>, port: u16 },
    Unix(Arc<Path>),
}

impl Connector {
    pub(super) fn new(endpoint: &Endpoint, resolver: Resolver, patience: Duration) -> Self {
        let way = match endpoint.socket() {
            Some(path) => Way::Unix(Arc::from(path)),
            None => Way::Tcp {
                resolver,
                host: Arc::from(endpoint.authority().host()),
                port: endpoint.port(),
            },
        };
        Self { way, patience }
    }

    async fn connect(self) -> io::Result<Stream> {
        match self.way {
            Way::Tcp { resolver, host, port } => {
                dial(&resolver, &host, port, self.patience).await.map(Stream::Tcp)
            }
            Way::Unix(path) => {
                match tokio::time::timeout(self.patience, UnixStream::connect(path)).await {
                    Ok(connected) => connected.map(Stream::Unix),
                    Err(_) => Err(io::ErrorKind::TimedOut.into()),
                }
            }
        }
    }
}

/// Whatever is asked for is there: all requests go to the one EL.
impl Service<Uri> for Connector {
    type Response = TokioIo<Socket>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let connecting = self.clone().connect();
        Box::pin(async move {
            let stream = connecting.await?;
            Ok(TokioIo::new(Socket { stream, past: Past::default() }))
        })
    }
}

/// One connection. Dropping it closes it.
pub(super) struct Connection {
    sender: Sender,
    past: Past,
    ended: oneshot::Receiver<()>,
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    H2c(http2::SendRequest<Full<Bytes>>),
}

impl Connection {
    /// Opens a connection. HTTP/2 is begun without waiting for the peer's part: whether the peer
    /// speaks it shows in the first exchange.
    pub(super) async fn open(connector: &Connector, transport: Transport) -> Result<Self, Failure> {
        let connected = connector.clone().connect().await;
        let stream = connected.map_err(|error| Failure::unreachable(error.into()))?;
        let past = Past::default();
        let io = TokioIo::new(Socket { stream, past: past.clone() });
        let (end, ended) = oneshot::channel();
        let failed = |error: hyper::Error| Failure::unreachable(error.into());
        let sender = match transport {
            Transport::Http1 => {
                let (sender, driver) = http1::handshake(io).await.map_err(failed)?;
                tokio::spawn(drive(driver, end));
                Sender::Http1(sender)
            }
            Transport::H2c => {
                let (sender, driver) = http2::Builder::new(TokioExecutor::new())
                    .timer(TokioTimer::new())
                    .initial_stream_window_size(H2_WINDOW)
                    .initial_connection_window_size(H2_WINDOW)
                    .keep_alive_interval(H2_PING_INTERVAL)
                    .keep_alive_timeout(H2_PING_TIMEOUT)
                    .keep_alive_while_idle(true)
                    .handshake(io)
                    .await
                    .map_err(failed)?;
                tokio::spawn(drive(driver, end));
                Sender::H2c(sender)
            }
        };
        Ok(Self { sender, past, ended })
    }

    /// Waits until the connection can take a request; `false` if it never will.
    pub(super) async fn is_usable(&mut self) -> bool {
        match &mut self.sender {
            Sender::Http1(sender) => sender.ready().await.is_ok(),
            Sender::H2c(sender) => sender.ready().await.is_ok(),
        }
    }

    /// Waits until the connection has ended, by whomever.
    pub(super) async fn ended(&mut self) {
        // An error means that the driver is gone without a word, which is an end too.
        let _ = (&mut self.ended).await;
    }

    /// Whether a single byte has come from the peer.
    pub(super) fn was_heard_from(&self) -> bool {
        self.past.0.heard.load(Ordering::Relaxed)
    }

    /// Whether the peer has stopped taking what is written.
    pub(super) fn is_write_pending(&self) -> bool {
        self.past.0.write_pending.load(Ordering::Relaxed)
    }

    /// Sends a request with an absolute URI and waits for the head of the answer.
    pub(super) async fn send(&mut self, request: ElRequest) -> Result<Response<Incoming>, Failure> {
        let sent = match &mut self.sender {
            Sender::Http1(sender) => sender.try_send_request(origin_form(request)).await,
            Sender::H2c(sender) => sender.try_send_request(request).await,
        };
        sent.map_err(|error| {
            let unsent = error.message().is_some();
            let failure = Failure::exchange(Phase::BeforeAnswer, error.into_error().into());
            if unsent { failure.never_sent() } else { failure }
        })
    }
}

async fn drive<D, E>(driver: D, end: oneshot::Sender<()>)
where
    D: Future<Output = Result<(), E>>,
    E: std::fmt::Display,
{
    if let Err(error) = driver.await {
        tracing::debug!(%error, "connection to the EL ended");
    }
    // Nobody listens once the connection was dropped on this side.
    let _ = end.send(());
}

/// HTTP/1.1 wants the path alone in the request line and the authority in `Host`.
fn origin_form(mut request: ElRequest) -> ElRequest {
    let uri = request.uri();
    let host = uri.authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    let path = uri.path_and_query().cloned();
    if let Some(host) = host {
        request.headers_mut().insert(HOST, host);
    }
    if let Some(path) = path {
        *request.uri_mut() = Uri::from(path);
    }
    request
}

/// What a connection has been through.
#[derive(Clone, Debug, Default)]
pub(super) struct Past(Arc<PastFacts>);

#[derive(Debug, Default)]
struct PastFacts {
    heard: AtomicBool,
    answered: AtomicBool,
    write_pending: AtomicBool,
}

impl Past {
    fn note_write<T>(&self, written: Poll<T>) -> Poll<T> {
        self.0.write_pending.store(written.is_pending(), Ordering::Relaxed);
        written
    }

    /// An exchange was answered over it.
    pub(super) fn note_answer(&self) {
        self.0.answered.store(true, Ordering::Relaxed);
    }

    /// Whether an exchange was answered over it, so that the next one reuses it.
    pub(super) fn has_answered(&self) -> bool {
        self.0.answered.load(Ordering::Relaxed)
    }
}

/// A socket that remembers whether the peer has said anything at all.
pub(super) struct Socket {
    stream: Stream,
    past: Past,
}

/// What a pool tells of a connection with each answer and each error.
impl connect::Connection for Socket {
    fn connected(&self) -> Connected {
        Connected::new().extra(self.past.clone())
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.past.0.heard.store(true, Ordering::Relaxed);
        }
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.past.note_write(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.past.note_write(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
