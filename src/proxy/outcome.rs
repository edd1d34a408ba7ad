//! What the CL gets.

use crate::{
    cl::Outcome,
    el,
    engine::{Answer, RelayReason},
    jsonrpc::{self, Code, Error, Incoming, Invalid, RawId, Reply, Request},
};
use bytes::Bytes;
use http::StatusCode;
use serde::de::IgnoredAny;

/// What came of asking the EL's JSON-RPC.
#[derive(Debug)]
pub(super) enum Relayed {
    /// Its answer, not looked into yet.
    Answer(StatusCode, Bytes),
    /// The token was refused.
    Refused(StatusCode, Bytes),
    /// There is no JSON-RPC at that address.
    NoJsonRpc,
}

/// Who waits for an answer: a call, or the calls of a batch. A notification waits for none.
#[derive(Clone, Debug)]
pub(super) enum Whom<'a> {
    Single(Option<&'a RawId>),
    Batch(Vec<&'a RawId>),
}

impl Relayed {
    /// Reads the EL's answer as far as it must be known what it is.
    pub(super) fn of(answer: el::Answer) -> Self {
        match answer.status() {
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                Self::Refused(status, answer.into_body())
            }
            _ if el::denies_json_rpc(&answer) => Self::NoJsonRpc,
            status => Self::Answer(status, answer.into_body()),
        }
    }
}

/// The end of a call that was not relayed.
pub(super) fn of_answer(answer: Answer, whom: Whom<'_>) -> Outcome {
    match (answer, whom) {
        (Answer::Refused(status), _) => {
            Outcome::Status(status, Bytes::from_static(b"the execution client refused the token"))
        }
        (Answer::Error(error), whom) => of_error(&error, whom),
        (Answer::Result(result), Whom::Single(Some(id))) => {
            Outcome::Json(Reply::result(id, result))
        }
        (Answer::Result(_), _) => Outcome::Json(Reply::empty()),
    }
}

/// The end of a call that was relayed, for that reason if there is one beside its method.
pub(super) fn of_relayed(
    relayed: Result<Relayed, el::ElError>,
    whom: Whom<'_>,
    reason: Option<&RelayReason>,
) -> Outcome {
    match relayed {
        Ok(Relayed::Answer(status, body)) => of_json_rpc(status, body, whom),
        Ok(Relayed::Refused(status, text)) => Outcome::Status(status, text),
        Ok(Relayed::NoJsonRpc) => {
            let reason = reason.unwrap_or(&RelayReason::NotTranslated);
            of_error(&reason.without_json_rpc(), whom)
        }
        Err(error) => of_el_error(&error, whom),
    }
}

/// The EL's own JSON-RPC answer, untouched if it is one for that call. Real ELs and what stands in
/// front of them also answer errors without the id, other JSON, or half of it.
pub(super) fn of_json_rpc(status: StatusCode, body: Bytes, whom: Whom<'_>) -> Outcome {
    let id = match &whom {
        Whom::Single(Some(id)) => *id,
        Whom::Single(None) => return Outcome::Json(Reply::empty()),
        Whom::Batch(_) => {
            let is_whole = serde_json::from_slice::<IgnoredAny>(&body).is_ok();
            return match body.trim_ascii_start().first() {
                Some(b'[' | b'{') if is_whole => Outcome::Json(Reply::raw(body)),
                _ => of_error(&unreadable(status), whom),
            };
        }
    };
    let Some(answer) = jsonrpc::answer_of(&body) else {
        return of_error(&unreadable(status), whom);
    };
    if answer.id == Some(id.as_bytes()) {
        return Outcome::Json(Reply::raw(body));
    }
    match (answer.verdict.result(), answer.verdict.error()) {
        (Some(result), _) => Outcome::Json(Reply::result(id, body.slice_ref(result))),
        (None, Some(error)) => of_error(&error, whom),
        (None, None) => of_error(&unreadable(status), whom),
    }
}

/// The end of a call that the EL did not answer.
pub(super) fn of_el_error(error: &el::ElError, whom: Whom<'_>) -> Outcome {
    of_error(&Error::new(Code::INTERNAL, error.to_string()), whom)
}

/// The end of everything in a request of which nothing was begun.
pub(super) fn of_untried(incoming: Incoming, error: &el::ElError) -> Outcome {
    let error = Error::new(Code::INTERNAL, error.to_string());
    let reply = |item: Result<Request, Invalid>| match item {
        Ok(Request { id: Some(id), .. }) => Reply::error(&id, &error),
        Ok(_) => Reply::empty(),
        Err(invalid) => Reply::error(&invalid.id, &invalid.error),
    };
    Outcome::Json(match incoming {
        Incoming::Single(item) => reply(item),
        Incoming::Batch(items) => Reply::batch(items.into_iter().map(reply).collect()),
    })
}

fn of_error(error: &Error, whom: Whom<'_>) -> Outcome {
    Outcome::Json(match whom {
        Whom::Single(Some(id)) => Reply::error(id, error),
        Whom::Single(None) => Reply::empty(),
        Whom::Batch(ids) => {
            Reply::batch(ids.into_iter().map(|id| Reply::error(id, error)).collect())
        }
    })
}

/// A refused token within a batch whose earlier calls were carried out.
pub(super) fn of_status(status: StatusCode, id: Option<&RawId>) -> Reply {
    let message = format!("the execution client refused the token: {status}");
    match id {
        Some(id) => Reply::error(id, &Error::new(Code::INTERNAL, message)),
        None => Reply::empty(),
    }
}

fn unreadable(status: StatusCode) -> Error {
    let message = format!("the execution client answered {status} without a JSON-RPC response");
    Error::new(Code::INTERNAL, message)
}

/// The raw `result` of the EL's JSON-RPC answer.
pub(super) fn result_of(body: &Bytes) -> Option<Bytes> {
    let answer = jsonrpc::answer_of(body)?;
    answer.verdict.result().map(|result| body.slice_ref(result))
}
