//! One call of the handler, and the errors that are said in its place.

use std::panic::AssertUnwindSafe;

use bytes::Bytes;
use futures_util::FutureExt;
use http::Response;

use super::{Call, Handler, Outcome, Passage, StreamedBody};
use crate::jsonrpc::{self, Code, Incoming, RawId, Reply};

/// How much of a method's name goes into the log: it may be any text of the CL.
const NAME_SHOWN: usize = 64;

/// Has the handler serve a call. One that panics costs its own call only, which is answered all the
/// same.
pub(super) async fn attempt<H: Handler>(handler: H, call: Call<H::Place>) -> Outcome {
    let body = call.body.clone();
    // Not called before it is caught: a panic may as well come from making the future.
    let served = AssertUnwindSafe(async { handler.call(call).await }).catch_unwind().await;
    served.unwrap_or_else(|_| {
        let method = method_of(&body);
        tracing::error!(
            method,
            "a call ended without an answer: a fault of the sidecar, please report it"
        );
        handler.panicked();
        Outcome::Json(errors(&body, "internal error".to_owned()))
    })
}

/// Has the handler pass on a request of REST-SSZ; `None` if it panics.
pub(super) async fn pass<H: Handler>(
    handler: H,
    passage: Passage<H::Place>,
) -> Option<Response<StreamedBody>> {
    let passed = AssertUnwindSafe(async { handler.pass(passage).await }).catch_unwind().await;
    if passed.is_err() {
        tracing::error!(
            "a request passed on ended without an answer: a fault of the sidecar, please report it"
        );
        handler.panicked();
    }
    passed.ok()
}

/// `-32603` for everybody in `body` who waits for an answer.
pub(super) fn errors(body: &Bytes, text: String) -> Reply {
    let error = jsonrpc::Error::new(Code::INTERNAL, text);
    let of = |id: Option<&RawId>| id.map_or_else(Reply::empty, |id| Reply::error(id, &error));
    match jsonrpc::parse(body) {
        Ok(Incoming::Single(request)) => of(id_of(&request)),
        Ok(Incoming::Batch(requests)) => {
            Reply::batch(requests.iter().map(|request| of(id_of(request))).collect())
        }
        Err(error) => Reply::error(&RawId::null(), &error),
    }
}

fn id_of(request: &Result<jsonrpc::Request, jsonrpc::Invalid>) -> Option<&RawId> {
    match request {
        Ok(request) => request.id.as_ref(),
        Err(invalid) => Some(&invalid.id),
    }
}

/// The method's name for the log; nothing else of a body is ever written there.
fn method_of(body: &Bytes) -> String {
    match jsonrpc::parse(body) {
        Ok(Incoming::Single(Ok(request))) => request
            .method
            .as_str()
            .chars()
            .take(NAME_SHOWN)
            .flat_map(char::escape_default)
            .collect(),
        Ok(Incoming::Batch(_)) => "(batch)".to_owned(),
        Ok(Incoming::Single(Err(_))) | Err(_) => "(none)".to_owned(),
    }
}
