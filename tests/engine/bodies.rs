//! Bodies by hash and by range: forks asked in turn, pieces, merging, truncation.

use crate::support::*;
use alloy_primitives::Bytes as TxBytes;
use alloy_rpc_types_engine::ssz_engine_types::{
    BodiesResponse, BodyEntry, ExecutionPayloadBodyAmsterdam, ExecutionPayloadBodyParis,
    ExecutionPayloadBodyShanghai,
};
use engine_ssz_proxy::{
    engine::{Answer, Call, Limits, Memory, Offer, RelayReason, Said, Schedule, Step},
    wire::Fork,
};
use http::Response;
use serde_json::{Value, json};
use ssz::{Decode, Encode};

const ALL: [&str; 6] = ["amsterdam", "osaka", "prague", "cancun", "shanghai", "paris"];

fn by_hash(version: &str, hashes: &[u8]) -> Value {
    let hashes: Vec<_> = hashes.iter().map(|byte| hash(*byte)).collect();
    json!({"method": format!("engine_getPayloadBodiesByHash{version}"), "params": [hashes]})
}

fn by_range(version: &str, start: u64, count: u64) -> Value {
    let params = json!([format!("{start:#x}"), format!("{count:#x}")]);
    json!({"method": format!("engine_getPayloadBodiesByRange{version}"), "params": params})
}

fn hash(byte: u8) -> String {
    format!("0x{}", const_hex::encode([byte; 32]))
}

/// The chain of the scripted EL: block n is of the fork at place n, and has one transaction of the
/// byte n. Everything past the end is unknown.
struct Chain(Vec<Fork>);

impl Chain {
    fn new(forks: &[Fork]) -> Self {
        Self(forks.to_vec())
    }

    fn entry<T: Encode + Decode + Default>(
        &self,
        number: usize,
        fork: Fork,
        body: impl Fn(Vec<TxBytes>) -> T,
    ) -> BodyEntry<T> {
        match self.0.get(number) {
            Some(of) if *of == fork => BodyEntry::available(body(vec![vec![number as u8].into()])),
            _ => BodyEntry::unavailable(),
        }
    }

    /// The answer under that fork, with an era filter as the spec demands.
    fn answer(&self, fork: Fork, numbers: &[usize]) -> Response<bytes::Bytes> {
        let numbers = numbers.iter().copied();
        match fork {
            Fork::Paris => {
                let body = |transactions| ExecutionPayloadBodyParis { transactions };
                ok(BodiesResponse { entries: numbers.map(|n| self.entry(n, fork, body)).collect() })
            }
            Fork::Amsterdam => {
                let body = |transactions| ExecutionPayloadBodyAmsterdam {
                    transactions,
                    withdrawals: vec![],
                    block_access_list: vec![0xc0].into(),
                };
                ok(BodiesResponse { entries: numbers.map(|n| self.entry(n, fork, body)).collect() })
            }
            _ => {
                let body = |transactions| ExecutionPayloadBodyShanghai {
                    transactions,
                    withdrawals: vec![],
                };
                ok(BodiesResponse { entries: numbers.map(|n| self.entry(n, fork, body)).collect() })
            }
        }
    }

    /// What JSON-RPC says of a block.
    fn json(&self, version: &str, number: usize) -> Value {
        let Some(fork) = self.0.get(number) else {
            return Value::Null;
        };
        let withdrawals = if *fork >= Fork::Shanghai { json!([]) } else { Value::Null };
        let mut body =
            json!({"transactions": [format!("0x{number:02x}")], "withdrawals": withdrawals});
        if version == "V2" {
            let list = if *fork >= Fork::Amsterdam { json!("0xc0") } else { Value::Null };
            body["blockAccessList"] = list;
        }
        body
    }
}

/// An exchange as the EL saw it: the fork header and the block numbers asked for.
type Asked = (String, Vec<usize>);

/// Plays a call to its end against the chain; an `answer` may differ from the chain's.
fn play(
    scene: &Scene,
    request: &Value,
    mut answer: impl FnMut(usize, Fork, &[usize]) -> Response<bytes::Bytes>,
) -> (Step, Vec<Asked>) {
    let (mut call, mut step): (Call, Step) = scene.begin(request);
    let mut asked = Vec::new();
    while let Step::Send(exchange) = step {
        let fork = Fork::from_name(fork(&exchange)).unwrap();
        let numbers = numbers(&exchange.request);
        let said = answer(asked.len(), fork, &numbers);
        asked.push((fork.name().to_owned(), numbers));
        step = scene.hear(&mut call, said);
    }
    (step, asked)
}

/// Hash n is that of block n; a range begins at 1, block 0 being the genesis.
fn numbers(request: &http::Request<bytes::Bytes>) -> Vec<usize> {
    match request.uri().query() {
        Some(query) => {
            let numbers: Vec<usize> = query
                .split('&')
                .map(|pair| pair.split('=').nth(1).unwrap().parse().unwrap())
                .collect();
            assert_eq!(query, format!("from={}&count={}", numbers[0], numbers[1]));
            (numbers[0]..numbers[0].saturating_add(numbers[1])).collect()
        }
        None => {
            assert_eq!(request.uri(), "/bodies/hash");
            let hashes = &request.body()[4..];
            hashes.chunks(32).map(|hash| usize::from(hash[0])).collect()
        }
    }
}

fn six_forks() -> Chain {
    use Fork::*;
    Chain::new(&[Paris, Paris, Shanghai, Cancun, Prague, Osaka, Amsterdam])
}

/// A chain of that fork alone, from its genesis on.
fn of_one_fork(fork: Fork) -> Scene {
    let begun = Fork::SPECIFIED.into_iter().filter(|begun| *begun > Fork::Paris && *begun <= fork);
    let times: Vec<_> = begun.map(|fork| format!(r#""{fork}Time":0"#)).collect();
    let genesis = format!(r#"{{"config":{{{}}}}}"#, times.join(","));
    let memory = Memory::new(Some(Schedule::from_genesis(&genesis).unwrap()));
    Scene { memory, offer: Some(Offer::of_forks(&[fork])) }
}

/// With the era filter known, so that its test does not mix in.
fn scene() -> Scene {
    let scene = Scene::new();
    scene.memory.note_era_filter();
    scene
}

fn forks_of(asked: &[Asked]) -> Vec<&str> {
    asked.iter().map(|(fork, _)| fork.as_str()).collect()
}

#[test]
fn body_01_each_fork_is_asked_for_what_is_still_missing_and_the_order_is_the_requests() {
    let chain = six_forks();
    for version in ["V1", "V2"] {
        let request = by_hash(version, &[1, 6, 99, 3, 1]);
        let (step, asked) = play(&scene(), &request, |_, fork, n| chain.answer(fork, n));
        let wanted: Vec<_> = [1, 6, 99, 3, 1].map(|n| chain.json(version, n)).to_vec();
        assert_eq!(result(step), json!(wanted));
        assert_eq!(forks_of(&asked), ALL);
        assert_eq!(asked[0].1, [1, 6, 99, 3, 1]);
        assert_eq!(asked[1].1, [1, 99, 3, 1], "what was found is not asked again");
        assert_eq!(asked[5].1, [1, 99, 1]);
    }
}

#[test]
fn body_01_no_older_fork_is_asked_once_everything_is_found() {
    let chain = six_forks();
    let (_, asked) = play(&scene(), &by_hash("V1", &[6, 5]), |_, fork, n| chain.answer(fork, n));
    assert_eq!(forks_of(&asked), ["amsterdam", "osaka"]);
}

#[test]
fn body_04_more_than_the_el_takes_go_in_pieces() {
    let chain = six_forks();
    for (limit, pieces) in [(usize::MAX, vec![32, 8]), (15, vec![15, 15, 10])] {
        let limits = Limits { bodies_max: limit, ..Offer::of_forks(&[]).limits() };
        let offer = Some(Offer::new(["amsterdam"], limits));
        let scene = Scene { offer, ..of_one_fork(Fork::Amsterdam) };
        let hashes = [[6; 20], [7; 20]].concat();
        let (step, asked) =
            play(&scene, &by_hash("V2", &hashes), |_, fork, n| chain.answer(fork, n));
        let lengths: Vec<_> = asked.iter().map(|(_, numbers)| numbers.len()).collect();
        assert_eq!(lengths, pieces);
        let result = result(step);
        assert_eq!(result.as_array().unwrap().len(), 40);
        assert_eq!(result[19], chain.json("V2", 6));
        assert_eq!(result[20], Value::Null);
    }
}

#[test]
fn body_04_what_is_too_much_or_nothing_is_the_els_to_answer() {
    assert_eq!(Scene::new().relayed(&by_hash("V1", &[1; 1025])).label(), "count");
    Scene::new().sent(&by_hash("V1", &[1; 1024]));
    assert_eq!(Scene::new().relayed(&by_hash("V1", &[])).label(), "count");
    assert_eq!(Scene::new().relayed(&by_range("V1", 1, 1025)).label(), "count");
}

#[test]
fn body_03_zeros_are_the_els_to_refuse_and_the_last_number_ends_a_range() {
    for (start, count) in [(0, 1), (32, 0), (1, u64::MAX)] {
        assert_eq!(Scene::new().relayed(&by_range("V1", start, count)).label(), "count");
    }
    let (_, exchange) = Scene::new().sent(&by_range("V1", u64::MAX, 32));
    assert_eq!(exchange.request.uri(), "/bodies?from=18446744073709551615&count=32");
}

/// An EL of 33 blocks after the genesis, the fork changing at 17.
fn head_33() -> Chain {
    let mut forks = vec![Fork::Cancun; 17];
    forks.extend([Fork::Prague; 17]);
    Chain::new(&forks)
}

fn range(scene: &Scene, chain: &Chain, start: u64, count: u64) -> (Step, Vec<Asked>) {
    play(scene, &by_range("V1", start, count), |_, fork, numbers| {
        let known: Vec<_> = numbers.iter().copied().filter(|n| *n < chain.0.len()).collect();
        chain.answer(fork, &known)
    })
}

#[test]
fn body_02_a_range_is_cut_at_the_head_and_has_no_trailing_nulls() {
    let chain = head_33();
    for (start, count, wanted) in
        [(32, 2, 32..=33), (33, 32, 33..=33), (31, 3, 31..=33), (1, 32, 1..=32), (1, 64, 1..=33)]
    {
        let (step, _) = range(&scene(), &chain, start, count);
        let wanted: Vec<_> = wanted.map(|n| chain.json("V1", n)).collect();
        assert_eq!(result(step), json!(wanted), "{start} {count}");
    }
    let (step, asked) = range(&scene(), &chain, 34, 5);
    assert_eq!(result(step), json!([]));
    assert_eq!(asked.len(), 1, "nothing is there under any fork");
}

#[test]
fn body_05_a_short_piece_ends_the_range() {
    let (_, asked) = range(&scene(), &head_33(), 1, 96);
    let pieces: Vec<_> = asked.iter().map(|(_, numbers)| numbers[0]).collect();
    assert!(!pieces.contains(&65), "{pieces:?}");
}

#[test]
fn body_05_a_head_that_moves_between_the_forks_of_a_piece_is_asked_over_json_rpc() {
    let chain = head_33();
    let (step, _) = play(&scene(), &by_range("V1", 30, 10), |nth, fork, _| match nth {
        0 => chain.answer(fork, &[30, 31, 32, 33]),
        _ => chain.answer(fork, &[30, 31, 32]),
    });
    assert!(matches!(relay(step), RelayReason::HeadMoved));
}

#[test]
fn body_05_a_head_that_moves_back_while_the_era_filter_is_tested_is_no_deviation() {
    let chain = head_33();
    let (step, asked) = play(&Scene::new(), &by_range("V1", 30, 4), |nth, fork, numbers| {
        chain.answer(fork, if nth == 3 { &[] } else { numbers })
    });
    assert_eq!(forks_of(&asked), ["amsterdam", "osaka", "prague", "amsterdam"]);
    assert!(matches!(relay(step), RelayReason::HeadMoved));
}

#[test]
fn body_02_a_pruned_block_within_the_range_is_null() {
    let (step, _) = play(&scene(), &by_range("V1", 15, 4), |_, fork, numbers| match fork {
        Fork::Cancun => Chain::new(&[]).answer(fork, numbers),
        _ => head_33().answer(fork, numbers),
    });
    let result = result(step);
    assert_eq!(result[0], Value::Null);
    assert_ne!(result[3], Value::Null);
}

/// The chain of six forks, whose EL offers that list of forks; what is asked in the end.
fn offering(forks: &[Fork], scene: Scene, request: &Value) -> (Scene, Call, Step) {
    let chain = six_forks();
    let scene = Scene { offer: Some(Offer::of_forks(forks)), ..scene };
    let (mut call, mut step) = scene.begin(request);
    while let Step::Send(exchange) = step {
        let fork = Fork::from_name(fork(&exchange)).unwrap();
        step = scene.hear(&mut call, chain.answer(fork, &numbers(&exchange.request)));
    }
    (scene, call, step)
}

/// Block 6 is of Amsterdam, block 1 of Paris.
const PARTS: [&[Fork]; 3] = [
    &[Fork::Paris, Fork::Shanghai, Fork::Cancun, Fork::Prague, Fork::Osaka],
    &[Fork::Prague, Fork::Osaka, Fork::Amsterdam],
    &[Fork::Paris, Fork::Amsterdam],
];

#[test]
fn a_body_of_a_fork_that_the_el_does_not_offer_is_asked_over_json_rpc() {
    for forks in PARTS {
        for request in [by_hash("V1", &[1, 6, 3]), by_range("V2", 1, 6)] {
            let (scene, mut call, step) = offering(forks, scene(), &request);
            match step {
                Step::Consult(Some(reason)) => assert_eq!(reason.label(), "era_not_offered"),
                step => panic!("{forks:?} {request}: {step:?}"),
            }
            let said = Said::JsonResult(bytes::Bytes::from_static(b"[ 7 ]"));
            match call.resume(said, scene.context()) {
                Step::Answer(Answer::Result(said)) => assert_eq!(said, "[ 7 ]"),
                step => panic!("{step:?}"),
            }
        }
    }
}

#[test]
fn a_body_of_a_fork_that_the_el_does_not_offer_is_null_if_there_is_no_json_rpc() {
    for request in [by_hash("V1", &[5, 6]), by_range("V1", 5, 2)] {
        let (scene, mut call, _) = offering(PARTS[0], scene(), &request);
        let step = call.resume(Said::NoJsonRpc, scene.context());
        assert_eq!(result(step), json!([six_forks().json("V1", 5), null]));
    }
}

#[test]
fn nobody_is_asked_for_more_once_every_body_is_found() {
    let (_, _, step) = offering(PARTS[0], scene(), &by_hash("V1", &[5, 4]));
    assert_eq!(result(step), json!([5, 4].map(|n| six_forks().json("V1", n))));
}

#[test]
fn a_fork_that_the_chain_has_not_reached_or_never_had_need_not_be_offered() {
    let genesis = r#"{"config":{"shanghaiTime":0,"cancunTime":0,"pragueTime":0,"osakaTime":10,"amsterdamTime":20,"bogotaTime":30}}"#;
    let memory = || Memory::new(Some(Schedule::from_genesis(genesis).unwrap()));
    let request = by_hash("V1", &[99]);
    let is_null = |memory: Memory, forks: &[Fork]| {
        let (_, _, step) = offering(forks, Scene { memory, ..Scene::new() }, &request);
        matches!(step, Step::Answer(Answer::Result(said)) if said == "[null]")
    };
    let osaka = [Fork::Prague, Fork::Osaka];
    let amsterdam = [Fork::Prague, Fork::Osaka, Fork::Amsterdam];
    assert!(!is_null(memory(), &osaka), "nothing tells that Amsterdam has not begun");
    assert!(is_null(memory(), &amsterdam), "there is no block older than Prague");
    for (time, forks, wanted) in [
        (19, &osaka[..], true),
        (20, &osaka, false),
        (20, &amsterdam, true),
        (19, &amsterdam[1..], false),
    ] {
        let memory = memory();
        memory.note_time(time, Fork::Paris);
        assert_eq!(is_null(memory, forks), wanted, "{time} {forks:?}");
    }
    let memory = memory();
    memory.note_time(30, Fork::Bogota);
    assert!(!is_null(memory, &amsterdam), "a fork that is not carried has begun");
}

#[test]
fn the_block_that_the_cl_spoke_of_last_tells_how_far_the_chain_is() {
    let request = by_hash("V1", &[99]);
    let none_missing = |scene: &Scene| {
        let (step, _) = play(scene, &request, |_, fork, n| Chain::new(&[]).answer(fork, n));
        matches!(step, Step::Answer(_))
    };
    let offer = Some(Offer::of_forks(PARTS[0]));
    let scene = Scene { offer, memory: Scene::scheduled().memory };
    assert!(!none_missing(&scene));
    scene.begin(&golden("12-osaka", "newPayload"));
    assert!(none_missing(&scene));
    // Relayed, as its fork is not offered.
    scene.relayed(&golden("15-amsterdam", "newPayload"));
    assert!(!none_missing(&scene));
    // An older block does not turn back the time.
    scene.begin(&golden("12-osaka", "newPayload"));
    assert!(!none_missing(&scene));
}

/// An EL that serves any block under any fork.
fn without_era_filter(fork: Fork, numbers: &[usize]) -> Response<bytes::Bytes> {
    Chain::new(&[fork; 40]).answer(fork, numbers)
}

#[test]
fn an_el_that_does_not_keep_to_the_fork_is_found_out_and_asked_over_json_rpc() {
    for request in [by_hash("V1", &[99, 7]), by_range("V1", 3, 4)] {
        let (step, asked) = play(&Scene::new(), &request, |_, fork, numbers| {
            let known: Vec<_> = numbers.to_vec();
            without_era_filter(fork, &known)
        });
        let reason = relay(step);
        assert!(reason.is_fault_of_el(), "{reason}");
        assert_eq!(forks_of(&asked), ["amsterdam", "osaka"]);
        assert_eq!(asked[1].1.len(), 1, "one body is enough to tell");
    }
}

#[test]
fn an_el_that_keeps_to_the_fork_is_tested_once() {
    let chain = six_forks();
    let scene = Scene::new();
    for exchanges in [2, 1] {
        let (step, asked) = play(&scene, &by_hash("V2", &[6]), |_, fork, n| chain.answer(fork, n));
        assert_eq!(result(step), json!([chain.json("V2", 6)]));
        assert_eq!(asked.len(), exchanges);
    }
    scene.memory.forget_process();
    let (_, asked) = play(&scene, &by_hash("V2", &[6]), |_, fork, n| chain.answer(fork, n));
    assert_eq!(asked.len(), 2, "another process may be another EL");
}

#[test]
fn a_piece_of_the_wrong_length_is_asked_over_json_rpc() {
    let chain = six_forks();
    for numbers in [&[][..], &[6], &[6, 6, 6]] {
        let (step, _) =
            play(&scene(), &by_hash("V1", &[6, 6]), |_, fork, _| chain.answer(fork, numbers));
        assert!(relay(step).is_fault_of_el());
    }
    let (step, _) = play(&scene(), &by_range("V1", 5, 1), |_, fork, _| chain.answer(fork, &[5, 6]));
    assert!(relay(step).is_fault_of_el());
}

#[test]
fn body_06_an_unavailable_entry_is_null_whatever_its_body_says() {
    let scene = of_one_fork(Fork::Osaka);
    let garbage = const_hex::decode("0400000004000000000500000008000000ffffff").unwrap();
    let (step, _) = play(&scene, &by_hash("V1", &[1]), |_, _, _| answer(200, SSZ, garbage.clone()));
    assert_eq!(result(step), json!([null]));
}

#[test]
fn a_refusal_is_asked_over_json_rpc() {
    for (status, name) in [
        (413, "request-too-large"),
        (422, "invalid-body"),
        (400, "unsupported-fork"),
        (500, "internal"),
    ] {
        for request in [by_hash("V1", &[1]), by_range("V2", 1, 1)] {
            let (step, _) = play(&scene(), &request, |_, _, _| problem(status, name));
            relay(step);
        }
    }
}
