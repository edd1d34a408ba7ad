//! `engine_newPayloadV1` to `V5`.

use alloy_eips::eip7685::Requests;
use alloy_primitives::{B256, Bytes, U64};
use alloy_rpc_types_engine::{
    ExecutionPayload, ExecutionPayloadV1, ExecutionPayloadV2, ExecutionPayloadV3,
    ExecutionPayloadV4,
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

use super::{
    super::{
        super::{
            chain::{Chain, NewPayload},
            error::EngineError,
            fork::Fork,
        },
        RpcError, json,
        params::{Params, read},
    },
    Structure, Version,
};

/// The members of a payload that tell its version; null counts as absent.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Members {
    timestamp: U64,
    withdrawals: Option<IgnoredAny>,
    blob_gas_used: Option<IgnoredAny>,
    excess_blob_gas: Option<IgnoredAny>,
    block_access_list: Option<IgnoredAny>,
    slot_number: Option<IgnoredAny>,
}

impl Members {
    /// The structure these members make, if they make one.
    fn structure(&self) -> Option<Structure> {
        let withdrawals = self.withdrawals.is_some();
        let blob_gas = (self.blob_gas_used.is_some(), self.excess_blob_gas.is_some());
        let amsterdam = (self.block_access_list.is_some(), self.slot_number.is_some());
        match (withdrawals, blob_gas, amsterdam) {
            (false, (false, false), (false, false)) => Some(Structure::V1),
            (true, (false, false), (false, false)) => Some(Structure::V2),
            (true, (true, true), (false, false)) => Some(Structure::V3),
            (true, (true, true), (true, true)) => Some(Structure::V4),
            _ => None,
        }
    }
}

/// The forks whose payloads a version takes. The text of Prague names Prague alone for V4, that of
/// Amsterdam counts it to Osaka's methods.
const fn forks(version: Version) -> &'static [Fork] {
    match version {
        Version::V1 => &[Fork::Paris],
        Version::V2 => &[Fork::Paris, Fork::Shanghai],
        Version::V3 => &[Fork::Cancun],
        Version::V4 => &[Fork::Prague, Fork::Osaka],
        Version::V5 | Version::V6 => &[Fork::Amsterdam],
    }
}

pub(super) fn run(
    version: Version,
    chain: &mut Chain,
    params: &Params<'_>,
) -> Result<String, RpcError> {
    params.at_most(match version {
        Version::V1 | Version::V2 => 1,
        Version::V3 => 3,
        Version::V4 | Version::V5 | Version::V6 => 4,
    })?;
    let text =
        params.raw(0).ok_or_else(|| RpcError::invalid_params("execution payload is missing"))?;
    let members: Members = read(text, "execution payload")?;
    let given = members
        .structure()
        .filter(|given| forks(version).iter().any(|fork| Structure::of(*fork) == *given))
        .ok_or_else(|| {
            RpcError::invalid_params("the payload is not of this version's structure")
        })?;
    let payload = payload(given, text)?;
    let new = NewPayload {
        payload,
        expected_blob_versioned_hashes: match version {
            Version::V1 | Version::V2 => None,
            _ => Some(params.required(1, "expected blob versioned hashes")?),
        },
        parent_beacon_block_root: match version {
            Version::V1 | Version::V2 => None,
            _ => Some(params.required::<B256>(2, "parent beacon block root")?),
        },
        requests: match version {
            Version::V1 | Version::V2 | Version::V3 => None,
            _ => Some(requests(params)?),
        },
    };
    let fork = chain.fork_at(members.timestamp.to());
    if !forks(version).contains(&fork) {
        return Err(EngineError::wrong_fork("the payload", fork).into());
    }
    if Structure::of(fork) != given {
        let detail = format_args!("the payload is not of the structure of {fork}");
        return Err(RpcError::invalid_params(detail));
    }
    json(&chain.new_payload(new))
}

fn payload(structure: Structure, text: &RawValue) -> Result<ExecutionPayload, RpcError> {
    const NAME: &str = "execution payload";
    Ok(match structure {
        Structure::V1 => read::<ExecutionPayloadV1>(text, NAME)?.into(),
        Structure::V2 => read::<ExecutionPayloadV2>(text, NAME)?.into(),
        Structure::V3 => read::<ExecutionPayloadV3>(text, NAME)?.into(),
        Structure::V4 => read::<ExecutionPayloadV4>(text, NAME)?.into(),
    })
}

/// Execution requests: each longer than its type byte, types strictly ascending (prague.md,
/// engine_newPayloadV4).
fn requests(params: &Params<'_>) -> Result<Requests, RpcError> {
    let requests: Vec<Bytes> = params.required(3, "execution requests")?;
    if requests.iter().any(|request| request.len() < 2) {
        return Err(RpcError::invalid_params("an execution request is empty"));
    }
    if !requests.is_sorted_by(|one, next| one.first() < next.first()) {
        return Err(RpcError::invalid_params("execution requests are not in ascending order"));
    }
    Ok(Requests::new(requests))
}
