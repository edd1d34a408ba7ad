//! Requests for bodies and blobs.

use alloy_primitives::B256;
use alloy_rpc_types_engine::ssz_engine_types::*;
use serde_json::{Value, from_value};

use super::Oracle;
use crate::draw::Draw;

/// Parameters that are one array, by the name the schema gives it.
macro_rules! hashes {
    ($request:ident, $field:ident, $name:literal, $max:literal) => {
        impl Oracle for $request {
            fn draw(draw: &mut Draw<'_>) -> Self {
                Self { $field: draw.list($max, Draw::hash) }
            }
            ssz!();
            fn to_json(&self) -> Value {
                serde_json::json!({ $name: self.$field })
            }
            fn from_json(mut json: Value) -> Option<Self> {
                let $field: Vec<B256> = from_value(json.get_mut($name)?.take()).ok()?;
                Some(Self { $field })
            }
        }
    };
}

hashes!(BodiesByHashRequest, block_hashes, "blockHashes", 32);
hashes!(BlobsV1Request, versioned_hashes, "versionedHashes", 128);

impl Oracle for BlobsV4Request {
    fn draw(draw: &mut Draw<'_>) -> Self {
        let versioned_hashes = draw.list(128, Draw::hash);
        Self { versioned_hashes, indices_bitarray: draw.fixed() }
    }
    ssz!();
    fn to_json(&self) -> Value {
        serde_json::json!({
            "versionedHashes": self.versioned_hashes,
            "indicesBitarray": self.indices_bitarray,
        })
    }
    fn from_json(mut json: Value) -> Option<Self> {
        Some(Self {
            versioned_hashes: from_value(json.get_mut("versionedHashes")?.take()).ok()?,
            indices_bitarray: from_value(json.get_mut("indicesBitarray")?.take()).ok()?,
        })
    }
}
