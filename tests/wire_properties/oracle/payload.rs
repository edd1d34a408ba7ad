//! Payloads, submitted and built.

use alloy_eips::eip7685::Requests;
use alloy_primitives::B256;
use alloy_rpc_types_engine::ssz_engine_types::*;
use alloy_rpc_types_engine::{
    BlobsBundleV1, BlobsBundleV2, ExecutionPayloadEnvelopeV2, ExecutionPayloadEnvelopeV3,
    ExecutionPayloadEnvelopeV4, ExecutionPayloadEnvelopeV5, ExecutionPayloadEnvelopeV6,
    ExecutionPayloadFieldV2, ExecutionPayloadV1, ExecutionPayloadV2, ExecutionPayloadV3,
    ExecutionPayloadV4,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, from_value, to_value};

use super::Oracle;
use crate::draw::Draw;

/// Alloy checks the bounds of a payload only inside an envelope, whose other fields are `fixed` and
/// an empty list of requests if there is an offset for them.
macro_rules! payload {
    ($payload:ty, $envelope:ty, $fixed_part:literal, $draw:ident) => {
        impl Oracle for $payload {
            fn draw(draw: &mut Draw<'_>) -> Self {
                $draw(draw)
            }
            fn encode(&self) -> Vec<u8> {
                ssz::Encode::as_ssz_bytes(self)
            }
            fn decode(ssz: &[u8]) -> Option<Self> {
                let mut envelope = vec![0; $fixed_part];
                envelope[0] = $fixed_part;
                if $fixed_part == 40 {
                    let end = u32::try_from($fixed_part + ssz.len()).unwrap();
                    envelope[36..].copy_from_slice(&end.to_le_bytes());
                }
                envelope.extend(ssz);
                let envelope = <$envelope as ssz::Decode>::from_ssz_bytes(&envelope).ok()?;
                Some(envelope.payload)
            }
            json!();
        }
    };
}

fn payload_v1(draw: &mut Draw<'_>) -> ExecutionPayloadV1 {
    ExecutionPayloadV1 {
        transactions: draw.transactions(),
        extra_data: draw.bytes(32),
        base_fee_per_gas: draw.u256(),
        gas_limit: draw.u64(),
        timestamp: draw.u64(),
        parent_hash: draw.hash(),
        fee_recipient: draw.address(),
        state_root: draw.hash(),
        receipts_root: draw.hash(),
        logs_bloom: draw.bloom(),
        prev_randao: draw.hash(),
        block_number: draw.u64(),
        gas_used: draw.u64(),
        block_hash: draw.hash(),
    }
}

fn payload_v2(draw: &mut Draw<'_>) -> ExecutionPayloadV2 {
    ExecutionPayloadV2 { withdrawals: draw.withdrawals(), payload_inner: payload_v1(draw) }
}

fn payload_v3(draw: &mut Draw<'_>) -> ExecutionPayloadV3 {
    ExecutionPayloadV3 {
        blob_gas_used: draw.u64(),
        excess_blob_gas: draw.u64(),
        payload_inner: payload_v2(draw),
    }
}

fn payload_v4(draw: &mut Draw<'_>) -> ExecutionPayloadV4 {
    ExecutionPayloadV4 {
        block_access_list: draw.bytes(90),
        slot_number: draw.u64(),
        payload_inner: payload_v3(draw),
    }
}

payload!(ExecutionPayloadV1, ExecutionPayloadEnvelopeParis, 4, payload_v1);
payload!(ExecutionPayloadV2, ExecutionPayloadEnvelopeShanghai, 4, payload_v2);
payload!(ExecutionPayloadV3, ExecutionPayloadEnvelopeCancun, 36, payload_v3);
payload!(ExecutionPayloadV4, ExecutionPayloadEnvelopeAmsterdam, 40, payload_v4);

/// Positional parameters, by the names the schema gives them. Alloy has no such type.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parameters<P> {
    payload: P,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_beacon_block_root: Option<B256>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_requests: Option<Requests>,
}

macro_rules! envelope {
    ($envelope:ident, $draw:ident $(, $field:ident = $value:expr)*) => {
        impl Oracle for $envelope {
            fn draw(draw: &mut Draw<'_>) -> Self {
                $(let $field = $value(draw);)*
                Self { payload: $draw(draw), $($field),* }
            }
            ssz!();
            fn to_json(&self) -> Value {
                #[allow(unused_mut, reason = "envelopes of one field")]
                let mut parameters = Parameters {
                    payload: self.payload.clone(),
                    parent_beacon_block_root: None,
                    execution_requests: None,
                };
                $(parameters.$field = Some(self.$field.clone());)*
                to_value(parameters).unwrap()
            }
            fn from_json(json: Value) -> Option<Self> {
                let parameters: Parameters<_> = from_value(json).ok()?;
                Some(Self { payload: parameters.payload, $($field: parameters.$field?),* })
            }
        }
    };
}

envelope!(ExecutionPayloadEnvelopeParis, payload_v1);
envelope!(ExecutionPayloadEnvelopeShanghai, payload_v2);
envelope!(ExecutionPayloadEnvelopeCancun, payload_v3, parent_beacon_block_root = Draw::hash);
envelope!(
    ExecutionPayloadEnvelopePrague,
    payload_v3,
    parent_beacon_block_root = Draw::hash,
    execution_requests = Draw::requests
);
envelope!(
    ExecutionPayloadEnvelopeAmsterdam,
    payload_v4,
    parent_beacon_block_root = Draw::hash,
    execution_requests = Draw::requests
);

impl Oracle for BuiltPayloadParis {
    fn draw(draw: &mut Draw<'_>) -> Self {
        Self { block_value: draw.u256(), payload: payload_v1(draw) }
    }
    ssz!();
    fn to_json(&self) -> Value {
        let execution_payload = ExecutionPayloadFieldV2::V1(self.payload.clone());
        let legacy =
            ExecutionPayloadEnvelopeV2 { execution_payload, block_value: self.block_value };
        to_value(legacy).unwrap()
    }
    fn from_json(json: Value) -> Option<Self> {
        let legacy: ExecutionPayloadEnvelopeV2 = from_value(json).ok()?;
        let payload = legacy.execution_payload.into_v1_payload();
        Some(Self { payload, block_value: legacy.block_value })
    }
}

impl Oracle for BuiltPayloadShanghai {
    fn draw(draw: &mut Draw<'_>) -> Self {
        Self { block_value: draw.u256(), payload: payload_v2(draw) }
    }
    ssz!();
    json_as!(ExecutionPayloadEnvelopeV2);
}

fn bundle_v1(draw: &mut Draw<'_>) -> BlobsBundleV1 {
    let blobs = usize::from(draw.one_in(20));
    BlobsBundleV1 {
        commitments: draw.proofs(blobs),
        proofs: draw.proofs(blobs),
        blobs: (0..blobs).map(|_| *draw.blob()).collect(),
    }
}

fn bundle_v2(draw: &mut Draw<'_>) -> BlobsBundleV2 {
    let BlobsBundleV1 { commitments, blobs, .. } = bundle_v1(draw);
    BlobsBundleV2 { commitments, proofs: draw.proofs(128 * blobs.len()), blobs }
}

impl Oracle for BuiltPayloadCancun {
    fn draw(draw: &mut Draw<'_>) -> Self {
        ExecutionPayloadEnvelopeV3 {
            should_override_builder: draw.one_in(2),
            blobs_bundle: bundle_v1(draw),
            block_value: draw.u256(),
            execution_payload: payload_v3(draw),
        }
    }
    ssz!();
    json!();
}

macro_rules! built {
    ($built:ident, $legacy:ident, $payload:ident, $bundle:ident) => {
        impl Oracle for $built {
            fn draw(draw: &mut Draw<'_>) -> Self {
                Self {
                    should_override_builder: draw.one_in(2),
                    execution_requests: draw.requests(),
                    blobs_bundle: $bundle(draw),
                    block_value: draw.u256(),
                    payload: $payload(draw),
                }
            }
            ssz!();
            json_as!($legacy);
        }
    };
}

built!(BuiltPayloadPrague, ExecutionPayloadEnvelopeV4, payload_v3, bundle_v1);
built!(BuiltPayloadOsaka, ExecutionPayloadEnvelopeV5, payload_v3, bundle_v2);
built!(BuiltPayloadAmsterdam, ExecutionPayloadEnvelopeV6, payload_v4, bundle_v2);
