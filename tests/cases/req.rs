//! REQ-01 to REQ-06: execution requests, bounds, block access lists, attributes.

use crate::{
    scene::{
        Scene, amsterdam_attributes, attributes, changed, fork_header, forkchoice, golden,
        golden_ssz, hex, json_rpc_error, json_rpc_result, rpc, ssz, state, syncing, without,
    },
    support::{
        mock_config, post,
        scripted_el::{Seen, problem},
        settings, sidecar,
    },
};
use engine_ssz_proxy::mock_el::{Http, MockEl, Surface};
use serde_json::{Value, json};

#[tokio::test]
async fn req_01_requests_that_json_rpc_refuses_are_never_made_a_rest_invalid() {
    let with = |requests: Value| changed(golden("12-osaka-newPayload"), "/params/3", requests);
    let scene = Scene::scheduled(syncing).await;
    for (requests, region) in [
        (json!([]), ""),
        (json!(["0xffaa"]), "04000000 ffaa"),
        (json!(["0x00bb", "0x01aa"]), "08000000 0a000000 00bb 01aa"),
    ] {
        let body = scene.carried(with(requests)).await.body;
        // The last of the envelope's three parts.
        let at = u32::from_le_bytes(body[36..40].try_into().unwrap()) as usize;
        assert_eq!(body[at..], hex(region), "the type stays inside each element");
    }
    for requests in [
        json!(["0x"]),
        json!(["0x00"]),
        json!(["0x01aa", "0x00bb"]),
        json!(["0x02aa", "0x02aa"]),
        Value::Null,
    ] {
        let what = requests.to_string();
        scene.assert_relayed(with(requests.clone()), &what).await;
        let alone = Scene::rest_only(syncing).await;
        assert_eq!(alone.json(with(requests)).await["error"]["code"], -32602, "{what}");
    }
}

#[tokio::test]
async fn req_02_a_build_of_an_older_draft_shows_in_its_first_offset() {
    for (block, version, fixed, override_at) in [
        ("01-paris", "V2", 0x24, None),
        ("03-shanghai", "V2", 0x24, None),
        ("06-cancun", "V3", 0x29, Some(40)),
        ("09-prague", "V4", 0x2d, Some(44)),
    ] {
        let golden = golden_ssz(&format!("{block}-getPayload"));
        assert_eq!(golden[..4], [fixed, 0, 0, 0], "{block}");
        let call = rpc(&format!("engine_getPayload{version}"), json!(["0x0000000000000001"]));
        let own = crate::scene::golden(&format!("{block}-getPayload"))["result"].clone();
        let fork = block[3..].to_owned();
        let built = golden.clone();
        let rest = move |seen: &Seen| match fork_header(seen) == fork {
            true => ssz(&built),
            false => problem(400, "unsupported-fork"),
        };
        let said = Scene::learned(rest).await.json(&call).await;
        assert_eq!(said["result"], own, "{block}");

        // The same without the flag, without the requests, or with a word more in front of it.
        for other in [fixed - 4, fixed - 1, fixed + 4, 0] {
            let mut older = golden.clone();
            older[0] = other;
            let scene = Scene::learned(move |_: &Seen| ssz(&older)).await;
            assert_eq!(scene.json(&call).await["result"], "by JSON-RPC", "{block} {other}");
        }
        if let Some(at) = override_at {
            let mut older = golden.clone();
            older.remove(at);
            older[0] -= 1;
            let scene = Scene::learned(move |_: &Seen| ssz(&older)).await;
            assert_eq!(scene.json(&call).await["result"], "by JSON-RPC", "{block}");
        }
    }
}

#[tokio::test]
async fn req_03_more_than_the_bounds_is_an_invalid_block_of_the_els_saying() {
    let withdrawal = json!({
        "index": "0x0", "validatorIndex": "0x0",
        "address": format!("0x{}", "55".repeat(20)), "amount": "0x1",
    });
    let requests: Vec<_> = (0..=256).map(|n| format!("0x{:02x}aa", n.min(255))).collect();
    let invalid =
        r#"{"status":"INVALID","latestValidHash":null,"validationError":"the EL's words"}"#;
    for (what, call) in [
        (
            "17 withdrawals",
            changed(
                golden("03-shanghai-newPayload"),
                "/params/0/withdrawals",
                json!(vec![withdrawal.clone(); 17]),
            ),
        ),
        (
            "33 bytes of extra data",
            changed(
                golden("03-shanghai-newPayload"),
                "/params/0/extraData",
                json!(format!("0x{}", "01".repeat(33))),
            ),
        ),
        ("257 requests", changed(golden("12-osaka-newPayload"), "/params/3", json!(requests))),
        (
            "1 048 577 transactions",
            changed(
                golden("03-shanghai-newPayload"),
                "/params/0/transactions",
                json!(vec!["0x"; (1 << 20) + 1]),
            ),
        ),
    ] {
        let says = move |seen: &Seen| json_rpc_result(seen, invalid);
        let scene = Scene::with(syncing, says, |_| {}).await;
        let call = call.to_string();
        let said = scene.json(&call).await;
        assert_eq!(said["result"]["validationError"], "the EL's words", "{what}");
        let seen = scene.seen();
        assert_eq!(seen.len(), 1, "{what}");
        assert_eq!(seen[0].path, "/", "{what}");
        assert!(seen[0].body == call, "{what}: nothing is cut off");
    }
    let scene = Scene::scheduled(syncing).await;
    // As many as there may be are carried.
    let full = changed(
        golden("03-shanghai-newPayload"),
        "/params/0/withdrawals",
        json!(vec![withdrawal; 16]),
    );
    scene
        .carried(changed(full, "/params/0/extraData", json!(format!("0x{}", "01".repeat(32)))))
        .await;
    // So is slot 2^63: SSZ has the room for it, and the bounds of consensus are not the sidecar's.
    let slot = changed(
        golden("15-amsterdam-newPayload"),
        "/params/0/slotNumber",
        json!("0x8000000000000000"),
    );
    scene.carried(slot).await;

    // The EL's answers are held to the same bounds.
    let withdrawals = vec![0; 17 * 44];
    let end = u32::try_from(12 + withdrawals.len()).unwrap().to_le_bytes();
    let body =
        [&hex("04000000 04000000 01 05000000 0c000000 0c000000")[..], &end, &withdrawals].concat();
    let scene = Scene::learned(move |_: &Seen| ssz(&body)).await;
    let call = rpc("engine_getPayloadBodiesByHashV2", json!([[state("11")["headBlockHash"]]]));
    assert_eq!(scene.json(call).await["result"], "by JSON-RPC");
}

#[tokio::test]
async fn req_04_a_block_access_list_is_bytes_to_the_sidecar() {
    let golden = || golden("15-amsterdam-newPayload");
    let with = |list: Value| changed(golden(), "/params/0/blockAccessList", list);
    let scene = Scene::scheduled(|_: &Seen| ssz(hex("01 09000000 09000000"))).await;
    for list in ["0xff00ff", "0x", "0xc0"] {
        let before = scene.seen().len();
        let said = scene.json(with(json!(list))).await;
        assert_eq!(said["result"]["status"], "INVALID", "{list}");
        assert_eq!(scene.paths()[before..], ["/engine/v1/payloads"], "{list}");
        let body = scene.seen().pop().unwrap().body;
        // In the payload, which begins after 40 bytes and ends where the requests begin.
        let at = u32::from_le_bytes(body[40 + 528..40 + 532].try_into().unwrap()) as usize;
        let end = u32::from_le_bytes(body[36..40].try_into().unwrap()) as usize;
        assert_eq!(body[40 + at..end], hex(&list[2..]), "{list}");
    }
    for (what, call) in [
        ("missing", without(golden(), "/params/0", "blockAccessList")),
        ("null", with(Value::Null)),
        ("odd", with(json!("0xabc"))),
        ("a list", with(json!([]))),
    ] {
        scene.assert_relayed(&call, what).await;
        let alone = Scene::rest_only(syncing).await;
        assert_eq!(alone.json(&call).await["error"]["code"], -32602, "{what}");
    }
}

#[tokio::test]
async fn req_05_attributes_of_amsterdam_have_two_members_more_and_no_other_have_them() {
    let scene = Scene::scheduled(syncing).await;
    // State, one offset, the `Optional`'s own, 60 bytes of attributes.
    for (timestamp, fork) in [(80, "cancun"), (120, "prague"), (150, "osaka")] {
        let seen = scene.carried(forkchoice("V3", &[attributes(timestamp)])).await;
        assert_eq!(fork_header(&seen), fork);
        assert_eq!(seen.body[96..104], hex("64000000 04000000"));
        assert_eq!(seen.body[104 + 60..104 + 64], hex("60000000"));
        assert_eq!(seen.body.len(), 104 + 96);
    }
    let most = changed(amsterdam_attributes(), "/targetGasLimit", json!("0xffffffffffffffff"));
    let seen = scene.carried(forkchoice("V4", &[most])).await;
    assert_eq!(fork_header(&seen), "amsterdam");
    // The attributes come first, then custody columns that are not there.
    assert_eq!(seen.body[96..108], hex("68000000 dc000000 04000000"));
    assert_eq!(seen.body[108 + 60..108 + 64], hex("70000000"));
    assert_eq!(seen.body[108 + 96..], [&[0x10, 0, 0, 0, 0, 0, 0, 0][..], &[0xff; 8]].concat());

    let incomplete = without(amsterdam_attributes(), "", "targetGasLimit");
    let mut with_slot = attributes(150);
    with_slot["slotNumber"] = json!("0x1");
    for (version, attributes) in [("V4", incomplete), ("V3", with_slot), ("V4", attributes(190))] {
        let call = forkchoice(version, &[attributes]);
        let says = |seen: &Seen| json_rpc_error(seen, -38003, "Invalid payload attributes");
        let scene = Scene::with(syncing, says, |_| {}).await;
        assert_eq!(scene.json(&call).await["error"]["code"], -38003);
        assert_eq!(scene.paths(), ["/"]);
    }

    // An EL that keeps the rules says so by itself.
    let mock = MockEl::start(mock_config(Surface::RestAndJson, Http::Both)).await.unwrap();
    let sidecar = sidecar(settings(mock.addr())).await;
    let genesis = json!(mock.genesis_hash().to_string());
    let call = forkchoice("V4", &[without(amsterdam_attributes(), "", "targetGasLimit")]);
    let call = changed(
        call,
        "/params/0",
        json!({
            "headBlockHash": genesis, "safeBlockHash": genesis, "finalizedBlockHash": genesis
        }),
    );
    let said = post(sidecar.address(), call.to_string()).await.json();
    assert_eq!(said["error"]["code"], -38003);
    assert!(mock.log().iter().all(|seen| seen.path != "/engine/v1/forkchoice"));
}

#[tokio::test]
async fn req_06_zero_hashes_are_copied_and_never_filled_in() {
    let zero = json!(format!("0x{}", "00".repeat(32)));
    let scene = Scene::scheduled(syncing).await;
    // What there is to be remembered.
    scene.carried(forkchoice("V3", &[])).await;
    let mut call = forkchoice("V3", &[Value::Null]);
    call["params"][0]["safeBlockHash"] = zero.clone();
    call["params"][0]["finalizedBlockHash"] = zero.clone();
    let body = scene.carried(&call).await.body;
    assert_eq!(body, [&[0x11; 32][..], &[0; 64], &hex("64000000")].concat());

    call["params"][0]["headBlockHash"] = zero;
    let body = scene.carried(&call).await.body;
    assert_eq!(body, [&[0; 96][..], &hex("64000000")].concat());
    let refuses = |_: &Seen| problem(409, "invalid-forkchoice");
    let scene = Scene::scheduled(refuses).await;
    assert_eq!(scene.json(&call).await["error"]["code"], -38002);
    assert_eq!(scene.paths(), ["/engine/v1/forkchoice"]);
}
