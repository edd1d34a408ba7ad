//! The soak is clean with a sidecar that is honest, and catches one that is not.

use bytes::Bytes;
use engine_ssz_proxy::{
    config::{Number, Settings},
    serve::Sidecar,
    tools::soak::{Arguments, Kind, Report, SoakError, Stand, Standing, play},
};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use serde_json::Value;
use std::{
    net::SocketAddr,
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::net::TcpListener;

fn soak(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_engine-ssz-proxy"))
        .arg("soak")
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

const CLEAN: &str = "answers wrong 0, answers lost 0, order violations 0";

#[test]
fn without_faults_nothing_is_wrong() {
    let (code, stdout, stderr) = soak(&["--duration", "2s", "--faults", "none", "--seed", "1"]);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let last = stdout.lines().last().unwrap();
    assert!(last.contains("0 faults injected") && last.contains(CLEAN), "{last}");
    assert!(!stdout.contains("explained"), "{stdout}");
    assert_eq!(cfg!(target_os = "linux"), last.contains("peak memory"), "{last}");
}

#[test]
fn with_all_faults_nothing_is_wrong_and_rest_comes_back() {
    for seed in ["1", "2"] {
        let (code, stdout, stderr) = soak(&["--duration", "3s", "--faults", "all", "--seed", seed]);
        assert_eq!(code, Some(0), "{stdout}{stderr}");
        let last = stdout.lines().last().unwrap();
        assert!(last.contains(CLEAN) && !last.contains(" 0 faults"), "{last}");
    }
}

#[test]
fn bad_flags_are_one_line_and_exit_64() {
    for arguments in
        [["--faults", "thunder"], ["--duration", "1d"], ["--seed", "x"], ["--cls", "0"]]
    {
        let (code, stdout, stderr) = soak(&arguments);
        assert_eq!(code, Some(64), "{stderr}");
        assert!(stdout.is_empty());
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.contains(arguments[0]), "{stderr}");
    }
}

/// What a sidecar does with the calls and answers that pass through it.
trait Liar: Clone + Send + Sync + 'static {
    /// What to say at once instead of asking; the call itself is passed on `later`.
    fn instead(&self, _call: &Value) -> Option<Value> {
        None
    }

    /// What becomes of an answer; nothing drops the connection.
    fn answer(&self, _call: &Value, answer: Value) -> Option<Value> {
        Some(answer)
    }
}

type Http = Client<HttpConnector, Full<Bytes>>;

/// A proxy between the CLs and an honest sidecar. WebSockets are not let through, so the one CL that
/// would open one is left out.
async fn between(sidecar: SocketAddr, liar: impl Liar) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let http: Http = Client::builder(TokioExecutor::new()).build_http();
    let held = Arc::new(Mutex::new(Vec::new()));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (liar, http, held) = (liar.clone(), http.clone(), held.clone());
            let service = service_fn(move |request: Request<Incoming>| {
                pass(request, sidecar, liar.clone(), http.clone(), held.clone())
            });
            // A connection that is dropped on purpose ends with an error.
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

async fn pass(
    request: Request<Incoming>,
    sidecar: SocketAddr,
    liar: impl Liar,
    http: Http,
    held: Arc<Mutex<Vec<Request<Full<Bytes>>>>>,
) -> Result<Response<Full<Bytes>>, SoakError> {
    let (mut head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let call: Value = serde_json::from_slice(&body)?;
    head.uri = Uri::try_from(format!("http://{sidecar}/"))?;
    let request = Request::from_parts(head, Full::new(body));
    if let Some(instead) = liar.instead(&call) {
        held.lock().unwrap().push(request);
        return Ok(Response::new(Full::new(instead.to_string().into())));
    }
    let (head, body) = http.request(request).await?.into_parts();
    let answer = serde_json::from_slice(&body.collect().await?.to_bytes())?;
    let late: Vec<_> = held.lock().unwrap().drain(..).collect();
    for request in late {
        http.request(request).await?;
    }
    let answer = liar.answer(&call, answer).ok_or("dropped on purpose")?;
    let mut response = Response::new(Full::new(answer.to_string().into()));
    *response.status_mut() = head.status;
    Ok(response)
}

/// A run with a liar between one CL and an honest sidecar.
async fn lied_to(liar: impl Liar) -> Report {
    let report = with(liar).await;
    assert!(!report.is_clean());
    report
}

async fn with(liar: impl Liar) -> Report {
    let arguments = Arguments {
        duration: Duration::from_millis(500),
        faults: "none".parse().unwrap(),
        seed: Some(7),
        cls: 1,
        ..Arguments::default()
    };
    let mut standing = None;
    let report = play(&arguments, async |stand: Stand| {
        let settings = Settings {
            execution_endpoint: Some(format!("http://{}", stand.el)),
            listen_port: Some(Number::Integer(0)),
            jwt_secret: Some(stand.secret.into()),
            ..Settings::default()
        };
        let sidecar = Sidecar::start(settings.check()?).await?;
        let address = between(sidecar.address(), liar).await;
        standing = Some(sidecar);
        Ok(Standing { address, process: None })
    })
    .await
    .unwrap();
    standing.unwrap().stop().await;
    report
}

/// Whether one of the violations says all that, with the seed.
fn tells(report: &Report, words: &[&str]) -> bool {
    let told = &report.counts.told;
    told.iter().any(|told| told.contains("seed 7") && words.iter().all(|word| told.contains(word)))
}

fn is_import(call: &Value) -> bool {
    call["method"].as_str().is_some_and(|method| method.starts_with("engine_newPayload"))
}

#[derive(Clone)]
struct Honest;

impl Liar for Honest {}

#[derive(Clone)]
struct ChangesStatus;

impl Liar for ChangesStatus {
    fn answer(&self, call: &Value, mut answer: Value) -> Option<Value> {
        if is_import(call) && call["params"][0]["blockNumber"] == "0x3" {
            answer["result"]["status"] = "INVALID".into();
        }
        Some(answer)
    }
}

#[derive(Clone)]
struct DropsAnswer;

impl Liar for DropsAnswer {
    fn answer(&self, call: &Value, answer: Value) -> Option<Value> {
        (call["method"] != "engine_getPayloadV1").then_some(answer)
    }
}

#[derive(Clone)]
struct ChangesId;

impl Liar for ChangesId {
    fn answer(&self, call: &Value, mut answer: Value) -> Option<Value> {
        if is_import(call) {
            answer["id"] = "somebody else's".into();
        }
        Some(answer)
    }
}

/// Says VALID at once, and tells the EL after the next call.
#[derive(Clone)]
struct SwapsOrder;

impl Liar for SwapsOrder {
    fn instead(&self, call: &Value) -> Option<Value> {
        is_import(call).then(|| {
            serde_json::json!({"jsonrpc": "2.0", "id": call["id"], "result": {
                "status": "VALID", "latestValidHash": call["params"][0]["blockHash"],
                "validationError": null
            }})
        })
    }
}

/// Hides behind an error that no fault explains.
#[derive(Clone)]
struct InventsError;

impl Liar for InventsError {
    fn answer(&self, call: &Value, answer: Value) -> Option<Value> {
        Some(match is_import(call) {
            true => serde_json::json!({"jsonrpc": "2.0", "id": call["id"], "error": {
                "code": -32603, "message": "EL http://127.0.0.1:1 cannot be reached"
            }}),
            false => answer,
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_passes_untouched_is_right() {
    let report = with(Honest).await;
    assert!(report.is_clean() && report.counts.total() > 0, "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_status_is_wrong() {
    let report = lied_to(ChangesStatus).await;
    assert!(report.counts.of(Kind::Wrong) > 0);
    assert!(tells(&report, &["wrong", "INVALID", "engine_newPayload"]), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_answer_is_lost() {
    let report = lied_to(DropsAnswer).await;
    assert!(report.counts.of(Kind::Lost) > 0);
    assert!(tells(&report, &["lost", "engine_getPayloadV1"]), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_under_another_id_is_wrong() {
    let report = lied_to(ChangesId).await;
    assert!(report.counts.of(Kind::Wrong) > 0);
    assert!(tells(&report, &["somebody else's", "engine_newPayload"]), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_comes_late_is_out_of_order() {
    let report = lied_to(SwapsOrder).await;
    assert!(
        tells(&report, &["wrong", "VALID of a payload that the EL has not seen"]),
        "{report:?}"
    );
    assert!(report.counts.of(Kind::Order) > 0, "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_that_no_fault_explains_is_wrong() {
    let report = lied_to(InventsError).await;
    assert!(report.counts.of(Kind::Wrong) > 0);
    assert!(tells(&report, &["-32603", "engine_newPayload"]), "{report:?}");
}
