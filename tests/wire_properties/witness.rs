//! That each difference is one: a body in dispute which it, and no other, explains.

use alloy_eips::eip4844::{Blob, BlobAndProofV2, Bytes48};
use alloy_rpc_types_engine::ssz_engine_types::*;
use engine_ssz_proxy::wire::{Container, Fork, check, schema};

use crate::differences::{DIFFERENCES, Difference, Dispute};
use crate::draw::Draw;
use crate::oracle::{Blobs, BodiesV2, Oracle};

/// Asserts that the verdicts on a body differ, and that just the difference at `index` explains it.
fn differs<T: Oracle>(index: usize, container: &Container, fork: Fork, ssz: &[u8]) {
    let Difference { case, why, .. } = &DIFFERENCES[index];
    let ours = check(container, fork, ssz);
    let oracle = |ssz: &[u8]| T::decode(ssz).is_some();
    assert_ne!(ours.is_ok(), oracle(ssz), "{case}: no dispute that {why}");
    let dispute = Dispute { container, fork, ssz, ours, oracle: &oracle };
    for (at, difference) in DIFFERENCES.iter().enumerate() {
        let explains = (difference.explains)(&dispute);
        assert_eq!(explains, at == index, "{}: {}", difference.case, difference.why);
    }
}

/// A status with an absent hash and that error text.
fn status(status: u8, error: &[u8]) -> Vec<u8> {
    [&[status, 9, 0, 0, 0, 9, 0, 0, 0, 4, 0, 0, 0], error].concat()
}

#[test]
fn error_that_is_not_utf_8() {
    let ssz = status(1, b"\xff");
    differs::<PayloadStatus>(0, schema::PAYLOAD_STATUS, Fork::Osaka, &ssz);
    let ssz = [&[8, 0, 0, 0, 22, 0, 0, 0], ssz.as_slice()].concat();
    differs::<ForkchoiceUpdateResponse>(0, schema::FORKCHOICE_UPDATE_RESPONSE, Fork::Osaka, &ssz);
}

#[test]
fn error_beside_another_status() {
    for other in [0, 2, 3] {
        let ssz = status(other, b"busy");
        differs::<PayloadStatus>(1, schema::PAYLOAD_STATUS, Fork::Osaka, &ssz);
    }
}

#[test]
fn bundle_whose_counts_do_not_fit() {
    let mut built = BuiltPayloadOsaka::draw(&mut Draw(&[]));
    built.blobs_bundle.commitments.push(Bytes48::ZERO);
    differs::<BuiltPayloadOsaka>(2, schema::BUILT_PAYLOAD, Fork::Osaka, &built.encode());
}

#[test]
fn unavailable_entry_with_anything_in_it() {
    let ssz = [4, 0, 0, 0, 4, 0, 0, 0, 0, 0xee];
    differs::<BodiesV2<ExecutionPayloadBodyCancun>>(
        3,
        schema::BODIES_RESPONSE_V2,
        Fork::Cancun,
        &ssz,
    );
}

#[test]
fn blob_without_a_proof_for_each_cell() {
    let blob = BlobAndProofV2 { blob: Box::new(Blob::ZERO), proofs: vec![Bytes48::ZERO; 127] };
    let ssz = ssz::Encode::as_ssz_bytes(&BlobsV3Response::try_from(vec![Some(blob)]).unwrap());
    differs::<Blobs<BlobAndProofV2>>(4, schema::BLOBS_V3_RESPONSE, Fork::Osaka, &ssz);
}

#[test]
fn bounds_of_the_payload_in_the_built_payload_of_cancun() {
    let mut built = BuiltPayloadCancun::draw(&mut Draw(&[]));
    built.execution_payload.payload_inner.payload_inner.extra_data = vec![0; 33].into();
    differs::<BuiltPayloadCancun>(5, schema::BUILT_PAYLOAD, Fork::Cancun, &built.encode());
}

#[test]
fn bounds_of_the_lists_of_a_bundle() {
    let mut built = BuiltPayloadPrague::draw(&mut Draw(&[]));
    built.blobs_bundle.commitments = vec![Bytes48::ZERO; 4097];
    differs::<BuiltPayloadPrague>(6, schema::BUILT_PAYLOAD, Fork::Prague, &built.encode());
}
