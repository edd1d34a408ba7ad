//! HTTP/1.1 by hand, on either side of the sidecar.

use crate::support::{any_port, scripted_el::CAPABILITIES};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// A connection of a CL.
pub struct Connection(pub TcpStream);

impl Connection {
    pub async fn to(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).await.unwrap())
    }

    pub async fn write(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
    }

    /// One response: its head, and its body by `content-length`.
    pub async fn response(&mut self) -> (String, Vec<u8>) {
        let head = head(&mut self.0).await.expect("a whole head");
        let mut body = vec![0; content_length(&head)];
        self.0.read_exact(&mut body).await.unwrap();
        (head, body)
    }

    /// The peer closes and says nothing more. A close with bytes unread may come as a reset.
    pub async fn assert_closed(mut self) {
        let mut rest = Vec::new();
        let _ = self.0.read_to_end(&mut rest).await;
        assert_eq!(rest, b"");
    }
}

/// What an EL does with a request whose head it has read.
#[derive(Clone)]
pub enum Deed {
    /// Reads the body and answers with these bytes.
    Answer(Vec<u8>),
    /// Reads a part of the body, answers with these bytes and reads no more.
    Interrupt(Vec<u8>),
    /// Reads a part of the body and resets the connection.
    Reset,
}

/// How much of a body is read before it is interrupted.
const PART: usize = 64 * 1024;

/// An EL that speaks HTTP/1.1 to the letter of the test. It offers everything and answers the greeting.
pub struct RawEl {
    pub address: SocketAddr,
    paths: Arc<Mutex<Vec<String>>>,
    _connections: JoinSet<()>,
}

impl RawEl {
    /// `script` gets the path of each request but the probes and the greeting.
    pub async fn start(script: impl Fn(&str) -> Deed + Clone + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(any_port()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let paths = Arc::new(Mutex::new(Vec::new()));
        let log = paths.clone();
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, script.clone(), log.clone()));
            }
        });
        Self { address, paths, _connections: accepting }
    }

    /// Paths received but those of probes and the greeting.
    pub fn paths(&self) -> Vec<String> {
        self.paths.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, script: impl Fn(&str) -> Deed, log: Arc<Mutex<Vec<String>>>) {
    while let Some(head) = head(&mut stream).await {
        let mut words = head.split(' ');
        let (verb, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let deed = match (verb, path) {
            // A preface of HTTP/2.
            ("PRI", _) => return,
            ("GET", "/engine/v1/capabilities") => {
                Deed::Answer(response("200 OK", "application/json", CAPABILITIES.as_bytes()))
            }
            ("GET", "/") => Deed::Answer(response("405 Method Not Allowed", "text/plain", b"")),
            // The greeting is the shortest call.
            (_, "/") if content_length(&head) < 60 => {
                Deed::Answer(response("200 OK", "application/json", br#"{"id":0,"result":"0x1"}"#))
            }
            _ => {
                log.lock().unwrap().push(path.to_owned());
                script(path)
            }
        };
        let length = content_length(&head);
        let part = if matches!(deed, Deed::Answer(_)) { length } else { length.min(PART) };
        if stream.read_exact(&mut vec![0; part]).await.is_err() {
            return;
        }
        match deed {
            Deed::Answer(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Deed::Interrupt(bytes) => {
                let _ = stream.write_all(&bytes).await;
                // Open, and deaf, until the test is over.
                return std::future::pending().await;
            }
            // Bytes that were not read make it a reset.
            Deed::Reset => return,
        }
    }
}

/// A whole response with its length.
pub fn response(status: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// One head, up to and with the empty line; `None` if the peer is gone before it.
async fn head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}

fn content_length(head: &str) -> usize {
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.map_or(0, |length| length.parse().unwrap())
}
