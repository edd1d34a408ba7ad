//! SIZE-01 to SIZE-06: what is too much, and for whom.

use crate::{
    raw::{Connection, Deed, RawEl, response},
    scene::{
        Scene, assert_same, by_json_rpc, changed, fork_header, forkchoice, golden, golden_ssz, hex,
        json_rpc_error, rpc, scripted, ssz, syncing,
    },
    support::{
        post,
        scripted_el::{CAPABILITIES, ScriptedEl, Seen, answer, problem},
        settings, sidecar,
    },
};
use axum::{body::Body as AxumBody, response::Response};
use bytes::Bytes;
use engine_ssz_proxy::{config::Number, serve::Sidecar};
use http::{Request, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};
use tokio::net::{TcpListener, TcpStream};

/// A payload of Osaka with one transaction of that many bytes.
fn with_transaction(bytes: usize) -> (String, Vec<u8>) {
    // A pattern whose length is prime, so that every piece of a buffer begins differently.
    let mut transaction = (2..=252).collect::<Vec<u8>>().repeat(bytes / 251 + 1);
    transaction.truncate(bytes);
    let message = golden("12-osaka-newPayload");
    let message = changed(message, "/params/1", json!([]));
    // Put in by hand: this is to be quick.
    let message = changed(message, "/params/0/transactions", json!(["TRANSACTION"])).to_string();
    let (before, after) = message.split_once("TRANSACTION").unwrap();
    let message = [before, &const_hex::encode_prefixed(&transaction), after].concat();
    (message, transaction)
}

/// The one transaction in the SSZ that the EL received: envelope of 40 bytes, in the payload the
/// offset of the list at 504, in the list one offset.
fn transaction_of(body: &[u8], length: usize) -> &[u8] {
    let list = u32::from_le_bytes(body[40 + 504..40 + 508].try_into().unwrap()) as usize;
    &body[40 + list + 4..][..length]
}

async fn chunked(sidecar: &Sidecar, body: &str) -> String {
    let mut connection = Connection::to(sidecar.address()).await;
    connection.write(b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n").await;
    for chunk in body.as_bytes().chunks(1 << 20) {
        connection.write(format!("{:x}\r\n", chunk.len()).as_bytes()).await;
        connection.write(chunk).await;
        connection.write(b"\r\n").await;
    }
    connection.write(b"0\r\n\r\n").await;
    let (head, body) = connection.response().await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    String::from_utf8(body).unwrap()
}

async fn over_h2(sidecar: &Sidecar, body: String) -> String {
    let client = Client::builder(TokioExecutor::new()).http2_only(true).build_http();
    let request = Request::post(format!("http://{}/", sidecar.address()));
    let request = request.body(Full::new(Bytes::from(body))).unwrap();
    let response = client.request(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn size_01_a_payload_of_up_to_127_megabytes_is_taken_in_every_framing() {
    // Megabytes of JSON, and how they are sent; the largest only once, for it takes its time.
    for (megabytes, framings) in [
        (2.2, &Framing::ALL[..]),
        (5.1, &[Framing::Chunked]),
        (15.1, &[Framing::H2]),
        (40.0, &[Framing::Length]),
        (127.0, &[Framing::Chunked]),
    ] {
        let length = (megabytes * 1e6 / 2.0) as usize - 2000;
        let (message, transaction) = with_transaction(length);
        assert!((message.len() as f64 - megabytes * 1e6).abs() < 5e3, "{}", message.len());
        let scene = Scene::scheduled(syncing).await;
        for framing in framings {
            let answer = framing.send(&scene.sidecar, &message).await;
            assert!(answer.contains(r#""status":"SYNCING""#), "{megabytes}: {answer}");
        }
        assert_eq!(scene.paths(), vec!["/engine/v1/payloads"; framings.len()], "{megabytes}");
        for seen in scene.seen() {
            assert_same(transaction_of(&seen.body, length), &transaction, "the transaction");
        }
    }
}

/// How the CL tells where its body ends.
enum Framing {
    Length,
    Chunked,
    H2,
}

impl Framing {
    const ALL: [Self; 3] = [Self::Length, Self::Chunked, Self::H2];

    async fn send(&self, sidecar: &Sidecar, body: &str) -> String {
        match self {
            Self::Length => {
                let answer = post(sidecar.address(), body.to_owned()).await;
                String::from_utf8(answer.body.to_vec()).unwrap()
            }
            Self::Chunked => chunked(sidecar, body).await,
            Self::H2 => over_h2(sidecar, body.to_owned()).await,
        }
    }
}

/// A scheduled sidecar whose EL takes that many bytes of SSZ.
async fn limited(bytes: usize, json_rpc: impl crate::scene::Script) -> Scene {
    let capabilities = CAPABILITIES
        .replace("\"payload.max_bytes\":67108864", &format!("\"payload.max_bytes\":{bytes}"));
    let el = ScriptedEl::offering(capabilities, scripted(syncing, json_rpc)).await;
    let mut settings = settings(el.address);
    settings.genesis = Some(crate::scene::genesis());
    settings.body_limit = Some(Number::Integer(160_000_000));
    let sidecar = sidecar(settings).await;
    Scene { el, sidecar }
}

#[tokio::test]
async fn size_02_what_is_over_the_els_limit_goes_to_json_rpc_before_it_is_sent_and_a_413_after() {
    let limit = 64 << 20;
    let (empty, _) = with_transaction(0);
    let overhead = Scene::scheduled(syncing).await.seen_ssz_of(&empty).await;
    for (bytes, path) in [(limit, "/engine/v1/payloads"), (limit + 1, "/")] {
        let (message, _) = with_transaction(bytes - overhead);
        let scene = limited(limit, by_json_rpc).await;
        scene.call(message).await;
        assert_eq!(scene.paths(), [path], "{bytes}");
        let body = scene.seen().remove(0).body;
        assert!(path == "/" || body.len() == bytes, "{} bytes", body.len());
    }

    type Says = fn() -> Response;
    let too_large: [Says; 2] = [
        || problem(413, "request-too-large"),
        || answer(413, "text/plain", "length limit exceeded"),
    ];
    for said in too_large {
        let message = golden("12-osaka-newPayload");
        let scene = Scene::scheduled(move |_: &Seen| said()).await;
        assert_eq!(scene.json(&message).await["result"], "by JSON-RPC");
        assert_eq!(scene.paths(), ["/engine/v1/payloads", "/"], "asked once");

        // What JSON-RPC says to it is the answer: untouched if it is one for the call. A CL would
        // send the call again on any status but 200, so the 413 is told in an error.
        let own = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"content length too large"}}"#;
        let refuses = move |_: &Seen| answer(413, "application/json", own);
        let scene = Scene::with(move |_: &Seen| said(), refuses, |_| {}).await;
        assert_eq!(scene.call(&message).await.body, own);
        let refuses = |_: &Seen| answer(413, "text/plain", "too large");
        let scene = Scene::with(move |_: &Seen| said(), refuses, |_| {}).await;
        let error = scene.json(&message).await["error"].clone();
        assert_eq!(error["code"], -32603);
        assert!(error["message"].as_str().unwrap().contains("413"), "{error}");
        assert_eq!(scene.paths(), ["/engine/v1/payloads", "/"]);
    }
    let alone = limited(100, |_: &Seen| problem(404, "method-not-found")).await;
    let error = alone.json(golden("12-osaka-newPayload")).await["error"].clone();
    assert_eq!(error["code"], -38004, "{error}");
}

impl Scene {
    /// The length of the SSZ that the call was sent as.
    async fn seen_ssz_of(&self, message: &str) -> usize {
        self.call(message).await;
        // The empty transaction cannot be judged here: all others can.
        let (shortest, _) = with_transaction(1);
        self.call(shortest).await;
        let seen = self.seen().pop().unwrap();
        assert_eq!(seen.path, "/engine/v1/payloads");
        seen.body.len() - 1
    }
}

#[tokio::test]
async fn size_03_no_string_is_too_long_below_the_body_limit_and_the_els_own_words_are_kept() {
    let length = 12_000_000;
    let (message, transaction) = with_transaction(length);
    let scene = Scene::scheduled(syncing).await;
    let seen = scene.carried(&message).await;
    assert_same(transaction_of(&seen.body, length), &transaction, "the transaction");

    // A JSON library that stops at 20 000 000 characters, asked because REST fails.
    let words = "String value length (20051112) exceeds the maximum allowed (20000000)";
    let refuses = move |seen: &Seen| json_rpc_error(seen, -32700, words);
    let scene = Scene::with(|_: &Seen| problem(500, "internal"), refuses, |_| {}).await;
    let said = scene.json(&message).await;
    assert_eq!(said["error"], json!({"code": -32700, "message": words}));
    assert_same(&scene.seen().pop().unwrap().body, message.as_bytes(), "the CL's own bytes");
}

/// A list of elements of variable size.
fn list(elements: &[Vec<u8>]) -> Vec<u8> {
    let mut offset = 4 * elements.len();
    let mut ssz = Vec::new();
    for element in elements {
        ssz.extend_from_slice(&(offset as u32).to_le_bytes());
        offset += element.len();
    }
    ssz.extend(elements.iter().flatten());
    ssz
}

fn offset(at: usize) -> [u8; 4] {
    u32::try_from(at).unwrap().to_le_bytes()
}

const BLOB: usize = 131_072;

#[tokio::test]
async fn size_04_answers_of_many_megabytes_reach_the_cl_whole() {
    // 128 entries of a blob and 128 proofs: 17.6 MB of SSZ.
    let entry = |n: u8| {
        let head = [&[1][..], &offset(5)].concat();
        [head, vec![n; BLOB], offset(BLOB + 4).to_vec(), vec![n; 128 * 48]].concat()
    };
    let blobs = list(&(0..128).map(entry).collect::<Vec<_>>());
    let blobs = [&offset(4)[..], &blobs].concat();
    assert!(blobs.len() > 17_500_000);

    // 32 bodies of one transaction of 256 KiB; megabytes more would be the same code.
    let body = |n: u8| {
        let transactions = list(&[vec![n; 1 << 18]]);
        let end = 12 + transactions.len();
        let head = [&hex("01 05000000 0c000000")[..], &offset(end), &offset(end)].concat();
        [head, transactions].concat()
    };
    let bodies = list(&(0..32).map(body).collect::<Vec<_>>());
    let bodies = [&offset(4)[..], &bodies].concat();

    // The golden build with a bundle of 72 blobs.
    let golden = golden_ssz("12-osaka-getPayload");
    let at =
        |place: usize| u32::from_le_bytes(golden[place..place + 4].try_into().unwrap()) as usize;
    let (bundle_at, requests_at) = (at(36), at(40));
    let (commitments, proofs) = (vec![1; 72 * 48], vec![2; 72 * 128 * 48]);
    let proofs_at = 12 + commitments.len();
    let blobs_at = proofs_at + proofs.len();
    let bundle = [
        &offset(12)[..],
        &offset(proofs_at),
        &offset(blobs_at),
        &commitments,
        &proofs,
        &vec![3; 72 * BLOB],
    ]
    .concat();
    let built = [
        &golden[..40],
        &offset(bundle_at + bundle.len()),
        &golden[44..bundle_at],
        &bundle,
        &golden[requests_at..],
    ]
    .concat();

    let rest = move |seen: &Seen| match (seen.path.as_str(), fork_header(seen)) {
        ("/engine/v1/blobs/v2", _) => ssz(&blobs),
        ("/engine/v1/bodies/hash", "amsterdam") => ssz(&bodies),
        // Whoever asks for one of them under another fork is told that it is not there.
        ("/engine/v1/bodies/hash", _) => {
            ssz(hex("04000000 04000000 00 05000000 08000000 08000000"))
        }
        _ => ssz(&built),
    };
    let too_big = |seen: &Seen| json_rpc_error(seen, -32008, "Response is too big");
    let scene = Scene::with(rest, too_big, |_| {}).await;
    let hashes = |count| json!([vec![format!("0x01{}", "00".repeat(31)); count]]);

    let blobs = scene.call(rpc("engine_getBlobsV2", hashes(128))).await;
    assert_eq!(blobs.headers["content-length"], blobs.body.len().to_string());
    let blobs = blobs.json();
    assert_eq!(blobs["result"].as_array().unwrap().len(), 128);
    assert_eq!(blobs["result"][127]["blob"], format!("0x{}", "7f".repeat(BLOB)));
    assert_eq!(blobs["result"][127]["proofs"].as_array().unwrap().len(), 128);

    let bodies = scene.json(rpc("engine_getPayloadBodiesByHashV2", hashes(32))).await;
    let found = bodies["result"].as_array().unwrap_or_else(|| panic!("{:?}", scene.paths()));
    assert_eq!(found.len(), 32);
    let last = format!("0x{}", "1f".repeat(1 << 18));
    assert!(bodies["result"][31]["transactions"][0] == last);

    let built = scene.json(rpc("engine_getPayloadV5", json!(["0x0000000000000001"]))).await;
    let bundle = &built["result"]["blobsBundle"];
    assert_eq!(bundle["blobs"].as_array().unwrap().len(), 72);
    assert!(bundle["blobs"][71] == format!("0x{}", "03".repeat(BLOB)));
    assert!(scene.paths().iter().all(|path| path != "/"), "{:?}", scene.paths());

    let said = scene.json(rpc("eth_getLogs", json!([{}]))).await;
    assert_eq!(said["error"], json!({"code": -32008, "message": "Response is too big"}));
}

/// A body without end.
struct Endless;

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b' '; 64 * 1024])))))
    }
}

fn endless(content_type: &str) -> Response {
    Response::builder().header("content-type", content_type).body(AxumBody::new(Endless)).unwrap()
}

#[tokio::test]
async fn size_05_a_body_of_unknown_or_false_length_is_counted_as_it_comes() {
    let scene = Scene::with(syncing, by_json_rpc, |settings| {
        settings.body_limit = Some(Number::Integer(1 << 20));
    })
    .await;
    let address = scene.sidecar.address();

    let mut connection = Connection::to(address).await;
    connection.write(b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n").await;
    let chunk = format!("10000\r\n{}\r\n", "[".repeat(0x10000));
    // One more than the limit takes, and no end.
    for _ in 0..17 {
        connection.write(chunk.as_bytes()).await;
    }
    let (head, _) = connection.response().await;
    assert!(head.starts_with("HTTP/1.1 413 "), "{head}");

    let stream = TcpStream::connect(address).await.unwrap();
    let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let request = Request::post(format!("http://{address}/")).body(()).unwrap();
    let (answer, mut body) = client.send_request(request, false).unwrap();
    for _ in 0..17 {
        body.send_data(Bytes::from(vec![b'['; 0x10000]), false).unwrap();
    }
    assert_eq!(answer.await.unwrap().status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert!(scene.paths().is_empty());

    // A length that is too small cuts a call in two, neither of which is one.
    let call = forkchoice("V3", &[]).to_string();
    for length in [call.len() - 1, 1] {
        let mut connection = Connection::to(address).await;
        let request =
            format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{call}");
        connection.write(request.as_bytes()).await;
        let (head, body) = connection.response().await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert!(String::from_utf8(body).unwrap().contains("-32700"));
    }
    // One that is too large never becomes a call.
    let mut connection = Connection::to(address).await;
    let length = call.len() + 1;
    let request = format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{call}");
    connection.write(request.as_bytes()).await;
    tokio::io::AsyncWriteExt::shutdown(&mut connection.0).await.unwrap();
    let mut rest = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut connection.0, &mut rest).await.unwrap();
    assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 400 "));
    // One over the limit is refused before a byte of the body.
    let mut connection = Connection::to(address).await;
    connection.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1099511627776\r\n\r\n").await;
    let (head, _) = connection.response().await;
    assert!(head.starts_with("HTTP/1.1 413 "), "{head}");
    assert!(scene.paths().is_empty(), "nothing was forwarded");
}

#[tokio::test]
async fn size_05_an_answer_without_end_is_cut_off_at_the_limit() {
    for (json_rpc, code) in [
        (by_json_rpc as fn(&Seen) -> Response, None),
        (|_: &Seen| endless("application/json"), Some(-32603)),
    ] {
        let rest = |_: &Seen| endless("application/octet-stream");
        let el = ScriptedEl::start(scripted(rest, json_rpc)).await;
        let mut config = settings(el.address).check().unwrap();
        config.el.answer_limit = 1 << 20;
        let sidecar = Sidecar::start(config).await.unwrap();
        let greeting = r#"{"jsonrpc":"2.0","id":0,"method":"eth_chainId"}"#;
        post(sidecar.address(), greeting).await;
        sidecar.el_found().await;
        let call = rpc("engine_getPayloadV5", json!(["0x0000000000000001"])).to_string();
        let said = post(sidecar.address(), call).await.json();
        match code {
            None => assert_eq!(said["result"], "by JSON-RPC"),
            Some(code) => assert_eq!(said["error"]["code"], code, "{said}"),
        }
        assert_eq!(el.paths(), ["/engine/v1/payloads/0x0000000000000001", "/"]);
    }
}

#[tokio::test]
async fn size_06_a_413_in_the_middle_of_an_upload_over_http_1_is_heard() {
    let closing =
        b"HTTP/1.1 413 Payload Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    assert_heard(&Deed::Interrupt(closing.to_vec())).await;

    // Nothing to be read: an error, and nothing is sent a third time.
    let (said, paths) = upload(Deed::Reset, by_raw_json_rpc()).await;
    assert_eq!(said["result"], "by JSON-RPC");
    assert_eq!(paths, BOTH_LANES);
    let (said, paths) = upload(Deed::Reset, Deed::Reset).await;
    assert_eq!(said["error"]["code"], -32603, "{said}");
    assert_eq!(paths, BOTH_LANES);
}

#[tokio::test]
async fn size_06_a_connection_that_is_deaf_after_its_413_is_not_waited_for() {
    let open = response("413 Payload Too Large", "text/plain", b"");
    assert_heard(&Deed::Interrupt(open)).await;
}

const BOTH_LANES: [&str; 2] = ["/engine/v1/payloads", "/"];

fn by_raw_json_rpc() -> Deed {
    let said = br#"{"id":1,"result":"by JSON-RPC"}"#;
    Deed::Answer(response("200 OK", "application/json", said))
}

/// The 413 of REST has the call asked over JSON-RPC, whose 413 is told to the CL.
async fn assert_heard(interrupted: &Deed) {
    let (said, paths) = upload(interrupted.clone(), by_raw_json_rpc()).await;
    assert_eq!(said["result"], "by JSON-RPC", "{said}");
    assert_eq!(paths, BOTH_LANES);
    let (said, paths) = upload(interrupted.clone(), interrupted.clone()).await;
    assert_eq!(said["error"]["code"], -32603);
    assert!(said["error"]["message"].as_str().unwrap().contains("413"), "{said}");
    assert_eq!(paths, BOTH_LANES);
}

/// A payload of 20 MB of JSON, and what an EL that does this with it has received.
async fn upload(rest: Deed, json_rpc: Deed) -> (Value, Vec<String>) {
    let (message, _) = with_transaction(10_000_000);
    let el = RawEl::start(move |path| match path {
        "/" => json_rpc.clone(),
        _ => rest.clone(),
    })
    .await;
    let mut settings = settings(el.address);
    settings.transport = Some("http1".to_owned());
    let sidecar = sidecar(settings).await;
    let answer = post(sidecar.address(), message).await;
    assert_eq!(answer.status, StatusCode::OK);
    (answer.json(), el.paths())
}

#[tokio::test]
async fn size_06_a_413_in_the_middle_of_an_upload_over_h2c_is_heard() {
    let listener = TcpListener::bind(crate::support::any_port()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let paths = Arc::new(Mutex::new(Vec::new()));
    let log = paths.clone();
    let el = tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(refuse_over_h2(stream, log.clone()));
        }
    });
    let mut settings = settings(address);
    settings.transport = Some("h2c".to_owned());
    let sidecar = sidecar(settings).await;
    let (message, _) = with_transaction(10_000_000);
    let said = post(sidecar.address(), message).await.json();
    assert_eq!(said["result"], "by JSON-RPC", "{said}");
    let paths = paths.lock().unwrap().clone();
    assert_eq!(paths, ["/engine/v1/payloads", "/"]);
    el.abort();
}

/// HTTP/2 alone. A payload gets `HEADERS 413 + END_STREAM` and `RST_STREAM(NO_ERROR)` unread.
async fn refuse_over_h2(stream: TcpStream, log: Arc<Mutex<Vec<String>>>) {
    // A peer that speaks HTTP/1.1 is cut off.
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    let mut answering = tokio::task::JoinSet::new();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let path = request.uri().path().to_owned();
        let say = |status: u16| http::Response::builder().status(status).body(()).unwrap();
        if path == "/engine/v1/payloads" {
            log.lock().unwrap().push(path);
            let _ = respond.send_response(say(413), true);
            respond.send_reset(h2::Reason::NO_ERROR);
            continue;
        }
        let log = log.clone();
        answering.spawn(async move {
            let is_document = request.method() == "GET";
            let mut body = request.into_body();
            let mut length = 0;
            while let Some(Ok(data)) = body.data().await {
                length += data.len();
                let _ = body.flow_control().release_capacity(data.len());
            }
            let said = match (path.as_str(), is_document) {
                ("/engine/v1/capabilities", _) => CAPABILITIES,
                _ if length > 1000 => {
                    log.lock().unwrap().push(path);
                    r#"{"id":1,"result":"by JSON-RPC"}"#
                }
                _ => r#"{"id":0,"result":"0x1"}"#,
            };
            let head = http::Response::builder().header("content-type", "application/json");
            if let Ok(mut stream) = respond.send_response(head.body(()).unwrap(), false) {
                let _ = stream.send_data(Bytes::from_static(said.as_bytes()), true);
            }
        });
    }
}
