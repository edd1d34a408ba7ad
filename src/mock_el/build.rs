//! Building a payload: the same parent and attributes always give the same block.

use std::sync::Arc;

use alloy_consensus::Header;
use alloy_eips::{
    eip4844::{Blob, Bytes48, DATA_GAS_PER_BLOB},
    eip7685::Requests,
    eip7928::{AccountChanges, BalanceChange, BlockAccessIndex, NonceChange},
};
use alloy_primitives::{B64, B256, Bloom, BloomInput, Bytes, U256, keccak256};
use alloy_rpc_types_engine::{
    BlobsBundleV1, BlobsBundleV2, ExecutionPayload, ExecutionPayloadV1, ExecutionPayloadV2,
    ExecutionPayloadV3, ExecutionPayloadV4, PayloadAttributes, PayloadError, PayloadId,
};
use ssz::Encode;

use super::{
    blobs::{ProofKind, Proofs, Sidecar},
    block::{Block, Extras},
    entropy::Entropy,
    fork::Fork,
    genesis::Genesis,
    transactions::Maker,
};

/// How many blobs a block carries, by its number modulo eight: none to three.
const BLOBS: [usize; 8] = [0, 1, 2, 0, 1, 3, 0, 2];

/// A built payload with all that `engine_getPayload` tells about it.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) fork: Fork,
    pub(super) payload: ExecutionPayload,
    /// In wei; never zero.
    pub(super) block_value: U256,
    /// The blobs of the payload, in order; empty before Cancun.
    pub(super) sidecars: Vec<Arc<Sidecar>>,
    /// Execution requests; empty before Prague.
    pub(super) requests: Requests,
    /// True on every fifth block, so that the flag is seen in both states.
    pub(super) should_override_builder: bool,
}

impl Built {
    /// The bundle with one proof a blob (cancun.md, BlobsBundleV1).
    pub(super) fn blobs_bundle_v1(&self) -> BlobsBundleV1 {
        let proof = |sidecar: &Arc<Sidecar>| match &sidecar.proofs {
            Proofs::Blob(proof) => Some(*proof),
            Proofs::Cells(_) => None,
        };
        BlobsBundleV1 {
            commitments: self.commitments(),
            proofs: self.sidecars.iter().filter_map(proof).collect(),
            blobs: self.blobs(),
        }
    }

    /// The bundle with one proof a cell, 128 a blob (osaka.md, BlobsBundleV2).
    pub(super) fn blobs_bundle_v2(&self) -> BlobsBundleV2 {
        let proofs = |sidecar: &Arc<Sidecar>| match &sidecar.proofs {
            Proofs::Blob(_) => Vec::new(),
            Proofs::Cells(proofs) => proofs.clone(),
        };
        BlobsBundleV2 {
            commitments: self.commitments(),
            proofs: self.sidecars.iter().flat_map(proofs).collect(),
            blobs: self.blobs(),
        }
    }

    fn commitments(&self) -> Vec<Bytes48> {
        self.sidecars.iter().map(|sidecar| sidecar.commitment).collect()
    }

    fn blobs(&self) -> Vec<Blob> {
        self.sidecars.iter().map(|sidecar| *sidecar.blob).collect()
    }
}

/// The id of a build process: a hash of head and attributes, so that the same build has the same id
/// in either dialect (paris.md, "Payload building", points 5 and 6).
pub(super) fn payload_id(head: B256, attributes: &PayloadAttributes) -> PayloadId {
    let seed = [head.as_slice(), &attributes.as_ssz_bytes()].concat();
    PayloadId(B64::from_slice(&keccak256(seed)[..8]))
}

/// Builds the payload on `parent`. Attributes must have the shape of the fork they fall into.
///
/// # Errors
///
/// A header that cannot be: a base fee out of range after a parent that had such a one.
pub(super) fn build(
    genesis: &Genesis,
    parent: &Block,
    attributes: &PayloadAttributes,
) -> Result<Built, PayloadError> {
    let fork = genesis.schedule().at(attributes.timestamp);
    let number = parent.header.number.saturating_add(1);
    let seed = payload_id(parent.hash, attributes).0;
    let mut entropy = Entropy::of(seed.as_slice());
    let sidecars = sidecars(fork, number, seed);
    let base_fee = next_base_fee(&parent.header);
    let chain_id = genesis.chain_id();
    let transactions =
        Maker { chain_id, fork, base_fee, entropy: &mut entropy }.block(number, &sidecars);
    let requests = requests(fork, number, &mut entropy);
    let gas_limit = next_gas_limit(parent.header.gas_limit, attributes.target_gas_limit);
    let v1 = ExecutionPayloadV1 {
        parent_hash: parent.hash,
        fee_recipient: attributes.suggested_fee_recipient,
        state_root: entropy.bytes(),
        receipts_root: entropy.bytes(),
        logs_bloom: bloom(number, &mut entropy),
        prev_randao: attributes.prev_randao,
        block_number: number,
        gas_limit,
        gas_used: gas_limit.min(21_000 * transactions.len() as u64 + entropy.u64() % 1_000_000),
        timestamp: attributes.timestamp,
        extra_data: Bytes::from_static(b"mock-el"),
        base_fee_per_gas: U256::from(base_fee),
        block_hash: B256::ZERO,
        transactions,
    };
    let block_value = (U256::from(number) << 64) + U256::from(entropy.u64()) + U256::from(1);
    let mut payload = in_shape(fork, v1, attributes, |v2| ExecutionPayloadV3 {
        payload_inner: v2,
        blob_gas_used: DATA_GAS_PER_BLOB * sidecars.len() as u64,
        excess_blob_gas: next_excess_blob_gas(genesis, fork, &parent.header),
    });
    if let ExecutionPayload::V4(v4) = &mut payload {
        v4.block_access_list = block_access_list(number, &mut entropy);
    }
    let extras = Extras {
        parent_beacon_block_root: attributes
            .parent_beacon_block_root
            .filter(|_| fork >= Fork::Cancun),
        requests: (fork >= Fork::Prague).then(|| requests.clone()),
    };
    let sealed = Block::seal(payload.clone(), &extras, genesis.schedule())?;
    payload.set_block_hash(sealed.hash);
    Ok(Built {
        fork,
        payload,
        block_value,
        sidecars,
        requests,
        should_override_builder: number.is_multiple_of(5),
    })
}

/// Dresses the first payload version up to the one of `fork`. The block access list stays empty.
fn in_shape(
    fork: Fork,
    v1: ExecutionPayloadV1,
    attributes: &PayloadAttributes,
    v3: impl FnOnce(ExecutionPayloadV2) -> ExecutionPayloadV3,
) -> ExecutionPayload {
    if fork == Fork::Paris {
        return v1.into();
    }
    let withdrawals = attributes.withdrawals.clone().unwrap_or_default();
    let v2 = ExecutionPayloadV2 { payload_inner: v1, withdrawals };
    match fork {
        Fork::Paris | Fork::Shanghai => v2.into(),
        Fork::Cancun | Fork::Prague | Fork::Osaka => v3(v2).into(),
        Fork::Amsterdam => ExecutionPayloadV4 {
            payload_inner: v3(v2),
            block_access_list: Bytes::new(),
            slot_number: attributes.slot_number.unwrap_or_default(),
        }
        .into(),
    }
}

fn sidecars(fork: Fork, number: u64, seed: B64) -> Vec<Arc<Sidecar>> {
    let kind = match fork {
        Fork::Paris | Fork::Shanghai => return Vec::new(),
        Fork::Cancun | Fork::Prague => ProofKind::Blob,
        Fork::Osaka | Fork::Amsterdam => ProofKind::Cells,
    };
    let count = BLOBS.get((number % 8) as usize).copied().unwrap_or_default();
    (0..count as u64)
        .map(|index| {
            let seed = [seed.as_slice(), &index.to_le_bytes()].concat();
            Arc::new(Sidecar::make(&seed, kind))
        })
        .collect()
}

/// EIP-7685 requests: a withdrawal request (EIP-7002) on odd blocks, a consolidation request
/// (EIP-7251) too on every fourth, none on even blocks.
fn requests(fork: Fork, number: u64, entropy: &mut Entropy) -> Requests {
    const WITHDRAWAL: (u8, usize) = (0x01, 20 + 48 + 8);
    const CONSOLIDATION: (u8, usize) = (0x02, 20 + 48 + 48);
    let kinds: &[_] = match number % 4 {
        1 => &[WITHDRAWAL],
        3 => &[WITHDRAWAL, CONSOLIDATION],
        _ => &[],
    };
    let mut requests = Requests::default();
    for (kind, len) in kinds.iter().filter(|_| fork >= Fork::Prague) {
        requests.push_request([vec![*kind], entropy.vec(*len)].concat().into());
    }
    requests
}

/// The empty list on even blocks, two accounts on odd ones (EIP-7928).
fn block_access_list(number: u64, entropy: &mut Entropy) -> Bytes {
    let mut accounts = Vec::new();
    if number % 2 == 1 {
        for _ in 0..2 {
            accounts.push(AccountChanges {
                address: entropy.address(),
                storage_reads: vec![entropy.u256()],
                balance_changes: vec![BalanceChange {
                    block_access_index: BlockAccessIndex::new(1),
                    post_balance: entropy.u256(),
                }],
                nonce_changes: vec![NonceChange {
                    block_access_index: BlockAccessIndex::new(1),
                    new_nonce: entropy.u64() % 1000,
                }],
                ..Default::default()
            });
        }
        accounts.sort_by_key(|account| account.address);
    }
    alloy_rlp::encode(accounts).into()
}

fn bloom(number: u64, entropy: &mut Entropy) -> Bloom {
    let mut bloom = Bloom::ZERO;
    if number % 2 == 1 {
        bloom.accrue(BloomInput::Raw(entropy.address().as_slice()));
    }
    bloom
}

/// EIP-1559, without a way to overflow: the parent may be any block a CL came up with.
fn next_base_fee(parent: &Header) -> u64 {
    let fee = parent.base_fee_per_gas.unwrap_or_default();
    let target = parent.gas_limit / 2;
    if target == 0 {
        return fee;
    }
    let distance = u128::from(parent.gas_used.abs_diff(target));
    let change = u128::from(fee) * distance / u128::from(target) / 8;
    let change = u64::try_from(change).unwrap_or(u64::MAX);
    match parent.gas_used.cmp(&target) {
        std::cmp::Ordering::Greater => fee.saturating_add(change.max(1)),
        std::cmp::Ordering::Equal => fee,
        std::cmp::Ordering::Less => fee.saturating_sub(change),
    }
}

/// The parent's limit, moved towards the target as far as the protocol allows in one block.
fn next_gas_limit(parent: u64, target: Option<u64>) -> u64 {
    let step = (parent / 1024).saturating_sub(1);
    target.unwrap_or(parent).clamp(parent.saturating_sub(step), parent.saturating_add(step))
}

/// EIP-4844: what the parent used above the target is carried over.
fn next_excess_blob_gas(genesis: &Genesis, fork: Fork, parent: &Header) -> u64 {
    parent
        .excess_blob_gas
        .unwrap_or_default()
        .saturating_add(parent.blob_gas_used.unwrap_or_default())
        .saturating_sub(genesis.blob_params(fork).target_blob_gas_per_block())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_with_absurd_gas_figures_can_be_built_on() {
        for (gas_limit, gas_used) in [(0, 0), (1, 1), (u64::MAX, u64::MAX), (u64::MAX, 0)] {
            let parent = Header {
                base_fee_per_gas: Some(u64::MAX),
                gas_limit,
                gas_used,
                excess_blob_gas: Some(u64::MAX),
                blob_gas_used: Some(u64::MAX),
                ..Default::default()
            };
            next_base_fee(&parent);
            next_gas_limit(gas_limit, Some(60_000_000));
            next_excess_blob_gas(&Genesis::built_in(), Fork::Osaka, &parent);
        }
    }

    #[test]
    fn blob_gas_over_the_target_is_carried_over_and_under_it_is_not() {
        let genesis = Genesis::built_in();
        let target = genesis.blob_params(Fork::Cancun).target_blob_gas_per_block();
        let next = |excess, used| {
            let parent = Header {
                excess_blob_gas: Some(excess),
                blob_gas_used: Some(used),
                ..Default::default()
            };
            next_excess_blob_gas(&genesis, Fork::Cancun, &parent)
        };
        assert_eq!(target, 3 * DATA_GAS_PER_BLOB, "EIP-4844");
        // Crossed by what the parent used, and by what it carried itself.
        assert_eq!(next(0, 5 * DATA_GAS_PER_BLOB), 2 * DATA_GAS_PER_BLOB);
        assert_eq!(next(7, target), 7);
        // Not crossed.
        assert_eq!(next(DATA_GAS_PER_BLOB, DATA_GAS_PER_BLOB), 0);
        assert_eq!(next(0, 0), 0);
    }

    #[test]
    fn the_gas_limit_moves_towards_the_target_by_less_than_a_1024th() {
        assert_eq!(next_gas_limit(30_000_000, Some(60_000_000)), 30_000_000 + 29_295);
        assert_eq!(next_gas_limit(30_000_000, Some(30_000_007)), 30_000_007);
        assert_eq!(next_gas_limit(30_000_000, None), 30_000_000);
    }
}
