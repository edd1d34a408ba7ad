//! Values out of entropy: few bytes make much, edge values are likely, and no entropy is zeros, so
//! that a failing case shrinks to a small one.

use alloy_eips::eip4844::{Blob, Bytes48};
use alloy_eips::eip4895::Withdrawal;
use alloy_eips::eip7685::Requests;
use alloy_primitives::{Address, B256, Bloom, Bytes, FixedBytes, U256};

pub struct Draw<'e>(pub &'e [u8]);

impl Draw<'_> {
    pub fn byte(&mut self) -> u8 {
        let Some((byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *byte
    }

    pub fn one_in(&mut self, count: u8) -> bool {
        self.byte() % count == count - 1
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        let number = usize::from(self.byte()) << 8 | usize::from(self.byte());
        number % bound.max(1)
    }

    /// Bytes that are all alike, or count up.
    pub fn fill(&mut self, size: usize) -> Vec<u8> {
        let (first, step) = (self.byte(), self.byte() % 2);
        let byte = |index: usize| first.wrapping_add(step.wrapping_mul(index as u8));
        (0..size).map(byte).collect()
    }

    pub fn fixed<const N: usize>(&mut self) -> FixedBytes<N> {
        FixedBytes::from_slice(&self.fill(N))
    }

    pub fn hash(&mut self) -> B256 {
        self.fixed()
    }

    pub fn address(&mut self) -> Address {
        Address(self.fixed())
    }

    pub fn bloom(&mut self) -> Bloom {
        Bloom(self.fixed())
    }

    pub fn u64(&mut self) -> u64 {
        match self.byte() % 8 {
            0 => 0,
            1 => u64::MAX,
            2 => 1 << 63,
            3 => u64::from(self.byte()),
            small => u64::from_le_bytes(self.fixed().0) >> (small * 8),
        }
    }

    pub fn u256(&mut self) -> U256 {
        match self.byte() % 5 {
            0 => U256::ZERO,
            1 => U256::MAX,
            2 => U256::from(self.u64()),
            3 => U256::from(1) << 255,
            _ => U256::from_le_bytes(self.fixed::<32>().0),
        }
    }

    pub fn bytes(&mut self, max: usize) -> Bytes {
        let size = match self.byte() % 6 {
            0 => 0,
            1 => 1,
            2 => max.min(32),
            3 => max,
            _ => self.below(8),
        };
        self.fill(size.min(max)).into()
    }

    pub fn list<T>(&mut self, max: usize, mut element: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = match self.byte() % 12 {
            0..4 => 0,
            4..7 => 1,
            7..9 => 2,
            9..11 => 3,
            _ => max,
        };
        (0..count.min(max)).map(|_| element(self)).collect()
    }

    pub fn option<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.one_in(2).then(|| value(self))
    }

    pub fn transactions(&mut self) -> Vec<Bytes> {
        self.list(9, |draw| draw.bytes(70))
    }

    pub fn withdrawals(&mut self) -> Vec<Withdrawal> {
        self.list(16, |draw| Withdrawal {
            index: draw.u64(),
            validator_index: draw.u64(),
            address: draw.address(),
            amount: draw.u64(),
        })
    }

    /// As EIP-7685 wants them: data behind each type, types ascending.
    pub fn requests(&mut self) -> Requests {
        let mut kind = 0_u8;
        let requests = self.list(4, |draw| {
            let request = [&[kind][..], &[draw.byte()], &draw.bytes(40)].concat();
            kind += 1 + draw.byte() % 60;
            Bytes::from(request)
        });
        Requests::new(requests)
    }

    pub fn blob(&mut self) -> Box<Blob> {
        let fill = self.fill(256).repeat(512);
        Box::new(Blob::from_slice(&fill))
    }

    pub fn proofs(&mut self, count: usize) -> Vec<Bytes48> {
        vec![self.fixed(); count]
    }
}
