//! An EL whose bodies are streamed, and a CL that streams its own.

use crate::support::{
    any_port,
    scripted_el::{CAPABILITIES, answer, json},
};
use axum::{Router, body::Body, extract::Request, response::Response};
use bytes::Bytes;
use engine_ssz_proxy::serve::Sidecar;
use http::{Method, Version};
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::body::Frame;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use std::{convert::Infallible, net::SocketAddr};
use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle};

/// An EL that gives the test each request with its body still to come.
pub struct StreamingEl {
    pub address: SocketAddr,
    server: JoinHandle<()>,
}

impl Drop for StreamingEl {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl StreamingEl {
    pub async fn start<S, F>(script: S) -> Self
    where
        S: Fn(Request) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response> + Send,
    {
        Self::offering(json(CAPABILITIES), script).await
    }

    /// Answers the sidecar's own question with `offer`.
    pub async fn offering<S, F>(offer: Response, script: S) -> Self
    where
        S: Fn(Request) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response> + Send,
    {
        let listener = TcpListener::bind(any_port()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (head, body) = offer.into_parts();
        let offer = (head, body.collect().await.unwrap().to_bytes());
        let app = Router::new().fallback(move |request: Request| {
            let (script, (head, body)) = (script.clone(), offer.clone());
            async move {
                match request.uri().path() {
                    "/engine/v1/capabilities" => Response::from_parts(head, Body::from(body)),
                    "/" if request.method() == Method::GET => answer(405, "text/plain", ""),
                    "/" => echoed(request).await,
                    _ => script(request).await,
                }
            }
        });
        let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, server }
    }
}

/// Any call over JSON-RPC gets its own body back.
async fn echoed(request: Request) -> Response {
    json(request.into_body().collect().await.unwrap().to_bytes())
}

pub type Outgoing = BoxBody<Bytes, Infallible>;

pub fn whole(body: impl Into<Bytes>) -> Outgoing {
    Full::new(body.into()).boxed()
}

/// A body that comes as it is fed and ends when its feeder is dropped.
pub fn fed() -> (mpsc::UnboundedSender<Bytes>, Outgoing) {
    let (feeder, mut fed) = mpsc::unbounded_channel::<Bytes>();
    let stream = futures_util::stream::poll_fn(move |cx| {
        fed.poll_recv(cx).map(|data| data.map(|data| Ok(Frame::data(data))))
    });
    (feeder, BodyExt::boxed(StreamBody::new(stream)))
}

pub fn http_client(version: Version) -> Client<HttpConnector, Outgoing> {
    Client::builder(TokioExecutor::new()).http2_only(version == Version::HTTP_2).build_http()
}

pub const BOTH: [Version; 2] = [Version::HTTP_11, Version::HTTP_2];

pub fn request(sidecar: &Sidecar, verb: Method, path: &str, body: Outgoing) -> Request<Outgoing> {
    Request::builder()
        .method(verb)
        .uri(format!("http://{}{path}", sidecar.address()))
        .header("authorization", "Bearer any.token.will-do")
        .body(body)
        .unwrap()
}
