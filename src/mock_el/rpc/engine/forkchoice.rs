//! `engine_forkchoiceUpdatedV1` to `V4`.

use alloy_primitives::B128;
use alloy_rpc_types_engine::{ForkchoiceState, ForkchoiceUpdated, PayloadAttributes};
use serde_json::value::RawValue;

use super::{
    super::{
        super::{
            chain::{Chain, Head},
            error::EngineError,
            fork::Fork,
        },
        RpcError, json,
        params::Params,
    },
    Structure, Version,
};

/// The structure these attributes are, if they are one.
fn structure(attributes: &PayloadAttributes) -> Option<Structure> {
    let withdrawals = attributes.withdrawals.is_some();
    let root = attributes.parent_beacon_block_root.is_some();
    let amsterdam = (attributes.slot_number.is_some(), attributes.target_gas_limit.is_some());
    match (withdrawals, root, amsterdam) {
        (false, false, (false, false)) => Some(Structure::V1),
        (true, false, (false, false)) => Some(Structure::V2),
        (true, true, (false, false)) => Some(Structure::V3),
        (true, true, (true, true)) => Some(Structure::V4),
        _ => None,
    }
}

/// The forks a version can build for.
const fn forks(version: Version) -> &'static [Fork] {
    match version {
        Version::V1 => &[Fork::Paris],
        Version::V2 => &[Fork::Paris, Fork::Shanghai],
        Version::V3 => &[Fork::Cancun, Fork::Prague, Fork::Osaka],
        Version::V4 | Version::V5 | Version::V6 => &[Fork::Amsterdam],
    }
}

pub(super) fn run(
    version: Version,
    chain: &mut Chain,
    params: &Params<'_>,
) -> Result<String, RpcError> {
    let custody: Option<B128> = match version {
        Version::V1 | Version::V2 | Version::V3 => {
            params.at_most(2)?;
            None
        }
        _ => {
            params.at_most(3)?;
            params.optional(2, "custody columns")?
        }
    };
    let state: ForkchoiceState = params.required(0, "forkchoice state")?;
    let attributes = params.raw(1);
    if attributes.is_some_and(|text| !text.get().starts_with('{')) {
        return Err(RpcError::invalid_params("payload attributes are no object"));
    }
    let head = chain.update_head(&state)?;
    // Only now, and only on a valid head, do the attributes count (paris.md, point 8).
    let payload_id = match (&head, attributes) {
        (Head::Valid(_), Some(text)) => {
            let attributes = check_attributes(version, chain, text)?;
            Some(chain.start_build(&attributes)?)
        }
        _ => None,
    };
    if let Some(columns) = custody {
        chain.set_custody(columns);
    }
    json(&ForkchoiceUpdated { payload_status: head.into(), payload_id })
}

/// The structure first (-38003), then the fork (-38005), then, where a version has two structures,
/// whether it is the fork's (-38003).
fn check_attributes(
    version: Version,
    chain: &Chain,
    text: &RawValue,
) -> Result<PayloadAttributes, EngineError> {
    let attributes: PayloadAttributes = serde_json::from_str(text.get())
        .map_err(|error| EngineError::InvalidAttributes(error.to_string()))?;
    let given = structure(&attributes)
        .filter(|given| forks(version).iter().any(|fork| Structure::of(*fork) == *given))
        .ok_or_else(|| {
            EngineError::InvalidAttributes("they are not of this version's structure".into())
        })?;
    let fork = chain.fork_at(attributes.timestamp);
    if !forks(version).contains(&fork) {
        return Err(EngineError::wrong_fork("the payload to build", fork));
    }
    if Structure::of(fork) != given {
        let detail = format!("they are not of the structure of {fork}");
        return Err(EngineError::InvalidAttributes(detail));
    }
    Ok(attributes)
}
