//! The bearer tokens the EL sees.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use engine_ssz_proxy::el::{Caller, Clock, El, Lane, Repeat, Tokens};
use http::{HeaderValue, Request};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};

use crate::peer::{Peer, SECRET, Seen, json_el, open, patiently, reply, rest_el, until};

fn clock(start: u64) -> (Arc<AtomicU64>, Clock) {
    let now = Arc::new(AtomicU64::new(start));
    let read = Arc::clone(&now);
    (now, Clock::from_fn(move || read.load(Ordering::SeqCst)))
}

fn caller(bearer: &'static str) -> Caller {
    Caller { bearer: Some(HeaderValue::from_static(bearer)), traceparent: None }
}

/// Checks the signature and reads `iat`.
fn issued_at(seen: &Seen) -> u64 {
    let token = seen.header("authorization").unwrap().strip_prefix("Bearer ").unwrap();
    let mut rules = Validation::new(Algorithm::HS256);
    rules.required_spec_claims.clear();
    rules.validate_exp = false;
    let key = DecodingKey::from_secret(&const_hex::decode(SECRET).unwrap());
    let claims = jsonwebtoken::decode::<serde_json::Value>(token, &key, &rules).unwrap().claims;
    assert_eq!(claims.as_object().unwrap().len(), 1);
    claims["iat"].as_u64().unwrap()
}

#[tokio::test]
async fn auth_02_a_minted_token_is_of_this_second_whatever_the_callers_was() {
    let peer = Peer::start(rest_el).await;
    let (now, clock) = clock(1_700_000_000);
    let mut config = peer.config();
    config.clock = clock;
    let el = open(config);
    until(&el, |surface| surface.rest.is_some()).await;
    for second in [1_700_000_000, 1_700_000_000, 1_700_000_007, 1_700_000_003] {
        now.store(second, Ordering::SeqCst);
        let request = Request::post("/x").body(Bytes::new()).unwrap();
        el.send(Lane::Command, &caller("Bearer stale"), request, Repeat::Harmless).await.unwrap();
        el.relay(Lane::Relay, &caller("Bearer stale"), Bytes::new(), Repeat::Harmless)
            .await
            .unwrap();
        for seen in peer.seen().iter().rev().take(2) {
            assert_eq!(issued_at(seen), second);
        }
    }
    for probe in peer.seen_on("/engine/v1/capabilities") {
        assert_eq!(issued_at(&probe), 1_700_000_000);
    }
}

#[tokio::test]
async fn auth_08_without_a_secret_the_probe_borrows_the_first_callers_bearer() {
    let peer = Peer::start(|seen| async move {
        if seen.header("authorization") == Some("Bearer cl") {
            rest_el(seen).await
        } else {
            reply(401, "")
        }
    })
    .await;
    let mut config = peer.config();
    config.tokens = Tokens::Borrow;
    let el = open(config);
    until(&el, |surface| surface.why.contains("first call")).await;
    assert!(peer.seen().is_empty());

    el.note_caller(&Caller::default());
    el.note_caller(&caller("Bearer cl"));
    until(&el, |surface| surface.rest.is_some()).await;
    let request = Request::post("/x").body(Bytes::new()).unwrap();
    el.send(Lane::Build, &caller("Bearer cl"), request, Repeat::Harmless).await.unwrap();
    el.relay(Lane::Relay, &caller("Bearer cl"), Bytes::new(), Repeat::Harmless).await.unwrap();
    assert!(peer.seen().iter().all(|seen| seen.header("authorization") == Some("Bearer cl")));
}

#[tokio::test]
async fn auth_08_a_bearer_of_a_minute_ago_is_not_borrowed() {
    let peer = Peer::start(json_el).await;
    let (now, clock) = clock(1000);
    let mut config = peer.config();
    config.tokens = Tokens::Borrow;
    config.clock = clock;
    let el = El::new(config);
    el.note_caller(&caller("Bearer old"));
    now.store(1030, Ordering::SeqCst);
    // Sent again, but as old as it was.
    el.note_caller(&caller("Bearer old"));
    now.store(1060, Ordering::SeqCst);
    tokio::spawn(el.keep_surface());
    until(&el, |surface| surface.why.contains("first call")).await;
    el.note_caller(&caller("Bearer new"));
    until(&el, |surface| surface.epoch == 1).await;
    assert!(peer.seen().iter().all(|seen| seen.header("authorization") == Some("Bearer new")));
}

#[tokio::test]
async fn a_borrowed_bearer_goes_as_it_came_and_nobody_elses_goes_in_its_place() {
    let peer = Peer::start(json_el).await;
    let mut config = peer.config();
    config.tokens = Tokens::Borrow;
    let el = El::new(config);
    el.note_caller(&caller("Bearer newest"));
    for (who, sent) in [
        (caller("bearer  odd"), Some("bearer  odd")),
        (caller("Bearer mine"), Some("Bearer mine")),
        (Caller::default(), None),
    ] {
        patiently(el.relay(Lane::Relay, &who, Bytes::new(), Repeat::Harmless)).await.unwrap();
        assert_eq!(peer.seen().last().unwrap().header("authorization"), sent);
    }
}

/// Takes one bearer alone.
async fn picky_el(seen: Seen) -> crate::peer::Reply {
    match seen.header("authorization") {
        Some("Bearer cl") => rest_el(seen).await,
        Some("Bearer forbidden") => reply(403, ""),
        _ => reply(401, ""),
    }
}

async fn relay(el: &El, who: &Caller) {
    el.note_caller(who);
    patiently(el.relay(Lane::Relay, who, Bytes::new(), Repeat::Harmless)).await.unwrap();
}

#[tokio::test]
async fn auth_08_a_bearer_the_el_takes_is_borrowed_before_a_newer_one_it_has_not_judged() {
    let peer = Peer::start(picky_el).await;
    let mut config = peer.config();
    config.tokens = Tokens::Borrow;
    let el = El::new(config);
    relay(&el, &caller("Bearer cl")).await;
    relay(&el, &caller("Bearer refused")).await;
    relay(&el, &caller("Bearer forbidden")).await;
    for nth in 0..100 {
        let bearer = Some(HeaderValue::try_from(format!("Bearer {nth}")).unwrap());
        el.note_caller(&Caller { bearer, traceparent: None });
    }
    tokio::spawn(el.keep_surface());
    until(&el, |surface| surface.rest.is_some()).await;
    for probe in peer.seen_on("/engine/v1/capabilities") {
        assert_eq!(probe.header("authorization"), Some("Bearer cl"));
    }
}

#[tokio::test]
async fn auth_08_a_bearer_the_el_took_a_minute_ago_is_not_borrowed() {
    let peer = Peer::start(rest_el).await;
    let (now, clock) = clock(1000);
    let mut config = peer.config();
    config.tokens = Tokens::Borrow;
    config.clock = clock;
    let el = El::new(config);
    relay(&el, &caller("Bearer old")).await;
    now.store(1060, Ordering::SeqCst);
    el.note_caller(&caller("Bearer new"));
    tokio::spawn(el.keep_surface());
    until(&el, |surface| surface.rest.is_some()).await;
    for probe in peer.seen_on("/engine/v1/capabilities") {
        assert_eq!(probe.header("authorization"), Some("Bearer new"));
    }
}

#[tokio::test]
async fn auth_08_somebody_elses_bearer_keeps_rest_from_being_found_only_until_the_cl_calls() {
    for (bad, status) in [("Bearer refused", "401"), ("Bearer forbidden", "403")] {
        let peer = Peer::start(picky_el).await;
        let mut config = peer.config();
        config.tokens = Tokens::Borrow;
        // Nothing but the call ends the pause.
        config.backoff_min = config.reprobe_interval;
        let el = open(config);
        el.note_caller(&caller(bad));
        until(&el, |surface| surface.why.contains(status)).await;
        relay(&el, &caller("Bearer cl")).await;
        until(&el, |surface| surface.rest.is_some()).await;
    }
}

#[test]
fn no_secret_shows_in_debug_output() {
    let caller = caller("Bearer hunter2");
    let mut config = crate::peer::config("http://el".parse().unwrap());
    let minting = format!("{config:?}");
    config.tokens = Tokens::Borrow;
    let el = El::new(config);
    el.note_caller(&caller);
    let shown = format!("{caller:?} {el:?} {minting}");
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(!shown.contains("736563"), "{shown}");
}
