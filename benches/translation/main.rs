//! The translation against the way through structures (serde_json, alloy, ethereum_ssz) and against
//! what the memory allows, all in the same run.
//!
//! "call" is all that is done to a body of the CL: the envelope is read, the method is understood,
//! the SSZ is written. "translate" is the SSZ alone. "limit" is a scan of the text for quotation
//! marks, then one decoding of its digits; "memcpy" is one copy of what comes out.

mod data;

use alloy_primitives::B256;
use alloy_rpc_types_engine::{
    ExecutionPayloadEnvelopeV5, ExecutionPayloadV3,
    ssz_engine_types::{BlobsV2Response, BuiltPayloadOsaka, ExecutionPayloadEnvelopeOsaka},
};
use bytes::Bytes;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use data::Noise;
use engine_ssz_proxy::{
    engine::{Call, Context, Memory, Method, Offer, Step},
    jsonrpc::{self, Incoming},
    wire::{Fork, Source, schema, to_json, to_ssz},
};
use ssz::{Decode, Encode};
use std::hint::black_box;

fn group<'c>(
    criterion: &'c mut Criterion,
    name: &str,
    bytes: usize,
) -> BenchmarkGroup<'c, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Bytes(bytes as u64));
    group
}

/// One copy of `bytes` into memory that is there already.
fn memcpy(group: &mut BenchmarkGroup<'_, WallTime>, bytes: &[u8]) {
    let mut copy = vec![0; bytes.len()];
    group.bench_function("memcpy", |bencher| {
        bencher.iter(|| {
            copy.copy_from_slice(black_box(bytes));
            black_box(&mut copy);
        });
    });
}

fn begin(body: &Bytes, context: Context<'_>) -> (Call, Step) {
    let Ok(Incoming::Single(Ok(request))) = jsonrpc::parse(body) else { panic!("no request") };
    let method = Method::from_name(request.method.as_str()).expect("a method");
    Call::begin(method, request.params.as_deref(), context)
}

type NewPayloadV4 = (ExecutionPayloadV3, Vec<B256>, B256, alloy_eips::eip7685::Requests);

fn new_payload(criterion: &mut Criterion) {
    for (name, transactions) in [("0.3 MB", 140_000), ("2 MB", 980_000), ("8 MB", 3_950_000)] {
        let mut noise = Noise(1);
        let requests = alloy_eips::eip7685::Requests::default();
        let params: NewPayloadV4 =
            (noise.payload(transactions), Vec::new(), noise.hash(), requests);
        let params = serde_json::to_string(&params).unwrap();
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"engine_newPayloadV4","params":{params}}}"#
        );
        let body = Bytes::from(body);
        let memory = Memory::new(None);
        let offer = Offer::of_forks(&[Fork::Osaka]);
        let context = Context { memory: &memory, offer: Some(&offer) };
        let through_structures = |body: &[u8]| {
            #[derive(serde::Deserialize)]
            struct Request {
                params: NewPayloadV4,
            }
            let request: Request = serde_json::from_slice(body).unwrap();
            let (payload, _, root, requests) = request.params;
            ExecutionPayloadEnvelopeOsaka::from((payload, root, requests)).as_ssz_bytes()
        };
        let ssz = match begin(&body, context) {
            (_, Step::Send(exchange)) => exchange.request.into_body(),
            (_, other) => panic!("{other:?}"),
        };
        assert_eq!(ssz, through_structures(&body), "the two ways disagree");

        let mut group = group(criterion, &format!("newPayload JSON to SSZ, {name}"), body.len());
        group.bench_function("call", |bencher| {
            bencher.iter(|| black_box(begin(black_box(&body), context)));
        });
        let values: (Box<serde_json::value::RawValue>, serde_json::Value, _, _) =
            serde_json::from_str(&params).unwrap();
        let (payload, _, root, requests): (
            _,
            _,
            Box<serde_json::value::RawValue>,
            Box<serde_json::value::RawValue>,
        ) = values;
        let fields = [payload.get().as_bytes(), root.get().as_bytes(), requests.get().as_bytes()];
        group.bench_function("translate", |bencher| {
            bencher.iter(|| {
                let source = Source::Fields(black_box(&fields));
                black_box(to_ssz(schema::EXECUTION_PAYLOAD_ENVELOPE, Fork::Osaka, source).unwrap())
            });
        });
        group.bench_function("alloy", |bencher| {
            bencher.iter(|| black_box(through_structures(black_box(&body))));
        });
        let digits = const_hex::encode(&ssz);
        let mut bytes = vec![0; ssz.len()];
        group.bench_function("limit", |bencher| {
            bencher.iter(|| {
                black_box(memchr::memchr_iter(b'"', black_box(&body)).count());
                const_hex::decode_to_slice(black_box(&digits), &mut bytes).unwrap();
                black_box(&mut bytes);
            });
        });
        memcpy(&mut group, &ssz);
    }
}

const BLOBS: [usize; 7] = [6, 9, 18, 21, 24, 48, 72];

fn get_payload(criterion: &mut Criterion) {
    for blobs in BLOBS {
        let ssz = BuiltPayloadOsaka::from(Noise(2).built_payload(blobs)).as_ssz_bytes();
        let through_structures = |ssz: &[u8]| {
            let built = BuiltPayloadOsaka::from_ssz_bytes(ssz).unwrap();
            serde_json::to_vec(&ExecutionPayloadEnvelopeV5::from(built)).unwrap()
        };
        let json = to_json(schema::BUILT_PAYLOAD, Fork::Osaka, &ssz).unwrap();
        let value = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&json), value(&through_structures(&ssz)), "the two ways disagree");

        let name = format!("getPayload SSZ to JSON, {blobs} blobs");
        let mut group = group(criterion, &name, json.len());
        group.bench_function("translate", |bencher| {
            bencher.iter(|| {
                black_box(to_json(schema::BUILT_PAYLOAD, Fork::Osaka, black_box(&ssz)).unwrap())
            });
        });
        group.bench_function("alloy", |bencher| {
            bencher.iter(|| black_box(through_structures(black_box(&ssz))));
        });
        memcpy(&mut group, &json);
    }
}

fn get_blobs(criterion: &mut Criterion) {
    for blobs in BLOBS {
        let response = BlobsV2Response::try_from(Noise(3).blobs(blobs)).unwrap();
        let ssz = response.as_ssz_bytes();
        let through_structures = |ssz: &[u8]| {
            let response = BlobsV2Response::from_ssz_bytes(ssz).unwrap();
            let entries: Vec<_> = response
                .entries
                .into_iter()
                .map(|entry| entry.available.then_some(entry.contents))
                .collect();
            serde_json::to_vec(&entries).unwrap()
        };
        let json = to_json(schema::BLOBS_V2_RESPONSE, Fork::Osaka, &ssz).unwrap();
        let value = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&json), value(&through_structures(&ssz)), "the two ways disagree");

        let name = format!("getBlobsV2 SSZ to JSON, {blobs} blobs");
        let mut group = group(criterion, &name, json.len());
        group.bench_function("translate", |bencher| {
            bencher.iter(|| {
                black_box(to_json(schema::BLOBS_V2_RESPONSE, Fork::Osaka, black_box(&ssz)).unwrap())
            });
        });
        group.bench_function("alloy", |bencher| {
            bencher.iter(|| black_box(through_structures(black_box(&ssz))));
        });
        memcpy(&mut group, &json);
    }
}

criterion_group!(benches, new_payload, get_payload, get_blobs);
criterion_main!(benches);
