//! FORK-01 to FORK-11: which fork header a call goes under.

use crate::{
    scene::{
        FORKCHOICE_SYNCING, Scene, attributes, by_json_rpc, changed, fork_header, forkchoice,
        genesis, golden, golden_ssz, hex, json_rpc_error, no_json_rpc, rpc, ssz, state, syncing,
        without,
    },
    support::{
        mock_config, post,
        scripted_el::{Seen, answer, problem},
        settings, sidecar,
    },
};
use axum::response::Response;
use engine_ssz_proxy::{
    config::Settings,
    mock_el::{Http, MockEl, Surface},
    serve::Sidecar,
};
use serde_json::{Value, json};
use std::path::PathBuf;

const FORKS: [&str; 6] = ["paris", "shanghai", "cancun", "prague", "osaka", "amsterdam"];

/// What went over REST: paths below the base with their fork headers.
fn headers(scene: &Scene) -> Vec<(String, String)> {
    let rest = scene.seen().into_iter().filter(|seen| seen.path != "/");
    rest.map(|seen| (seen.path.clone(), fork_header(&seen).to_owned())).collect()
}

fn forks(scene: &Scene) -> Vec<String> {
    headers(scene).into_iter().map(|(_, fork)| fork).collect()
}

/// An EL that knows its schedule: the golden chain's, a fork every 36 s. It takes a payload or
/// attributes under their own fork alone and finds each valid.
fn scheduled_el(seen: &Seen) -> Response {
    let is_payload = seen.path == "/engine/v1/payloads";
    // The payload begins where the envelope's offset says; attributes follow the state and two
    // offsets.
    let begin = match is_payload {
        true => u32::from_le_bytes(seen.body[..4].try_into().unwrap()) as usize,
        false if seen.body.len() > 104 => 104,
        false => return ssz(FORKCHOICE_SYNCING),
    };
    let at = if is_payload { begin + 428 } else { begin };
    let timestamp = u64::from_le_bytes(seen.body[at..at + 8].try_into().unwrap());
    let fork = FORKS[usize::try_from(timestamp / 36).unwrap().min(5)];
    if fork_header(seen) != fork {
        return problem(400, "unsupported-fork");
    }
    match is_payload {
        true => {
            let hash = &seen.body[begin + 472..begin + 504];
            ssz([&hex("00 09000000 29000000")[..], hash].concat())
        }
        false => ssz(FORKCHOICE_SYNCING),
    }
}

#[tokio::test]
async fn fork_01_the_timestamp_chooses_the_header_and_a_wrong_guess_is_mended_once() {
    let scene = Scene::scheduled(scheduled_el).await;
    for call in [
        golden("09-prague-newPayload"),
        golden("12-osaka-newPayload"),
        forkchoice("V3", &[attributes(80)]),
        forkchoice("V3", &[attributes(120)]),
        forkchoice("V3", &[attributes(150)]),
    ] {
        scene.carried(call).await;
    }
    assert_eq!(forks(&scene), ["prague", "osaka", "cancun", "prague", "osaka"]);

    // Without a schedule the newest goes first; what is found out is kept.
    let scene = Scene::learned(scheduled_el).await;
    for block in ["09-prague", "10-prague", "12-osaka", "13-osaka"] {
        let said = scene.json(golden(&format!("{block}-newPayload"))).await;
        assert_eq!(said["result"]["status"], "VALID", "{block}");
    }
    assert_eq!(forks(&scene), ["osaka", "prague", "prague", "prague", "osaka", "osaka"]);
    assert!(scene.paths().iter().all(|path| path == "/engine/v1/payloads"));

    // When neither will do, it is the EL's to say, or with no JSON-RPC the sidecar's.
    let never = |_: &Seen| problem(400, "unsupported-fork");
    let says = |seen: &Seen| json_rpc_error(seen, -38005, "Unsupported fork");
    for scene in
        [Scene::with(never, says, |_| {}).await, Scene::with(never, no_json_rpc, |_| {}).await]
    {
        let said = scene.json(golden("12-osaka-newPayload")).await;
        assert_eq!(said["error"]["code"], -38005, "{said}");
        let payloads = "/engine/v1/payloads";
        assert_eq!(scene.paths(), [payloads, payloads, "/"]);
        assert_eq!(forks(&scene), ["osaka", "prague"]);
    }
}

#[tokio::test]
async fn fork_03_a_newer_method_on_an_older_head_is_a_success_under_any_supported_fork() {
    for (version, supported, fork) in [
        ("V3", &FORKS[..], "osaka"),
        ("V2", &FORKS[..], "shanghai"),
        ("V4", &FORKS[..], "amsterdam"),
        // The EL calls all but one fork unsupported for now.
        ("V3", &FORKS[3..4], "prague"),
    ] {
        let rest = move |seen: &Seen| match supported.contains(&fork_header(seen)) {
            true => ssz(FORKCHOICE_SYNCING),
            false => problem(400, "unsupported-fork"),
        };
        for after_state in [&[][..], &[Value::Null]] {
            let scene = Scene::scheduled(rest).await;
            let said = scene.json(forkchoice(version, after_state)).await;
            assert_eq!(said["result"]["payloadStatus"]["status"], "SYNCING", "{version}");
            let seen = scene.seen().pop().unwrap();
            assert_eq!(fork_header(&seen), fork);
            if version != "V4" {
                assert_eq!(seen.body, [&[0x11; 96][..], &hex("64000000")].concat());
            }
        }
    }
    // The head's own fork, where it is known.
    let scene = Scene::scheduled(scheduled_el).await;
    let shanghai = golden("03-shanghai-newPayload");
    scene.carried(&shanghai).await;
    let call = changed(
        forkchoice("V3", &[Value::Null]),
        "/params/0/headBlockHash",
        shanghai["params"][0]["blockHash"].clone(),
    );
    let seen = scene.carried(call).await;
    assert_eq!((fork_header(&seen), seen.body.len()), ("shanghai", 100));
}

/// An EL that keeps the rules of both protocols, and a sidecar in front of it.
struct Chain {
    mock: MockEl,
    sidecar: Sidecar,
}

impl Chain {
    async fn new(schedule: Option<PathBuf>) -> Self {
        let mock = MockEl::start(mock_config(Surface::RestAndJson, Http::Both)).await.unwrap();
        let settings = Settings { genesis: schedule, ..settings(mock.addr()) };
        let sidecar = sidecar(settings).await;
        Self { mock, sidecar }
    }

    async fn call(&self, call: &Value) -> Value {
        post(self.sidecar.address(), call.to_string()).await.json()
    }

    fn genesis(&self) -> Value {
        json!(self.mock.genesis_hash().to_string())
    }

    /// A forkchoice to that head.
    fn forkchoice(&self, version: &str, head: &Value, after_state: &[Value]) -> Value {
        let state = json!({
            "headBlockHash": head, "safeBlockHash": self.genesis(),
            "finalizedBlockHash": self.genesis(),
        });
        changed(forkchoice(version, after_state), "/params/0", state)
    }

    /// The id of a build on that head.
    async fn build(&self, head: &Value, version: &str, attributes: Value) -> Value {
        let said = self.call(&self.forkchoice(version, head, &[attributes])).await;
        assert!(said["result"]["payloadId"].is_string(), "{said}");
        said["result"]["payloadId"].clone()
    }

    /// Path and fork header of the last request.
    fn last(&self) -> (String, String) {
        let seen = self.mock.log().pop().unwrap();
        (seen.path, seen.fork_header.unwrap_or_default())
    }

    /// Fork headers of the forkchoices that came over REST.
    fn forkchoices(&self) -> Vec<String> {
        let log = self.mock.log().into_iter().filter(|seen| seen.path == "/engine/v1/forkchoice");
        log.filter_map(|seen| seen.fork_header).collect()
    }
}

fn get_payload(version: &str, id: &Value) -> Value {
    rpc(&format!("engine_getPayload{version}"), json!([id]))
}

#[tokio::test]
async fn fork_04_attributes_of_a_wrong_shape_get_the_els_own_code() {
    let chain = Chain::new(None).await;
    let genesis = chain.genesis();
    let without_root = |timestamp| without(attributes(timestamp), "", "parentBeaconBlockRoot");
    let mut null_root = attributes(40);
    null_root["parentBeaconBlockRoot"] = Value::Null;
    let custody = json!(format!("0x{}", "ff".repeat(15)));
    let broken = |value: Value| {
        changed(chain.forkchoice("V3", &genesis, &[]), "/params/0/safeBlockHash", value)
    };
    for (what, call, code) in [
        ("no root", chain.forkchoice("V3", &genesis, &[without_root(40)]), -38003),
        ("null root", chain.forkchoice("V3", &genesis, &[null_root]), -38003),
        ("Shanghai in V3", chain.forkchoice("V3", &genesis, &[attributes(40)]), -38005),
        ("Cancun in V2", chain.forkchoice("V2", &genesis, &[without_root(80)]), -38005),
        ("half a hash", broken(json!("0x11")), -32602),
        ("no hash", broken(Value::Null), -32602),
        ("no state", rpc("engine_forkchoiceUpdatedV3", json!([Value::Null])), -32602),
        ("custody", chain.forkchoice("V4", &genesis, &[Value::Null, custody]), -32602),
    ] {
        let said = chain.call(&call).await;
        assert_eq!(said["error"]["code"], code, "{what}: {said}");
        assert_eq!(chain.last().0, "/", "{what}: the EL's JSON-RPC has said it");
    }
    // With the schedule none of them is sent over REST at all.
    let calls = [
        forkchoice("V3", &[without_root(40)]),
        forkchoice("V3", &[attributes(40)]),
        forkchoice("V2", &[without_root(80)]),
    ];
    for call in calls {
        Scene::scheduled(syncing).await.assert_relayed(&call, "of a wrong shape").await;
    }
}

#[tokio::test]
async fn fork_07_withdrawals_null_or_absent_are_paris_and_a_list_is_shanghai() {
    let paris = || changed(golden("01-paris-newPayload"), "/method", json!("engine_newPayloadV2"));
    let mut null = paris();
    null["params"][0]["withdrawals"] = Value::Null;
    let empty = changed(golden("03-shanghai-newPayload"), "/params/0/withdrawals", json!([]));
    for scene in [Scene::learned(syncing).await, Scene::scheduled(syncing).await] {
        for call in [&null, &paris()] {
            let seen = scene.carried(call).await;
            assert_eq!(fork_header(&seen), "paris");
            assert_eq!(seen.body, golden_ssz("01-paris-newPayload"));
        }
        let seen = scene.carried(&empty).await;
        assert_eq!(fork_header(&seen), "shanghai");
        // 512 bytes of fixed part: the offset of the withdrawals is the end.
        let end = u32::try_from(seen.body.len() - 4).unwrap();
        assert_eq!(seen.body[4 + 508..4 + 512], end.to_le_bytes());
        // A method's own shape, the other's timestamp: the EL's to refuse.
        let call = changed(null.clone(), "/params/0/timestamp", json!("0x30"));
        if scene.sidecar.proxy().knows_schedule() {
            scene.assert_relayed(call, "Paris payload of Shanghai").await;
        }
    }

    let built = |seen: &Seen| match fork_header(seen) {
        "paris" => ssz(golden_ssz("01-paris-getPayload")),
        _ => problem(400, "unsupported-fork"),
    };
    let wrapped = golden("01-paris-getPayload")["result"].clone();
    assert!(wrapped["executionPayload"].get("withdrawals").is_none());
    let id = json!("0x0000000000000001");
    for (version, wanted, asked) in [
        ("V1", &wrapped["executionPayload"], &["paris"][..]),
        ("V2", &wrapped, &["shanghai", "paris"]),
    ] {
        let scene = Scene::scheduled(built).await;
        assert_eq!(&scene.json(get_payload(version, &id)).await["result"], wanted);
        assert_eq!(forks(&scene), asked);
    }
}

#[tokio::test]
async fn fork_08_a_build_is_had_through_its_own_method_and_no_other_also_after_a_restart() {
    let mut chain = Chain::new(None).await;
    let id = chain.build(&chain.genesis(), "V3", attributes(120)).await;
    for run in ["first", "restarted"] {
        for (version, fork) in [("V3", "cancun"), ("V5", "osaka")] {
            let said = chain.call(&get_payload(version, &id)).await;
            assert_eq!(said["error"]["code"], -38005, "{run} {version}: {said}");
            let seen = chain.mock.log();
            let rest = &seen[seen.len() - 2];
            assert_eq!(rest.fork_header.as_deref(), Some(fork));
            assert_eq!(seen[seen.len() - 1].path, "/");
        }
        let said = chain.call(&get_payload("V4", &id)).await;
        assert_eq!(said["result"]["executionPayload"]["timestamp"], "0x78", "{run}: {said}");
        let path = format!("/engine/v1/payloads/{}", id.as_str().unwrap());
        assert_eq!(chain.last(), (path, "prague".to_owned()));
        // The id is known to nobody but the EL from now on.
        chain.sidecar = sidecar(settings(chain.mock.addr())).await;
    }
    // V2 remembers which of its two forks it was, or tries both.
    let paris = without(without(attributes(12), "", "withdrawals"), "", "parentBeaconBlockRoot");
    let shanghai = without(attributes(40), "", "parentBeaconBlockRoot");
    for (attributes, fork) in [(paris, "paris"), (shanghai, "shanghai")] {
        let id = chain.build(&chain.genesis(), "V2", attributes).await;
        let before = chain.mock.log().len();
        assert!(chain.call(&get_payload("V2", &id)).await["result"].is_object());
        assert_eq!(chain.mock.log().len(), before + 1, "{fork}");
        assert_eq!(chain.last().1, fork);
        chain.sidecar = sidecar(settings(chain.mock.addr())).await;
        assert!(chain.call(&get_payload("V2", &id)).await["result"].is_object());
        assert_eq!(chain.last().1, fork);
    }

    // An EL that says it in plain text.
    let plain = |_: &Seen| answer(500, "text/plain", "Unsupported fork");
    let says = |seen: &Seen| json_rpc_error(seen, -38005, "Unsupported fork");
    let scene = Scene::with(plain, says, |_| {}).await;
    let said = scene.json(get_payload("V5", &json!("0x0000000000000001"))).await;
    assert_eq!(said["error"]["code"], -38005);
    assert_eq!(scene.paths(), ["/engine/v1/payloads/0x0000000000000001", "/"]);
}

#[tokio::test]
async fn fork_09_a_blob_parameter_fork_goes_under_the_named_fork_below_it() {
    let mut with_bpo: Value = serde_json::from_slice(&std::fs::read(genesis()).unwrap()).unwrap();
    for (name, time) in [("bpo1Time", 148), ("bpo2Time", 160), ("bpo3Time", 190)] {
        with_bpo["config"][name] = json!(time);
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), with_bpo.to_string()).unwrap();
    let scene = Scene::with(syncing, by_json_rpc, |settings| {
        settings.genesis = Some(file.path().to_owned());
    })
    .await;
    for (timestamp, fork) in [(147, "osaka"), (148, "osaka"), (161, "osaka"), (179, "osaka")] {
        let timestamp = json!(format!("{timestamp:#x}"));
        let call = changed(golden("13-osaka-newPayload"), "/params/0/timestamp", timestamp);
        let seen = scene.carried(call).await;
        assert_eq!(seen.headers.get_all("eth-execution-version").iter().count(), 1);
        assert_eq!(fork_header(&seen), fork);
    }
    let late = changed(golden("15-amsterdam-newPayload"), "/params/0/timestamp", json!("0xc0"));
    assert_eq!(fork_header(&scene.carried(late).await), "amsterdam");
    for block in ["01-paris", "03-shanghai", "06-cancun", "09-prague", "12-osaka", "15-amsterdam"] {
        let seen = scene.carried(golden(&format!("{block}-newPayload"))).await;
        assert_eq!(fork_header(&seen), &block[3..], "one of the six names, in lower case");
    }
}

#[tokio::test]
async fn fork_10_the_first_block_of_a_fork_goes_under_its_own_fork_and_not_its_parents() {
    // Without a schedule the fork that the chain was last seen in is tried first.
    for (schedule, asked) in [(Some(genesis()), &["osaka"][..]), (None, &["prague", "osaka"])] {
        let chain = Chain::new(schedule).await;
        // The last block of Prague becomes the head.
        let id = chain.build(&chain.genesis(), "V3", attributes(132)).await;
        let built = chain.call(&get_payload("V4", &id)).await["result"].clone();
        let head = built["executionPayload"]["blockHash"].clone();
        assert_eq!(chain.call(&submission(&built)).await["result"]["status"], "VALID");
        let said = chain.call(&chain.forkchoice("V3", &head, &[Value::Null])).await;
        assert_eq!(said["result"]["payloadStatus"]["status"], "VALID", "{said}");

        let before = chain.forkchoices().len();
        let id = chain.build(&head, "V3", attributes(144)).await;
        assert_eq!(chain.forkchoices()[before..], *asked);
        let built = chain.call(&get_payload("V5", &id)).await["result"].clone();
        assert_eq!(chain.last().1, "osaka");
        assert_eq!(built["executionPayload"]["parentHash"], head);
        assert_eq!(chain.call(&submission(&built)).await["result"]["status"], "VALID");
        assert_eq!(chain.last(), ("/engine/v1/payloads".to_owned(), "osaka".to_owned()));
    }

    // Blobs of V1 are asked for as such until Osaka begins; then JSON-RPC is to say that they ended,
    // also where REST serves them on.
    let hash = state("01")["headBlockHash"].clone();
    let blobs = rpc("engine_getBlobsV1", json!([[hash]]));
    let before = |_: &Seen| answer(204, "application/octet-stream", "");
    let scene = Scene::learned(before).await;
    assert_eq!(scene.json(&blobs).await["result"], json!([null]));
    assert_eq!(headers(&scene), [("/engine/v1/blobs/v1".to_owned(), String::new())]);
    let serving_on = move |seen: &Seen| match seen.path.as_str() {
        "/engine/v1/payloads" => syncing(seen),
        _ => before(seen),
    };
    let says = |seen: &Seen| json_rpc_error(seen, -38005, "Unsupported fork");
    let change = |settings: &mut Settings| settings.genesis = Some(genesis());
    let scene = Scene::with(serving_on, says, change).await;
    for (spoken, paths) in [
        ("09-prague-newPayload", ["/engine/v1/payloads", "/engine/v1/blobs/v1"]),
        ("12-osaka-newPayload", ["/engine/v1/payloads", "/"]),
    ] {
        let before = scene.paths().len();
        scene.json(golden(spoken)).await;
        let said = scene.json(&blobs).await;
        assert_eq!(scene.paths()[before..], paths, "{spoken}: {said}");
    }
    assert_eq!(scene.json(&blobs).await["error"]["code"], -38005);
    // Nothing tells where the chain is, and the EL refuses.
    let after = |_: &Seen| problem(400, "unsupported-fork");
    let scene = Scene::with(after, says, |_| {}).await;
    assert_eq!(scene.json(&blobs).await["error"]["code"], -38005);
    assert_eq!(scene.paths(), ["/engine/v1/blobs/v1", "/"]);
}

/// `engine_newPayloadV4` of that build.
fn submission(built: &Value) -> Value {
    use sha2::{Digest, Sha256};
    let commitments = built["blobsBundle"]["commitments"].as_array().unwrap();
    let hashes: Vec<_> = commitments
        .iter()
        .map(|commitment| {
            let mut hash = Sha256::digest(const_hex::decode(commitment.as_str().unwrap()).unwrap());
            // EIP-4844, VERSIONED_HASH_VERSION_KZG.
            hash[0] = 1;
            const_hex::encode_prefixed(hash)
        })
        .collect();
    let root = attributes(0)["parentBeaconBlockRoot"].clone();
    let (payload, requests) = (&built["executionPayload"], &built["executionRequests"]);
    rpc("engine_newPayloadV4", json!([payload, hashes, root, requests]))
}

#[tokio::test]
async fn fork_11_a_payload_id_is_eight_opaque_bytes_in_lower_case() {
    let rest = |_: &Seen| problem(404, "unknown-payload");
    for (id, path) in [
        ("0x00000000000000AA", "0x00000000000000aa"),
        ("0xFFfFffFFffffFFff", "0xffffffffffffffff"),
        ("0x0000000000000000", "0x0000000000000000"),
    ] {
        let scene = Scene::rest_only(rest).await;
        let said = scene.json(get_payload("V5", &json!(id))).await;
        assert_eq!(said["error"]["code"], -38001);
        assert_eq!(scene.paths(), [format!("/engine/v1/payloads/{path}"), "/".to_owned()]);
    }
    for id in [
        json!("0xAA"),
        json!("0x1"),
        json!(format!("0x{}", "ab".repeat(16))),
        json!("00000000000000aa"),
        json!("0x00000000000000g1"),
        json!("../../../identity"),
        json!(1),
        json!(null),
    ] {
        let call = get_payload("V5", &id);
        Scene::learned(rest).await.assert_relayed(&call, &id.to_string()).await;
        let alone = Scene::rest_only(rest).await;
        assert_eq!(alone.json(&call).await["error"]["code"], -32602, "{id}");
        assert_eq!(alone.paths(), ["/"]);
    }
    // The one that the EL gave is the one it is asked for.
    let hash = "11".repeat(32);
    let said = hex(&format!("08000000 31000000 00 09000000 29000000 {hash} 0a0b0c0d0e0f0001"));
    let rest = move |seen: &Seen| match seen.path.as_str() {
        "/engine/v1/forkchoice" => ssz(&said),
        _ => problem(404, "unknown-payload"),
    };
    let scene = Scene::learned(rest).await;
    let id = scene.json(forkchoice("V3", &[attributes(150)])).await["result"]["payloadId"].clone();
    scene.json(get_payload("V5", &id)).await;
    assert_eq!(scene.paths()[1], "/engine/v1/payloads/0x0a0b0c0d0e0f0001");
}
