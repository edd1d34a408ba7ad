//! What goes back, in pieces that need no joining.

use bytes::{BufMut, Bytes, BytesMut};

use super::error::Error;
use super::request::RawId;

/// A body to be written as its pieces stand, one after the other.
///
/// The pieces spare a copy of results of many megabytes; a transport writes them with one
/// vectored call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    segments: Vec<Bytes>,
    length: usize,
}

/// Up to here a copy is cheaper than one more piece.
const COPIED_UP_TO: usize = 4096;

const HEAD: &[u8] = br#"{"jsonrpc":"2.0","id":"#;
const RESULT: &[u8] = br#","result":"#;
const ERROR: &[u8] = br#","error":"#;

impl Reply {
    /// No body at all: what a notification, or a batch of nothing else, gets (JSON-RPC 2.0,
    /// sections 4.1 and 6).
    pub const fn empty() -> Self {
        Self { segments: Vec::new(), length: 0 }
    }

    /// `{"jsonrpc":"2.0","id":ID,"result":RESULT}`, where `result` is one JSON value. A large
    /// result is not copied.
    pub fn result(id: &RawId, result: Bytes) -> Self {
        if result.len() <= COPIED_UP_TO {
            return Self::raw(object(id, RESULT, &result));
        }
        let mut head = BytesMut::with_capacity(HEAD.len() + id.as_bytes().len() + RESULT.len());
        head.put_slice(HEAD);
        head.put_slice(id.as_bytes());
        head.put_slice(RESULT);
        let mut reply = Self::empty();
        reply.push(head.freeze());
        reply.push(result);
        reply.push(Bytes::from_static(b"}"));
        reply
    }

    /// `{"jsonrpc":"2.0","id":ID,"error":{"code":…,"message":…}}`, with `data` when the error has
    /// any.
    pub fn error(id: &RawId, error: &Error) -> Self {
        // A code, a string and JSON text always have a JSON form.
        let text = serde_json::to_vec(error)
            .unwrap_or_else(|_| br#"{"code":-32603,"message":"Internal error"}"#.to_vec());
        Self::raw(object(id, ERROR, &text))
    }

    /// A response as the EL wrote it, untouched.
    pub fn raw(response: Bytes) -> Self {
        let mut reply = Self::empty();
        reply.push(response);
        reply
    }

    /// `[A,B,C]` of the replies that are not empty; empty when all are.
    pub fn batch(replies: Vec<Self>) -> Self {
        let mut batch = Self::empty();
        for reply in replies.into_iter().filter(|reply| !reply.is_empty()) {
            let before = if batch.is_empty() { b"[" } else { b"," };
            batch.push(Bytes::from_static(before));
            reply.segments.into_iter().for_each(|segment| batch.push(segment));
        }
        if !batch.is_empty() {
            batch.push(Bytes::from_static(b"]"));
        }
        batch
    }

    /// The pieces in order; none is empty.
    pub fn segments(&self) -> &[Bytes] {
        &self.segments
    }

    /// The pieces in order, taken out.
    pub fn into_segments(self) -> Vec<Bytes> {
        self.segments
    }

    /// The length of all pieces in bytes.
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether there is no body.
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The pieces joined: a copy, unless there is only one.
    pub fn to_bytes(&self) -> Bytes {
        match self.segments.as_slice() {
            [only] => only.clone(),
            segments => segments.concat().into(),
        }
    }

    fn push(&mut self, segment: Bytes) {
        if !segment.is_empty() {
            self.length += segment.len();
            self.segments.push(segment);
        }
    }
}

/// A response object in one piece.
fn object(id: &RawId, name: &[u8], value: &[u8]) -> Bytes {
    let parts = [HEAD, id.as_bytes(), name, value, b"}"];
    let mut object = BytesMut::with_capacity(parts.iter().map(|part| part.len()).sum());
    parts.into_iter().for_each(|part| object.put_slice(part));
    object.freeze()
}
