//! Places taken while a body is on its way.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use engine_ssz_proxy::cl::{
    Bounds, Call, Config, FIRST_BYTES, Handler, Outcome, Passage, Place as Bound, Server,
    StreamedBody,
};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::support::{open, soon};

/// Takes a place at a `!`, and tells what it was shown; the answer is whether the call has one.
#[derive(Clone)]
struct Line {
    shown: Arc<Mutex<Vec<Bytes>>>,
    told: mpsc::UnboundedSender<Event>,
}

#[derive(Debug, PartialEq)]
enum Event {
    Taken,
    GivenUp,
}

struct Taken(mpsc::UnboundedSender<Event>);

impl Drop for Taken {
    fn drop(&mut self) {
        let _ = self.0.send(Event::GivenUp);
    }
}

impl Handler for Line {
    type Place = Taken;

    fn begun(&self, first: &[u8]) -> Option<Taken> {
        self.shown.lock().unwrap().push(Bytes::copy_from_slice(first));
        first.contains(&b'!').then(|| {
            self.told.send(Event::Taken).unwrap();
            Taken(self.told.clone())
        })
    }

    fn in_order(&self, head: &Parts) -> Option<Taken> {
        (head.method == Method::PUT).then(|| {
            self.told.send(Event::Taken).unwrap();
            Taken(self.told.clone())
        })
    }

    async fn pass(&self, passage: Passage<Taken>) -> Response<StreamedBody> {
        let body = passage.request.into_body().collect().await.unwrap().to_bytes();
        let text = match passage.place {
            Some(_) => [&body[..], b" in line"].concat(),
            None => [&body[..], b" without"].concat(),
        };
        Response::new(StreamedBody::new(Full::new(text.into()).map_err(|never| match never {})))
    }

    async fn call(&self, call: Call<Taken>) -> Outcome {
        let text = if call.place.is_some() { "in line" } else { "without" };
        Outcome::Status(StatusCode::OK, text.into())
    }
}

const BEARER: &str = "authorization: Bearer x\r\n";

struct Queue {
    shown: Arc<Mutex<Vec<Bytes>>>,
    events: mpsc::UnboundedReceiver<Event>,
    connection: TcpStream,
}

impl Queue {
    /// A call whose head has been sent.
    async fn begin(config: Config, length: usize) -> Self {
        Self::begin_with(config, "POST /", BEARER, length).await
    }

    /// A passage whose head has been sent, of a kind that is worth a place.
    async fn begin_passage(config: Config, length: usize) -> Self {
        Self::begin_with(config, "PUT /engine/v1/x", BEARER, length).await
    }

    async fn begin_with(config: Config, asked: &str, headers: &str, length: usize) -> Self {
        let (told, events) = mpsc::unbounded_channel();
        let shown = Arc::default();
        let handler = Line { shown: Arc::clone(&shown), told };
        let any_port = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let server = Server::bind(any_port).await.unwrap();
        let Bound::Tcp(address) = *server.place() else { unreachable!("a port was asked for") };
        tokio::spawn(server.serve(config, handler, std::future::pending()));
        let connection = TcpStream::connect(address).await.unwrap();
        let mut queue = Self { shown, events, connection };
        let head = format!(
            "{asked} HTTP/1.1\r\nhost: x\r\n{headers}connection: close\r\n\
             content-length: {length}\r\n\r\n"
        );
        queue.write(&head).await;
        queue
    }

    async fn write(&mut self, text: &str) {
        soon(self.connection.write_all(text.as_bytes())).await.unwrap();
    }

    /// Waits until the handler was shown that much.
    async fn shown(&self, length: usize) {
        let is_shown =
            || self.shown.lock().unwrap().last().is_some_and(|shown| shown.len() == length);
        soon(async {
            while !is_shown() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    async fn event(&mut self) -> Option<Event> {
        soon(self.events.recv()).await
    }

    async fn answer(mut self) -> String {
        let mut answer = String::new();
        soon(self.connection.read_to_string(&mut answer)).await.unwrap();
        answer.split("\r\n\r\n").nth(1).unwrap().to_owned()
    }
}

/// A place outlasts any pause that a machine may make.
fn patient() -> Config {
    Config { place_pause: Duration::from_secs(3600), ..open() }
}

#[tokio::test]
async fn a_place_is_taken_at_the_first_bytes_and_goes_with_the_call() {
    let mut queue = Queue::begin(patient(), 6).await;
    queue.write("ab").await;
    queue.shown(2).await;
    queue.write("c!").await;
    assert_eq!(queue.event().await, Some(Event::Taken));
    assert!(queue.events.is_empty());
    queue.write("!!").await;
    let shown = Arc::clone(&queue.shown);
    assert_eq!(queue.answer().await, "in line");
    assert_eq!(*shown.lock().unwrap(), [&b"ab"[..], b"abc!"], "once there is a place, no more");
}

#[tokio::test]
async fn no_more_than_the_first_bytes_are_shown() {
    let length = FIRST_BYTES + 1000;
    let mut queue = Queue::begin(patient(), length).await;
    queue.write(&"a".repeat(FIRST_BYTES - 1)).await;
    queue.shown(FIRST_BYTES - 1).await;
    queue.write("bcde").await;
    queue.shown(FIRST_BYTES).await;
    queue.write(&"!".repeat(length - FIRST_BYTES - 3)).await;
    let shown = Arc::clone(&queue.shown);
    assert_eq!(queue.answer().await, "without");
    assert!(shown.lock().unwrap().iter().all(|shown| shown.len() <= FIRST_BYTES));
}

#[tokio::test]
async fn a_body_that_pauses_loses_its_place_and_not_its_call() {
    let config = Config { place_pause: Duration::from_millis(1), ..open() };
    let mut queue = Queue::begin(config, 2).await;
    queue.write("!").await;
    assert_eq!(queue.event().await, Some(Event::Taken));
    assert_eq!(queue.event().await, Some(Event::GivenUp));
    queue.write("!").await;
    assert_eq!(queue.answer().await, "without");
}

#[tokio::test]
async fn the_place_of_a_cl_that_hangs_up_is_given_up() {
    let mut queue = Queue::begin(patient(), 2).await;
    queue.write("!").await;
    assert_eq!(queue.event().await, Some(Event::Taken));
    let Queue { connection, mut events, .. } = queue;
    drop(connection);
    assert_eq!(soon(events.recv()).await, Some(Event::GivenUp));
}

#[tokio::test]
async fn a_passage_takes_its_place_at_the_head_and_comes_whole() {
    let mut queue = Queue::begin_passage(patient(), 5).await;
    assert_eq!(queue.event().await, Some(Event::Taken));
    queue.write("wh").await;
    queue.write("ole").await;
    assert_eq!(queue.answer().await, "whole in line");
}

#[tokio::test]
async fn a_passage_that_pauses_loses_its_place_like_a_call() {
    let config = Config { place_pause: Duration::from_millis(1), ..open() };
    let mut queue = Queue::begin_passage(config, 2).await;
    assert_eq!(queue.event().await, Some(Event::Taken));
    assert_eq!(queue.event().await, Some(Event::GivenUp));
    queue.write("ab").await;
    assert_eq!(queue.answer().await, "ab without");
}

#[tokio::test]
async fn the_place_of_a_passage_is_given_up_when_the_cl_hangs_up() {
    let mut queue = Queue::begin_passage(patient(), 2).await;
    assert_eq!(queue.event().await, Some(Event::Taken));
    let Queue { connection, mut events, .. } = queue;
    drop(connection);
    assert_eq!(soon(events.recv()).await, Some(Event::GivenUp));
}

/// Held in memory like that of a call, so counted like it.
#[tokio::test]
async fn the_body_of_a_passage_in_line_takes_its_share_of_the_memory() {
    let bounds = Bounds { bodies: 8192, patience: Duration::ZERO, ..open().bounds };
    let config = Config { body_limit: 8192, bounds, ..patient() };
    let mut first = Queue::begin_passage(config, 8192).await;
    first.write(&"a".repeat(8191)).await;
    let address = first.connection.peer_addr().unwrap();
    // Until the first one's bytes have come there is room for these.
    soon(async {
        loop {
            let mut second = TcpStream::connect(address).await.unwrap();
            let head = "PUT /engine/v1/x HTTP/1.1\r\nhost: x\r\nconnection: close\r\n";
            let request = format!("{head}content-length: 4097\r\n\r\n{}", "b".repeat(4097));
            second.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            second.read_to_string(&mut answer).await.unwrap();
            if answer.starts_with("HTTP/1.1 503 ") && answer.contains("--body-limit") {
                break;
            }
        }
    })
    .await;
    first.write("c").await;
    assert!(first.answer().await.ends_with("ac in line"));
}

/// Whoever gets in without a token may send bytes for as long as it likes.
#[tokio::test]
async fn without_a_bearer_there_is_no_place_before_the_body_is_whole() {
    let mut queue = Queue::begin_with(patient(), "POST /", "", 2).await;
    queue.write("!!").await;
    let mut events = std::mem::replace(&mut queue.events, mpsc::unbounded_channel().1);
    assert_eq!(queue.answer().await, "without");
    assert!(events.try_recv().is_err());

    let mut queue = Queue::begin_with(patient(), "PUT /engine/v1/x", "", 2).await;
    assert_eq!(queue.event().await, Some(Event::Taken));
    assert_eq!(queue.event().await, Some(Event::GivenUp));
    queue.write("ab").await;
    assert_eq!(queue.answer().await, "ab without");
}
