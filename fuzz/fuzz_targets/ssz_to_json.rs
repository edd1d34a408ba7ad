//! Any bytes as the SSZ of any container: refused, or printed as JSON.
#![no_main]

use engine_ssz_proxy::wire::{check, elements, field, member_to_json, to_json};
use libfuzzer_sys::fuzz_target;

#[path = "choice.rs"]
mod choice;

fuzz_target!(|input: &[u8]| {
    let _ = elements(input).count();
    let Some((container, fork, ssz)) = choice::choose(input) else { return };
    for path in choice::PATHS {
        let _ = field(container, fork, ssz, path);
    }
    let _ = member_to_json(container, fork, ssz, "executionPayload");
    let printed = to_json(container, fork, ssz);
    assert_eq!(printed.is_ok(), check(container, fork, ssz).is_ok());
    if let Ok(text) = printed {
        serde_json::from_slice::<serde::de::IgnoredAny>(&text).expect("only JSON is printed");
    }
});
