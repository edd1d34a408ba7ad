//! The `engine_` methods, each version with the forks it may be used for.
//!
//! `engine_getBlobsV1` to `V4` are answered whatever fork the chain is in (see [`super::super::rest`]).

mod forkchoice;
mod new_payload;

use alloy_primitives::{B128, B256};
use alloy_rpc_types_engine::{
    ExecutionPayload, ExecutionPayloadBodyV1, ExecutionPayloadBodyV2, ExecutionPayloadEnvelopeV2,
    ExecutionPayloadEnvelopeV3, ExecutionPayloadEnvelopeV4, ExecutionPayloadEnvelopeV5,
    ExecutionPayloadEnvelopeV6, ExecutionPayloadFieldV2, PayloadId,
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    super::{
        block::Block, build::Built, chain::Chain, error::EngineError, fork::Fork,
        identity::IDENTITY,
    },
    RpcError, json,
    params::Params,
};

/// Bodies in one call, at most. The specification wants 32 or more; real ELs serve 1024.
const MAX_BODIES: u64 = 1024;

/// Blobs in one call, at most.
const MAX_BLOBS: u64 = 128;

/// The version a method's name ends in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V2,
    V3,
    V4,
    V5,
    V6,
}

/// A version of the ExecutionPayload or the PayloadAttributes structure; both change at the same
/// forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Structure {
    V1,
    V2,
    V3,
    V4,
}

impl Structure {
    const fn of(fork: Fork) -> Self {
        match fork {
            Fork::Paris => Self::V1,
            Fork::Shanghai => Self::V2,
            Fork::Cancun | Fork::Prague | Fork::Osaka => Self::V3,
            Fork::Amsterdam => Self::V4,
        }
    }
}

/// A method of the `engine` namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    NewPayload(Version),
    ForkchoiceUpdated(Version),
    GetPayload(Version),
    BodiesByHash(Version),
    BodiesByRange(Version),
    GetBlobs(Version),
    GetClientVersion,
    ExchangeCapabilities,
}

/// Every method, by name. All but the last are capabilities.
const METHODS: [(&str, Method); 25] = {
    use Method::*;
    use Version::*;
    [
        ("engine_newPayloadV1", NewPayload(V1)),
        ("engine_newPayloadV2", NewPayload(V2)),
        ("engine_newPayloadV3", NewPayload(V3)),
        ("engine_newPayloadV4", NewPayload(V4)),
        ("engine_newPayloadV5", NewPayload(V5)),
        ("engine_forkchoiceUpdatedV1", ForkchoiceUpdated(V1)),
        ("engine_forkchoiceUpdatedV2", ForkchoiceUpdated(V2)),
        ("engine_forkchoiceUpdatedV3", ForkchoiceUpdated(V3)),
        ("engine_forkchoiceUpdatedV4", ForkchoiceUpdated(V4)),
        ("engine_getPayloadV1", GetPayload(V1)),
        ("engine_getPayloadV2", GetPayload(V2)),
        ("engine_getPayloadV3", GetPayload(V3)),
        ("engine_getPayloadV4", GetPayload(V4)),
        ("engine_getPayloadV5", GetPayload(V5)),
        ("engine_getPayloadV6", GetPayload(V6)),
        ("engine_getPayloadBodiesByHashV1", BodiesByHash(V1)),
        ("engine_getPayloadBodiesByHashV2", BodiesByHash(V2)),
        ("engine_getPayloadBodiesByRangeV1", BodiesByRange(V1)),
        ("engine_getPayloadBodiesByRangeV2", BodiesByRange(V2)),
        ("engine_getBlobsV1", GetBlobs(V1)),
        ("engine_getBlobsV2", GetBlobs(V2)),
        ("engine_getBlobsV3", GetBlobs(V3)),
        ("engine_getBlobsV4", GetBlobs(V4)),
        ("engine_getClientVersionV1", GetClientVersion),
        ("engine_exchangeCapabilities", ExchangeCapabilities),
    ]
};

impl Method {
    pub(super) fn named(name: &str) -> Option<Self> {
        METHODS.iter().find(|(known, _)| *known == name).map(|(_, method)| *method)
    }

    pub(super) fn run(self, chain: &mut Chain, params: &Params<'_>) -> Result<String, RpcError> {
        match self {
            Self::NewPayload(version) => new_payload::run(version, chain, params),
            Self::ForkchoiceUpdated(version) => forkchoice::run(version, chain, params),
            Self::GetPayload(version) => get_payload(version, chain, params),
            Self::BodiesByHash(version) => {
                let hashes: Vec<B256> = params.required(0, "block hashes")?;
                within(hashes.len() as u64, MAX_BODIES)?;
                bodies(version, hashes.iter().map(|hash| chain.block(hash)))
            }
            Self::BodiesByRange(version) => {
                let start = params.quantity(0, "start")?;
                let count = params.quantity(1, "count")?;
                if start == 0 || count == 0 {
                    return Err(RpcError::invalid_params("start and count must be at least 1"));
                }
                within(count, MAX_BODIES)?;
                bodies(version, chain.range(start, count).into_iter())
            }
            Self::GetBlobs(version) => get_blobs(version, chain, params),
            Self::GetClientVersion => {
                let _: Map<String, Value> = params.required(0, "client version")?;
                json(&IDENTITY)
            }
            Self::ExchangeCapabilities => {
                let _: Vec<String> = params.required(0, "methods")?;
                json(&capabilities())
            }
        }
    }
}

/// The method names, without `engine_exchangeCapabilities` itself (common.md, "Capabilities").
fn capabilities() -> Vec<&'static str> {
    METHODS
        .iter()
        .filter(|(_, method)| *method != Method::ExchangeCapabilities)
        .map(|(name, _)| *name)
        .collect()
}

fn within(asked: u64, limit: u64) -> Result<(), EngineError> {
    if asked > limit { Err(EngineError::TooLarge { asked, limit }) } else { Ok(()) }
}

fn get_payload(version: Version, chain: &Chain, params: &Params<'_>) -> Result<String, RpcError> {
    let id: PayloadId = params.required(0, "payload id")?;
    let forks: &[Fork] = match version {
        Version::V1 => &[Fork::Paris],
        Version::V2 => &[Fork::Paris, Fork::Shanghai],
        Version::V3 => &[Fork::Cancun],
        Version::V4 => &[Fork::Prague],
        Version::V5 => &[Fork::Osaka],
        Version::V6 => &[Fork::Amsterdam],
    };
    built_payload(version, chain.payload(id, forks)?.as_ref())
}

/// The result of `engine_getPayload`: bare in V1, then in an envelope that grows.
fn built_payload(version: Version, built: &Built) -> Result<String, RpcError> {
    let block_value = built.block_value;
    let should_override_builder = built.should_override_builder;
    let execution_requests = built.requests.clone();
    match (built.payload.clone(), version) {
        (ExecutionPayload::V1(payload), Version::V1) => json(&payload),
        (ExecutionPayload::V1(payload), _) => json(&ExecutionPayloadEnvelopeV2 {
            execution_payload: ExecutionPayloadFieldV2::V1(payload),
            block_value,
        }),
        (ExecutionPayload::V2(payload), _) => json(&ExecutionPayloadEnvelopeV2 {
            execution_payload: ExecutionPayloadFieldV2::V2(payload),
            block_value,
        }),
        (ExecutionPayload::V3(execution_payload), Version::V5) => {
            json(&ExecutionPayloadEnvelopeV5 {
                execution_payload,
                block_value,
                blobs_bundle: built.blobs_bundle_v2(),
                should_override_builder,
                execution_requests,
            })
        }
        (ExecutionPayload::V3(execution_payload), _) => {
            let envelope_inner = ExecutionPayloadEnvelopeV3 {
                execution_payload,
                block_value,
                blobs_bundle: built.blobs_bundle_v1(),
                should_override_builder,
            };
            match version {
                Version::V4 => {
                    json(&ExecutionPayloadEnvelopeV4 { envelope_inner, execution_requests })
                }
                _ => json(&envelope_inner),
            }
        }
        (ExecutionPayload::V4(execution_payload), _) => json(&ExecutionPayloadEnvelopeV6 {
            execution_payload,
            block_value,
            blobs_bundle: built.blobs_bundle_v2(),
            should_override_builder,
            execution_requests,
        }),
    }
}

fn bodies<'a>(
    version: Version,
    blocks: impl Iterator<Item = Option<&'a Block>>,
) -> Result<String, RpcError> {
    fn list<'a, T: Serialize>(
        blocks: impl Iterator<Item = Option<&'a Block>>,
        body: impl Fn(&Block) -> T,
    ) -> Result<String, RpcError> {
        json(&blocks.map(|block| block.map(&body)).collect::<Vec<_>>())
    }
    match version {
        Version::V1 => list(blocks, |block| ExecutionPayloadBodyV1 {
            transactions: block.transactions.clone(),
            withdrawals: block.withdrawals.clone(),
        }),
        _ => list(blocks, |block| ExecutionPayloadBodyV2 {
            transactions: block.transactions.clone(),
            withdrawals: block.withdrawals.clone(),
            block_access_list: block.block_access_list.clone(),
        }),
    }
}

fn get_blobs(version: Version, chain: &Chain, params: &Params<'_>) -> Result<String, RpcError> {
    let hashes: Vec<B256> = params.required(0, "versioned hashes")?;
    within(hashes.len() as u64, MAX_BLOBS)?;
    match version {
        // osaka.md, "Update the methods of previous forks".
        Version::V1 if chain.fork_at(chain.head().header.timestamp) >= Fork::Osaka => {
            Err(EngineError::UnsupportedFork("engine_getBlobsV1 ended with Osaka".into()).into())
        }
        Version::V1 => json(&chain.blobs.v1(&hashes)),
        Version::V2 => json(&chain.blobs.v2(&hashes)),
        Version::V3 => json(&chain.blobs.v3(&hashes)),
        _ => {
            let indices: B128 = params.required(1, "indices bitarray")?;
            json(&chain.blobs.v4(&hashes, indices))
        }
    }
}
