//! SSZ bodies of every endpoint and fork, through alloy's containers.

use alloy_eips::eip4844::{BlobAndProofV1, BlobAndProofV2, BlobCellsAndProofsV1};
use alloy_primitives::{B128, B256};
use alloy_rpc_types_engine::{
    ExecutionPayload, ExecutionPayloadEnvelopeV3, ForkchoiceState, PayloadAttributes, PayloadId,
    PayloadStatus as JsonPayloadStatus,
    ssz_engine_types::{
        BlobsV1Request, BlobsV1Response, BlobsV2Response, BlobsV3Response, BlobsV4Request,
        BlobsV4Response, BodiesByHashRequest, BodiesResponse, BodyEntry, BuiltPayloadAmsterdam,
        BuiltPayloadOsaka, BuiltPayloadParis, BuiltPayloadPrague, BuiltPayloadShanghai,
        ConversionError, ExecutionPayloadBodyAmsterdam, ExecutionPayloadBodyParis,
        ExecutionPayloadBodyShanghai, ExecutionPayloadEnvelopeAmsterdam,
        ExecutionPayloadEnvelopeCancun, ExecutionPayloadEnvelopeParis,
        ExecutionPayloadEnvelopePrague, ExecutionPayloadEnvelopeShanghai,
        ForkchoiceUpdateAmsterdam, ForkchoiceUpdateCancun, ForkchoiceUpdateParis,
        ForkchoiceUpdateResponse, ForkchoiceUpdateShanghai, Optional, PayloadStatus,
    },
};
use ssz::{Decode, DecodeError, Encode};

use super::{
    super::{
        block::Block,
        build::Built,
        chain::{Head, NewPayload},
        fork::Fork,
    },
    problem::Problem,
};

impl From<ConversionError> for Problem {
    fn from(error: ConversionError) -> Self {
        Self::Internal(error.to_string())
    }
}

/// A decoded `ForkchoiceUpdate`.
pub(super) struct ForkchoiceUpdate {
    pub(super) state: ForkchoiceState,
    pub(super) attributes: Option<PayloadAttributes>,
    pub(super) custody_columns: Option<B128>,
}

/// How many 32-byte hashes a request container holds whose only list follows `fixed_part` bytes.
///
/// The SSZ types refuse a list above its bound as malformed; the endpoint has another word for it.
pub(super) fn list_len(body: &[u8], fixed_part: usize) -> u64 {
    (body.len().saturating_sub(fixed_part) / 32) as u64
}

pub(super) fn new_payload(fork: Fork, body: &[u8]) -> Result<NewPayload, DecodeError> {
    let (payload, parent_beacon_block_root, requests): (ExecutionPayload, _, _) = match fork {
        Fork::Paris => {
            let envelope = ExecutionPayloadEnvelopeParis::from_ssz_bytes(body)?;
            (envelope.payload.into(), None, None)
        }
        Fork::Shanghai => {
            let envelope = ExecutionPayloadEnvelopeShanghai::from_ssz_bytes(body)?;
            (envelope.payload.into(), None, None)
        }
        Fork::Cancun => {
            let envelope = ExecutionPayloadEnvelopeCancun::from_ssz_bytes(body)?;
            (envelope.payload.into(), Some(envelope.parent_beacon_block_root), None)
        }
        Fork::Prague | Fork::Osaka => {
            let envelope = ExecutionPayloadEnvelopePrague::from_ssz_bytes(body)?;
            let root = Some(envelope.parent_beacon_block_root);
            (envelope.payload.into(), root, Some(envelope.execution_requests))
        }
        Fork::Amsterdam => {
            let envelope = ExecutionPayloadEnvelopeAmsterdam::from_ssz_bytes(body)?;
            let root = Some(envelope.parent_beacon_block_root);
            (envelope.payload.into(), root, Some(envelope.execution_requests))
        }
    };
    Ok(NewPayload {
        payload,
        parent_beacon_block_root,
        requests,
        expected_blob_versioned_hashes: None,
    })
}

pub(super) fn payload_status(status: JsonPayloadStatus) -> Result<Vec<u8>, ConversionError> {
    Ok(PayloadStatus::try_from(status)?.as_ssz_bytes())
}

pub(super) fn forkchoice(fork: Fork, body: &[u8]) -> Result<ForkchoiceUpdate, DecodeError> {
    fn attributes<T: Into<PayloadAttributes>>(optional: Optional<T>) -> Option<PayloadAttributes> {
        optional.into_option().map(Into::into)
    }
    let (state, attributes, custody_columns) = match fork {
        Fork::Paris => {
            let update = ForkchoiceUpdateParis::from_ssz_bytes(body)?;
            (update.forkchoice_state, attributes(update.payload_attributes), None)
        }
        Fork::Shanghai => {
            let update = ForkchoiceUpdateShanghai::from_ssz_bytes(body)?;
            (update.forkchoice_state, attributes(update.payload_attributes), None)
        }
        Fork::Cancun | Fork::Prague | Fork::Osaka => {
            let update = ForkchoiceUpdateCancun::from_ssz_bytes(body)?;
            (update.forkchoice_state, attributes(update.payload_attributes), None)
        }
        Fork::Amsterdam => {
            let update = ForkchoiceUpdateAmsterdam::from_ssz_bytes(body)?;
            let custody = update.custody_columns.into_option();
            (update.forkchoice_state, attributes(update.payload_attributes), custody)
        }
    };
    Ok(ForkchoiceUpdate { state, attributes, custody_columns })
}

pub(super) fn forkchoice_response(
    head: Head,
    payload_id: Option<PayloadId>,
) -> Result<Vec<u8>, ConversionError> {
    let response = ForkchoiceUpdateResponse {
        payload_status: JsonPayloadStatus::from(head).try_into()?,
        payload_id: payload_id.into(),
    };
    Ok(response.as_ssz_bytes())
}

pub(super) fn built_payload(built: &Built) -> Vec<u8> {
    let block_value = built.block_value;
    let should_override_builder = built.should_override_builder;
    let execution_requests = built.requests.clone();
    match (built.payload.clone(), built.fork) {
        (ExecutionPayload::V1(payload), _) => {
            BuiltPayloadParis { payload, block_value }.as_ssz_bytes()
        }
        (ExecutionPayload::V2(payload), _) => {
            BuiltPayloadShanghai { payload, block_value }.as_ssz_bytes()
        }
        (ExecutionPayload::V3(payload), Fork::Prague) => BuiltPayloadPrague {
            payload,
            block_value,
            blobs_bundle: built.blobs_bundle_v1(),
            execution_requests,
            should_override_builder,
        }
        .as_ssz_bytes(),
        (ExecutionPayload::V3(payload), Fork::Osaka) => BuiltPayloadOsaka {
            payload,
            block_value,
            blobs_bundle: built.blobs_bundle_v2(),
            execution_requests,
            should_override_builder,
        }
        .as_ssz_bytes(),
        // Cancun's container has no name of its own: it is the JSON-RPC envelope.
        (ExecutionPayload::V3(execution_payload), _) => ExecutionPayloadEnvelopeV3 {
            execution_payload,
            block_value,
            blobs_bundle: built.blobs_bundle_v1(),
            should_override_builder,
        }
        .as_ssz_bytes(),
        (ExecutionPayload::V4(payload), _) => BuiltPayloadAmsterdam {
            payload,
            block_value,
            blobs_bundle: built.blobs_bundle_v2(),
            execution_requests,
            should_override_builder,
        }
        .as_ssz_bytes(),
    }
}

pub(super) fn body_hashes(body: &[u8]) -> Result<Vec<B256>, DecodeError> {
    Ok(BodiesByHashRequest::from_ssz_bytes(body)?.block_hashes)
}

/// Bodies in the schema of `fork`; a block of another era is unavailable (refactor.md, "Historical
/// bodies").
pub(super) fn bodies(fork: Fork, blocks: Vec<Option<&Block>>) -> Vec<u8> {
    match fork {
        Fork::Paris => response(fork, blocks, |block| ExecutionPayloadBodyParis {
            transactions: block.transactions.clone(),
        }),
        Fork::Shanghai | Fork::Cancun | Fork::Prague | Fork::Osaka => {
            response(fork, blocks, |block| ExecutionPayloadBodyShanghai {
                transactions: block.transactions.clone(),
                withdrawals: block.withdrawals.clone().unwrap_or_default(),
            })
        }
        Fork::Amsterdam => response(fork, blocks, |block| ExecutionPayloadBodyAmsterdam {
            transactions: block.transactions.clone(),
            withdrawals: block.withdrawals.clone().unwrap_or_default(),
            block_access_list: block.block_access_list.clone().unwrap_or_default(),
        }),
    }
}

fn response<T: Encode + Decode + Default>(
    fork: Fork,
    blocks: Vec<Option<&Block>>,
    body: impl Fn(&Block) -> T,
) -> Vec<u8> {
    let entry = |block: Option<&Block>| match block.filter(|block| block.fork == fork) {
        Some(block) => BodyEntry::available(body(block)),
        None => BodyEntry::unavailable(),
    };
    BodiesResponse { entries: blocks.into_iter().map(entry).collect() }.as_ssz_bytes()
}

pub(super) fn blob_hashes(body: &[u8]) -> Result<Vec<B256>, DecodeError> {
    Ok(BlobsV1Request::from_ssz_bytes(body)?.versioned_hashes)
}

pub(super) fn blob_cells(body: &[u8]) -> Result<(Vec<B256>, B128), DecodeError> {
    let request = BlobsV4Request::from_ssz_bytes(body)?;
    Ok((request.versioned_hashes, request.indices_bitarray))
}

pub(super) fn blobs_v1(found: Vec<Option<BlobAndProofV1>>) -> Result<Vec<u8>, ConversionError> {
    Ok(BlobsV1Response::try_from(found)?.as_ssz_bytes())
}

pub(super) fn blobs_v2(found: Vec<BlobAndProofV2>) -> Result<Vec<u8>, ConversionError> {
    Ok(BlobsV2Response::try_from(found)?.as_ssz_bytes())
}

pub(super) fn blobs_v3(found: Vec<Option<BlobAndProofV2>>) -> Result<Vec<u8>, ConversionError> {
    Ok(BlobsV3Response::try_from(found)?.as_ssz_bytes())
}

pub(super) fn blobs_v4(
    found: Vec<Option<BlobCellsAndProofsV1>>,
) -> Result<Vec<u8>, ConversionError> {
    Ok(BlobsV4Response::try_from(found)?.as_ssz_bytes())
}
