//! LIFE-01 to LIFE-09: ELs that come, go, and are not what they were.

use crate::{
    log::Log,
    peer::{Http1, Peer, Preface, Reply, Seen, patiently, reply},
    peers::{self, call, call_at, calls, in_front, in_front_of, unaware, until, until_rest},
    scene::{Scene, forkchoice, golden, rpc, scripted},
    support::{
        post,
        scripted_el::{self, ScriptedEl},
        settings, sidecar,
    },
};
use engine_ssz_proxy::{el::Resolver, serve::Sidecar};
use http::StatusCode;
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU16, AtomicUsize, Ordering},
    },
    time::Duration,
};

const ETH: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_syncing"}"#;
const PAYLOADS: &str = "/engine/v1/payloads";

fn new_payload() -> Value {
    golden("12-osaka-newPayload")
}

fn get_payload(version: &str, id: &str) -> Value {
    rpc(&format!("engine_getPayload{version}"), json!([id]))
}

/// An EL that has JSON-RPC alone.
fn json_alone(seen: &Seen) -> Reply {
    match seen.body.is_empty() || seen.path.starts_with("/engine/") {
        true => reply(404, ""),
        false => peers::by_json_rpc(seen),
    }
}

#[tokio::test]
async fn life_01_rest_that_has_moved_is_not_guessed_at_and_told_once() {
    let log = Log::of_this_thread();
    let el = Peer::start(|seen: Seen| async move {
        match seen.path.as_str() {
            "/engine/v2/capabilities" => peers::json(scripted_el::CAPABILITIES),
            _ => json_alone(&seen),
        }
    })
    .await;
    let sidecar = in_front(el.address, |config| {
        config.el.reprobe_interval = Duration::from_millis(1);
    })
    .await;
    for request in [new_payload(), forkchoice("V3", &[])] {
        assert_eq!(call(&sidecar, request).await["result"], "by JSON-RPC");
    }
    // Over both transports at the start, and over what is spoken now and then.
    el.until_seen("/engine/v1/capabilities", 6).await;
    assert!(el.seen().iter().all(|seen| !seen.path.starts_with("/engine/v2")));
    assert_eq!(peers::paths(&el).iter().filter(|path| *path != "/").count(), 0);
    let warnings = log.lines("WARN");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("/engine/v1") && warnings[0].contains("404"), "{warnings:?}");
    let carried = sidecar.proxy().tally().relays();
    assert_eq!(carried.get(&("engine_newPayloadV4", "no_rest")), Some(&1), "{carried:?}");
}

#[tokio::test]
async fn life_02_a_404_is_an_unknown_payload_only_in_the_words_of_the_specification() {
    let request = get_payload("V5", "0x0000000000000001");
    let path = "/engine/v1/payloads/0x0000000000000001";
    let unknown = || scripted_el::problem(404, "unknown-payload");
    // JSON-RPC may know what REST knows no more, and says it if not.
    let scene = Scene::learned(move |_: &scripted_el::Seen| unknown()).await;
    for _ in 0..2 {
        assert_eq!(scene.json(&request).await["result"], "by JSON-RPC");
    }
    assert_eq!(scene.paths(), [path, "/", path, "/"]);
    let scene = Scene::rest_only(move |_: &scripted_el::Seen| unknown()).await;
    for _ in 0..2 {
        assert_eq!(scene.json(&request).await["error"]["code"], -38001);
    }
    for (content_type, body) in [
        ("application/problem+json", r#"{"type":"/engine-api/errors/method-not-found"}"#),
        ("text/plain", "unknown engine ssz endpoint"),
        ("text/html", "<html>unknown-payload</html>"),
        ("application/json", r#"{"type":"/engine-api/errors/unknown-payload"}"#),
        ("", ""),
    ] {
        let rest = move |_: &scripted_el::Seen| match content_type {
            "" => axum::response::Response::builder().status(404).body(body.into()).unwrap(),
            _ => scripted_el::answer(404, content_type, body),
        };
        let scene = Scene::learned(rest).await;
        for _ in 0..2 {
            let said = scene.json(&request).await;
            assert_eq!(said["result"], "by JSON-RPC", "{content_type}: {said}");
        }
        assert_eq!(scene.paths(), [path, "/", "/"], "the route is absent, other routes are not");
        let before = scene.paths().len();
        scene.json(forkchoice("V3", &[])).await;
        assert_eq!(scene.paths()[before], "/engine/v1/forkchoice");
        // -38001 comes from JSON-RPC too, once it was asked.
        let refusing = |seen: &scripted_el::Seen| {
            crate::scene::json_rpc_error(seen, -38001, "Unknown payload")
        };
        let scene = Scene::with(rest, refusing, |_| {}).await;
        assert_eq!(scene.json(&request).await["error"]["code"], -38001);
    }
}

#[tokio::test]
async fn life_03_a_restart_is_asked_anew_and_a_start_is_not_an_el_without_rest() {
    // REST, then nothing but JSON-RPC at the same address.
    let old = Peer::start(peers::el(|seen| async move { peers::syncing(&seen) })).await;
    let address = old.address;
    let sidecar = in_front_of(&old).await;
    assert_eq!(call(&sidecar, new_payload()).await["result"]["status"], "SYNCING");
    old.stop().await;
    let starting = Arc::new(AtomicU16::new(503));
    let status = starting.clone();
    let new = Peer::at(address, Preface::Served, Http1::Served, move |seen: Seen| {
        let status = status.load(Ordering::SeqCst);
        async move {
            match status {
                200 => json_alone(&seen),
                status => reply(status, ""),
            }
        }
    })
    .await;
    for status in [503, 401, 503] {
        starting.store(status, Ordering::SeqCst);
        until(&sidecar, |surface| surface.why.contains(&status.to_string())).await;
        // The back-off after a 401 is long; a doubt ends it.
        let el = sidecar.proxy().el();
        el.doubt(el.surface().epoch);
    }
    starting.store(200, Ordering::SeqCst);
    let el = sidecar.proxy().el();
    el.doubt(el.surface().epoch);
    until(&sidecar, |surface| surface.why.contains("404")).await;
    assert_eq!(call(&sidecar, new_payload()).await["result"], "by JSON-RPC");
    let commands = || new.seen_on(PAYLOADS).len();
    assert_eq!(commands(), 0, "no command before the new process was asked");

    // And back: what was JSON-RPC alone is no fact of the address.
    new.stop().await;
    let last = Peer::at(
        address,
        Preface::Served,
        Http1::Served,
        peers::el(|seen| async move { peers::syncing(&seen) }),
    )
    .await;
    call(&sidecar, ETH).await;
    let el = sidecar.proxy().el();
    el.doubt(el.surface().epoch);
    until_rest(&sidecar).await;
    assert_eq!(call(&sidecar, new_payload()).await["result"]["status"], "SYNCING");
    assert_eq!(last.seen_on(PAYLOADS).len(), 1);

    // A start: statuses of an EL that is not ready leave the question open.
    for status in [401, 503] {
        let ready = Arc::new(AtomicUsize::new(0));
        let count = ready.clone();
        let el = Peer::start(move |seen: Seen| {
            let nth = count.load(Ordering::SeqCst);
            let serve = peers::el(|seen| async move { peers::syncing(&seen) });
            async move { if nth == 0 { reply(status, "") } else { serve(seen).await } }
        })
        .await;
        let sidecar = unaware(el.address, |_| {}).await;
        until(&sidecar, |surface| surface.why.contains(&status.to_string())).await;
        ready.store(1, Ordering::SeqCst);
        let door = sidecar.proxy().el();
        door.doubt(door.surface().epoch);
        until_rest(&sidecar).await;
    }
}

/// VALID for the head of [`forkchoice`], and a build.
fn building() -> Vec<u8> {
    let mut ssz = vec![8, 0, 0, 0, 49, 0, 0, 0, 0, 9, 0, 0, 0, 41, 0, 0, 0];
    ssz.extend([0x11; 32]);
    ssz.extend([7; 8]);
    ssz
}

#[tokio::test]
async fn life_04_an_el_that_dies_is_an_error_at_once_and_its_builds_die_with_it() {
    let script = || {
        peers::el(|seen: Seen| async move {
            match seen.path.as_str() {
                PAYLOADS => std::future::pending().await,
                "/engine/v1/forkchoice" => peers::ssz(building()),
                "/" => peers::by_json_rpc(&seen),
                _ => peers::problem(404, "unknown-payload"),
            }
        })
    };
    let old = Peer::start(script()).await;
    let address = old.address;
    let sidecar = in_front_of(&old).await;
    // A build of Paris, which is not the fork that getPayloadV2 is tried under first.
    let mut attributes = crate::scene::attributes(1);
    let members = attributes.as_object_mut().unwrap();
    members.remove("withdrawals");
    members.remove("parentBeaconBlockRoot");
    let said = call(&sidecar, forkchoice("V2", &[attributes])).await;
    assert_eq!(said["result"]["payloadId"], "0x0707070707070707", "{said}");
    let held = tokio::spawn(call_at(sidecar.address(), new_payload().to_string()));
    old.until_seen(PAYLOADS, 1).await;
    old.stop().await;
    let said = patiently(held).await.unwrap();
    assert_eq!(said["error"]["code"], -32603, "{said}");
    until(&sidecar, |surface| surface.rest.is_none()).await;

    let new = Peer::at(address, Preface::Served, Http1::Served, script()).await;
    assert_eq!(call(&sidecar, ETH).await["result"], "by JSON-RPC");
    until_rest(&sidecar).await;
    let said = call(&sidecar, get_payload("V2", "0x0707070707070707")).await;
    assert_eq!(said["result"], "by JSON-RPC", "{said}");
    let forks: Vec<_> = calls(&new)
        .iter()
        .filter_map(|seen| seen.header("eth-execution-version").map(str::to_owned))
        .collect();
    assert_eq!(forks, ["shanghai"], "nothing is remembered of the build");
}

/// An EL that has moved: the sidecar knows it by name.
#[tokio::test]
async fn life_03_an_el_back_at_another_address_and_with_another_surface_is_found_anew() {
    let full = || {
        peers::el(|seen: Seen| async move {
            match seen.path.as_str() {
                "/engine/v1/forkchoice" => peers::ssz(building()),
                "/" => peers::by_json_rpc(&seen),
                _ => peers::problem(404, "unknown-payload"),
            }
        })
    };
    let first = Peer::start(full()).await;
    let address = Arc::new(std::sync::Mutex::new(first.address));
    let known = address.clone();
    let sidecar = in_front(first.address, |config| {
        config.el.endpoint = "http://el.test:8551".parse().unwrap();
        config.el.resolver = Resolver::from_fn(move |_, _| Ok(vec![*known.lock().unwrap()]));
    })
    .await;
    until_rest(&sidecar).await;
    let mut attributes = crate::scene::attributes(1);
    let members = attributes.as_object_mut().unwrap();
    members.remove("withdrawals");
    members.remove("parentBeaconBlockRoot");
    let said = call(&sidecar, forkchoice("V2", &[attributes])).await;
    assert_eq!(said["result"]["payloadId"], "0x0707070707070707", "{said}");

    // Another address, and no REST.
    first.stop().await;
    until(&sidecar, |surface| surface.rest.is_none()).await;
    let second = Peer::start(|seen: Seen| async move { json_alone(&seen) }).await;
    *address.lock().unwrap() = second.address;
    let said = call(&sidecar, new_payload()).await;
    assert_eq!(said["result"], "by JSON-RPC", "the first call after it is back");
    until(&sidecar, |surface| surface.why.contains("404")).await;
    assert_eq!(second.seen_on(PAYLOADS).len(), 0);

    // A third, with REST: it is found, and nothing of the first one's builds is known.
    second.stop().await;
    let third = Peer::start(full()).await;
    *address.lock().unwrap() = third.address;
    assert_eq!(call(&sidecar, ETH).await["result"], "by JSON-RPC");
    let el = sidecar.proxy().el();
    el.doubt(el.surface().epoch);
    until_rest(&sidecar).await;
    let said = call(&sidecar, get_payload("V2", "0x0707070707070707")).await;
    assert_eq!(said["result"], "by JSON-RPC", "which may know what REST does not");
    let asked = third.seen_on("/engine/v1/payloads/0x0707070707070707");
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].header("eth-execution-version"), Some("shanghai"));
}

#[tokio::test]
async fn life_07_methods_that_mean_nothing_here_reach_the_el_as_they_are() {
    let scene = Scene::learned(crate::scene::syncing).await;
    let hash = format!("0x{}", "11".repeat(32));
    for (method, params) in [
        ("engine_getInclusionListV1", json!([hash])),
        ("engine_newPayloadV9", json!([])),
        ("engine_newPayloadWithWitnessV4", json!([{}])),
        ("engine_somethingNew", json!({"by": "name"})),
        // common.md, "Underlying protocol".
        ("eth_blockNumber", json!([])),
        ("eth_call", json!([{}, "latest"])),
        ("eth_chainId", json!([])),
        ("eth_getCode", json!([hash, "latest"])),
        ("eth_getBlockByHash", json!([hash, false])),
        ("eth_getBlockByNumber", json!(["0x1", false])),
        ("eth_getLogs", json!([{}])),
        ("eth_sendRawTransaction", json!(["0x"])),
        ("eth_syncing", json!([])),
        ("web3_clientVersion", json!([])),
        ("net_version", json!([])),
        ("testing_buildBlockV1", json!([])),
        ("nethermind_x", json!(null)),
        ("ENGINE_newPayloadV4", json!([])),
        ("", json!([])),
    ] {
        let call =
            format!(r#"{{"method":"{method}" , "id":"a","params":{params},"jsonrpc":"2.0"}}"#);
        scene.assert_relayed(call, method).await;
    }
    // An EL that does not know it says so itself.
    let refusing =
        |seen: &scripted_el::Seen| crate::scene::json_rpc_error(seen, -32601, "no such thing here");
    let scene = Scene::with(crate::scene::syncing, refusing, |_| {}).await;
    let said = scene.json(rpc("engine_somethingNew", json!([]))).await;
    assert_eq!(said["error"], json!({"code": -32601, "message": "no such thing here"}));
}

#[tokio::test]
async fn life_08_an_el_that_has_no_blobs_now_says_null_as_each_version_does() {
    let no_content = |_: &scripted_el::Seen| {
        axum::response::Response::builder().status(204).body(axum::body::Body::empty()).unwrap()
    };
    let null = |seen: &scripted_el::Seen| crate::scene::json_rpc_result(seen, "null");
    let scene = Scene::with(no_content, null, |_| {}).await;
    let hashes = json!([format!("0x01{}", "11".repeat(31)), format!("0x01{}", "22".repeat(31))]);
    for (version, path, wanted) in [
        // cancun.md has a null only in place of an element.
        ("V1", "/engine/v1/blobs/v1", json!([null, null])),
        ("V2", "/engine/v1/blobs/v2", Value::Null),
        ("V3", "/engine/v1/blobs/v3", Value::Null),
    ] {
        let before = scene.paths().len();
        let said = scene.json(rpc(&format!("engine_getBlobs{version}"), json!([hashes]))).await;
        assert_eq!(said.get("result"), Some(&wanted), "{version}");
        assert_eq!(scene.paths()[before..], [path], "{version}");
    }
    // Some ELs say 204 to every V4 and have the cells over JSON-RPC.
    let columns = format!("0x{}", "ff".repeat(16));
    let said = scene.json(rpc("engine_getBlobsV4", json!([hashes, columns]))).await;
    assert_eq!(said.get("result"), Some(&Value::Null));
    assert_eq!(scene.paths()[3..], ["/engine/v1/blobs/v4", "/"]);
}

async fn offering(document: &'static str) -> (ScriptedEl, Sidecar) {
    let script = scripted(
        |seen: &scripted_el::Seen| match seen.path.as_str() {
            // An empty list.
            "/engine/v1/bodies" => crate::scene::ssz([4, 0, 0, 0]),
            "/engine/v1/blobs/v1" => scripted_el::answer(204, "", ""),
            _ => crate::scene::syncing(seen),
        },
        crate::scene::by_json_rpc,
    );
    let el = ScriptedEl::start_offering(document, r#"{"id":0,"result":null}"#, script).await;
    let sidecar = sidecar(settings(el.address)).await;
    (el, sidecar)
}

#[tokio::test]
async fn life_09_a_document_is_read_for_what_it_says_and_nothing_is_made_of_the_rest() {
    let odd = r#"{"supported_forks":["paris","amsterdam","bogota"],"fork_scoped_endpoints":["payloads"],"independently_versioned":{},"limits":{"bodies.max_count":128,"payload.max_bytes":"67108864"},"x":1}"#;
    let paris = || {
        let request = golden("01-paris-newPayload");
        assert_eq!(request["method"], "engine_newPayloadV1", "{request}");
        request
    };
    let range = || rpc("engine_getPayloadBodiesByRangeV1", json!(["0x1", "0x1"]));
    let blobs = || rpc("engine_getBlobsV1", json!([[format!("0x01{}", "11".repeat(31))]]));
    let rest = |path: &'static str| format!("/engine/v1/{path}");
    for (document, wanted) in [
        // A listed route under a listed fork; all else over JSON-RPC.
        (odd, [rest("payloads"), "/".into(), "/".into(), "/".into(), "/".into()]),
        (
            r#"{"supported_forks":["paris","osaka"]}"#,
            [rest("payloads"), rest("payloads"), rest("forkchoice"), rest("bodies"), "/".into()],
        ),
        (
            r#"{"supported_forks":["paris"],"fork_scoped_endpoints":"payloads","independently_versioned":{"blobs":["v1",1]},"limits":{"payload.max_bytes":0}}"#,
            [rest("payloads"), "/".into(), rest("forkchoice"), rest("bodies"), rest("blobs/v1")],
        ),
        (r#"{"supported_forks":"paris"}"#, [(); 5].map(|()| "/".into())),
        (r#"["paris"]"#, [(); 5].map(|()| "/".into())),
        ("{} trailing", [(); 5].map(|()| "/".into())),
        ("<html>", [(); 5].map(|()| "/".into())),
        ("", [(); 5].map(|()| "/".into())),
    ] {
        let (el, sidecar) = offering(document).await;
        let requests = [paris(), new_payload(), forkchoice("V1", &[]), range(), blobs()];
        for (request, path) in requests.iter().zip(&wanted) {
            let before = el.paths().len();
            let answer = post(sidecar.address(), request.to_string()).await;
            assert_eq!(answer.status, StatusCode::OK);
            assert!(answer.json()["error"].is_null(), "{document}");
            let paths = el.paths().split_off(before);
            assert_eq!(paths, [path.as_str()], "{document}: {}", request["method"]);
        }
    }
    // Limits above those of the containers are those of the containers.
    let large = r#"{"supported_forks":["osaka"],"independently_versioned":{"blobs":["v3"]},"limits":{"bodies.max_count":128,"blobs.max_versioned_hashes":1000}}"#;
    let (el, sidecar) = offering(large).await;
    let hashes: Vec<_> = (0..64).map(|n| format!("0x{n:064x}")).collect();
    call(&sidecar, rpc("engine_getPayloadBodiesByHashV1", json!([hashes]))).await;
    let asked = el.seen().into_iter().find(|seen| seen.path == "/engine/v1/bodies/hash").unwrap();
    assert_eq!(asked.body.len(), 4 + 32 * 32);
    // A document of more than a megabyte is none.
    let huge = format!(r#"{{"supported_forks":["osaka"],"x":"{}"}}"#, "x".repeat(1 << 20));
    let (_, sidecar) = offering(huge.leak()).await;
    assert!(sidecar.proxy().el().surface().rest.is_none());
}
