//! Honest SSZ, made malformed in one named way.

use super::{
    Damage,
    shape::{Container, OFFSET, Shape, assemble, offset_at},
};

/// Damages that would make a body longer than this, in bytes, are not done.
const GROWTH: usize = 32 << 20;

/// The damaged body; `None` if the container has no place for that damage.
pub(in crate::mock_el) fn damaged(
    damage: Damage,
    container: Container,
    bytes: &[u8],
) -> Option<Vec<u8>> {
    let shape = container.shape();
    let survey = Survey::of(shape, bytes)?;
    match damage {
        Damage::TruncatedFixed => {
            let Shape::Container(fields) = shape else { return None };
            let fixed: usize = fields.iter().map(Shape::head_size).sum();
            bytes.get(..fixed.checked_sub(1)?).map(<[u8]>::to_vec)
        }
        Damage::TruncatedTail => {
            let target = survey.groups.iter().filter_map(|group| group.last_target(bytes)).max()?;
            bytes.get(..target.checked_sub(1)?).map(<[u8]>::to_vec)
        }
        Damage::ExtraTail => {
            if absorbs(shape, bytes)? {
                return None;
            }
            Some([bytes, &[0]].concat())
        }
        Damage::FirstOffset => {
            let at = *survey.groups.first()?.offsets.first()?;
            with_offset(bytes, at, offset_at(bytes, at)?.checked_add(1)?)
        }
        Damage::OffsetsOutOfOrder => {
            let pair = |group: &Group| {
                let mut pairs = group.offsets.iter().zip(group.offsets.iter().skip(1));
                pairs.find_map(|(one, other)| {
                    let values = (offset_at(bytes, *one)?, offset_at(bytes, *other)?);
                    (values.0 < values.1).then_some(((*one, values.1), (*other, values.0)))
                })
            };
            let (one, other) = survey.groups.iter().find_map(pair)?;
            with_offset(&with_offset(bytes, one.0, one.1)?, other.0, other.1)
        }
        Damage::OffsetPastEnd => {
            let group = survey.groups.first()?;
            with_offset(bytes, *group.offsets.last()?, bytes.len().checked_add(1)?)
        }
        Damage::BooleanTwo => {
            let mut bytes = bytes.to_vec();
            *bytes.get_mut(*survey.bools.first()?)? = 2;
            Some(bytes)
        }
        Damage::OptionalTwo => {
            let mut done = false;
            rebuilt(shape, bytes, &mut |shape, value| {
                let Shape::Optional(element) = shape else { return None };
                if std::mem::replace(&mut done, true) {
                    return None;
                }
                longer(shape, element, value, 2)
            })
            .filter(|_| done)
        }
        Damage::OverBound => over_bound(shape, bytes),
    }
}

/// What can be broken in a value.
#[derive(Debug, Default)]
struct Survey {
    /// Containers and lists with offsets, outermost first.
    groups: Vec<Group>,
    /// Where booleans stand.
    bools: Vec<usize>,
}

#[derive(Debug)]
struct Group {
    base: usize,
    /// Where its offsets stand in the whole body.
    offsets: Vec<usize>,
}

impl Group {
    /// Where in the whole body the last offset points.
    fn last_target(&self, bytes: &[u8]) -> Option<usize> {
        self.base.checked_add(offset_at(bytes, *self.offsets.last()?)?)
    }
}

impl Survey {
    fn of(shape: &'static Shape, bytes: &[u8]) -> Option<Self> {
        let mut survey = Self::default();
        survey.visit(shape, bytes, 0)?;
        Some(survey)
    }

    fn visit(&mut self, shape: &'static Shape, value: &[u8], base: usize) -> Option<()> {
        if matches!(shape, Shape::Bool) {
            self.bools.push(base);
        }
        let split = shape.parts(value)?;
        if !split.offsets.is_empty() {
            let offsets = split.offsets.iter().map(|at| base + at).collect();
            self.groups.push(Group { base, offsets });
        }
        for (shape, range) in split.parts {
            let start = range.start;
            self.visit(shape, value.get(range)?, base + start)?;
        }
        Some(())
    }
}

/// Whether one more byte at the end could be taken for a part of the value.
fn absorbs(shape: &'static Shape, value: &[u8]) -> Option<bool> {
    if matches!(shape, Shape::Bytes(_)) {
        return Some(true);
    }
    let split = shape.parts(value)?;
    let last = split.parts.into_iter().rfind(|(shape, _)| shape.fixed_size().is_none());
    match last {
        Some((shape, range)) => absorbs(shape, value.get(range)?),
        None => Some(false),
    }
}

fn with_offset(bytes: &[u8], at: usize, value: usize) -> Option<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    let place = bytes.get_mut(at..at.checked_add(OFFSET)?)?;
    place.copy_from_slice(&u32::try_from(value).ok()?.to_le_bytes());
    Some(bytes)
}

/// A list with elements added up to a count.
fn longer(
    shape: &'static Shape,
    element: &'static Shape,
    value: &[u8],
    count: usize,
) -> Option<Vec<u8>> {
    let mut parts: Vec<(&Shape, Vec<u8>)> = Vec::new();
    for (shape, range) in shape.parts(value)?.parts {
        parts.push((shape, value.get(range)?.to_vec()));
    }
    while parts.len() < count {
        parts.push((element, element.smallest()));
    }
    Some(assemble(parts))
}

/// One list above its bound: the one that takes the fewest bytes.
fn over_bound(shape: &'static Shape, bytes: &[u8]) -> Option<Vec<u8>> {
    let growth = |shape: &'static Shape, value: &[u8]| match shape {
        Shape::Bytes(bound) => (*bound).checked_add(1)?.checked_sub(value.len()),
        Shape::List(element, bound) => {
            let missing = bound.checked_add(1)?.checked_sub(shape.parts(value)?.parts.len())?;
            let each = element.fixed_size().unwrap_or(OFFSET + element.smallest().len());
            missing.checked_mul(each)
        }
        _ => None,
    };
    let mut cheapest: Option<(usize, usize)> = None;
    let mut number = 0;
    rebuilt(shape, bytes, &mut |shape, value| {
        if let Some(growth) = growth(shape, value)
            && growth <= GROWTH
            && cheapest.is_none_or(|(least, _)| growth < least)
        {
            cheapest = Some((growth, number));
        }
        number += 1;
        None
    })?;
    let (_, chosen) = cheapest?;
    let mut number = 0;
    rebuilt(shape, bytes, &mut |shape, value| {
        number += 1;
        if number - 1 != chosen {
            return None;
        }
        match shape {
            Shape::Bytes(bound) => {
                let mut longer = value.to_vec();
                longer.resize(bound.checked_add(1)?, 0);
                Some(longer)
            }
            Shape::List(element, bound) => longer(shape, element, value, bound.checked_add(1)?),
            _ => None,
        }
    })
}

/// The same value with the parts that `edit` wants replaced, and all offsets right.
fn rebuilt(
    shape: &'static Shape,
    value: &[u8],
    edit: &mut impl FnMut(&'static Shape, &[u8]) -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    if let Some(edited) = edit(shape, value) {
        return Some(edited);
    }
    let split = shape.parts(value)?;
    if split.parts.is_empty() {
        return Some(value.to_vec());
    }
    let mut parts: Vec<(&Shape, Vec<u8>)> = Vec::new();
    for (shape, range) in split.parts {
        parts.push((shape, rebuilt(shape, value.get(range)?, edit)?));
    }
    Some(assemble(parts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock_el::fork::Fork;
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

    const DAMAGES: [Damage; 9] = [
        Damage::TruncatedFixed,
        Damage::TruncatedTail,
        Damage::ExtraTail,
        Damage::FirstOffset,
        Damage::OffsetsOutOfOrder,
        Damage::OffsetPastEnd,
        Damage::BooleanTwo,
        Damage::OptionalTwo,
        Damage::OverBound,
    ];

    /// Every damage is told by alloy's reader; those that find no place are the given ones.
    fn assert_told<T: Encode + Decode>(container: Container, honest: &T, without: &[Damage]) {
        let bytes = honest.as_ssz_bytes();
        let same = rebuilt(container.shape(), &bytes, &mut |_, _| None);
        assert_eq!(same.as_deref(), Some(bytes.as_slice()), "{container:?}: its shape is wrong");
        for damage in DAMAGES {
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
        let error = rest::ValidationError::try_from("bad".to_owned()).unwrap();
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
}
