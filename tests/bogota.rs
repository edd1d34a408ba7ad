//! The whole sidecar in front of an EL with inclusion lists, and one that tells its schedule.

mod support;

use engine_ssz_proxy::{config::Settings, serve::Sidecar};
use http::StatusCode;
use serde_json::{Value, json};
use support::{
    post,
    scripted_el::{ScriptedEl, Seen, answer, json as json_answer, ssz},
    settings, sidecar,
};

/// An EL of the next fork, with a route and a fork that nobody knows.
const CAPABILITIES: &str = r#"{"supported_forks":["osaka","amsterdam","bogota","paisley"],"fork_scoped_endpoints":["payloads","payloads/witness","forkchoice","bodies"],"independently_versioned":{"blobs":["v1","v2","v3","v4"]},"limits":{}}"#;

const NO_CONFIG: &str = r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"unknown"}}"#;

/// Prague up to the golden block of Osaka and with it, then Osaka, then another number of blobs: as
/// go-ethereum tells it.
const PRAGUE_CONFIG: &str = r#"{"jsonrpc":"2.0","id":0,"result":{
    "current":{"activationTime":1,"blobSchedule":{"target":6,"max":9,"baseFeeUpdateFraction":5007716},"chainId":"0x88bb0","forkId":"0x0929e24e","precompiles":{"KZG_POINT_EVALUATION":"0x0a","BLS12_G1ADD":"0x0b"},"systemContracts":{}},
    "next":{"activationTime":1000000,"blobSchedule":{"target":6,"max":9,"baseFeeUpdateFraction":5007716},"chainId":"0x88bb0","forkId":"0x7e7ae1c5","precompiles":{"KZG_POINT_EVALUATION":"0x0a","BLS12_G1ADD":"0x0b","P256VERIFY":"0x0100"},"systemContracts":{}},
    "last":{"activationTime":2000000,"blobSchedule":{"target":14,"max":21,"baseFeeUpdateFraction":11684671},"chainId":"0x88bb0","forkId":"0x2134e0f9","precompiles":{"KZG_POINT_EVALUATION":"0x0a","BLS12_G1ADD":"0x0b","P256VERIFY":"0x0100"},"systemContracts":{}}}}"#;

/// SYNCING, with and without the fourth field.
const SYNCING: [u8; 9] = [2, 9, 0, 0, 0, 9, 0, 0, 0];
const SYNCING_V2: [u8; 13] = [2, 13, 0, 0, 0, 13, 0, 0, 0, 13, 0, 0, 0];

async fn el_of_bogota(seen: Seen) -> axum::response::Response {
    match seen.path.as_str() {
        "/engine/v1/payloads" if seen.headers["eth-execution-version"] == "bogota" => {
            ssz(SYNCING_V2.to_vec())
        }
        "/engine/v1/payloads" => ssz(SYNCING.to_vec()),
        "/engine/v1/inclusion_list" => ssz(vec![4, 0, 0, 0, 4, 0, 0, 0, 2, 0xaa]),
        "/" => {
            let request: Value = serde_json::from_slice(&seen.body).unwrap();
            let id = &request["id"];
            json_answer(json!({"jsonrpc": "2.0", "id": id, "result": "by JSON-RPC"}).to_string())
        }
        _ => answer(404, "text/plain", "no such route"),
    }
}

async fn start(el: &ScriptedEl, settings_of: impl FnOnce(&mut Settings)) -> Sidecar {
    let mut settings = settings(el.address);
    settings_of(&mut settings);
    sidecar(settings).await
}

fn new_payload_v6() -> Value {
    let text = include_str!("data/golden/15-amsterdam-newPayload.json");
    let mut request: Value = serde_json::from_str(text).unwrap();
    request["method"] = json!("engine_newPayloadV6");
    request["params"].as_array_mut().unwrap().push(json!(["0x02aa"]));
    request
}

fn get_inclusion_list() -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": "engine_getInclusionListV1", "params": []})
}

#[tokio::test]
async fn bogota_is_carried_when_the_el_offers_it_and_the_operator_asks_for_it() {
    let el = ScriptedEl::start_offering(CAPABILITIES, NO_CONFIG, el_of_bogota).await;
    let sidecar = start(&el, |settings| settings.experimental_bogota = true).await;
    let status = post(sidecar.address(), new_payload_v6().to_string()).await.json();
    let wanted = json!({
        "status": "SYNCING", "latestValidHash": null, "validationError": null,
        "inclusionListSatisfied": null
    });
    assert_eq!(status["result"], wanted);
    for _ in 0..2 {
        let list = post(sidecar.address(), get_inclusion_list().to_string()).await;
        assert_eq!(list.body, r#"{"jsonrpc":"2.0","id":7,"result":["0x02aa"]}"#);
    }
    assert_eq!(
        el.paths(),
        [
            "/engine/v1/payloads",
            "/engine/v1/inclusion-list",
            "/engine/v1/inclusion_list",
            "/engine/v1/inclusion_list",
        ]
    );
}

#[tokio::test]
async fn bogota_is_relayed_untouched_when_nobody_asked_for_it() {
    let el = ScriptedEl::start_offering(CAPABILITIES, NO_CONFIG, el_of_bogota).await;
    let sidecar = start(&el, |_| {}).await;
    for request in [new_payload_v6(), get_inclusion_list()] {
        let text = request.to_string();
        let answer = post(sidecar.address(), text.clone()).await;
        assert_eq!(answer.json()["result"], "by JSON-RPC");
        let last = el.seen().pop().unwrap();
        assert_eq!((last.path.as_str(), &last.body[..]), ("/", text.as_bytes()));
    }
    assert_eq!(el.paths(), ["/", "/"]);
}

#[tokio::test]
async fn payloads_with_a_witness_are_relayed_untouched_and_their_route_is_no_trouble() {
    let el = ScriptedEl::start_offering(CAPABILITIES, NO_CONFIG, el_of_bogota).await;
    let sidecar = start(&el, |settings| settings.experimental_bogota = true).await;
    for method in ["engine_newPayloadWithWitnessV4", "engine_newPayloadWithWitnessV5"] {
        let text = format!(r#"{{ "method":"{method}", "id":"w", "params":[{{}}, [],"0x",[] ] }}"#);
        let answer = post(sidecar.address(), text.clone()).await;
        assert_eq!(answer.status, StatusCode::OK);
        let last = el.seen().pop().unwrap();
        assert_eq!((last.path.as_str(), &last.body[..]), ("/", text.as_bytes()));
    }
    // REST is used for what it has.
    let amsterdam = include_str!("data/golden/15-amsterdam-newPayload.json");
    post(sidecar.address(), amsterdam).await;
    assert_eq!(el.seen().pop().unwrap().headers["eth-execution-version"], "amsterdam");
}

#[tokio::test]
async fn the_el_is_asked_for_its_schedule_under_the_cls_bearer_and_believed() {
    let mut el =
        ScriptedEl::start_offering(support::scripted_el::CAPABILITIES, PRAGUE_CONFIG, el_of_bogota)
            .await;
    let sidecar = start(&el, |_| {}).await;
    let question = el.question().await;
    assert_eq!(question.headers["authorization"], "Bearer any.token.will-do");
    // Once more, for the answer to that one may still be on its way.
    sidecar.proxy().learn_schedule().await;
    let osaka = include_str!("data/golden/12-osaka-newPayload.json");
    post(sidecar.address(), osaka).await;
    assert_eq!(el.arrival().await.headers["eth-execution-version"], "prague");
}

#[tokio::test]
async fn an_el_that_does_not_tell_its_schedule_is_no_trouble() {
    for config in [NO_CONFIG, "not JSON", "", r#"{"jsonrpc":"2.0","id":0,"result":null}"#] {
        let capabilities = support::scripted_el::CAPABILITIES;
        let mut el = ScriptedEl::start_offering(capabilities, config, el_of_bogota).await;
        let sidecar = start(&el, |_| {}).await;
        el.question().await;
        sidecar.proxy().learn_schedule().await;
        let osaka = include_str!("data/golden/12-osaka-newPayload.json");
        let said = post(sidecar.address(), osaka).await.json();
        assert_eq!(said["result"]["status"], "SYNCING");
        assert_eq!(el.arrival().await.headers["eth-execution-version"], "osaka");
    }
}
