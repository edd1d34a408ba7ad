//! A CL that the tools play: JSON-RPC over HTTP, a fresh token for each request.

use crate::{jwt::Secret, mock_el::Http};
use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;
use std::{
    error::Error,
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

/// A call that got no answer that could be read to its end.
type Unanswered = Box<dyn Error + Send + Sync>;

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

    /// Sends a body and reads the answer to its last byte, whatever its status.
    pub(super) async fn exchange(&self, body: Bytes) -> Result<(StatusCode, Bytes), Unanswered> {
        let request = Request::post(&self.url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::AUTHORIZATION, bearer(&self.secret)?)
            .body(Full::new(body))?;
        let response = self.http.request(request).await?;
        let status = response.status();
        Ok((status, response.into_body().collect().await?.to_bytes()))
    }

    /// Sends a body and reads the JSON that is the answer.
    pub(super) async fn post(&self, body: Bytes) -> Result<Answered, Unanswered> {
        let asked = body.len();
        let sent = Instant::now();
        let (status, answer) = self.exchange(body).await?;
        let took = sent.elapsed();
        if !status.is_success() {
            return Err(format!("HTTP {status}: {}", String::from_utf8_lossy(&answer)).into());
        }
        Ok(Answered {
            response: serde_json::from_slice(&answer)?,
            bytes: asked + answer.len(),
            took,
        })
    }
}

/// The value of an `Authorization` header with a token of now.
pub(super) fn bearer(secret: &Secret) -> Result<String, Unanswered> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    Ok(format!("Bearer {}", secret.mint(now)))
}
