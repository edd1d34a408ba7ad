//! Request bodies as the consensus clients serialise them: key order, envelope order, ids and
//! parameter counts of their own (`data/jsonrpc/consensus-clients.jsonl`, `body` is the exact HTTP
//! body).

mod support;

use engine_ssz_proxy::mock_el::{Http, MockEl, Surface};
use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use support::{mock_config, post, settings, sidecar};

#[derive(Deserialize)]
struct Sample {
    cl: String,
    body: String,
}

fn samples() -> Vec<Sample> {
    let lines = include_str!("data/jsonrpc/consensus-clients.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What a CL goes by: the result, or the code of an error; of the validation error of a verdict
/// that the sidecar gives itself only that it is there.
fn to_a_cl(mut answer: Value) -> Value {
    if let Some(answers) = answer.as_array_mut() {
        return answers.iter_mut().map(|answer| to_a_cl(answer.take())).collect();
    }
    if let Some(error) = answer.get_mut("error") {
        *error = error["code"].take();
    }
    if answer["result"]["validationError"].is_string() {
        answer["result"]["validationError"] = Value::from("given");
    }
    answer
}

#[tokio::test]
async fn every_clients_bodies_get_the_els_own_answers() {
    let samples = samples();
    assert_eq!(samples.len(), 86);
    // Two ELs of the same chain, so that neither way of asking finds the other one's work.
    let behind = MockEl::start(mock_config(Surface::RestAndJson, Http::Both)).await.unwrap();
    let direct = MockEl::start(mock_config(Surface::RestAndJson, Http::Both)).await.unwrap();
    let sidecar = sidecar(settings(behind.addr())).await;
    for Sample { cl, body } in samples {
        let through = post(sidecar.address(), body.clone()).await;
        let straight = post(direct.addr(), body.clone()).await;
        assert_eq!(through.status, StatusCode::OK, "{cl}: {body}");
        assert_eq!(straight.status, StatusCode::OK, "{cl}: {body}");
        assert_eq!(to_a_cl(through.json()), to_a_cl(straight.json()), "{cl}: {body}");
    }
    let over_rest = behind.log().into_iter().filter(|seen| seen.path.starts_with("/engine/v1/"));
    assert!(over_rest.count() > 30, "hardly anything went over REST");
    sidecar.stop().await;
}
