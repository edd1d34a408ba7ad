//! How a CL is connected to the sidecar.

use crate::{
    jwt::Secret,
    tools::cl::{Cl, Version, bearer},
};
use bytes::Bytes;
use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use http::StatusCode;
use serde_json::Value;
use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{
    net::TcpStream,
    sync::{Mutex as Turn, oneshot},
    task::JoinHandle,
};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{
        Error, Message,
        client::IntoClientRequest,
        protocol::{WebSocketConfig, frame::coding::CloseCode},
    },
};

/// What came back for a call.
#[derive(Debug)]
pub(super) enum Heard {
    /// JSON.
    Json(Value),
    /// Another status than 200, or an end of the socket for the same reason.
    Status(StatusCode),
    /// No answer at all.
    Lost(String),
}

/// A connection, or a pool of them.
#[derive(Debug)]
pub(super) enum Line {
    /// HTTP/1.1 or h2c.
    Http(Cl),
    /// A WebSocket: what is sent first arrives first.
    Socket(Socket),
}

impl Line {
    pub(super) fn http(address: SocketAddr, secret: Secret, version: Version) -> Self {
        Self::Http(Cl::new(address, secret, version))
    }

    pub(super) fn socket(address: SocketAddr, secret: Secret) -> Self {
        Self::Socket(Socket { address, secret, open: Turn::new(None) })
    }

    /// Sends a call. The future that it gives resolves with the answer, and over a socket the call
    /// is on its way once that future is there.
    pub(super) async fn send<'a>(
        &'a self,
        id: &Value,
        body: String,
    ) -> impl Future<Output = Heard> + use<'a> {
        enum Sent<F> {
            Http(F),
            Socket(Result<oneshot::Receiver<Heard>, String>),
        }
        let sent = match self {
            Self::Http(cl) => Sent::Http(cl.exchange(Bytes::from(body))),
            Self::Socket(socket) => Sent::Socket(socket.send(id, body).await),
        };
        async move {
            match sent {
                Sent::Http(exchange) => match exchange.await {
                    Ok((StatusCode::OK, body)) => match serde_json::from_slice(&body) {
                        Ok(json) => Heard::Json(json),
                        Err(error) => Heard::Lost(format!("no JSON: {error}")),
                    },
                    Ok((status, _)) => Heard::Status(status),
                    Err(error) => Heard::Lost(format!("no answer: {error:?}")),
                },
                Sent::Socket(Ok(answer)) => {
                    answer.await.unwrap_or_else(|_| Heard::Lost("the socket was closed".to_owned()))
                }
                Sent::Socket(Err(error)) => Heard::Lost(error),
            }
        }
    }
}

/// A WebSocket that is opened when it is needed and opened anew when it was closed.
#[derive(Debug)]
pub(super) struct Socket {
    address: SocketAddr,
    secret: Secret,
    open: Turn<Option<Open>>,
}

type Pending = Arc<Mutex<HashMap<String, oneshot::Sender<Heard>>>>;

#[derive(Debug)]
struct Open {
    sink: SplitSink<WebSocketStream<TcpStream>, Message>,
    pending: Pending,
    reader: JoinHandle<()>,
}

impl Open {
    async fn send(&mut self, id: &Value, body: &str) -> Result<oneshot::Receiver<Heard>, Error> {
        let (tell, answer) = oneshot::channel();
        lock(&self.pending).insert(id.to_string(), tell);
        self.sink.send(Message::text(body)).await?;
        Ok(answer)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Socket {
    async fn send(&self, id: &Value, body: String) -> Result<oneshot::Receiver<Heard>, String> {
        let mut open = self.open.lock().await;
        let mut socket = match open.take().filter(|open| !open.reader.is_finished()) {
            Some(open) => open,
            None => self.connect().await?,
        };
        let mut sent = socket.send(id, &body).await;
        if let Err(Error::AlreadyClosed | Error::ConnectionClosed | Error::Protocol(_)) = sent {
            // It was closed a moment ago, so nothing of the call is on its way.
            socket = self.connect().await?;
            sent = socket.send(id, &body).await;
        }
        *open = Some(socket);
        sent.map_err(|error| format!("the call cannot be sent: {error}"))
    }

    async fn connect(&self) -> Result<Open, String> {
        let connect = async {
            let stream = TcpStream::connect(self.address).await?;
            stream.set_nodelay(true)?;
            let mut request = format!("ws://{}/", self.address).into_client_request()?;
            request.headers_mut().insert("authorization", bearer(&self.secret)?.parse()?);
            let limits = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
            let (socket, _) = client_async_with_config(request, stream, Some(limits)).await?;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(socket)
        };
        let socket = connect.await.map_err(|error| format!("no socket: {error}"))?;
        let (sink, stream) = socket.split();
        let pending = Pending::default();
        let reader = tokio::spawn(read(stream, pending.clone()));
        Ok(Open { sink, pending, reader })
    }
}

/// Hands each answer to who waits for it.
async fn read(mut stream: SplitStream<WebSocketStream<TcpStream>>, pending: Pending) {
    let mut is_refused = false;
    while let Some(Ok(message)) = stream.next().await {
        let json = match &message {
            Message::Text(text) => serde_json::from_str::<Value>(text.as_str()).ok(),
            Message::Close(Some(frame)) => {
                is_refused = frame.code == CloseCode::Policy;
                None
            }
            _ => None,
        };
        let Some(json) = json else { continue };
        let id = json.get("id").map(ToString::to_string).unwrap_or_default();
        if let Some(tell) = lock(&pending).remove(&id) {
            // Whoever has lost patience hears nothing more.
            let _ = tell.send(Heard::Json(json));
        }
    }
    for (_, tell) in lock(&pending).drain() {
        let _ = tell.send(match is_refused {
            true => Heard::Status(StatusCode::UNAUTHORIZED),
            false => Heard::Lost("the socket was closed".to_owned()),
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
