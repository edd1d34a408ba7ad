//! JSON-01 to JSON-16: the text of the calls and of their answers.

use crate::{
    raw::Connection,
    scene::{
        Scene, amsterdam_attributes, assert_same, attributes, changed, fork_header, forkchoice,
        golden, golden_ssz, hex, json_rpc_error, json_rpc_result, rpc, ssz, syncing, without,
    },
    support::scripted_el::{Seen, answer, json as json_answer},
};
use axum::response::Response;
use http::StatusCode;
use serde_json::{Value, json};

/// That message with all hex digits in upper case, `0x` left as it is.
fn upper_case(message: &Value) -> String {
    let text = message.to_string();
    let mut strings = text.split('"').map(str::to_owned).collect::<Vec<_>>();
    for string in strings.iter_mut().filter(|string| string.starts_with("0x")) {
        *string = format!("0x{}", string[2..].to_ascii_uppercase());
    }
    strings.join("\"")
}

#[tokio::test]
async fn json_01_hex_digits_of_any_case_are_the_same_bytes_and_come_back_in_lower_case() {
    let attributes = json!({
        "timestamp": "0xc", "prevRandao": format!("0x{}", "ab".repeat(32)),
        "suggestedFeeRecipient": "0xabcdefabcdefabcdefabcdefabcdefabcdefabcd",
    });
    let forkchoice = changed(
        forkchoice("V1", &[attributes]),
        "/params/0/headBlockHash",
        json!(format!("0x{}", "ab".repeat(32))),
    );
    let mixed = forkchoice
        .to_string()
        .replace("0xabcdefabcdefabcdef", "0xabCDefaBCdeFABcdEF")
        .replace(r#""0xc""#, r#""0xC""#);
    let valid =
        [&hex("08000000 31000000 00 09000000 29000000")[..], &[0xab; 32], &hex("ABCDEF0000000000")];
    // `payload_id` is `Optional`: its region begins after a status of 9 + 32 bytes.
    let valid = valid.concat();
    let scene = Scene::scheduled(move |seen: &Seen| match seen.path.as_str() {
        "/engine/v1/forkchoice" => ssz(&valid),
        _ => syncing(seen),
    })
    .await;
    for (lower, other) in [
        (forkchoice.to_string(), upper_case(&forkchoice)),
        (forkchoice.to_string(), mixed),
        (golden("01-paris-newPayload").to_string(), upper_case(&golden("01-paris-newPayload"))),
        (
            golden("15-amsterdam-newPayload").to_string(),
            upper_case(&golden("15-amsterdam-newPayload")),
        ),
    ] {
        assert_ne!(lower, other);
        let wanted = scene.carried(lower).await;
        let got = scene.carried(other).await;
        assert_eq!(got.path, wanted.path);
        assert_same(&got.body, &wanted.body, &got.path);
    }
    let said = scene.json(upper_case(&forkchoice)).await["result"].clone();
    assert_eq!(said["payloadStatus"]["latestValidHash"], format!("0x{}", "ab".repeat(32)));
    assert_eq!(said["payloadId"], "0xabcdef0000000000");

    let prefix = forkchoice.to_string().replace("0xabab", "0Xabab");
    scene.assert_relayed(&prefix, "0X").await;
    let alone = Scene::rest_only(syncing).await;
    assert_eq!(alone.json(prefix).await["error"]["code"], -32602);
    assert_eq!(alone.paths(), ["/"], "asked of JSON-RPC, not sent over REST");
}

#[tokio::test]
async fn json_02_leading_zeros_are_never_normalised_but_left_to_the_el() {
    let payload = || golden("03-shanghai-newPayload");
    for message in [
        changed(forkchoice("V3", &[attributes(150)]), "/params/1/timestamp", json!("0x00")),
        changed(payload(), "/params/0/gasLimit", json!("0x01c9c380")),
        changed(payload(), "/params/0/baseFeePerGas", json!("0x07")),
        changed(
            payload(),
            "/params/0/withdrawals",
            json!([{"index": "0x0", "validatorIndex": "0x0",
                "address": format!("0x{}", "55".repeat(20)), "amount": "0x0400"}]),
        ),
    ] {
        Scene::scheduled(syncing).await.assert_relayed(&message, "leading zero").await;
        let refuses = |seen: &Seen| json_rpc_error(seen, -32602, "hex number with leading zeros");
        let scene = Scene::with(syncing, refuses, |_| {}).await;
        let said = scene.json(&message).await;
        assert_eq!(said["error"]["message"], "hex number with leading zeros");
        let alone = Scene::rest_only(syncing).await;
        assert_eq!(alone.json(&message).await["error"]["code"], -32602);
        assert!(alone.seen().iter().all(|seen| seen.path == "/"));
    }
}

#[tokio::test]
async fn json_03_a_bare_0x_is_empty_data_and_no_quantity() {
    let payload = || golden("01-paris-newPayload");
    let scene = Scene::scheduled(syncing).await;
    // Offsets of `extra_data` and `transactions` in the payload of Paris, which is 508 bytes, after
    // that of the envelope.
    let extra_data = changed(payload(), "/params/0/extraData", json!("0x"));
    let body = scene.carried(extra_data).await.body;
    assert_eq!(&body[4 + 436..4 + 440], &body[4 + 504..4 + 508], "no extra data before the list");
    let transaction = changed(payload(), "/params/0/transactions", json!(["0x"]));
    let body = scene.carried(transaction).await.body;
    assert!(body.ends_with(&[4, 0, 0, 0]), "{:?}", &body[500..]);

    for (pointer, value) in [
        ("/params/0/baseFeePerGas", "0x"),
        ("/params/0/gasUsed", "0x"),
        ("/params/0/blockHash", "0x"),
        ("/params/0/blockHash", "0x11"),
        ("/params/0/feeRecipient", "0x"),
    ] {
        let message = changed(payload(), pointer, json!(value));
        scene.assert_relayed(&message, pointer).await;
        let alone = Scene::rest_only(syncing).await;
        assert_eq!(alone.json(&message).await["error"]["code"], -32602, "{pointer}");
    }
}

#[tokio::test]
async fn json_04_odd_digits_are_not_padded_and_an_id_has_all_sixteen() {
    for (message, pointer) in [
        (golden("01-paris-newPayload"), "/params/0/extraData"),
        (golden("01-paris-newPayload"), "/params/0/parentHash"),
        (golden("01-paris-newPayload"), "/params/0/transactions/0"),
        (forkchoice("V1", &[]), "/params/0/headBlockHash"),
        (rpc("engine_getPayloadV5", json!([0])), "/params/0"),
    ] {
        let message = changed(message, pointer, json!("0xabc"));
        Scene::scheduled(syncing).await.assert_relayed(&message, pointer).await;
        let alone = Scene::rest_only(syncing).await;
        assert_eq!(alone.json(&message).await["error"]["code"], -32602, "{pointer}");
    }

    let own = r#"{"payloadStatus":{"status":"VALID"},"payloadId":"0x1a2b3"}"#;
    for id in ["0x1a2b3", "0xaa"] {
        let own = own.replace("0x1a2b3", id);
        let said = own.clone();
        let json_rpc = move |seen: &Seen| json_rpc_result(seen, &said);
        let scene =
            Scene::with(syncing, json_rpc, |settings| settings.transport = Some("json".into()));
        let got = scene.await.call(forkchoice("V3", &[attributes(150)])).await;
        assert_eq!(got.body, format!(r#"{{"jsonrpc":"2.0","id":1,"result":{own}}}"#));
    }

    let id = hex("00000000000000aa");
    let valid = [&hex("08000000 31000000 00 09000000 29000000")[..], &[0x11; 32], &id].concat();
    let scene = Scene::scheduled(move |_: &Seen| ssz(&valid)).await;
    let said = scene.json(forkchoice("V3", &[attributes(150)])).await;
    assert_eq!(said["result"]["payloadId"], "0x00000000000000aa");
}

#[tokio::test]
async fn json_05_null_is_absent_in_a_structure_and_no_list_as_a_parameter() {
    let payload = || golden("06-cancun-newPayload");
    let null_member = changed(payload(), "/params/0/excessBlobGas", Value::Null);
    for (what, message) in [
        ("null hashes", changed(payload(), "/params/1", Value::Null)),
        ("null root", changed(payload(), "/params/2", Value::Null)),
        ("null member", null_member.clone()),
        ("no member", without(payload(), "/params/0", "excessBlobGas")),
        ("both", changed(null_member, "/params/1", Value::Null)),
    ] {
        Scene::scheduled(syncing).await.assert_relayed(&message, what).await;
        let alone = Scene::rest_only(syncing).await;
        assert_eq!(alone.json(&message).await["error"]["code"], -32602, "{what}");
        assert_eq!(alone.paths(), ["/"], "{what}");
    }
}

#[tokio::test]
async fn json_06_attributes_and_custody_left_out_and_null_are_the_same_104_bytes() {
    let scene = Scene::learned(syncing).await;
    let wanted = [&[0x11; 96][..], &hex("68000000 68000000")].concat();
    for after_state in [&[][..], &[Value::Null], &[Value::Null, Value::Null]] {
        let seen = scene.carried(forkchoice("V4", after_state)).await;
        assert_eq!(fork_header(&seen), "amsterdam");
        assert_eq!(seen.body, wanted);
    }
    let seen = scene.carried(forkchoice("V3", &[])).await;
    assert_eq!(seen.body, [&[0x11; 96][..], &hex("64000000")].concat());
}

const IDS: [&str; 14] = [
    "1",
    r#""1""#,
    r#""""#,
    r#""0x1""#,
    "null",
    "-1",
    "-0",
    "1.5",
    "1e3",
    "1E+3",
    "18446744073709551616",
    "123456789012345678901234567890",
    r#""\u0031""#,
    r#""é\/""#,
];

#[tokio::test]
async fn json_07_the_id_is_the_cls_own_text_on_every_way_an_answer_can_take() {
    // An EL that reads ids as doubles, or drops them, must not show.
    let careless = |_: &Seen| json_answer(r#"{"jsonrpc":"2.0","id":0,"result":"0x1"}"#);
    let scene = Scene::with(syncing, careless, |_| {}).await;
    for id in IDS {
        for (method, params) in [
            ("engine_forkchoiceUpdatedV3", forkchoice("V3", &[])["params"].clone()),
            ("engine_getPayloadV5", json!(["0x0000000000000001"])),
            ("eth_blockNumber", json!([])),
        ] {
            let body =
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
            let answer = scene.call(&body).await;
            let wanted = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#);
            let text = String::from_utf8(answer.body.to_vec()).unwrap();
            assert!(text.starts_with(&wanted), "{body}: {text}");
        }
    }
    // The sidecar's own errors too.
    let alone = Scene::rest_only(syncing).await;
    for id in IDS {
        let answer = alone.call(format!(r#"{{"id":{id},"method":"eth_x"}}"#)).await;
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        let wanted = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"#);
        assert!(text.starts_with(&wanted), "{text}");
    }
}

#[tokio::test]
async fn json_08_a_member_twice_is_refused_in_the_envelope_and_left_to_the_el_in_params() {
    let scene = Scene::learned(syncing).await;
    let params = &forkchoice("V3", &[])["params"];
    for envelope in [
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"eth_chainId","method":"engine_forkchoiceUpdatedV3","params":{params},"params":[]}}"#
        ),
        format!(
            r#"{{"id":1,"method":"engine_forkchoiceUpdatedV3","params":[],"params":{params}}}"#
        ),
        // Some ELs match names in any letter case.
        r#"{"id":1,"method":"eth_chainId","Method":"engine_forkchoiceUpdatedV3"}"#.to_owned(),
        r#"{"id":1,"method":"eth_chainId","\u006dethod":"eth_x"}"#.to_owned(),
    ] {
        let said = scene.json(&envelope).await;
        assert_eq!(said["error"]["code"], -32600, "{envelope}");
    }
    let said = scene.json(r#"{"id":1,"id":2,"method":"eth_chainId"}"#).await;
    assert_eq!((&said["id"], &said["error"]["code"]), (&Value::Null, &json!(-32600)));
    assert!(scene.paths().is_empty(), "nothing was forwarded");

    let twice = forkchoice("V3", &[]).to_string().replace(
        r#""safeBlockHash":"#,
        &format!(r#""headBlockHash":"0x{}","safeBlockHash":"#, "22".repeat(32)),
    );
    scene.assert_relayed(twice, "head twice").await;
    let twice = golden("12-osaka-newPayload")
        .to_string()
        .replace(r#""gasUsed":"#, r#""gasUsed":"0x1","gasUsed":"#);
    scene.assert_relayed(twice, "gas twice").await;
}

#[tokio::test]
async fn json_09_one_bad_element_of_a_batch_costs_no_other_its_answer() {
    let scene = Scene::learned(syncing).await;
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]},1,{"jsonrpc":"2.0","id":2,"method":"engine_getBlobsV2","params":[[]]}]"#;
    let said = scene.json(batch).await;
    let said = said.as_array().unwrap();
    assert_eq!(said.len(), 3);
    assert_eq!((&said[0]["id"], &said[0]["result"]), (&json!(1), &json!("by JSON-RPC")));
    assert_eq!((&said[1]["id"], &said[1]["error"]["code"]), (&Value::Null, &json!(-32600)));
    assert_eq!((&said[2]["id"], &said[2]["result"]), (&json!(2), &json!("by JSON-RPC")));
    let methods: Vec<_> = scene
        .seen()
        .iter()
        .map(|seen| serde_json::from_slice::<Value>(&seen.body).unwrap()["method"].clone())
        .collect();
    assert_eq!(methods, ["eth_blockNumber", "engine_getBlobsV2"]);

    let scene = Scene::learned(syncing).await;
    let forkchoice = forkchoice("V3", &[]);
    let batch = json!([golden("12-osaka-newPayload"), forkchoice, golden("13-osaka-newPayload")]);
    let said = scene.json(batch).await;
    assert_eq!(said.as_array().unwrap().len(), 3);
    let payloads = "/engine/v1/payloads";
    assert_eq!(scene.paths(), [payloads, "/engine/v1/forkchoice", payloads], "in array order");

    let said = scene.json("[]").await;
    assert_eq!((&said["id"], &said["error"]["code"]), (&Value::Null, &json!(-32600)));
}

#[tokio::test]
async fn json_10_a_notification_is_carried_out_and_gets_an_empty_body() {
    let notification = |params: &[Value]| without(forkchoice("V3", params), "", "id");
    for body in [
        notification(&[Value::Null]),
        json!([notification(&[]), notification(&[Value::Null])]),
        json!({"jsonrpc": "2.0", "method": "eth_chainId"}),
    ] {
        let scene = Scene::learned(syncing).await;
        let answer = scene.call(&body).await;
        assert_eq!((answer.status, answer.body.len()), (StatusCode::OK, 0), "{body}");
        let path = if body["method"] == "eth_chainId" { "/" } else { "/engine/v1/forkchoice" };
        let times = body.as_array().map_or(1, Vec::len);
        assert_eq!(scene.paths(), vec![path; times]);
    }
    let scene = Scene::learned(syncing).await;
    let answer = scene.call(r#"{"jsonrpc":"2.0","id":null,"method":"eth_chainId","params":[]}"#);
    assert_eq!(answer.await.body, r#"{"jsonrpc":"2.0","id":null,"result":"by JSON-RPC"}"#);
    let mixed = json!([notification(&[]), forkchoice("V3", &[])]);
    assert_eq!(scene.json(mixed).await.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn json_11_params_as_an_object_are_the_els_to_judge_and_absent_ones_are_none() {
    let object = r#"{"jsonrpc":"2.0","id":1,"method":"engine_getPayloadV3","params":{"payloadId":"0x0000000000000001"}}"#;
    let absent = r#"{"jsonrpc":"2.0","id":1,"method":"engine_getPayloadV3"}"#;
    let empty = r#"{"jsonrpc":"2.0","id":1,"method":"engine_getPayloadV3","params":[]}"#;
    for body in [object, absent, empty] {
        Scene::learned(syncing).await.assert_relayed(body, body).await;
        let alone = Scene::rest_only(syncing).await;
        assert_eq!(alone.json(body).await["error"]["code"], -32602, "{body}");
        assert_eq!(alone.paths(), ["/"]);
    }
    let eth = r#"{"jsonrpc":"2.0","id":1,"method":"eth_syncing"}"#;
    Scene::learned(syncing).await.assert_relayed(eth, "eth_syncing").await;
}

#[tokio::test]
async fn json_12_what_is_no_text_is_one_parse_error_and_the_connection_goes_on() {
    let deep = |open: &str, close: &str| {
        format!(
            r#"{{"id":1,"method":"m","params":{}{}}}"#,
            open.repeat(10_000),
            close.repeat(10_000)
        )
    };
    let bodies: [Vec<u8>; 10] = [
        hex(
            "7b226a736f6e727063223a22322e30222c226964223a312c226d6574686f64223a22656e67696e655fc3222c22706172616d73223a5b5d7d",
        ),
        br#"{"jsonrpc":"2.0","id":1,"method":"engine_\ud800","params":[]}"#.to_vec(),
        b"\xef\xbb\xbf{\"id\":1,\"method\":\"m\"}".to_vec(),
        b"{\"id\":1,\"method\":\"\xc0\xaf\"}".to_vec(),
        b"{\"id\":1,\"method\":\"m\",\"params\":[\"\xed\xa0\x80\"]}".to_vec(),
        b"{\"id\":1,\"method\":\"m\",\"params\":[\"\x00\"]}".to_vec(),
        deep("[", "]").into_bytes(),
        deep(r#"{"a":"#, "}").replace(":}", ":1}").into_bytes(),
        "[".repeat(10_000).into_bytes(),
        Vec::new(),
    ];
    let scene = Scene::learned(syncing).await;
    let mut connection = Connection::to(scene.sidecar.address()).await;
    let mut post = async |body: &[u8]| {
        let head = format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
        connection.write(head.as_bytes()).await;
        connection.write(body).await;
        let (head, body) = connection.response().await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        serde_json::from_slice::<Value>(&body).unwrap()
    };
    for body in bodies {
        let said = post(&body).await;
        let what = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
        assert_eq!((&said["id"], &said["error"]["code"]), (&Value::Null, &json!(-32700)), "{what}");
    }
    assert!(scene.paths().is_empty(), "nothing was forwarded");
    let said = post(forkchoice("V3", &[]).to_string().as_bytes()).await;
    assert_eq!(said["result"]["payloadStatus"]["status"], "SYNCING");
}

#[tokio::test]
async fn json_13_members_without_a_value_are_written_as_null() {
    let bodies = |seen: &Seen| match (seen.path.as_str(), fork_header(seen)) {
        // One entry: of Paris, without a transaction; unknown to every other fork.
        ("/engine/v1/bodies/hash", "paris") => ssz(hex("04000000 04000000 01 05000000 04000000")),
        ("/engine/v1/bodies/hash", "amsterdam") => {
            ssz(hex("04000000 04000000 00 05000000 0c000000 0c000000 0c000000"))
        }
        ("/engine/v1/bodies/hash", _) => {
            ssz(hex("04000000 04000000 00 05000000 08000000 08000000"))
        }
        _ => syncing(seen),
    };
    let scene = Scene::learned(bodies).await;
    let status = r#"{"status":"SYNCING","latestValidHash":null,"validationError":null}"#;
    let hash = json!([[format!("0x{}", "11".repeat(32))]]);
    for (call, result) in [
        (changed(golden("12-osaka-newPayload"), "/id", json!(1)), status.to_owned()),
        (
            forkchoice("V3", &[attributes(150)]),
            format!(r#"{{"payloadStatus":{status},"payloadId":null}}"#),
        ),
        (
            rpc("engine_getPayloadBodiesByHashV1", hash),
            r#"[{"transactions":[],"withdrawals":null}]"#.to_owned(),
        ),
    ] {
        let answer = scene.call(&call).await;
        assert_eq!(
            String::from_utf8_lossy(&answer.body),
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)
        );
    }
    assert!(scene.paths().iter().all(|path| path != "/"), "{:?}", scene.paths());
}

/// A built payload of Amsterdam with its bytes from `at` on replaced.
fn patched(name: &str, patches: &[(usize, &[u8])]) -> Vec<u8> {
    let mut ssz = golden_ssz(name);
    for (at, bytes) in patches {
        ssz[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    ssz
}

#[tokio::test]
async fn json_14_all_64_bits_pass_both_ways_and_a_65th_does_not() {
    let scene = Scene::scheduled(syncing).await;
    // Places in the payload, which begins after the envelope's 4 + 32 + 4 bytes.
    let payload = || golden("15-amsterdam-newPayload");
    for (member, at) in [
        ("blockNumber", 404),
        ("gasLimit", 412),
        ("gasUsed", 420),
        ("timestamp", 428),
        ("blobGasUsed", 512),
        ("excessBlobGas", 520),
        ("slotNumber", 532),
    ] {
        let pointer = format!("/params/0/{member}");
        for number in [u64::MAX, 1 << 63, (1 << 53) + 1] {
            let message = changed(payload(), &pointer, json!(format!("{number:#x}")));
            let body = scene.carried(message).await.body;
            assert_eq!(body[40 + at..40 + at + 8], number.to_le_bytes(), "{member}");
        }
        let message = changed(payload(), &pointer, json!("0x10000000000000000"));
        scene.assert_relayed(&message, member).await;
        let alone = Scene::rest_only(syncing).await;
        assert_eq!(alone.json(message).await["error"]["code"], -32602, "{member}");
    }
    for member in ["slotNumber", "targetGasLimit"] {
        let pointer = format!("/params/1/{member}");
        let message = forkchoice("V4", &[amsterdam_attributes()]);
        let message = changed(message, &pointer, json!("0x8000000000000000"));
        let body = scene.carried(message).await.body;
        // State, two offsets, the `Optional`'s own, then 96 bytes before the slot number.
        let at = 96 + 8 + 4 + if member == "slotNumber" { 96 } else { 104 };
        assert_eq!(body[at..at + 8], (1u64 << 63).to_le_bytes(), "{member}");
    }

    let (most, high) = (u64::MAX.to_le_bytes(), (1u64 << 63).to_le_bytes());
    let built = patched(
        "15-amsterdam-getPayload",
        &[(45 + 412, &most), (45 + 428, &high), (45 + 532, &most)],
    );
    let scene = Scene::scheduled(move |_: &Seen| ssz(&built)).await;
    let said = scene.json(rpc("engine_getPayloadV6", json!(["0x0000000000000001"]))).await;
    let payload = &said["result"]["executionPayload"];
    assert_eq!(payload["gasLimit"], "0xffffffffffffffff");
    assert_eq!(payload["timestamp"], "0x8000000000000000");
    assert_eq!(payload["slotNumber"], "0xffffffffffffffff");
}

#[tokio::test]
async fn json_15_256_bits_are_little_endian_in_ssz_and_minimal_in_json() {
    let one = [&[1][..], &[0; 31]].concat();
    let high = [&[0; 31][..], &[0x80]].concat();
    for (value, wanted) in [
        (one, "0x1".to_owned()),
        (high, format!("0x80{}", "00".repeat(31))),
        (vec![0; 32], "0x0".to_owned()),
        (vec![0xff; 32], format!("0x{}", "ff".repeat(32))),
    ] {
        // The block value comes after one offset, the base fee at 440 in the payload.
        let built = patched("03-shanghai-getPayload", &[(4, &value), (36 + 440, &value)]);
        let scene = Scene::scheduled(move |_: &Seen| ssz(&built)).await;
        let said = scene.json(rpc("engine_getPayloadV2", json!(["0x0000000000000001"]))).await;
        assert_eq!(said["result"]["blockValue"], wanted);
        assert_eq!(said["result"]["executionPayload"]["baseFeePerGas"], wanted);

        let scene = Scene::scheduled(syncing).await;
        let message =
            changed(golden("03-shanghai-newPayload"), "/params/0/baseFeePerGas", json!(wanted));
        let body = scene.carried(message).await.body;
        assert_eq!(body[4 + 440..4 + 472], value);
    }
    let message = changed(
        golden("03-shanghai-newPayload"),
        "/params/0/baseFeePerGas",
        json!(format!("0x1{}", "00".repeat(32))),
    );
    Scene::scheduled(syncing).await.assert_relayed(message, "257 bits").await;
}

#[tokio::test]
async fn json_16_blob_cells_keep_their_name_and_the_identity_is_not_retyped() {
    let list = r#"[ {"code":"RH","name":"Reth \u2713","version":"2.5.0","commit":"6e7aecc7"}, {"code":"??"}]"#;
    let rest = move |seen: &Seen| -> Response {
        match seen.path.as_str() {
            "/engine/v1/blobs/v4" => ssz(golden_ssz("blobs-v4")),
            "/engine/v1/identity" => json_answer(list),
            _ => answer(404, "text/plain", ""),
        }
    };
    let scene = Scene::learned(rest).await;
    // The golden request: two offsets' worth of fixed part, 16 bytes of bitarray, then the hashes.
    let request = golden_ssz("blobs-v4-request");
    let hashes: Vec<_> = request[20..].chunks(32).map(const_hex::encode_prefixed).collect();
    let columns = const_hex::encode_prefixed(&request[4..20]);
    let said = scene.json(rpc("engine_getBlobsV4", json!([hashes, columns]))).await;
    let own = golden("blobs-v4")["result"].clone();
    assert_eq!(said["result"][0], own[0]);
    let names: Vec<_> = said["result"][0].as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["blob_cells", "proofs"]);
    assert_eq!(scene.seen()[0].body, request);

    let cl = json!([{"code": "LH", "name": "Lighthouse", "version": "v8", "commit": "0xdeadbeef"}]);
    let answer = scene.call(rpc("engine_getClientVersionV1", cl)).await;
    assert_eq!(answer.body, format!(r#"{{"jsonrpc":"2.0","id":1,"result":{list}}}"#));
    assert_eq!(scene.paths(), ["/engine/v1/blobs/v4", "/engine/v1/identity"]);
}
