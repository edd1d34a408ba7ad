//! Reading the positional parameters of a call before it is known which containers they fill.

use super::{Context, Method, RelayReason, Version};
use crate::wire::{self, Fork};

/// The raw texts of the parameters.
pub(super) fn params(raw: Option<&[u8]>) -> Result<Vec<&[u8]>, RelayReason> {
    // No method has more than four; a few over tell how many there are.
    const MAX_PARAMS: usize = 8;
    Ok(wire::json_array(raw.ok_or(RelayReason::NoParams)?, MAX_PARAMS)?)
}

/// Just as many parameters as the method takes.
pub(super) fn exactly<'a, const N: usize>(
    params: &[&'a [u8]],
) -> Result<[&'a [u8]; N], RelayReason> {
    const WANTED: [&str; 5] = ["0", "1", "2", "3", "4"];
    let wanted = WANTED.get(N).copied().unwrap_or("more");
    params.try_into().map_err(|_| RelayReason::ParamCount { wanted, got: params.len() })
}

/// The `timestamp` of a payload or of attributes, in seconds. It stands before the transactions, so
/// no more than the head of a payload is read for it; whether there is a second one is seen when the
/// payload is translated.
pub(super) fn timestamp(object: &[u8]) -> Result<u64, RelayReason> {
    let text = wire::json_first_member(object, "timestamp")?.unwrap_or_default();
    Ok(wire::json_u64(text)?)
}

/// Notes what a payload or attributes say of the chain, whatever becomes of the call.
pub(super) fn note_time(timestamp: u64, shapes: &[Fork], context: Context<'_>) {
    context.memory.note_time(timestamp, shapes.first().copied().unwrap_or(Fork::Paris));
}

/// The forks whose shape the payload or attributes can have under that method version.
///
/// The V2 methods take two shapes, told apart by `withdrawals`, where `null` is the same as left
/// out (shanghai.md).
pub(super) fn shapes(method: Method, object: &[u8]) -> Result<&'static [Fork], RelayReason> {
    match method {
        Method::NewPayload(Version::V2) | Method::ForkchoiceUpdated(Version::V2) => {
            let withdrawals = wire::json_member(object, "withdrawals")?;
            Ok(match withdrawals {
                Some(list) if !wire::is_null(list) => &[Fork::Shanghai],
                _ => &[Fork::Paris],
            })
        }
        _ => Ok(method.forks()),
    }
}
