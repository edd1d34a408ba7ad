//! Seventeen blocks over six forks, built and imported over either dialect.

use alloy_eips::{eip4844::kzg_to_versioned_hash, eip4895::Withdrawal, eip7685::Requests};
use alloy_primitives::{Address, B256, Bytes, keccak256};
use alloy_rpc_types_engine::{
    ExecutionPayload, ExecutionPayloadEnvelopeV2, ExecutionPayloadEnvelopeV3,
    ExecutionPayloadEnvelopeV4, ExecutionPayloadEnvelopeV5, ExecutionPayloadEnvelopeV6,
    ExecutionPayloadFieldV2, ForkchoiceState, ForkchoiceUpdated, PayloadAttributes, PayloadId,
    PayloadStatus, ssz_engine_types as rest,
};
use engine_ssz_proxy::mock_el::MockEl;
use serde::Serialize;
use serde_json::{Value, json};
use ssz::{Decode, Encode};

use super::client::Peer;

/// The built-in chain: two Paris blocks, then three of each fork.
pub const BLOCKS: u64 = 17;

pub fn fork(number: u64) -> &'static str {
    match number {
        0..3 => "paris",
        3..6 => "shanghai",
        6..9 => "cancun",
        9..12 => "prague",
        12..15 => "osaka",
        _ => "amsterdam",
    }
}

pub fn attributes(number: u64) -> PayloadAttributes {
    let withdrawal = |index| Withdrawal {
        index,
        validator_index: index + 7,
        address: Address::repeat_byte(number as u8),
        amount: u64::MAX - index,
    };
    PayloadAttributes {
        timestamp: 12 * number,
        prev_randao: keccak256(number.to_le_bytes()),
        suggested_fee_recipient: Address::repeat_byte(0xfe),
        withdrawals: (number >= 3).then(|| (0..number % 3).map(withdrawal).collect()),
        parent_beacon_block_root: (number >= 6).then(|| beacon_root(number)),
        slot_number: (number >= 15).then_some(1000 + number),
        target_gas_limit: (number >= 15).then_some(30_000_000),
    }
}

pub fn beacon_root(number: u64) -> B256 {
    keccak256([b"beacon".as_slice(), &number.to_le_bytes()].concat())
}

pub fn state(head: B256) -> ForkchoiceState {
    ForkchoiceState {
        head_block_hash: head,
        safe_block_hash: B256::ZERO,
        finalized_block_hash: B256::ZERO,
    }
}

/// The method version a CL uses for a block, by kind of call.
pub fn version(kind: &str, number: u64) -> String {
    let version = match (kind, fork(number)) {
        (_, "paris") => 1,
        (_, "shanghai") => 2,
        (_, "cancun") => 3,
        ("forkchoiceUpdated", "prague" | "osaka") => 3,
        ("newPayload", "osaka") => 4,
        ("forkchoiceUpdated", _) => 4,
        ("newPayload", "amsterdam") => 5,
        (_, "prague") => 4,
        (_, "osaka") => 5,
        _ => 6,
    };
    format!("engine_{kind}V{version}")
}

/// A forkchoice update as SSZ in the shape of a fork.
pub fn ssz_update(fork: &str, state: ForkchoiceState, attrs: Option<PayloadAttributes>) -> Vec<u8> {
    fn optional<T>(attributes: Option<PayloadAttributes>) -> rest::Optional<T>
    where
        T: TryFrom<PayloadAttributes, Error: std::fmt::Debug>,
    {
        attributes.map(|attributes| attributes.try_into().unwrap()).into()
    }
    let forkchoice_state = state;
    match fork {
        "paris" => {
            rest::ForkchoiceUpdateParis { forkchoice_state, payload_attributes: optional(attrs) }
                .as_ssz_bytes()
        }
        "shanghai" => {
            rest::ForkchoiceUpdateShanghai { forkchoice_state, payload_attributes: optional(attrs) }
                .as_ssz_bytes()
        }
        "cancun" | "prague" | "osaka" => {
            rest::ForkchoiceUpdateCancun { forkchoice_state, payload_attributes: optional(attrs) }
                .as_ssz_bytes()
        }
        _ => rest::ForkchoiceUpdateAmsterdam {
            forkchoice_state,
            payload_attributes: optional(attrs),
            custody_columns: rest::Optional::none(),
        }
        .as_ssz_bytes(),
    }
}

/// What a CL takes out of a built payload, whatever it came as.
#[derive(Clone)]
pub struct Built {
    pub payload: ExecutionPayload,
    pub requests: Requests,
    pub commitments: Vec<Bytes>,
    /// The whole answer as JSON-RPC would put it.
    pub json: Value,
}

impl Built {
    pub fn versioned_hashes(&self) -> Vec<B256> {
        self.commitments.iter().map(|commitment| kzg_to_versioned_hash(commitment)).collect()
    }

    pub fn params(&self, number: u64) -> Value {
        let mut params = vec![match &self.payload {
            ExecutionPayload::V1(payload) => json!(payload),
            ExecutionPayload::V2(payload) => json!(payload),
            ExecutionPayload::V3(payload) => json!(payload),
            ExecutionPayload::V4(payload) => json!(payload),
        }];
        if number >= 6 {
            params.extend([json!(self.versioned_hashes()), json!(beacon_root(number))]);
        }
        if number >= 9 {
            params.push(json!(self.requests));
        }
        Value::Array(params)
    }

    pub fn envelope(&self, number: u64) -> Vec<u8> {
        let root = beacon_root(number);
        let requests = self.requests.clone();
        match (self.payload.clone(), fork(number)) {
            (ExecutionPayload::V1(payload), _) => {
                rest::ExecutionPayloadEnvelopeParis::from(payload).as_ssz_bytes()
            }
            (ExecutionPayload::V2(payload), _) => {
                rest::ExecutionPayloadEnvelopeShanghai::from(payload).as_ssz_bytes()
            }
            (ExecutionPayload::V3(payload), "cancun") => {
                rest::ExecutionPayloadEnvelopeCancun::from((payload, root)).as_ssz_bytes()
            }
            (ExecutionPayload::V3(payload), _) => {
                rest::ExecutionPayloadEnvelopePrague::from((payload, root, requests)).as_ssz_bytes()
            }
            (ExecutionPayload::V4(payload), _) => {
                rest::ExecutionPayloadEnvelopeAmsterdam::from((payload, root, requests))
                    .as_ssz_bytes()
            }
        }
    }

    /// Reads a REST answer.
    pub fn from_ssz(number: u64, bytes: &[u8]) -> Self {
        fn commitments(list: &[alloy_eips::eip4844::Bytes48]) -> Vec<Bytes> {
            list.iter().map(|commitment| Bytes::copy_from_slice(commitment.as_slice())).collect()
        }
        fn built(
            payload: impl Into<ExecutionPayload>,
            requests: Requests,
            commitments: Vec<Bytes>,
            json: impl Serialize,
        ) -> Built {
            Built { payload: payload.into(), requests, commitments, json: json!(json) }
        }
        match fork(number) {
            "paris" => {
                let answer = rest::BuiltPayloadParis::from_ssz_bytes(bytes).unwrap();
                let json = ExecutionPayloadEnvelopeV2 {
                    execution_payload: ExecutionPayloadFieldV2::V1(answer.payload.clone()),
                    block_value: answer.block_value,
                };
                built(answer.payload, Requests::default(), Vec::new(), json)
            }
            "shanghai" => {
                let answer = rest::BuiltPayloadShanghai::from_ssz_bytes(bytes).unwrap();
                let json = ExecutionPayloadEnvelopeV2::from(answer.clone());
                built(answer.payload, Requests::default(), Vec::new(), json)
            }
            "cancun" => {
                let answer = ExecutionPayloadEnvelopeV3::from_ssz_bytes(bytes).unwrap();
                let commitments = commitments(&answer.blobs_bundle.commitments);
                built(answer.execution_payload.clone(), Requests::default(), commitments, answer)
            }
            "prague" => {
                let answer = rest::BuiltPayloadPrague::from_ssz_bytes(bytes).unwrap();
                let (payload, requests) =
                    (answer.payload.clone(), answer.execution_requests.clone());
                let commitments = commitments(&answer.blobs_bundle.commitments);
                built(payload, requests, commitments, ExecutionPayloadEnvelopeV4::from(answer))
            }
            "osaka" => {
                let answer = rest::BuiltPayloadOsaka::from_ssz_bytes(bytes).unwrap();
                let (payload, requests) =
                    (answer.payload.clone(), answer.execution_requests.clone());
                let commitments = commitments(&answer.blobs_bundle.commitments);
                built(payload, requests, commitments, ExecutionPayloadEnvelopeV5::from(answer))
            }
            _ => {
                let answer = rest::BuiltPayloadAmsterdam::from_ssz_bytes(bytes).unwrap();
                let (payload, requests) =
                    (answer.payload.clone(), answer.execution_requests.clone());
                let commitments = commitments(&answer.blobs_bundle.commitments);
                built(payload, requests, commitments, ExecutionPayloadEnvelopeV6::from(answer))
            }
        }
    }

    /// Reads a JSON-RPC answer.
    pub fn from_json(number: u64, answer: Value) -> Self {
        let payload = &answer["executionPayload"];
        let payload: ExecutionPayload = match fork(number) {
            "paris" => ExecutionPayload::V1(serde_json::from_value(payload.clone()).unwrap()),
            "shanghai" => ExecutionPayload::V2(serde_json::from_value(payload.clone()).unwrap()),
            "amsterdam" => ExecutionPayload::V4(serde_json::from_value(payload.clone()).unwrap()),
            _ => ExecutionPayload::V3(serde_json::from_value(payload.clone()).unwrap()),
        };
        let list = |value: &Value| match value {
            Value::Null => Vec::new(),
            list => serde_json::from_value::<Vec<Bytes>>(list.clone()).unwrap(),
        };
        Self {
            payload,
            requests: Requests::new(list(&answer["executionRequests"])),
            commitments: list(&answer["blobsBundle"]["commitments"]),
            json: answer,
        }
    }
}

/// One block over JSON-RPC: build, fetch, import, adopt.
pub async fn json_block(peer: &Peer, number: u64, parent: B256) -> (PayloadId, Built) {
    let update = version("forkchoiceUpdated", number);
    let answer = peer.result(&update, json!([state(parent), attributes(number)])).await;
    let updated: ForkchoiceUpdated = serde_json::from_value(answer).unwrap();
    assert_eq!(updated.payload_status, valid(parent));
    let id = updated.payload_id.expect("a build");
    let mut answer = peer.result(&version("getPayload", number), json!([id])).await;
    if number < 3 {
        // The first version of the method has the payload alone; the second has the envelope.
        let bare = answer;
        answer = peer.result("engine_getPayloadV2", json!([id])).await;
        assert_eq!(bare, answer["executionPayload"]);
    }
    let built = Built::from_json(number, answer);
    let head = built.payload.block_hash();
    let status = peer.result(&version("newPayload", number), built.params(number)).await;
    assert_eq!(serde_json::from_value::<PayloadStatus>(status).unwrap(), valid(head));
    let answer = peer.result(&update, json!([state(head), null])).await;
    let adopted: ForkchoiceUpdated = serde_json::from_value(answer).unwrap();
    assert_eq!(adopted, ForkchoiceUpdated::new(valid(head)));
    (id, built)
}

/// One block over REST: build, fetch, import, adopt.
pub async fn rest_block(peer: &Peer, number: u64, parent: B256) -> (PayloadId, Built) {
    let fork = fork(number);
    let update = ssz_update(fork, state(parent), Some(attributes(number)));
    let answer = peer.post("/engine/v1/forkchoice", fork, update).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let updated = rest::ForkchoiceUpdateResponse::from_ssz_bytes(&answer.body).unwrap();
    let updated = ForkchoiceUpdated::from(updated);
    assert_eq!(updated.payload_status, valid(parent));
    let id = updated.payload_id.expect("a build");
    let answer = peer.get(&format!("/engine/v1/payloads/{id}"), fork).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["cache-control"], "no-store");
    let built = Built::from_ssz(number, &answer.body);
    let head = built.payload.block_hash();
    let answer = peer.post("/engine/v1/payloads", fork, built.envelope(number)).await;
    assert_eq!(*answer.body, *[&[0, 9, 0, 0, 0, 41, 0, 0, 0], head.as_slice()].concat());
    let answer =
        peer.post("/engine/v1/forkchoice", fork, ssz_update(fork, state(head), None)).await;
    let expected = [8, 0, 0, 0, 49, 0, 0, 0, 0, 9, 0, 0, 0, 41, 0, 0, 0];
    assert_eq!(*answer.body, *[&expected, head.as_slice()].concat());
    (id, built)
}

pub fn valid(hash: B256) -> PayloadStatus {
    use alloy_rpc_types_engine::PayloadStatusEnum::Valid;
    PayloadStatus::new(Valid, Some(hash))
}

/// The whole chain over JSON-RPC.
pub async fn whole_chain(el: &MockEl) -> Vec<Built> {
    let peer = Peer::h1(el);
    let (mut head, mut chain) = (el.genesis_hash(), Vec::new());
    for number in 1..=BLOCKS {
        let (_, built) = json_block(&peer, number, head).await;
        head = built.payload.block_hash();
        chain.push(built);
    }
    chain
}
