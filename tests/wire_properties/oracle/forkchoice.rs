//! Forkchoice updates, and the two answers with a status.

use alloy_primitives::{B64, B128, B256, Bytes};
use alloy_rpc_types_engine::ssz_engine_types::*;
use alloy_rpc_types_engine::{ForkchoiceState, PayloadAttributes, PayloadId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, from_value, to_value};

use super::Oracle;
use crate::draw::Draw;

macro_rules! attributes {
    ($attributes:ident $(, $field:ident = $draw:expr)*) => {
        impl Oracle for $attributes {
            fn draw(draw: &mut Draw<'_>) -> Self {
                Self {
                    timestamp: draw.u64(),
                    prev_randao: draw.hash(),
                    suggested_fee_recipient: draw.address(),
                    $($field: $draw(draw)),*
                }
            }
            ssz!();
            json_as!(PayloadAttributes);
        }
    };
}

attributes!(PayloadAttributesParis);
attributes!(PayloadAttributesShanghai, withdrawals = Draw::withdrawals);
attributes!(
    PayloadAttributesCancun,
    withdrawals = Draw::withdrawals,
    parent_beacon_block_root = Draw::hash
);
attributes!(
    PayloadAttributesAmsterdam,
    withdrawals = Draw::withdrawals,
    parent_beacon_block_root = Draw::hash,
    slot_number = Draw::u64,
    target_gas_limit = Draw::u64
);

impl Oracle for ForkchoiceState {
    fn draw(draw: &mut Draw<'_>) -> Self {
        Self {
            head_block_hash: draw.hash(),
            safe_block_hash: draw.hash(),
            finalized_block_hash: draw.hash(),
        }
    }
    ssz!();
    json!();
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Update {
    forkchoice_state: ForkchoiceState,
    payload_attributes: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    custody_columns: Option<Value>,
}

macro_rules! update {
    ($update:ident $(, $custody:ident)?) => {
        impl Oracle for $update {
            fn draw(draw: &mut Draw<'_>) -> Self {
                Self {
                    forkchoice_state: Oracle::draw(draw),
                    payload_attributes: draw.option(Oracle::draw).into(),
                    $($custody: draw.option(Draw::fixed).into())?
                }
            }
            ssz!();
            fn to_json(&self) -> Value {
                #[allow(unused_mut, reason = "updates without custody")]
                let mut update = Update {
                    forkchoice_state: self.forkchoice_state,
                    payload_attributes: self.payload_attributes.as_ref().map(Oracle::to_json),
                    custody_columns: None,
                };
                $(
                    let columns = self.$custody.as_ref();
                    update.$custody = Some(to_value(columns).unwrap());
                )?
                to_value(update).unwrap()
            }
            fn from_json(json: Value) -> Option<Self> {
                let update: Update = from_value(json).ok()?;
                let attributes = match update.payload_attributes {
                    Some(attributes) => Some(Oracle::from_json(attributes)?),
                    None => None,
                };
                Some(Self {
                    forkchoice_state: update.forkchoice_state,
                    payload_attributes: attributes.into(),
                    $($custody: {
                        let columns: Option<B128> =
                            from_value(update.$custody.unwrap_or_default()).ok()?;
                        columns.into()
                    })?
                })
            }
        }
    };
}

update!(ForkchoiceUpdateParis);
update!(ForkchoiceUpdateShanghai);
update!(ForkchoiceUpdateCancun);
update!(ForkchoiceUpdateAmsterdam, custody_columns);

/// PayloadStatusV1. Alloy's own has an error with every INVALID and none otherwise.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    status: Kind,
    latest_valid_hash: Option<B256>,
    validation_error: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Kind {
    Valid,
    Invalid,
    Syncing,
    Accepted,
}

impl Oracle for PayloadStatus {
    fn draw(draw: &mut Draw<'_>) -> Self {
        use PayloadStatusKind::*;
        let status = [Valid, Invalid, Syncing, Accepted, Invalid][draw.below(5)];
        let latest_valid_hash = draw.option(Draw::hash).into();
        let error = if status == Invalid { draw.option(error_text) } else { None };
        let validation_error =
            error.map(|text| Bytes::from(text.into_bytes()).try_into().unwrap()).into();
        Self { status, latest_valid_hash, validation_error }
    }
    ssz!();
    fn to_json(&self) -> Value {
        let error = self.validation_error.as_ref();
        to_value(Status {
            status: match self.status {
                PayloadStatusKind::Valid => Kind::Valid,
                PayloadStatusKind::Invalid => Kind::Invalid,
                PayloadStatusKind::Syncing => Kind::Syncing,
                PayloadStatusKind::Accepted => Kind::Accepted,
            },
            latest_valid_hash: self.latest_valid_hash.as_ref().copied(),
            validation_error: error.map(|text| String::from_utf8(text.as_ref().into()).unwrap()),
        })
        .unwrap()
    }
    fn from_json(json: Value) -> Option<Self> {
        let Status { status, latest_valid_hash, validation_error } = from_value(json).ok()?;
        let validation_error = match validation_error {
            Some(text) => Some(Bytes::from(text.into_bytes()).try_into().ok()?),
            None => None,
        };
        Some(Self {
            status: match status {
                Kind::Valid => PayloadStatusKind::Valid,
                Kind::Invalid => PayloadStatusKind::Invalid,
                Kind::Syncing => PayloadStatusKind::Syncing,
                Kind::Accepted => PayloadStatusKind::Accepted,
            },
            latest_valid_hash: latest_valid_hash.into(),
            validation_error: validation_error.into(),
        })
    }
}

fn error_text(draw: &mut Draw<'_>) -> String {
    match draw.byte() % 4 {
        0 => String::new(),
        1 => "x".repeat(1024),
        2 => draw.fill(12).into_iter().map(char::from).collect(),
        _ => "block \"hash\" \\ \u{2028}\u{1f4a9}\u{0}".into(),
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Updated {
    payload_status: Value,
    payload_id: Option<B64>,
}

impl Oracle for ForkchoiceUpdateResponse {
    fn draw(draw: &mut Draw<'_>) -> Self {
        let mut payload_status = PayloadStatus::draw(draw);
        if payload_status.status == PayloadStatusKind::Accepted {
            payload_status.status = PayloadStatusKind::Syncing;
        }
        Self { payload_status, payload_id: draw.option(|draw| PayloadId(draw.fixed())).into() }
    }
    ssz!();
    fn to_json(&self) -> Value {
        let payload_status = self.payload_status.to_json();
        let payload_id = self.payload_id.as_ref().map(|id| id.0);
        to_value(Updated { payload_status, payload_id }).unwrap()
    }
    fn from_json(json: Value) -> Option<Self> {
        let updated: Updated = from_value(json).ok()?;
        let payload_status = PayloadStatus::from_json(updated.payload_status)?;
        if payload_status.status == PayloadStatusKind::Accepted {
            return None;
        }
        Some(Self { payload_status, payload_id: updated.payload_id.map(PayloadId).into() })
    }
}
