//! Which container a payload status is.

use super::{Method, Version};
use crate::wire::{Container, Fork, schema};

/// The answer to newPayload or forkchoiceUpdated: what the CL gets of it depends on the method's
/// version, PayloadStatusV2 from Bogota on.
pub(super) const fn container(method: Method) -> &'static Container {
    match method {
        Method::NewPayload(Version::V6) => schema::PAYLOAD_STATUS_V2,
        Method::NewPayload(_) => schema::PAYLOAD_STATUS,
        Method::ForkchoiceUpdated(Version::V5) => schema::FORKCHOICE_UPDATE_RESPONSE_V2,
        _ => schema::FORKCHOICE_UPDATE_RESPONSE,
    }
}

/// The fork whose shape a `PayloadStatus` has, given the header it was asked under.
///
/// ELs differ in whether they answer Bogota with the status of Amsterdam. The first offset is the
/// size of the fixed part, and so tells: 9 bytes, or 13 with the fourth field.
pub(super) fn shape(status: &[u8], header: Fork) -> Fork {
    match (header, status.get(1..5)) {
        (Fork::Bogota, Some([9, 0, 0, 0])) => Fork::Amsterdam,
        _ => header,
    }
}
