//! Chance that a seed repeats.

/// A SplitMix64 stream.
#[derive(Clone, Debug)]
pub(super) struct Draw(u64);

impl Draw {
    /// A stream of its own for each purpose, told apart by a number.
    pub(super) fn new(seed: u64, purpose: u64) -> Self {
        let mut draw = Self(seed ^ purpose.wrapping_mul(0xd6e8_feb8_6659_fd93));
        draw.next();
        draw
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if that is 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next().checked_rem(end).unwrap_or_default()
    }

    /// One of these; nothing if there is none.
    pub(super) fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(usize::try_from(self.below(of.len() as u64)).ok()?)
    }

    /// True once in so many times.
    pub(super) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// 32 bytes.
    pub(super) fn hash(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for chunk in bytes.chunks_exact_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes());
        }
        bytes
    }
}
