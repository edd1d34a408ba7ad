//! Answers that are late, stop, or never come.

use std::time::Duration;

use engine_ssz_proxy::mock_el::faults::{
    At, Dialect, Fault, Faults, Kind, LastStream, Operation, Pause, ResetReason, Rule, Target, When,
};
use tokio::time::Instant;

use super::raw::{
    CAPABILITIES, End, GOAWAY, H2, HEADERS, Line, RST_STREAM, el_of, el_with, get, h1, until,
};
use crate::client::{Peer, config, start};

const HOUR: Duration = Duration::from_secs(3600);

/// The honest answer's body.
async fn honest() -> Vec<u8> {
    let el = start(config()).await;
    Peer::h1(&el).get(CAPABILITIES, "paris").await.body.to_vec()
}

/// `Before` leaves the request alone, everything else runs it.
const PLACES: [(At, bool); 4] =
    [(At::Before, false), (At::After, true), (At::InBody(0), true), (At::InBody(7), true)];

#[tokio::test]
async fn a_delay_before_holds_the_run_and_a_delay_after_only_the_answer() {
    for (when, processed) in [(When::Before, false), (When::After, true)] {
        let el = el_with(Fault::Delay { when, pause: HOUR }).await;
        let mut line = Line::to(&el).await;
        line.send(get(CAPABILITIES)).await;
        until(|| el.faults().injected().of(Kind::Delay) == 1).await;
        until(|| el.log()[0].processed == processed).await;
        assert_eq!(el.log()[0].status, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_delayed_answer_is_the_honest_one() {
    let body = honest().await;
    for when in [When::Before, When::After] {
        let el = el_with(Fault::Delay { when, pause: HOUR }).await;
        let began = Instant::now();
        let answer = Peer::h2(&el).get(CAPABILITIES, "paris").await;
        assert!(began.elapsed() >= HOUR);
        assert_eq!(answer.body, body);
        assert!(el.log()[0].processed);
    }
}

#[tokio::test]
async fn a_silent_stream_leaves_the_others_their_answers() {
    for (when, processed) in [(When::Before, false), (When::After, true)] {
        let rule = Rule::new(Target::Any, Fault::Silence { when }).times(1);
        let el = el_of(Faults::new(1).with(rule)).await;
        let mut h2 = H2::to(&el).await;
        h2.get(CAPABILITIES).await;
        let second = h2.get(CAPABILITIES).await;
        assert_eq!(h2.answer(second).await, honest().await);
        h2.is_alive().await;
        let log = el.log();
        assert_eq!((log[0].processed, log[0].status), (processed, None));
        assert_eq!((log[0].fault, log[1].fault), (Some(Kind::Silence), None));
    }
}

#[tokio::test(start_paused = true)]
async fn capabilities_that_never_answer_keep_http_1_1_waiting() {
    let rule = Rule::on(Operation::Capabilities, Fault::Silence { when: When::Before });
    let el = el_of(Faults::new(1).with(rule.over(Dialect::Rest))).await;
    let mut line = Line::to(&el).await;
    line.send(get(CAPABILITIES)).await;
    line.stays_mute().await;
    assert_eq!(Peer::h1(&el).get("/engine/v1/identity", "").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_stall_shows_the_first_bytes_and_the_rest_later_or_never() {
    let body = honest().await;
    for pause in [Pause::For(HOUR), Pause::Endless] {
        let el = el_with(Fault::Stall { after: 5, pause }).await;
        let mut line = Line::to(&el).await;
        line.send(get(CAPABILITIES)).await;
        let length = format!("content-length: {}", body.len());
        assert!(line.head().await.contains(&length));
        assert_eq!(line.exactly(5).await, body[..5]);
        let began = Instant::now();
        match pause {
            Pause::For(_) => {
                assert_eq!(line.exactly(body.len() - 5).await, body[5..]);
                assert!(began.elapsed() >= HOUR);
            }
            Pause::Endless => line.stays_mute().await,
        }
    }
}

#[tokio::test]
async fn a_cut_is_a_fin_and_a_reset_an_rst_at_their_place() {
    let body = honest().await;
    for (at, processed) in PLACES {
        for (fault, wanted) in [(Fault::Cut { at }, End::Fin), (Fault::Reset { at }, End::Rst)] {
            let el = el_with(fault.clone()).await;
            let (got, end) = h1(&el, &get(CAPABILITIES)).await;
            assert_eq!(end, wanted, "{fault:?}");
            match at {
                At::Before | At::After => assert_eq!(got, "", "{fault:?}"),
                At::InBody(bytes) => {
                    let (head, got) = got.split_once("\r\n\r\n").expect("a head");
                    assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
                    assert_eq!(got.as_bytes(), &body[..bytes], "{fault:?}");
                }
            }
            assert_eq!(el.log()[0].processed, processed, "{fault:?}");
            assert_eq!(fault.processes(), processed);
            assert_eq!(el.faults().injected().of(fault.kind()), 1);
        }
    }
}

#[tokio::test]
async fn a_cut_over_http_2_ends_the_connection_at_its_place() {
    let body = honest().await;
    for (at, processed) in PLACES {
        let el = el_with(Fault::Cut { at }).await;
        let mut h2 = H2::to(&el).await;
        h2.get(CAPABILITIES).await;
        if let At::InBody(bytes) = at {
            assert_eq!(h2.telling().await.unwrap().kind, HEADERS);
            if bytes > 0 {
                assert_eq!(h2.telling().await.unwrap().payload, body[..bytes]);
            }
        }
        assert_eq!(h2.telling().await, None, "{at:?}");
        assert_eq!(el.log()[0].processed, processed);
    }
}

#[tokio::test]
async fn a_reset_stream_has_its_code_and_leaves_the_connection() {
    let body = honest().await;
    let reasons = [
        (ResetReason::RefusedStream, 7),
        (ResetReason::InternalError, 2),
        (ResetReason::Cancel, 8),
        (ResetReason::EnhanceYourCalm, 11),
        (ResetReason::Http11Required, 13),
    ];
    for (reason, code) in reasons {
        for (at, processed) in PLACES {
            let rule = Rule::new(Target::Any, Fault::ResetStream { at, reason }).times(1);
            let el = el_of(Faults::new(1).with(rule)).await;
            // There are no streams in HTTP/1.1 to reset.
            assert_eq!(Peer::h1(&el).get(CAPABILITIES, "").await.status, 200);
            let mut h2 = H2::to(&el).await;
            let first = h2.get(CAPABILITIES).await;
            if let At::InBody(bytes) = at {
                assert_eq!(h2.telling().await.unwrap().kind, HEADERS);
                if bytes > 0 {
                    assert_eq!(h2.telling().await.unwrap().payload, body[..bytes]);
                }
            }
            let reset = h2.telling().await.unwrap();
            assert_eq!((reset.kind, reset.stream, reset.word(0)), (RST_STREAM, first, code));
            let second = h2.get(CAPABILITIES).await;
            assert_eq!(h2.answer(second).await, body);
            assert_eq!(el.log()[1].processed, processed, "{at:?}");
        }
    }
}

#[tokio::test]
async fn a_goaway_below_a_stream_denies_it_and_all_later_ones() {
    let rule = Rule::new(Target::Any, Fault::GoAway { last: LastStream::Below }).after(1).times(1);
    let el = el_of(Faults::new(1).with(rule)).await;
    let mut h2 = H2::to(&el).await;
    let first = h2.get(CAPABILITIES).await;
    h2.answer(first).await;
    h2.get(CAPABILITIES).await;
    let goaway = h2.telling().await.unwrap();
    assert_eq!((goaway.kind, goaway.word(0), goaway.word(4)), (GOAWAY, first, 0));
    // Sent before the client could know.
    h2.get(CAPABILITIES).await;
    until(|| el.log().len() == 3).await;
    h2.is_alive().await;
    let ran: Vec<_> = el.log().iter().map(|seen| seen.processed).collect();
    assert_eq!(ran, [true, false, false]);
}

#[tokio::test]
async fn a_goaway_at_a_stream_answers_it_or_not_and_runs_it_either_way() {
    for (last, answered) in [(LastStream::This, true), (LastStream::ThisUnanswered, false)] {
        let el = el_with(Fault::GoAway { last }).await;
        let mut h2 = H2::to(&el).await;
        let stream = h2.get(CAPABILITIES).await;
        let goaway = h2.telling().await.unwrap();
        assert_eq!((goaway.kind, goaway.word(0), goaway.word(4)), (GOAWAY, stream, 0));
        if answered {
            assert_eq!(h2.answer(stream).await, honest().await);
        } else {
            assert_eq!(h2.telling().await, None);
        }
        assert!(el.log()[0].processed);
    }
}
