//! The JSON-RPC envelope and the rules of the method versions (common.md to amsterdam.md).

use alloy_primitives::B256;
use serde_json::{Value, json};

use super::{
    client::{Peer, config, start},
    conversation::{attributes, beacon_root, json_block, state, valid, version, whole_chain},
};

const NOWHERE: B256 = B256::repeat_byte(0xee);

#[tokio::test]
async fn the_id_comes_back_byte_for_byte_and_the_keys_in_order() {
    let el = start(config()).await;
    let peer = Peer::h1(&el);
    for id in ["1", "1.0", "-0", "1e2", "\"\\u0061\"", "null", "18446744073709551616", "[ 1 ]"] {
        let request = format!(r#"{{"id": {id} ,"method":"eth_syncing","jsonrpc":"2.0"}}"#);
        let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":false}}"#);
        assert_eq!(peer.text(request).await.body, expected);
    }
    let unknown = r#"{"jsonrpc":"2.0","id":"x","method":"engine_newPayloadV9","params":[]}"#;
    let expected = r#"{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"Method not found: engine_newPayloadV9"}}"#;
    assert_eq!(peer.text(unknown).await.body, expected);
}

#[tokio::test]
async fn what_is_no_request_is_told_apart() {
    let el = start(config()).await;
    let peer = Peer::h2(&el);
    let cases = [
        ("{", -32700, "null"),
        ("", -32700, "null"),
        ("\u{feff}{}", -32700, "null"),
        ("[]", -32600, "null"),
        ("7", -32600, "null"),
        ("{}", -32600, "null"),
        (r#"{"id":3,"method":"eth_syncing"}"#, -32600, "3"),
        (r#"{"jsonrpc":"1.0","id":3,"method":"eth_syncing"}"#, -32600, "3"),
        (r#"{"jsonrpc":"2.0","id":3,"method":7}"#, -32600, "3"),
        (r#"{"jsonrpc":"2.0","id":3,"method":"eth_syncing","method":"x"}"#, -32600, "3"),
        (r#"{"jsonrpc":"2.0","id":3,"method":"eth_syncing","params":{}}"#, -32602, "3"),
    ];
    for (body, code, id) in cases {
        let answer = peer.text(body).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.json()["error"]["code"], code, "{body}");
        assert_eq!(answer.json()["id"].to_string(), id, "{body}");
    }
}

#[tokio::test]
async fn a_batch_is_answered_in_order_without_its_notifications() {
    let el = start(config()).await;
    let peer = Peer::h1(&el);
    let batch = r#" [{"jsonrpc":"2.0","id":2,"method":"eth_chainId"},
        {"jsonrpc":"2.0","method":"eth_syncing"}, 5,
        {"jsonrpc":"2.0","id":1,"method":"eth_nothing"}]"#;
    let answer = peer.text(batch).await.json();
    let ids: Vec<_> = answer.as_array().unwrap().iter().map(|one| one["id"].to_string()).collect();
    assert_eq!(ids, ["2", "null", "1"]);
    assert_eq!(answer[0]["result"], "0x539");
    assert_eq!(answer[1]["error"]["code"], -32600);
    assert_eq!(answer[2]["error"]["code"], -32601);
    for notification in [
        r#"{"jsonrpc":"2.0","method":"eth_syncing"}"#,
        r#"[{"jsonrpc":"2.0","method":"eth_syncing"},{"jsonrpc":"2.0","method":"x"}]"#,
    ] {
        let answer = peer.text(notification).await;
        assert_eq!((answer.status.as_u16(), answer.body.len()), (200, 0));
    }
}

#[tokio::test]
async fn every_capability_is_a_method_and_the_exchange_itself_is_none() {
    let el = start(config()).await;
    let peer = Peer::h1(&el);
    let exchange = "engine_exchangeCapabilities";
    let list = peer.result(exchange, json!([["engine_newPayloadV1"]])).await;
    let names: Vec<_> =
        list.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(names.len(), 24);
    assert!(!names.contains(&exchange));
    for name in names {
        assert_eq!(peer.error_code(name, json!([])).await, -32602, "{name}");
    }
    for params in [json!([]), json!(["engine_newPayloadV1"]), json!([null])] {
        assert_eq!(peer.error_code(exchange, params).await, -32602);
    }
    assert_eq!(peer.error_code("engine_getClientVersionV1", json!([7])).await, -32602);
    let gone = "engine_exchangeTransitionConfigurationV1";
    assert_eq!(peer.error_code(gone, json!([{}])).await, -32601);
}

#[tokio::test]
async fn a_payload_fits_only_the_new_payload_versions_of_its_fork() {
    let el = start(config()).await;
    let chain = whole_chain(&el).await;
    let peer = Peer::h1(&el);
    // For a block of each fork, what V1 to V5 say: valid, wrong fork, wrong parameters.
    const PARAMS: i64 = -32602;
    const FORK: i64 = -38005;
    let table: [(u64, [i64; 5]); 6] = [
        (1, [0, 0, PARAMS, PARAMS, PARAMS]),
        (4, [PARAMS, 0, PARAMS, PARAMS, PARAMS]),
        (7, [PARAMS, PARAMS, 0, FORK, PARAMS]),
        (10, [PARAMS, PARAMS, FORK, 0, PARAMS]),
        (13, [PARAMS, PARAMS, FORK, 0, PARAMS]),
        (16, [PARAMS, PARAMS, PARAMS, PARAMS, 0]),
    ];
    for (number, expected) in table {
        let built = &chain[number as usize - 1];
        let payload = built.params(number)[0].clone();
        let full = [
            payload,
            json!(built.versioned_hashes()),
            json!(beacon_root(number)),
            json!(built.requests),
        ];
        for (version, expected) in (1..).zip(expected) {
            let params = match version {
                1 | 2 => &full[..1],
                3 => &full[..3],
                _ => &full[..],
            };
            let method = format!("engine_newPayloadV{version}");
            let answer = peer.call(&method, json!(params)).await;
            let code = answer["error"]["code"].as_i64().unwrap_or_default();
            assert_eq!(code, expected, "{method}, block {number}: {answer}");
            if expected == 0 {
                assert_eq!(answer["result"], json!(valid(built.payload.block_hash())));
            }
        }
    }
}

#[tokio::test]
async fn the_structure_must_be_that_of_the_fork_where_a_version_has_two() {
    let el = start(config()).await;
    let (_, paris) = json_block(&Peer::h1(&el), 1, el.genesis_hash()).await;
    let peer = Peer::h1(&el);
    let with = |timestamp: &str, withdrawals: Value| {
        let mut payload = paris.params(1)[0].clone();
        payload["timestamp"] = json!(timestamp);
        payload["withdrawals"] = withdrawals;
        json!([payload])
    };
    // Null counts as absent.
    assert_eq!(
        peer.result("engine_newPayloadV2", with("0xc", json!(null))).await["status"],
        "VALID"
    );
    for (timestamp, withdrawals, code) in
        [("0xc", json!([]), -32602), ("0x24", json!(null), -32602), ("0x48", json!([]), -38005)]
    {
        let params = with(timestamp, withdrawals);
        assert_eq!(peer.error_code("engine_newPayloadV2", params).await, code, "{timestamp}");
    }
    assert_eq!(peer.error_code("engine_newPayloadV1", with("0x24", json!(null))).await, -38005);
}

#[tokio::test]
async fn missing_null_and_surplus_parameters_are_invalid() {
    let el = start(config()).await;
    let chain = whole_chain(&el).await;
    let peer = Peer::h1(&el);
    for number in [7, 10, 16] {
        let method = version("newPayload", number);
        let Value::Array(full) = chain[number as usize - 1].params(number) else { panic!() };
        for index in 0..full.len() {
            assert_eq!(peer.error_code(&method, json!(full[..index])).await, -32602);
            let mut nulled = full.clone();
            nulled[index] = Value::Null;
            assert_eq!(peer.error_code(&method, json!(nulled)).await, -32602);
        }
        let surplus = [full.clone(), vec![json!([])]].concat();
        assert_eq!(peer.error_code(&method, json!(surplus)).await, -32602);
        let trailing_null = [full, vec![Value::Null]].concat();
        assert_eq!(peer.result(&method, json!(trailing_null)).await["status"], "VALID");
    }
    let mut params = chain[15].params(16);
    params[0].as_object_mut().unwrap().remove("blockAccessList");
    assert_eq!(peer.error_code("engine_newPayloadV5", params).await, -32602);
}

#[tokio::test]
async fn execution_requests_ascend_and_have_content() {
    let el = start(config()).await;
    let chain = whole_chain(&el).await;
    let peer = Peer::h1(&el);
    let mut params = chain[9].params(10);
    for wrong in
        [json!(["0x"]), json!(["0x01"]), json!(["0x0200", "0x0100"]), json!(["0x0100", "0x0100"])]
    {
        params[3] = wrong;
        assert_eq!(
            peer.error_code("engine_newPayloadV4", params.clone()).await,
            -32602,
            "{}",
            params[3]
        );
    }
    params[3] = json!(["0x0001", "0x0101"]);
    let status = peer.result("engine_newPayloadV4", params).await;
    assert_eq!(status["status"], "INVALID", "legal, but not this block's");
}

#[tokio::test]
async fn expected_blob_hashes_are_compared_at_once_even_on_an_unknown_parent() {
    let el = start(config()).await;
    let chain = whole_chain(&el).await;
    // An EL that has none of the blocks before.
    let other = start(config()).await;
    let peer = Peer::h1(&other);
    let built = &chain[12];
    let hashes = built.versioned_hashes();
    assert_eq!(hashes.len(), 3);
    let mut params = built.params(13);
    assert_eq!(peer.result("engine_newPayloadV4", params.clone()).await["status"], "SYNCING");
    let swapped = [hashes[1], hashes[0], hashes[2]];
    for wrong in [&hashes[..2], &[], &swapped, &[hashes.clone(), vec![NOWHERE]].concat()] {
        params[1] = json!(wrong);
        let status = peer.result("engine_newPayloadV4", params.clone()).await;
        assert_eq!(status["status"], "INVALID", "{wrong:?}");
        assert_eq!(status["latestValidHash"], Value::Null);
    }
}

#[tokio::test]
async fn attributes_fit_only_the_forkchoice_versions_of_their_fork() {
    let el = start(config()).await;
    let peer = Peer::h1(&el);
    let head = state(el.genesis_hash());
    const ATTRIBUTES: i64 = -38003;
    const FORK: i64 = -38005;
    // Attributes in the shape of a fork, at the time of a fork: what V1 to V4 say.
    let table: [(u64, u64, [i64; 4]); 9] = [
        (1, 1, [0, 0, ATTRIBUTES, ATTRIBUTES]),
        (1, 3, [FORK, ATTRIBUTES, ATTRIBUTES, ATTRIBUTES]),
        (3, 1, [ATTRIBUTES, ATTRIBUTES, ATTRIBUTES, ATTRIBUTES]),
        (3, 3, [ATTRIBUTES, 0, ATTRIBUTES, ATTRIBUTES]),
        (3, 6, [ATTRIBUTES, FORK, ATTRIBUTES, ATTRIBUTES]),
        (6, 6, [ATTRIBUTES, ATTRIBUTES, 0, ATTRIBUTES]),
        (6, 12, [ATTRIBUTES, ATTRIBUTES, 0, ATTRIBUTES]),
        (6, 15, [ATTRIBUTES, ATTRIBUTES, FORK, ATTRIBUTES]),
        (15, 12, [ATTRIBUTES, ATTRIBUTES, ATTRIBUTES, FORK]),
    ];
    for (shape, time, expected) in table {
        let mut attributes = attributes(shape);
        attributes.timestamp = 12 * time;
        for (version, expected) in (1..).zip(expected) {
            let method = format!("engine_forkchoiceUpdatedV{version}");
            let answer = peer.call(&method, json!([head, attributes])).await;
            let code = answer["error"]["code"].as_i64().unwrap_or_default();
            assert_eq!(code, expected, "{method} {shape} {time}: {answer}");
        }
    }
    for version in 1..=4 {
        for params in [json!([head]), json!([head, null])] {
            let method = format!("engine_forkchoiceUpdatedV{version}");
            let answer = peer.result(&method, params).await;
            assert_eq!(answer["payloadId"], Value::Null);
        }
    }
}

#[tokio::test]
async fn attributes_do_not_count_on_an_unknown_head_and_never_undo_the_head() {
    let el = start(config()).await;
    let chain = whole_chain(&el).await;
    let peer = Peer::h1(&el);
    let broken = json!({"timestamp": "0x1"});
    let answer = peer.result("engine_forkchoiceUpdatedV3", json!([state(NOWHERE), broken])).await;
    let syncing = json!({"status": "SYNCING", "latestValidHash": null, "validationError": null});
    assert_eq!(answer, json!({"payloadStatus": syncing, "payloadId": null}));
    for (number, attributes) in
        [(9, broken), (10, json!(attributes(10))), (11, json!(attributes(15)))]
    {
        let head = chain[number as usize - 1].payload.block_hash();
        let params = json!([state(head), attributes]);
        assert_eq!(peer.error_code("engine_forkchoiceUpdatedV3", params).await, -38003);
        let at = peer.result("eth_blockNumber", json!([])).await;
        assert_eq!(at, json!(format!("0x{number:x}")));
    }
    let not_an_object = json!([state(NOWHERE), 7]);
    assert_eq!(peer.error_code("engine_forkchoiceUpdatedV3", not_an_object).await, -32602);
    assert_eq!(peer.error_code("engine_forkchoiceUpdatedV3", json!([{}])).await, -32602);
}

#[tokio::test]
async fn inconsistent_states_and_deep_reorgs_have_their_codes() {
    let el = start(config()).await;
    let chain = whole_chain(&el).await;
    let peer = Peer::h1(&el);
    let at = |number: usize| chain[number - 1].payload.block_hash();
    let state = |head: B256, safe: B256, finalized: B256| json!([{"headBlockHash": head, "safeBlockHash": safe, "finalizedBlockHash": finalized}]);
    let method = "engine_forkchoiceUpdatedV4";
    assert_eq!(peer.error_code(method, state(B256::ZERO, at(1), at(1))).await, -38002);
    assert_eq!(peer.error_code(method, state(at(5), at(6), B256::ZERO)).await, -38002);
    assert_eq!(peer.error_code(method, state(at(5), NOWHERE, B256::ZERO)).await, -38002);
    peer.result(method, state(at(9), at(8), at(7))).await;
    assert_eq!(peer.error_code(method, state(at(6), at(6), at(6))).await, -38006);
}

#[tokio::test]
async fn custody_columns_are_sixteen_bytes_in_the_fourth_version_alone() {
    let el = start(config()).await;
    let peer = Peer::h1(&el);
    let head = state(el.genesis_hash());
    let columns = format!("0x{}", "01".repeat(16));
    let with = |columns: &str| json!([head, null, columns]);
    let method = "engine_forkchoiceUpdatedV4";
    assert_eq!(peer.result(method, with(&columns)).await["payloadStatus"]["status"], "VALID");
    assert_eq!(peer.result(method, json!([head, null, null])).await["payloadId"], Value::Null);
    for wrong in ["0x", "0x01", &format!("{columns}01")] {
        assert_eq!(peer.error_code(method, with(wrong)).await, -32602);
    }
    assert_eq!(peer.error_code("engine_forkchoiceUpdatedV3", with(&columns)).await, -32602);
}

#[tokio::test]
async fn a_built_payload_is_served_by_the_version_of_its_fork_alone() {
    let el = start(config()).await;
    let peer = Peer::h1(&el);
    let (mut head, mut ids) = (el.genesis_hash(), Vec::new());
    for number in 1..=15 {
        let (id, built) = json_block(&peer, number, head).await;
        head = built.payload.block_hash();
        ids.push(id);
    }
    for (number, served) in [(1, "12"), (3, "2"), (6, "3"), (9, "4"), (12, "5"), (15, "6")] {
        for version in 1..=6 {
            let method = format!("engine_getPayloadV{version}");
            let answer = peer.call(&method, json!([ids[number - 1]])).await;
            if served.contains(&version.to_string()) {
                assert!(answer["result"].is_object(), "{method} block {number}");
            } else {
                assert_eq!(answer["error"]["code"], -38005, "{method} block {number}");
            }
        }
    }
    assert_eq!(peer.error_code("engine_getPayloadV6", json!(["0x0000000000000001"])).await, -38001);
    assert_eq!(peer.error_code("engine_getPayloadV6", json!(["0x01"])).await, -32602);
}

#[tokio::test]
async fn a_block_that_breaks_a_rule_is_invalid_with_its_parent_as_last_valid() {
    let el = start(config()).await;
    let peer = Peer::h1(&el);
    let (_, first) = json_block(&peer, 1, el.genesis_hash()).await;
    let (_, second) = json_block(&peer, 2, first.payload.block_hash()).await;
    // The EL itself tells the hash the broken block has.
    let rehash = async |mut payload: Value| {
        let status = peer.result("engine_newPayloadV1", json!([payload])).await;
        let error = status["validationError"].as_str().unwrap().to_owned();
        let hash = error.split("want ").nth(1).unwrap().split(',').next().unwrap();
        payload["blockHash"] = json!(hash);
        payload
    };
    let good = second.params(2)[0].clone();
    for (member, value) in
        [("blockNumber", "0x3"), ("timestamp", "0xc"), ("gasUsed", "0xffffffffff")]
    {
        let mut payload = good.clone();
        payload[member] = json!(value);
        let payload = rehash(payload).await;
        let status = peer.result("engine_newPayloadV1", json!([payload])).await;
        assert_eq!(status["status"], "INVALID", "{member}");
        assert_eq!(status["latestValidHash"], json!(first.payload.block_hash()), "{member}");

        let bad = &payload["blockHash"];
        let state = json!({"headBlockHash": bad, "safeBlockHash": bad, "finalizedBlockHash": bad});
        let answer = peer.result("engine_forkchoiceUpdatedV1", json!([state])).await;
        assert_eq!(answer["payloadStatus"]["status"], "INVALID");
        let mut child = good.clone();
        child["parentHash"] = bad.clone();
        let status = peer.result("engine_newPayloadV1", json!([rehash(child).await])).await;
        assert_eq!(status["status"], "INVALID", "a child of {member}");
        assert_eq!(status["latestValidHash"], json!(first.payload.block_hash()));
    }
}

#[tokio::test]
async fn what_a_cl_reads_beside_the_engine_api_is_there() {
    let el = start(config()).await;
    let chain = whole_chain(&el).await;
    let peer = Peer::h1(&el);
    let last = &chain[16];
    let latest = peer.result("eth_getBlockByNumber", json!(["latest", false])).await;
    let by_hash =
        peer.result("eth_getBlockByHash", json!([last.payload.block_hash(), false])).await;
    let by_number = peer.result("eth_getBlockByNumber", json!(["0x11", false])).await;
    assert_eq!(latest, by_hash);
    assert_eq!(latest, by_number);
    assert_eq!(latest["parentHash"], json!(chain[15].payload.block_hash()));
    assert_eq!(latest["transactions"].as_array().unwrap().len(), last.payload.transactions().len());
    assert_eq!(latest["slotNumber"], "0x3f9");
    assert_eq!(latest["parentBeaconBlockRoot"], json!(beacon_root(17)));
    for (method, params, expected) in [
        ("eth_getBlockByNumber", json!(["0x12", false]), Value::Null),
        ("eth_getBlockByNumber", json!(["safe", false]), Value::Null),
        ("eth_getBlockByHash", json!([NOWHERE, false]), Value::Null),
        ("eth_syncing", json!([]), json!(false)),
        ("eth_getLogs", json!([{}]), json!([])),
        ("eth_call", json!([{}, "latest"]), json!("0x")),
        ("net_version", json!([]), json!("1337")),
    ] {
        assert_eq!(peer.result(method, params).await, expected, "{method}");
    }
    let code = peer
        .result("eth_getCode", json!(["0x000f3df6d732807ef1319fb7b8bb8522d0beac02", "latest"]))
        .await;
    assert!(code.as_str().unwrap().starts_with("0x3373"));
    assert_eq!(peer.error_code("eth_getBlockByNumber", json!(["tomorrow"])).await, -32602);
}
