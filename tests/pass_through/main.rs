//! A CL that speaks REST-SSZ itself: what it says reaches the EL as it is, and so does the answer.

mod bodies;
#[path = "../mock_el/client.rs"]
#[allow(dead_code, reason = "shared with the tests of the mock EL")]
mod client;
#[path = "../mock_el/conversation.rs"]
#[allow(dead_code, reason = "shared with the tests of the mock EL")]
mod conversation;
mod heads;
mod peers;
#[path = "../support/mod.rs"]
mod support;
mod turns;

use axum::extract::Request;
use client::Peer;
use engine_ssz_proxy::{
    mock_el::{Http, MockEl, Surface},
    serve::Sidecar,
};
use http::{Method, Version};
use http_body_util::BodyExt;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use peers::{BOTH, StreamingEl, http_client, request, whole};
use std::sync::{Arc, Mutex};
use support::{
    any_port, mock_config, post,
    scripted_el::{answer, ssz},
    settings, sidecar,
};
use tokio::sync::{Notify, mpsc};

/// SYNCING, as `PayloadStatus` and as `ForkchoiceUpdateResponse`.
const SYNCING: [u8; 9] = [2, 9, 0, 0, 0, 9, 0, 0, 0];
const FORKCHOICE_SYNCING: [u8; 17] = [8, 0, 0, 0, 17, 0, 0, 0, 2, 9, 0, 0, 0, 9, 0, 0, 0];

const FORKCHOICE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"engine_forkchoiceUpdatedV3","params":[{"#,
    r#""headBlockHash":"0x1111111111111111111111111111111111111111111111111111111111111111","#,
    r#""safeBlockHash":"0x1111111111111111111111111111111111111111111111111111111111111111","#,
    r#""finalizedBlockHash":"0x1111111111111111111111111111111111111111111111111111111111111111""#,
    r#"},null]}"#
);

#[tokio::test]
async fn a_cl_that_speaks_rest_drives_the_chain_through_every_fork() {
    let direct = MockEl::start(mock_config(Surface::RestAndJson, Http::Both)).await.unwrap();
    let chain = conversation::whole_chain(&direct).await;
    for version in BOTH {
        let mock = MockEl::start(mock_config(Surface::RestAndJson, Http::Both)).await.unwrap();
        let sidecar = sidecar(settings(mock.addr())).await;
        let peer = Peer {
            client: Client::builder(TokioExecutor::new())
                .http2_only(version == Version::HTTP_2)
                .build_http(),
            origin: format!("http://{}", sidecar.address()),
            bearer: None,
        };
        let mut head = mock.genesis_hash();
        for (number, expected) in (1..).zip(&chain) {
            let (_, built) = conversation::rest_block(&peer, number, head).await;
            assert_eq!(built.json, expected.json, "block {number} over {version:?}");
            head = built.payload.block_hash();
        }
        let over_h2 = mock.log().into_iter().filter(|seen| {
            seen.path.starts_with("/engine/v1/payloads") && seen.http_version == Version::HTTP_2
        });
        assert_eq!(over_h2.count(), 2 * chain.len(), "REST was found over h2c");
        sidecar.stop().await;
    }
}

/// Both are commands, whichever language they are in.
#[tokio::test]
async fn a_json_rpc_command_waits_for_the_rest_command_before_it_and_the_other_way_round() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let (tell, mut arrived) = mpsc::unbounded_channel();
    let go = Arc::new(Notify::new());
    let el = StreamingEl::start({
        let (log, go) = (log.clone(), go.clone());
        move |request: Request| {
            let (log, go, tell) = (log.clone(), go.clone(), tell.clone());
            async move {
                let path = request.uri().path().rsplit('/').next().unwrap().to_owned();
                request.into_body().collect().await.unwrap();
                log.lock().unwrap().push(format!("{path} begins"));
                tell.send(()).unwrap();
                go.notified().await;
                log.lock().unwrap().push(format!("{path} ends"));
                if path == "payloads" {
                    ssz(SYNCING.to_vec())
                } else {
                    ssz(FORKCHOICE_SYNCING.to_vec())
                }
            }
        }
    })
    .await;
    let sidecar = sidecar(settings(el.address)).await;
    let address = sidecar.address();
    let by_rest = |path: &'static str| {
        let asked = request(&sidecar, Method::POST, path, whole("x"));
        tokio::spawn(async move { http_client(Version::HTTP_2).request(asked).await.unwrap() })
    };
    // Side calls get through meanwhile, so whatever did not wait would be seen at the EL.
    let meanwhile = async || {
        for _ in 0..5 {
            post(address, r#"{"jsonrpc":"2.0","id":0,"method":"eth_chainId"}"#).await;
        }
    };

    let first = by_rest("/engine/v1/payloads");
    arrived.recv().await.unwrap();
    let second = tokio::spawn(post(address, FORKCHOICE));
    meanwhile().await;
    go.notify_one();
    assert_eq!(first.await.unwrap().status(), 200);
    arrived.recv().await.unwrap();
    let third = by_rest("/engine/v1/payloads");
    meanwhile().await;
    go.notify_one();
    assert_eq!(second.await.unwrap().json()["result"]["payloadStatus"]["status"], "SYNCING");
    go.notify_one();
    assert_eq!(third.await.unwrap().status(), 200);

    let expected = [
        "payloads begins",
        "payloads ends",
        "forkchoice begins",
        "forkchoice ends",
        "payloads begins",
        "payloads ends",
    ];
    assert_eq!(*log.lock().unwrap(), expected);
}

#[tokio::test]
async fn an_el_without_rest_says_so_itself() {
    let offer = answer(404, "text/plain", "no such thing");
    let el = StreamingEl::offering(offer, |request| async move {
        let mut answer = answer(404, "text/html", "<h1>legacy</h1>");
        let version = format!("{:?}", request.version());
        answer.headers_mut().insert("x-version", version.parse().unwrap());
        answer
    })
    .await;
    let sidecar = sidecar(settings(el.address)).await;
    let asked = request(&sidecar, Method::POST, "/engine/v1/payloads", whole("x"));
    let answered = http_client(Version::HTTP_2).request(asked).await.unwrap();
    assert_eq!(answered.status(), 404);
    assert_eq!(answered.headers()["content-type"], "text/html");
    assert_eq!(answered.headers()["x-version"], "HTTP/1.1");
    let body = answered.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "<h1>legacy</h1>");
}

#[tokio::test]
async fn an_el_that_is_not_there_is_502_with_its_address() {
    let reserved = std::net::TcpListener::bind(any_port()).unwrap();
    let nowhere = reserved.local_addr().unwrap();
    drop(reserved);
    let sidecar = Sidecar::start(settings(nowhere).check().unwrap()).await.unwrap();
    let asked = request(&sidecar, Method::GET, "/engine/v1/capabilities", whole(""));
    let answered = http_client(Version::HTTP_11).request(asked).await.unwrap();
    assert_eq!(answered.status(), 502);
    assert_eq!(answered.headers()["content-type"], "application/problem+json");
    let body = answered.into_body().collect().await.unwrap().to_bytes();
    let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(problem["type"], "about:blank");
    assert!(problem["detail"].as_str().unwrap().contains(&nowhere.to_string()), "{problem}");
}
