//! The genesis files of ELs.

use super::ScheduleError;
use crate::wire::Fork;
use serde_json::Value;

/// geth, reth, ethrex, erigon and Besu name the time by the fork.
const GETH_TIMES: [(&str, Fork); 6] = [
    ("shanghaiTime", Fork::Shanghai),
    ("cancunTime", Fork::Cancun),
    ("pragueTime", Fork::Prague),
    ("osakaTime", Fork::Osaka),
    ("amsterdamTime", Fork::Amsterdam),
    ("bogotaTime", Fork::Bogota),
];

/// Nethermind names it by an EIP that the fork brought.
const NETHERMIND_TIMES: [(&str, Fork); 7] = [
    ("eip4895TransitionTimestamp", Fork::Shanghai),
    ("eip4844TransitionTimestamp", Fork::Cancun),
    ("eip7702TransitionTimestamp", Fork::Prague),
    ("eip6110TransitionTimestamp", Fork::Prague),
    ("eip7594TransitionTimestamp", Fork::Osaka),
    ("eip7928TransitionTimestamp", Fork::Amsterdam),
    ("eip7805TransitionTimestamp", Fork::Bogota),
];

/// The forks after Paris that the file names, oldest first, with their times.
pub(super) fn activations(text: &str) -> Result<Vec<(u64, Fork)>, ScheduleError> {
    let genesis: Value = serde_json::from_str(text)?;
    let (times, names): (_, &[(&'static str, Fork)]) =
        match (&genesis["config"], &genesis["params"]) {
            (config @ Value::Object(_), _) => (config, &GETH_TIMES),
            (_, params @ Value::Object(_)) => (params, &NETHERMIND_TIMES),
            _ => return Err(ScheduleError::UnknownForm),
        };
    let mut activations: Vec<(u64, Fork)> = Vec::new();
    for (name, fork) in names.iter().copied() {
        let known = activations.iter().any(|(_, seen)| *seen == fork);
        if let (Some(value), false) = (times.get(name).filter(|v| !v.is_null()), known) {
            activations.push((seconds(value).ok_or(ScheduleError::BadTime { name })?, fork));
        }
    }
    Ok(activations)
}

/// A JSON number, a decimal string or a `0x` string.
fn seconds(value: &Value) -> Option<u64> {
    if let Some(number) = value.as_u64() {
        return Some(number);
    }
    let text = value.as_str()?;
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}
