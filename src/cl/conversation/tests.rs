use super::*;
use crate::cl::Bounds;
use http::HeaderValue;
use tokio::io::{DuplexStream, duplex};
use tokio::time::{Instant, advance};

const NOW: u64 = 1_700_000_000;
const LIMIT: usize = 8 << 20;
const SILENCE: Duration = Duration::from_secs(120);
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;

const COMMAND: &str = r#"{"jsonrpc":"2.0","id":1,"method":"command"}"#;

/// Answers a call when it is let go, or at once; a command always at once.
#[derive(Clone, Default)]
struct Answering(Option<Arc<Semaphore>>);

impl Handler for Answering {
    type Place = ();

    fn begun(&self, first: &[u8]) -> Option<()> {
        (first == COMMAND.as_bytes()).then_some(())
    }

    async fn call(&self, call: Call) -> Outcome {
        if let (Some(go), None) = (&self.0, call.place) {
            go.acquire().await.unwrap().forget();
        }
        Outcome::Json(Reply::raw(Bytes::from_static(b"answered")))
    }
}

/// Room for one message of the greatest length.
fn budget() -> Arc<Budget> {
    Arc::new(Budget::new(Bounds { bodies: LIMIT, ..Bounds::new(LIMIT) }, LIMIT))
}

/// The CL's end of a socket, and what the server's end hangs on.
struct Peer {
    socket: WebSocketStream<DuplexStream>,
    opened: Instant,
    phase: watch::Sender<Phase>,
    all_done: mpsc::Receiver<Infallible>,
}

impl Peer {
    async fn new(handler: Answering, age: Age) -> Self {
        Self::within(budget(), handler, age).await
    }

    async fn within(budget: Arc<Budget>, handler: Answering, age: Age) -> Self {
        let (ours, theirs) = duplex(64 * 1024);
        let (phase, watched) = watch::channel(Phase::Open);
        let (in_flight, all_done) = mpsc::channel(1);
        let connection = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let caller = Caller {
            bearer: Some(HeaderValue::from_static("Bearer x")),
            traceparent: None,
            client_version: None,
        };
        let conversation = Conversation {
            handler,
            caller,
            age,
            limit: LIMIT,
            silence: SILENCE,
            budget,
            _connection: Arc::new(connection),
            in_flight,
            phase: watched,
        };
        tokio::spawn(conversation.run(theirs));
        let socket = WebSocketStream::from_raw_socket(ours, Role::Client, None).await;
        Self { socket, opened: Instant::now(), phase, all_done }
    }

    async fn call(&mut self) {
        self.socket.send(Message::text(CALL)).await.unwrap();
    }

    /// The next message that is no ping.
    async fn next(&mut self) -> Message {
        loop {
            match self.socket.next().await.unwrap().unwrap() {
                Message::Ping(_) => {}
                message => return message,
            }
        }
    }

    /// The code of the goodbye that comes while a message is being sent.
    async fn meantime(&mut self, message: Message) -> CloseCode {
        let (mut sink, mut stream) = (&mut self.socket).split();
        let sending = sink.send(message);
        let reading = async {
            loop {
                match stream.next().await.unwrap().unwrap() {
                    Message::Close(Some(frame)) => return frame.code,
                    Message::Ping(_) => {}
                    other => panic!("{other:?}"),
                }
            }
        };
        tokio::pin!(reading);
        tokio::select! {
            code = &mut reading => code,
            _ = sending => reading.await,
        }
    }

    async fn answered(&mut self) {
        assert_eq!(self.next().await, Message::text("answered"));
    }

    /// The code of the goodbye, and the second it came in.
    async fn closed(&mut self) -> (CloseCode, u64) {
        let Message::Close(Some(frame)) = self.next().await else { panic!("an answer") };
        (frame.code, self.opened.elapsed().as_secs())
    }
}

fn new_token() -> Age {
    Age::of(NOW as f64, NOW)
}

#[tokio::test(start_paused = true)]
async fn a_socket_whose_token_ages_is_closed_in_a_quiet_moment() {
    let mut peer = Peer::new(Answering::default(), new_token()).await;
    peer.call().await;
    peer.answered().await;
    assert_eq!(peer.closed().await, (CloseCode::Away, 31));
}

#[tokio::test(start_paused = true)]
async fn calls_that_follow_each_other_are_answered_first() {
    let mut peer = Peer::new(Answering::default(), new_token()).await;
    advance(Duration::from_secs(30)).await;
    for _ in 0..10 {
        sleep(LULL - Duration::from_millis(1)).await;
        peer.call().await;
        peer.answered().await;
    }
    assert_eq!(peer.closed().await, (CloseCode::Away, 40));
}

#[tokio::test(start_paused = true)]
async fn with_an_old_token_no_call_is_begun_and_those_under_way_are_answered() {
    let go = Arc::new(Semaphore::new(0));
    let mut peer = Peer::new(Answering(Some(Arc::clone(&go))), new_token()).await;
    peer.call().await;
    sleep(Duration::from_secs(51)).await;
    peer.call().await;
    sleep(Duration::from_secs(20)).await;
    // For both, were both begun.
    go.add_permits(2);
    peer.answered().await;
    assert_eq!(peer.closed().await, (CloseCode::Away, 71));
}

#[tokio::test(start_paused = true)]
async fn a_socket_whose_token_does_not_age_stays() {
    let mut peer = Peer::new(Answering::default(), Age::NONE).await;
    for _ in 0..10 {
        // It has pings to answer.
        let waited = timeout(Duration::from_secs(90), peer.next()).await;
        assert!(waited.is_err(), "{waited:?}");
        peer.call().await;
        peer.answered().await;
    }
}

#[tokio::test(start_paused = true)]
async fn pings_and_their_answers_keep_an_idle_socket() {
    let mut peer = Peer::new(Answering::default(), Age::NONE).await;
    let waited = timeout(10 * SILENCE, peer.next()).await;
    assert!(waited.is_err(), "{waited:?}");
    peer.call().await;
    peer.answered().await;
    // It reads no ping any more.
    let read = peer.socket.get_mut();
    sleep(2 * SILENCE).await;
    assert!(read.write_all(b"x").await.is_err(), "it is still open");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_slowly_is_no_silence() {
    let mut peer = Peer::new(Answering::default(), Age::NONE).await;
    // A text of less than 126 bytes, masked with nothing.
    let length = u8::try_from(CALL.len()).unwrap();
    let frame = [&[0x81, 0x80 | length, 0, 0, 0, 0], CALL.as_bytes()].concat();
    for piece in frame.chunks(10) {
        peer.socket.get_mut().write_all(piece).await.unwrap();
        sleep(SILENCE - Duration::from_secs(1)).await;
    }
    peer.answered().await;
}

/// Sends more calls than are taken on at once; the last of them waits in the wire.
async fn full(go: &Arc<Semaphore>) -> Peer {
    let mut peer = Peer::new(Answering(Some(Arc::clone(go))), Age::NONE).await;
    for _ in 0..CALLS_AT_ONCE + 1 {
        peer.call().await;
    }
    sleep(Duration::from_secs(1)).await;
    peer
}

#[tokio::test(start_paused = true)]
async fn with_all_calls_under_way_pings_are_answered() {
    let go = Arc::new(Semaphore::new(0));
    let mut peer = full(&go).await;
    peer.socket.send(Message::Ping("there?".into())).await.unwrap();
    assert_eq!(peer.next().await, Message::Pong("there?".into()));
    go.add_permits(CALLS_AT_ONCE as usize + 1);
    for _ in 0..CALLS_AT_ONCE + 1 {
        peer.answered().await;
    }
}

#[tokio::test(start_paused = true)]
async fn with_all_calls_under_way_a_stop_begins_no_further_one() {
    let go = Arc::new(Semaphore::new(0));
    let mut peer = full(&go).await;
    peer.phase.send_replace(Phase::Closing);
    sleep(Duration::from_secs(1)).await;
    go.add_permits(CALLS_AT_ONCE as usize + 1);
    for _ in 0..CALLS_AT_ONCE {
        peer.answered().await;
    }
    assert_eq!(peer.closed().await.0, CloseCode::Away);
}

#[tokio::test(start_paused = true)]
async fn a_long_message_has_its_room_before_it_is_read() {
    let budget = budget();
    let peer = || Peer::within(Arc::clone(&budget), Answering::default(), Age::NONE);
    let long = || Message::text(format!("{CALL}{}", " ".repeat(LIMIT - CALL.len())));
    let mut first = peer().await;
    first.socket.send(long()).await.unwrap();
    first.answered().await;

    let mut others = budget.body();
    others.hold(LIMIT / 2).await.unwrap();
    let mut second = peer().await;
    let (ended, _) = tokio::join!(second.meantime(long()), sleep(Duration::from_secs(1)));
    assert_eq!(ended, CloseCode::Again);
    drop(others);
    first.socket.send(long()).await.unwrap();
    first.answered().await;
}

#[tokio::test(start_paused = true)]
async fn frames_of_any_size_come_through_whole() {
    let mut peer = Peer::new(Answering::default(), Age::NONE).await;
    for length in [1, 125, 126, 65_535, 65_536, 200_000, 1 << 20, LIMIT] {
        let space = " ".repeat(length.saturating_sub(CALL.len()));
        peer.socket.send(Message::text(format!("{CALL}{space}"))).await.unwrap();
        peer.answered().await;
        peer.socket.send(Message::Ping("between".into())).await.unwrap();
        assert_eq!(peer.next().await, Message::Pong("between".into()));
    }
}

/// A process that ends with the last call would take the goodbye with it.
#[tokio::test(start_paused = true)]
async fn a_stop_is_not_over_before_the_goodbye_is() {
    let mut peer = Peer::new(Answering::default(), Age::NONE).await;
    peer.phase.send_replace(Phase::Closing);
    let _: Option<Infallible> = peer.all_done.recv().await;
    assert_eq!(
        peer.opened.elapsed().as_secs(),
        PATIENCE.as_secs(),
        "it waits for the answer to it"
    );
    assert_eq!(peer.closed().await.0, CloseCode::Away);
}

#[tokio::test(start_paused = true)]
async fn calls_that_are_never_answered_keep_no_command_out() {
    let budget = Arc::new(Budget::new(Bounds { calls: 1, ..Bounds::new(LIMIT) }, LIMIT));
    let never = Answering(Some(Arc::new(Semaphore::new(0))));
    let mut peer = Peer::within(budget, never, Age::NONE).await;
    peer.call().await;
    peer.call().await;
    let busy = peer.next().await;
    assert!(busy.to_text().unwrap().contains("--max-calls"), "{busy}");
    peer.socket.send(Message::text(COMMAND)).await.unwrap();
    peer.answered().await;
}
