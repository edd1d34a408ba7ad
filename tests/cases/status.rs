//! STATUS-01 to STATUS-08: what the EL says, and what the CL is told.

use crate::{
    scene::{
        SYNCING, Scene, attributes, changed, forkchoice, golden, hex, json_rpc_error,
        json_rpc_result, rpc, ssz, syncing,
    },
    support::scripted_el::{Seen, answer, json as json_answer, problem},
};
use axum::response::Response;
use http::StatusCode;
use serde_json::{Value, json};

const PAYLOADS: &str = "/engine/v1/payloads";
const FORKCHOICE: &str = "/engine/v1/forkchoice";
const BOTH_LANES: [&str; 2] = [PAYLOADS, "/"];

/// A payload whose fork is known, with the id 1.
fn new_payload() -> Value {
    changed(golden("12-osaka-newPayload"), "/id", json!(1))
}

fn block_hash(call: &Value) -> Vec<u8> {
    const_hex::decode(call["params"][0]["blockHash"].as_str().unwrap()).unwrap()
}

/// What the CL gets, as text, when the EL answers a call over REST with that SSZ, and the paths that
/// the EL received.
async fn told(call: &Value, said: impl AsRef<[u8]>) -> (String, Vec<String>) {
    let said = said.as_ref().to_vec();
    let scene = Scene::scheduled(move |_: &Seen| ssz(&said)).await;
    let answer = scene.call(call).await;
    assert_eq!(answer.status, StatusCode::OK);
    (String::from_utf8(answer.body.to_vec()).unwrap(), scene.paths())
}

fn result(text: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{text}}}"#)
}

/// Such an answer over REST is none: the CL gets what JSON-RPC says.
async fn assert_asked_again(call: &Value, said: impl AsRef<[u8]>, what: &str) {
    let (text, paths) = told(call, said).await;
    assert_eq!(text, result(r#""by JSON-RPC""#), "{what}");
    assert_eq!(paths.len(), 2, "{what}: {paths:?}");
    assert_eq!(paths[1], "/", "{what}");
}

#[tokio::test]
async fn status_01_no_hash_the_zero_hash_and_a_real_one_stay_apart() {
    let zero = "00".repeat(32);
    let parent = "22".repeat(32);
    for (said, wanted) in [
        ("01 09000000 09000000".to_owned(), "null".to_owned()),
        (format!("01 09000000 29000000 {zero}"), format!(r#""0x{zero}""#)),
        (format!("01 09000000 29000000 {parent}"), format!(r#""0x{parent}""#)),
    ] {
        let (text, paths) = told(&new_payload(), hex(&said)).await;
        let wanted =
            format!(r#"{{"status":"INVALID","latestValidHash":{wanted},"validationError":null}}"#);
        assert_eq!(text, result(&wanted));
        assert_eq!(paths, [PAYLOADS]);
    }
    let valid = [&hex("00 09000000 29000000")[..], &block_hash(&new_payload())].concat();
    let (text, _) = told(&new_payload(), valid).await;
    let own = new_payload()["params"][0]["blockHash"].as_str().unwrap().to_owned();
    let wanted =
        format!(r#"{{"status":"VALID","latestValidHash":"{own}","validationError":null}}"#);
    assert_eq!(text, result(&wanted));
}

#[tokio::test]
async fn status_02_an_error_text_is_absent_empty_or_any_text_and_the_json_is_always_good() {
    let with = |text: &[u8]| [&hex("01 09000000 09000000 04000000")[..], text].concat();
    let mut odd = "\"\\\u{0}\n\u{7f}\u{2028}".to_owned();
    odd.push_str(&"x".repeat(1022 - odd.len()));
    // Its four bytes begin before byte 1024 and end after it: the EL cut it.
    let cut = &[odd.as_bytes(), &"😀".as_bytes()[..2]].concat()[..];
    assert_eq!(cut.len(), 1024);
    for (what, said, wanted) in [
        ("absent", hex("01 09000000 09000000"), Value::Null),
        ("empty", with(b""), json!("")),
        ("text", with(b"bad state root"), json!("bad state root")),
        ("not UTF-8", with(&hex("fffe80")), json!("\u{fffd}\u{fffd}\u{fffd}")),
        ("1024 bytes", with(&[b'x'; 1024]), json!("x".repeat(1024))),
        ("odd", with(odd.as_bytes()), json!(odd)),
        ("cut", with(cut), json!(format!("{odd}\u{fffd}"))),
        ("emoji", with("😀".as_bytes()), json!("😀")),
    ] {
        let (text, paths) = told(&new_payload(), said).await;
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["result"]["validationError"], wanted, "{what}");
        assert_eq!(paths, [PAYLOADS], "{what}");
    }
    assert_asked_again(&new_payload(), with(&[b'x'; 1025]), "1025 bytes").await;

    let long = json!({"status": "INVALID", "validationError": "y".repeat(100_000)}).to_string();
    let own = long.clone();
    let json_rpc = move |seen: &Seen| json_rpc_result(seen, &own);
    let scene =
        Scene::with(syncing, json_rpc, |settings| settings.transport = Some("json".into())).await;
    assert_eq!(scene.call(new_payload()).await.body, result(&long));
}

#[tokio::test]
async fn status_03_an_unknown_status_byte_is_no_status() {
    for said in ["04 09000000 09000000", "ff 09000000 09000000"] {
        assert_asked_again(&new_payload(), hex(said), said).await;
        let in_forkchoice = format!("08000000 11000000 {said}");
        assert_asked_again(&forkchoice("V3", &[]), hex(&in_forkchoice), said).await;
    }
    // JSON-RPC knows one more.
    let own = r#"{"status":"INVALID_BLOCK_HASH","latestValidHash":null,"validationError":null}"#;
    let json_rpc = move |seen: &Seen| json_rpc_result(seen, own);
    let scene =
        Scene::with(syncing, json_rpc, |settings| settings.transport = Some("json".into())).await;
    assert_eq!(scene.call(new_payload()).await.body, result(own));
    // REST-SSZ does not: a V1 call says INVALID as well.
    let v1 = changed(golden("01-paris-newPayload"), "/id", json!(1));
    let (text, _) = told(&v1, hex("01 09000000 09000000")).await;
    assert!(text.contains(r#""status":"INVALID","latestValidHash":null"#), "{text}");
}

#[tokio::test]
async fn status_04_accepted_is_no_status_of_a_forkchoice_and_a_build_needs_a_valid_head() {
    let build = forkchoice("V3", &[attributes(150)]);
    for call in [forkchoice("V3", &[]), build.clone()] {
        assert_asked_again(&call, hex("08000000 11000000 03 09000000 09000000"), "ACCEPTED").await;
    }
    let head = "11".repeat(32);
    let id = "0102030405060708";
    for (what, said) in [
        ("16 bytes", format!("08000000 31000000 00 09000000 29000000 {head} {id}{id}")),
        ("INVALID", format!("08000000 11000000 01 09000000 09000000 {id}")),
        ("SYNCING", format!("08000000 11000000 02 09000000 09000000 {id}")),
    ] {
        assert_asked_again(&build, hex(&said), what).await;
    }
    // Without JSON-RPC it is an error, and never a status made up.
    let said = |_: &Seen| ssz(hex("08000000 11000000 03 09000000 09000000"));
    let alone = Scene::rest_only(said).await;
    assert_eq!(alone.json(&build).await["error"]["code"], -32603);

    let (text, paths) = told(&new_payload(), hex("03 09000000 09000000")).await;
    let accepted = r#"{"status":"ACCEPTED","latestValidHash":null,"validationError":null}"#;
    assert_eq!((text, paths), (result(accepted), vec![PAYLOADS.to_owned()]));
}

#[tokio::test]
async fn status_05_a_transaction_that_is_none_makes_an_invalid_block_and_no_bad_request() {
    let shanghai = |transactions: Value| {
        let call = changed(golden("03-shanghai-newPayload"), "/id", json!(1));
        changed(
            changed(call, "/params/0/transactions", transactions),
            "/params/0/withdrawals",
            json!([]),
        )
    };
    let invalid = hex("01 09000000 09000000");
    let wanted = result(r#"{"status":"INVALID","latestValidHash":null,"validationError":null}"#);
    for (transactions, region) in [
        (json!(["0x"]), "04000000"),
        (json!(["0x", "0x02"]), "08000000 08000000 02"),
        (json!([]), ""),
    ] {
        let said = invalid.clone();
        let scene = Scene::scheduled(move |_: &Seen| ssz(&said)).await;
        let answer = scene.call(shanghai(transactions)).await;
        assert_eq!(answer.body, wanted);
        let seen = scene.seen().remove(0);
        assert_eq!(seen.path, PAYLOADS);
        // The envelope's one offset, the payload, its offset of the list, and no withdrawals after.
        let at = u32::from_le_bytes(seen.body[4 + 504..4 + 508].try_into().unwrap()) as usize;
        assert_eq!(seen.body[4 + at..], hex(region));
    }
    let own =
        r#"{"status":"INVALID","latestValidHash":null,"validationError":"empty transaction"}"#;
    let json_rpc = move |seen: &Seen| json_rpc_result(seen, own);
    for (status, name) in
        [(400, "ssz-decode-error"), (400, "invalid-request"), (422, "invalid-body")]
    {
        let refuses = move |_: &Seen| problem(status, name);
        let scene = Scene::with(refuses, json_rpc, |_| {}).await;
        assert_eq!(scene.call(shanghai(json!(["0x"]))).await.body, result(own), "{name}");
        assert_eq!(scene.paths(), BOTH_LANES);
    }
    // From Cancun on its blob hashes would have to be read, so JSON-RPC is asked at once.
    let cancun = changed(golden("06-cancun-newPayload"), "/id", json!(1));
    let cancun = changed(cancun, "/params/0/transactions", json!(["0x"]));
    let scene = Scene::with(syncing, json_rpc, |_| {}).await;
    assert_eq!(scene.call(changed(cancun, "/params/1", json!([]))).await.body, result(own));
    assert_eq!(scene.paths(), ["/"]);
}

/// What an EL says over REST, and what the CL is told: a code, or what JSON-RPC says.
struct Row(u16, &'static str, Option<i64>);

#[tokio::test]
async fn status_06_a_refusal_over_rest_has_its_json_rpc_code_or_is_asked_again() {
    let build = forkchoice("V3", &[attributes(150)]);
    let get_payload = rpc("engine_getPayloadV5", json!(["0x0000000000000001"]));
    for (call, Row(status, name, code)) in [
        (&build, Row(409, "invalid-forkchoice", Some(-38002))),
        (&build, Row(409, "reorg-too-deep", Some(-38006))),
        (&build, Row(422, "invalid-attributes", Some(-38003))),
        (&build, Row(422, "invalid-body", Some(-32602))),
        (&build, Row(503, "service-unavailable", Some(-32000))),
        // A build that REST knows no more, JSON-RPC may.
        (&get_payload, Row(404, "unknown-payload", None)),
        // JSON-RPC applies the forkchoice before it looks at the fork of its attributes.
        (&build, Row(400, "unsupported-fork", None)),
        (&get_payload, Row(400, "unsupported-fork", None)),
        (&new_payload(), Row(400, "unsupported-fork", None)),
        // The CL's JSON was fine: these are between the sidecar and the EL.
        (&new_payload(), Row(400, "ssz-decode-error", None)),
        (&new_payload(), Row(400, "parse-error", None)),
        (&new_payload(), Row(400, "invalid-request", None)),
        (&new_payload(), Row(405, "method-not-allowed", None)),
        (&new_payload(), Row(413, "request-too-large", None)),
        (&new_payload(), Row(415, "unsupported-media-type", None)),
        (&new_payload(), Row(422, "invalid-body", None)),
        (&new_payload(), Row(500, "internal", None)),
        (&new_payload(), Row(418, "about:blank", None)),
        (&build, Row(500, "internal", None)),
    ] {
        let body =
            json!({"type": format!("/engine-api/errors/{name}"), "detail": "the EL's words"});
        let rest = move |_: &Seen| answer(status, "application/problem+json", body.to_string());
        let scene = Scene::scheduled(rest).await;
        let said = scene.json(call).await;
        let what = format!("{} {status} {name}: {said}", call["method"]);
        let Some(code) = code else {
            assert_eq!(said["result"], "by JSON-RPC", "{what}");
            assert_eq!(scene.paths().len(), 2, "{what}: {:?}", scene.paths());
            assert_eq!(scene.paths()[1], "/", "{what}");
            continue;
        };
        assert_eq!(said["error"]["code"], code, "{what}");
        assert_eq!(scene.paths().len(), 1, "{what}: {:?}", scene.paths());
        // common.md, "Errors": -32000 alone carries an object.
        let data = &said["error"]["data"];
        let words = if code == -32000 { &data["err"] } else { data };
        assert_eq!(words, "the EL's words", "{what}");
    }
}

#[tokio::test]
async fn status_06_without_json_rpc_the_code_is_the_nearest() {
    for Row(status, name, code) in [
        Row(400, "unsupported-fork", Some(-38005)),
        Row(500, "internal", Some(-32603)),
        Row(400, "ssz-decode-error", Some(-32603)),
    ] {
        let rest = move |_: &Seen| problem(status, name);
        let scene = Scene::rest_only(rest).await;
        let said = scene.json(new_payload()).await;
        assert_eq!(said["error"]["code"], json!(code), "{name}: {said}");
    }
}

#[tokio::test]
async fn status_06_a_413_without_json_rpc_is_too_large() {
    let rest = |_: &Seen| problem(413, "request-too-large");
    let said = Scene::rest_only(rest).await.json(new_payload()).await;
    assert_eq!(said["error"]["code"], -38004, "{said}");
}

#[tokio::test]
async fn status_06_a_problem_that_is_huge_or_broken_is_no_more_than_its_status() {
    let huge =
        json!({"type": "/engine-api/errors/reorg-too-deep", "detail": "é".repeat(2_500_000)});
    let scene =
        Scene::scheduled(move |_: &Seen| answer(409, "application/problem+json", huge.to_string()))
            .await;
    let call = forkchoice("V3", &[]);
    let answer_of_huge = scene.call(&call).await;
    assert!(answer_of_huge.body.len() < 2000, "{} bytes", answer_of_huge.body.len());
    assert_eq!(answer_of_huge.json()["error"]["code"], -38006);
    for broken in [r#"{"type":"/engine-api/errors/reorg-too-deep""#, "null", "[]", "", "\u{feff}{}"]
    {
        let rest = move |_: &Seen| answer(409, "application/problem+json", broken);
        let scene = Scene::scheduled(rest).await;
        assert_eq!(scene.json(&call).await["result"], "by JSON-RPC", "{broken}");
        assert_eq!(scene.paths(), [FORKCHOICE, "/"]);
    }
}

#[tokio::test]
async fn status_07_an_error_body_that_is_no_json_becomes_an_error_with_the_calls_id() {
    type Says = fn(&Seen) -> Response;
    let cases: [(&str, Says); 7] = [
        ("empty 500", |_| answer(500, "text/plain", "")),
        ("html 502", |_| answer(502, "text/html", "<html>Bad Gateway</html>")),
        ("empty 200", |_| answer(200, "application/json", "")),
        ("null", |_| json_answer("null")),
        ("half", |_| json_answer(r#"{"jsonrpc":"2.0","id":"x","res"#)),
        ("neither", |_| json_answer(r#"{"jsonrpc":"2.0","id":"x"}"#)),
        ("text", |_| answer(200, "text/plain", "internal secrets of /home/el")),
    ];
    for (what, said) in cases {
        // Over both lanes, and over JSON-RPC alone.
        for (call, paths) in [
            (changed(new_payload(), "/id", json!("x")), &BOTH_LANES[..]),
            (json!({"jsonrpc": "2.0", "id": "x", "method": "eth_syncing"}), &["/"]),
        ] {
            let scene = Scene::with(said, said, |_| {}).await;
            let answer = scene.json(&call).await;
            assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!("x")), "{what}");
            assert_eq!(answer["error"]["code"], -32603, "{what}");
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.len() < 200 && !message.contains("secrets"), "{what}: {message}");
            assert_eq!(scene.paths(), paths, "{what}");
        }
    }
    // An EL that knows not the host name in front of it: the CL's operator is to see that.
    let forbidden = |_: &Seen| answer(403, "text/plain", "invalid host specified");
    let scene = Scene::with(forbidden, forbidden, |_| {}).await;
    let said = scene.call(rpc("eth_syncing", json!([]))).await;
    assert_eq!(said.status, StatusCode::FORBIDDEN);
    assert_eq!(said.body, "invalid host specified");
    // A real error goes through whatever its status.
    let refuses = |seen: &Seen| {
        let (mut head, body) = json_rpc_error(seen, -32000, "header not found").into_parts();
        head.status = StatusCode::INTERNAL_SERVER_ERROR;
        Response::from_parts(head, body)
    };
    let scene = Scene::with(syncing, refuses, |_| {}).await;
    let said = scene.json(rpc("eth_call", json!([]))).await;
    assert_eq!(said["error"], json!({"code": -32000, "message": "header not found"}));
}

#[tokio::test]
async fn status_08_syncing_without_a_payload_id_is_told_as_it_is_and_once() {
    let said = hex("08000000 11000000 02 09000000 09000000");
    assert_eq!(said[8..], SYNCING);
    let (text, paths) = told(&forkchoice("V3", &[attributes(150)]), said).await;
    let status = r#"{"status":"SYNCING","latestValidHash":null,"validationError":null}"#;
    assert_eq!(text, result(&format!(r#"{{"payloadStatus":{status},"payloadId":null}}"#)));
    assert_eq!(paths, [FORKCHOICE]);
}
