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

/// What is kept, the longest unused first.
static KEPT: Mutex<VecDeque<Vec<u8>>> = Mutex::new(VecDeque::new());

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
            _ => take(length).unwrap_or_else(|| vec![0; length]),
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
            keep(std::mem::take(&mut self.memory));
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

/// The smallest of the kept that will do.
fn take(length: usize) -> Option<Vec<u8>> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let fits = |memory: &Vec<u8>| length <= memory.len() && memory.len() <= LEAST_USE * length;
    let (index, _) =
        kept.iter().enumerate().filter(|(_, memory)| fits(memory)).min_by_key(|(_, m)| m.len())?;
    kept.remove(index)
}

/// Keeps a buffer; lets the longest unused ones go if it becomes too much.
fn keep(memory: Vec<u8>) {
    if memory.len() > MOST_KEPT {
        return;
    }
    let mut gone = Vec::new();
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The pool is one for the process; tests that look into it take turns.
    static TURN: Mutex<()> = Mutex::new(());

    fn address(buffer: &Buffer) -> *const u8 {
        buffer.memory.as_ptr()
    }

    fn alone() -> std::sync::MutexGuard<'static, ()> {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        KEPT.lock().unwrap().clear();
        turn
    }

    #[test]
    fn a_buffer_is_used_again_when_its_last_share_is_gone() {
        let _turn = alone();
        let mut buffer = Buffer::of(1 << 20);
        buffer.fill(7);
        let memory = address(&buffer);
        let bytes = buffer.freeze();
        let share = bytes.slice(10..20);
        drop(bytes);
        assert_ne!(address(&Buffer::of(1 << 20)), memory);
        assert_eq!(&*share, [7; 10]);
        drop(share);
        let again = [Buffer::of(900_000), Buffer::of(1 << 20)];
        assert!(again.iter().any(|buffer| address(buffer) == memory));
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_longest_unused_goes() {
        let _turn = alone();
        let sizes = || KEPT.lock().unwrap().iter().map(Vec::len).collect::<Vec<_>>();
        drop([10 << 20, 11 << 20].map(Buffer::of));
        assert_eq!(sizes(), [10 << 20, 11 << 20]);
        drop(Buffer::of(100));
        drop(Buffer::of(MOST_KEPT + 1));
        assert_eq!(
            sizes(),
            [10 << 20, 11 << 20],
            "neither what is too small nor what is too large"
        );
        drop(Buffer::of(12 << 20));
        assert_eq!(sizes(), [11 << 20, 12 << 20]);
    }

    #[test]
    fn a_large_buffer_is_not_wasted_on_little() {
        let _turn = alone();
        drop(Buffer::of(8 << 20));
        let little = Buffer::of(100 << 10);
        assert_eq!(little.memory.len(), 100 << 10);
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
