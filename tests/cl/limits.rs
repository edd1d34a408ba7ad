//! Who and what is kept out, and when.

use std::time::Duration;

use bytes::Bytes;
use engine_ssz_proxy::cl::Config;
use http::{Request, StatusCode};
use http_body_util::Full;
use tokio::io::AsyncReadExt;

use crate::log::Log;
use crate::support::{BOTH, Door, Fed, Http, NOW, Script, checking, h2_fed, open, secret, soon};

const MOMENT: Duration = Duration::from_millis(1);

fn bearer(iat: u64) -> String {
    format!("Bearer {}", secret().mint(iat))
}

#[tokio::test]
async fn auth_02_the_edges_of_the_window_hold_on_the_wire() {
    let door = Door::new(checking(), Script::names()).await;
    for http in BOTH {
        for (iat, status) in [
            (NOW - 59, StatusCode::OK),
            (NOW + 59, StatusCode::OK),
            (NOW - 61, StatusCode::UNAUTHORIZED),
            (NOW + 61, StatusCode::UNAUTHORIZED),
        ] {
            let request = Request::post("/").header("authorization", bearer(iat));
            let request = request.body(Full::from(r#"{"id":1,"method":"m"}"#)).unwrap();
            assert_eq!(door.client(http).await.send(request).await.status, status, "{iat}");
        }
    }
}

#[tokio::test]
async fn a_refused_cl_is_a_line_a_minute_for_each_reason_whoever_gets_in_meanwhile() {
    let log = Log::of_this_thread();
    let door = Door::new(checking(), Script::names()).await;
    let post = async |authorization: Option<String>| {
        let mut request = Request::post("/");
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        let request = request.body(Full::from(r#"{"id":1,"method":"m"}"#)).unwrap();
        door.client(Http::One).await.send(request).await.status
    };
    for seconds in 0..5 {
        assert_eq!(post(Some(bearer(NOW))).await, StatusCode::OK);
        assert_eq!(post(Some(bearer(NOW - 100 - seconds))).await, StatusCode::UNAUTHORIZED);
        assert_eq!(post(None).await, StatusCode::UNAUTHORIZED);
    }
    let warnings = log.lines("WARN");
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("off by -100 s") && warnings[1].contains("missing bearer token"));
    assert_eq!(log.lines("INFO").len(), 1, "authenticated again");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(60)).await;
    tokio::time::resume();
    assert_eq!(post(None).await, StatusCode::UNAUTHORIZED);
    let warnings = log.lines("WARN");
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(warnings[2].contains("held_back=4"), "{warnings:?}");
}

#[tokio::test]
async fn auth_08_a_bad_token_is_refused_before_the_body_is_there() {
    let door = Door::new(checking(), Script::unreachable()).await;
    let mut connection = door.raw().await;
    connection.write("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100000000\r\n\r\n[1,2").await;
    let (head, body) = connection.response().await;
    assert!(head.starts_with("HTTP/1.1 401 "), "{head}");
    assert!(head.contains("content-type: text/plain"), "{head}");
    assert!(head.contains("connection: close"), "{head}");
    assert_eq!(body, "missing bearer token");
    assert_eq!(connection.rest().await, b"");
}

/// A CL that reads only after it has written all gets the answer too: a connection reset in the
/// middle of its writing would have taken it away.
#[tokio::test]
async fn auth_08_a_refusal_survives_the_body_it_did_not_wait_for() {
    let door = Door::new(Config { body_limit: 1000, ..checking() }, Script::unreachable()).await;
    for (authorization, status) in [("Bearer x".to_owned(), "401"), (bearer(NOW), "413")] {
        let mut connection = door.raw().await;
        let length = 16_000_000;
        let head = format!(
            "POST / HTTP/1.1\r\nhost: x\r\nauthorization: {authorization}\r\n\
             content-length: {length}\r\n\r\n"
        );
        connection.write(head).await;
        connection.write(vec![b'['; length]).await;
        let (head, _) = connection.response().await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
    }
}

#[tokio::test]
async fn auth_08_a_stream_of_h2_is_refused_alone() {
    let door = Door::new(checking(), Script::names()).await;
    let mut client = h2_fed(door.addr).await;
    // The sender is kept: the body never ends.
    let (_sender, body) = Fed::new();
    let request = Request::post("http://x/").body(body).unwrap();
    let refused = soon(client.send_request(request)).await.unwrap();
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    assert!(!refused.headers().contains_key("connection"));

    let (sender, body) = Fed::new();
    let request = Request::post("http://x/").header("authorization", bearer(NOW));
    let answer = client.send_request(request.body(body).unwrap());
    sender.send(Bytes::from_static(br#"{"id":1,"method":"m"}"#)).unwrap();
    drop(sender);
    let answer = answer.await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
}

#[tokio::test]
async fn h1_04_the_body_is_asked_for_only_after_the_head_has_passed() {
    let door = Door::new(Config { body_limit: 1000, ..checking() }, Script::names()).await;
    let body = r#"{"id":1,"method":"m"}"#;
    for (authorization, length, status) in [
        (bearer(NOW), body.len(), "100"),
        ("Bearer x".to_owned(), body.len(), "401"),
        (bearer(NOW), 1001, "413"),
    ] {
        let mut connection = door.raw().await;
        let head = format!(
            "POST / HTTP/1.1\r\nhost: x\r\nauthorization: {authorization}\r\n\
             expect: 100-continue\r\ncontent-length: {length}\r\n\r\n"
        );
        connection.write(head).await;
        let head = connection.head().await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        if status == "100" {
            connection.write(body).await;
            let (head, _) = connection.response().await;
            assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        }
    }
}

#[tokio::test]
async fn size_05_a_length_over_the_limit_is_refused_at_the_head() {
    let door = Door::new(Config { body_limit: 1000, ..open() }, Script::unreachable()).await;
    for length in ["1001", "1099511627776", "18446744073709551613"] {
        let mut connection = door.raw().await;
        connection
            .write(format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n"))
            .await;
        let (head, body) = connection.response().await;
        assert!(head.starts_with("HTTP/1.1 413 "), "{head}");
        assert_eq!(body, "body too large");
        assert_eq!(connection.rest().await, b"");
    }
}

#[tokio::test]
async fn size_05_a_body_of_unknown_length_is_counted_as_it_comes() {
    let door = Door::new(Config { body_limit: 1000, ..open() }, Script::unreachable()).await;
    let mut connection = door.raw().await;
    connection.write("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n").await;
    let chunk = format!("3e8\r\n{}\r\n", "x".repeat(1000));
    connection.write(&chunk).await;
    // One byte more, and no end.
    connection.write("1\r\nx\r\n").await;
    let (head, _) = connection.response().await;
    assert!(head.starts_with("HTTP/1.1 413 "), "{head}");

    let mut client = h2_fed(door.addr).await;
    let (sender, body) = Fed::new();
    let answer = client.send_request(Request::post("http://x/").body(body).unwrap());
    for _ in 0..2 {
        sender.send(Bytes::from(vec![b'x'; 501])).unwrap();
    }
    assert_eq!(answer.await.unwrap().status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn size_05_a_body_of_exactly_the_limit_passes() {
    let body = r#"{"id":1,"method":"m"}"#;
    let door = Door::new(Config { body_limit: body.len(), ..open() }, Script::names()).await;
    for http in BOTH {
        assert_eq!(door.client(http).await.post(body).await.status, StatusCode::OK);
    }
    let mut connection = door.raw().await;
    connection
        .write(format!(
            "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n\
             5\r\n{}\r\n{:x}\r\n{}\r\n0\r\n\r\n",
            &body[..5],
            body.len() - 5,
            &body[5..]
        ))
        .await;
    let (head, answer) = connection.response().await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(answer.contains(r#""result":"m""#), "{answer}");
}

#[tokio::test]
async fn h1_05_a_chunk_of_two_gigabytes_is_no_way_around_the_limit() {
    let door = Door::new(Config { body_limit: 1000, ..open() }, Script::unreachable()).await;
    let mut connection = door.raw().await;
    connection
        .write("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n80000000\r\n")
        .await;
    connection.write("x".repeat(1001)).await;
    let (head, _) = connection.response().await;
    assert!(head.starts_with("HTTP/1.1 413 "), "{head}");
}

/// RFC 9112, section 6.3: the chunks count, and the connection must not outlive the request.
#[tokio::test]
async fn h1_05_two_framings_never_leave_the_connection_open() {
    let door = Door::new(open(), Script::names()).await;
    for (framings, status) in [
        ("content-length: 2\r\ntransfer-encoding: chunked", "200"),
        ("transfer-encoding: chunked\r\ncontent-length: 2", "200"),
        ("content-length: 2\r\ncontent-length: 3", "400"),
        ("transfer-encoding: chunked, identity", "400"),
    ] {
        let mut connection = door.raw().await;
        connection
            .write(format!(
                "POST / HTTP/1.1\r\nhost: x\r\n{framings}\r\n\r\n\
                 15\r\n{{\"id\":1,\"method\":\"m\"}}\r\n0\r\n\r\n"
            ))
            .await;
        let (head, body) = connection.response().await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{framings}: {head}");
        assert_eq!(body.contains(r#""result":"m""#), status == "200", "{framings}: {body}");
        assert_eq!(connection.rest().await, b"", "{framings}");
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_never_becomes_a_call() {
    let door = Door::new(open(), Script::unreachable()).await;
    for framed in [
        "content-length: 100\r\n\r\n{}",
        "transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n",
        "transfer-encoding: chunked\r\n\r\nzz\r\n",
    ] {
        let mut connection = door.raw().await;
        connection.write(format!("POST / HTTP/1.1\r\nhost: x\r\n{framed}")).await;
        tokio::io::AsyncWriteExt::shutdown(&mut connection.0).await.unwrap();
        let rest = String::from_utf8(connection.rest().await).unwrap();
        assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 400 "), "{rest}");
    }
}

#[tokio::test]
async fn a_body_that_stalls_is_given_up() {
    let door = Door::new(Config { body_timeout: MOMENT, ..open() }, Script::unreachable()).await;
    let mut connection = door.raw().await;
    connection.write("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{").await;
    let (head, _) = connection.response().await;
    assert!(head.starts_with("HTTP/1.1 400 "), "{head}");
    assert_eq!(connection.rest().await, b"");
}

#[tokio::test]
async fn a_connection_that_brings_no_head_is_closed() {
    let door = Door::new(Config { head_timeout: MOMENT, ..open() }, Script::unreachable()).await;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";
    // Nothing, half a head, half a preface, h2 without a request.
    for bytes in [&b""[..], b"POST / HT", &preface[..8], preface] {
        let mut connection = door.raw().await;
        connection.write(bytes).await;
        // A close with bytes unread may come as a reset.
        let mut rest = Vec::new();
        let _ = soon(connection.0.read_to_end(&mut rest)).await;
    }
}

#[tokio::test]
async fn a_connection_is_closed_when_no_further_head_comes() {
    let head_timeout = Duration::from_millis(50);
    let door = Door::new(Config { head_timeout, ..open() }, Script::names()).await;
    for next in ["", "POST / HT"] {
        // A machine that stalls may let even the first request come too late.
        let mut connection = loop {
            let mut connection = door.raw().await;
            connection.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
            if soon(connection.0.peek(&mut [0])).await.is_ok_and(|length| length > 0) {
                break connection;
            }
        };
        let _ = connection.response().await;
        let _ = connection.0.try_write(next.as_bytes());
        let mut rest = Vec::new();
        let _ = soon(connection.0.read_to_end(&mut rest)).await;
        assert_eq!(rest, b"");
    }
}

#[tokio::test]
async fn h2_07_the_windows_are_wide_from_the_start() {
    let door = Door::new(open(), Script::unreachable()).await;
    let mut connection = door.raw().await;
    connection.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00").await;
    let (mut stream_window, mut connection_window) = (65_535, 65_535);
    // SETTINGS and the connection's WINDOW_UPDATE come first, then the ACK of ours.
    while connection_window == 65_535 || stream_window == 65_535 {
        let mut head = [0; 9];
        connection.0.read_exact(&mut head).await.unwrap();
        let [a, b, c, kind, ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        connection.0.read_exact(&mut payload).await.unwrap();
        match kind {
            4 => {
                for setting in payload.chunks_exact(6) {
                    if setting[..2] == [0, 4] {
                        stream_window = u32::from_be_bytes(setting[2..].try_into().unwrap());
                    }
                }
            }
            8 => connection_window += u32::from_be_bytes(payload.try_into().unwrap()),
            _ => {}
        }
    }
    assert_eq!(stream_window, 16 * 1024 * 1024);
    // Bodies that are not read yet must not starve the one that is.
    assert_eq!(connection_window, 2 * stream_window);
}

/// What comes back for the handshake of RFC 6455, section 1.3, changed a little.
async fn handshake(config: Config, from: &str, to: &str) -> String {
    let door = Door::new(config, Script::names()).await;
    let mut connection = door.raw().await;
    let handshake = "GET / HTTP/1.1\r\nhost: x\r\nconnection: keep-alive, Upgrade\r\n\
                     upgrade: WebSocket\r\nsec-websocket-version: 13\r\n\
                     sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    assert!(handshake.contains(from), "{from}");
    connection.write(handshake.replacen(from, to, 1)).await;
    connection.head().await
}

#[tokio::test]
async fn h1_10_a_websocket_is_opened_or_refused_at_once() {
    let opened = handshake(open(), "", "").await;
    assert!(opened.starts_with("HTTP/1.1 101 "), "{opened}");
    assert!(opened.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{opened}");
    assert!(opened.contains("upgrade: websocket\r\n"), "{opened}");
    assert!(!opened.contains("content-type"), "{opened}");

    let version = handshake(open(), "version: 13", "version: 8").await;
    assert!(version.starts_with("HTTP/1.1 426 "), "{version}");
    assert!(version.contains("sec-websocket-version: 13\r\n"), "{version}");
    let key = handshake(open(), "key: dGhl", "key: ").await;
    assert!(key.starts_with("HTTP/1.1 400 "), "{key}");
    let token = handshake(checking(), "", "").await;
    assert!(token.starts_with("HTTP/1.1 401 "), "{token}");
    for (from, to, status) in [
        ("upgrade: WebSocket", "upgrade: h2c", 405),
        ("keep-alive, Upgrade", "keep-alive", 405),
        ("GET", "HEAD", 405),
        ("HTTP/1.1", "HTTP/1.0", 405),
        ("GET / ", "GET /engine/v1/ ", 404),
        ("GET / ", "GET /some/path ", 101),
    ] {
        let head = handshake(open(), from, to).await;
        assert!(head.split(' ').nth(1) == Some(&status.to_string()), "{from} -> {to}: {head}");
    }
}

#[tokio::test]
async fn h2_06_an_upgrade_to_h2c_is_answered_over_1_1() {
    let door = Door::new(open(), Script::names()).await;
    let body = r#"{"id":1,"method":"m"}"#;
    let mut connection = door.raw().await;
    connection
        .write(format!(
            "POST / HTTP/1.1\r\nhost: x\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\n\
             http2-settings: AAMAAABkAAQAAP__\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
    let (head, answer) = connection.response().await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(answer.contains(r#""result":"m""#), "{answer}");
}
