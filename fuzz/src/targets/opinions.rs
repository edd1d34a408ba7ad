//! The container and the fork an input is about, and who has another opinion on it.

use alloy_eips::eip4844::{BlobAndProofV1, BlobAndProofV2};
use alloy_rpc_types_engine::ForkchoiceState;
use alloy_rpc_types_engine::ssz_engine_types::*;
use engine_ssz_proxy::wire::{Container, Fork, schema};

use crate::judge::{decode_alike, encode_no_more};
use crate::oracle::{Blobs, BodiesV1, BodiesV2, Oracle, bogota};

/// A container at a fork.
pub struct Opinion {
    pub container: &'static Container,
    pub fork: Fork,
    /// Holds a body against the oracle's verdict.
    pub decode_alike: fn(&Container, Fork, &[u8]) -> Result<(), String>,
    /// Holds JSON against the oracle's verdict.
    pub encode_no_more: fn(&Container, Fork, &[u8]) -> Result<(), String>,
}

const fn of<T: Oracle>(container: &'static Container, fork: Fork) -> Opinion {
    Opinion {
        container,
        fork,
        decode_alike: decode_alike::<T>,
        encode_no_more: encode_no_more::<T>,
    }
}

macro_rules! opinions {
    ($($container:ident: $($fork:ident $type:ty),*;)*) => {
        [$($(of::<$type>(schema::$container, Fork::$fork),)*)*]
    };
}

/// New ones at the end: committed inputs have the number of theirs in front.
static OPINIONS: &[Opinion] = &opinions! {
    EXECUTION_PAYLOAD:
        Paris ExecutionPayloadParis, Shanghai ExecutionPayloadShanghai,
        Cancun ExecutionPayloadCancun, Amsterdam ExecutionPayloadAmsterdam;
    EXECUTION_PAYLOAD_ENVELOPE:
        Paris ExecutionPayloadEnvelopeParis, Shanghai ExecutionPayloadEnvelopeShanghai,
        Cancun ExecutionPayloadEnvelopeCancun, Prague ExecutionPayloadEnvelopePrague,
        Osaka ExecutionPayloadEnvelopeOsaka, Amsterdam ExecutionPayloadEnvelopeAmsterdam,
        Bogota bogota::Envelope;
    FORKCHOICE_STATE:
        Paris ForkchoiceState;
    PAYLOAD_ATTRIBUTES:
        Paris PayloadAttributesParis, Shanghai PayloadAttributesShanghai,
        Cancun PayloadAttributesCancun, Amsterdam PayloadAttributesAmsterdam,
        Bogota bogota::Attributes;
    FORKCHOICE_UPDATE:
        Paris ForkchoiceUpdateParis, Shanghai ForkchoiceUpdateShanghai,
        Cancun ForkchoiceUpdateCancun, Osaka ForkchoiceUpdateOsaka,
        Amsterdam ForkchoiceUpdateAmsterdam, Bogota bogota::Update;
    BUILT_PAYLOAD:
        Paris BuiltPayloadParis, Shanghai BuiltPayloadShanghai, Cancun BuiltPayloadCancun,
        Prague BuiltPayloadPrague, Osaka BuiltPayloadOsaka, Amsterdam BuiltPayloadAmsterdam;
    PAYLOAD_STATUS:
        Paris PayloadStatus;
    FORKCHOICE_UPDATE_RESPONSE:
        Paris ForkchoiceUpdateResponse;
    BODIES_BY_HASH_REQUEST:
        Paris BodiesByHashRequest;
    BODIES_RESPONSE_V1:
        Paris BodiesV1<ExecutionPayloadBodyParis>,
        Shanghai BodiesV1<ExecutionPayloadBodyShanghai>,
        Amsterdam BodiesV1<ExecutionPayloadBodyAmsterdam>;
    BODIES_RESPONSE_V2:
        Paris BodiesV2<ExecutionPayloadBodyParis>,
        Shanghai BodiesV2<ExecutionPayloadBodyShanghai>,
        Amsterdam BodiesV2<ExecutionPayloadBodyAmsterdam>;
    BLOBS_REQUEST:
        Osaka BlobsV1Request;
    BLOBS_V4_REQUEST:
        Amsterdam BlobsV4Request;
    BLOBS_V1_RESPONSE:
        Cancun Blobs<BlobAndProofV1>;
    BLOBS_V2_RESPONSE:
        Osaka Blobs<BlobAndProofV2>;
    BLOBS_V3_RESPONSE:
        Osaka Blobs<BlobAndProofV2>;
    BLOBS_V4_RESPONSE:
        Amsterdam Blobs<BlobCellsAndProofs>;
    PAYLOAD_STATUS_V2:
        Bogota bogota::Status;
    FORKCHOICE_UPDATE_RESPONSE_V2:
        Bogota bogota::Updated;
    INCLUSION_LIST_RESPONSE:
        Bogota bogota::InclusionList;
};

impl Opinion {
    /// The one with that number, counted in circles.
    pub fn at(number: u8) -> &'static Self {
        &OPINIONS[usize::from(number) % OPINIONS.len()]
    }

    /// Whether the container holds blobs, and so bodies that a fuzzer does not come upon.
    pub fn has_blobs(&self) -> bool {
        matches!(
            self.container.name(),
            "BuiltPayload" | "BlobsV1Response" | "BlobsV2Response" | "BlobsV3Response"
        )
    }

    /// The container's fields at the fork as JSON has them, where it is a method's parameters.
    pub fn parameters(&self) -> &'static [&'static str] {
        let (names, count): (&[&str], _) = match self.container.name() {
            "ExecutionPayloadEnvelope" => (
                &[
                    "payload",
                    "parentBeaconBlockRoot",
                    "executionRequests",
                    "inclusionListTransactions",
                ],
                match self.fork {
                    Fork::Paris | Fork::Shanghai => 1,
                    Fork::Cancun => 2,
                    Fork::Prague | Fork::Osaka | Fork::Amsterdam => 3,
                    Fork::Bogota => 4,
                },
            ),
            "ForkchoiceUpdate" => (
                &["forkchoiceState", "payloadAttributes", "custodyColumns"],
                if self.fork < Fork::Amsterdam { 2 } else { 3 },
            ),
            "BodiesByHashRequest" => (&["blockHashes"], 1),
            "BlobsV1Request" => (&["versionedHashes"], 1),
            "BlobsV4Request" => (&["versionedHashes", "indicesBitarray"], 2),
            _ => (&[], 0),
        };
        names.get(..count).unwrap_or_default()
    }
}
