//! Both walkers against a second opinion, for every container and every fork.
//!
//! Each property draws a value with alloy's types and asks of the same value: does its JSON become
//! alloy's SSZ, and its SSZ alloy's JSON? Then it damages both texts: is a damaged body taken
//! exactly where alloy takes it (but for the [differences] that are meant), and is damaged JSON
//! encoded only where alloy encodes it to the same bytes? JSON that is only [spelled](spelling)
//! another way must be encoded as before.

mod differences;
mod draw;
mod judge;
mod mutate;
mod oracle;
mod spelling;
mod witness;

use alloy_eips::eip4844::{BlobAndProofV1, BlobAndProofV2};
use alloy_rpc_types_engine::ForkchoiceState;
use alloy_rpc_types_engine::ssz_engine_types::*;
use draw::Draw;
use engine_ssz_proxy::wire::{Container, Fork, Source, schema, to_json, to_ssz};
use judge::shown;
use oracle::{Blobs, BodiesV1, BodiesV2, Oracle, bogota};
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use serde_json::Value;

/// Per test. `PROPTEST_CASES` can ask for more.
const CASES: u32 = 2000;
const MUTATIONS: usize = 2;

/// Values, their damage, and their agreement with the oracle, at any of these forks.
fn agree<T: Oracle>(container: &'static Container, forks: &'static [Fork]) {
    // Values with blobs pass the stack by copy.
    let thread = std::thread::Builder::new().stack_size(64 << 20);
    thread.spawn(move || agree_on_a_large_stack::<T>(container, forks)).unwrap().join().unwrap();
}

fn agree_on_a_large_stack<T: Oracle>(container: &'static Container, forks: &'static [Fork]) {
    let config = Config::default();
    let cases = config.cases.max(CASES);
    let config = Config { cases, failure_persistence: None, ..config };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let entropy = (select(forks), vec(any::<u8>(), 0..90), vec(any::<u8>(), 24));
    TestRunner::new_with_rng(config, rng)
        .run(&entropy, |(fork, value, damage)| {
            let value = T::draw(&mut Draw(&value));
            let ssz = value.encode();
            let json = value.to_json();
            round_trip(container, fork, &ssz, &json)?;

            let mut damage = Draw(&damage);
            let text = json.to_string();
            for _ in 0..MUTATIONS {
                judge::decode_alike::<T>(container, fork, &mutate::ssz(&ssz, &mut damage))
                    .map_err(TestCaseError::fail)?;
                let damaged = mutate::json(text.as_bytes(), &mut damage);
                if spelling::is_another_of(&text, &damaged) {
                    encode_the_same(container, fork, &damaged, &ssz)?;
                }
                judge::encode_no_more::<T>(container, fork, &damaged)
                    .map_err(TestCaseError::fail)?;
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{}: {error}", container.name()));
}

fn round_trip(
    container: &Container,
    fork: Fork,
    ssz: &[u8],
    json: &Value,
) -> Result<(), TestCaseError> {
    let text = json.to_string();
    let ours = to_ssz(container, fork, Source::Object(text.as_bytes()));
    ensure(ours.as_deref() == Ok(ssz), || format!("{text}\n{ours:?}"))?;
    let ours = to_json(container, fork, ssz);
    let ours = ours.map_err(|error| TestCaseError::fail(error.to_string()))?;
    let ours: Value = serde_json::from_slice(&ours)
        .map_err(|error| TestCaseError::fail(format!("printed no JSON: {error}")))?;
    ensure(ours == *json, || format!("{text}\n{ours}"))
}

fn encode_the_same(
    container: &Container,
    fork: Fork,
    text: &[u8],
    ssz: &[u8],
) -> Result<(), TestCaseError> {
    let ours = to_ssz(container, fork, Source::Object(text));
    ensure(ours.as_deref() == Ok(ssz), || {
        let refusal = ours.as_ref().err();
        format!("another spelling, refused: {refusal:?}\n{}", shown(text))
    })
}

fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<(), TestCaseError> {
    if holds { Ok(()) } else { Err(TestCaseError::fail(message())) }
}

/// One test per container and fork.
macro_rules! agreements {
    ($($container:ident { $($name:ident: $fork:ident $type:ty),* $(,)? })*) => {
        $($(
            #[test]
            fn $name() {
                agree::<$type>(schema::$container, &[Fork::$fork]);
            }
        )*)*
    };
}

agreements! {
    EXECUTION_PAYLOAD {
        payload_paris: Paris ExecutionPayloadParis,
        payload_shanghai: Shanghai ExecutionPayloadShanghai,
        payload_cancun: Cancun ExecutionPayloadCancun,
        payload_prague: Prague ExecutionPayloadPrague,
        payload_osaka: Osaka ExecutionPayloadOsaka,
        payload_amsterdam: Amsterdam ExecutionPayloadAmsterdam,
        payload_bogota: Bogota ExecutionPayloadAmsterdam,
    }
    EXECUTION_PAYLOAD_ENVELOPE {
        envelope_paris: Paris ExecutionPayloadEnvelopeParis,
        envelope_shanghai: Shanghai ExecutionPayloadEnvelopeShanghai,
        envelope_cancun: Cancun ExecutionPayloadEnvelopeCancun,
        envelope_prague: Prague ExecutionPayloadEnvelopePrague,
        envelope_osaka: Osaka ExecutionPayloadEnvelopeOsaka,
        envelope_amsterdam: Amsterdam ExecutionPayloadEnvelopeAmsterdam,
        envelope_bogota: Bogota bogota::Envelope,
    }
    PAYLOAD_ATTRIBUTES {
        attributes_paris: Paris PayloadAttributesParis,
        attributes_shanghai: Shanghai PayloadAttributesShanghai,
        attributes_cancun: Cancun PayloadAttributesCancun,
        attributes_prague: Prague PayloadAttributesPrague,
        attributes_osaka: Osaka PayloadAttributesOsaka,
        attributes_amsterdam: Amsterdam PayloadAttributesAmsterdam,
        attributes_bogota: Bogota bogota::Attributes,
    }
    FORKCHOICE_UPDATE {
        update_paris: Paris ForkchoiceUpdateParis,
        update_shanghai: Shanghai ForkchoiceUpdateShanghai,
        update_cancun: Cancun ForkchoiceUpdateCancun,
        update_prague: Prague ForkchoiceUpdatePrague,
        update_osaka: Osaka ForkchoiceUpdateOsaka,
        update_amsterdam: Amsterdam ForkchoiceUpdateAmsterdam,
        update_bogota: Bogota bogota::Update,
    }
    BUILT_PAYLOAD {
        built_paris: Paris BuiltPayloadParis,
        built_shanghai: Shanghai BuiltPayloadShanghai,
        built_cancun: Cancun BuiltPayloadCancun,
        built_prague: Prague BuiltPayloadPrague,
        built_osaka: Osaka BuiltPayloadOsaka,
        built_amsterdam: Amsterdam BuiltPayloadAmsterdam,
        built_bogota: Bogota BuiltPayloadAmsterdam,
    }
    BODIES_RESPONSE_V1 {
        bodies_v1_paris: Paris BodiesV1<ExecutionPayloadBodyParis>,
        bodies_v1_shanghai: Shanghai BodiesV1<ExecutionPayloadBodyShanghai>,
        bodies_v1_cancun: Cancun BodiesV1<ExecutionPayloadBodyCancun>,
        bodies_v1_prague: Prague BodiesV1<ExecutionPayloadBodyPrague>,
        bodies_v1_osaka: Osaka BodiesV1<ExecutionPayloadBodyOsaka>,
        bodies_v1_amsterdam: Amsterdam BodiesV1<ExecutionPayloadBodyAmsterdam>,
        bodies_v1_bogota: Bogota BodiesV1<ExecutionPayloadBodyAmsterdam>,
    }
    BODIES_RESPONSE_V2 {
        bodies_v2_paris: Paris BodiesV2<ExecutionPayloadBodyParis>,
        bodies_v2_shanghai: Shanghai BodiesV2<ExecutionPayloadBodyShanghai>,
        bodies_v2_cancun: Cancun BodiesV2<ExecutionPayloadBodyCancun>,
        bodies_v2_prague: Prague BodiesV2<ExecutionPayloadBodyPrague>,
        bodies_v2_osaka: Osaka BodiesV2<ExecutionPayloadBodyOsaka>,
        bodies_v2_amsterdam: Amsterdam BodiesV2<ExecutionPayloadBodyAmsterdam>,
        bodies_v2_bogota: Bogota BodiesV2<ExecutionPayloadBodyAmsterdam>,
    }
    PAYLOAD_STATUS_V2 {
        status_bogota: Bogota bogota::Status,
    }
    FORKCHOICE_UPDATE_RESPONSE_V2 {
        updated_bogota: Bogota bogota::Updated,
    }
    INCLUSION_LIST_RESPONSE {
        inclusion_list_bogota: Bogota bogota::InclusionList,
    }
}

/// The containers that are the same at every fork.
macro_rules! agreements_at_all_forks {
    ($($name:ident: $container:ident $type:ty),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                for fork in &Fork::ALL {
                    agree::<$type>(schema::$container, std::slice::from_ref(fork));
                }
            }
        )*
    };
}

agreements_at_all_forks! {
    state: FORKCHOICE_STATE ForkchoiceState,
    status: PAYLOAD_STATUS PayloadStatus,
    updated: FORKCHOICE_UPDATE_RESPONSE ForkchoiceUpdateResponse,
    bodies_request: BODIES_BY_HASH_REQUEST BodiesByHashRequest,
    blobs_request: BLOBS_REQUEST BlobsV1Request,
    blobs_v4_request: BLOBS_V4_REQUEST BlobsV4Request,
}

/// The same for bodies of blobs, which take their time: all forks together.
macro_rules! agreements_at_any_fork {
    ($($name:ident: $container:ident $type:ty),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                agree::<$type>(schema::$container, &Fork::ALL);
            }
        )*
    };
}

agreements_at_any_fork! {
    blobs_v1: BLOBS_V1_RESPONSE Blobs<BlobAndProofV1>,
    blobs_v2: BLOBS_V2_RESPONSE Blobs<BlobAndProofV2>,
    blobs_v3: BLOBS_V3_RESPONSE Blobs<BlobAndProofV2>,
    blobs_v4: BLOBS_V4_RESPONSE Blobs<BlobCellsAndProofs>,
}
