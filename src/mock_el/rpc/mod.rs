//! The JSON-RPC surface: envelopes here, methods in [`engine`] and [`eth`].

mod engine;
mod eth;
mod params;

use std::{
    borrow::Cow,
    sync::{Mutex, MutexGuard, PoisonError},
};

use alloy_primitives::B256;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::{chain::Chain, error::EngineError, faults::Operation};
use params::Params;

/// A request body, read as far as its envelopes.
pub(super) enum Message<'a> {
    Single(Item<'a>),
    Batch(Vec<Item<'a>>),
    /// Not JSON, or an empty batch.
    Unreadable(RpcError),
}

/// One element of a message.
pub(super) enum Item<'a> {
    Call(Call<'a>),
    /// JSON, but no request; answered with this id.
    Malformed(Option<&'a RawValue>),
}

/// A well-formed request; without an id it is a notification.
pub(super) struct Call<'a> {
    id: Option<&'a RawValue>,
    method: Cow<'a, str>,
    params: Option<&'a RawValue>,
}

/// An error object (common.md, "Errors"). `data` is always absent, which reads as null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct RpcError {
    code: i64,
    message: String,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<Cow<'a, str>>,
    /// `"id": null` is an id too, so this must tell null from absent.
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct IdOnly<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> Message<'a> {
    pub(super) fn parse(body: &'a [u8]) -> Self {
        let whole: &RawValue = match serde_json::from_slice(body) {
            Ok(whole) => whole,
            Err(_) => return Self::Unreadable(RpcError::new(-32700, "Parse error")),
        };
        if !whole.get().starts_with('[') {
            return Self::Single(Item::parse(whole));
        }
        match serde_json::from_str::<Vec<&RawValue>>(whole.get()) {
            Ok(items) if !items.is_empty() => {
                Self::Batch(items.into_iter().map(Item::parse).collect())
            }
            _ => Self::Unreadable(RpcError::invalid_request()),
        }
    }

    /// The response body; empty if the message held notifications only.
    pub(super) fn answer(&self, chain: &Mutex<Chain>) -> Vec<u8> {
        match self {
            Self::Unreadable(error) => respond(None, &Err(error.clone())),
            Self::Single(item) => item.answer(chain).unwrap_or_default(),
            Self::Batch(items) => {
                let answers: Vec<_> = items.iter().filter_map(|item| item.answer(chain)).collect();
                if answers.is_empty() {
                    return Vec::new();
                }
                let mut batch = vec![b'['];
                batch.extend(answers.join(&b','));
                batch.push(b']');
                batch
            }
        }
    }
}

impl<'a> Item<'a> {
    fn parse(item: &'a RawValue) -> Self {
        match serde_json::from_str::<Envelope<'a>>(item.get()) {
            Ok(Envelope { jsonrpc, id, method, params }) if jsonrpc.as_deref() == Some("2.0") => {
                Self::Call(Call { id, method, params })
            }
            Ok(Envelope { id, .. }) => Self::Malformed(id),
            Err(_) => {
                let id = serde_json::from_str::<IdOnly<'a>>(item.get()).ok();
                Self::Malformed(id.and_then(|only| only.id))
            }
        }
    }

    pub(super) fn method(&self) -> Option<&str> {
        match self {
            Self::Call(call) => Some(&call.method),
            Self::Malformed(_) => None,
        }
    }

    fn answer(&self, chain: &Mutex<Chain>) -> Option<Vec<u8>> {
        match self {
            Self::Malformed(id) => Some(respond(*id, &Err(RpcError::invalid_request()))),
            Self::Call(call) => {
                let result = call.run(chain);
                call.id.map(|id| respond(Some(id), &result))
            }
        }
    }
}

impl Call<'_> {
    fn run(&self, chain: &Mutex<Chain>) -> Result<String, RpcError> {
        let params = Params::parse(self.params)?;
        let mut chain: MutexGuard<'_, Chain> = chain.lock().unwrap_or_else(PoisonError::into_inner);
        match engine::Method::named(&self.method) {
            Some(method) => method.run(&mut chain, &params),
            None => eth::run(&self.method, &chain, &params),
        }
    }
}

/// The block a message's only or first call is about: that of the payload, or the head of the
/// forkchoice state.
pub(super) fn block_hash(operation: Operation, body: &[u8]) -> Option<B256> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Hashes {
        block_hash: Option<B256>,
        head_block_hash: Option<B256>,
    }
    let message = Message::parse(body);
    let call = match &message {
        Message::Single(Item::Call(call)) => call,
        Message::Batch(items) => items.iter().find_map(|item| match item {
            Item::Call(call) => Some(call),
            Item::Malformed(_) => None,
        })?,
        _ => return None,
    };
    let params: Vec<&RawValue> = serde_json::from_str(call.params?.get()).ok()?;
    let hashes: Hashes = serde_json::from_str(params.first()?.get()).ok()?;
    match operation {
        Operation::NewPayload => hashes.block_hash,
        Operation::ForkchoiceUpdated => hashes.head_block_hash,
        _ => None,
    }
}

/// A response object, keys in the order of the JSON-RPC specification, the id as it came.
fn respond(id: Option<&RawValue>, result: &Result<String, RpcError>) -> Vec<u8> {
    let id = id.map_or("null", RawValue::get);
    let (member, value) = match result {
        Ok(result) => ("result", Cow::Borrowed(result.as_str())),
        // An integer and a string always serialize.
        Err(error) => ("error", Cow::Owned(serde_json::to_string(error).unwrap_or_default())),
    };
    let mut response = Vec::with_capacity(value.len() + id.len() + 48);
    for part in [r#"{"jsonrpc":"2.0","id":"#, id, r#",""#, member, r#"":"#, &value, "}"] {
        response.extend_from_slice(part.as_bytes());
    }
    response
}

impl RpcError {
    fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    fn invalid_request() -> Self {
        Self::new(-32600, "Invalid Request")
    }

    fn unknown_method(method: &str) -> Self {
        Self::new(-32601, format!("Method not found: {method}"))
    }

    fn invalid_params(detail: impl std::fmt::Display) -> Self {
        Self::new(-32602, format!("Invalid params: {detail}"))
    }
}

impl From<EngineError> for RpcError {
    fn from(error: EngineError) -> Self {
        match &error {
            EngineError::UnknownPayload => Self::new(-38001, "Unknown payload"),
            EngineError::InvalidForkchoice(detail) => {
                Self::new(-38002, format!("Invalid forkchoice state: {detail}"))
            }
            EngineError::InvalidAttributes(detail) => {
                Self::new(-38003, format!("Invalid payload attributes: {detail}"))
            }
            EngineError::TooLarge { .. } => {
                Self::new(-38004, format!("Too large request: {error}"))
            }
            EngineError::UnsupportedFork(detail) => {
                Self::new(-38005, format!("Unsupported fork: {detail}"))
            }
            EngineError::ReorgTooDeep(detail) => {
                Self::new(-38006, format!("Too deep reorg: {detail}"))
            }
            EngineError::InvalidParams(detail) => Self::invalid_params(detail),
        }
    }
}

/// The JSON text of a result.
fn json(value: &impl Serialize) -> Result<String, RpcError> {
    serde_json::to_string(value).map_err(|error| RpcError::new(-32603, error.to_string()))
}
