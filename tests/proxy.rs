//! What the CL sees and what the EL receives when things are not as they should be.

mod support;

use engine_ssz_proxy::{
    cl::{Call, Caller, Handler, Outcome},
    config::Number,
    el::{self, El},
    mock_el::{Http, MockEl, Surface},
    proxy::Proxy,
};
use http::StatusCode;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use support::{
    any_port, mock_config, post,
    scripted_el::{ScriptedEl, Seen, answer, is_greeting, json as json_answer, problem, ssz},
    settings, sidecar,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::{Notify, mpsc},
};

/// SYNCING, as `PayloadStatus` and as `ForkchoiceUpdateResponse`.
const SYNCING: [u8; 9] = [2, 9, 0, 0, 0, 9, 0, 0, 0];
const FORKCHOICE_SYNCING: [u8; 17] = [8, 0, 0, 0, 17, 0, 0, 0, 2, 9, 0, 0, 0, 9, 0, 0, 0];

fn new_payload() -> Value {
    serde_json::from_str(include_str!("data/golden/12-osaka-newPayload.json")).unwrap()
}

fn forkchoice(attributes: Value) -> Value {
    let hash = format!("0x{}", "11".repeat(32));
    let state = json!({
        "headBlockHash": hash, "safeBlockHash": hash, "finalizedBlockHash": hash
    });
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "engine_forkchoiceUpdatedV3",
        "params": [state, attributes]
    })
}

fn attributes() -> Value {
    json!({
        "timestamp": "0x90", "prevRandao": format!("0x{}", "22".repeat(32)),
        "suggestedFeeRecipient": format!("0x{}", "33".repeat(20)), "withdrawals": [],
        "parentBeaconBlockRoot": format!("0x{}", "44".repeat(32)),
    })
}

/// The EL's JSON-RPC for any call.
fn by_json_rpc(seen: &Seen) -> axum::response::Response {
    let request: Value = serde_json::from_slice(&seen.body).unwrap();
    json_answer(json!({"jsonrpc": "2.0", "id": request["id"], "result": "by JSON-RPC"}).to_string())
}

/// Good answers over REST.
async fn syncing(seen: Seen) -> axum::response::Response {
    match seen.path.as_str() {
        "/engine/v1/payloads" => ssz(SYNCING.to_vec()),
        "/engine/v1/forkchoice" => ssz(FORKCHOICE_SYNCING.to_vec()),
        _ => by_json_rpc(&seen),
    }
}

#[tokio::test]
async fn it_starts_before_the_el_and_finds_it_by_itself() {
    let reserved = std::net::TcpListener::bind(any_port()).unwrap();
    let el = reserved.local_addr().unwrap();
    drop(reserved);
    let secret = "11".repeat(32);
    let mut settings = settings(el);
    settings.jwt_secret = Some(secret.clone().into());
    let sidecar = engine_ssz_proxy::serve::Sidecar::start(settings.check().unwrap()).await.unwrap();

    let request = json!({"jsonrpc": "2.0", "id": "a", "method": "eth_chainId"}).to_string();
    let token = secret.parse::<engine_ssz_proxy::jwt::Secret>().unwrap();
    let now =
        || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let post = |body: String| {
        support::post_with(sidecar.address(), format!("Bearer {}", token.mint(now())), body)
    };
    let before = post(request.clone()).await;
    assert_eq!(before.status, StatusCode::OK);
    let before = before.json();
    assert_eq!(before["id"], "a");
    assert_eq!(before["error"]["code"], -32603);
    let message = before["error"]["message"].as_str().unwrap();
    assert!(message.contains(&el.to_string()), "{message}");

    let mut config = mock_config(Surface::RestAndJson, Http::Both);
    config.listen = el;
    config.jwt_secret = Some(secret.parse().unwrap());
    let mock = MockEl::start(config).await.unwrap();
    sidecar.el_found().await;
    assert_eq!(post(request).await.json()["result"], "0x539");
    post(forkchoice(Value::Null).to_string()).await;
    assert!(mock.log().iter().any(|seen| seen.path == "/engine/v1/forkchoice"));
}

#[tokio::test]
async fn json_07_ids_of_any_form_come_back_byte_for_byte_over_rest() {
    let el = ScriptedEl::start(syncing).await;
    let sidecar = sidecar(settings(el.address)).await;
    for id in [
        "1",
        "0",
        "-1",
        "1.5",
        "1e3",
        "18446744073709551616",
        r#""""#,
        r#""0x1""#,
        r#""\u0031""#,
        "null",
    ] {
        let request =
            forkchoice(Value::Null).to_string().replace(r#""id":1"#, &format!(r#""id":{id}"#));
        let answer = post(sidecar.address(), request).await;
        let wanted = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"payloadStatus":{{"status":"SYNCING","latestValidHash":null,"validationError":null}},"payloadId":null}}}}"#
        );
        assert_eq!(answer.body, wanted);
        assert_eq!(answer.headers["content-type"], "application/json");
    }
    assert!(el.paths().iter().all(|path| path == "/engine/v1/forkchoice"), "{:?}", el.paths());
}

#[tokio::test]
async fn json_10_a_notification_is_carried_out_and_not_answered() {
    let el = ScriptedEl::start(syncing).await;
    let sidecar = sidecar(settings(el.address)).await;
    let mut request = forkchoice(Value::Null);
    request.as_object_mut().unwrap().remove("id");
    let answer = post(sidecar.address(), request.to_string()).await;
    assert_eq!((answer.status, answer.body.len()), (StatusCode::OK, 0));
    assert_eq!(el.paths(), ["/engine/v1/forkchoice"]);
}

#[tokio::test]
async fn json_09_a_mixed_batch_is_run_in_order_and_joined() {
    let el = ScriptedEl::start(syncing).await;
    let sidecar = sidecar(settings(el.address)).await;
    let batch = json!([
        {"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []},
        1,
        forkchoice(Value::Null),
        {"jsonrpc": "2.0", "method": "eth_subscribe"},
    ]);
    let answers = post(sidecar.address(), batch.to_string()).await.json();
    let answers = answers.as_array().unwrap();
    assert_eq!(answers[0]["id"], 1);
    assert_eq!(answers[0]["result"], "by JSON-RPC");
    assert_eq!(answers[1]["id"], Value::Null);
    assert_eq!(answers[1]["error"]["code"], -32600);
    assert_eq!(answers[2]["result"]["payloadStatus"]["status"], "SYNCING");
    assert_eq!(el.paths(), ["/", "/engine/v1/forkchoice", "/"]);
}

#[tokio::test]
async fn a_batch_without_engine_calls_reaches_the_el_untouched() {
    let el = ScriptedEl::start(|_| async { json_answer("[ 1 ]") }).await;
    let sidecar = sidecar(settings(el.address)).await;
    let batch = r#" [ {"id":7, "method":"eth_x" , "jsonrpc":"2.0"} ] "#;
    assert_eq!(post(sidecar.address(), batch).await.body, "[ 1 ]");
    assert_eq!(el.seen().last().unwrap().body, batch);
}

#[tokio::test]
async fn what_cannot_be_transcoded_reaches_the_el_as_the_cls_own_bytes() {
    let el = ScriptedEl::start(|seen| async move { by_json_rpc(&seen) }).await;
    let sidecar = sidecar(settings(el.address)).await;
    let spaced = serde_json::to_string_pretty(&new_payload()).unwrap();
    for (what, body) in [
        ("JSON-02 leading zero", spaced.replace(r#""gasUsed": "0x"#, r#""gasUsed": "0x0"#)),
        ("unknown member", spaced.replace(r#""gasUsed""#, r#""gasUsedX""#)),
        ("JSON-01 0X prefix", spaced.replace(r#""gasUsed": "0x"#, r#""gasUsed": "0X"#)),
        ("JSON-05 null", spaced.replace(r#""timestamp""#, r#""timestamp": null, "x""#)),
    ] {
        assert_ne!(body, spaced, "{what}");
        let answer = post(sidecar.address(), body.clone()).await;
        assert_eq!(answer.json()["result"], "by JSON-RPC", "{what}");
        assert_eq!(el.seen().last().unwrap().body, body, "{what}");
        assert_eq!(el.seen().last().unwrap().path, "/", "{what}");
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_trusted_is_asked_again_over_json_rpc_in_the_same_turn() {
    type Says = fn() -> axum::response::Response;
    let bad: [(&str, Says); 9] = [
        ("STATUS-03 status 4", || ssz([&[4], &SYNCING[1..]].concat())),
        ("SSZ-01 gap", || ssz(vec![2, 13, 0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0])),
        ("SSZ-05 empty", || ssz("")),
        ("SSZ-05 trailing", || ssz([&SYNCING[..], &[0]].concat())),
        ("H1-08 media type", || json_answer(SYNCING.to_vec())),
        ("LIFE-02 404", || answer(404, "text/plain", "unknown engine ssz endpoint")),
        ("STATUS-06 decode", || problem(400, "ssz-decode-error")),
        ("STATUS-06 internal", || problem(500, "internal")),
        ("STATUS-07 html", || answer(502, "text/html", "<html>")),
    ];
    for (what, said) in bad {
        let el = ScriptedEl::start(move |seen| async move {
            match seen.path.as_str() {
                "/engine/v1/payloads" => said(),
                _ => by_json_rpc(&seen),
            }
        })
        .await;
        let sidecar = sidecar(settings(el.address)).await;
        let request = new_payload().to_string();
        let answer = post(sidecar.address(), request.clone()).await;
        assert_eq!(answer.json()["result"], "by JSON-RPC", "{what}");
        assert_eq!(el.paths(), ["/engine/v1/payloads", "/"], "{what}");
        assert_eq!(el.seen().last().unwrap().body, request, "{what}");
    }
}

/// One relayed call whose answer the EL gives as it likes.
async fn relayed(status: u16, content_type: &'static str, body: &'static str) -> support::Answer {
    let el = ScriptedEl::start(move |seen| async move {
        match is_greeting(&seen) {
            true => by_json_rpc(&seen),
            false => answer(status, content_type, body),
        }
    })
    .await;
    let sidecar = sidecar(settings(el.address)).await;
    post(sidecar.address(), r#"{"jsonrpc":"2.0","id":7,"method":"eth_x"}"#).await
}

#[tokio::test]
async fn an_answer_of_the_el_for_that_call_is_passed_on_byte_for_byte() {
    for body in [
        r#" {"id":7, "jsonrpc":"2.0","result":{"b":1,"a":2}} "#,
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no such thing","data":[1]}}"#,
        r#"{"result":null,"id":7}"#,
    ] {
        for status in [200, 400, 404, 500] {
            let answer = relayed(status, "application/json", body).await;
            assert_eq!(answer.status, StatusCode::OK);
            assert_eq!(answer.body, body);
        }
    }
}

#[tokio::test]
async fn auth_05_an_error_without_the_calls_id_gets_it_back() {
    let body =
        r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Authentication error"},"id":null}"#;
    let answer = relayed(200, "application/json", body).await.json();
    assert_eq!(answer["id"], 7);
    assert_eq!(answer["error"], json!({"code": -32700, "message": "Authentication error"}));
    let answer = relayed(200, "application/json", r#"{"result":"0x1"}"#).await.json();
    assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 7, "result": "0x1"}));
}

#[tokio::test]
async fn status_07_json_that_is_no_response_becomes_an_error_with_the_calls_id() {
    for (status, body) in [
        (503, r#"{"status":503,"error":"upstream"}"#),
        (200, r#"{"jsonrpc":"2.0","id":7,"#),
        (200, "[]"),
        (200, "{}"),
        (500, r#"{"result":1,"error":{"code":1,"message":"both"}}"#),
    ] {
        let answer = relayed(status, "application/json", body).await;
        assert_eq!(answer.status, StatusCode::OK, "{body}");
        assert_eq!(answer.json()["id"], 7, "{body}");
        assert_eq!(answer.json()["error"]["code"], -32603, "{body}");
    }
}

#[tokio::test]
async fn an_el_without_json_rpc_is_known_by_its_status_whatever_the_body() {
    let problem = r#"{"type":"/engine-api/errors/method-not-found"}"#;
    for (status, content_type, body) in [
        (404, "application/problem+json", problem),
        (405, "text/plain", ""),
        (501, "text/html", "x"),
    ] {
        let el = ScriptedEl::start(move |seen| async move {
            match is_greeting(&seen) {
                true => by_json_rpc(&seen),
                false => answer(status, content_type, body),
            }
        })
        .await;
        let sidecar = sidecar(settings(el.address)).await;
        let request =
            r#"{"jsonrpc":"2.0","id":7,"method":"engine_exchangeCapabilities","params":[[]]}"#;
        let names = post(sidecar.address(), request).await.json();
        assert!(names["result"].as_array().is_some_and(|names| names.len() > 10), "{names}");
        let foreign = post(sidecar.address(), r#"{"id":8,"method":"eth_x"}"#).await.json();
        assert_eq!((&foreign["id"], &foreign["error"]["code"]), (&json!(8), &json!(-32601)));
    }
}

#[tokio::test]
async fn capabilities_are_not_made_up_before_the_el_is_known() {
    let mock = MockEl::start(mock_config(Surface::RestOnly, Http::Both)).await.unwrap();
    let settings = settings(mock.addr()).check().unwrap();
    let sidecar = engine_ssz_proxy::serve::Sidecar::start(settings).await.unwrap();
    let request =
        r#"{"jsonrpc":"2.0","id":1,"method":"engine_exchangeCapabilities","params":[[]]}"#;
    // The first call is the one that lends its bearer to the probe.
    let first = post(sidecar.address(), request).await.json();
    assert_ne!(first["result"], json!([]));
    sidecar.el_found().await;
    let names = post(sidecar.address(), request).await.json();
    assert!(!names["result"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn json_09_a_token_refused_within_a_batch_does_not_cost_the_answers_before_it() {
    let el = ScriptedEl::start(|seen| async move {
        match seen.path.as_str() {
            "/" if !is_greeting(&seen) => answer(401, "text/plain", "iat is too old"),
            _ => syncing(seen).await,
        }
    })
    .await;
    let sidecar = sidecar(settings(el.address)).await;
    let eth = json!({"jsonrpc": "2.0", "id": 2, "method": "eth_x"});
    let batch = json!([forkchoice(Value::Null), eth, forkchoice(Value::Null)]);
    let answers = post(sidecar.address(), batch.to_string()).await.json();
    assert_eq!(answers[0]["result"]["payloadStatus"]["status"], "SYNCING");
    assert_eq!(answers[1]["id"], 2);
    assert_eq!(answers[1]["error"]["code"], -32603);
    assert_eq!(answers[2]["result"]["payloadStatus"]["status"], "SYNCING");
    let refused_first = json!([eth, forkchoice(Value::Null)]);
    let answer = post(sidecar.address(), refused_first.to_string()).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_failed_exchange_is_counted_with_its_method() {
    let el = ScriptedEl::start(cuts_rest_calls).await;
    let sidecar = sidecar(settings(el.address)).await;
    post(sidecar.address(), new_payload().to_string()).await;
    let relays = sidecar.proxy().tally().relays();
    assert_eq!(relays.get(&("engine_newPayloadV4", "failed")), Some(&1), "{relays:?}");
}

#[tokio::test]
async fn custody_columns_reach_the_el_bit_for_bit() {
    let mock = MockEl::start(mock_config(Surface::RestAndJson, Http::Both)).await.unwrap();
    let sidecar = sidecar(settings(mock.addr())).await;
    let head = mock.genesis_hash().to_string();
    let zero = format!("0x{}", "00".repeat(32));
    let columns = "0x81010000000000000000000000000080";
    let request = json!({
        "jsonrpc": "2.0", "id": 1, "method": "engine_forkchoiceUpdatedV4",
        "params": [
            {"headBlockHash": head, "safeBlockHash": zero, "finalizedBlockHash": zero}, null, columns
        ]
    });
    let answer = post(sidecar.address(), request.to_string()).await.json();
    assert_eq!(answer["result"]["payloadStatus"]["status"], "VALID");
    assert!(mock.log().iter().any(|seen| seen.path == "/engine/v1/forkchoice"));
    assert_eq!(mock.custody_columns().map(|columns| columns.to_string()).as_deref(), Some(columns));
}

#[tokio::test]
async fn with_json_rpc_gone_too_the_cl_gets_a_short_honest_error() {
    let el = ScriptedEl::start(|seen| async move {
        match seen.path.as_str() {
            "/engine/v1/payloads" => ssz("nonsense"),
            _ if seen.body.ends_with(br#""eth_chainId"}"#) => json_answer("{}"),
            _ => answer(404, "text/html", ""),
        }
    })
    .await;
    let sidecar = sidecar(settings(el.address)).await;
    let answer = post(sidecar.address(), new_payload().to_string()).await;
    assert_eq!(answer.status, StatusCode::OK);
    let error = answer.json()["error"].clone();
    assert_eq!(error["code"], -32603);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("no JSON-RPC") && message.len() < 200, "{message}");
    assert_eq!(answer.json()["id"], new_payload()["id"]);
}

#[tokio::test]
async fn an_el_with_rest_alone_is_served_without_json_rpc() {
    let mock = MockEl::start(mock_config(Surface::RestOnly, Http::Both)).await.unwrap();
    let sidecar = sidecar(settings(mock.addr())).await;
    let call = |method: &str, params: Value| {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        post(sidecar.address(), request.to_string())
    };
    let capabilities = call("engine_exchangeCapabilities", json!([[]])).await.json();
    let names = capabilities["result"].as_array().unwrap();
    assert!(names.contains(&json!("engine_newPayloadV5")), "{names:?}");
    let ill_formed = call("engine_getPayloadV5", json!(["0x1"])).await.json();
    assert_eq!(ill_formed["error"]["code"], -32602);
    let unknown = call("engine_getPayloadV5", json!(["0x0000000000000001"])).await.json();
    assert_eq!(unknown["error"]["code"], -38001);
    let foreign = call("eth_chainId", json!([])).await.json();
    assert_eq!(foreign["error"]["code"], -32601);
}

#[tokio::test]
async fn status_07_an_answer_that_is_no_json_becomes_an_error_with_the_calls_id() {
    for (what, said) in [
        ("empty 500", (|| answer(500, "text/plain", "")) as fn() -> axum::response::Response),
        ("403 elsewhere", || answer(418, "text/plain", "invalid host specified")),
        ("html", || answer(502, "text/html", "<html>")),
        ("empty 200", || answer(200, "application/json", "")),
        ("null", || json_answer("null")),
    ] {
        let el = ScriptedEl::start(move |seen| async move {
            match seen.body.ends_with(br#""id":0,"method":"eth_chainId"}"#) {
                true => json_answer("{}"),
                false => said(),
            }
        })
        .await;
        let sidecar = sidecar(settings(el.address)).await;
        let call = r#"{"jsonrpc":"2.0","id":"x","method":"eth_x"}"#;
        for (body, id) in [(call.to_owned(), "/id"), (format!("[{call}]"), "/0/id")] {
            let answer = post(sidecar.address(), body).await;
            assert_eq!(answer.status, StatusCode::OK, "{what}");
            assert_eq!(answer.json().pointer(id), Some(&json!("x")), "{what}");
            let code = id.replace("id", "error/code");
            assert_eq!(answer.json().pointer(&code), Some(&json!(-32603)), "{what}");
        }
    }
}

#[tokio::test]
async fn ord_03_commands_that_are_only_relayed_keep_the_order_too() {
    for (first, second) in [
        ("engine_newPayloadV6", "engine_forkchoiceUpdatedV5"),
        ("engine_newPayloadWithWitnessV4", "engine_newPayloadWithWitnessV5"),
    ] {
        let release = Arc::new(Notify::new());
        let gate = release.clone();
        let held = first;
        let mut el = ScriptedEl::start(move |seen| {
            let gate = gate.clone();
            async move {
                if String::from_utf8_lossy(&seen.body).contains(held) {
                    gate.notified().await;
                }
                syncing(seen).await
            }
        })
        .await;
        let sidecar = sidecar(settings(el.address)).await;
        let address = sidecar.address();
        let call = |method: &str| {
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": []}).to_string()
        };
        let waiting = tokio::spawn(post(address, call(first)));
        el.arrival().await;
        let batch = format!("[{}]", call(second));
        let behind = [
            tokio::spawn(post(address, call(second))),
            tokio::spawn(post(address, batch)),
            tokio::spawn(post(address, forkchoice(Value::Null).to_string())),
        ];
        for read in ["eth_syncing", "engine_getInclusionListV1"] {
            assert_eq!(post(address, call(read)).await.json()["result"], "by JSON-RPC");
        }
        assert_eq!(el.paths(), ["/", "/", "/"], "only the reads passed {first}");
        release.notify_one();
        waiting.await.unwrap();
        for answer in behind {
            assert_eq!(answer.await.unwrap().status, StatusCode::OK);
        }
        assert_eq!(el.paths().len(), 6);
    }
}

#[tokio::test]
async fn ord_03_commands_reach_the_el_one_at_a_time_and_side_calls_do_not_wait() {
    let release = Arc::new(Notify::new());
    let gate = release.clone();
    let mut el = ScriptedEl::start(move |seen| {
        let gate = gate.clone();
        async move {
            if seen.path == "/engine/v1/payloads" {
                gate.notified().await;
            }
            syncing(seen).await
        }
    })
    .await;
    let sidecar = sidecar(settings(el.address)).await;
    let address = sidecar.address();
    let first = tokio::spawn(post(address, new_payload().to_string()));
    assert_eq!(el.arrival().await.path, "/engine/v1/payloads");

    let second = tokio::spawn(post(address, forkchoice(Value::Null).to_string()));
    let side = json!({"jsonrpc": "2.0", "id": 5, "method": "eth_syncing"}).to_string();
    assert_eq!(post(address, side).await.json()["id"], 5);
    assert_eq!(el.paths(), ["/engine/v1/payloads", "/"], "the forkchoice waits for the payload");

    release.notify_one();
    assert_eq!(first.await.unwrap().json()["result"]["status"], "SYNCING");
    let updated = second.await.unwrap().json();
    assert_eq!(updated["result"]["payloadStatus"]["status"], "SYNCING");
    assert_eq!(el.paths(), ["/engine/v1/payloads", "/", "/engine/v1/forkchoice"]);
}

/// An EL that reads a REST call whole and then cuts the connection.
async fn cuts_rest_calls(seen: Seen) -> axum::response::Response {
    match seen.path.as_str() {
        "/" => by_json_rpc(&seen),
        // hyper drops the connection of a handler that panics.
        _ => panic!("cut"),
    }
}

#[tokio::test]
async fn h1_02_a_build_that_the_el_may_have_begun_is_not_asked_for_again() {
    for http in ["h2c", "http1"] {
        let el = ScriptedEl::start(cuts_rest_calls).await;
        let mut settings = settings(el.address);
        settings.transport = Some(http.to_owned());
        let sidecar = sidecar(settings).await;
        let answer = post(sidecar.address(), forkchoice(attributes()).to_string()).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.json()["error"]["code"], -32603, "{http}");
        assert_eq!(el.paths(), ["/engine/v1/forkchoice"], "{http}");
    }
}

#[tokio::test]
async fn h1_02_an_idempotent_call_whose_answer_was_lost_is_asked_over_json_rpc_once() {
    for request in [new_payload(), forkchoice(Value::Null)] {
        let el = ScriptedEl::start(cuts_rest_calls).await;
        let sidecar = sidecar(settings(el.address)).await;
        let answer = post(sidecar.address(), request.to_string()).await;
        assert_eq!(answer.json()["result"], "by JSON-RPC");
        let paths = el.paths();
        assert_eq!(paths.len(), 2, "{paths:?}");
        assert_eq!(paths[1], "/");
    }
}

#[tokio::test]
async fn a_token_that_the_el_refuses_is_the_cls_401() {
    let el = ScriptedEl::start(|seen| async move {
        match is_greeting(&seen) {
            true => json_answer("{}"),
            false => answer(401, "text/plain", "iat is too old"),
        }
    })
    .await;
    let sidecar = sidecar(settings(el.address)).await;
    for request in [new_payload().to_string(), r#"{"id":1,"method":"eth_x"}"#.to_owned()] {
        let answer = post(sidecar.address(), request).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn without_a_secret_the_cls_own_bearer_and_trace_reach_the_el() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let el = ScriptedEl::start(move |request| {
        log.lock().unwrap().push(request.headers.clone());
        syncing(request)
    })
    .await;
    let sidecar = sidecar(settings(el.address)).await;
    post(sidecar.address(), new_payload().to_string()).await;
    let headers = seen.lock().unwrap().last().unwrap().clone();
    assert_eq!(headers["authorization"], "Bearer any.token.will-do");
    assert_eq!(headers["eth-execution-version"], "osaka");
}

#[tokio::test]
async fn a_larger_body_than_the_limit_is_413() {
    let el = ScriptedEl::start(syncing).await;
    let mut settings = settings(el.address);
    settings.body_limit = Some(Number::Integer(1000));
    let sidecar = sidecar(settings).await;
    let answer = post(sidecar.address(), new_payload().to_string()).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(el.paths().is_empty());
}

/// A clock that stands still but for those who wait for it.
#[tokio::test(start_paused = true)]
async fn a_command_behind_one_that_is_never_answered_is_an_error_with_its_id_in_the_end() {
    let el = El::new(el::Config::new("http://127.0.0.1:1".parse().unwrap()));
    let proxy = Proxy::new(el, None, engine_ssz_proxy::engine::Horizon::default());
    let _stuck = proxy.el().command_turn().await.unwrap();
    let mut batch = json!([forkchoice(Value::Null), 7, forkchoice(attributes())]);
    batch[0]["id"] = json!("a");
    batch[2].as_object_mut().unwrap().remove("id");
    for (request, ids) in
        [(forkchoice(Value::Null), vec![json!(1)]), (batch, vec![json!("a"), Value::Null])]
    {
        let call = Call {
            body: request.to_string().into(),
            caller: Caller::default(),
            received: std::time::Instant::now(),
            place: None,
        };
        let Outcome::Json(reply) = proxy.call(call).await else { panic!("no JSON") };
        let answer: Value = serde_json::from_slice(&reply.to_bytes()).unwrap();
        let answers = answer.as_array().cloned().unwrap_or_else(|| vec![answer.clone()]);
        assert_eq!(answers.iter().map(|answer| answer["id"].clone()).collect::<Vec<_>>(), ids);
        let message = answers[0]["error"]["message"].as_str().unwrap();
        assert_eq!(answers[0]["error"]["code"], -32603);
        assert!(message.contains("command before this one for 30 s"), "{message}");
    }
}

/// An EL with JSON-RPC alone that answers one call on each connection and closes it once the next
/// one is in. Tells each call it has met with a close.
async fn closes_used_connections() -> (std::net::SocketAddr, mpsc::UnboundedReceiver<String>) {
    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":"0x1"}"#;
    let listener = TcpListener::bind(any_port()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, cut) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let tell = tell.clone();
            tokio::spawn(async move {
                let mut used = false;
                loop {
                    let mut call = Vec::new();
                    while !call.ends_with(b"}") && !call.starts_with(b"GET") {
                        if stream.read_buf(&mut call).await.unwrap_or(0) == 0 {
                            return;
                        }
                    }
                    if used {
                        return tell.send(String::from_utf8(call).unwrap()).unwrap_or(());
                    }
                    used = true;
                    let head =
                        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", ANSWER.len());
                    stream.write_all(format!("{head}{ANSWER}").as_bytes()).await.unwrap();
                }
            });
        }
    });
    (address, cut)
}

#[tokio::test]
async fn h1_01_an_el_that_closes_idle_connections_costs_no_call_that_may_be_repeated() {
    let call = |method: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
    for harmless in ["eth_chainId", "engine_newPayloadV4"] {
        let (el, mut cut) = closes_used_connections().await;
        let mut settings = settings(el);
        settings.transport = Some("json".to_owned());
        let sidecar = sidecar(settings).await;
        let met = loop {
            let answer = post(sidecar.address(), call(harmless)).await;
            assert_eq!(answer.json()["result"], "0x1");
            if let Ok(met) = cut.try_recv() {
                break met;
            }
        };
        assert!(met.contains(harmless), "{met}");
    }
    for harmful in ["eth_sendRawTransaction", "engine_forkchoiceUpdatedV3"] {
        let (el, mut cut) = closes_used_connections().await;
        let mut settings = settings(el);
        settings.transport = Some("json".to_owned());
        let sidecar = sidecar(settings).await;
        let refused = loop {
            let answer = post(sidecar.address(), call(harmful)).await.json();
            if answer["result"] != "0x1" {
                break answer;
            }
        };
        assert_eq!(refused["error"]["code"], -32603);
        assert!(cut.try_recv().unwrap().contains(harmful));
        assert!(cut.try_recv().is_err(), "sent twice");
    }
}
