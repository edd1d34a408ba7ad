use super::*;
use crate::cl::{Bounds, Config};
use http::HeaderValue;
use tokio::io::{DuplexStream, duplex};
use tokio::time::{Instant, advance};

const NOW: u64 = 1_700_000_000;
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;

/// Answers a call when it is let go, or at once.
#[derive(Clone, Default)]
struct Answering(Option<Arc<Semaphore>>);

impl Handler for Answering {
    type Place = ();

    async fn call(&self, _: Call) -> Outcome {
        if let Some(go) = &self.0 {
            go.acquire().await.unwrap().forget();
        }
        Outcome::Json(Reply::raw(Bytes::from_static(b"answered")))
    }
}

/// The CL's end of a socket, and what the server's end hangs on.
struct Peer {
    socket: WebSocketStream<DuplexStream>,
    opened: Instant,
    _phase: watch::Sender<Phase>,
    _all_done: mpsc::Receiver<Infallible>,
}

impl Peer {
    /// Over a wire that holds as much as one message.
    async fn new(handler: Answering, age: Age) -> Self {
        let (ours, theirs) = duplex(64 * 1024);
        let (phase, watched) = watch::channel(Phase::Open);
        let (in_flight, all_done) = mpsc::channel(1);
        let connection = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let Config { body_limit, head_timeout, .. } = Config::new(crate::cl::Auth::Forward);
        let caller = Caller {
            bearer: Some(HeaderValue::from_static("Bearer x")),
            traceparent: None,
            client_version: None,
        };
        let conversation = Conversation {
            handler,
            caller,
            age,
            limit: body_limit,
            silence: head_timeout,
            budget: Arc::new(Budget::new(Bounds::new(body_limit), body_limit)),
            _connection: Arc::new(connection),
            in_flight,
            phase: watched,
        };
        tokio::spawn(conversation.run(theirs));
        let socket = WebSocketStream::from_raw_socket(ours, Role::Client, None).await;
        Self { socket, opened: Instant::now(), _phase: phase, _all_done: all_done }
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
