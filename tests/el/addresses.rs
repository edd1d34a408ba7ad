//! Names, addresses, and peers that have gone without a word.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use engine_ssz_proxy::el::{
    Caller, Config, El, ErrorKind, Lane, Repeat, Resolver, TransportChoice,
};
use http::Request;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;

use crate::peer::{CAPABILITIES, Http1, Peer, Preface, config, open, patiently, rest_el, until};

const LANES: [Lane; 4] = [Lane::Command, Lane::Build, Lane::History, Lane::Relay];

/// An address that takes no connection and refuses none: its queue is full.
async fn black_hole() -> (SocketAddr, TcpListener, Vec<JoinHandle<()>>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queue = Vec::new();
    // A connection that does not come up shows that the queue is full.
    loop {
        let connecting = TcpStream::connect(address);
        match tokio::time::timeout(Duration::from_millis(200), connecting).await {
            Ok(stream) => queue.push(tokio::spawn(async move {
                let _open = stream.unwrap();
                std::future::pending().await
            })),
            Err(_) => return (address, listener, queue),
        }
    }
}

/// A configuration for an EL by name, whose addresses can be changed.
fn named(addresses: Vec<SocketAddr>) -> (Config, Arc<Mutex<Vec<SocketAddr>>>, Arc<AtomicUsize>) {
    let addresses = Arc::new(Mutex::new(addresses));
    let asked = Arc::new(AtomicUsize::new(0));
    let mut config = config("http://el.test:8551".parse().unwrap());
    let (known, count) = (Arc::clone(&addresses), Arc::clone(&asked));
    config.resolver = Resolver::from_fn(move |host, port| {
        assert_eq!((host, port), ("el.test", 8551));
        count.fetch_add(1, Ordering::SeqCst);
        match known.lock().unwrap().clone() {
            none if none.is_empty() => Err(io::ErrorKind::NotFound.into()),
            known => Ok(known),
        }
    });
    (config, addresses, asked)
}

async fn relay(el: &El, lane: Lane) -> Result<Bytes, ErrorKind> {
    let body = Bytes::from_static(b"{}");
    patiently(el.relay(lane, &Caller::default(), body, Repeat::Harmless))
        .await
        .map(|answer| answer.into_body())
        .map_err(|error| error.kind().clone())
}

#[tokio::test]
async fn net_02_the_next_address_is_tried_while_the_first_ones_swallow_packets() {
    let (hole, _listener, _queue) = black_hole().await;
    let peer = Peer::start(rest_el).await;
    let (mut config, ..) = named(vec![hole, hole, peer.address]);
    // One after the other they would have no time left for the last.
    config.connect_timeout = Duration::from_secs(20);
    let el = open(config);
    for lane in LANES {
        relay(&el, lane).await.unwrap();
    }
    until(&el, |surface| surface.rest.is_some()).await;
    let seen = &peer.seen_on("/")[0];
    assert_eq!(seen.header("host"), Some("el.test:8551"));
}

#[tokio::test]
async fn net_01_a_name_is_resolved_for_each_connection() {
    let old = Peer::start(rest_el).await;
    let (config, addresses, asked) = named(vec![old.address]);
    let el = open(config);
    let before = until(&el, |surface| surface.rest.is_some()).await;
    relay(&el, Lane::Command).await.unwrap();
    let so_far = asked.load(Ordering::SeqCst);
    assert!(so_far >= 3, "{so_far}: two questions and a call");

    old.stop().await;
    until(&el, |surface| surface.rest.is_none()).await;
    let new = Peer::start(rest_el).await;
    *addresses.lock().unwrap() = vec![new.address];
    relay(&el, Lane::Command).await.unwrap();
    let after = until(&el, |surface| surface.rest.is_some()).await;
    assert!(after.epoch > before.epoch);
    assert!(asked.load(Ordering::SeqCst) > so_far);

    // Nobody has that name any more.
    addresses.lock().unwrap().clear();
    new.stop().await;
    until(&el, |surface| surface.rest.is_none()).await;
    assert_eq!(relay(&el, Lane::Command).await, Err(ErrorKind::Unreachable));
}

async fn until_true(told: &mut tokio::sync::watch::Receiver<bool>) {
    let _ = told.wait_for(|told| *told).await;
}

/// An EL over h2c that can be struck dumb: its connections stay, and nothing comes over them.
async fn mortal() -> (El, tokio::sync::watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = config(format!("http://{}", listener.local_addr().unwrap()).parse().unwrap());
    config.transport = TransportChoice::H2c;
    let (kill, dead) = tokio::sync::watch::channel(false);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let mut dead = dead.clone();
            tokio::spawn(async move {
                let is_dead = *dead.borrow();
                if is_dead {
                    let _open = stream;
                    return std::future::pending().await;
                }
                let mut server = h2::server::handshake(stream).await.unwrap();
                loop {
                    tokio::select! {
                        biased;
                        () = until_true(&mut dead) => std::future::pending().await,
                        accepted = server.accept() => {
                            let Some(Ok((_, mut respond))) = accepted else { return };
                            let head = http::Response::new(());
                            let mut body = respond.send_response(head, false).unwrap();
                            let document = Bytes::from_static(CAPABILITIES.as_bytes());
                            body.send_data(document, true).unwrap();
                        }
                    }
                }
            });
        }
    });
    let el = open(config);
    until(&el, |surface| surface.rest.is_some()).await;
    (el, kill)
}

#[tokio::test]
async fn h2_10_a_peer_that_is_gone_without_a_word_is_noticed_in_seconds_though_idle() {
    let (el, kill) = mortal().await;
    kill.send(true).unwrap();
    tokio::time::pause();
    let start = tokio::time::Instant::now();
    let mut changes = el.surface_changed();
    changes.wait_for(|surface| surface.rest.is_none()).await.unwrap();
    let noticed = start.elapsed();
    tokio::time::resume();
    // A ping every 2 s, and 5 s for its answer.
    assert!(noticed < Duration::from_secs(8), "{noticed:?}: sooner than a CL leaves");
}

#[tokio::test]
async fn h2_10_a_request_to_such_a_peer_ends_with_its_connection() {
    for lane in LANES {
        let (el, kill) = mortal().await;
        let ask = || {
            let request = Request::post("/x").body(Bytes::new()).unwrap();
            let el = el.clone();
            async move { el.send(lane, &Caller::default(), request, Repeat::Harmless).await }
        };
        ask().await.unwrap();
        kill.send(true).unwrap();
        tokio::time::pause();
        let start = tokio::time::Instant::now();
        let ended = ask().await;
        let took = start.elapsed();
        tokio::time::resume();
        assert!(ended.is_err(), "{lane:?}");
        // The first copy dies with its connection, the second with the next: both within the deadline
        // of a command, and the first before a CL leaves.
        assert!(took <= Duration::from_secs(16), "{lane:?}: {took:?}");
    }
}

#[tokio::test]
async fn an_idle_http1_connection_is_left_before_the_el_closes_it() {
    let peer = Peer::speaking(Preface::Answered400, Http1::Served, rest_el).await;
    let el = El::new(peer.config());
    for (idle, connections) in [(0, 1), (14, 1), (16, 2)] {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(idle)).await;
        tokio::time::resume();
        relay(&el, Lane::Command).await.unwrap();
        let used: std::collections::HashSet<_> =
            peer.seen_on("/").iter().map(|seen| seen.connection).collect();
        assert_eq!(used.len(), connections, "after {idle} s");
    }
}
