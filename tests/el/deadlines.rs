//! What becomes of an exchange that the EL does not answer in time.

use std::future::{pending, poll_fn};
use std::time::Duration;

use bytes::Bytes;
use engine_ssz_proxy::el::{
    Caller, El, ElError, ErrorKind, Lane, Next, Origin, Repeat, Terms, TransportChoice,
};
use http::Request;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::peer::{CAPABILITIES, Peer, config, open, patiently, rest_el, until};

const LANES: [Lane; 4] = [Lane::Command, Lane::Build, Lane::History, Lane::Relay];

/// What an EL over h2c saw.
#[derive(Debug, PartialEq, Eq)]
enum Sight {
    /// A request, and over which connection, counted from 0.
    Request(String, usize),
    /// The end of a stream that it had not answered.
    Reset(Option<h2::Reason>),
}

/// Offers REST over h2c and never answers `/slow`.
async fn slow_h2c() -> (El, mpsc::UnboundedReceiver<Sight>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = config(format!("http://{}", listener.local_addr().unwrap()).parse().unwrap());
    config.transport = TransportChoice::H2c;
    let (tell, sights) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for connection in 0.. {
            let (stream, _) = listener.accept().await.unwrap();
            let tell = tell.clone();
            tokio::spawn(async move {
                let Ok(mut server) = h2::server::handshake(stream).await else { return };
                while let Some(Ok((request, mut respond))) = server.accept().await {
                    let path = request.uri().path().to_owned();
                    if path != "/engine/v1/capabilities" {
                        let _ = tell.send(Sight::Request(path.clone(), connection));
                    }
                    if path == "/engine/v1/slow" {
                        let tell = tell.clone();
                        tokio::spawn(async move {
                            let reset = poll_fn(|cx| respond.poll_reset(cx)).await;
                            let _ = tell.send(Sight::Reset(reset.ok()));
                        });
                        continue;
                    }
                    let mut body = respond.send_response(http::Response::new(()), false).unwrap();
                    body.send_data(Bytes::from_static(CAPABILITIES.as_bytes()), true).unwrap();
                }
            });
        }
    });
    let el = open(config);
    until(&el, |surface| surface.rest.is_some()).await;
    (el, sights)
}

fn post(path: &str) -> Request<Bytes> {
    Request::post(path).body(Bytes::from_static(b"ssz")).unwrap()
}

/// Sends a request that is never answered, and lets its time pass once `arrived` is over.
async fn outlive(el: &El, lane: Lane, arrived: impl Future<Output = ()>) -> ElError {
    let asked = tokio::spawn({
        let el = el.clone();
        async move {
            let terms = Terms::from(Repeat::Harmless).within(el.deadline(Duration::from_secs(8)));
            el.send(lane, &Caller::default(), post("/slow"), terms).await
        }
    });
    patiently(arrived).await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(12)).await;
    assert!(!asked.is_finished(), "{lane:?}: given up before the CL leaves");
    tokio::time::advance(Duration::from_secs(1)).await;
    tokio::time::resume();
    patiently(asked).await.unwrap().unwrap_err()
}

fn assert_timed_out(error: &ElError) {
    assert_eq!(error.kind(), &ErrorKind::TimedOut { limit: Duration::from_secs(13) });
    // Not even what is harmless: the EL is at it still.
    assert_eq!((error.next(), error.origin()), (Next::GiveUp, Origin::El));
    let text = error.to_string();
    assert!(text.contains("has not answered within 13 s"), "{text}");
    assert!(!text.contains('\n'), "{text}");
}

#[tokio::test]
async fn over_h2c_the_stream_is_reset_and_the_connection_is_not_used_again() {
    for lane in LANES {
        let (el, mut sights) = slow_h2c().await;
        let mut first = 0;
        let error = outlive(&el, lane, async {
            match sights.recv().await {
                Some(Sight::Request(_, connection)) => first = connection,
                other => panic!("{other:?}"),
            }
        })
        .await;
        assert_timed_out(&error);
        let reset = patiently(sights.recv()).await.unwrap();
        assert_eq!(reset, Sight::Reset(Some(h2::Reason::CANCEL)), "{lane:?}");

        patiently(el.send(lane, &Caller::default(), post("/next"), Repeat::Harmless))
            .await
            .unwrap();
        let next = patiently(sights.recv()).await.unwrap();
        assert_ne!(next, Sight::Request("/engine/v1/next".to_owned(), first), "{lane:?}");
        assert!(el.surface().rest.is_some(), "{lane:?}: a slow EL is no other EL");
    }
}

#[tokio::test]
async fn over_http1_the_connection_is_closed() {
    for lane in LANES {
        let (closed, mut ends) = mpsc::unbounded_channel();
        let peer = Peer::start(move |seen| {
            let closed = closed.clone();
            async move {
                if seen.path == "/engine/v1/slow" {
                    let _until_dropped = OnDrop(closed);
                    return pending().await;
                }
                rest_el(seen).await
            }
        })
        .await;
        let mut config = peer.config();
        config.transport = TransportChoice::Http1;
        let el = open(config);
        until(&el, |surface| surface.rest.is_some()).await;
        let error = outlive(&el, lane, peer.until_seen("/engine/v1/slow", 1)).await;
        assert_timed_out(&error);
        patiently(ends.recv()).await.unwrap();
        patiently(el.send(lane, &Caller::default(), post("/next"), Repeat::Harmless))
            .await
            .unwrap();
        let of = |path: &str| peer.seen_on(path)[0].connection;
        assert_ne!(of("/engine/v1/slow"), of("/engine/v1/next"), "{lane:?}");
    }
}

/// Tells that the server has let go of a request.
struct OnDrop(mpsc::UnboundedSender<()>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test]
async fn a_call_without_a_timeout_in_the_specification_has_a_minute() {
    let peer = Peer::start(|_| pending()).await;
    let el = El::new(peer.config());
    let asked = tokio::spawn({
        let el = el.clone();
        async move {
            el.relay(Lane::Relay, &Caller::default(), Bytes::new(), Repeat::OnlyIfNeverSent).await
        }
    });
    peer.until_seen("/", 1).await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(59)).await;
    assert!(!asked.is_finished());
    tokio::time::advance(Duration::from_secs(1)).await;
    tokio::time::resume();
    let error = patiently(asked).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::TimedOut { limit: Duration::from_secs(60) });
}
