//! The CL of the demo: one HTTP connection, JSON-RPC, a fresh token for each request.

use super::DemoError;
use crate::{jwt::Secret, mock_el::Http};
use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;
use std::{
    net::SocketAddr,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// HTTP version of the connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Version {
    Http1,
    H2c,
}

impl Version {
    /// One that the EL speaks; real CLs speak HTTP/1.1 where they can.
    pub(super) const fn spoken_by(http: Http) -> Self {
        match http {
            Http::H2 => Self::H2c,
            Http::H1 | Http::Both => Self::Http1,
        }
    }
}

/// One end that answers JSON-RPC.
#[derive(Debug)]
pub(super) struct Cl {
    http: Client<HttpConnector, Full<Bytes>>,
    url: String,
    secret: Secret,
}

/// One call that was answered.
#[derive(Debug)]
pub(super) struct Answered {
    /// The whole response.
    pub response: Value,
    /// Bytes of request and response bodies.
    pub bytes: usize,
    /// From the first byte sent to the last byte read.
    pub took: Duration,
}

impl Cl {
    pub(super) fn new(address: SocketAddr, secret: Secret, version: Version) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let http = Client::builder(TokioExecutor::new())
            .http2_only(matches!(version, Version::H2c))
            .http2_initial_stream_window_size(16 << 20)
            .http2_initial_connection_window_size(16 << 20)
            .build(connector);
        Self { http, url: format!("http://{address}/"), secret }
    }

    /// Sends a body and reads the answer to its last byte.
    pub(super) async fn post(&self, body: Bytes) -> Result<Answered, DemoError> {
        let iat = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let request = Request::post(&self.url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::AUTHORIZATION, format!("Bearer {}", self.secret.mint(iat)))
            .body(Full::new(body.clone()))?;
        let sent = Instant::now();
        let response = self.http.request(request).await?;
        let status = response.status();
        let answer = response.into_body().collect().await?.to_bytes();
        let took = sent.elapsed();
        if !status.is_success() {
            return Err(format!("HTTP {status}: {}", String::from_utf8_lossy(&answer)).into());
        }
        Ok(Answered {
            response: serde_json::from_slice(&answer)?,
            bytes: body.len() + answer.len(),
            took,
        })
    }
}
