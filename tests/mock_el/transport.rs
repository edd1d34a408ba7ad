//! HTTP versions, surfaces, tokens, the log, start and stop.

use std::{
    io::{Read, Write},
    time::Duration,
};

use alloy_rpc_types_engine::{Claims, JwtSecret};
use engine_ssz_proxy::mock_el::{Config, Http, Surface};
use http::{Method, Version};
use serde_json::json;

use super::client::{Peer, SSZ, config, start};

const CAPABILITIES: &str = "/engine/v1/capabilities";

#[tokio::test]
async fn both_versions_of_http_reach_both_dialects_on_one_port() {
    let el = start(config()).await;
    for (peer, version) in [(Peer::h1(&el), Version::HTTP_11), (Peer::h2(&el), Version::HTTP_2)] {
        let answer = peer.get(CAPABILITIES, "paris").await;
        assert_eq!((answer.status.as_u16(), answer.version), (200, version));
        assert_eq!(peer.result("eth_chainId", json!([])).await, "0x539");
    }
}

#[tokio::test]
async fn an_http_1_el_answers_an_h2_preface_with_400_and_hangs_up() {
    let el = start(Config { http: Http::H1, ..config() }).await;
    assert!(Peer::h2(&el).send(Method::GET, CAPABILITIES, &[], "").await.is_err());
    let addr = el.addr();
    let answer = tokio::task::spawn_blocking(move || {
        let mut stream = std::net::TcpStream::connect(addr).unwrap();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    assert!(answer.await.unwrap().starts_with("HTTP/1.1 400 "));
    assert_eq!(Peer::h1(&el).get(CAPABILITIES, "paris").await.status, 200);
}

#[tokio::test]
async fn an_h2_el_speaks_prior_knowledge_only() {
    let el = start(Config { http: Http::H2, ..config() }).await;
    assert!(Peer::h1(&el).send(Method::GET, CAPABILITIES, &[], "").await.is_err());
    let peer = Peer::h2(&el);
    assert_eq!(peer.get(CAPABILITIES, "paris").await.status, 200);
    assert_eq!(peer.result("eth_syncing", json!([])).await, false);
}

#[tokio::test]
async fn an_el_without_rest_answers_every_engine_path_with_a_bare_404() {
    let el = start(Config { surface: Surface::JsonOnly, ..config() }).await;
    let peer = Peer::h1(&el);
    for path in [CAPABILITIES, "/engine/v1/identity", "/engine/v1/payloads", "/engine/v2/x"] {
        for verb in [Method::GET, Method::POST] {
            let answer = peer.send(verb, path, &[("content-type", SSZ)], "x").await.unwrap();
            assert_eq!((answer.status.as_u16(), answer.content_type()), (404, None), "{path}");
            assert!(answer.body.is_empty());
        }
    }
    assert_eq!(peer.result("eth_chainId", json!([])).await, "0x539");
}

#[tokio::test]
async fn an_el_without_json_rpc_answers_its_endpoint_with_a_bare_404() {
    let el = start(Config { surface: Surface::RestOnly, ..config() }).await;
    let peer = Peer::h2(&el);
    let answer = peer.text(r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#).await;
    assert_eq!((answer.status.as_u16(), answer.content_type()), (404, None));
    assert!(answer.body.is_empty());
    assert_eq!(peer.get(CAPABILITIES, "paris").await.status, 200);
}

#[tokio::test]
async fn with_a_secret_the_token_comes_before_everything_else() {
    let secret = JwtSecret::random();
    for surface in [Surface::RestAndJson, Surface::JsonOnly, Surface::RestOnly] {
        let el = start(Config { jwt_secret: Some(secret), surface, ..config() }).await;
        let stale = Claims { iat: Claims::default().iat - 120, exp: None };
        let stale = format!("Bearer {}", secret.encode(&stale).unwrap());
        let good = Peer::h1(&el).signing(&secret);
        let lower_case = good.bearer.clone().map(|bearer| bearer.replace("Bearer", "bearer"));
        let others = JwtSecret::random();
        let wrong = [
            None,
            Some("Bearer".into()),
            Some("Bearer x.y.z".into()),
            Some(stale),
            lower_case,
            Peer::h1(&el).signing(&others).bearer,
        ];
        for bearer in wrong {
            let peer = Peer { bearer, ..Peer::h1(&el) };
            for path in ["/", CAPABILITIES, "/engine/nowhere", "/engine/v1/payloads"] {
                let answer = peer.send(Method::POST, path, &[], "{").await.unwrap();
                assert_eq!(answer.status, 401, "{path} {:?}", peer.bearer);
                assert_eq!(answer.content_type(), Some("text/plain"));
            }
        }
        let (rest, json) = (good.get(CAPABILITIES, "").await, good.text("{").await);
        assert_eq!(rest.status, if surface == Surface::JsonOnly { 404 } else { 200 });
        assert_eq!(json.status, if surface == Surface::RestOnly { 404 } else { 200 });
    }
}

#[tokio::test]
async fn the_log_holds_what_arrived_in_order_and_what_it_was_answered() {
    let el = start(config()).await;
    let (h1, h2) = (Peer::h1(&el), Peer::h2(&el));
    h1.call("eth_chainId", json!([])).await;
    let headers = [
        ("eth-execution-version", "osaka"),
        ("content-type", SSZ),
        ("x-engine-client-version", "LH/v8"),
    ];
    h2.send(Method::POST, "/engine/v1/payloads", &headers, "garbage").await.unwrap();
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"eth_syncing"},7,
        {"jsonrpc":"2.0","id":2,"method":"eth_nothing"}]"#;
    h1.text(batch).await;
    h2.get("/engine/v1/bodies?from=1&count=2", "paris").await;

    let log = el.log();
    let [call, post, batched, get] = &log[..] else { panic!("four requests: {log:?}") };
    assert_eq!(call.rpc_method.as_deref(), Some("eth_chainId"));
    assert_eq!((call.verb.as_str(), call.path.as_str(), call.status), ("POST", "/", Some(200)));
    assert_eq!((call.http_version, call.connection), (Version::HTTP_11, 0));
    assert_eq!(call.fork_header, None);

    assert_eq!((post.path.as_str(), post.status), ("/engine/v1/payloads", Some(400)));
    assert_eq!(post.fork_header.as_deref(), Some("osaka"));
    assert_eq!(post.client_version.as_deref(), Some("LH/v8"));
    assert_eq!(post.content_type.as_deref(), Some(SSZ));
    assert_eq!((post.http_version, post.connection), (Version::HTTP_2, 1));
    assert_eq!((post.body_bytes, post.body.as_deref()), (7, Some(b"garbage".as_slice())));
    assert_eq!(post.rpc_method, None);

    assert_eq!(batched.rpc_batch, ["eth_syncing", "eth_nothing"]);
    assert_eq!((batched.rpc_method.as_deref(), batched.connection), (None, 0));
    assert_eq!(batched.body.as_deref(), Some(batch.as_bytes()));

    assert_eq!(get.path, "/engine/v1/bodies?from=1&count=2");
    assert_eq!((get.verb.as_str(), get.connection, get.status), ("GET", 1, Some(200)));
}

#[tokio::test]
async fn a_body_that_announces_too_much_is_refused_before_it_is_sent() {
    let el = start(config()).await;
    let addr = el.addr();
    let post = async |path: &'static str, length: u64| {
        let answer = tokio::task::spawn_blocking(move || {
            let mut stream = std::net::TcpStream::connect(addr).unwrap();
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: el\r\ncontent-type: {SSZ}\r\n\
                 eth-execution-version: osaka\r\ncontent-length: {length}\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).unwrap();
            // A guard: a server that waits for the body must fail the test, not hang it.
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let mut status = [0; 12];
            stream.read_exact(&mut status).unwrap();
            String::from_utf8(status.to_vec()).unwrap()
        });
        answer.await.unwrap()
    };
    assert_eq!(post("/engine/v1/payloads", (64 << 20) + 1).await, "HTTP/1.1 413");
    assert_eq!(post("/", (128 << 20) + 1).await, "HTTP/1.1 413");
}

#[tokio::test]
async fn stopping_frees_the_port_and_cuts_the_connections() {
    let el = start(config()).await;
    let addr = el.addr();
    let peer = Peer::h2(&el);
    peer.call("eth_chainId", json!([])).await;
    el.stop().await;
    assert!(peer.send(Method::GET, CAPABILITIES, &[], "").await.is_err());
    let again = start(Config { listen: addr, ..config() }).await;
    assert_eq!(again.addr(), addr);
    assert_eq!(peer.get(CAPABILITIES, "paris").await.status, 200);
}

#[tokio::test]
async fn megabytes_go_up_and_down_over_both_versions() {
    let el = start(config()).await;
    let padding = "x".repeat(8 << 20);
    let request = format!(r#"{{"jsonrpc":"2.0","id":"{padding}","method":"eth_chainId"}}"#);
    for peer in [Peer::h1(&el), Peer::h2(&el)] {
        let answer = peer.text(request.clone()).await;
        assert_eq!(answer.json()["id"].as_str().map(str::len), Some(padding.len()));
    }
    assert_eq!(el.log()[0].body_bytes, request.len());
    assert_eq!(el.log()[0].body, None);
}
