//! Verb, path, headers, token.

use crate::peers::{StreamingEl, http_client, request, whole};
use crate::support::{
    scripted_el::{answer, json},
    settings, sidecar, sidecar_of_secret,
};
use axum::response::Response;
use engine_ssz_proxy::jwt::Secret;
use http::{Method, StatusCode, Version};
use http_body_util::BodyExt;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::mpsc,
};

#[tokio::test]
async fn heads_go_both_ways_as_they_are_but_for_what_concerns_one_connection() {
    let (tell, mut seen) = mpsc::unbounded_channel();
    let el = StreamingEl::start(move |request| {
        let tell = tell.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            tell.send((head.method, head.uri, head.headers, body)).unwrap();
            Response::builder()
                .status(207)
                .header("content-type", "application/x-own")
                .header("x-two", "a")
                .header("x-two", "b")
                .header("x-empty", "")
                .header("retry-after", "7")
                .header("keep-alive", "timeout=1")
                .header("proxy-authenticate", "Basic")
                .body("said".into())
                .unwrap()
        }
    })
    .await;
    // REST is found over the one and over the other.
    for transport in ["h2c", "http1"] {
        let mut settings = settings(el.address);
        settings.transport = Some(transport.to_owned());
        let sidecar = sidecar(settings).await;
        let path = "/engine/v7/some%20thing//else/?q=%2F&r";
        let mut request = request(&sidecar, Method::PATCH, path, whole("asked"));
        for (name, value) in [
            ("eth-execution-version", "osaka"),
            ("x-engine-client-version", "LH/v8"),
            ("accept-encoding", "gzip"),
            ("x-two", "a"),
            ("x-two", "b"),
            ("user-agent", "cl"),
            ("connection", "x-mine, keep-alive"),
            ("x-mine", "1"),
            ("keep-alive", "timeout=9"),
            ("te", "trailers"),
            ("trailer", "x-sum"),
            ("upgrade", "h3"),
            ("proxy-connection", "keep-alive"),
            ("proxy-authorization", "Basic eDp5"),
        ] {
            request.headers_mut().append(name, value.parse().unwrap());
        }
        let answered = http_client(Version::HTTP_11).request(request).await.unwrap();

        let (verb, uri, headers, body) = seen.recv().await.unwrap();
        assert_eq!(verb, Method::PATCH);
        assert_eq!(uri.path_and_query().unwrap(), path, "{transport}");
        assert_eq!(body, "asked");
        let host = uri.authority().map(ToString::to_string);
        let host = host.unwrap_or_else(|| headers["host"].to_str().unwrap().to_owned());
        assert_eq!(host, el.address.to_string(), "{transport}");
        let mut names: Vec<_> = headers.keys().map(|name| name.as_str()).collect();
        names.retain(|name| *name != "host");
        names.sort_unstable();
        let expected = [
            "accept-encoding",
            "authorization",
            "content-length",
            "eth-execution-version",
            "user-agent",
            "x-engine-client-version",
            "x-two",
        ];
        assert_eq!(names, expected, "{transport}");
        assert_eq!(headers["authorization"], "Bearer any.token.will-do");
        assert_eq!(headers["accept-encoding"], "gzip");
        assert_eq!(headers.get_all("x-two").iter().collect::<Vec<_>>(), ["a", "b"]);

        let (head, body) = answered.into_parts();
        assert_eq!(head.status, 207);
        let mut names: Vec<_> = head.headers.keys().map(|name| name.as_str()).collect();
        names.sort_unstable();
        let expected =
            ["content-length", "content-type", "date", "retry-after", "x-empty", "x-two"];
        assert_eq!(names, expected, "{transport}");
        assert_eq!(head.headers.get_all("x-two").iter().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(body.collect().await.unwrap().to_bytes(), "said");
        sidecar.stop().await;
    }
}

#[tokio::test]
async fn the_endpoints_own_prefix_goes_before_the_path() {
    let el = StreamingEl::start(|request| async move { json(request.uri().path().to_owned()) });
    let el = el.await;
    let mut settings = settings(el.address);
    settings.execution_endpoint = Some(format!("http://{}/some/el/", el.address));
    let sidecar = sidecar(settings).await;
    let asked = request(&sidecar, Method::GET, "/engine/v2/identity", whole(""));
    let answered = http_client(Version::HTTP_11).request(asked).await.unwrap();
    let body = answered.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "/some/el/engine/v2/identity");
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

#[tokio::test]
async fn a_token_is_checked_before_the_body_and_the_el_gets_a_fresh_one() {
    let hex = "11".repeat(32);
    let secret: Secret = hex.parse().unwrap();
    let el = StreamingEl::start(|request| async move {
        let token = request.headers()["authorization"].as_bytes().to_vec();
        answer(200, "text/plain", token)
    })
    .await;
    let sidecar = sidecar_of_secret(settings(el.address), &hex).await;

    // Announced, and never sent: the answer has to come all the same.
    let mut connection = TcpStream::connect(sidecar.address()).await.unwrap();
    let head = "POST /engine/v1/payloads HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n";
    connection.write_all(head.as_bytes()).await.unwrap();
    let mut refused = String::new();
    connection.read_to_string(&mut refused).await.unwrap();
    assert!(refused.starts_with("HTTP/1.1 401 "), "{refused}");

    let stale = now() - 30;
    let mut good = request(&sidecar, Method::GET, "/engine/v1/identity", whole(""));
    let bearer = format!("Bearer {}", secret.mint(stale));
    good.headers_mut().insert("authorization", bearer.parse().unwrap());
    let answered = http_client(Version::HTTP_11).request(good).await.unwrap();
    assert_eq!(answered.status(), StatusCode::OK);
    let token = answered.into_body().collect().await.unwrap().to_bytes();
    let token = token.strip_prefix(b"Bearer ").unwrap();
    let claims = secret.verify(std::str::from_utf8(token).unwrap(), now());
    assert!(claims.is_ok() && token != secret.mint(stale).as_bytes(), "not minted anew");
}
