//! The JSON-RPC call that a captured REST request stands for.

use super::samples::Sample;
use crate::support::{Scene, build, golden};
use alloy_consensus::{Transaction, TxEnvelope};
use alloy_eips::Decodable2718;
use engine_ssz_proxy::{
    engine::{Exchange, Method, Offer, RelayReason, Step},
    wire::{self, Container, Fork, schema},
};
use serde_json::{Value, json};

/// A call whose answer the sample is.
pub struct Matching {
    pub request: Value,
    pub fork: Fork,
    pub likeness: Likeness,
}

/// How near the sidecar's own exchange comes to the captured request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// Verb, path, fork header, content type and body are the same.
    Same,
    /// They are, but for headers that were wrong on purpose.
    SameBut,
    /// The sidecar asks it over JSON-RPC without sending it.
    Unsent,
    /// The request was wrong on purpose, or has no form here: this is a well-formed call instead.
    Canonical,
}

/// What a path of the REST surface means in JSON-RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    NewPayload,
    Forkchoice,
    GetPayload,
    BodiesByHash,
    BodiesByRange,
    Blobs(&'static str),
    Identity,
}

/// A path of no endpoint is taken for a payload's.
fn family(sample: &Sample) -> Family {
    let path = sample.head.path.split('?').next().unwrap_or_default();
    let segments: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    match segments.get(2..).unwrap_or_default() {
        ["payloads", _] => Family::GetPayload,
        ["forkchoice"] => Family::Forkchoice,
        ["bodies", "hash"] => Family::BodiesByHash,
        ["bodies"] => Family::BodiesByRange,
        ["blobs", "v1"] => Family::Blobs("V1"),
        ["blobs", "v2"] => Family::Blobs("V2"),
        ["blobs", "v3"] => Family::Blobs("V3"),
        ["blobs", _] => Family::Blobs("V4"),
        ["identity"] => Family::Identity,
        _ => Family::NewPayload,
    }
}

pub fn matching(sample: &Sample) -> Matching {
    let family = family(sample);
    let named = sample.head.fork.as_deref().and_then(Fork::from_name);
    let own = sample.head.el.rsplit('-').next().and_then(Fork::from_name).unwrap();
    let fork = named.unwrap_or(own);
    if let Some(request) = same_call(sample, family, fork) {
        match scene(fork, &request).begin(&request).1 {
            Step::Send(exchange) if is_same(sample, &exchange) => {
                let content_type = exchange.request.headers().get("content-type");
                let content_type = content_type.map(|value| value.to_str().unwrap());
                let likeness = match sample.head.request_type.as_deref() == content_type {
                    true => Likeness::Same,
                    false => Likeness::SameBut,
                };
                return Matching { request, fork, likeness };
            }
            Step::Relay(RelayReason::Count(_) | RelayReason::EmptyRange { .. }) => {
                return Matching { request, fork, likeness: Likeness::Unsent };
            }
            _ => {}
        }
    }
    let request = canonical(family, fork, sample);
    Matching { request, fork, likeness: Likeness::Canonical }
}

/// A sidecar that knows that fork to be the one of the call, in front of an EL that offers it.
pub fn scene(fork: Fork, request: &Value) -> Scene {
    let scene = Scene { offer: Some(Offer::of_forks(&[fork])), ..Scene::new() };
    if request["method"].as_str().is_some_and(|name| name.contains("Bodies")) {
        // The chain is of that fork alone.
        scene.memory.learn(0, fork);
        scene.memory.note_time(0, fork);
    }
    for pointer in ["/params/0/timestamp", "/params/1/timestamp"] {
        let timestamp = request.pointer(pointer).and_then(Value::as_str);
        if let Some(hex) = timestamp.and_then(|text| text.strip_prefix("0x")) {
            scene.memory.learn(u64::from_str_radix(hex, 16).unwrap(), fork);
        }
    }
    scene
}

fn is_same(sample: &Sample, exchange: &Exchange) -> bool {
    let request = &exchange.request;
    let fork = request.headers().get("eth-execution-version");
    let fork = fork.map(|value| value.to_str().unwrap());
    let path = format!("/engine/v1{}", request.uri());
    *request.method() == *sample.head.method
        && path == sample.head.path
        && (fork == sample.head.fork.as_deref() || fork.is_none())
        && *request.body() == sample.request.clone().unwrap_or_default()
}

/// The call, read out of the captured request; `None` if it cannot be read.
fn same_call(sample: &Sample, family: Family, fork: Fork) -> Option<Value> {
    let read = |container: &Container, fork| -> Option<Value> {
        let json = wire::to_json(container, fork, sample.request.as_deref()?).ok()?;
        Some(serde_json::from_slice(&json).unwrap())
    };
    let path = &sample.head.path;
    match family {
        Family::NewPayload => {
            let envelope = read(schema::EXECUTION_PAYLOAD_ENVELOPE, fork)?;
            let mut params = vec![envelope["payload"].clone()];
            if fork >= Fork::Cancun {
                params.push(blob_hashes(&envelope["payload"])?);
                params.push(envelope["parentBeaconBlockRoot"].clone());
            }
            if fork >= Fork::Prague {
                params.push(envelope["executionRequests"].clone());
            }
            Some(call(new_payload(fork), params.into()))
        }
        Family::Forkchoice => {
            let update = read(schema::FORKCHOICE_UPDATE, fork)?;
            let members = ["forkchoiceState", "payloadAttributes", "custodyColumns"];
            let params: Vec<_> =
                members.iter().filter_map(|name| update.get(name)).cloned().collect();
            Some(call(forkchoice_updated(fork), params.into()))
        }
        Family::GetPayload => {
            let id = path.rsplit('/').next()?;
            Some(call(get_payload(fork), json!([id])))
        }
        Family::BodiesByHash => {
            let hashes = read(schema::BODIES_BY_HASH_REQUEST, fork)?["blockHashes"].clone();
            Some(call(bodies_by_hash(fork), json!([hashes])))
        }
        Family::BodiesByRange => {
            let number = |name: &str| -> Option<String> {
                let value = path.split(['?', '&']).find_map(|pair| pair.strip_prefix(name))?;
                Some(format!("{:#x}", value.strip_prefix('=')?.parse::<u64>().ok()?))
            };
            let params = json!([number("from")?, number("count")?]);
            Some(call("engine_getPayloadBodiesByRangeV1", params))
        }
        Family::Blobs("V4") => {
            let request = read(schema::BLOBS_V4_REQUEST, fork)?;
            let params = json!([request["versionedHashes"], request["indicesBitarray"]]);
            Some(call("engine_getBlobsV4", params))
        }
        Family::Blobs(version) => {
            let request = read(schema::BLOBS_REQUEST, fork)?;
            let params = json!([request["versionedHashes"]]);
            Some(call(&format!("engine_getBlobs{version}"), params))
        }
        Family::Identity => Some(canonical(family, fork, sample)),
    }
}

/// A well-formed call of the family.
fn canonical(family: Family, fork: Fork, sample: &Sample) -> Value {
    let hashes = json!([format!("0x01{}", "22".repeat(31))]);
    match family {
        Family::NewPayload => golden(block(fork), "newPayload"),
        // More than a forkchoice state: with attributes.
        Family::Forkchoice if sample.request.as_ref().is_some_and(|body| body.len() > 200) => {
            let mut request = build(block(fork)).0;
            request["params"][0] = forkchoice_state(sample);
            request
        }
        Family::Forkchoice => {
            call(forkchoice_updated(fork), json!([forkchoice_state(sample), null]))
        }
        Family::GetPayload => call(get_payload(fork), json!(["0x00000000000000ff"])),
        Family::BodiesByHash => call(bodies_by_hash(fork), json!([hashes])),
        Family::BodiesByRange => call("engine_getPayloadBodiesByRangeV1", json!(["0x1", "0x1"])),
        Family::Blobs("V4") => {
            call("engine_getBlobsV4", json!([hashes, format!("0x{}", "ff".repeat(16))]))
        }
        Family::Blobs(version) => call(&format!("engine_getBlobs{version}"), json!([hashes])),
        Family::Identity => {
            let version =
                json!({"code": "LH", "name": "Lighthouse", "version": "0", "commit": "0x00000000"});
            call("engine_getClientVersionV1", json!([version]))
        }
    }
}

/// The state that the sample's request begins with, whatever is wrong behind it: a VALID is of its
/// head.
fn forkchoice_state(sample: &Sample) -> Value {
    let hash = |place: usize| {
        let body = sample.request.as_deref().unwrap_or_default();
        let bytes = body.get(place * 32..(place + 1) * 32).unwrap_or(&[0x11; 32]);
        const_hex::encode_prefixed(bytes)
    };
    json!({
        "headBlockHash": hash(0), "safeBlockHash": hash(1), "finalizedBlockHash": hash(2)
    })
}

fn call(method: &str, params: Value) -> Value {
    assert!(Method::from_name(method).is_some(), "{method}");
    json!({"method": method, "params": params})
}

/// Read by alloy; `None` if a transaction cannot be.
fn blob_hashes(payload: &Value) -> Option<Value> {
    let mut hashes = Vec::new();
    for transaction in payload["transactions"].as_array()? {
        let bytes = const_hex::decode(transaction.as_str()?).ok()?;
        let transaction = TxEnvelope::decode_2718_exact(&bytes).ok()?;
        hashes.extend_from_slice(transaction.blob_versioned_hashes().unwrap_or_default());
    }
    Some(json!(hashes))
}

fn block(fork: Fork) -> &'static str {
    match fork {
        Fork::Paris => "01-paris",
        Fork::Shanghai => "03-shanghai",
        Fork::Cancun => "06-cancun",
        Fork::Prague => "09-prague",
        Fork::Osaka => "12-osaka",
        _ => "15-amsterdam",
    }
}

fn new_payload(fork: Fork) -> &'static str {
    match fork {
        Fork::Paris => "engine_newPayloadV1",
        Fork::Shanghai => "engine_newPayloadV2",
        Fork::Cancun => "engine_newPayloadV3",
        Fork::Prague | Fork::Osaka => "engine_newPayloadV4",
        _ => "engine_newPayloadV5",
    }
}

fn forkchoice_updated(fork: Fork) -> &'static str {
    match fork {
        Fork::Paris => "engine_forkchoiceUpdatedV1",
        Fork::Shanghai => "engine_forkchoiceUpdatedV2",
        Fork::Cancun | Fork::Prague | Fork::Osaka => "engine_forkchoiceUpdatedV3",
        _ => "engine_forkchoiceUpdatedV4",
    }
}

fn get_payload(fork: Fork) -> &'static str {
    match fork {
        Fork::Paris => "engine_getPayloadV1",
        Fork::Shanghai => "engine_getPayloadV2",
        Fork::Cancun => "engine_getPayloadV3",
        Fork::Prague => "engine_getPayloadV4",
        Fork::Osaka => "engine_getPayloadV5",
        _ => "engine_getPayloadV6",
    }
}

fn bodies_by_hash(fork: Fork) -> &'static str {
    match fork {
        Fork::Amsterdam => "engine_getPayloadBodiesByHashV2",
        _ => "engine_getPayloadBodiesByHashV1",
    }
}
