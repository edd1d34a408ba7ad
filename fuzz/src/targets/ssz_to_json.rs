//! Any bytes as the SSZ of a container.
//!
//! The first byte chooses the container and the fork. In a container that has blobs, the next byte
//! says how many zeroed ones stand, in place of three bytes, where the two bytes after it say.

use engine_ssz_proxy::wire::{
    Fork, Source, check, elements, field, member_to_json, schema, to_json, to_ssz,
};
use serde_json::Value;

use super::opinions::Opinion;

/// Paths that lead somewhere in some container.
const PATHS: [&[&str]; 5] = [
    &["payload", "timestamp"],
    &["payload", "transactions"],
    &["payloadStatus", "status"],
    &["payloadAttributes", "timestamp"],
    &["entries"],
];

/// The target.
pub fn ssz_to_json(input: &[u8]) {
    let Some((number, ssz)) = input.split_first() else { return };
    let opinion = Opinion::at(*number);
    let ssz = if opinion.has_blobs() { &with_blobs(ssz) } else { ssz };
    let Opinion { container, fork, .. } = *opinion;
    let verdict = check(container, fork, ssz);
    let regions = elements(ssz).map(<[u8]>::len).sum::<usize>();
    assert!(regions <= ssz.len());
    for path in PATHS {
        let region = field(container, fork, ssz, path);
        assert!(region.is_none_or(|region| region.len() <= ssz.len()));
    }
    if let Err(disagreement) = (opinion.decode_alike)(container, fork, ssz) {
        panic!("{} of {}: {disagreement}", container.name(), fork.name());
    }
    if verdict.is_ok() {
        there_and_back(opinion, ssz);
    }
}

/// What is printed is read again as what it was, where JSON has all of it.
fn there_and_back(opinion: &Opinion, ssz: &[u8]) {
    let Opinion { container, fork, .. } = *opinion;
    let Ok(text) = to_json(container, fork, ssz) else { return };
    let whole: Value = serde_json::from_slice(&text).expect("only JSON is printed");
    if container.name() == schema::BUILT_PAYLOAD.name() {
        let payload = member_to_json(container, fork, ssz, "executionPayload");
        let payload: Value = serde_json::from_slice(&payload.expect("a valid body is printed"))
            .expect("only JSON is printed");
        assert_eq!(payload, whole["executionPayload"]);
    }
    if let Ok(again) = to_ssz(container, fork, Source::Object(&text)) {
        let text_again = to_json(container, fork, &again).expect("what is encoded is valid");
        assert_eq!(text, text_again, "printed otherwise the second time at {}", Fork::name(fork));
    }
}

fn with_blobs(input: &[u8]) -> Vec<u8> {
    const BLOB: usize = 131_072;
    let Some(([count, place @ ..], ssz)) = input.split_first_chunk::<3>() else {
        return input.to_vec();
    };
    // None in most inputs: they make one slow.
    let count = if *count < 8 { usize::from(*count % 3) } else { 0 };
    let place = usize::from(u16::from_le_bytes(*place)).min(ssz.len());
    let (before, after) = ssz.split_at(place);
    [before, &vec![0; count * BLOB], after].concat()
}
