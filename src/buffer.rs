//! Buffers for bodies, used again and again.
//!
//! The system hands out memory as pages that are zeroed one by one when first touched: for a fresh
//! buffer of some megabytes that takes several times longer than to fill it with a translated
//! payload. So buffers of that size are kept when they are done with, and taken up by the next call.

use bytes::Bytes;
use std::{
    collections::VecDeque,
    fmt,
    ops::{Deref, DerefMut},
    sync::{Mutex, PoisonError},
};

/// Smaller buffers are left to the allocator, which has them at hand.
const LEAST_KEPT: usize = 64 << 10;

/// All that is kept together, in bytes: both buffers of a payload with 72 blobs, 10 MB of SSZ and
/// 20 MB of JSON.
const MOST_KEPT: usize = 32 << 20;

/// A buffer is not taken for less than this part of it.
const LEAST_USE: usize = 8;

/// What is kept for the whole process.
static POOL: Pool = Pool::new();

/// Bytes to be written, of a size known before. Whatever is not written holds the bytes of an earlier
/// call: who takes a buffer writes all of it or cuts it short.
pub struct Buffer {
    /// Initialised in its whole capacity, so that no byte of it needs to be zeroed again.
    memory: Vec<u8>,
    length: usize,
}

impl Buffer {
    /// A buffer of `length` bytes of no particular value.
    pub fn of(length: usize) -> Self {
        let memory = match length {
            ..LEAST_KEPT => vec![0; length],
            _ => POOL.take(length).unwrap_or_else(|| vec![0; length]),
        };
        let mut buffer = Self { memory, length };
        if cfg!(debug_assertions) {
            // Nobody must come to rely on zeros.
            buffer.fill(0xa5);
        }
        buffer
    }

    /// Gives up what is behind the first `length` bytes.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// The next `length` bytes, of no particular value. They do not have to fit: the buffer moves to
    /// a larger one if it must.
    pub fn extend(&mut self, length: usize) -> &mut [u8] {
        let start = self.length;
        let end = start + length;
        if end > self.memory.len() {
            let mut larger = Self::of(end.max(2 * start));
            larger.truncate(start);
            larger.copy_from_slice(self);
            *self = larger;
        }
        self.length = end;
        self.get_mut(start..).unwrap_or_default()
    }

    /// The bytes, to be shared. The buffer is kept for others when the last share is dropped.
    pub fn freeze(mut self) -> Bytes {
        if self.memory.len() < LEAST_KEPT {
            let mut memory = std::mem::take(&mut self.memory);
            memory.truncate(self.length);
            return memory.into();
        }
        Bytes::from_owner(self)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.memory.len() >= LEAST_KEPT {
            POOL.keep(std::mem::take(&mut self.memory));
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.memory.get(..self.length).unwrap_or_default()
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.memory.get_mut(..self.length).unwrap_or_default()
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Buffer {
    /// A length in place of bytes: a body is never written to a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("length", &self.length).finish_non_exhaustive()
    }
}

/// Memory that is not in use, the longest unused first.
struct Pool(Mutex<VecDeque<Vec<u8>>>);

impl Pool {
    const fn new() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }

    /// The smallest of the kept that will do.
    fn take(&self, length: usize) -> Option<Vec<u8>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |memory: &Vec<u8>| length <= memory.len() && memory.len() <= LEAST_USE * length;
        let fitting = kept.iter().enumerate().filter(|(_, memory)| fits(memory));
        let (index, _) = fitting.min_by_key(|(_, memory)| memory.len())?;
        kept.remove(index)
    }

    /// Keeps memory; lets the longest unused go if it becomes too much.
    fn keep(&self, memory: Vec<u8>) {
        if memory.len() > MOST_KEPT {
            return;
        }
        let mut gone = Vec::new();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back(memory);
        let mut sum: usize = kept.iter().map(Vec::len).sum();
        while sum > MOST_KEPT {
            let Some(longest_unused) = kept.pop_front() else { break };
            sum -= longest_unused.len();
            gone.push(longest_unused);
        }
        // Freed when the lock is no longer held.
        drop(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(pool: &Pool) -> Vec<usize> {
        pool.0.lock().unwrap().iter().map(Vec::len).collect()
    }

    #[test]
    fn memory_is_given_back_when_the_last_share_of_a_buffer_is_gone() {
        // A size that nobody else asks for, of the pool that all share.
        const SIZE: usize = (5 << 20) + 12_345;
        let is_kept = || sizes(&POOL).contains(&SIZE);
        let mut buffer = Buffer::of(SIZE);
        buffer.fill(7);
        let bytes = buffer.freeze();
        let share = bytes.slice(10..20);
        drop(bytes);
        assert!(!is_kept());
        assert_eq!(&*share, [7; 10]);
        drop(share);
        assert!(is_kept());
    }

    #[test]
    fn the_smallest_that_will_do_is_taken_and_none_is_wasted_on_little() {
        let pool = Pool::new();
        for size in [8 << 20, 2 << 20, 3 << 20] {
            pool.keep(vec![0; size]);
        }
        assert!(pool.take(200 << 10).is_none());
        assert_eq!(pool.take((2 << 20) + 1).map(|memory| memory.len()), Some(3 << 20));
        assert_eq!(pool.take(1 << 20).map(|memory| memory.len()), Some(2 << 20));
        assert_eq!(sizes(&pool), [8 << 20]);
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_longest_unused_goes() {
        let pool = Pool::new();
        for size in [10 << 20, 11 << 20, MOST_KEPT + 1, 12 << 20] {
            pool.keep(vec![0; size]);
        }
        assert_eq!(sizes(&pool), [11 << 20, 12 << 20]);
    }

    #[test]
    fn extending_keeps_what_was_there() {
        let mut buffer = Buffer::of(0);
        let mut expected = Vec::new();
        for size in [1, 10, 70_000, 3, 200_000, 1] {
            let piece = vec![size as u8; size];
            buffer.extend(size).copy_from_slice(&piece);
            expected.extend(piece);
            assert_eq!(*buffer, *expected);
        }
        assert_eq!(buffer.freeze(), expected);
    }
}
