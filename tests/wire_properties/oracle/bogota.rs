//! Bogota, which alloy does not have: alloy's containers of Amsterdam with a field more, laid out
//! here by hand.

use alloy_primitives::{B64, B128, Bytes};
use alloy_rpc_types_engine::ssz_engine_types::*;
use alloy_rpc_types_engine::{ForkchoiceState, PayloadId};
use serde_json::{Value, from_value};
use ssz::{Decode, Encode, SszDecoderBuilder, SszEncoder};

use super::Oracle;
use crate::draw::Draw;

/// A container that gets another field of variable size at its end.
pub trait Older: Oracle {
    /// Bytes of its fixed part.
    const FIXED_PART: usize;
    /// Where in it the offsets are.
    const OFFSETS: &'static [usize];
}

impl Older for ExecutionPayloadEnvelopeAmsterdam {
    const FIXED_PART: usize = 40;
    const OFFSETS: &'static [usize] = &[0, 36];
}

impl Older for PayloadAttributesAmsterdam {
    const FIXED_PART: usize = 112;
    const OFFSETS: &'static [usize] = &[60];
}

impl Older for PayloadStatus {
    const FIXED_PART: usize = 9;
    const OFFSETS: &'static [usize] = &[1, 5];
}

/// The field.
pub trait Addition: Encode + Decode + Sized {
    const NAME: &'static str;
    fn draw(draw: &mut Draw<'_>) -> Self;
    fn to_json(&self) -> Value;
    fn from_json(json: Option<Value>) -> Option<Self>;
}

impl Addition for Vec<Bytes> {
    const NAME: &'static str = "inclusionListTransactions";
    fn draw(draw: &mut Draw<'_>) -> Self {
        draw.transactions()
    }
    fn to_json(&self) -> Value {
        serde_json::json!(self)
    }
    fn from_json(json: Option<Value>) -> Option<Self> {
        from_value(json?).ok()
    }
}

impl Addition for Optional<bool> {
    const NAME: &'static str = "inclusionListSatisfied";
    fn draw(draw: &mut Draw<'_>) -> Self {
        draw.option(|draw| draw.one_in(2)).into()
    }
    fn to_json(&self) -> Value {
        serde_json::json!(self.as_ref())
    }
    fn from_json(json: Option<Value>) -> Option<Self> {
        from_value::<Option<bool>>(json.unwrap_or_default()).ok().map(Self::from)
    }
}

/// The container with the field.
pub struct With<F, T> {
    older: T,
    field: F,
}

impl<F: Addition, T: Older> Oracle for With<F, T> {
    fn draw(draw: &mut Draw<'_>) -> Self {
        Self { field: F::draw(draw), older: T::draw(draw) }
    }

    fn encode(&self) -> Vec<u8> {
        let older = self.older.encode();
        let (fixed, variable) = older.split_at(T::FIXED_PART);
        let mut fixed = fixed.to_vec();
        for offset in T::OFFSETS {
            shift(&mut fixed, *offset, |value| value.checked_add(4)).unwrap();
        }
        let end = u32::try_from(older.len() + 4).unwrap().to_le_bytes();
        [&fixed[..], &end, variable, &self.field.as_ssz_bytes()].concat()
    }

    fn decode(ssz: &[u8]) -> Option<Self> {
        let (fixed, rest) = ssz.split_at_checked(T::FIXED_PART)?;
        let (end, rest) = rest.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*end)).ok()?;
        let (variable, field) = rest.split_at_checked(length.checked_sub(T::FIXED_PART + 4)?)?;
        let mut fixed = fixed.to_vec();
        for offset in T::OFFSETS {
            shift(&mut fixed, *offset, |value| value.checked_sub(4))?;
        }
        let older = T::decode(&[&fixed, variable].concat())?;
        Some(Self { older, field: F::from_ssz_bytes(field).ok()? })
    }

    fn to_json(&self) -> Value {
        let mut json = self.older.to_json();
        json[F::NAME] = self.field.to_json();
        json
    }

    fn from_json(mut json: Value) -> Option<Self> {
        let field = F::from_json(json.as_object_mut()?.remove(F::NAME))?;
        Some(Self { older: T::from_json(json)?, field })
    }
}

fn shift(fixed: &mut [u8], at: usize, change: impl Fn(u32) -> Option<u32>) -> Option<()> {
    let place = fixed[at..].first_chunk_mut()?;
    *place = change(u32::from_le_bytes(*place))?.to_le_bytes();
    Some(())
}

pub type Envelope = With<Vec<Bytes>, ExecutionPayloadEnvelopeAmsterdam>;
pub type Attributes = With<Vec<Bytes>, PayloadAttributesAmsterdam>;
pub type Status = With<Optional<bool>, PayloadStatus>;

pub struct Update {
    state: ForkchoiceState,
    attributes: Option<Attributes>,
    custody: Option<B128>,
}

impl Oracle for Update {
    fn draw(draw: &mut Draw<'_>) -> Self {
        Self {
            custody: draw.option(Draw::fixed),
            state: Oracle::draw(draw),
            attributes: draw.option(Oracle::draw),
        }
    }

    fn encode(&self) -> Vec<u8> {
        let attributes = self.attributes.as_ref().map(|value| Bytes::from(value.encode()));
        let mut ssz = Vec::new();
        let mut encoder = SszEncoder::container(&mut ssz, 96 + 4 + 4);
        encoder.append(&self.state);
        encoder.append(&Optional::from(attributes));
        encoder.append(&Optional::from(self.custody));
        encoder.finalize();
        ssz
    }

    fn decode(ssz: &[u8]) -> Option<Self> {
        let mut builder = SszDecoderBuilder::new(ssz);
        builder.register_type::<ForkchoiceState>().ok()?;
        builder.register_type::<Optional<Bytes>>().ok()?;
        builder.register_type::<Optional<B128>>().ok()?;
        let mut decoder = builder.build().ok()?;
        let state = decoder.decode_next().ok()?;
        let attributes: Optional<Bytes> = decoder.decode_next().ok()?;
        let custody: Optional<B128> = decoder.decode_next().ok()?;
        let attributes = match attributes.into_option() {
            Some(ssz) => Some(Attributes::decode(&ssz)?),
            None => None,
        };
        Some(Self { state, attributes, custody: custody.into_option() })
    }

    fn to_json(&self) -> Value {
        serde_json::json!({
            "forkchoiceState": self.state,
            "payloadAttributes": self.attributes.as_ref().map(Oracle::to_json),
            "custodyColumns": self.custody,
        })
    }

    fn from_json(mut json: Value) -> Option<Self> {
        let attributes = match json["payloadAttributes"].take() {
            Value::Null => None,
            attributes => Some(Attributes::from_json(attributes)?),
        };
        let custody = from_value(json["custodyColumns"].take()).ok()?;
        Some(Self { state: from_value(json["forkchoiceState"].take()).ok()?, attributes, custody })
    }
}

pub struct Updated {
    status: Status,
    id: Option<PayloadId>,
}

impl Oracle for Updated {
    fn draw(draw: &mut Draw<'_>) -> Self {
        let mut status = Status::draw(draw);
        if status.older.status == PayloadStatusKind::Accepted {
            status.older.status = PayloadStatusKind::Syncing;
        }
        Self { status, id: draw.option(|draw| PayloadId(draw.fixed())) }
    }

    fn encode(&self) -> Vec<u8> {
        let mut ssz = Vec::new();
        let mut encoder = SszEncoder::container(&mut ssz, 8);
        encoder.append(&Bytes::from(self.status.encode()));
        encoder.append(&Optional::from(self.id));
        encoder.finalize();
        ssz
    }

    fn decode(ssz: &[u8]) -> Option<Self> {
        let mut builder = SszDecoderBuilder::new(ssz);
        builder.register_type::<Bytes>().ok()?;
        builder.register_type::<Optional<PayloadId>>().ok()?;
        let mut decoder = builder.build().ok()?;
        let status: Bytes = decoder.decode_next().ok()?;
        let id: Optional<PayloadId> = decoder.decode_next().ok()?;
        Self { status: Status::decode(&status)?, id: id.into_option() }.legal()
    }

    fn to_json(&self) -> Value {
        let id = self.id.as_ref().map(|id| id.0);
        serde_json::json!({ "payloadStatus": self.status.to_json(), "payloadId": id })
    }

    fn from_json(mut json: Value) -> Option<Self> {
        let id: Option<B64> = from_value(json["payloadId"].take()).ok()?;
        let status = Status::from_json(json["payloadStatus"].take())?;
        Self { status, id: id.map(PayloadId) }.legal()
    }
}

impl Updated {
    fn legal(self) -> Option<Self> {
        (self.status.older.status != PayloadStatusKind::Accepted).then_some(self)
    }
}

/// `InclusionListResponse`.
pub struct InclusionList(Vec<Bytes>);

impl Oracle for InclusionList {
    fn draw(draw: &mut Draw<'_>) -> Self {
        Self(draw.transactions())
    }

    fn encode(&self) -> Vec<u8> {
        [&[4, 0, 0, 0][..], &self.0.as_ssz_bytes()].concat()
    }

    fn decode(ssz: &[u8]) -> Option<Self> {
        let list = ssz.strip_prefix(&[4, 0, 0, 0])?;
        Vec::from_ssz_bytes(list).ok().map(Self)
    }

    fn to_json(&self) -> Value {
        serde_json::json!(self.0)
    }

    fn from_json(json: Value) -> Option<Self> {
        from_value(json).ok().map(Self)
    }
}
