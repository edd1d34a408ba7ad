//! Connections that the EL closes at the moment in which they are used again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use engine_ssz_proxy::el::{
    Answer, Caller, El, ElError, ErrorKind, Lane, Phase, Repeat, Resend, StreamedBody,
    TransportChoice,
};
use http::Request;
use http_body_util::{BodyExt, Full};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;

use crate::peer::{CAPABILITIES, config, open, patiently, until};

const LANES: [Lane; 4] = [Lane::Command, Lane::Build, Lane::History, Lane::Relay];

/// How an EL closes a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Close {
    Fin,
    Rst,
}

/// An EL over HTTP/1.1 that answers one request on each connection and closes it once the head of
/// the next one is in, before any answer.
struct Fickle {
    el: El,
    log: Arc<Log>,
}

#[derive(Default)]
struct Log {
    /// Requests answered.
    answered: AtomicUsize,
    /// Requests met with a close.
    cut: AtomicUsize,
}

impl Fickle {
    /// Keeps the first `together` answers back until as many requests are in.
    async fn start(close: Close, together: usize) -> Self {
        Self::answering(close, together, usize::MAX).await
    }

    /// Answers so many connections; what comes after is closed at its first request.
    async fn answering(close: Close, together: usize, connections: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Log::default());
        tokio::spawn(accept(listener, close, together, connections, Arc::clone(&log)));
        let el = El::new(config(format!("http://{address}").parse().unwrap()));
        Self { el, log }
    }

    fn answered(&self) -> usize {
        self.log.answered.load(Ordering::SeqCst)
    }

    fn cut(&self) -> usize {
        self.log.cut.load(Ordering::SeqCst)
    }

    async fn ask(&self, lane: Lane, repeat: Repeat) -> Result<Answer, ElError> {
        patiently(self.el.relay(lane, &Caller::default(), Bytes::from_static(b"{}"), repeat)).await
    }
}

async fn accept(
    listener: TcpListener,
    close: Close,
    together: usize,
    connections: usize,
    log: Arc<Log>,
) {
    let barrier = Arc::new(Barrier::new(together));
    let mut nth = 0;
    while let Ok((stream, _)) = listener.accept().await {
        let barrier = (nth < together).then(|| Arc::clone(&barrier));
        let answers = nth < connections;
        tokio::spawn(serve(stream, close, barrier, answers, Arc::clone(&log)));
        nth += 1;
    }
}

async fn serve(
    mut stream: TcpStream,
    close: Close,
    barrier: Option<Arc<Barrier>>,
    answers: bool,
    log: Arc<Log>,
) {
    if answers {
        let Some(()) = request(&mut stream).await else { return };
        if let Some(barrier) = barrier {
            barrier.wait().await;
        }
        log.answered.fetch_add(1, Ordering::SeqCst);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await.unwrap();
    }
    let Some(()) = request(&mut stream).await else { return };
    log.cut.fetch_add(1, Ordering::SeqCst);
    if close == Close::Rst {
        stream.set_zero_linger().unwrap();
    }
}

/// Reads a request to its end; `None` if the connection ends before.
async fn request(stream: &mut TcpStream) -> Option<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n{}") {
        if stream.read_buf(&mut request).await.ok()? == 0 {
            return None;
        }
    }
    Some(())
}

#[tokio::test]
async fn h1_01_a_harmless_request_on_a_connection_just_closed_goes_over_a_new_one() {
    for close in [Close::Fin, Close::Rst] {
        for lane in LANES {
            let fickle = Fickle::start(close, 1).await;
            // A pool may not have a connection back yet when the next request comes.
            while fickle.cut() < 3 {
                fickle.ask(lane, Repeat::Harmless).await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn h1_01_a_harmful_request_on_a_connection_just_closed_goes_only_once() {
    for lane in LANES {
        let fickle = Fickle::start(Close::Fin, 1).await;
        let error = loop {
            let so_far = fickle.answered();
            match fickle.ask(lane, Repeat::OnlyIfNeverSent).await {
                Ok(_) => {}
                Err(error) => {
                    assert_eq!((fickle.answered(), fickle.cut()), (so_far, 1), "{lane:?}");
                    break error;
                }
            }
        };
        assert_eq!(error.kind(), &ErrorKind::Broken { phase: Phase::BeforeAnswer });
        assert_eq!(error.resend(), Resend::Stale);
    }
}

#[tokio::test]
async fn h1_01_the_next_idle_connection_is_not_tried() {
    const IDLE: usize = 5;
    for lane in [Lane::Build, Lane::Relay] {
        let fickle = Arc::new(Fickle::start(Close::Fin, IDLE).await);
        let asked: Vec<_> = (0..IDLE)
            .map(|_| {
                let fickle = Arc::clone(&fickle);
                tokio::spawn(async move { fickle.ask(lane, Repeat::Harmless).await.map(drop) })
            })
            .collect();
        for asked in asked {
            asked.await.unwrap().unwrap();
        }
        let mut most = 0;
        while fickle.cut() < IDLE {
            let so_far = fickle.cut();
            fickle.ask(lane, Repeat::Harmless).await.unwrap();
            most = most.max(fickle.cut() - so_far);
        }
        assert_eq!(most, 1, "{lane:?}: one request met more than one dead connection");
    }
}

#[tokio::test]
async fn h1_01_a_request_goes_twice_at_most() {
    for lane in LANES {
        let fickle = Fickle::answering(Close::Fin, 1, 1).await;
        fickle.ask(lane, Repeat::Harmless).await.unwrap();
        // Whether the pool has the connection back or not: one or two closes, then an error.
        let error = fickle.ask(lane, Repeat::Harmless).await.unwrap_err();
        assert_eq!(error.resend(), Resend::MaybeProcessed, "{lane:?}");
        assert!(fickle.cut() <= 2, "{lane:?}: {}", fickle.cut());
        assert_eq!(fickle.answered(), 1);
    }
}

#[tokio::test]
async fn h1_01_a_request_that_may_have_arrived_stays_so_when_no_new_connection_comes_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        drop(listener);
        serve(stream, Close::Fin, None, true, Arc::default()).await;
    });
    let el = El::new(config(format!("http://{address}").parse().unwrap()));
    let caller = Caller::default();
    let ask = || {
        let body = Bytes::from_static(b"{}");
        el.relay(Lane::Command, &caller, body, Repeat::Harmless)
    };
    ask().await.unwrap();
    let error = ask().await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Unreachable);
    assert_eq!(error.resend(), Resend::MaybeProcessed);
}

/// Offers REST over h2c; ends a connection without a word at its second request that is no probe.
async fn fickle_h2c() -> (El, Arc<Log>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = config(format!("http://{}", listener.local_addr().unwrap()).parse().unwrap());
    config.transport = TransportChoice::H2c;
    let log = Arc::new(Log::default());
    let seen = Arc::clone(&log);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let log = Arc::clone(&seen);
            tokio::spawn(async move {
                let Ok(mut server) = h2::server::handshake(stream).await else { return };
                let mut used = false;
                while let Some(Ok((request, mut respond))) = server.accept().await {
                    if request.uri().path() != "/engine/v1/capabilities" {
                        if used {
                            log.cut.fetch_add(1, Ordering::SeqCst);
                            return;
                        }
                        used = true;
                        log.answered.fetch_add(1, Ordering::SeqCst);
                    }
                    let mut body = respond.send_response(http::Response::new(()), false).unwrap();
                    body.send_data(Bytes::from_static(CAPABILITIES.as_bytes()), true).unwrap();
                }
            });
        }
    });
    let el = open(config);
    until(&el, |surface| surface.rest.is_some()).await;
    (el, log)
}

#[tokio::test]
async fn h1_01_the_same_holds_over_h2c() {
    let post = || Request::post("/payloads").body(Bytes::from_static(b"ssz")).unwrap();
    for lane in LANES {
        let (el, log) = fickle_h2c().await;
        let epoch = el.surface().epoch;
        while log.cut.load(Ordering::SeqCst) < 2 {
            patiently(el.send(lane, &Caller::default(), post(), Repeat::Harmless)).await.unwrap();
        }
        assert_eq!(el.surface().epoch, epoch, "{lane:?}: nothing is wrong with the EL");

        let (el, log) = fickle_h2c().await;
        let caller = Caller::default();
        let send = || el.send(lane, &caller, post(), Repeat::OnlyIfNeverSent);
        patiently(send()).await.unwrap();
        let error = patiently(send()).await.unwrap_err();
        assert_eq!(error.resend(), Resend::Stale, "{lane:?}");
        assert_eq!(log.answered.load(Ordering::SeqCst), 1);
    }
}

/// Answers each connection's first request and closes the connection without a word when it is told
/// to. Tells of each close.
fn closing_idle_ones() -> (SocketAddr, std::sync::mpsc::Sender<()>, std::sync::mpsc::Receiver<()>) {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, closed) = std::sync::mpsc::channel();
    let (close, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\nbody") {
                let mut piece = [0; 1024];
                let length = stream.read(&mut piece).unwrap();
                assert!(length > 0, "{}", asked.escape_ascii());
                asked.extend_from_slice(&piece[..length]);
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
            if told.recv().is_err() {
                break;
            }
            drop(stream);
            if tell.send(()).is_err() {
                break;
            }
        }
    });
    (address, close, closed)
}

/// A body that cannot be had twice still goes over another connection if nothing of it was written.
#[tokio::test]
async fn a_passed_request_survives_the_close_of_an_idle_connection() {
    for lane in LANES {
        let (address, close, closed) = closing_idle_ones();
        let el = El::new(config(format!("http://{address}").parse().unwrap()));
        for nth in 0..20 {
            let body = Full::new(Bytes::from_static(b"body")).map_err(|never| match never {});
            let request = Request::post("/engine/v1/x").body(StreamedBody::new(body)).unwrap();
            let passed =
                patiently(el.pass(lane, &Caller::default(), request, el.relay_deadline())).await;
            let body = passed.unwrap_or_else(|error| panic!("{lane:?} {nth}: {error}")).into_body();
            assert_eq!(patiently(body.collect()).await.unwrap().to_bytes(), "ok");
            // By then the connection is idle.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            // The whole thread waits, and then the close is there to be seen and this comes first.
            close.send(()).unwrap();
            closed.recv().unwrap();
            tokio::task::yield_now().await;
        }
    }
}
