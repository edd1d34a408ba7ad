//! One block: from a payload to its header, its hash and back to a body.

use alloy_consensus::{EthereumTxEnvelope, Header, Transaction, TxEip4844};
use alloy_eips::{
    eip2718::Decodable2718, eip4844::DATA_GAS_PER_BLOB, eip4895::Withdrawal, eip7685::Requests,
};
use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_engine::{ExecutionPayload, PayloadError};

use super::fork::{Fork, Schedule};

/// A block this EL has validated, as it keeps it.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) hash: B256,
    pub(super) header: Header,
    pub(super) fork: Fork,
    /// Encoded transactions (EIP-2718), as they came.
    pub(super) transactions: Vec<Bytes>,
    /// From Shanghai on.
    pub(super) withdrawals: Option<Vec<Withdrawal>>,
    /// RLP (EIP-7928), from Amsterdam on.
    pub(super) block_access_list: Option<Bytes>,
}

/// What a payload needs beside itself to become a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Extras {
    /// From Cancun on (EIP-4788).
    pub(super) parent_beacon_block_root: Option<B256>,
    /// From Prague on (EIP-7685).
    pub(super) requests: Option<Requests>,
}

impl Block {
    /// Computes the header of a payload and with it the real block hash. The hash the payload claims
    /// plays no part. Builder and validator both go through here.
    ///
    /// # Errors
    ///
    /// A field the header cannot hold: extra data above 32 bytes, a base fee above 64 bits.
    pub(super) fn seal(
        payload: ExecutionPayload,
        extras: &Extras,
        schedule: &Schedule,
    ) -> Result<Self, PayloadError> {
        let fork = schedule.at(payload.timestamp());
        let block_access_list = payload.block_access_list().cloned();
        let mut block = payload.into_block_raw()?;
        block.header.parent_beacon_block_root = extras.parent_beacon_block_root;
        block.header.requests_hash = extras.requests.as_ref().map(Requests::requests_hash);
        Ok(Self {
            hash: block.header.hash_slow(),
            header: block.header,
            fork,
            transactions: block.body.transactions,
            withdrawals: block.body.withdrawals.map(|withdrawals| withdrawals.0),
            block_access_list,
        })
    }

    /// The header rules this EL checks against the parent. There is no EVM: state, receipts and
    /// logs are taken on trust.
    ///
    /// # Errors
    ///
    /// The rule that is broken, in words.
    pub(super) fn follows(&self, parent: &Self, blobs: usize) -> Result<(), String> {
        let (ours, theirs) = (&self.header, &parent.header);
        if Some(ours.number) != theirs.number.checked_add(1) {
            return Err(format!("block number {} on parent {}", ours.number, theirs.number));
        }
        if ours.timestamp <= theirs.timestamp {
            return Err(format!(
                "timestamp {} is not after the parent's {}",
                ours.timestamp, theirs.timestamp
            ));
        }
        if ours.gas_used > ours.gas_limit {
            return Err(format!("gas used {} above limit {}", ours.gas_used, ours.gas_limit));
        }
        let blob_gas = DATA_GAS_PER_BLOB.saturating_mul(blobs as u64);
        if ours.blob_gas_used.unwrap_or_default() != blob_gas {
            return Err(format!(
                "blob gas used {} but the blobs use {blob_gas}",
                ours.blob_gas_used.unwrap_or_default()
            ));
        }
        if self.block_access_list.as_ref().is_some_and(|list| !is_rlp_list(list)) {
            return Err("block access list is not an RLP list".into());
        }
        Ok(())
    }
}

/// The versioned hashes of all blob transactions, in block order (cancun.md, engine_newPayloadV3).
///
/// # Errors
///
/// The first transaction that cannot be decoded: of zero length, of an unknown type, with trailing
/// bytes, or in the network form that carries the blobs themselves.
pub(super) fn versioned_hashes(transactions: &[Bytes]) -> Result<Vec<B256>, String> {
    let mut hashes = Vec::new();
    for (index, encoded) in transactions.iter().enumerate() {
        let transaction = EthereumTxEnvelope::<TxEip4844>::decode_2718_exact(encoded)
            .map_err(|error| format!("transaction {index} cannot be decoded: {error}"))?;
        hashes.extend_from_slice(transaction.blob_versioned_hashes().unwrap_or_default());
    }
    Ok(hashes)
}

fn is_rlp_list(mut bytes: &[u8]) -> bool {
    alloy_rlp::Header::decode(&mut bytes)
        .is_ok_and(|header| header.list && header.payload_length == bytes.len())
}
