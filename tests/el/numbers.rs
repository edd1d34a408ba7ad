//! The numbers of each lane, and how large it is.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine_ssz_proxy::el::{Caller, Config, El, Lane, LaneNumbers, Repeat, TransportChoice};
use http::Request;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::peer::{Peer, open, patiently, rest_el, until};

/// An EL that holds every request for `/held` until it is let go.
struct Holding {
    peer: Peer,
    el: El,
    gate: Arc<Semaphore>,
}

impl Holding {
    async fn start(change: impl FnOnce(&mut Config)) -> Self {
        let gate = Arc::new(Semaphore::new(0));
        let opened = Arc::clone(&gate);
        let peer = Peer::start(move |seen| {
            let gate = Arc::clone(&opened);
            async move {
                match seen.path.as_str() {
                    "/engine/v1/held" => gate.acquire().await.unwrap().forget(),
                    "/engine/v1/breaks" => {
                        seen.hang_up.notify_one();
                        std::future::pending().await
                    }
                    _ => {}
                }
                rest_el(seen).await
            }
        })
        .await;
        let mut config = peer.config();
        config.transport = TransportChoice::H2c;
        change(&mut config);
        let el = open(config);
        until(&el, |surface| surface.rest.is_some()).await;
        Self { peer, el, gate }
    }

    fn ask(&self, lane: Lane, path: &'static str) -> JoinHandle<bool> {
        let el = self.el.clone();
        tokio::spawn(async move {
            let request = Request::post(path).body(Bytes::new()).unwrap();
            let once = Repeat::OnlyIfNeverSent;
            patiently(el.send(lane, &Caller::default(), request, once)).await.is_ok()
        })
    }

    async fn until_held(&self, count: usize) {
        self.peer.until_seen("/engine/v1/held", count).await;
    }

    async fn until_waiting(&self, lane: Lane, count: usize) {
        patiently(async {
            while self.el.lane(lane).waiting != count {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

fn number(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap()
}

#[tokio::test]
async fn a_lane_counts_who_waits_what_is_in_flight_and_for_how_long() {
    let scene = Holding::start(|config| config.lanes.history_in_flight = number(2)).await;
    assert_eq!(scene.el.lane(Lane::History), LaneNumbers::default());
    let reads: Vec<_> = (0..3).map(|_| scene.ask(Lane::History, "/held")).collect();
    scene.until_held(2).await;
    scene.until_waiting(Lane::History, 1).await;

    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(5)).await;
    let numbers = scene.el.lane(Lane::History);
    tokio::time::resume();
    assert_eq!((numbers.waiting, numbers.in_flight), (1, 2));
    assert_eq!((numbers.ended, numbers.failed), (0, 0));
    assert!((5..10).contains(&numbers.oldest.as_secs()), "{numbers:?}");
    for other in [Lane::Command, Lane::Build, Lane::Relay] {
        assert_eq!(scene.el.lane(other), LaneNumbers::default(), "{other:?}");
    }

    scene.gate.add_permits(3);
    for read in reads {
        assert!(read.await.unwrap());
    }
    let numbers = scene.el.lane(Lane::History);
    assert_eq!((numbers.waiting, numbers.in_flight, numbers.ended, numbers.failed), (0, 0, 3, 0));
    assert_eq!(numbers.oldest, Duration::ZERO);
    // One waited for five seconds; two were in flight for as long.
    assert!((5..10).contains(&numbers.queued.as_secs()), "{numbers:?}");
    assert!((10..20).contains(&numbers.in_exchange.as_secs()), "{numbers:?}");
    assert!(!scene.ask(Lane::History, "/breaks").await.unwrap());
    let numbers = scene.el.lane(Lane::History);
    assert_eq!((numbers.in_flight, numbers.ended, numbers.failed), (0, 4, 1));
}

#[tokio::test]
async fn commands_wait_in_their_line() {
    let scene = Holding::start(|_| {}).await;
    let first = scene.el.command_turn().await.unwrap();
    // A place that nobody waits for is no wait: any call may take one.
    let place = scene.el.command_turn();
    assert_eq!(scene.el.lane(Lane::Command).waiting, 0);
    let second = tokio::spawn(place);
    scene.until_waiting(Lane::Command, 1).await;
    let held = scene.ask(Lane::Command, "/held");
    scene.until_held(1).await;
    assert_eq!(scene.el.lane(Lane::Command).in_flight, 1);
    scene.gate.add_permits(1);
    assert!(held.await.unwrap());
    drop(first);
    drop(second.await.unwrap().unwrap());
    let numbers = scene.el.lane(Lane::Command);
    assert_eq!((numbers.waiting, numbers.in_flight, numbers.ended), (0, 0, 1));
}

#[tokio::test]
async fn the_lanes_are_as_large_as_they_are_set() {
    let scene = Holding::start(|config| {
        config.lanes.build_connections = number(3);
        config.lanes.history_in_flight = number(1);
        config.lanes.relay_connections = number(4);
    })
    .await;
    for (lane, in_flight, waiting) in
        [(Lane::Build, 6, 0), (Lane::History, 1, 5), (Lane::Relay, 4, 2)]
    {
        let before = scene.peer.seen_on("/engine/v1/held").len();
        let asked: Vec<_> = (0..6).map(|_| scene.ask(lane, "/held")).collect();
        scene.until_held(before + in_flight).await;
        scene.until_waiting(lane, waiting).await;
        assert_eq!(scene.el.lane(lane).in_flight, in_flight, "{lane:?}");
        let seen = scene.peer.seen_on("/engine/v1/held").split_off(before);
        let connections: std::collections::HashSet<_> =
            seen.iter().map(|seen| seen.connection).collect();
        assert_eq!(connections.len(), if lane == Lane::Build { 3 } else { 1 }, "{lane:?}");
        scene.gate.add_permits(6);
        for asked in asked {
            assert!(asked.await.unwrap());
        }
    }
    assert_eq!(scene.el.lanes().map(|(lane, _)| lane), Lane::ALL);
}
