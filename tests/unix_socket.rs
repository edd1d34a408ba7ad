//! Socket files in place of ports, on either side.

mod support;

use engine_ssz_proxy::{
    cl::{Place, Server},
    config::Settings,
    el::Transport,
    mock_el::{Http, MockEl, Surface},
    serve::Sidecar,
};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs,
    net::SocketAddr,
    os::unix::{fs::PermissionsExt, net as blocking},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};
use support::mock_config;
use tempfile::TempDir;
use tokio::{
    io::copy_bidirectional,
    net::{TcpStream, UnixListener, UnixStream},
    runtime,
    task::JoinHandle,
};

/// A socket file in front of a mock EL.
struct ElFile {
    path: PathBuf,
    server: JoinHandle<()>,
}

impl Drop for ElFile {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl ElFile {
    fn new(folder: &TempDir, el: SocketAddr) -> Self {
        let path = folder.path().join("el.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let server = tokio::spawn(async move {
            loop {
                let (mut here, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let mut there = TcpStream::connect(el).await.unwrap();
                    // Whoever hangs up first is no matter.
                    let _ = copy_bidirectional(&mut here, &mut there).await;
                });
            }
        });
        Self { path, server }
    }
}

/// A sidecar with a socket file on both sides.
async fn sidecar(el: &ElFile, cl: &Path) -> Sidecar {
    let settings = Settings {
        execution_endpoint: Some(format!("unix://{}", el.path.display())),
        listen_path: Some(cl.to_owned()),
        ..Settings::default()
    };
    let sidecar = Sidecar::start(settings.check().unwrap()).await.unwrap();
    post(cl, json!({"jsonrpc": "2.0", "id": 0, "method": "eth_chainId"})).await;
    sidecar.el_found().await;
    sidecar
}

fn request(body: &Value) -> Request<Full<bytes::Bytes>> {
    Request::post("http://localhost/")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("authorization", "Bearer any.token.will-do")
        .body(Full::from(body.to_string()))
        .unwrap()
}

async fn post(path: &Path, body: Value) -> Value {
    let stream = TokioIo::new(UnixStream::connect(path).await.unwrap());
    let (mut client, connection) = http1::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let answer = client.send_request(request(&body)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    serde_json::from_slice(&answer.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

async fn post_h2(path: &Path, body: Value) -> Value {
    let stream = TokioIo::new(UnixStream::connect(path).await.unwrap());
    let (mut client, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let answer = client.send_request(request(&body)).await.unwrap();
    serde_json::from_slice(&answer.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

fn build(head: &str) -> Value {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "engine_forkchoiceUpdatedV1",
        "params": [
            {"headBlockHash": head, "safeBlockHash": head, "finalizedBlockHash": head},
            {
                "timestamp": "0xc", "prevRandao": format!("0x{}", "22".repeat(32)),
                "suggestedFeeRecipient": format!("0x{}", "33".repeat(20)),
            }
        ]
    })
}

/// One block: build, fetch, import, adopt.
#[tokio::test]
async fn a_block_goes_through_both_files_over_either_transport() {
    for (http, transport, version) in [
        (Http::Both, Transport::H2c, http::Version::HTTP_2),
        (Http::H1, Transport::Http1, http::Version::HTTP_11),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mock = MockEl::start(mock_config(Surface::RestAndJson, http)).await.unwrap();
        let el = ElFile::new(&folder, mock.addr());
        let cl = folder.path().join("cl.sock");
        let sidecar = sidecar(&el, &cl).await;
        let surface = sidecar.proxy().el().surface();
        assert_eq!(surface.rest.as_ref().unwrap().transport, transport);

        let genesis = mock.genesis_hash().to_string();
        let built = post(&cl, build(&genesis)).await;
        let id = &built["result"]["payloadId"];
        let get = json!({
            "jsonrpc": "2.0", "id": 2, "method": "engine_getPayloadV1", "params": [id]
        });
        let payload = post_h2(&cl, get).await["result"].take();
        let new = json!({
            "jsonrpc": "2.0", "id": 3, "method": "engine_newPayloadV1", "params": [payload]
        });
        assert_eq!(post_h2(&cl, new).await["result"]["status"], "VALID");
        let head = payload["blockHash"].as_str().unwrap();
        let adopt = {
            let mut adopt = build(head);
            adopt["params"][1] = Value::Null;
            adopt
        };
        let adopted = post(&cl, adopt).await;
        assert_eq!(adopted["result"]["payloadStatus"]["latestValidHash"], head);

        let rest: Vec<_> = mock
            .log()
            .into_iter()
            .filter(|seen| seen.path.starts_with("/engine/v1/") && !seen.path.ends_with("ties"))
            .collect();
        assert_eq!(rest.len(), 4, "{rest:?}");
        assert!(rest.iter().all(|seen| seen.http_version == version), "{rest:?}");
        sidecar.stop().await;
    }
}

#[tokio::test]
async fn the_file_is_its_owners_alone_and_goes_with_the_sidecar() {
    let folder = tempfile::tempdir().unwrap();
    let mock = MockEl::start(mock_config(Surface::RestAndJson, Http::Both)).await.unwrap();
    let el = ElFile::new(&folder, mock.addr());
    let cl = folder.path().join("cl.sock");
    let sidecar = sidecar(&el, &cl).await;
    assert_eq!(sidecar.place().to_string(), format!("unix://{}", cl.display()));
    assert_eq!(fs::metadata(&cl).unwrap().permissions().mode() & 0o777, 0o600);
    sidecar.stop().await;
    assert!(!cl.exists());
    assert!(el.path.exists(), "the EL's is not ours");
}

fn listening_at(path: &Path) -> Settings {
    Settings {
        execution_endpoint: Some("unix:///does/not/exist.sock".to_owned()),
        listen_path: Some(path.to_owned()),
        ..Settings::default()
    }
}

#[tokio::test]
async fn a_file_of_a_dead_process_is_replaced_and_a_live_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cl.sock");
    drop(blocking::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let first = Sidecar::start(listening_at(&path).check().unwrap()).await.unwrap();

    let error = Sidecar::start(listening_at(&path).check().unwrap()).await.unwrap_err();
    let error = error.to_string();
    assert!(error.contains(path.to_str().unwrap()) && error.contains("another process"), "{error}");
    let answer = post(&path, json!({"jsonrpc": "2.0", "id": 5, "method": "eth_x"})).await;
    assert_eq!(answer["id"], 5, "the first one serves on");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("unix:///does/not/exist.sock"), "{message}");
    first.stop().await;
    assert!(!path.exists());
}

/// Both look whether somebody serves the file of the dead process, and neither does yet.
#[test]
fn of_those_that_start_at_once_one_has_the_file_and_the_others_are_told() {
    const AT_ONCE: usize = 4;
    for _ in 0..100 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cl.sock");
        drop(blocking::UnixListener::bind(&path).unwrap());
        let (start, end) = (Barrier::new(AT_ONCE), Barrier::new(AT_ONCE));
        let bound = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    let mut runtime = runtime::Builder::new_current_thread();
                    let runtime = runtime.enable_all().build().unwrap();
                    start.wait();
                    let server = runtime.block_on(Server::bind(Place::SocketFile(path.clone())));
                    bound.fetch_add(usize::from(server.is_ok()), Ordering::Relaxed);
                    end.wait();
                    if server.is_ok() {
                        blocking::UnixStream::connect(&path).unwrap();
                        let files = fs::read_dir(folder.path()).unwrap().count();
                        assert_eq!(files, 1, "nothing is left beside it");
                    }
                });
            }
        });
        assert_eq!(bound.into_inner(), 1);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn the_file_is_never_seen_with_another_mode() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cl.sock");
    let over = Arc::new(AtomicBool::new(false));
    let watch = {
        let (path, over) = (path.clone(), over.clone());
        std::thread::spawn(move || {
            let mut modes = BTreeSet::new();
            while !over.load(Ordering::Relaxed) {
                let seen = fs::metadata(&path);
                modes.extend(seen.map(|seen| seen.permissions().mode() & 0o777));
            }
            modes
        })
    };
    for _ in 0..2000 {
        drop(Server::bind(Place::SocketFile(path.clone())).await.unwrap());
    }
    over.store(true, Ordering::Relaxed);
    let modes = watch.join().unwrap();
    assert!(modes.is_subset(&BTreeSet::from([0o600])), "{modes:?}");
}

#[tokio::test]
async fn a_file_that_is_no_socket_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("precious");
    fs::write(&path, "data").unwrap();
    let error = Sidecar::start(listening_at(&path).check().unwrap()).await.unwrap_err();
    assert!(error.to_string().contains("no socket"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"data");
}

/// A process that took over has a file of its own under the same name.
#[tokio::test]
async fn the_file_of_another_process_is_not_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cl.sock");
    let first = Sidecar::start(listening_at(&path).check().unwrap()).await.unwrap();
    fs::rename(&path, folder.path().join("moved")).unwrap();
    let second = blocking::UnixListener::bind(&path).unwrap();
    first.stop().await;
    assert!(path.exists());
    drop(second);
}

#[test]
fn the_program_takes_both_and_cleans_up_on_sigterm() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cl.sock");
    let mut child = Command::new(env!("CARGO_BIN_EXE_engine-ssz-proxy"))
        .args(["unix:///does/not/exist.sock", "--log-format", "json", "--listen-path"])
        .arg(&path)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut log, &mut line).unwrap();
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["address"], format!("unix://{}", path.display()));
    blocking::UnixStream::connect(&path).unwrap();
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    assert!(child.wait().unwrap().success());
    assert!(!path.exists());
}
