//! The table: fault, how often, over what, and whether the CL must come through in the end.

use std::time::Duration;

use engine_ssz_proxy::mock_el::{
    Fork, Http, Limits, Surface,
    faults::{
        Accepted, At, ConnectionRule, Damage, Dialect, Encoding, Fault, JsonDamage, Kind,
        LastStream, Media, Memory, Operation, Pause, Refusal, ResetReason, Restart, Rule, Target,
        When,
    },
};
use serde_json::Value;

use crate::conversation::{Said, Stage, converse, honest};

/// The operations of the conversation.
const OPERATIONS: [Operation; 7] = [
    Operation::ForkchoiceUpdated,
    Operation::GetPayload,
    Operation::NewPayload,
    Operation::BodiesByRange,
    Operation::BodiesByHash,
    Operation::GetBlobs,
    Operation::Identity,
];

const PLACES: [At; 4] = [At::Before, At::After, At::InBody(0), At::InBody(5)];

const MINUTE: Duration = Duration::from_secs(60);

/// What the CL may hear before the honest result.
fn is_fair(fault: &Fault, said: &Said, honest: &Value) -> bool {
    match said {
        Said::Result(result) => {
            // 204 is how an EL says that it has no blobs.
            result == honest || (*fault == Fault::NoContent && result.is_null())
        }
        Said::Error(-32603) => true,
        Said::Error(-32000) => matches!(fault, Fault::Refuse { refusal: Refusal::Unavailable, .. }),
        Said::Error(_) => false,
        Said::Status(401) => {
            matches!(fault, Fault::Refuse { refusal: Refusal::Unauthorized, .. })
        }
        Said::Status(_) => false,
        Said::Nothing => {
            matches!(fault, Fault::Silence { .. } | Fault::Stall { .. } | Fault::Delay { .. })
        }
    }
}

/// Plays the conversation under rules, and checks all that was said.
async fn play(fault: &Fault, http: Http, transport: &str, rules: Vec<Rule>, outcome: Outcome) {
    let what = format!("{fault:?} over {http} by {transport}, {} rules", rules.len());
    let honest = honest().await;
    let stage = Stage::new(http, transport).await;
    rules.into_iter().for_each(|rule| stage.el.faults().add(rule));
    let story = converse(stage.sidecar.address(), &stage.el.genesis_hash().to_string()).await;
    for ((method, heard), honest) in story.iter().zip(&honest) {
        for said in heard {
            assert!(is_fair(fault, said, honest), "{what}: {method}: {said:?}");
        }
        // All that was said is fair, so a result is the honest one.
        let came_through = matches!(heard.last(), Some(Said::Result(_)));
        if outcome == Outcome::AtOnce {
            assert!(came_through && heard.len() == 1, "{what}: {method}: {heard:?}");
        } else if outcome == Outcome::ComesThrough {
            assert!(came_through, "{what}: {method}: {heard:?}");
        } else if !came_through {
            // What follows cannot be right.
            break;
        }
    }
    assert!(stage.el.faults().injected().of(fault.kind()) > 0, "{what}: nothing happened");
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Every call has its honest result at the first try.
    AtOnce,
    /// Every call has its honest result in the end.
    ComesThrough,
    /// Calls may fail for good, but never wrongly.
    MayFail,
}

/// Strikes each operation once, or `times`.
fn each(fault: &Fault, dialect: Dialect, times: u64) -> Vec<Rule> {
    let rule = |operation| Rule::on(operation, fault.clone()).over(dialect).times(times);
    OPERATIONS.map(rule).to_vec()
}

/// Strikes everything of a dialect but what the sidecar asks to find the EL.
fn always(fault: &Fault, dialect: Dialect) -> Vec<Rule> {
    let rule = |operation| Rule::on(operation, fault.clone()).over(dialect);
    OPERATIONS.map(rule).to_vec()
}

async fn over_rest(faults: impl IntoIterator<Item = Fault>, always_outcome: Outcome) {
    for fault in faults {
        for http in [Http::Both, Http::H1] {
            let needs_h2 = matches!(fault, Fault::ResetStream { .. } | Fault::GoAway { .. });
            if needs_h2 && http == Http::H1 {
                continue;
            }
            let rules = each(&fault, Dialect::Rest, 1);
            play(&fault, http, "auto", rules, Outcome::ComesThrough).await;
            play(&fault, http, "auto", always(&fault, Dialect::Rest), always_outcome).await;
        }
    }
}

/// Strikes all over REST, always, but the forkchoices, one of which must not be repeated: JSON-RPC is
/// whole, so that the CL notices nothing.
async fn over_rest_but_forkchoices(faults: impl IntoIterator<Item = Fault>) {
    for fault in faults {
        for http in [Http::Both, Http::H1] {
            let needs_h2 = matches!(fault, Fault::ResetStream { .. } | Fault::GoAway { .. });
            if needs_h2 && http == Http::H1 {
                continue;
            }
            let others = OPERATIONS.into_iter().filter(|it| *it != Operation::ForkchoiceUpdated);
            let rule = |operation| Rule::on(operation, fault.clone()).over(Dialect::Rest);
            play(&fault, http, "auto", others.map(rule).collect(), Outcome::AtOnce).await;
        }
    }
}

#[tokio::test]
async fn damaged_ssz() {
    over_rest(Damage::ALL.map(Fault::Ssz), Outcome::ComesThrough).await;
}

#[tokio::test]
async fn answers_of_another_kind() {
    let huge = Fault::Huge { bytes: 1 << 40 };
    let media = [Media::JsonOnSsz, Media::Html, Media::Missing].map(Fault::Media);
    let encoding = [Encoding::Gzip, Encoding::NoLength].map(Fault::Encoding);
    over_rest(media, Outcome::ComesThrough).await;
    over_rest(encoding, Outcome::ComesThrough).await;
    over_rest([Fault::EmptyBody], Outcome::ComesThrough).await;
    over_rest([huge], Outcome::ComesThrough).await;
    over_rest([Fault::NoContent], Outcome::ComesThrough).await;
}

#[tokio::test]
async fn refusals() {
    for when in [When::Before, When::After] {
        for refusal in [Refusal::NotFound, Refusal::Internal] {
            over_rest([Fault::Refuse { when, refusal }], Outcome::ComesThrough).await;
        }
        for refusal in [Refusal::Unauthorized, Refusal::Unavailable] {
            over_rest([Fault::Refuse { when, refusal }], Outcome::MayFail).await;
        }
    }
    over_rest([Fault::TooLargeEarly], Outcome::ComesThrough).await;
}

#[tokio::test]
async fn cuts_and_resets() {
    let cuts = PLACES.map(|at| Fault::Cut { at });
    let resets = PLACES.map(|at| Fault::Reset { at });
    let faults = cuts.into_iter().chain(resets);
    over_rest_but_forkchoices(faults.clone()).await;
    over_rest(faults, Outcome::MayFail).await;
}

#[tokio::test]
async fn reset_streams_and_goaway() {
    let reasons = [
        ResetReason::RefusedStream,
        ResetReason::InternalError,
        ResetReason::Cancel,
        ResetReason::EnhanceYourCalm,
        ResetReason::Http11Required,
    ];
    for reason in reasons {
        let faults = PLACES.map(|at| Fault::ResetStream { at, reason });
        over_rest_but_forkchoices(faults.clone()).await;
        over_rest(faults, Outcome::MayFail).await;
    }
    let lasts = [LastStream::Below, LastStream::This, LastStream::ThisUnanswered];
    let faults = lasts.map(|last| Fault::GoAway { last });
    over_rest_but_forkchoices(faults.clone()).await;
    over_rest(faults, Outcome::MayFail).await;
}

/// Once the sidecar has found its EL the clock stands still, but for those who wait for it.
async fn on_a_paused_clock(fault: Fault, dialect: Dialect, transport: &str, outcome: Outcome) {
    let honest = honest().await;
    for operation in OPERATIONS {
        let stage = Stage::new(Http::Both, transport).await;
        stage.el.faults().add(Rule::on(operation, fault.clone()).over(dialect).times(1));
        tokio::time::pause();
        let story = converse(stage.sidecar.address(), &stage.el.genesis_hash().to_string()).await;
        tokio::time::resume();
        for ((method, heard), honest) in story.iter().zip(&honest) {
            for said in heard {
                assert!(
                    is_fair(&fault, said, honest),
                    "{fault:?} on {operation:?}: {method}: {said:?}"
                );
            }
            let came_through = heard.last() == Some(&Said::Result(honest.clone()));
            if !came_through {
                assert_eq!(outcome, Outcome::MayFail, "{fault:?}: {operation:?}: {heard:?}");
                break;
            }
        }
        assert_eq!(stage.el.faults().injected().of(fault.kind()), 1);
    }
}

#[tokio::test]
async fn late_answers() {
    for pause in [Duration::from_secs(5), MINUTE] {
        for when in [When::Before, When::After] {
            let fault = Fault::Delay { when, pause };
            on_a_paused_clock(fault, Dialect::Rest, "auto", Outcome::MayFail).await;
        }
        let fault = Fault::Stall { after: 3, pause: Pause::For(pause) };
        on_a_paused_clock(fault, Dialect::Rest, "auto", Outcome::MayFail).await;
    }
}

#[tokio::test]
async fn answers_that_never_come() {
    let never = [
        Fault::Silence { when: When::Before },
        Fault::Silence { when: When::After },
        Fault::Stall { after: 3, pause: Pause::Endless },
    ];
    for fault in never {
        on_a_paused_clock(fault.clone(), Dialect::Rest, "auto", Outcome::MayFail).await;
        on_a_paused_clock(fault, Dialect::JsonRpc, "json", Outcome::MayFail).await;
    }
}

#[tokio::test]
async fn faults_of_json_rpc() {
    let faults = [JsonDamage::Garbage, JsonDamage::WrongId, JsonDamage::Truncated]
        .map(Fault::Json)
        .into_iter()
        .chain(PLACES.map(|at| Fault::Cut { at }))
        .chain(PLACES.map(|at| Fault::Reset { at }))
        .chain([Fault::Refuse { when: When::After, refusal: Refusal::Internal }])
        .chain([Fault::Media(Media::Html), Fault::Encoding(Encoding::Gzip), Fault::EmptyBody]);
    for fault in faults {
        let rules = each(&fault, Dialect::JsonRpc, 1);
        play(&fault, Http::Both, "json", rules, Outcome::ComesThrough).await;
        play(&fault, Http::Both, "json", always(&fault, Dialect::JsonRpc), Outcome::MayFail).await;
    }
}

#[tokio::test]
async fn odd_connections() {
    let honest = honest().await;
    use Outcome::{ComesThrough, MayFail};
    let faults = [
        (Accepted::Closed, 2, Http::Both, ComesThrough),
        (Accepted::Reset, 2, Http::Both, ComesThrough),
        // Over HTTP/2 a ping tells that nobody is there; over HTTP/1.1 nothing does.
        (Accepted::Mute, 1, Http::H2, ComesThrough),
        (Accepted::Mute, 1, Http::Both, MayFail),
        (Accepted::SettingsOnly, 1, Http::H2, ComesThrough),
        (Accepted::SettingsOnly, 1, Http::Both, MayFail),
        (Accepted::TinyWindow(100), 100, Http::Both, ComesThrough),
        (Accepted::MaxStreamsOne, 100, Http::Both, ComesThrough),
    ];
    for (fault, times, http, outcome) in faults {
        let stage = Stage::new(http, "auto").await;
        stage.el.faults().add_connection(ConnectionRule::new(fault).times(times));
        let kept = Restart { memory: Memory::Kept, ..Restart::default() };
        stage.el.restart(kept).await.unwrap();
        tokio::time::pause();
        let story = converse(stage.sidecar.address(), &stage.el.genesis_hash().to_string()).await;
        tokio::time::resume();
        for ((method, heard), honest) in story.iter().zip(&honest) {
            let what = format!("{fault:?} over {http}: {method}: {heard:?}");
            for said in heard {
                let fair = match said {
                    Said::Result(result) => result == honest,
                    Said::Error(code) => *code == -32603,
                    Said::Nothing => matches!(fault, Accepted::Mute | Accepted::SettingsOnly),
                    Said::Status(_) => false,
                };
                assert!(fair, "{what}");
            }
            if heard.last() != Some(&Said::Result(honest.clone())) {
                assert_eq!(outcome, MayFail, "{what}");
                break;
            }
        }
        assert!(stage.el.faults().injected().of(Kind::Connection) > 0);
    }
}

#[tokio::test]
async fn restarts() {
    let kept = Restart { memory: Memory::Kept, ..Restart::default() };
    let changes = [
        kept.clone(),
        Restart { surface: Some(Surface::JsonOnly), ..kept.clone() },
        Restart { http: Some(Http::H1), ..kept.clone() },
        Restart { limits: Some(Limits { bodies: 1, blobs: 1, payload_bytes: 1 }), ..kept },
    ];
    for restart in changes {
        for when in [When::Before, When::After] {
            for operation in OPERATIONS {
                let fault = Fault::Restart { when, restart: restart.clone() };
                let rule = Rule::on(operation, fault.clone()).times(1);
                play(&fault, Http::Both, "auto", vec![rule], Outcome::ComesThrough).await;
            }
        }
    }
}

#[tokio::test]
async fn capabilities_that_never_answer_leave_json_rpc() {
    let fault = Fault::Silence { when: When::Before };
    let honest = honest().await;
    let stage = Stage::new(Http::Both, "auto").await;
    stage.el.faults().add(Rule::on(Operation::Capabilities, fault).over(Dialect::Rest));
    let kept = Restart { memory: Memory::Kept, ..Restart::default() };
    stage.el.restart(kept).await.unwrap();
    let story = converse(stage.sidecar.address(), &stage.el.genesis_hash().to_string()).await;
    for ((method, heard), honest) in story.iter().zip(&honest) {
        assert_eq!(heard.last(), Some(&Said::Result(honest.clone())), "{method}: {heard:?}");
    }
}

#[tokio::test]
async fn a_port_that_is_down_is_an_error_until_it_is_up() {
    let stage = Stage::new(Http::Both, "auto").await;
    stage.el.down().await;
    let address = stage.sidecar.address();
    let none = Value::Array(Vec::new());
    let ask = || crate::conversation::call(address, 7, "eth_chainId", &none);
    assert_eq!(ask().await, Said::Error(-32603));
    stage.el.up().await.unwrap();
    assert_eq!(ask().await, Said::Result("0x539".into()));
}

#[tokio::test]
async fn chances_come_from_the_seed_alone() {
    use engine_ssz_proxy::mock_el::faults::{Faults, FaultsHandle, Probability};
    let half = Probability::new(0.5).unwrap();
    let fault = Fault::Refuse { when: When::Before, refusal: Refusal::Internal };
    let mut stories = Vec::new();
    for seed in [1, 1, 2] {
        let script =
            Faults::new(seed).with(Rule::new(Target::Any, fault.clone()).with_probability(half));
        let config = crate::support::mock_config(Surface::JsonOnly, Http::H1);
        let el = engine_ssz_proxy::mock_el::MockEl::start_with(config, FaultsHandle::new(script));
        let el = el.await.unwrap();
        let mut story = Vec::new();
        for id in 0..64 {
            story.push(
                crate::conversation::call(el.addr(), id, "eth_chainId", &Value::Array(Vec::new()))
                    .await,
            );
        }
        let struck = story.iter().filter(|said| matches!(said, Said::Status(500))).count();
        assert!((16..=48).contains(&struck), "{struck} of 64");
        stories.push(story);
    }
    assert_eq!(stories[0], stories[1]);
    assert_ne!(stories[0], stories[2]);
}

/// What an EL has said that it did not run is sent again, once, and the CL does not notice.
#[tokio::test]
async fn a_denied_request_is_run_once_and_answered_at_the_first_try() {
    let refused = ResetReason::RefusedStream;
    for fault in [
        Fault::GoAway { last: LastStream::Below },
        Fault::ResetStream { at: At::Before, reason: refused },
    ] {
        let honest = honest().await;
        let stage = Stage::new(Http::Both, "auto").await;
        let rules = each(&fault, Dialect::Rest, 1);
        let struck = rules.len() as u64;
        rules.into_iter().for_each(|rule| stage.el.faults().add(rule));
        let story = converse(stage.sidecar.address(), &stage.el.genesis_hash().to_string()).await;
        for ((method, heard), honest) in story.iter().zip(honest) {
            assert_eq!(heard, &[Said::Result(honest)], "{fault:?}: {method}");
        }
        assert_eq!(stage.el.faults().injected().of(fault.kind()), struck);
        for operation in OPERATIONS {
            let log = stage.el.log();
            let of = log.iter().filter(|seen| seen.operation == Some(operation));
            let (ran, denied): (Vec<_>, Vec<_>) = of.partition(|seen| seen.processed);
            let calls = if operation == Operation::ForkchoiceUpdated { 2 } else { 1 };
            assert_eq!((ran.len(), denied.len()), (calls, 1), "{fault:?}: {operation:?}");
        }
    }
}

/// A build may have begun: it is the CL's to ask again, and nothing is sent behind its back.
#[tokio::test]
async fn a_forkchoice_with_attributes_that_may_have_run_is_not_sent_again() {
    for fault in [Fault::Cut { at: At::After }, Fault::Reset { at: At::InBody(3) }] {
        let stage = Stage::new(Http::Both, "auto").await;
        let rule = Rule::on(Operation::ForkchoiceUpdated, fault.clone()).times(1);
        stage.el.faults().add(rule);
        let story = converse(stage.sidecar.address(), &stage.el.genesis_hash().to_string()).await;
        let (_, heard) = &story[0];
        assert!(matches!(heard[..], [Said::Error(-32603), Said::Result(_)]), "{heard:?}");
        let log = stage.el.log();
        let updates =
            log.iter().filter(|seen| seen.operation == Some(Operation::ForkchoiceUpdated));
        // The one that was struck, the CL's second try, and the update to the new head.
        assert_eq!(updates.filter(|seen| seen.processed).count(), 3);
    }
}

/// An EL whose REST surface is older than its chain: what it does not offer is JSON-RPC's to answer.
#[tokio::test]
async fn a_restart_with_fewer_forks_over_rest() {
    for operation in OPERATIONS {
        let restart =
            Restart { memory: Memory::Kept, newest_fork: Some(Fork::Prague), ..Restart::default() };
        let fault = Fault::Restart { when: When::Before, restart };
        let rule = Rule::on(operation, fault.clone()).times(1);
        play(&fault, Http::Both, "auto", vec![rule], Outcome::ComesThrough).await;
    }
}
