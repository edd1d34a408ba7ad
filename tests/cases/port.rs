//! A port of an EL whose HTTP/1.1 is written by hand, and whose HTTP/2 is the test's.

use crate::{
    peer::patiently,
    peers::{GREETING, id},
    support::{any_port, scripted_el::CAPABILITIES},
};
use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

/// A request over HTTP/1.1, whole.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Counted from 0 in the order of accepting; connections of HTTP/2 count too.
    pub connection: usize,
    /// Request line and headers, as written.
    pub head: String,
    pub body: Vec<u8>,
}

/// What is done with it.
#[derive(Clone, Debug)]
pub enum Deed {
    /// Answers with these bytes and goes on.
    Answer(Vec<u8>),
    /// Answers with these bytes and closes.
    Last(Vec<u8>),
    /// Resets the connection.
    Reset,
}

pub struct Port {
    pub address: SocketAddr,
    log: Arc<watch::Sender<Vec<Asked>>>,
    prefaces: Arc<AtomicUsize>,
    _accepting: JoinSet<()>,
}

type OnH2 = dyn Fn(usize, TcpStream) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync;

impl Port {
    /// An EL that offers everything over HTTP/1.1 alone; `script` gets the calls.
    pub async fn http1<F, Fut>(script: F) -> Self
    where
        F: Fn(Asked) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Deed> + Send + 'static,
    {
        Self::http1_at(any_port(), script).await.unwrap()
    }

    /// The same at that address, if there is such a one.
    pub async fn http1_at<F, Fut>(address: SocketAddr, script: F) -> io::Result<Self>
    where
        F: Fn(Asked) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Deed> + Send + 'static,
    {
        let refuse = |_, mut stream: TcpStream| async move {
            let _ = stream.write_all(&response("400 Bad Request", "text/plain", b"")).await;
            // A close with bytes unread would take the answer back.
            let _ = stream.shutdown().await;
            let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
        };
        Ok(Self::serving(TcpListener::bind(address).await?, script, refuse))
    }

    /// The same, whose connections of HTTP/2 are handed to `on_h2` with their number, from 0.
    pub async fn both<F, Fut, H, HFut>(script: F, on_h2: H) -> Self
    where
        F: Fn(Asked) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Deed> + Send + 'static,
        H: Fn(usize, TcpStream) -> HFut + Send + Sync + 'static,
        HFut: Future<Output = ()> + Send + 'static,
    {
        Self::serving(TcpListener::bind(any_port()).await.unwrap(), script, on_h2)
    }

    fn serving<F, Fut, H, HFut>(listener: TcpListener, script: F, on_h2: H) -> Self
    where
        F: Fn(Asked) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Deed> + Send + 'static,
        H: Fn(usize, TcpStream) -> HFut + Send + Sync + 'static,
        HFut: Future<Output = ()> + Send + 'static,
    {
        let address = listener.local_addr().unwrap();
        let log = Arc::new(watch::Sender::new(Vec::new()));
        let prefaces = Arc::new(AtomicUsize::new(0));
        let on_h2: Arc<OnH2> = Arc::new(move |nth, stream| Box::pin(on_h2(nth, stream)));
        let (to_log, count) = (log.clone(), prefaces.clone());
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut connections = JoinSet::new();
            let mut number = 0;
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                let (script, log) = (script.clone(), to_log.clone());
                let (on_h2, count) = (on_h2.clone(), count.clone());
                connections.spawn(async move {
                    if is_h2(&stream).await {
                        on_h2(count.fetch_add(1, Ordering::SeqCst), stream).await;
                    } else {
                        serve(stream, number, script, log).await;
                    }
                });
                number += 1;
            }
        });
        Self { address, log, prefaces, _accepting: accepting }
    }

    /// The calls received over HTTP/1.1, in order.
    pub fn calls(&self) -> Vec<Asked> {
        self.log.borrow().iter().filter(|asked| asked.own_answer().is_none()).cloned().collect()
    }

    /// Everything received over HTTP/1.1.
    pub fn seen(&self) -> Vec<Asked> {
        self.log.borrow().clone()
    }

    pub fn paths(&self) -> Vec<String> {
        self.calls().iter().map(|asked| asked.path().to_owned()).collect()
    }

    /// Waits for that many calls.
    pub async fn until_calls(&self, count: usize) {
        let mut log = self.log.subscribe();
        let calls = |seen: &Vec<Asked>| seen.iter().filter(|a| a.own_answer().is_none()).count();
        patiently(log.wait_for(|seen| calls(seen) >= count)).await.unwrap();
    }

    /// How often HTTP/2 was begun.
    pub fn prefaces(&self) -> usize {
        self.prefaces.load(Ordering::SeqCst)
    }
}

impl Asked {
    pub fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or("")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    /// What a sidecar asks by itself.
    fn own_answer(&self) -> Option<Vec<u8>> {
        let json = |text: &str| response("200 OK", "application/json", text.as_bytes());
        if self.path().ends_with("/engine/v1/capabilities") {
            Some(json(CAPABILITIES))
        } else if self.head.starts_with("GET / ") {
            Some(response("405 Method Not Allowed", "text/plain", b""))
        } else if self.body == GREETING.as_bytes() || self.body.ends_with(CONFIG) {
            Some(json(r#"{"jsonrpc":"2.0","id":0,"result":null}"#))
        } else {
            None
        }
    }
}

const CONFIG: &[u8] = br#""method":"eth_config","params":[]}"#;

async fn is_h2(stream: &TcpStream) -> bool {
    let mut start = [0; 3];
    while stream.peek(&mut start).await.is_ok_and(|length| (1..3).contains(&length)) {
        tokio::task::yield_now().await;
    }
    &start == b"PRI"
}

async fn serve<Fut: Future<Output = Deed>>(
    mut stream: TcpStream,
    connection: usize,
    script: impl Fn(Asked) -> Fut,
    log: Arc<watch::Sender<Vec<Asked>>>,
) {
    while let Some(asked) = next(&mut stream, connection).await {
        log.send_modify(|log| log.push(asked.clone()));
        let deed = match asked.own_answer() {
            Some(answer) => Deed::Answer(answer),
            None => script(asked).await,
        };
        match deed {
            Deed::Answer(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Deed::Last(bytes) => {
                let _ = stream.write_all(&bytes).await;
                return;
            }
            Deed::Reset => return stream.set_zero_linger().unwrap(),
        }
    }
}

async fn next(stream: &mut TcpStream, connection: usize) -> Option<Asked> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let length = header(&head, "content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Asked { connection, head, body })
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let named = |line: &'a str| line.split_once(": ").filter(|(n, _)| n.eq_ignore_ascii_case(name));
    head.lines().find_map(named).map(|(_, value)| value)
}

/// A whole response with its length.
pub fn response(status: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

pub fn ssz(body: impl AsRef<[u8]>) -> Vec<u8> {
    response("200 OK", "application/octet-stream", body.as_ref())
}

/// A JSON-RPC answer to any call.
pub fn by_json_rpc(asked: &Asked) -> Vec<u8> {
    let id = id(&asked.body);
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"by JSON-RPC"}}"#);
    response("200 OK", "application/json", text.as_bytes())
}

/// An EL that syncs, and has JSON-RPC for the rest.
pub fn syncing(asked: &Asked) -> Vec<u8> {
    match asked.path() {
        "/engine/v1/payloads" => ssz(crate::scene::SYNCING),
        "/engine/v1/forkchoice" => ssz(crate::scene::FORKCHOICE_SYNCING),
        _ => by_json_rpc(asked),
    }
}
