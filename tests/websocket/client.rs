//! The CL's end of a WebSocket.

use bytes::Bytes;
use engine_ssz_proxy::serve::Sidecar;
use futures_util::{SinkExt, StreamExt};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async_with_config,
    tungstenite::{
        Error, Message,
        client::IntoClientRequest,
        protocol::{WebSocketConfig, frame::coding::CloseCode},
    },
};

pub fn call(id: impl Into<Value>, method: &str, params: Value) -> Value {
    // In this order, so that a script can tell by the end of it.
    let id: Value = id.into();
    serde_json::from_str(&format!(
        r#"{{"id":{id},"jsonrpc":"2.0","method":"{method}","params":{params}}}"#
    ))
    .unwrap()
}

pub fn forkchoice(id: u64, head: &str) -> Value {
    let zero = format!("0x{:064x}", 0);
    let state = json!({
        "headBlockHash": head, "safeBlockHash": zero, "finalizedBlockHash": zero
    });
    call(id, "engine_forkchoiceUpdatedV3", json!([state, null]))
}

#[derive(Debug)]
pub struct Socket(pub WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    pub async fn open(sidecar: &Sidecar) -> Self {
        let bearer = "Bearer any.token.will-do".to_owned();
        Self::open_as(sidecar, Some(bearer)).await.unwrap()
    }

    /// The status, when it is not opened.
    pub async fn open_as(
        sidecar: &Sidecar,
        authorization: Option<String>,
    ) -> Result<Self, StatusCode> {
        let mut request = format!("ws://{}/", sidecar.address()).into_client_request().unwrap();
        if let Some(authorization) = authorization {
            request.headers_mut().insert("authorization", authorization.parse().unwrap());
        }
        let limits = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        match connect_async_with_config(request, Some(limits), true).await {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(Error::Http(response)) => Err(response.status()),
            Err(error) => panic!("{error}"),
        }
    }

    pub async fn send(&mut self, request: Value) {
        self.0.send(Message::text(request.to_string())).await.unwrap();
    }

    pub async fn feed(&mut self, request: Value) {
        self.0.feed(Message::text(request.to_string())).await.unwrap();
    }

    pub async fn flush(&mut self) {
        self.0.flush().await.unwrap();
    }

    pub async fn binary(&mut self, bytes: impl Into<Bytes>) {
        self.0.send(Message::binary(bytes)).await.unwrap();
    }

    /// The next answer.
    pub async fn json(&mut self) -> Value {
        match self.0.next().await {
            Some(Ok(Message::Text(text))) => serde_json::from_str(&text).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// How the other side says goodbye. Nothing may come after it.
    pub async fn closed(&mut self) -> CloseCode {
        let code = match self.0.next().await {
            Some(Ok(Message::Close(Some(frame)))) => frame.code,
            other => panic!("{other:?}"),
        };
        assert!(self.0.next().await.is_none());
        code
    }
}
