//! Blobs by hash.

use alloy_eips::eip4844::{BlobAndProofV1, BlobAndProofV2, BlobCellsAndProofsV1};
use alloy_rpc_types_engine::ssz_engine_types::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, to_value};

use super::Oracle;
use crate::draw::Draw;

/// What a blob entry holds, and the Engine API's structure for it.
pub trait Contents: ssz::Encode + ssz::Decode {
    type Legacy: Serialize + DeserializeOwned;
    fn draw(draw: &mut Draw<'_>) -> Self::Legacy;
    fn respond(legacies: Vec<Option<Self::Legacy>>) -> Option<BlobsResponse<Self>>
    where
        Self: Sized;
    fn to_legacy(&self) -> Self::Legacy;
}

impl Contents for BlobAndProofV1 {
    type Legacy = Self;
    fn draw(draw: &mut Draw<'_>) -> Self {
        Self { blob: draw.blob(), proof: draw.fixed() }
    }
    fn respond(legacies: Vec<Option<Self>>) -> Option<BlobsV1Response> {
        legacies.try_into().ok()
    }
    fn to_legacy(&self) -> Self {
        self.clone()
    }
}

impl Contents for BlobAndProofV2 {
    type Legacy = Self;
    fn draw(draw: &mut Draw<'_>) -> Self {
        Self { blob: draw.blob(), proofs: draw.proofs(128) }
    }
    fn respond(legacies: Vec<Option<Self>>) -> Option<BlobsV3Response> {
        legacies.try_into().ok()
    }
    fn to_legacy(&self) -> Self {
        self.clone()
    }
}

impl Contents for BlobCellsAndProofs {
    type Legacy = BlobCellsAndProofsV1;
    fn draw(draw: &mut Draw<'_>) -> BlobCellsAndProofsV1 {
        let cells = draw.list(9, |draw| draw.option(|draw| (draw.fixed(), draw.fixed())));
        let (blob_cells, proofs) = cells.into_iter().map(Option::unzip).unzip();
        BlobCellsAndProofsV1 { blob_cells, proofs }
    }
    fn respond(legacies: Vec<Option<BlobCellsAndProofsV1>>) -> Option<BlobsV4Response> {
        let response = BlobsV4Response::try_from(legacies).ok()?;
        // The rule alloy has for SSZ only.
        ssz::Decode::from_ssz_bytes(&ssz::Encode::as_ssz_bytes(&response)).ok()
    }
    fn to_legacy(&self) -> BlobCellsAndProofsV1 {
        BlobCellsAndProofsV1 {
            blob_cells: self.blob_cells.iter().map(|cell| cell.as_ref().copied()).collect(),
            proofs: self.proofs.iter().map(|proof| proof.as_ref().copied()).collect(),
        }
    }
}

/// The blobs of a response.
pub struct Blobs<T: Contents>(BlobsResponse<T>);

impl<T: Contents> Oracle for Blobs<T> {
    fn draw(draw: &mut Draw<'_>) -> Self {
        let legacies = draw.list(2, |draw| draw.option(T::draw));
        Self(T::respond(legacies).unwrap())
    }
    inner_ssz!();
    fn to_json(&self) -> Value {
        let entries = self.0.entries.iter();
        let legacies = entries.map(|entry| entry.available.then(|| entry.contents.to_legacy()));
        to_value(legacies.collect::<Vec<_>>()).unwrap()
    }
    fn from_json(json: Value) -> Option<Self> {
        T::respond(from_value(json).ok()?).map(Self)
    }
}
