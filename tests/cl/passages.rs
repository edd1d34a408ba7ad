//! Requests under `/engine/`, as the handler gets them.

use std::time::Duration;

use bytes::Bytes;
use engine_ssz_proxy::cl::{
    Auth, Bounds, Call, Config, Handler, Outcome, Passage, Server, StreamedBody,
};
use futures_util::StreamExt;
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{checking, open, soon};

const MOMENT: Duration = Duration::from_millis(1);

/// Gives a body back once it is whole; what is not, is its own fault.
#[derive(Clone)]
struct Echo;

impl Handler for Echo {
    type Place = ();

    async fn call(&self, call: Call) -> Outcome {
        Outcome::Status(StatusCode::IM_A_TEAPOT, call.body)
    }

    async fn pass(&self, passage: Passage) -> Response<StreamedBody> {
        assert_ne!(passage.request.uri().path(), "/engine/v1/panic");
        let read = passage.request.into_body().collect().await;
        let status = if read.is_ok() { StatusCode::OK } else { StatusCode::BAD_GATEWAY };
        let body = read.map(|body| body.to_bytes()).unwrap_or_default();
        let body = StreamedBody::new(Full::<Bytes>::new(body).map_err(|never| match never {}));
        let mut response = Response::new(body);
        *response.status_mut() = status;
        response
    }
}

async fn served(config: Config) -> String {
    let server = Server::bind(std::net::SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let place = server.place().to_string();
    tokio::spawn(server.serve(config, Echo, std::future::pending()));
    place
}

/// All that comes back for these bytes, to the end of the connection.
async fn said(place: &str, bytes: &str) -> String {
    let mut connection = TcpStream::connect(place).await.unwrap();
    connection.write_all(bytes.as_bytes()).await.unwrap();
    let mut said = String::new();
    soon(connection.read_to_string(&mut said)).await.unwrap();
    said
}

/// The door's own refusals are in the language of the CL that speaks REST-SSZ.
fn assert_problem(answer: &str, status: u16, kind: &str, detail: &str) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    assert!(head.contains("content-type: application/problem+json\r\n"), "{answer}");
    let problem: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(problem["type"], kind, "{answer}");
    assert!(problem["detail"].as_str().unwrap().contains(detail), "{answer}");
}

const HEAD: &str = "POST /engine/v1/payloads HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n";

#[tokio::test]
async fn a_body_that_stalls_on_its_way_through_is_400() {
    let place = served(Config { body_timeout: MOMENT, ..open() }).await;
    let answer = said(&place, &format!("{HEAD}\r\nhalf")).await;
    assert_problem(&answer, 400, "about:blank", "body timed out");
    assert!(answer.contains("connection: close"), "{answer}");
}

#[tokio::test]
async fn a_body_that_is_whole_is_the_handlers_alone() {
    let place = served(Config::new(Auth::Forward)).await;
    let answer = said(&place, &format!("{HEAD}connection: close\r\n\r\nall of it")).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("all of it"), "{answer}");
}

#[tokio::test]
async fn no_continue_is_sent_for_a_body_over_the_limit() {
    let place = served(Config { body_limit: 8, ..open() }).await;
    let answer = said(&place, &format!("{HEAD}expect: 100-continue\r\n\r\n")).await;
    assert_problem(&answer, 413, "/engine-api/errors/request-too-large", "body too large");
}

#[tokio::test]
async fn a_websocket_without_a_sign_of_life_is_dropped() {
    let place = served(Config { head_timeout: 50 * MOMENT, ..open() }).await;
    let url = format!("ws://{place}/");
    // On a busy machine the handshake itself may come too late.
    let mut socket = loop {
        if let Ok((socket, _)) = tokio_tungstenite::connect_async(&url).await {
            break socket;
        }
    };
    assert!(!matches!(soon(socket.next()).await, Some(Ok(_))));
}

#[tokio::test]
async fn a_request_that_there_is_no_room_for_is_told_so_at_once() {
    let bounds = Bounds { calls: 0, patience: Duration::ZERO, ..open().bounds };
    let place = served(Config { bounds, ..open() }).await;
    let answer = said(&place, &format!("{HEAD}\r\n")).await;
    assert_problem(&answer, 503, "about:blank", "--max-calls");
}

#[tokio::test]
async fn a_token_that_is_refused_and_a_fault_are_problems_too() {
    let place = served(checking()).await;
    let answer = said(&place, &format!("{HEAD}\r\n")).await;
    assert_problem(&answer, 401, "about:blank", "missing bearer token");
    let place = served(open()).await;
    let head = "GET /engine/v1/panic HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let answer = said(&place, head).await;
    assert_problem(&answer, 500, "/engine-api/errors/internal", "internal error");
}
