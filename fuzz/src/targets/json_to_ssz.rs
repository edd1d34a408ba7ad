//! Any text as the JSON of a container, or as the array of a method's parameters.
//!
//! The first byte chooses the container and the fork.

use engine_ssz_proxy::wire::{Source, check, json_array, json_member, json_u64, to_ssz};
use serde_json::value::RawValue;

use super::opinions::Opinion;

/// The target.
pub fn json_to_ssz(input: &[u8]) {
    let Some((number, text)) = input.split_first() else { return };
    judge_cursor(text);
    let opinion = Opinion::at(*number);
    let Opinion { container, fork, .. } = opinion;
    if let Ok(ssz) = to_ssz(container, *fork, Source::Object(text)) {
        check(container, *fork, &ssz).expect("what is encoded is valid");
    }
    agree(opinion, text);
    if let Ok(fields) = json_array(text, 8) {
        positional(opinion, &fields);
    }
}

fn agree(opinion: &Opinion, text: &[u8]) {
    if let Err(disagreement) = (opinion.encode_no_more)(opinion.container, opinion.fork, text) {
        panic!("{} of {}: {disagreement}", opinion.container.name(), opinion.fork.name());
    }
}

/// Parameters are encoded as the object that has them by name is.
fn positional(opinion: &Opinion, fields: &[&[u8]]) {
    let Ok(ssz) = to_ssz(opinion.container, opinion.fork, Source::Fields(fields)) else { return };
    check(opinion.container, opinion.fork, &ssz).expect("what is encoded is valid");
    let names = opinion.parameters();
    if names.is_empty() {
        return;
    }
    assert!(fields.len() <= names.len());
    let member = |(name, text): (&&str, &&[u8])| [b"\"", name.as_bytes(), b"\":", text].concat();
    let members: Vec<_> = names.iter().zip(fields).map(member).collect();
    let object = [&b"{"[..], &members.join(&b","[..]), b"}"].concat();
    let named = to_ssz(opinion.container, opinion.fork, Source::Object(&object));
    assert_eq!(named.as_deref(), Ok(&*ssz));
    agree(opinion, &object);
}

/// What the cursor finds in JSON is what serde_json finds.
fn judge_cursor(text: &[u8]) {
    let elements = json_array(text, usize::MAX);
    let member = json_member(text, "timestamp");
    let number = json_u64(text);
    let Ok(text) = std::str::from_utf8(text) else { return };
    if let (Ok(found), Ok(wanted)) = (elements, serde_json::from_str::<Vec<&RawValue>>(text)) {
        let wanted: Vec<_> = wanted.iter().map(|element| element.get().as_bytes()).collect();
        assert_eq!(found, wanted);
    }
    #[derive(serde::Deserialize)]
    struct Timestamp<'t> {
        #[serde(borrow, default)]
        timestamp: Option<&'t RawValue>,
    }
    if let (Ok(found), Ok(wanted)) = (member, serde_json::from_str::<Timestamp<'_>>(text))
        // A struct may be an array to serde.
        && text.trim_start().starts_with('{')
    {
        let wanted = wanted.timestamp.map(|value| value.get().as_bytes());
        // To serde a member that is null is absent.
        assert_eq!(found.filter(|value| *value != b"null"), wanted);
    }
    if let Ok(found) = number {
        let text: String = serde_json::from_str(text).expect("a quantity is a string");
        assert_eq!(text.to_ascii_lowercase(), format!("{found:#x}"));
    }
}
