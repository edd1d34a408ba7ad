//! Any text as the JSON of any container: refused, or JSON whose SSZ is valid.
#![no_main]

use engine_ssz_proxy::wire::{Source, check, json_array, json_member, to_ssz};
use libfuzzer_sys::fuzz_target;

#[path = "choice.rs"]
mod choice;

fuzz_target!(|input: &[u8]| {
    let _ = json_member(input, "params");
    let _ = json_array(input, usize::MAX);
    let Some((container, fork, text)) = choice::choose(input) else { return };
    if let Ok(ssz) = to_ssz(container, fork, Source::Object(text)) {
        serde_json::from_slice::<serde::de::IgnoredAny>(text).expect("only JSON is encoded");
        check(container, fork, &ssz).expect("what is encoded is valid");
    }
    if let Ok(fields) = json_array(text, usize::MAX) {
        if let Ok(ssz) = to_ssz(container, fork, Source::Fields(&fields)) {
            check(container, fork, &ssz).expect("what is encoded is valid");
        }
    }
});
