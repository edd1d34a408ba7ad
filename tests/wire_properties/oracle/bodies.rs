//! Bodies by hash or range.

use alloy_primitives::Bytes;
use alloy_rpc_types_engine::ssz_engine_types::*;
use alloy_rpc_types_engine::{ExecutionPayloadBodyV1, ExecutionPayloadBodyV2};
use serde_json::{Value, from_value, to_value};

use super::Oracle;
use crate::draw::Draw;

/// A body as JSON has it over all forks.
pub trait Body: Clone + Default + ssz::Encode + ssz::Decode {
    fn draw(draw: &mut Draw<'_>) -> Self;
    fn to_legacy(&self) -> ExecutionPayloadBodyV2;
    fn from_legacy(legacy: ExecutionPayloadBodyV2) -> Option<Self>;
}

impl Body for ExecutionPayloadBodyParis {
    fn draw(draw: &mut Draw<'_>) -> Self {
        Self { transactions: draw.transactions() }
    }
    fn to_legacy(&self) -> ExecutionPayloadBodyV2 {
        with_list(self.clone().into(), None)
    }
    fn from_legacy(legacy: ExecutionPayloadBodyV2) -> Option<Self> {
        without_list(legacy)?.try_into().ok()
    }
}

impl Body for ExecutionPayloadBodyShanghai {
    fn draw(draw: &mut Draw<'_>) -> Self {
        Self { transactions: draw.transactions(), withdrawals: draw.withdrawals() }
    }
    fn to_legacy(&self) -> ExecutionPayloadBodyV2 {
        with_list(self.clone().into(), None)
    }
    fn from_legacy(legacy: ExecutionPayloadBodyV2) -> Option<Self> {
        without_list(legacy)?.try_into().ok()
    }
}

impl Body for ExecutionPayloadBodyAmsterdam {
    fn draw(draw: &mut Draw<'_>) -> Self {
        Self {
            transactions: draw.transactions(),
            withdrawals: draw.withdrawals(),
            block_access_list: draw.bytes(50),
        }
    }
    fn to_legacy(&self) -> ExecutionPayloadBodyV2 {
        let legacy = ExecutionPayloadBodyV2::from(self.clone());
        // Alloy prints a pruned list as "0x".
        let list = legacy.block_access_list.filter(|list| !list.is_empty());
        ExecutionPayloadBodyV2 { block_access_list: list, ..legacy }
    }
    fn from_legacy(legacy: ExecutionPayloadBodyV2) -> Option<Self> {
        let list = legacy.block_access_list.unwrap_or_default();
        ExecutionPayloadBodyV2 { block_access_list: Some(list), ..legacy }.try_into().ok()
    }
}

fn with_list(body: ExecutionPayloadBodyV1, list: Option<Bytes>) -> ExecutionPayloadBodyV2 {
    let ExecutionPayloadBodyV1 { transactions, withdrawals } = body;
    ExecutionPayloadBodyV2 { transactions, withdrawals, block_access_list: list }
}

fn without_list(body: ExecutionPayloadBodyV2) -> Option<ExecutionPayloadBodyV1> {
    let ExecutionPayloadBodyV2 { transactions, withdrawals, block_access_list } = body;
    block_access_list.is_none().then_some(ExecutionPayloadBodyV1 { transactions, withdrawals })
}

/// The bodies of a response, printed by the methods of the first version.
pub struct BodiesV1<T: Body>(BodiesResponse<T>);

/// The same, printed by the methods of the second version.
pub struct BodiesV2<T: Body>(BodiesResponse<T>);

fn bodies<T: Body>(draw: &mut Draw<'_>) -> BodiesResponse<T> {
    let entries = draw.list(5, |draw| match draw.option(T::draw) {
        Some(body) => BodyEntry::available(body),
        None => BodyEntry::unavailable(),
    });
    BodiesResponse { entries }
}

fn legacies<T: Body>(
    response: &BodiesResponse<T>,
) -> impl Iterator<Item = Option<ExecutionPayloadBodyV2>> {
    response.entries.iter().map(|entry| entry.available.then(|| entry.body.to_legacy()))
}

fn respond<T: Body>(legacies: Vec<Option<ExecutionPayloadBodyV2>>) -> Option<BodiesResponse<T>> {
    let entries = legacies.into_iter().map(|legacy| match legacy {
        Some(legacy) => T::from_legacy(legacy).map(BodyEntry::available),
        None => Some(BodyEntry::unavailable()),
    });
    Some(BodiesResponse { entries: entries.collect::<Option<_>>()? })
}

impl<T: Body> Oracle for BodiesV1<T> {
    fn draw(draw: &mut Draw<'_>) -> Self {
        // The list of Amsterdam is not printed, so that it cannot be read again either.
        let mut response = bodies::<T>(draw);
        for entry in &mut response.entries {
            let legacy = entry.body.to_legacy();
            let pruned = ExecutionPayloadBodyV2 { block_access_list: None, ..legacy };
            entry.body = T::from_legacy(pruned).unwrap();
        }
        Self(response)
    }
    inner_ssz!();
    fn to_json(&self) -> Value {
        let bodies = legacies(&self.0).map(|legacy| {
            legacy.map(|body| ExecutionPayloadBodyV1 {
                transactions: body.transactions,
                withdrawals: body.withdrawals,
            })
        });
        to_value(bodies.collect::<Vec<_>>()).unwrap()
    }
    fn from_json(json: Value) -> Option<Self> {
        let bodies: Vec<Option<ExecutionPayloadBodyV1>> = from_value(json).ok()?;
        let bodies = bodies.into_iter().map(|body| body.map(|body| with_list(body, None)));
        respond(bodies.collect()).map(Self)
    }
}

impl<T: Body> Oracle for BodiesV2<T> {
    fn draw(draw: &mut Draw<'_>) -> Self {
        Self(bodies(draw))
    }
    inner_ssz!();
    fn to_json(&self) -> Value {
        to_value(legacies(&self.0).collect::<Vec<_>>()).unwrap()
    }
    fn from_json(json: Value) -> Option<Self> {
        let bodies = from_value::<Vec<Option<ExecutionPayloadBodyV2>>>(json).ok()?;
        respond(bodies).map(Self)
    }
}
