//! A CL's side of the conversation.

use alloy_primitives::B256;
use alloy_rpc_types_engine::{Claims, JwtSecret};
use bytes::Bytes;
use engine_ssz_proxy::mock_el::{Config, Genesis, Http, MockEl, Surface};
use http::{HeaderMap, Method, Request, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, Error, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};

pub const SSZ: &str = "application/octet-stream";

/// An EL on a free port of the loopback interface, with the built-in genesis and no secret.
pub fn config() -> Config {
    Config {
        listen: ([127, 0, 0, 1], 0).into(),
        jwt_secret: None,
        genesis: Genesis::built_in(),
        surface: Surface::RestAndJson,
        http: Http::Both,
    }
}

pub async fn start(config: Config) -> MockEl {
    MockEl::start(config).await.expect("a free port")
}

pub struct Answer {
    pub status: StatusCode,
    pub version: Version,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub fn content_type(&self) -> Option<&str> {
        self.headers.get("content-type").map(|value| value.to_str().unwrap())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }

    /// The status and the last segment of the problem type.
    pub fn problem(&self) -> (u16, String) {
        assert_eq!(self.content_type(), Some("application/problem+json"), "{:?}", self.body);
        let document = self.json();
        let kind = document["type"].as_str().expect("a type");
        let name = kind.strip_prefix("/engine-api/errors/").expect("a relative reference");
        let known = |key: &String| key == "type" || key == "detail";
        assert!(document.as_object().unwrap().keys().all(known), "{document}");
        (self.status.as_u16(), name.to_owned())
    }
}

/// A client of one EL over one version of HTTP.
#[derive(Clone)]
pub struct Peer {
    pub client: Client<HttpConnector, Full<Bytes>>,
    pub origin: String,
    pub bearer: Option<String>,
}

impl Peer {
    pub fn h1(el: &MockEl) -> Self {
        Self::over(el, Client::builder(TokioExecutor::new()).build_http())
    }

    pub fn h2(el: &MockEl) -> Self {
        Self::over(el, Client::builder(TokioExecutor::new()).http2_only(true).build_http())
    }

    fn over(el: &MockEl, client: Client<HttpConnector, Full<Bytes>>) -> Self {
        Self { client, origin: format!("http://{}", el.addr()), bearer: None }
    }

    pub fn signing(mut self, secret: &JwtSecret) -> Self {
        let token = secret.encode(&Claims::with_current_timestamp()).unwrap();
        self.bearer = Some(format!("Bearer {token}"));
        self
    }

    pub async fn send(
        &self,
        verb: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer, Error> {
        let mut request = Request::builder().method(verb).uri(format!("{}{path}", self.origin));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(bearer) = &self.bearer {
            request = request.header("authorization", bearer);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let response = self.client.request(request).await?;
        let (parts, body) = response.into_parts();
        Ok(Answer {
            status: parts.status,
            version: parts.version,
            headers: parts.headers,
            body: body.collect().await.expect("a whole body").to_bytes(),
        })
    }

    pub async fn get(&self, path: &str, fork: &str) -> Answer {
        let headers = [("eth-execution-version", fork)];
        self.send(Method::GET, path, &headers, "").await.unwrap()
    }

    /// A POST of SSZ under a fork.
    pub async fn post(&self, path: &str, fork: &str, body: impl Into<Bytes>) -> Answer {
        let headers = [("eth-execution-version", fork), ("content-type", SSZ)];
        self.send(Method::POST, path, &headers, body).await.unwrap()
    }

    /// A POST to the JSON-RPC endpoint.
    pub async fn text(&self, body: impl Into<Bytes>) -> Answer {
        let headers = [("content-type", "application/json")];
        self.send(Method::POST, "/", &headers, body).await.unwrap()
    }

    /// A whole JSON-RPC response.
    pub async fn call(&self, method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = self.text(request.to_string()).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.content_type(), Some("application/json"));
        answer.json()
    }

    pub async fn result(&self, method: &str, params: Value) -> Value {
        let mut response = self.call(method, params).await;
        assert_eq!(response.get("error"), None, "{method}");
        response["result"].take()
    }

    pub async fn error_code(&self, method: &str, params: Value) -> i64 {
        let response = self.call(method, params).await;
        response["error"]["code"].as_i64().unwrap_or_else(|| panic!("{method}: {response}"))
    }
}

pub fn hash(value: &Value) -> B256 {
    serde_json::from_value(value.clone()).expect("a hash")
}
