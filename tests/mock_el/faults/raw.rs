//! Clients that see every byte: HTTP/1.1 as text, HTTP/2 as frames.

use std::io::ErrorKind;

use engine_ssz_proxy::mock_el::{
    MockEl,
    faults::{Fault, Faults, FaultsHandle, Rule, Target},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::super::client::config;

pub const CAPABILITIES: &str = "/engine/v1/capabilities";

/// An EL with one rule for every request.
pub async fn el_with(fault: Fault) -> MockEl {
    el_of(Faults::new(1).with(Rule::new(Target::Any, fault))).await
}

pub async fn el_of(script: Faults) -> MockEl {
    MockEl::start_with(config(), FaultsHandle::new(script)).await.expect("a free port")
}

/// How the peer ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Fin,
    Rst,
}

pub fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: el\r\n\r\n")
}

pub fn post(path: &str, content_type: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: el\r\ncontent-type: {content_type}\r\n\
         eth-execution-version: paris\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// A connection that writes and reads what it is told.
pub struct Line(pub TcpStream);

impl Line {
    pub async fn to(el: &MockEl) -> Self {
        Self(TcpStream::connect(el.addr()).await.unwrap())
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Everything until the end, and which one it was.
    pub async fn rest(&mut self) -> (Vec<u8>, End) {
        let mut bytes = Vec::new();
        loop {
            match self.0.read_buf(&mut bytes).await {
                Ok(0) => return (bytes, End::Fin),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    return (bytes, End::Rst);
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// The head of an answer, without its empty line.
    pub async fn head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.unwrap());
        }
        String::from_utf8(head).unwrap().trim_end().to_lowercase()
    }

    pub async fn exactly(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes).await.unwrap();
        bytes
    }

    /// Nothing comes, and no end, however long the (paused) clock runs.
    pub async fn stays_mute(&mut self) {
        let ever = std::time::Duration::from_secs(1_000_000);
        let read = tokio::time::timeout(ever, self.0.read_u8()).await;
        assert!(read.is_err(), "{read:?}");
    }
}

/// One HTTP/1.1 request on a connection of its own, and everything until its end.
pub async fn h1(el: &MockEl, request: &str) -> (String, End) {
    let mut line = Line::to(el).await;
    line.send(request).await;
    let (bytes, end) = line.rest().await;
    (String::from_utf8_lossy(&bytes).to_lowercase(), end)
}

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;

/// A frame (RFC 9113, section 4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    fn bytes(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let head = [length[1], length[2], length[3], kind, flags];
        [&head, stream.to_be_bytes().as_slice(), payload].concat()
    }

    /// The word at that place.
    pub fn word(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }

    /// A setting by its number.
    pub fn setting(&self, number: u16) -> Option<u32> {
        assert_eq!(self.kind, SETTINGS);
        let of = |pair: &[u8]| {
            let name = u16::from_be_bytes([pair[0], pair[1]]);
            (name == number).then(|| u32::from_be_bytes(pair[2..6].try_into().unwrap()))
        };
        self.payload.chunks(6).find_map(of)
    }
}

/// An HTTP/2 client of frames; it opens streams, and sees what comes.
pub struct H2 {
    pub line: Line,
    next: u32,
}

impl H2 {
    pub async fn to(el: &MockEl) -> Self {
        let mut line = Line::to(el).await;
        line.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        line.send(Frame::bytes(SETTINGS, 0, 0, &[])).await;
        Self { line, next: 1 }
    }

    /// Sends a GET and returns its stream.
    pub async fn get(&mut self, path: &str) -> u32 {
        let stream = self.next;
        self.next += 2;
        // HPACK: indexed `:method: GET` and `:scheme: http`; `:path` and `:authority` as literals.
        let mut block = vec![0x82, 0x86, 0x04, u8::try_from(path.len()).unwrap()];
        block.extend_from_slice(path.as_bytes());
        block.extend_from_slice(b"\x01\x02el");
        // END_STREAM and END_HEADERS.
        self.line.send(Frame::bytes(HEADERS, 0x5, stream, &block)).await;
        stream
    }

    /// The next frame.
    pub async fn frame(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        if let Err(error) = self.line.0.read_exact(&mut head).await {
            assert!(
                [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset].contains(&error.kind()),
                "{error}"
            );
            return None;
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let payload = self.line.exactly(length.try_into().unwrap()).await;
        let stream = u32::from_be_bytes(head[5..9].try_into().unwrap());
        Some(Frame { kind: head[3], flags: head[4], stream, payload })
    }

    /// The next frame that is no SETTINGS, PING or WINDOW_UPDATE.
    pub async fn telling(&mut self) -> Option<Frame> {
        loop {
            let frame = self.frame().await?;
            if [DATA, HEADERS, RST_STREAM, GOAWAY].contains(&frame.kind) {
                return Some(frame);
            }
        }
    }

    /// A PING is answered: whatever was to be said before it has been said.
    pub async fn is_alive(&mut self) {
        self.line.send(Frame::bytes(PING, 0, 0, b"are you?")).await;
        loop {
            let frame = self.frame().await.expect("a connection that lives");
            if frame.kind == PING {
                assert_eq!(frame.payload, b"are you?");
                return;
            }
            assert!(frame.kind == SETTINGS || frame.kind == 8, "{frame:?}");
        }
    }

    /// A whole answer: no other stream may say anything meanwhile.
    pub async fn answer(&mut self, stream: u32) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let frame = self.telling().await.expect("an answer");
            assert_eq!(frame.stream, stream, "{frame:?}");
            assert!(frame.kind == HEADERS || frame.kind == DATA, "{frame:?}");
            if frame.kind == DATA {
                body.extend_from_slice(&frame.payload);
            }
            if frame.flags & 1 == 1 {
                return body;
            }
        }
    }
}

/// Waits for what another task does.
pub async fn until(what: impl Fn() -> bool) {
    while !what() {
        tokio::task::yield_now().await;
    }
}
