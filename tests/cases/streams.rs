//! HTTP/2 by hand: whole streams with a script, or single frames.

use bytes::Bytes;
use h2::{Reason, server};
use http::{HeaderMap, Response};
use std::sync::{Arc, Mutex};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// A request over HTTP/2, whole.
#[derive(Clone, Debug)]
pub struct Streamed {
    pub path: String,
    pub headers: HeaderMap,
    pub length: usize,
}

/// What is done with it.
pub enum Deed {
    Answer(Vec<u8>),
    NoContent,
    Reset(Reason),
}

/// Every request over HTTP/2, in order of arrival.
pub type Streams = Arc<Mutex<Vec<Streamed>>>;

/// Serves a connection. The capabilities are not the script's, and not logged. Windows are opened
/// again for `step` bytes at a time.
pub async fn serve<F, Fut>(
    stream: TcpStream,
    builder: server::Builder,
    step: usize,
    log: Streams,
    script: F,
) where
    F: Fn(Streamed) -> Fut,
    Fut: Future<Output = Deed> + Send + 'static,
{
    let Ok(mut connection) = builder.handshake::<_, Bytes>(stream).await else { return };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let (head, mut body) = request.into_parts();
        let path = head.uri.path_and_query().unwrap().to_string();
        if path == "/engine/v1/capabilities" {
            let document = crate::support::scripted_el::CAPABILITIES;
            let head = Response::builder().header("content-type", "application/json");
            let mut send = respond.send_response(head.body(()).unwrap(), false).unwrap();
            send.send_data(document.into(), true).unwrap();
            continue;
        }
        // Logged at the head, whose order is that of the streams.
        let place = {
            let mut log = log.lock().unwrap();
            log.push(Streamed { path, headers: head.headers, length: 0 });
            log.len() - 1
        };
        let (length, whole) = tokio::sync::oneshot::channel();
        tokio::spawn(async move {
            let (mut read, mut held) = (0, 0);
            while let Some(Ok(data)) = body.data().await {
                read += data.len();
                held += data.len();
                if held >= step || body.is_end_stream() {
                    let _ = body.flow_control().release_capacity(held);
                    held = 0;
                }
            }
            let _ = length.send(read);
        });
        let streamed = log.lock().unwrap()[place].clone();
        let deed = script(streamed);
        let log = log.clone();
        tokio::spawn(async move {
            log.lock().unwrap()[place].length = whole.await.unwrap();
            match deed.await {
                Deed::Answer(ssz) => {
                    let head =
                        Response::builder().header("content-type", "application/octet-stream");
                    let sent = respond.send_response(head.body(()).unwrap(), false);
                    if let Ok(mut send) = sent {
                        let _ = send.send_data(ssz.into(), true);
                    }
                }
                Deed::NoContent => {
                    let head = Response::builder().status(204).body(()).unwrap();
                    let _ = respond.send_response(head, true);
                }
                Deed::Reset(reason) => respond.send_reset(reason),
            }
        });
    }
}

/// The same in the common form.
pub async fn serve_plainly<F, Fut>(stream: TcpStream, log: Streams, script: F)
where
    F: Fn(Streamed) -> Fut,
    Fut: Future<Output = Deed> + Send + 'static,
{
    let mut builder = server::Builder::new();
    builder.initial_window_size(16 << 20).initial_connection_window_size(16 << 20);
    serve(stream, builder, 1, log, script).await;
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const INITIAL_WINDOW_SIZE: [u8; 2] = [0, 4];
/// `client preface`, RFC 9113, section 3.4.
const PREFACE: usize = 24;

/// A connection of a CL's sidecar, frame by frame.
pub struct Frames(TcpStream);

impl Frames {
    /// Says SETTINGS and reads the preface.
    pub async fn open(mut stream: TcpStream) -> Option<Self> {
        stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.ok()?;
        stream.read_exact(&mut [0; PREFACE]).await.ok()?;
        Some(Self(stream))
    }

    /// The stream of the next request; `None` once the other side has closed.
    pub async fn request(&mut self) -> Option<u32> {
        loop {
            if let (HEADERS, _, stream) = self.frame().await? {
                return Some(stream);
            }
        }
    }

    pub async fn go_away(&mut self, last: u32, reason: Reason) {
        let payload = [last.to_be_bytes(), u32::from(reason).to_be_bytes()].concat();
        let _ = self.0.write_all(&frame(GOAWAY, 0, 0, &payload)).await;
    }

    pub async fn reset(&mut self, stream: u32, reason: Reason) {
        let payload = u32::from(reason).to_be_bytes();
        let _ = self.0.write_all(&frame(RST_STREAM, 0, stream, &payload)).await;
    }

    /// `:status: 204` of the static table of RFC 7541, and the end of the stream.
    pub async fn no_content(&mut self, stream: u32) {
        let flags = END_STREAM | END_HEADERS;
        let _ = self.0.write_all(&frame(HEADERS, flags, stream, &[0x89])).await;
    }

    /// A 200 with SSZ, `:status: 200` and `content-type` being of the static table of RFC 7541.
    pub async fn ssz(&mut self, stream: u32, body: &[u8]) {
        const MEDIA_TYPE: &[u8] = b"application/octet-stream";
        let fields = [&[0x88, 0x0f, 0x10, MEDIA_TYPE.len() as u8], MEDIA_TYPE].concat();
        let head = frame(HEADERS, END_HEADERS, stream, &fields);
        let answer = [head, frame(DATA, END_STREAM, stream, body)].concat();
        let _ = self.0.write_all(&answer).await;
    }

    /// Lets the whole body of a request come in, and reads it.
    pub async fn body(&mut self, stream: u32) {
        for window in [0, stream] {
            let update = frame(WINDOW_UPDATE, 0, window, &(1u32 << 30).to_be_bytes());
            self.0.write_all(&update).await.unwrap();
        }
        while self.frame().await.is_some_and(|(kind, flags, of)| {
            kind != DATA || of != stream || flags & END_STREAM == 0
        }) {}
    }

    /// Kind, flags and stream of the next frame.
    async fn frame(&mut self) -> Option<(u8, u8, u32)> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).await.ok()?;
        let [a, b, c, kind, flags, stream @ ..] = head;
        let length = u32::from_be_bytes([0, a, b, c]);
        self.0.read_exact(&mut vec![0; length as usize]).await.ok()?;
        Some((kind, flags, u32::from_be_bytes(stream)))
    }

    /// Reads until the other side closes; how many requests still came.
    pub async fn rest(mut self) -> usize {
        let mut requests = 0;
        while self.request().await.is_some() {
            requests += 1;
        }
        requests
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    [&[a, b, c, kind, flags], &stream.to_be_bytes()[..], payload].concat()
}

/// The windows of a stream and of the connection that the other side opens with. Reads nothing.
pub async fn peek_windows(stream: &TcpStream) -> (u32, u32) {
    loop {
        let mut start = [0; 256];
        let length = stream.peek(&mut start).await.unwrap();
        let (mut of_stream, mut of_connection) = (None, None);
        let mut rest = start.get(PREFACE..length).unwrap_or_default();
        while let [a, b, c, kind, _, _, _, _, _, after @ ..] = rest {
            let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            let Some((payload, next)) = after.split_at_checked(length) else { break };
            let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
            match *kind {
                SETTINGS => {
                    let mut settings = payload.chunks_exact(6);
                    let window = settings.find(|setting| setting[..2] == INITIAL_WINDOW_SIZE);
                    of_stream = of_stream.or(window.map(|setting| number(&setting[2..])));
                }
                WINDOW_UPDATE => of_connection = Some(65_535 + number(payload)),
                _ => {}
            }
            rest = next;
        }
        if let (Some(of_stream), Some(of_connection)) = (of_stream, of_connection) {
            return (of_stream, of_connection);
        }
        tokio::task::yield_now().await;
    }
}
