//! What mainnet's calls look like, made from a seed with alloy's types.

use alloy_eips::{eip4844::BlobAndProofV2, eip4895::Withdrawal, eip7685::Requests};
use alloy_primitives::{Address, B256, Bloom, Bytes, FixedBytes, U256};
use alloy_rpc_types_engine::{
    BlobsBundleV2, ExecutionPayloadEnvelopeV5, ExecutionPayloadV1, ExecutionPayloadV2,
    ExecutionPayloadV3,
};

/// Pseudo-random bytes (splitmix64).
pub struct Noise(pub u64);

impl Noise {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    pub fn bytes(&mut self, size: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(size + 8);
        while bytes.len() < size {
            bytes.extend_from_slice(&self.word().to_le_bytes());
        }
        bytes.truncate(size);
        bytes
    }

    fn fixed<const N: usize>(&mut self) -> FixedBytes<N> {
        FixedBytes::from_slice(&self.bytes(N))
    }

    /// Legacy transactions by their first byte, so that no blob is looked for in them: plain
    /// transfers, swaps, and now and then a deployment, as in a block of mainnet.
    fn transactions(&mut self, total: usize) -> Vec<Bytes> {
        const SIZES: [usize; 8] = [112, 118, 178, 312, 440, 118, 900, 2_400];
        let mut left = total;
        let mut transactions = Vec::new();
        while left > 0 {
            let size = SIZES[(self.word() % 8) as usize].min(left);
            let mut transaction = self.bytes(size);
            transaction[0] = 0xf8;
            transactions.push(transaction.into());
            left -= size;
        }
        transactions
    }

    /// A payload with that many bytes of transactions.
    pub fn payload(&mut self, transactions: usize) -> ExecutionPayloadV3 {
        let withdrawal = |index| Withdrawal {
            index,
            validator_index: 900_000 + index,
            address: Address::repeat_byte(index as u8),
            amount: 19_000_000 + index,
        };
        ExecutionPayloadV3 {
            payload_inner: ExecutionPayloadV2 {
                payload_inner: ExecutionPayloadV1 {
                    parent_hash: self.fixed(),
                    fee_recipient: self.fixed::<20>().into(),
                    state_root: self.fixed(),
                    receipts_root: self.fixed(),
                    logs_bloom: Bloom::from(self.fixed::<256>()),
                    prev_randao: self.fixed(),
                    block_number: 24_000_000,
                    gas_limit: 60_000_000,
                    gas_used: 41_234_567,
                    timestamp: 1_770_000_000,
                    extra_data: b"benchmark".as_slice().into(),
                    base_fee_per_gas: U256::from(1_234_567_890_u64),
                    block_hash: self.fixed(),
                    transactions: self.transactions(transactions),
                },
                withdrawals: (0..16).map(withdrawal).collect(),
            },
            blob_gas_used: 0,
            excess_blob_gas: 0,
        }
    }

    pub fn hash(&mut self) -> B256 {
        self.fixed()
    }

    /// A built payload of Osaka: 300 kB of transactions beside that many blobs.
    pub fn built_payload(&mut self, blobs: usize) -> ExecutionPayloadEnvelopeV5 {
        ExecutionPayloadEnvelopeV5 {
            execution_payload: self.payload(300_000),
            block_value: U256::from(123_456_789_u64),
            blobs_bundle: BlobsBundleV2 {
                commitments: (0..blobs).map(|_| self.fixed()).collect(),
                proofs: (0..128 * blobs).map(|_| self.fixed()).collect(),
                blobs: (0..blobs).map(|_| self.fixed()).collect(),
            },
            should_override_builder: false,
            execution_requests: Requests::new(vec![[&[0], &*self.bytes(192)].concat().into()]),
        }
    }

    /// Entries of `engine_getBlobsV2`.
    pub fn blobs(&mut self, blobs: usize) -> Vec<BlobAndProofV2> {
        let proofs = |noise: &mut Self| (0..128).map(|_| noise.fixed()).collect();
        (0..blobs)
            .map(|_| BlobAndProofV2 { blob: Box::new(self.fixed()), proofs: proofs(self) })
            .collect()
    }
}
