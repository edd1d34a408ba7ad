//! Places taken while a body is on its way.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use engine_ssz_proxy::cl::{Call, Config, FIRST_BYTES, Handler, Outcome, Place as Bound, Server};
use http::StatusCode;
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

    async fn call(&self, call: Call<Taken>) -> Outcome {
        let text = if call.place.is_some() { "in line" } else { "without" };
        Outcome::Status(StatusCode::OK, text.into())
    }
}

struct Queue {
    shown: Arc<Mutex<Vec<Bytes>>>,
    events: mpsc::UnboundedReceiver<Event>,
    connection: TcpStream,
}

impl Queue {
    /// A call whose head has been sent.
    async fn begin(config: Config, length: usize) -> Self {
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
            "POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
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
