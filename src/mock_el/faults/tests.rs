//! Each damage, of each container, against a reader that shares no code with it.

use alloy_eips::{
    eip4844::{BlobAndProofV1, BlobAndProofV2, BlobCellsAndProofsV1, Bytes48},
    eip4895::Withdrawal,
};
use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_engine::{
    BlobsBundleV1, BlobsBundleV2, ExecutionPayloadEnvelopeV3, ExecutionPayloadV1,
    ExecutionPayloadV2, ExecutionPayloadV3, PayloadId, ssz_engine_types as rest,
};
use ssz::{Decode, Encode};

use super::{
    super::fork::Fork,
    Asked, Damage, Dialect, Fault, Faults, FaultsHandle, HttpVersion, Probability, Rule, Stage,
    Target,
    damage::{damaged, rebuilt},
    shape::Container,
};

/// A request like any other.
const ASKED: Asked<'static> = Asked {
    dialect: Dialect::Rest,
    http: HttpVersion::Http2,
    operation: None,
    method: None,
    stage: Stage::Whole,
};

/// Every damage is told by alloy's reader; those that find no place are the given ones.
fn assert_told<T: Encode + Decode>(container: Container, honest: &T, without: &[Damage]) {
    let bytes = honest.as_ssz_bytes();
    let same = rebuilt(container.shape(), &bytes, &mut |_, _| None);
    assert_eq!(same.as_deref(), Some(bytes.as_slice()), "{container:?}: its shape is wrong");
    for damage in Damage::ALL {
        match damaged(damage, container, &bytes) {
            None => assert!(without.contains(&damage), "{container:?} {damage:?}: no place"),
            Some(damaged) => {
                assert!(!without.contains(&damage), "{container:?} {damage:?}: a place");
                assert!(T::from_ssz_bytes(&damaged).is_err(), "{container:?} {damage:?}");
            }
        }
    }
}

fn paris() -> ExecutionPayloadV1 {
    ExecutionPayloadV1 {
        parent_hash: B256::repeat_byte(1),
        fee_recipient: Default::default(),
        state_root: B256::repeat_byte(2),
        receipts_root: B256::repeat_byte(3),
        logs_bloom: Default::default(),
        prev_randao: B256::repeat_byte(4),
        block_number: 5,
        gas_limit: 6,
        gas_used: 7,
        timestamp: 8,
        extra_data: Bytes::from_static(b"extra"),
        base_fee_per_gas: Default::default(),
        block_hash: B256::repeat_byte(9),
        transactions: vec![Bytes::from_static(b"one"), Bytes::from_static(b"another")],
    }
}

fn shanghai() -> ExecutionPayloadV2 {
    let withdrawals = vec![Withdrawal::default(); 2];
    ExecutionPayloadV2 { payload_inner: paris(), withdrawals }
}

fn cancun() -> ExecutionPayloadV3 {
    ExecutionPayloadV3 { payload_inner: shanghai(), blob_gas_used: 1, excess_blob_gas: 2 }
}

#[test]
fn statuses() {
    use Damage::{BooleanTwo, ExtraTail};
    let mut status = rest::PayloadStatus {
        status: rest::PayloadStatusKind::Valid,
        latest_valid_hash: Some(B256::repeat_byte(1)).into(),
        validation_error: None.into(),
    };
    assert_told(Container::PayloadStatus, &status, &[BooleanTwo]);
    let response = rest::ForkchoiceUpdateResponse {
        payload_status: status.clone(),
        payload_id: Some(PayloadId::default()).into(),
    };
    assert_told(Container::ForkchoiceUpdateResponse, &response, &[BooleanTwo]);
    status.status = rest::PayloadStatusKind::Invalid;
    let error = rest::ValidationError::try_from(Bytes::from_static(b"bad")).unwrap();
    status.validation_error = Some(error).into();
    assert_told(Container::PayloadStatus, &status, &[BooleanTwo, ExtraTail]);
}

#[test]
fn built_payloads() {
    use Damage::{BooleanTwo, ExtraTail, OptionalTwo};
    let block_value = Default::default();
    let (bundle, bundle_v2) = (BlobsBundleV1::empty(), BlobsBundleV2::empty());
    let execution_requests = vec![Bytes::from_static(b"\x00deposit")].into();
    let built = rest::BuiltPayloadParis { payload: paris(), block_value };
    let without = [BooleanTwo, ExtraTail, OptionalTwo];
    assert_told(Container::BuiltPayload(Fork::Paris), &built, &without);
    let built = rest::BuiltPayloadShanghai { payload: shanghai(), block_value };
    let without = [BooleanTwo, OptionalTwo];
    assert_told(Container::BuiltPayload(Fork::Shanghai), &built, &without);
    let built = rest::BuiltPayloadPrague {
        payload: cancun(),
        block_value,
        blobs_bundle: bundle,
        execution_requests,
        should_override_builder: true,
    };
    let without = [ExtraTail, OptionalTwo];
    assert_told(Container::BuiltPayload(Fork::Prague), &built, &without);
    let built = rest::BuiltPayloadOsaka {
        payload: cancun(),
        block_value,
        blobs_bundle: bundle_v2,
        execution_requests: Default::default(),
        should_override_builder: false,
    };
    assert_told(Container::BuiltPayload(Fork::Osaka), &built, &[OptionalTwo]);
}

/// Alloy's Cancun envelope and bundle know no bounds and no payload's, so only the shape and what
/// any reader tells are looked at.
#[test]
fn the_cancun_envelope_has_its_shape() {
    let built = ExecutionPayloadEnvelopeV3 {
        execution_payload: cancun(),
        block_value: Default::default(),
        blobs_bundle: BlobsBundleV1::empty(),
        should_override_builder: false,
    };
    let (container, bytes) = (Container::BuiltPayload(Fork::Cancun), built.as_ssz_bytes());
    let same = rebuilt(container.shape(), &bytes, &mut |_, _| None);
    assert_eq!(same.as_deref(), Some(bytes.as_slice()));
    let over = damaged(Damage::OverBound, container, &bytes).unwrap();
    let read = ExecutionPayloadEnvelopeV3::from_ssz_bytes(&over).unwrap();
    assert_eq!(read.execution_payload.payload_inner.payload_inner.extra_data.len(), 33);
    for damage in [Damage::TruncatedTail, Damage::FirstOffset, Damage::BooleanTwo] {
        let bytes = damaged(damage, container, &bytes).unwrap();
        assert!(ExecutionPayloadEnvelopeV3::from_ssz_bytes(&bytes).is_err(), "{damage:?}");
    }
}

#[test]
fn bodies() {
    use Damage::{ExtraTail, OptionalTwo};
    let transactions = vec![Bytes::from_static(b"one"), Bytes::from_static(b"another")];
    let body = rest::ExecutionPayloadBodyParis { transactions: transactions.clone() };
    let entries = vec![rest::BodyEntry::available(body), rest::BodyEntry::unavailable()];
    let response = rest::BodiesResponse { entries };
    assert_told(Container::Bodies(Fork::Paris), &response, &[OptionalTwo]);
    let body = rest::ExecutionPayloadBodyShanghai {
        transactions: transactions.clone(),
        withdrawals: vec![Withdrawal::default()],
    };
    let response = rest::BodiesResponse { entries: vec![rest::BodyEntry::available(body)] };
    assert_told(Container::Bodies(Fork::Osaka), &response, &[OptionalTwo]);
    let body = rest::ExecutionPayloadBodyAmsterdam {
        transactions,
        withdrawals: Vec::new(),
        block_access_list: Bytes::from_static(&[0xc0]),
    };
    let response = rest::BodiesResponse { entries: vec![rest::BodyEntry::available(body)] };
    assert_told(Container::Bodies(Fork::Amsterdam), &response, &[OptionalTwo, ExtraTail]);
}

#[test]
fn blobs() {
    use Damage::{OffsetsOutOfOrder, OptionalTwo};
    let proof = Bytes48::repeat_byte(1);
    let v1 = BlobAndProofV1 { blob: Default::default(), proof };
    let response = rest::BlobsV1Response::try_from(vec![Some(v1), None]).unwrap();
    assert_told(Container::BlobsV1, &response, &[OffsetsOutOfOrder, OptionalTwo]);
    let v2 = BlobAndProofV2 { blob: Default::default(), proofs: vec![proof; 128] };
    let response = rest::BlobsV2Response::try_from(vec![v2.clone(), v2]).unwrap();
    assert_told(Container::BlobsV2, &response, &[OptionalTwo]);
    let cells = BlobCellsAndProofsV1 {
        blob_cells: vec![None, Some(Default::default())],
        proofs: vec![None, Some(proof)],
    };
    let response = rest::BlobsV4Response::try_from(vec![Some(cells)]).unwrap();
    assert_told(Container::BlobsV4, &response, &[]);
}

/// A rule's own counting is seen on the wire elsewhere; here, that chances follow the seed.
#[test]
fn the_same_seed_strikes_the_same_requests() {
    let struck = |seed| -> Vec<bool> {
        let half = Probability::new(0.5).unwrap();
        let rule = Rule::new(Target::Any, Fault::NoContent).with_probability(half);
        let handle = FaultsHandle::new(Faults::new(seed).with(rule));
        (0..256).map(|_| handle.choose(ASKED).is_some()).collect()
    };
    assert_eq!(struck(1), struck(1));
    assert_ne!(struck(1), struck(2));
    let share = struck(1).into_iter().filter(|struck| *struck).count();
    assert!((96..=160).contains(&share), "{share} of 256");
}

#[test]
fn certain_and_impossible_chances_are_so() {
    for (probability, wanted) in [(0.0, 0), (1.0, 64)] {
        let probability = Probability::new(probability).unwrap();
        let rule = Rule::new(Target::Any, Fault::NoContent).with_probability(probability);
        let handle = FaultsHandle::new(Faults::new(3).with(rule));
        assert_eq!((0..64).filter(|_| handle.choose(ASKED).is_some()).count(), wanted);
    }
    for wrong in [-0.1, 1.1, f64::NAN] {
        assert!(Probability::new(wrong).is_err());
    }
}
