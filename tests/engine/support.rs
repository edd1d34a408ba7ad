//! A call under way without a socket, and answers of an EL built with alloy's types.

use alloy_primitives::B256;
use alloy_rpc_types_engine::{
    PayloadAttributes, PayloadId,
    ssz_engine_types::{
        ForkchoiceUpdateAmsterdam, ForkchoiceUpdateCancun, ForkchoiceUpdateParis,
        ForkchoiceUpdateResponse, ForkchoiceUpdateShanghai, PayloadStatus, PayloadStatusKind,
        ValidationError,
    },
};
use bytes::Bytes;
use engine_ssz_proxy::{
    engine::{
        Answer, Call, Context, Exchange, Memory, Method, Offer, RelayReason, Said, Schedule, Step,
    },
    wire::Fork,
};
use http::Response;
use serde_json::Value;
use ssz::{Decode, Encode};

pub const SSZ: &str = "application/octet-stream";
pub const PROBLEM: &str = "application/problem+json";

/// What a call may know, and a call under way.
pub struct Scene {
    pub memory: Memory,
    pub offer: Option<Offer>,
}

impl Scene {
    pub fn new() -> Self {
        Self { memory: Memory::new(None), offer: Some(Offer::of_forks(&Fork::SPECIFIED)) }
    }

    pub fn scheduled() -> Self {
        let genesis = include_str!("../data/genesis/genesis-allforks.json");
        let schedule = Schedule::from_genesis(genesis).unwrap();
        Self { memory: Memory::new(Some(schedule)), ..Self::new() }
    }

    pub fn context(&self) -> Context<'_> {
        Context { memory: &self.memory, offer: self.offer.as_ref() }
    }

    pub fn begin(&self, request: &Value) -> (Call, Step) {
        let method = Method::from_name(request["method"].as_str().unwrap()).unwrap();
        let params = request.get("params").map(|params| params.to_string().into_bytes());
        Call::begin(method, params.as_deref(), self.context())
    }

    pub fn sent(&self, request: &Value) -> (Call, Exchange) {
        match self.begin(request) {
            (call, Step::Send(exchange)) => (call, *exchange),
            (_, step) => panic!("not sent: {step:?}"),
        }
    }

    pub fn relayed(&self, request: &Value) -> RelayReason {
        match self.begin(request) {
            (_, Step::Relay(reason)) => reason,
            (_, step) => panic!("not relayed: {step:?}"),
        }
    }

    pub fn hear(&self, call: &mut Call, answer: Response<Bytes>) -> Step {
        call.resume(Said::Rest(answer), self.context())
    }
}

/// A real request of the golden chain.
pub fn golden(block: &str, call: &str) -> Value {
    let path = format!("{}/tests/data/golden/{block}-{call}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The forkchoice with attributes that a real EL built the block on, as JSON by alloy, and the SSZ
/// that it was sent as.
pub fn build(block: &str) -> (Value, Vec<u8>) {
    let path = format!("{}/tests/data/golden/{block}-build.ssz", env!("CARGO_MANIFEST_DIR"));
    let ssz = std::fs::read(path).unwrap();
    macro_rules! json {
        ($container:ty) => {{
            let update = <$container>::from_ssz_bytes(&ssz).unwrap();
            let attributes = update.payload_attributes.into_option().unwrap();
            (update.forkchoice_state, PayloadAttributes::from(attributes))
        }};
    }
    let (version, (state, attributes)) = match &block[3..] {
        "paris" => ("V1", json!(ForkchoiceUpdateParis)),
        "shanghai" => ("V2", json!(ForkchoiceUpdateShanghai)),
        "amsterdam" => ("V4", json!(ForkchoiceUpdateAmsterdam)),
        _ => ("V3", json!(ForkchoiceUpdateCancun)),
    };
    let mut attributes = serde_json::to_value(attributes).unwrap();
    attributes.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    let method = format!("engine_forkchoiceUpdated{version}");
    (serde_json::json!({"method": method, "params": [state, attributes]}), ssz)
}

pub fn block_hash(new_payload: &Value) -> B256 {
    new_payload["params"][0]["blockHash"].as_str().unwrap().parse().unwrap()
}

pub fn ok(body: impl Encode) -> Response<Bytes> {
    answer(200, SSZ, body.as_ssz_bytes())
}

pub fn answer(status: u16, content_type: &str, body: impl Into<Bytes>) -> Response<Bytes> {
    let mut response = Response::builder().status(status);
    if !content_type.is_empty() {
        response = response.header("content-type", content_type);
    }
    response.body(body.into()).unwrap()
}

pub fn problem(status: u16, name: &str) -> Response<Bytes> {
    answer(status, PROBLEM, format!(r#"{{"type":"/engine-api/errors/{name}"}}"#))
}

pub fn status(
    kind: PayloadStatusKind,
    latest_valid_hash: Option<B256>,
    error: Option<&str>,
) -> PayloadStatus {
    let error = error.map(|text| {
        ValidationError::try_from(alloy_primitives::Bytes::copy_from_slice(text.as_bytes()))
            .unwrap()
    });
    PayloadStatus {
        status: kind,
        latest_valid_hash: latest_valid_hash.into(),
        validation_error: error.into(),
    }
}

/// VALID of the request's own head.
pub fn updated(request: &Value, payload_id: Option<[u8; 8]>) -> ForkchoiceUpdateResponse {
    ForkchoiceUpdateResponse {
        payload_status: status(PayloadStatusKind::Valid, Some(head_of(request)), None),
        payload_id: payload_id.map(PayloadId::new).into(),
    }
}

pub fn head_of(request: &Value) -> B256 {
    request["params"][0]["headBlockHash"].as_str().unwrap().parse().unwrap()
}

pub fn result(step: Step) -> Value {
    match step {
        Step::Answer(Answer::Result(result)) => serde_json::from_slice(&result).unwrap(),
        step => panic!("no result: {step:?}"),
    }
}

pub fn error_code(step: Step) -> i64 {
    match step {
        Step::Answer(Answer::Error(error)) => error.code.0,
        step => panic!("no error: {step:?}"),
    }
}

pub fn relay(step: Step) -> RelayReason {
    match step {
        Step::Relay(reason) => reason,
        step => panic!("no relay: {step:?}"),
    }
}

pub fn again(step: Step) -> Exchange {
    match step {
        Step::Send(exchange) => *exchange,
        step => panic!("not sent again: {step:?}"),
    }
}

pub fn header<'a>(exchange: &'a Exchange, name: &str) -> &'a str {
    exchange.request.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

pub fn fork(exchange: &Exchange) -> &str {
    header(exchange, "eth-execution-version")
}
