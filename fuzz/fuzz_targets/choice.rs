//! The container and the fork an input is about: its first two bytes.

use engine_ssz_proxy::wire::{Container, Fork, schema};

const CONTAINERS: [&Container; 20] = [
    schema::EXECUTION_PAYLOAD,
    schema::EXECUTION_PAYLOAD_ENVELOPE,
    schema::FORKCHOICE_STATE,
    schema::PAYLOAD_ATTRIBUTES,
    schema::FORKCHOICE_UPDATE,
    schema::BUILT_PAYLOAD,
    schema::PAYLOAD_STATUS,
    schema::FORKCHOICE_UPDATE_RESPONSE,
    schema::BODIES_BY_HASH_REQUEST,
    schema::BODIES_RESPONSE_V1,
    schema::BODIES_RESPONSE_V2,
    schema::BLOBS_REQUEST,
    schema::BLOBS_V4_REQUEST,
    schema::BLOBS_V1_RESPONSE,
    schema::BLOBS_V2_RESPONSE,
    schema::BLOBS_V3_RESPONSE,
    schema::BLOBS_V4_RESPONSE,
    schema::PAYLOAD_STATUS_V2,
    schema::FORKCHOICE_UPDATE_RESPONSE_V2,
    schema::INCLUSION_LIST_RESPONSE,
];

/// Paths that lead somewhere in some container.
#[allow(dead_code, reason = "for one of the targets")]
pub const PATHS: [&[&str]; 5] = [
    &["payload", "timestamp"],
    &["payload", "transactions"],
    &["payloadStatus", "status"],
    &["payloadAttributes", "timestamp"],
    &["entries"],
];

pub fn choose(input: &[u8]) -> Option<(&'static Container, Fork, &[u8])> {
    let [container, fork, rest @ ..] = input else { return None };
    let container = CONTAINERS[usize::from(*container) % CONTAINERS.len()];
    Some((container, Fork::ALL[usize::from(*fork) % Fork::ALL.len()], rest))
}
