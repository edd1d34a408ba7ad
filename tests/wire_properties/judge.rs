//! The verdicts of this crate's walkers on any bytes, held against the oracle's.

use engine_ssz_proxy::wire::{Container, Fork, Source, check, to_json, to_ssz};
use serde_json::Value;

use crate::differences::{Dispute, bundle_does_not_fit, explain};
use crate::oracle::Oracle;

/// A body is taken where alloy takes it, and then means the same.
///
/// # Errors
///
/// The disagreement.
pub fn decode_alike<T: Oracle>(
    container: &Container,
    fork: Fork,
    ssz: &[u8],
) -> Result<(), String> {
    let ours = check(container, fork, ssz);
    let printed = to_json(container, fork, ssz);
    ensure(printed.as_ref().err() == ours.as_ref().err(), || "check is not to_json".into())?;
    let theirs = T::decode(ssz);
    match (printed, theirs) {
        (Ok(printed), Some(theirs)) => {
            let printed: Value = serde_json::from_slice(&printed)
                .map_err(|error| format!("printed no JSON: {error}"))?;
            let theirs = theirs.to_json();
            ensure(printed == theirs, || format!("{printed}\n{theirs}"))
        }
        (Err(_), None) => Ok(()),
        (_, theirs) => {
            let oracle = |ssz: &[u8]| T::decode(ssz).is_some();
            let dispute = Dispute { container, fork, ssz, ours, oracle: &oracle };
            ensure(explain(&dispute).is_some(), || {
                let theirs = if theirs.is_some() { "takes" } else { "refuses" };
                format!("alloy {theirs} it, ours: {:?}\n{}", dispute.ours, start(ssz))
            })
        }
    }
}

/// Whatever is encoded is JSON, and alloy encodes it to the same bytes.
///
/// # Errors
///
/// The disagreement.
pub fn encode_no_more<T: Oracle>(
    container: &Container,
    fork: Fork,
    text: &[u8],
) -> Result<(), String> {
    let Ok(ours) = to_ssz(container, fork, Source::Object(text)) else { return Ok(()) };
    let json: Value = serde_json::from_slice(text)
        .map_err(|error| format!("encoded no JSON: {error}\n{}", shown(text)))?;
    let Some(theirs) = T::from_json(json) else {
        return ensure(bundle_does_not_fit(container, fork, &ours), || {
            format!("alloy refuses it\n{}", shown(text))
        });
    };
    ensure(ours == theirs.encode(), || shown(text))
}

/// The head of a text, for a message.
pub fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(4000)]).into_owned()
}

fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(message()) }
}

fn start(ssz: &[u8]) -> String {
    format!("{} bytes: {}", ssz.len(), const_hex::encode(&ssz[..ssz.len().min(1000)]))
}
