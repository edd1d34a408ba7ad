//! No call waits behind another lane's: `getBlobs` alone and beside a `newPayload` of five seconds.
//!
//! `cargo bench --bench lanes` prints both medians; it fails when the second is worse by more than
//! 5 ms. `cargo test --bench lanes` asks each once.

#[path = "../tests/support/mod.rs"]
mod support;

use bytes::Bytes;
use criterion::Criterion;
use engine_ssz_proxy::el::Lane;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    process::ExitCode,
    time::{Duration, Instant},
};
use support::{
    scripted_el::{ScriptedEl, Seen, answer, json as json_answer, ssz},
    settings, sidecar,
};
use tokio::runtime::Runtime;

/// How long the EL takes for a payload.
const IMPORT: Duration = Duration::from_secs(5);
/// How much later blobs may come beside it, at the median.
const BOUND: Duration = Duration::from_millis(5);
/// SYNCING, as `PayloadStatus`.
const SYNCING: [u8; 9] = [2, 9, 0, 0, 0, 9, 0, 0, 0];
const NEW_PAYLOAD: &str = include_str!("../tests/data/golden/12-osaka-newPayload.json");

async fn slow_import(seen: Seen) -> axum::response::Response {
    match seen.path.as_str() {
        "/engine/v1/payloads" => {
            tokio::time::sleep(IMPORT).await;
            ssz(SYNCING.to_vec())
        }
        "/engine/v1/blobs/v2" => answer(204, "application/octet-stream", ""),
        _ => {
            let request: Value = serde_json::from_slice(&seen.body).unwrap_or_default();
            json_answer(json!({"jsonrpc": "2.0", "id": request["id"], "result": null}).to_string())
        }
    }
}

/// A CL with a connection that lasts.
#[derive(Clone)]
struct Cl {
    client: Client<HttpConnector, Full<Bytes>>,
    sidecar: SocketAddr,
}

impl Cl {
    fn of(sidecar: SocketAddr) -> Self {
        Self { client: Client::builder(TokioExecutor::new()).build_http(), sidecar }
    }

    async fn call(&self, body: impl Into<Bytes>) -> Value {
        let request = Request::post(format!("http://{}/", self.sidecar))
            .header("content-type", "application/json")
            .header("authorization", "Bearer any.token.will-do")
            .body(Full::new(body.into()))
            .unwrap();
        let answer = self.client.request(request).await.unwrap();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice(&body).unwrap()
    }

    async fn blobs(&self) {
        let hash = format!("0x01{}", "11".repeat(31));
        let request = json!({
            "jsonrpc": "2.0", "id": 1, "method": "engine_getBlobsV2", "params": [[hash]]
        });
        let said = self.call(request.to_string()).await;
        assert!(said["error"].is_null(), "{said}");
    }
}

/// Asks as often as the harness wants; what each took.
fn measure(criterion: &mut Criterion, runtime: &Runtime, cl: &Cl, name: &str) -> Vec<Duration> {
    let mut all = Vec::new();
    criterion.bench_function(name, |bencher| {
        bencher.iter_custom(|rounds| {
            let mut sum = Duration::ZERO;
            for _ in 0..rounds {
                let start = Instant::now();
                runtime.block_on(cl.blobs());
                let took = start.elapsed();
                all.push(took);
                sum += took;
            }
            sum
        });
    });
    all
}

fn median(mut all: Vec<Duration>) -> Duration {
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or_default()
}

fn main() -> ExitCode {
    let mut criterion =
        Criterion::default().sample_size(50).measurement_time(IMPORT).configure_from_args();
    let runtime = Runtime::new().unwrap();
    let (_el, sidecar) = runtime.block_on(async {
        let el = ScriptedEl::start(slow_import).await;
        let sidecar = sidecar(settings(el.address)).await;
        (el, sidecar)
    });
    let cl = Cl::of(sidecar.address());
    let alone = measure(&mut criterion, &runtime, &cl, "getBlobs alone");

    // One import after the other, so that there is always one in flight.
    let importer = Cl::of(sidecar.address());
    let imports = runtime.spawn(async move {
        loop {
            importer.call(NEW_PAYLOAD).await;
        }
    });
    let in_flight = || sidecar.proxy().el().lane(Lane::Command).in_flight;
    while in_flight() == 0 {
        std::thread::yield_now();
    }
    let beside = measure(&mut criterion, &runtime, &cl, "getBlobs beside a newPayload of 5 s");
    imports.abort();
    criterion.final_summary();

    // One call of each is no median.
    let is_judged = alone.len() > 100 && beside.len() > 100;
    let (alone, beside) = (median(alone), median(beside));
    let later = beside.saturating_sub(alone);
    println!(
        "getBlobs, median: {alone:.3?} alone, {beside:.3?} beside a newPayload of 5 s; later by \
         {later:.3?}, allowed {BOUND:?}"
    );
    if later <= BOUND || !is_judged { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
