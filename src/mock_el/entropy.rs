//! Bytes that look random and are the same on every run.

use alloy_primitives::{Address, FixedBytes, U256, keccak256};

/// A SplitMix64 stream seeded by hashing what it is for.
#[derive(Clone, Debug)]
pub(super) struct Entropy(u64);

impl Entropy {
    pub(super) fn of(seed: &[u8]) -> Self {
        let FixedBytes(hash) = keccak256(seed);
        let [a, b, c, d, e, f, g, h, ..] = hash;
        Self(u64::from_le_bytes([a, b, c, d, e, f, g, h]))
    }

    pub(super) fn u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.u64().to_le_bytes();
            chunk.iter_mut().zip(word).for_each(|(byte, random)| *byte = random);
        }
    }

    pub(super) fn bytes<const N: usize>(&mut self) -> FixedBytes<N> {
        let mut bytes = FixedBytes::ZERO;
        self.fill(bytes.as_mut_slice());
        bytes
    }

    pub(super) fn vec(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.fill(&mut bytes);
        bytes
    }

    pub(super) fn address(&mut self) -> Address {
        Address(self.bytes())
    }

    pub(super) fn u256(&mut self) -> U256 {
        U256::from_le_bytes(self.bytes::<32>().0)
    }
}
