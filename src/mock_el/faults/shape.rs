//! Where fields begin and end in the SSZ answers: just enough to break them on purpose.

use std::ops::Range;

use super::super::fork::Fork;

/// Bytes of an offset.
pub(super) const OFFSET: usize = 4;

/// The shape of a value.
#[derive(Debug)]
pub(super) enum Shape {
    /// So many bytes.
    Fixed(usize),
    Bool,
    Container(&'static [Shape]),
    /// Elements and how many there may be.
    List(&'static Shape, usize),
    /// Bytes up to a bound.
    Bytes(usize),
    Optional(&'static Shape),
}

/// An SSZ answer (refactor.md, "Containers").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mock_el) enum Container {
    PayloadStatus,
    ForkchoiceUpdateResponse,
    BuiltPayload(Fork),
    Bodies(Fork),
    BlobsV1,
    /// Also that of V3.
    BlobsV2,
    BlobsV4,
}

/// A value cut into its parts.
#[derive(Debug)]
pub(super) struct Parts {
    /// Where the offsets stand.
    pub(super) offsets: Vec<usize>,
    pub(super) parts: Vec<(&'static Shape, Range<usize>)>,
}

use Shape::{Bool, Bytes, Container as Fields, Fixed, List, Optional};

const BYTES_PER_TX: usize = 1 << 30;
static TX: Shape = Bytes(BYTES_PER_TX);
static BYTES48: Shape = Fixed(48);
static BLOB: Shape = Fixed(131_072);
static WITHDRAWAL: Shape = Fixed(44);
static HASH: Shape = Fixed(32);
static PAYLOAD_ID: Shape = Fixed(8);
static ERROR: Shape = Bytes(1024);

const TXS: Shape = List(&TX, 1 << 20);
const WITHDRAWALS: Shape = List(&WITHDRAWAL, 16);
const REQUESTS: Shape = List(&TX, 256);
/// Everything before `extra_data`.
const HEAD: Shape = Fixed(32 + 20 + 32 + 32 + 256 + 32 + 4 * 8);
const EXTRA_DATA: Shape = Bytes(32);
/// `base_fee_per_gas` and `block_hash`.
const FEE_AND_HASH: Shape = Fixed(64);
const BLOB_GAS: Shape = Fixed(16);
const VALUE: Shape = Fixed(32);

const PAYLOAD_V1: Shape = Fields(&[HEAD, EXTRA_DATA, FEE_AND_HASH, TXS]);
const PAYLOAD_V2: Shape = Fields(&[HEAD, EXTRA_DATA, FEE_AND_HASH, TXS, WITHDRAWALS]);
const PAYLOAD_V3: Shape = Fields(&[HEAD, EXTRA_DATA, FEE_AND_HASH, TXS, WITHDRAWALS, BLOB_GAS]);
const PAYLOAD_V4: Shape = Fields(&[
    HEAD,
    EXTRA_DATA,
    FEE_AND_HASH,
    TXS,
    WITHDRAWALS,
    BLOB_GAS,
    Bytes(BYTES_PER_TX),
    Fixed(8),
]);
const BUNDLE_V1: Shape = Fields(&[List(&BYTES48, 4096), List(&BYTES48, 4096), List(&BLOB, 4096)]);
const BUNDLE_V2: Shape =
    Fields(&[List(&BYTES48, 4096), List(&BYTES48, 4096 * 128), List(&BLOB, 4096)]);

static STATUS_FIELDS: [Shape; 3] = [Fixed(1), Optional(&HASH), Optional(&ERROR)];
static STATUS: Shape = Fields(&STATUS_FIELDS);
static FORKCHOICE: Shape = Fields(&[Fields(&STATUS_FIELDS), Optional(&PAYLOAD_ID)]);
static BUILT_PARIS: Shape = Fields(&[PAYLOAD_V1, VALUE]);
static BUILT_SHANGHAI: Shape = Fields(&[PAYLOAD_V2, VALUE]);
static BUILT_CANCUN: Shape = Fields(&[PAYLOAD_V3, VALUE, BUNDLE_V1, Bool]);
static BUILT_PRAGUE: Shape = Fields(&[PAYLOAD_V3, VALUE, BUNDLE_V1, REQUESTS, Bool]);
static BUILT_OSAKA: Shape = Fields(&[PAYLOAD_V3, VALUE, BUNDLE_V2, REQUESTS, Bool]);
static BUILT_AMSTERDAM: Shape = Fields(&[PAYLOAD_V4, VALUE, BUNDLE_V2, REQUESTS, Bool]);

static BODY_PARIS: Shape = Fields(&[Bool, Fields(&[TXS])]);
static BODY_SHANGHAI: Shape = Fields(&[Bool, Fields(&[TXS, WITHDRAWALS])]);
static BODY_AMSTERDAM: Shape = Fields(&[Bool, Fields(&[TXS, WITHDRAWALS, Bytes(BYTES_PER_TX)])]);
static BODIES_PARIS: Shape = Fields(&[List(&BODY_PARIS, 32)]);
static BODIES_SHANGHAI: Shape = Fields(&[List(&BODY_SHANGHAI, 32)]);
static BODIES_AMSTERDAM: Shape = Fields(&[List(&BODY_AMSTERDAM, 32)]);

static BLOB_V1: Shape = Fields(&[Bool, Fixed(131_072 + 48)]);
static BLOB_V2: Shape = Fields(&[Bool, Fields(&[Fixed(131_072), List(&BYTES48, 128)])]);
static CELL: Shape = Optional(&Fixed(2048));
static PROOF: Shape = Optional(&BYTES48);
static BLOB_V4: Shape = Fields(&[Bool, Fields(&[List(&CELL, 128), List(&PROOF, 128)])]);
static BLOBS_V1: Shape = Fields(&[List(&BLOB_V1, 128)]);
static BLOBS_V2: Shape = Fields(&[List(&BLOB_V2, 128)]);
static BLOBS_V4: Shape = Fields(&[List(&BLOB_V4, 128)]);

impl Container {
    pub(super) fn shape(self) -> &'static Shape {
        match self {
            Self::PayloadStatus => &STATUS,
            Self::ForkchoiceUpdateResponse => &FORKCHOICE,
            Self::BuiltPayload(fork) => match fork {
                Fork::Paris => &BUILT_PARIS,
                Fork::Shanghai => &BUILT_SHANGHAI,
                Fork::Cancun => &BUILT_CANCUN,
                Fork::Prague => &BUILT_PRAGUE,
                Fork::Osaka => &BUILT_OSAKA,
                Fork::Amsterdam => &BUILT_AMSTERDAM,
            },
            Self::Bodies(fork) => match fork {
                Fork::Paris => &BODIES_PARIS,
                Fork::Shanghai | Fork::Cancun | Fork::Prague | Fork::Osaka => &BODIES_SHANGHAI,
                Fork::Amsterdam => &BODIES_AMSTERDAM,
            },
            Self::BlobsV1 => &BLOBS_V1,
            Self::BlobsV2 => &BLOBS_V2,
            Self::BlobsV4 => &BLOBS_V4,
        }
    }
}

impl Shape {
    /// The size of a value that always has the same.
    pub(super) fn fixed_size(&self) -> Option<usize> {
        match self {
            Self::Fixed(size) => Some(*size),
            Self::Bool => Some(1),
            Self::Container(fields) => fields.iter().map(Self::fixed_size).sum(),
            Self::List(..) | Self::Bytes(_) | Self::Optional(_) => None,
        }
    }

    /// The bytes it takes in the fixed part of a container.
    pub(super) fn head_size(&self) -> usize {
        self.fixed_size().unwrap_or(OFFSET)
    }

    /// The smallest value: zeros, empty lists.
    pub(super) fn smallest(&self) -> Vec<u8> {
        match self {
            Self::Fixed(size) => vec![0; *size],
            Self::Bool => vec![0],
            Self::Container(fields) => {
                assemble(fields.iter().map(|field| (field, field.smallest())).collect())
            }
            Self::List(..) | Self::Bytes(_) | Self::Optional(_) => Vec::new(),
        }
    }

    /// The parts of an honest value; `None` for a value that is not.
    pub(super) fn parts(&'static self, bytes: &[u8]) -> Option<Parts> {
        let shapes: Vec<&'static Self> = match self {
            Self::Fixed(_) | Self::Bool | Self::Bytes(_) => {
                return Some(Parts { offsets: Vec::new(), parts: Vec::new() });
            }
            Self::Container(fields) => fields.iter().collect(),
            Self::List(element, _) | Self::Optional(element) => {
                let count = match element.fixed_size() {
                    Some(size) => bytes.len().checked_div(size)?,
                    None if bytes.is_empty() => 0,
                    None => offset_at(bytes, 0)? / OFFSET,
                };
                vec![*element; count]
            }
        };
        let mut heads = Vec::new();
        let mut at = 0_usize;
        for shape in shapes {
            heads.push((shape, at));
            at = at.checked_add(shape.head_size())?;
        }
        let offsets: Vec<usize> = heads
            .iter()
            .filter(|(shape, _)| shape.fixed_size().is_none())
            .map(|(_, at)| *at)
            .collect();
        let mut starts = offsets.iter().map(|at| offset_at(bytes, *at));
        let mut ends = offsets.iter().skip(1).map(|at| offset_at(bytes, *at));
        let mut parts = Vec::new();
        for (shape, at) in heads {
            let range = match shape.fixed_size() {
                Some(size) => at..at.checked_add(size)?,
                None => starts.next()??..ends.next().unwrap_or(Some(bytes.len()))?,
            };
            bytes.get(range.clone())?;
            parts.push((shape, range));
        }
        Some(Parts { offsets, parts })
    }
}

/// A container or list out of its parts.
pub(super) fn assemble(parts: Vec<(&Shape, Vec<u8>)>) -> Vec<u8> {
    let mut behind: usize = parts.iter().map(|(shape, _)| shape.head_size()).sum();
    let mut bytes = Vec::new();
    for (shape, part) in &parts {
        match shape.fixed_size() {
            Some(_) => bytes.extend_from_slice(part),
            None => {
                let offset = u32::try_from(behind).unwrap_or(u32::MAX);
                bytes.extend_from_slice(&offset.to_le_bytes());
                behind += part.len();
            }
        }
    }
    for (shape, part) in parts {
        if shape.fixed_size().is_none() {
            bytes.extend(part);
        }
    }
    bytes
}

/// The offset that stands there.
pub(super) fn offset_at(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..at.checked_add(OFFSET)?)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(word)).ok()
}
