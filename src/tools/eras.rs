//! What a CL says in each fork, for the tools that play one.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Seconds between two slots.
pub(super) const SLOT: u64 = 12;

/// The hash that stands for none.
pub(super) const ZERO_HASH: &str =
    "0x0000000000000000000000000000000000000000000000000000000000000000";

/// Which methods a CL uses in a fork.
#[derive(Debug)]
pub(super) struct Era {
    pub name: &'static str,
    pub blocks: u64,
    pub new_payload: &'static str,
    pub forkchoice: &'static str,
    pub get_payload: &'static str,
    pub bodies: &'static str,
    pub blobs: &'static [&'static str],
}

/// The forks, in order.
pub(super) const ERAS: [Era; 6] = [
    Era {
        name: "paris",
        blocks: 2,
        new_payload: "engine_newPayloadV1",
        forkchoice: "engine_forkchoiceUpdatedV1",
        get_payload: "engine_getPayloadV1",
        bodies: "engine_getPayloadBodiesByHashV1",
        blobs: &[],
    },
    Era {
        name: "shanghai",
        blocks: 3,
        new_payload: "engine_newPayloadV2",
        forkchoice: "engine_forkchoiceUpdatedV2",
        get_payload: "engine_getPayloadV2",
        bodies: "engine_getPayloadBodiesByHashV1",
        blobs: &[],
    },
    Era {
        name: "cancun",
        blocks: 3,
        new_payload: "engine_newPayloadV3",
        forkchoice: "engine_forkchoiceUpdatedV3",
        get_payload: "engine_getPayloadV3",
        bodies: "engine_getPayloadBodiesByHashV1",
        blobs: &["engine_getBlobsV1"],
    },
    Era {
        name: "prague",
        blocks: 3,
        new_payload: "engine_newPayloadV4",
        forkchoice: "engine_forkchoiceUpdatedV3",
        get_payload: "engine_getPayloadV4",
        bodies: "engine_getPayloadBodiesByHashV1",
        blobs: &["engine_getBlobsV1"],
    },
    Era {
        name: "osaka",
        blocks: 3,
        new_payload: "engine_newPayloadV4",
        forkchoice: "engine_forkchoiceUpdatedV3",
        get_payload: "engine_getPayloadV5",
        bodies: "engine_getPayloadBodiesByHashV1",
        blobs: &["engine_getBlobsV2", "engine_getBlobsV3"],
    },
    Era {
        name: "amsterdam",
        blocks: 3,
        new_payload: "engine_newPayloadV5",
        forkchoice: "engine_forkchoiceUpdatedV4",
        get_payload: "engine_getPayloadV6",
        bodies: "engine_getPayloadBodiesByHashV2",
        blobs: &["engine_getBlobsV2", "engine_getBlobsV3", "engine_getBlobsV4"],
    },
];

impl Era {
    /// Parameters of this fork's `engine_newPayload` for what `engine_getPayload` has answered.
    pub(super) fn new_payload_params(&self, built: &Value, hashes: &[String], root: &str) -> Value {
        let payload = built.get("executionPayload").unwrap_or(built);
        match self.new_payload {
            "engine_newPayloadV1" | "engine_newPayloadV2" => json!([payload]),
            "engine_newPayloadV3" => json!([payload, hashes, root]),
            _ => json!([payload, hashes, root, built["executionRequests"]]),
        }
    }
}

/// Attributes of the block of that number, in the fork's shape.
pub(super) fn attributes(era: &Era, number: u64) -> Value {
    let mut attributes = json!({
        "timestamp": quantity(number * SLOT),
        "prevRandao": hash_of("randao", number),
        "suggestedFeeRecipient": "0x8a04d14125d0fdcdc742f4a05c051de07232eda4",
    });
    let at_least = |fork: &str| {
        let place = |name| ERAS.iter().position(|era| era.name == name);
        place(era.name) >= place(fork)
    };
    if at_least("shanghai") {
        let withdrawals = (0..number % 3).map(|n| {
            json!({
                "index": quantity(number * 3 + n), "validatorIndex": quantity(7 + n),
                "address": "0x8a04d14125d0fdcdc742f4a05c051de07232eda4",
                "amount": quantity(1_000_000_007 * number),
            })
        });
        attributes["withdrawals"] = withdrawals.collect();
    }
    if at_least("cancun") {
        attributes["parentBeaconBlockRoot"] = json!(root(number));
    }
    if at_least("amsterdam") {
        attributes["slotNumber"] = json!(quantity(number));
        attributes["targetGasLimit"] = json!(quantity(60_000_000));
    }
    attributes
}

/// The root of the beacon block that brings the block of that number.
pub(super) fn root(number: u64) -> String {
    hash_of("beacon", number)
}

/// A hash that is the same on every run.
pub(super) fn hash_of(what: &str, number: u64) -> String {
    const_hex::encode_prefixed(Sha256::digest(format!("{what}{number}")))
}

/// A number as JSON-RPC has it.
pub(super) fn quantity(number: u64) -> String {
    format!("{number:#x}")
}

/// The versioned hash of each commitment of a built payload (EIP-4844).
pub(super) fn versioned_hashes(built: &Value) -> Vec<String> {
    let commitments = built.pointer("/blobsBundle/commitments").and_then(Value::as_array);
    let bytes = commitments.into_iter().flatten().filter_map(Value::as_str);
    let hash = |commitment| {
        let mut hash: [u8; 32] = Sha256::digest(const_hex::decode(commitment).ok()?).into();
        hash[0] = 0x01;
        Some(const_hex::encode_prefixed(hash))
    };
    bytes.filter_map(hash).collect()
}
