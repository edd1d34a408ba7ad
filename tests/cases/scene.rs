//! A sidecar between a CL and an EL that says what the case wants.

use crate::support::{
    Answer, post,
    scripted_el::{ScriptedEl, Seen, answer, is_greeting, json as json_answer, problem},
    settings, sidecar,
};
use axum::response::Response;
use engine_ssz_proxy::{config::Settings, serve::Sidecar};
use http::StatusCode;
use serde_json::{Value, json, value::RawValue};
use std::path::PathBuf;

/// SYNCING, as `PayloadStatus` and as `ForkchoiceUpdateResponse`.
pub const SYNCING: [u8; 9] = [2, 9, 0, 0, 0, 9, 0, 0, 0];
pub const FORKCHOICE_SYNCING: [u8; 17] = [8, 0, 0, 0, 17, 0, 0, 0, 2, 9, 0, 0, 0, 9, 0, 0, 0];

/// A sidecar and the EL behind it.
pub struct Scene {
    pub el: ScriptedEl,
    pub sidecar: Sidecar,
}

impl Scene {
    /// The EL answers over REST as `rest` says and has JSON-RPC; no fork schedule is given.
    pub async fn learned(rest: impl Script) -> Self {
        Self::with(rest, by_json_rpc, |_| {}).await
    }

    /// The same with the fork schedule of the golden chain: a fork every 36 s.
    pub async fn scheduled(rest: impl Script) -> Self {
        Self::with(rest, by_json_rpc, |settings| settings.genesis = Some(genesis())).await
    }

    /// The EL has no JSON-RPC; the schedule is given.
    pub async fn rest_only(rest: impl Script) -> Self {
        Self::with(rest, no_json_rpc, |settings| settings.genesis = Some(genesis())).await
    }

    pub async fn with(
        rest: impl Script,
        json_rpc: impl Script,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let el = ScriptedEl::start(scripted(rest, json_rpc)).await;
        let mut settings = settings(el.address);
        change(&mut settings);
        let sidecar = sidecar(settings).await;
        Self { el, sidecar }
    }

    /// One call of the CL.
    pub async fn call(&self, body: impl ToString) -> Answer {
        post(self.sidecar.address(), body.to_string()).await
    }

    /// One call of the CL, answered with HTTP 200.
    pub async fn json(&self, body: impl ToString) -> Value {
        let answer = self.call(body).await;
        assert_eq!(answer.status, StatusCode::OK);
        answer.json()
    }

    /// What the EL received for the calls, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.el.seen().into_iter().filter(|seen| !is_greeting(seen)).collect()
    }

    pub fn paths(&self) -> Vec<String> {
        self.el.paths()
    }

    /// The call reaches the EL's JSON-RPC alone, as the CL's own bytes, and its answer the CL.
    pub async fn assert_relayed(&self, body: impl ToString, what: &str) {
        let body = body.to_string();
        let before = self.seen().len();
        let said = self.json(&body).await;
        assert_eq!(said["result"], "by JSON-RPC", "{what}: {said}");
        let seen = self.seen().split_off(before);
        let got: Vec<_> = seen.iter().map(|seen| (seen.path.as_str(), &seen.body[..])).collect();
        assert_eq!(got, [("/", body.as_bytes())], "{what}");
    }

    /// The call reaches the EL over REST alone; what the EL received.
    pub async fn carried(&self, body: impl ToString) -> Seen {
        let before = self.seen().len();
        let said = self.json(body).await;
        assert!(said["error"].is_null(), "{said}");
        let mut seen = self.seen().split_off(before);
        assert_eq!(seen.len(), 1, "{seen:?}");
        let seen = seen.remove(0);
        assert!(seen.path.starts_with("/engine/v1/"), "{}", seen.path);
        seen
    }
}

/// What an EL says to a request.
pub trait Script: Fn(&Seen) -> Response + Clone + Send + Sync + 'static {}

impl<T: Fn(&Seen) -> Response + Clone + Send + Sync + 'static> Script for T {}

/// The script of an EL from its two halves.
pub fn scripted(
    rest: impl Script,
    json_rpc: impl Script,
) -> impl Fn(Seen) -> std::future::Ready<Response> + Clone + Send + Sync + 'static {
    move |seen| {
        std::future::ready(match seen.path.as_str() {
            "/" if is_greeting(&seen) => by_json_rpc(&seen),
            "/" => json_rpc(&seen),
            _ => rest(&seen),
        })
    }
}

/// A JSON-RPC that answers any call.
pub fn by_json_rpc(seen: &Seen) -> Response {
    json_rpc_result(seen, r#""by JSON-RPC""#)
}

pub fn json_rpc_result(seen: &Seen, result: &str) -> Response {
    json_answer(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id(seen)))
}

/// A JSON-RPC that refuses any call with that code.
pub fn json_rpc_error(seen: &Seen, code: i64, message: &str) -> Response {
    let error = json!({"code": code, "message": message});
    json_answer(format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, id(seen)))
}

/// The id's own text.
fn id(seen: &Seen) -> String {
    #[derive(serde::Deserialize)]
    struct Call<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
    }
    let call: Call<'_> = serde_json::from_slice(&seen.body).unwrap();
    call.id.map_or("null", RawValue::get).to_owned()
}

/// No JSON-RPC at that address.
pub fn no_json_rpc(_: &Seen) -> Response {
    problem(404, "method-not-found")
}

/// An EL that syncs.
pub fn syncing(seen: &Seen) -> Response {
    match seen.path.as_str() {
        "/engine/v1/payloads" => ssz(SYNCING),
        "/engine/v1/forkchoice" => ssz(FORKCHOICE_SYNCING),
        path => answer(404, "text/plain", path.to_owned()),
    }
}

/// An SSZ answer.
pub fn ssz(body: impl AsRef<[u8]>) -> Response {
    crate::support::scripted_el::ssz(body.as_ref().to_vec())
}

/// The bytes of hex text with blanks in it.
pub fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    const_hex::decode(digits).unwrap()
}

fn data(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(path)
}

/// The golden chain's genesis.
pub fn genesis() -> PathBuf {
    data("genesis/genesis-allforks.json")
}

/// A real message of the golden chain.
pub fn golden(name: &str) -> Value {
    let text = std::fs::read(data(&format!("golden/{name}.json"))).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// A real body of the golden chain.
pub fn golden_ssz(name: &str) -> Vec<u8> {
    std::fs::read(data(&format!("golden/{name}.ssz"))).unwrap()
}

pub fn rpc(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// A forkchoice of that version with the parameters after the state.
pub fn forkchoice(version: &str, after_state: &[Value]) -> Value {
    let mut params = vec![state("11")];
    params.extend_from_slice(after_state);
    rpc(&format!("engine_forkchoiceUpdated{version}"), params.into())
}

/// A forkchoice state whose three hashes repeat that byte.
pub fn state(byte: &str) -> Value {
    let hash = format!("0x{}", byte.repeat(32));
    json!({"headBlockHash": hash, "safeBlockHash": hash, "finalizedBlockHash": hash})
}

/// Attributes as Cancun to Osaka have them.
pub fn attributes(timestamp: u64) -> Value {
    json!({
        "timestamp": format!("{timestamp:#x}"),
        "prevRandao": format!("0x{}", "22".repeat(32)),
        "suggestedFeeRecipient": format!("0x{}", "33".repeat(20)),
        "withdrawals": [],
        "parentBeaconBlockRoot": format!("0x{}", "44".repeat(32)),
    })
}

/// Attributes as Amsterdam has them.
pub fn amsterdam_attributes() -> Value {
    let mut attributes = attributes(190);
    attributes["slotNumber"] = json!("0x10");
    attributes["targetGasLimit"] = json!("0x3938700");
    attributes
}

/// That message with one value changed.
pub fn changed(mut message: Value, pointer: &str, value: Value) -> Value {
    *message.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = value;
    message
}

/// That message without one member.
pub fn without(mut message: Value, pointer: &str, name: &str) -> Value {
    let object = message.pointer_mut(pointer).and_then(Value::as_object_mut).unwrap();
    object.remove(name).unwrap_or_else(|| panic!("no {name}"));
    message
}

pub fn fork_header(seen: &Seen) -> &str {
    seen.headers.get("eth-execution-version").map_or("", |value| value.to_str().unwrap())
}

/// A body of a megabyte is not worth printing.
pub fn assert_same(got: &[u8], wanted: &[u8], what: &str) {
    if got != wanted {
        let place = got.iter().zip(wanted).position(|(got, wanted)| got != wanted);
        panic!("{what}: {} and {} bytes differ at {place:?}", got.len(), wanted.len());
    }
}
