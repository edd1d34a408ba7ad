//! The blob pool: blobs, commitments and proofs of every payload this EL has built.
//!
//! There is no KZG: commitments and proofs are made-up bytes, but the versioned hashes are the real
//! hashes of those commitments, and each blob keeps the proofs of the fork it was built in.

use std::{collections::HashMap, sync::Arc};

use alloy_eips::{
    eip4844::{
        BYTES_PER_BLOB, Blob, BlobAndProofV1, BlobAndProofV2, BlobCellsAndProofsV1, Bytes48,
        kzg_to_versioned_hash,
    },
    eip7594::{BYTES_PER_CELL, CELLS_PER_EXT_BLOB, Cell},
};
use alloy_primitives::{B128, B256, keccak256};

use super::entropy::Entropy;

/// A blob with what proves it.
#[derive(Debug)]
pub(super) struct Sidecar {
    pub(super) versioned_hash: B256,
    pub(super) commitment: Bytes48,
    pub(super) blob: Box<Blob>,
    pub(super) proofs: Proofs,
}

/// The proofs of a blob: one for all of it (EIP-4844) or one for each cell (EIP-7594, from Osaka).
#[derive(Debug)]
pub(super) enum Proofs {
    Blob(Bytes48),
    Cells(Vec<Bytes48>),
}

/// Which proofs a new blob gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProofKind {
    Blob,
    Cells,
}

impl Sidecar {
    /// Makes the blob of that seed.
    pub(super) fn make(seed: &[u8], kind: ProofKind) -> Self {
        let mut entropy = Entropy::of(seed);
        let mut commitment: Bytes48 = entropy.bytes();
        // The flag bits of a compressed G1 point, so that it looks like one.
        if let Some(first) = commitment.first_mut() {
            *first = 0x80 | (*first & 0x1f);
        }
        let mut blob = vec![0; BYTES_PER_BLOB].into_boxed_slice();
        entropy.fill(&mut blob);
        for element in blob.chunks_mut(32) {
            // Below the BLS modulus, as every field element of a real blob.
            if let Some(most_significant) = element.first_mut() {
                *most_significant = 0;
            }
        }
        let proofs = match kind {
            ProofKind::Blob => Proofs::Blob(entropy.bytes()),
            ProofKind::Cells => {
                Proofs::Cells((0..CELLS_PER_EXT_BLOB).map(|_| entropy.bytes()).collect())
            }
        };
        Self {
            versioned_hash: kzg_to_versioned_hash(commitment.as_slice()),
            commitment,
            blob: Box::new(Blob::from_slice(&blob)),
            proofs,
        }
    }

    /// One cell of the extended blob: the first half of the cells is the blob itself, the second
    /// half is made up from its hash.
    fn cell(&self, index: usize) -> Cell {
        let start = index.saturating_mul(BYTES_PER_CELL);
        match self.blob.get(start..start.saturating_add(BYTES_PER_CELL)) {
            Some(bytes) => Cell::from_slice(bytes),
            None => {
                let seed = [self.versioned_hash.as_slice(), &index.to_le_bytes()].concat();
                Entropy::of(keccak256(seed).as_slice()).bytes()
            }
        }
    }
}

/// Every blob ever built here. Nothing is pruned.
#[derive(Debug, Default)]
pub(super) struct BlobPool {
    by_hash: HashMap<B256, Arc<Sidecar>>,
}

impl BlobPool {
    pub(super) fn insert(&mut self, sidecar: Arc<Sidecar>) {
        self.by_hash.insert(sidecar.versioned_hash, sidecar);
    }

    /// `engine_getBlobsV1` (cancun.md): blobs with a blob proof; others are missing.
    pub(super) fn v1(&self, hashes: &[B256]) -> Vec<Option<BlobAndProofV1>> {
        let find = |hash| match self.by_hash.get(hash)?.as_ref() {
            Sidecar { blob, proofs: Proofs::Blob(proof), .. } => {
                Some(BlobAndProofV1 { blob: blob.clone(), proof: *proof })
            }
            _ => None,
        };
        hashes.iter().map(find).collect()
    }

    /// `engine_getBlobsV2` (osaka.md): all of them with cell proofs, or none at all.
    pub(super) fn v2(&self, hashes: &[B256]) -> Option<Vec<BlobAndProofV2>> {
        // Looked up first: a miss must not cost the copies of the hits before it.
        hashes
            .iter()
            .map(|hash| self.with_cell_proofs(hash))
            .collect::<Option<Vec<_>>>()
            .map(|found| found.into_iter().map(blob_and_cell_proofs).collect())
    }

    /// `engine_getBlobsV3` (osaka.md): blobs with cell proofs; others are missing.
    pub(super) fn v3(&self, hashes: &[B256]) -> Vec<Option<BlobAndProofV2>> {
        hashes.iter().map(|hash| self.with_cell_proofs(hash).map(blob_and_cell_proofs)).collect()
    }

    /// `engine_getBlobsV4` (amsterdam.md): of each blob only the cells whose bit is set, in
    /// ascending order. Bit `i` is bit `i % 8` of byte `i / 8`, as in an SSZ bitvector.
    pub(super) fn v4(&self, hashes: &[B256], indices: B128) -> Vec<Option<BlobCellsAndProofsV1>> {
        let wanted: Vec<usize> = (0..CELLS_PER_EXT_BLOB)
            .filter(|i| indices.get(i / 8).is_some_and(|byte| byte >> (i % 8) & 1 == 1))
            .collect();
        let find = |hash| {
            let (sidecar, proofs) = self.with_cell_proofs(hash)?;
            Some(BlobCellsAndProofsV1 {
                blob_cells: wanted.iter().map(|i| Some(sidecar.cell(*i))).collect(),
                proofs: wanted.iter().map(|i| proofs.get(*i).copied()).collect(),
            })
        };
        hashes.iter().map(find).collect()
    }

    fn with_cell_proofs(&self, hash: &B256) -> Option<(&Sidecar, &[Bytes48])> {
        match self.by_hash.get(hash)?.as_ref() {
            sidecar @ Sidecar { proofs: Proofs::Cells(proofs), .. } => Some((sidecar, proofs)),
            _ => None,
        }
    }
}

fn blob_and_cell_proofs((sidecar, proofs): (&Sidecar, &[Bytes48])) -> BlobAndProofV2 {
    BlobAndProofV2 { blob: sidecar.blob.clone(), proofs: proofs.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_chosen_by_the_bits_least_significant_first() {
        let sidecar = Arc::new(Sidecar::make(b"cells", ProofKind::Cells));
        let mut pool = BlobPool::default();
        pool.insert(sidecar.clone());
        let mut indices = B128::ZERO;
        indices[0] = 0b0000_0010; // cell 1
        indices[8] = 0b1000_0000; // cell 71
        let [Some(entry)] = &pool.v4(&[sidecar.versioned_hash], indices)[..] else {
            panic!("one blob asked for")
        };
        assert_eq!(entry.blob_cells, [Some(sidecar.cell(1)), Some(sidecar.cell(71))]);
        assert_eq!(sidecar.cell(1).as_slice(), &sidecar.blob[2048..4096]);
        assert_ne!(sidecar.cell(71), sidecar.cell(72));
        let Proofs::Cells(proofs) = &sidecar.proofs else { panic!("made with cell proofs") };
        assert_eq!(entry.proofs, [Some(proofs[1]), Some(proofs[71])]);
    }

    #[test]
    fn each_revision_serves_only_the_proofs_it_is_about() {
        let old = Arc::new(Sidecar::make(b"old", ProofKind::Blob));
        let new = Arc::new(Sidecar::make(b"new", ProofKind::Cells));
        let mut pool = BlobPool::default();
        pool.insert(old.clone());
        pool.insert(new.clone());
        let asked = [new.versioned_hash, old.versioned_hash, B256::ZERO];
        let found = |entries: Vec<bool>| entries;
        assert_eq!(
            found(pool.v1(&asked).iter().map(Option::is_some).collect()),
            [false, true, false]
        );
        assert_eq!(
            found(pool.v3(&asked).iter().map(Option::is_some).collect()),
            [true, false, false]
        );
        assert!(pool.v2(&asked).is_none());
        assert_eq!(pool.v2(&asked[..1]).map(|all| all.len()), Some(1));
    }
}
