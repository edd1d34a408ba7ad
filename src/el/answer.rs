//! Reading an answer to its end, within bounds.

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, Response};
use http_body::Body;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::error::{Failure, Phase};

/// What the EL answered, body and all.
pub type Answer = Response<Bytes>;

/// The most that is set aside on the word of a `Content-Length`.
const MAX_PREALLOCATION: usize = 64 << 20;

/// Reads the body. Whatever it is, it is counted against `limit` as it comes in.
pub(super) async fn read(response: Response<Incoming>, limit: usize) -> Result<Answer, Failure> {
    let (head, body) = response.into_parts();
    refuse_encoding(&head.headers)?;
    let body = collect(body, limit).await?;
    Ok(Response::from_parts(head, body))
}

/// None was asked for, and compressed bytes must never be taken for SSZ.
fn refuse_encoding(headers: &HeaderMap) -> Result<(), Failure> {
    for encoding in headers.get_all(CONTENT_ENCODING) {
        if !encoding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity") {
            let name: String =
                String::from_utf8_lossy(encoding.as_bytes()).chars().take(32).collect();
            return Err(Failure::bad_answer(format!("it is encoded as `{name}` unasked")));
        }
    }
    Ok(())
}

async fn collect(mut body: Incoming, limit: usize) -> Result<Bytes, Failure> {
    let promised = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if promised > limit {
        return Err(Failure::too_large(limit));
    }
    let mut received: usize = 0;
    // A body that comes in one piece is passed on without a copy.
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Failure::exchange(Phase::InAnswer, error.into()))?;
        let Ok(data) = frame.into_data() else { continue };
        received = received.saturating_add(data.len());
        if received > limit {
            return Err(Failure::too_large(limit));
        }
        if received == data.len() {
            first = data;
            continue;
        }
        if whole.is_empty() {
            whole.reserve(promised.min(MAX_PREALLOCATION).max(received));
            whole.extend_from_slice(&first);
        }
        whole.extend_from_slice(&data);
    }
    Ok(if whole.is_empty() { first } else { whole.freeze() })
}
