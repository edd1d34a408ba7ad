//! The second opinion: alloy's types, their SSZ by `ethereum_ssz`, their JSON by serde.
//!
//! Where alloy's own JSON is not that of the Engine API, the difference is made up for here, with
//! a word on why.

use serde_json::Value;

use crate::draw::Draw;

/// A value both sides know.
pub trait Oracle: Sized {
    fn draw(draw: &mut Draw<'_>) -> Self;
    fn encode(&self) -> Vec<u8>;
    fn decode(ssz: &[u8]) -> Option<Self>;
    fn to_json(&self) -> Value;
    fn from_json(json: Value) -> Option<Self>;
}

/// SSZ as alloy has it.
macro_rules! ssz {
    () => {
        fn encode(&self) -> Vec<u8> {
            ssz::Encode::as_ssz_bytes(self)
        }
        fn decode(ssz: &[u8]) -> Option<Self> {
            ssz::Decode::from_ssz_bytes(ssz).ok()
        }
    };
}

/// JSON as serde has it.
macro_rules! json {
    () => {
        fn to_json(&self) -> Value {
            to_value(self).unwrap()
        }
        fn from_json(json: Value) -> Option<Self> {
            from_value(json).ok()
        }
    };
}

/// JSON as serde has it for another type.
macro_rules! json_as {
    ($legacy:ty) => {
        fn to_json(&self) -> Value {
            to_value(<$legacy>::from(self.clone())).unwrap()
        }
        fn from_json(json: Value) -> Option<Self> {
            from_value::<$legacy>(json).ok()?.try_into().ok()
        }
    };
}

/// SSZ as alloy has it for the value inside.
macro_rules! inner_ssz {
    () => {
        fn encode(&self) -> Vec<u8> {
            ssz::Encode::as_ssz_bytes(&self.0)
        }
        fn decode(ssz: &[u8]) -> Option<Self> {
            ssz::Decode::from_ssz_bytes(ssz).ok().map(Self)
        }
    };
}

// Below the macros they use.
mod blobs;
mod bodies;
pub mod bogota;
mod forkchoice;
mod payload;
mod requests;

pub use blobs::Blobs;
pub use bodies::{BodiesV1, BodiesV2};
