//! ELs that start, stop and change.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use bytes::Bytes;
use engine_ssz_proxy::el::{
    Caller, ErrorKind, Lane, Reach, Repeat, Resend, Transport, TransportChoice,
};
use http::Request;

use crate::peer::{
    CAPABILITIES, Http1, Peer, Preface, config, json_el, open, patiently, reply, rest_el, until,
};

#[tokio::test]
async fn life_03_an_el_that_is_not_there_yet_is_found_when_it_is() {
    // A port that was free a moment ago.
    let gone = Peer::start(rest_el).await;
    let (address, config) = (gone.address, gone.config());
    gone.stop().await;

    let el = open(config);
    let surface = until(&el, |surface| surface.reach == Reach::Down).await;
    assert!(surface.why.contains("cannot be reached"), "{}", surface.why);
    let error = el
        .relay(Lane::Relay, &Caller::default(), Bytes::new(), Repeat::Harmless)
        .await
        .unwrap_err();
    assert_eq!((error.kind(), error.resend()), (&ErrorKind::Unreachable, Resend::NeverSent));

    let peer = Peer::at(address, Preface::Served, Http1::Served, rest_el).await;
    let surface = until(&el, |surface| surface.rest.is_some()).await;
    assert_eq!((surface.reach, surface.epoch), (Reach::Up, 1));
    peer.stop().await;
}

async fn is_not_rest_absent(starting: u16) {
    let status = Arc::new(AtomicU16::new(starting));
    let current = Arc::clone(&status);
    let peer = Peer::start(move |_| {
        let status = current.load(Ordering::SeqCst);
        async move { reply(status, CAPABILITIES) }
    })
    .await;
    let el = open(peer.config());
    let surface = until(&el, |surface| surface.why.contains(&starting.to_string())).await;
    assert_eq!((surface.epoch, surface.reach), (0, Reach::Up));
    assert_eq!(surface.rest, None);

    status.store(200, Ordering::SeqCst);
    // Nobody has to wait for the pause to end: it is short here, and the test has no clock.
    until(&el, |surface| surface.rest.is_some()).await;
}

#[tokio::test]
async fn life_03_a_401_at_start_up_is_not_rest_absent() {
    is_not_rest_absent(401).await;
}

#[tokio::test]
async fn life_03_a_503_at_start_up_is_not_rest_absent() {
    is_not_rest_absent(503).await;
}

#[tokio::test]
async fn h1_11_a_403_is_not_rest_absent() {
    is_not_rest_absent(403).await;
}

async fn restart_without_rest(choice: TransportChoice) {
    let peer = Peer::start(rest_el).await;
    let mut config = peer.config();
    config.transport = choice;
    let el = open(config);
    until(&el, |surface| surface.rest.is_some()).await;
    let address = peer.address;
    peer.stop().await;
    until(&el, |surface| surface.rest.is_none()).await;

    let peer = Peer::at(address, Preface::Served, Http1::Served, json_el).await;
    let surface = until(&el, |surface| surface.epoch == 2).await;
    assert_eq!((surface.rest.as_ref(), surface.reach), (None, Reach::Up));
    let turn = el.command_turn().await.unwrap();
    let answer = el
        .relay(Lane::Command, &Caller::default(), Bytes::from_static(b"{}"), Repeat::Harmless)
        .await;
    assert_eq!(answer.unwrap().body(), "{}");
    drop(turn);
    peer.stop().await;
}

#[tokio::test]
async fn life_03_a_restart_without_rest_is_noticed_without_a_call_over_h2c() {
    restart_without_rest(TransportChoice::H2c).await;
}

#[tokio::test]
async fn life_03_a_restart_without_rest_is_noticed_without_a_call_over_http1() {
    restart_without_rest(TransportChoice::Http1).await;
}

#[tokio::test]
async fn life_04_a_restart_with_the_same_rest_is_another_epoch() {
    let peer = Peer::start(rest_el).await;
    let el = open(peer.config());
    let before = until(&el, |surface| surface.rest.is_some()).await;
    let address = peer.address;
    peer.stop().await;
    let _peer = Peer::at(address, Preface::Served, Http1::Served, rest_el).await;
    let after = until(&el, |surface| surface.epoch > before.epoch && surface.rest.is_some()).await;
    assert_eq!(after.rest, before.rest);
}

#[tokio::test]
async fn life_01_rest_that_comes_later_is_found_by_asking_now_and_then() {
    let status = Arc::new(AtomicU16::new(404));
    let current = Arc::clone(&status);
    let peer = Peer::start(move |_| {
        let status = current.load(Ordering::SeqCst);
        async move { reply(status, CAPABILITIES) }
    })
    .await;
    let mut config = peer.config();
    config.reprobe_interval = Duration::from_millis(5);
    let el = open(config);
    until(&el, |surface| surface.epoch == 1).await;
    // Asked again and found the same: still the same surface.
    peer.until_seen("/engine/v1/capabilities", 6).await;
    assert_eq!(el.surface().epoch, 1);
    status.store(200, Ordering::SeqCst);
    let surface = until(&el, |surface| surface.rest.is_some()).await;
    assert_eq!(surface.epoch, 2);
}

#[tokio::test]
async fn h2_04_a_peer_without_h2c_is_not_sent_the_preface_again() {
    let peer = Peer::speaking(Preface::Answered400, Http1::Served, json_el).await;
    let mut config = peer.config();
    config.reprobe_interval = Duration::from_millis(5);
    let _el = open(config);
    peer.until_seen("/engine/v1/capabilities", 6).await;
    // Connection 0 and 1 are the first round's; each later one carried a question.
    let seen = peer.seen();
    let last = seen.iter().map(|seen| seen.connection).max().unwrap();
    assert_eq!(last, seen.len());
}

#[tokio::test]
async fn rest_that_goes_away_is_noticed_by_asking_now_and_then() {
    let status = Arc::new(AtomicU16::new(200));
    let current = Arc::clone(&status);
    let peer = Peer::start(move |_| {
        let status = current.load(Ordering::SeqCst);
        async move { reply(status, CAPABILITIES) }
    })
    .await;
    let mut config = peer.config();
    config.reprobe_interval = Duration::from_millis(5);
    let el = open(config);
    until(&el, |surface| surface.rest.is_some()).await;
    // Busy or locked out for a moment: nothing has changed.
    for status_meanwhile in [503, 401] {
        status.store(status_meanwhile, Ordering::SeqCst);
        let so_far = peer.seen().len();
        peer.until_seen("/engine/v1/capabilities", so_far + 3).await;
        assert!(el.surface().rest.is_some());
    }
    status.store(404, Ordering::SeqCst);
    until(&el, |surface| surface.rest.is_none() && surface.epoch == 2).await;
}

#[tokio::test]
async fn a_lost_command_connection_does_not_end_the_surface_of_a_living_el() {
    for choice in [TransportChoice::H2c, TransportChoice::Http1] {
        let peer = Peer::start(|seen| async move {
            if seen.path == "/engine/v1/breaks" {
                seen.hang_up.notify_one();
                return std::future::pending().await;
            }
            rest_el(seen).await
        })
        .await;
        let mut config = peer.config();
        config.transport = choice;
        let el = open(config);
        let before = until(&el, |surface| surface.rest.is_some()).await;
        let request = Request::post("/breaks").body(Bytes::new()).unwrap();
        el.send(Lane::Command, &Caller::default(), request, Repeat::Harmless).await.unwrap_err();
        assert_eq!(el.surface().rest, None, "withdrawn while in doubt");
        let after = until(&el, |surface| surface.rest.is_some()).await;
        assert_eq!(after.epoch, before.epoch);
    }
}

#[tokio::test]
async fn life_02_an_answer_that_proves_a_dialect_can_put_the_surface_in_doubt() {
    let status = Arc::new(AtomicU16::new(200));
    let current = Arc::clone(&status);
    let peer = Peer::start(move |_| {
        let status = current.load(Ordering::SeqCst);
        async move { reply(status, CAPABILITIES) }
    })
    .await;
    let el = open(peer.config());
    let surface = until(&el, |surface| surface.rest.is_some()).await;
    el.doubt(surface.epoch + 1);
    assert!(el.surface().rest.is_some(), "doubt about another epoch");
    status.store(404, Ordering::SeqCst);
    el.doubt(surface.epoch);
    assert!(el.surface().rest.is_none());
    until(&el, |surface| surface.epoch == 2).await;
}

#[tokio::test]
async fn an_el_that_closes_after_each_answer_keeps_its_rest() {
    let peer = Peer::speaking(Preface::Answered400, Http1::Served, closing_el).await;
    let el = open(peer.config());
    let surface = until(&el, |surface| surface.rest.is_some()).await;
    assert_eq!(surface.rest.as_ref().unwrap().transport, Transport::Http1);
    for _ in 0..5 {
        let request = Request::post("/x").body(Bytes::new()).unwrap();
        el.send(Lane::Command, &Caller::default(), request, Repeat::Harmless).await.unwrap();
    }
    assert_eq!(el.surface().epoch, 1);
    assert_eq!(peer.seen_on("/engine/v1/capabilities").len(), 1);
}

/// Offers REST over HTTP/1.1 and closes after each answer.
async fn closing_el(seen: crate::peer::Seen) -> crate::peer::Reply {
    let mut reply = rest_el(seen).await;
    reply.headers_mut().insert("connection", "close".parse().unwrap());
    reply
}

#[tokio::test]
async fn over_http1_the_witness_is_asked_before_the_el_closes_it() {
    let peer = Peer::start(rest_el).await;
    let mut config = peer.config();
    config.transport = TransportChoice::Http1;
    let el = open(config);
    until(&el, |surface| surface.rest.is_some()).await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(10)).await;
    tokio::time::resume();
    peer.until_seen("/engine/v1/capabilities", 2).await;
    assert!(peer.seen().iter().all(|seen| seen.connection == 0), "over the same connection");
    assert_eq!(el.surface().epoch, 1);
}

#[tokio::test]
async fn life_04_without_a_witness_the_same_rest_is_another_epoch() {
    let asked = Arc::new(AtomicU16::new(0));
    let count = Arc::clone(&asked);
    let peer = Peer::start(move |seen| {
        let nth = count.fetch_add(1, Ordering::SeqCst);
        async move {
            if nth == 1 {
                std::future::pending::<()>().await;
            }
            rest_el(seen).await
        }
    })
    .await;
    let mut config = peer.config();
    config.transport = TransportChoice::Http1;
    config.reprobe_interval = Duration::from_millis(5);
    let timeout = config.probe_timeout;
    let el = open(config);
    let before = until(&el, |surface| surface.rest.is_some()).await;
    peer.until_seen("/engine/v1/capabilities", 2).await;
    // The second question is given up, and with it the connection.
    tokio::time::pause();
    tokio::time::advance(timeout * 2).await;
    tokio::time::resume();
    let after = until(&el, |surface| surface.epoch == 2).await;
    assert_eq!(after.rest, before.rest);
    // The connection of the third question is the witness now.
    peer.until_seen("/engine/v1/capabilities", 8).await;
    assert_eq!(el.surface().epoch, 2);
    assert!(peer.seen()[2..].iter().all(|seen| seen.connection == 1));
}

#[tokio::test]
async fn an_el_without_a_witness_is_another_epoch_at_each_question_and_keeps_its_rest() {
    let peer = Peer::start(closing_el).await;
    let mut config = peer.config();
    config.transport = TransportChoice::Http1;
    let reprobe = config.reprobe_interval;
    let el = open(config);
    let first = until(&el, |surface| surface.rest.is_some()).await;
    let mut changes = el.surface_changed();
    for epoch in 2..5 {
        tokio::time::pause();
        tokio::time::advance(reprobe).await;
        tokio::time::resume();
        patiently(changes.changed()).await.unwrap();
        let next = changes.borrow_and_update().clone();
        assert_eq!((next.epoch, &next.rest), (epoch, &first.rest));
    }
}

#[tokio::test]
async fn a_doubt_that_no_witness_can_dispel_is_another_epoch() {
    let peer = Peer::start(closing_el).await;
    let mut config = peer.config();
    config.transport = TransportChoice::Http1;
    let el = open(config);
    until(&el, |surface| surface.rest.is_some()).await;
    el.doubt(1);
    assert!(el.surface().rest.is_none());
    until(&el, |surface| surface.rest.is_some() && surface.epoch == 2).await;
}

#[tokio::test]
async fn two_keepers_do_not_ask_twice() {
    let peer = Peer::start(json_el).await;
    let el = open(config(peer.endpoint()));
    tokio::spawn(el.keep_surface());
    until(&el, |surface| surface.epoch == 1).await;
    el.relay(Lane::Relay, &Caller::default(), Bytes::new(), Repeat::Harmless).await.unwrap();
    assert_eq!(peer.seen_on("/engine/v1/capabilities").len(), 2);
}
