//! The genesis file (geth form) and the block it stands for.

use alloy_consensus::{Header, constants::EMPTY_WITHDRAWALS, proofs::state_root_ref_unhashed};
use alloy_eips::{eip7685::EMPTY_REQUESTS_HASH, eip7840::BlobParams};
use alloy_primitives::{Address, B64, B256, Bytes, keccak256};
use alloy_rlp::EMPTY_LIST_CODE;
use thiserror::Error;

use super::{
    block::Block,
    fork::{Fork, Schedule},
};

/// The base fee of a genesis that names none: 1 gwei, in wei (EIP-1559, INITIAL_BASE_FEE).
const INITIAL_BASE_FEE: u64 = 1_000_000_000;

/// A genesis in the form geth reads (`genesis.json`): chain id, fork times, allocations.
///
/// The chain starts after the merge, whatever `terminalTotalDifficulty` says. Forks after Amsterdam
/// are not known here and do not take place.
#[derive(Clone, Debug)]
pub struct Genesis {
    spec: alloy_genesis::Genesis,
    schedule: Schedule,
}

/// Why a text is not a usable genesis.
#[derive(Debug, Error)]
pub enum GenesisError {
    /// The text is not a geth genesis.
    #[error("not a geth genesis: {0}")]
    Json(#[from] serde_json::Error),
    /// A fork is scheduled before, or without, the one it builds on.
    #[error("{later} is scheduled before {earlier}")]
    ForkOrder {
        /// The fork that has to come first.
        earlier: &'static str,
        /// The fork that builds on it.
        later: &'static str,
    },
}

impl Genesis {
    /// Reads a geth genesis.
    ///
    /// # Errors
    ///
    /// [`GenesisError`] if the text is not one or its forks are out of order.
    pub fn parse(json: &str) -> Result<Self, GenesisError> {
        let spec: alloy_genesis::Genesis = serde_json::from_str(json)?;
        let config = &spec.config;
        let schedule = Schedule::new([
            (Fork::Shanghai, config.shanghai_time),
            (Fork::Cancun, config.cancun_time),
            (Fork::Prague, config.prague_time),
            (Fork::Osaka, config.osaka_time),
            (Fork::Amsterdam, config.amsterdam_time),
        ])
        .map_err(|(earlier, later)| GenesisError::ForkOrder {
            earlier: earlier.name(),
            later: later.name(),
        })?;
        Ok(Self { spec, schedule })
    }

    /// The built-in chain: id 1337, genesis at time 0, Paris, then Shanghai at 36 s, Cancun at 72 s,
    /// Prague at 108 s, Osaka at 144 s and Amsterdam at 180 s, which is three slots of 12 s each.
    #[must_use]
    pub fn built_in() -> Self {
        Self::parse(include_str!("genesis.json")).expect("the built-in genesis is a genesis")
    }

    /// The same chain with that many seconds from one fork to the next, 1 or more.
    #[must_use]
    pub fn built_in_every(seconds: u64) -> Self {
        let Self { spec, .. } = Self::built_in();
        let start = |n: u64| Some(seconds.max(1).saturating_mul(n));
        let schedule = Schedule::new([
            (Fork::Shanghai, start(1)),
            (Fork::Cancun, start(2)),
            (Fork::Prague, start(3)),
            (Fork::Osaka, start(4)),
            (Fork::Amsterdam, start(5)),
        ])
        .expect("no fork comes before an earlier one");
        Self { spec, schedule }
    }

    pub(super) fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    pub(super) fn chain_id(&self) -> u64 {
        self.spec.config.chain_id
    }

    /// The blob parameters of a fork: the genesis' `blobSchedule`, else mainnet's.
    pub(super) fn blob_params(&self, fork: Fork) -> BlobParams {
        let fallback = match fork {
            Fork::Paris | Fork::Shanghai | Fork::Cancun => BlobParams::cancun(),
            Fork::Prague => BlobParams::prague(),
            Fork::Osaka | Fork::Amsterdam => BlobParams::osaka(),
        };
        self.spec.config.blob_schedule.get(fork.name()).copied().unwrap_or(fallback)
    }

    /// The code an account has at genesis; empty if it has none.
    pub(super) fn code(&self, address: &Address) -> Bytes {
        self.spec.alloc.get(address).and_then(|account| account.code.clone()).unwrap_or_default()
    }

    /// Block zero, with the real state root of the allocations.
    pub(super) fn block(&self) -> Block {
        let spec = &self.spec;
        let fork = self.schedule.at(spec.timestamp);
        let mut header = Header {
            parent_hash: spec.parent_hash.unwrap_or_default(),
            beneficiary: spec.coinbase,
            state_root: state_root_ref_unhashed(&spec.alloc),
            difficulty: spec.difficulty,
            number: spec.number.unwrap_or_default(),
            gas_limit: spec.gas_limit,
            timestamp: spec.timestamp,
            extra_data: spec.extra_data.clone(),
            mix_hash: spec.mix_hash,
            nonce: B64::from(spec.nonce),
            base_fee_per_gas: Some(
                spec.base_fee_per_gas
                    .and_then(|fee| u64::try_from(fee).ok())
                    .unwrap_or(INITIAL_BASE_FEE),
            ),
            ..Default::default()
        };
        if fork >= Fork::Shanghai {
            header.withdrawals_root = Some(EMPTY_WITHDRAWALS);
        }
        if fork >= Fork::Cancun {
            header.blob_gas_used = Some(spec.blob_gas_used.unwrap_or_default());
            header.excess_blob_gas = Some(spec.excess_blob_gas.unwrap_or_default());
            header.parent_beacon_block_root = Some(B256::ZERO);
        }
        if fork >= Fork::Prague {
            header.requests_hash = Some(EMPTY_REQUESTS_HASH);
        }
        let empty_access_list = Bytes::from_static(&[EMPTY_LIST_CODE]);
        if fork >= Fork::Amsterdam {
            header.block_access_list_hash = Some(keccak256(&empty_access_list));
            header.slot_number = Some(spec.slot_number.unwrap_or_default());
        }
        Block {
            hash: header.hash_slow(),
            header,
            fork,
            transactions: Vec::new(),
            withdrawals: (fork >= Fork::Shanghai).then(Vec::new),
            block_access_list: (fork >= Fork::Amsterdam).then_some(empty_access_list),
        }
    }
}
