//! BODY-01 to BODY-06: bodies of old blocks, which REST serves by era and JSON-RPC in one.

use crate::{
    chain::{Chain, fork, numbers, range},
    peer::{Peer, Reply, Seen},
    peers::{self, call, calls, in_front},
    scene::{Scene, hex, rpc},
};
use engine_ssz_proxy::{serve::Sidecar, wire::Fork};
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

fn by_hash(version: &str, numbers: impl IntoIterator<Item = u64>) -> Value {
    let hash = |number: u64| format!("0x{}", const_hex::encode([number as u8; 32]));
    let hashes: Vec<_> = numbers.into_iter().map(hash).collect();
    rpc(&format!("engine_getPayloadBodiesByHash{version}"), json!([hashes]))
}

fn by_range(start: u64, count: u64) -> Value {
    let params = json!([format!("{start:#x}"), format!("{count:#x}")]);
    rpc("engine_getPayloadBodiesByRangeV1", params)
}

/// What an EL offers that has those forks.
fn document(forks: &[Fork], at_once: usize) -> String {
    let forks: Vec<_> = forks.iter().map(|fork| fork.name()).collect();
    json!({"supported_forks": forks, "limits": {"bodies.max_count": at_once}}).to_string()
}

/// An EL of a chain of those forks that says `rest` to requests for bodies, with their number from 0.
async fn serving<F>(forks: &[Fork], at_once: usize, rest: F) -> (Peer, Sidecar)
where
    F: Fn(usize, &Seen) -> Reply + Clone + Send + Sync + 'static,
{
    serving_of(forks, forks, at_once, rest).await
}

/// The same with an EL that offers only some forks of its chain over REST.
async fn serving_of<F>(chain: &[Fork], forks: &[Fork], at_once: usize, rest: F) -> (Peer, Sidecar)
where
    F: Fn(usize, &Seen) -> Reply + Clone + Send + Sync + 'static,
{
    let count = Arc::new(AtomicUsize::new(0));
    let script = move |seen: Seen| {
        std::future::ready(match seen.path.as_str() {
            "/" => peers::by_json_rpc(&seen),
            _ => rest(count.fetch_add(1, Ordering::SeqCst), &seen),
        })
    };
    let el = Peer::start(peers::offering(document(forks, at_once), script)).await;
    let schedule = Some(peers::chain_of(chain));
    let sidecar = in_front(el.address, |config| config.schedule = schedule).await;
    (el, sidecar)
}

/// One era, so that each piece is one request.
async fn of_osaka(lengths: &'static [usize]) -> (Peer, Sidecar) {
    serving(&[Fork::Osaka], 32, move |nth, seen| {
        let length = lengths[nth.min(lengths.len() - 1)];
        Chain::new(&[(Fork::Osaka, length + 1)]).serve(seen)
    })
    .await
}

/// The ranges asked for.
fn ranges(el: &Peer) -> Vec<(u64, u64)> {
    calls(el).iter().filter(|seen| seen.path != "/").map(range).collect()
}

#[tokio::test]
async fn body_01_each_era_is_asked_for_what_is_missing_and_the_order_is_the_requests() {
    use Fork::*;
    let chain = Chain::new(&[
        (Paris, 2),
        (Shanghai, 1),
        (Cancun, 1),
        (Prague, 1),
        (Osaka, 1),
        (Amsterdam, 1),
    ]);
    let served = chain.clone();
    let (el, sidecar) = serving(&Fork::SPECIFIED, 32, move |_, seen| served.serve(seen)).await;
    for (round, version) in ["V1", "V2"].into_iter().enumerate() {
        let before = calls(&el).len();
        let said = call(&sidecar, by_hash(version, [1, 6, 99, 3, 1])).await;
        let wanted: Vec<_> = [1, 6, 99, 3, 1].map(|n| chain.json(version, n)).to_vec();
        assert_eq!(said["result"], json!(wanted), "{said}");
        let mut asked: Vec<_> =
            calls(&el)[before..].iter().map(|seen| (fork(seen), numbers(seen))).collect();
        if round == 0 {
            // Whether the EL keeps to the fork at all is tried with the first body it has.
            assert_eq!(asked.remove(1), (Osaka, vec![6]));
        }
        let wanted = [
            (Amsterdam, vec![1, 6, 99, 3, 1]),
            (Osaka, vec![1, 99, 3, 1]),
            (Prague, vec![1, 99, 3, 1]),
            (Cancun, vec![1, 99, 3, 1]),
            (Shanghai, vec![1, 99, 1]),
            (Paris, vec![1, 99, 1]),
        ];
        assert_eq!(asked, wanted);
    }
}

#[tokio::test]
async fn body_02_a_range_ends_at_the_head() {
    let chain = Chain::new(&[(Fork::Cancun, 17), (Fork::Prague, 17)]);
    let served = chain.clone();
    let forks = [Fork::Cancun, Fork::Prague];
    let (_el, sidecar) = serving(&forks, 32, move |_, seen| served.serve(seen)).await;
    for (start, count, wanted) in
        [(32, 2, 32..=33), (33, 32, 33..=33), (31, 3, 31..=33), (1, 32, 1..=32), (1, 64, 1..=33)]
    {
        let said = call(&sidecar, by_range(start, count)).await;
        assert_eq!(said["result"], chain.json_of(wanted), "{start} {count}");
    }
    assert_eq!(call(&sidecar, by_range(34, 5)).await["result"], json!([]));
    // Of the blocks within, those that the EL has no more are null.
    let pruned = chain.clone();
    let (_el, sidecar) = serving(&forks, 32, move |_, seen| match fork(seen) {
        Fork::Cancun => Chain::new(&[(Fork::Prague, 34)]).serve(seen),
        _ => pruned.serve(seen),
    })
    .await;
    let said = call(&sidecar, by_range(15, 4)).await;
    let is_null: Vec<_> = said["result"].as_array().unwrap().iter().map(Value::is_null).collect();
    assert_eq!(is_null, [true, true, false, false]);
}

#[tokio::test]
async fn body_01_body_02_an_era_that_the_el_does_not_offer_over_rest_is_asked_over_json_rpc() {
    let chain = Chain::new(&[(Fork::Cancun, 17), (Fork::Prague, 17)]);
    for offered in [Fork::Cancun, Fork::Prague] {
        let served = chain.clone();
        let forks = [Fork::Cancun, Fork::Prague];
        let (el, sidecar) =
            serving_of(&forks, &[offered], 32, move |_, seen| served.serve(seen)).await;
        for request in [by_range(15, 4), by_hash("V1", [15, 18])] {
            assert_eq!(call(&sidecar, &request).await["result"], "by JSON-RPC", "{offered}");
            assert_eq!(calls(&el).last().unwrap().body, request.to_string());
        }
        let own = if offered == Fork::Cancun { 15 } else { 18 };
        let said = call(&sidecar, by_range(own, 1)).await;
        assert_eq!(said["result"], chain.json_of(own..=own));
    }
}

#[tokio::test]
async fn body_03_zeros_are_the_els_to_refuse_and_numbers_go_out_in_decimal() {
    let (el, sidecar) = of_osaka(&[33]).await;
    for (start, count) in [(0, 1), (32, 0), (1, u64::MAX)] {
        let request = by_range(start, count);
        assert_eq!(call(&sidecar, &request).await["result"], "by JSON-RPC");
        assert_eq!(calls(&el).last().unwrap().body, request.to_string());
    }
    assert_eq!(ranges(&el), []);
    assert_eq!(call(&sidecar, by_range(u64::MAX, 32)).await["result"], json!([]));
    call(&sidecar, by_range(32, 2)).await;
    let paths = peers::paths(&el).split_off(3);
    assert_eq!(
        paths,
        [
            "/engine/v1/bodies?from=18446744073709551615&count=32",
            "/engine/v1/bodies?from=32&count=2"
        ]
    );
    // Without JSON-RPC there is nobody to say it but the sidecar.
    let scene = Scene::rest_only(|_: &_| crate::scene::ssz([4, 0, 0, 0])).await;
    for (start, count, code) in
        [(0, 1, -32602), (32, 0, -32602), (1, u64::MAX, -38004), (1, 1025, -38004)]
    {
        let said = scene.json(by_range(start, count)).await;
        assert_eq!(said["error"]["code"], code, "{start} {count}");
    }
    assert_eq!(scene.json(by_hash("V1", 1..=1025)).await["error"]["code"], -38004);
}

#[tokio::test]
async fn body_04_more_than_the_el_takes_at_once_goes_in_pieces_and_too_much_over_json_rpc() {
    let chain = Chain::new(&[(Fork::Osaka, 200)]);
    for (at_once, piece) in [(32, 32), (16, 16), (128, 32)] {
        for count in [33, 64, 128] {
            let served = chain.clone();
            let (el, sidecar) =
                serving(&[Fork::Osaka], at_once, move |_, seen| served.serve(seen)).await;
            let said = call(&sidecar, by_hash("V1", 1..=count)).await;
            assert_eq!(said["result"], chain.json_of(1..=count), "{at_once} {count}");
            let lengths: Vec<_> =
                calls(&el).iter().map(|seen| numbers(seen).len() as u64).collect();
            assert_eq!(lengths.iter().sum::<u64>(), count);
            assert!(lengths.iter().all(|length| *length <= piece), "{lengths:?}");
            assert_eq!(lengths.len() as u64, count.div_ceil(piece));
        }
    }
    let served = chain.clone();
    let (el, sidecar) = serving(&[Fork::Osaka], 32, move |_, seen| served.serve(seen)).await;
    let said = call(&sidecar, by_range(1, 0x40)).await;
    assert_eq!(said["result"], chain.json_of(1..=64));
    assert_eq!(ranges(&el), [(1, 32), (33, 32)]);
    assert_eq!(call(&sidecar, by_hash("V1", 1..=1025)).await["result"], "by JSON-RPC");
    assert_eq!(ranges(&el).len(), 2);

    let too_large = |_, _: &Seen| peers::problem(413, "request-too-large");
    let (el, sidecar) = serving(&[Fork::Osaka], 32, too_large).await;
    assert_eq!(call(&sidecar, by_hash("V1", 1..=33)).await["result"], "by JSON-RPC");
    assert_eq!(peers::paths(&el), ["/engine/v1/bodies/hash", "/"]);
}

#[tokio::test]
async fn body_05_a_head_that_moves_between_two_pieces_leaves_a_prefix_without_holes_at_its_end() {
    let chain = Chain::new(&[(Fork::Osaka, 100)]);
    for (heads, wanted, pieces) in
        [(&[60, 40][..], 40, 2), (&[60, 20], 32, 2), (&[20, 64], 20, 1), (&[40, 64], 64, 2)]
    {
        let (el, sidecar) = of_osaka(heads).await;
        let said = call(&sidecar, by_range(1, 64)).await;
        assert_eq!(said["result"], chain.json_of(1..=wanted), "{heads:?}");
        assert_eq!(ranges(&el).len(), pieces, "{heads:?}");
    }
    // Between two eras of one piece it cannot be told what belongs together.
    let forks = [Fork::Prague, Fork::Osaka];
    let (el, sidecar) = serving(&forks, 32, |nth, seen| {
        let length = if nth == 0 { 40 } else { 30 };
        Chain::new(&[(Fork::Prague, length)]).serve(seen)
    })
    .await;
    assert_eq!(call(&sidecar, by_range(25, 10)).await["result"], "by JSON-RPC");
    assert_eq!(ranges(&el), [(25, 10), (25, 10)]);
}

#[tokio::test]
async fn body_06_an_entry_that_is_not_available_is_null_whatever_its_body_says() {
    let two_lists = "05000000 08000000 08000000";
    let three_lists = "05000000 0c000000 0c000000 0c000000";
    let empty = json!({"transactions": [], "withdrawals": []});
    let mut empty_v2 = empty.clone();
    // No list is of no bytes (RLP has c0 for an empty one): this is one that the EL has no more.
    empty_v2["blockAccessList"] = Value::Null;
    for (fork, version, entry, wanted) in [
        (Fork::Cancun, "V1", format!("00 {two_lists}"), Value::Null),
        (Fork::Cancun, "V1", "00 05000000 ffffff".to_owned(), Value::Null),
        (Fork::Cancun, "V1", "00 05000000".to_owned(), Value::Null),
        (Fork::Cancun, "V1", format!("01 {two_lists}"), empty.clone()),
        (Fork::Amsterdam, "V2", format!("00 {three_lists}"), Value::Null),
        (Fork::Amsterdam, "V2", "00 05000000 00".to_owned(), Value::Null),
        (Fork::Amsterdam, "V1", format!("01 {three_lists}"), empty),
        (Fork::Amsterdam, "V2", format!("01 {three_lists}"), empty_v2),
    ] {
        let body = hex(&format!("04000000 04000000 {entry}"));
        let (el, sidecar) = serving(&[fork], 32, move |_, _| peers::ssz(&body)).await;
        let said = call(&sidecar, by_hash(version, [1])).await;
        assert_eq!(said["result"], json!([wanted]), "{fork:?} {entry}: {said}");
        assert_eq!(peers::paths(&el), ["/engine/v1/bodies/hash"]);
    }
    // What is said to be available has to be there.
    let body = hex("04000000 04000000 01 05000000 ffffff");
    let (_el, sidecar) = serving(&[Fork::Cancun], 32, move |_, _| peers::ssz(&body)).await;
    assert_eq!(call(&sidecar, by_hash("V1", [1])).await["result"], "by JSON-RPC");
}
