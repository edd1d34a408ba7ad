//! How often a translation asks the allocator for memory, counted.

#[allow(dead_code)]
#[path = "../benches/translation/data.rs"]
mod data;

use alloy_rpc_types_engine::ssz_engine_types::BuiltPayloadOsaka;
use engine_ssz_proxy::wire::{Fork, schema, to_json};
use ssz::Encode;
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

thread_local! {
    /// Allocations of this thread, and their bytes.
    static ASKED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// The system's allocator, which counts.
struct Counting;

fn count(bytes: usize) {
    ASKED.with(|asked| {
        let (times, sum) = asked.get();
        asked.set((times + 1, sum + bytes));
    });
}

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `work` gives, how often it asks for memory, and for how many bytes.
fn counted<T>(work: impl FnOnce() -> T) -> (T, usize, usize) {
    let (times, sum) = ASKED.get();
    let result = work();
    let (times_now, sum_now) = ASKED.get();
    (result, times_now - times, sum_now - sum)
}

#[test]
fn a_payload_with_48_blobs_takes_at_most_four_allocations_and_its_buffer_only_once() {
    let ssz = BuiltPayloadOsaka::from(data::Noise(2).built_payload(48)).as_ssz_bytes();
    let print = || to_json(schema::BUILT_PAYLOAD, Fork::Osaka, &ssz).unwrap();
    let (first, times, sum) = counted(print);
    assert!(first.len() > 12 << 20, "the payload has its blobs");
    assert!(times <= 4, "{times} allocations");
    assert!(sum < first.len() + (1 << 20), "{sum} bytes for {} of JSON", first.len());
    drop(first);
    let (_, times, sum) = counted(print);
    assert!(times <= 4, "{times} allocations the second time");
    assert!(sum < 4096, "{sum} bytes, although there is a buffer");
}
