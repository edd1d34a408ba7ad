//! A door with a handler behind it, and clients to knock with.

use std::convert::Infallible;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use engine_ssz_proxy::cl::{Auth, Call, Config, Handler, Outcome, Place, Server, Stopped};
use engine_ssz_proxy::jsonrpc::{Incoming, Invalid, RawId, Reply, Request, parse};
use engine_ssz_proxy::jwt::Secret;
use http::{HeaderMap, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

pub const NOW: u64 = 1_700_000_000;

pub fn secret() -> Secret {
    Secret::new([7; 32])
}

/// A door that checks tokens, by a clock that stands still.
pub fn checking() -> Config {
    Config { clock: || NOW, ..Config::new(Auth::Check(secret())) }
}

pub fn open() -> Config {
    Config::new(Auth::Forward)
}

/// A test that would wait for ever fails instead.
pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("nothing came")
}

type Answering = Pin<Box<dyn Future<Output = Outcome> + Send>>;

#[derive(Clone)]
pub struct Script(Arc<dyn Fn(Call) -> Answering + Send + Sync>, Arc<AtomicUsize>);

impl Script {
    pub fn new<F>(script: impl Fn(Call) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        Self(Arc::new(move |call| Box::pin(script(call))), Arc::default())
    }

    /// How many calls panicked, as it goes on.
    pub fn panics(&self) -> Arc<AtomicUsize> {
        self.1.clone()
    }

    /// Answers every request with its method's name.
    pub fn names() -> Self {
        Self::new(|call| async move { Outcome::Json(names(&call.body)) })
    }

    /// Fails the test of whoever gets in.
    pub fn unreachable() -> Self {
        Self::new(|call| async move {
            let text = format!("let in with {} bytes", call.body.len());
            Outcome::Status(StatusCode::IM_A_TEAPOT, text.into())
        })
    }
}

impl Handler for Script {
    type Place = ();

    fn panicked(&self) {
        self.1.fetch_add(1, Ordering::SeqCst);
    }

    fn call(&self, call: Call) -> impl Future<Output = Outcome> + Send {
        (self.0)(call)
    }
}

fn names(body: &Bytes) -> Reply {
    let answer = |element: Result<Request, Invalid>| match element {
        Err(invalid) => Reply::error(&invalid.id, &invalid.error),
        Ok(Request { id: None, .. }) => Reply::empty(),
        Ok(Request { id: Some(id), method, .. }) => {
            Reply::result(&id, Bytes::from(format!("{:?}", method.as_str())))
        }
    };
    match parse(body) {
        Err(error) => Reply::error(&RawId::null(), &error),
        Ok(Incoming::Single(element)) => answer(element),
        Ok(Incoming::Batch(batch)) => Reply::batch(batch.into_iter().map(answer).collect()),
    }
}

/// A door that is served.
pub struct Door {
    pub addr: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<Stopped>,
}

impl Door {
    pub async fn new(config: Config, script: Script) -> Self {
        let server = Server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
        let Place::Tcp(addr) = *server.place() else { unreachable!("a port was asked for") };
        let (stop, stopped) = oneshot::channel();
        let shutdown = async {
            let _ = stopped.await;
        };
        Self { addr, stop, served: tokio::spawn(server.serve(config, script, shutdown)) }
    }

    /// Asks the door to close; what comes back tells how it closed.
    pub fn stop(self) -> JoinHandle<Stopped> {
        self.stop.send(()).unwrap();
        self.served
    }

    pub async fn raw(&self) -> Raw {
        Raw(TcpStream::connect(self.addr).await.unwrap())
    }

    pub async fn client(&self, http: Http) -> Client {
        let stream = TokioIo::new(TcpStream::connect(self.addr).await.unwrap());
        match http {
            Http::One => {
                let (client, connection) = http1::handshake(stream).await.unwrap();
                tokio::spawn(connection);
                Client::One(client)
            }
            Http::Two => {
                let executor = TokioExecutor::new();
                let (client, connection) = http2::handshake(executor, stream).await.unwrap();
                tokio::spawn(connection);
                Client::Two(client)
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Http {
    One,
    Two,
}

pub const BOTH: [Http; 2] = [Http::One, Http::Two];

/// One connection of either version.
pub enum Client {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Client {
    pub async fn send(&mut self, mut request: http::Request<Full<Bytes>>) -> Answer {
        let response = match self {
            Self::One(client) => {
                client.ready().await.unwrap();
                request.headers_mut().insert("host", "localhost".parse().unwrap());
                soon(client.send_request(request)).await
            }
            Self::Two(client) => {
                client.ready().await.unwrap();
                let path = request.uri().path().to_owned();
                *request.uri_mut() = format!("http://localhost{path}").parse().unwrap();
                soon(client.send_request(request)).await
            }
        };
        let (head, body) = response.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: head.status, headers: head.headers, body }
    }

    pub async fn post(&mut self, body: impl Into<Bytes>) -> Answer {
        self.send(http::Request::post("/").body(Full::new(body.into())).unwrap()).await
    }
}

/// An HTTP/1.1 connection written and read by hand.
pub struct Raw(pub TcpStream);

impl Raw {
    pub async fn write(&mut self, text: impl AsRef<[u8]>) {
        soon(self.0.write_all(text.as_ref())).await.unwrap();
    }

    /// One head, up to and with the empty line.
    pub async fn head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(soon(self.0.read_u8()).await.unwrap());
        }
        String::from_utf8(head).unwrap()
    }

    /// One response: its head, and its body by `content-length`.
    pub async fn response(&mut self) -> (String, String) {
        let head = self.head().await;
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await.unwrap();
        (head, String::from_utf8(body).unwrap())
    }

    /// Everything up to the end of the connection.
    pub async fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        soon(self.0.read_to_end(&mut rest)).await.unwrap();
        rest
    }
}

/// A body that comes as it is fed and ends when its feeder is dropped.
pub struct Fed(mpsc::UnboundedReceiver<Bytes>);

impl Fed {
    pub fn new() -> (mpsc::UnboundedSender<Bytes>, Self) {
        let (feeder, fed) = mpsc::unbounded_channel();
        (feeder, Self(fed))
    }
}

impl Body for Fed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|data| data.map(|data| Ok(Frame::data(data))))
    }
}

/// An h2 connection for bodies that are fed.
pub async fn h2_fed(addr: SocketAddr) -> http2::SendRequest<Fed> {
    let stream = TokioIo::new(TcpStream::connect(addr).await.unwrap());
    let (client, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    client
}
