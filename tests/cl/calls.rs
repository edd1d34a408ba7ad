//! What gets in and what comes back.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use engine_ssz_proxy::cl::{Call, Outcome};
use engine_ssz_proxy::jsonrpc::{RawId, Reply};
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use tokio::sync::mpsc;

use crate::log::Log;
use crate::support::{BOTH, Door, NOW, Script, checking, open, secret};

#[tokio::test]
async fn json_07_the_id_comes_back_as_it_was_written() {
    let door = Door::new(open(), Script::names()).await;
    for http in BOTH {
        let mut client = door.client(http).await;
        for id in ["1", "1e3", "123456789012345678901234567890", r#""\u0031""#, "null"] {
            let answer =
                client.post(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#)).await;
            assert_eq!(answer.status, StatusCode::OK);
            assert_eq!(answer.headers["content-type"], "application/json");
            assert_eq!(answer.body, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"m"}}"#));
            assert_eq!(answer.headers["content-length"], answer.body.len().to_string());
        }
    }
}

#[tokio::test]
async fn json_09_a_batch_is_answered_in_its_order() {
    let door = Door::new(open(), Script::names()).await;
    let body = r#"[{"id":1,"method":"a"},7,{"method":"b"},{"id":"2","method":"c"}]"#;
    for http in BOTH {
        let answer = door.client(http).await.post(body).await;
        let value: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(value[0]["result"], "a");
        assert_eq!(value[1]["error"]["code"], -32600);
        assert_eq!(value[2]["result"], "c");
        assert_eq!(value.as_array().unwrap().len(), 3);
    }
}

#[tokio::test]
async fn json_10_notifications_get_an_empty_200() {
    let door = Door::new(open(), Script::names()).await;
    for http in BOTH {
        let mut client = door.client(http).await;
        for body in [r#"{"method":"a"}"#, r#"[{"method":"a"},{"method":"b"}]"#] {
            let answer = client.post(body).await;
            assert_eq!((answer.status, answer.body.len()), (StatusCode::OK, 0), "{body}");
        }
    }
}

#[tokio::test]
async fn json_12_a_bad_body_leaves_the_connection_usable() {
    let door = Door::new(open(), Script::names()).await;
    let mut connection = door.raw().await;
    for _ in 0..2 {
        connection.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\n\"\xc3\"").await;
        let (head, body) = connection.response().await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert!(body.contains("-32700") && body.contains(r#""id":null"#), "{body}");
        connection.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        let (head, _) = connection.response().await;
        assert!(head.starts_with("HTTP/1.1 405 ") && head.contains("allow: POST"), "{head}");
        connection
            .write("POST /engine/v1/payloads HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}")
            .await;
        let (head, body) = connection.response().await;
        assert!(head.starts_with("HTTP/1.1 404 ") && body.is_empty(), "{head}");
    }
}

#[tokio::test]
async fn any_path_but_the_rest_api_s_is_a_call() {
    let door = Door::new(open(), Script::names()).await;
    for http in BOTH {
        let mut client = door.client(http).await;
        for (path, status) in [
            ("/", StatusCode::OK),
            ("/foo/engine/", StatusCode::OK),
            ("/engine", StatusCode::OK),
            ("/engine/", StatusCode::NOT_FOUND),
            ("/engine/v1/capabilities", StatusCode::NOT_FOUND),
        ] {
            let body = Full::from(r#"{"id":1,"method":"m"}"#);
            let answer = client.send(Request::post(path).body(body).unwrap()).await;
            assert_eq!(answer.status, status, "{path}");
        }
        for method in [Method::GET, Method::HEAD, Method::PUT, Method::OPTIONS] {
            let request = Request::builder().method(method.clone()).body(Full::default()).unwrap();
            let answer = client.send(request).await;
            assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{method}");
        }
    }
}

#[tokio::test]
async fn h1_07_content_types_that_may_be_json_are_taken() {
    let door = Door::new(open(), Script::names()).await;
    for http in BOTH {
        for (content_type, status) in [
            (None, StatusCode::OK),
            (Some("application/json"), StatusCode::OK),
            (Some("application/json; charset=utf-8"), StatusCode::OK),
            (Some("Application/JSON ;charset=UTF-8"), StatusCode::OK),
            (Some("text/plain"), StatusCode::OK),
            (Some("text/plain; charset=utf-8"), StatusCode::OK),
            (Some("application/octet-stream"), StatusCode::BAD_REQUEST),
            (Some("application/x-www-form-urlencoded"), StatusCode::BAD_REQUEST),
        ] {
            // A refusal over HTTP/1.1 ends its connection.
            let mut client = door.client(http).await;
            let mut request = Request::post("/");
            if let Some(content_type) = content_type {
                request = request.header("content-type", content_type);
            }
            let body = Full::from(r#"{"id":1,"method":"m"}"#);
            let answer = client.send(request.body(body).unwrap()).await;
            assert_eq!(answer.status, status, "{content_type:?}");
        }
    }
}

#[tokio::test]
async fn the_handler_is_told_who_calls() {
    let (told, mut calls) = mpsc::unbounded_channel();
    let script = Script::new(move |call: Call| {
        told.send(call).unwrap();
        async { Outcome::Json(Reply::empty()) }
    });
    let door = Door::new(checking(), script).await;
    for http in BOTH {
        let token = secret().mint(NOW);
        let request = Request::post("/")
            .header("authorization", format!("bearer   {token}"))
            .header("traceparent", "00-ab-cd-01")
            .header("x-engine-client-version", "LH/v8")
            .body(Full::from("body"))
            .unwrap();
        assert_eq!(door.client(http).await.send(request).await.status, StatusCode::OK);
        let call = calls.recv().await.unwrap();
        assert_eq!(call.body, "body");
        assert_eq!(call.caller.bearer.unwrap(), format!("Bearer {token}"));
        assert_eq!(call.caller.traceparent.unwrap(), "00-ab-cd-01");
        assert_eq!(call.caller.client_version.unwrap(), "LH/v8");
    }
}

#[tokio::test]
async fn a_status_of_the_el_is_handed_on_with_its_text() {
    let script = Script::new(|_| async {
        Outcome::Status(StatusCode::FORBIDDEN, Bytes::from_static(b"invalid host specified"))
    });
    let door = Door::new(open(), script).await;
    for http in BOTH {
        let answer = door.client(http).await.post("{}").await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN);
        assert!(answer.headers["content-type"].to_str().unwrap().starts_with("text/plain"));
        assert_eq!(answer.body, "invalid host specified");
    }
}

#[tokio::test]
async fn size_01_bodies_of_many_megabytes_pass_both_ways() {
    // Every byte tells its place, so that a piece lost or moved shows.
    let big: Bytes = (0..2_600_000u32).flat_map(u32::to_be_bytes).collect::<Vec<_>>().into();
    let script = Script::new(|call| async move {
        let result = |id| Reply::result(&RawId::from(id), call.body.clone());
        Outcome::Json(Reply::batch(vec![result(1), Reply::empty(), result(2)]))
    });
    let door = Door::new(open(), script).await;
    for http in BOTH {
        let answer = door.client(http).await.post(big.clone()).await;
        let expected = [
            br#"[{"jsonrpc":"2.0","id":1,"result":"#,
            &big[..],
            br#"},{"jsonrpc":"2.0","id":2,"result":"#,
            &big,
            b"}]",
        ]
        .concat();
        assert_eq!(answer.headers["content-length"], expected.len().to_string());
        assert!(answer.body == expected, "{http:?}");
    }
}

#[tokio::test]
async fn a_handler_that_panics_costs_its_own_call_only_and_answers_every_id_of_it() {
    let script = Script::new(|call: Call| async move {
        assert!(!call.body.windows(5).any(|part| part == b"panic"));
        Outcome::Json(Reply::raw(Bytes::from_static(b"fine")))
    });
    let panics = script.panics();
    let log = Log::of_this_thread();
    let door = Door::new(open(), script).await;
    let error = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":"internal error"}}}}"#
        )
    };
    for http in BOTH {
        let mut client = door.client(http).await;
        for (body, wanted) in [
            (r#"{"id":"x","method":"panic","params":["secret"]}"#.to_owned(), error(r#""x""#)),
            (r#"{"method":"panic"}"#.to_owned(), String::new()),
            (
                r#"[{"id":1,"method":"panic"},{"method":"m"},{"id":2,"method":"m"}]"#.to_owned(),
                format!("[{},{}]", error("1"), error("2")),
            ),
        ] {
            let answer = client.post(body.clone()).await;
            assert_eq!(answer.status, StatusCode::OK, "{body}");
            assert_eq!(answer.body, wanted, "{body}");
            assert_eq!(client.post("go on").await.body, "fine");
        }
    }
    assert_eq!(panics.load(Ordering::SeqCst), 6);
    let errors = log.lines("ERROR");
    assert_eq!(errors.len(), 6, "{errors:?}");
    assert!(errors[0].contains(r#"method="panic""#), "{errors:?}");
    assert!(errors.iter().all(|line| !line.contains("secret")), "{errors:?}");
}
