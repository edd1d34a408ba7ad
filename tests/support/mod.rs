//! Peers for tests of the whole sidecar: a mock EL and a sidecar in front of it, and a CL's HTTP client.

#![allow(dead_code, reason = "each test program uses a part of it")]

pub mod scripted_el;

use bytes::Bytes;
use engine_ssz_proxy::{
    config::{Number, Settings},
    mock_el::{Config, Genesis, Http, Surface},
    serve::Sidecar,
};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;
use std::net::SocketAddr;

/// A free loopback port.
pub fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// What the mock EL is like.
pub fn mock_config(surface: Surface, http: Http) -> Config {
    Config { listen: any_port(), jwt_secret: None, genesis: Genesis::built_in(), surface, http }
}

/// Settings of a sidecar on a free port in front of that address.
pub fn settings(el: SocketAddr) -> Settings {
    Settings {
        execution_endpoint: Some(format!("http://{el}")),
        listen_port: Some(Number::Integer(0)),
        ..Settings::default()
    }
}

/// A sidecar that has found its EL.
///
/// Without a secret the sidecar borrows a CL's bearer for its probes, so one is shown to it.
pub async fn sidecar(settings: Settings) -> Sidecar {
    let sidecar = Sidecar::start(settings.check().unwrap()).await.unwrap();
    let answer = post(sidecar.address(), r#"{"jsonrpc":"2.0","id":0,"method":"eth_chainId"}"#);
    assert_eq!(answer.await.status, StatusCode::OK);
    sidecar.el_found().await;
    sidecar
}

/// A sidecar with a secret, which finds its EL without a CL.
pub async fn sidecar_of_secret(mut settings: Settings, secret: &str) -> Sidecar {
    settings.jwt_secret = Some(secret.to_owned().into());
    let sidecar = Sidecar::start(settings.check().unwrap()).await.unwrap();
    sidecar.el_found().await;
    sidecar
}

/// An answer of an HTTP server.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }
}

/// Posts a body as a CL does: HTTP/1.1, `/`, a bearer.
pub async fn post(address: SocketAddr, body: impl Into<Bytes>) -> Answer {
    post_with(address, "Bearer any.token.will-do".to_owned(), body).await
}

/// The same with a bearer of one's own.
pub async fn post_with(
    address: SocketAddr,
    authorization: String,
    body: impl Into<Bytes>,
) -> Answer {
    let request = Request::post(format!("http://{address}/"))
        .header("content-type", "application/json")
        .header("authorization", authorization)
        .body(Full::new(body.into()))
        .unwrap();
    let client: Client<HttpConnector, Full<Bytes>> =
        Client::builder(TokioExecutor::new()).build_http();
    let response = client.request(request).await.unwrap();
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer { status: head.status, headers: head.headers, body }
}
