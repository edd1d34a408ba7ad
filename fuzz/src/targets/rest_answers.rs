//! Any bytes as an EL's answers over REST to a call of any method, one after the other.
//!
//! The first byte chooses the method. An answer is a byte that tells how it comes, two bytes of the
//! length of its body, and the body.

use bytes::Bytes;
use engine_ssz_proxy::engine::{Answer, Method, Said, Step};
use engine_ssz_proxy::wire::{member_to_json, schema, to_json};
use http::{Response, StatusCode};
use serde_json::Value;
use serde_json::value::RawValue;

use super::calls::{ASKED, BLOCK, Conversation, answer};

const SSZ: &[u8] = b"application/octet-stream";
const JSON: &[u8] = b"application/json";
const PROBLEM: &[u8] = b"application/problem+json";

/// How an answer may come. Most do as they should.
const HEADS: [(u16, &[u8]); 16] = [
    (200, SSZ),
    (200, SSZ),
    (200, SSZ),
    (200, b"Application/Octet-Stream; q=1"),
    (200, SSZ),
    (200, JSON),
    (200, b""),
    (201, SSZ),
    (204, b""),
    (400, PROBLEM),
    (404, PROBLEM),
    (409, PROBLEM),
    (422, PROBLEM),
    (401, b""),
    (503, SSZ),
    (404, b"text/plain"),
];

/// The target.
pub fn rest_answers(input: &[u8]) {
    let Some((method, mut rest)) = input.split_first() else { return };
    let (_, method) = Method::ALL[usize::from(*method) % Method::ALL.len()];
    let mut conversation = Conversation::begin(method);
    if matches!(conversation.step, Step::Consult(None)) {
        let said = if rest.is_empty() {
            Said::NoJsonRpc
        } else {
            Said::JsonResult(Bytes::copy_from_slice(rest))
        };
        conversation.resume(said);
        assert!(matches!(conversation.step, Step::Answer(Answer::Result(_))));
        return;
    }
    assert!(conversation.asks(), "{:?}", conversation.step);
    let mut last = None;
    while conversation.asks() {
        let Some((said, next)) = next_answer(rest) else { return };
        rest = next;
        last = Some(said.clone());
        conversation.resume(Said::Rest(said));
    }
    if let Some(last) = last {
        judge(&conversation, &last);
    }
}

fn next_answer(input: &[u8]) -> Option<(Response<Bytes>, &[u8])> {
    let ([head, length @ ..], rest) = input.split_first_chunk::<3>()?;
    let (status, content_type) = HEADS[usize::from(*head) % HEADS.len()];
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (body, rest) = rest.split_at(length);
    Some((answer(status, content_type, Bytes::copy_from_slice(body))?, rest))
}

fn judge(conversation: &Conversation, last: &Response<Bytes>) {
    let result = match &conversation.step {
        Step::Answer(Answer::Result(result)) => result,
        Step::Answer(Answer::Refused(status)) => {
            return assert_eq!((*status, last.status()), (StatusCode::UNAUTHORIZED, *status));
        }
        Step::Answer(Answer::Error(_)) => return assert!(last.status().as_u16() >= 400),
        Step::Relay(_) | Step::Consult(Some(_)) => return,
        Step::Consult(None) | Step::Send(_) => panic!("{:?} at the end", conversation.step),
    };
    if conversation.method == Method::ClientVersion {
        // The EL's own list, to the byte: a number in it may be too great for serde_json's values.
        assert_eq!(last.status(), 200);
        assert!(serde_json::from_slice::<Vec<&RawValue>>(result).is_ok());
        return assert!(occurs(result, last.body()));
    }
    let printed: Value = serde_json::from_slice(result).expect("only JSON is printed");
    match conversation.method {
        Method::NewPayload(_) => judge_status(&printed, last, last.body()),
        Method::ForkchoiceUpdated(_) => {
            judge_update(conversation, &printed, last);
        }
        Method::GetPayload(version) => {
            assert_eq!(last.status(), 200);
            let fork = conversation.fork.expect("a fork header");
            let built = schema::BUILT_PAYLOAD;
            let wanted = match version.name() {
                "v1" => member_to_json(built, fork, last.body(), "executionPayload"),
                _ => to_json(built, fork, last.body()),
            };
            assert_eq!(wanted.as_deref(), Ok(&**result));
        }
        Method::BodiesByHash(_) => {
            assert_eq!(printed.as_array().map(Vec::len), Some(ASKED));
        }
        Method::BodiesByRange(_) => {
            let entries = printed.as_array().expect("a list of bodies");
            assert!(entries.len() <= ASKED);
            assert!(entries.last().is_none_or(|last| !last.is_null()), "trailing nulls");
        }
        Method::Blobs(version) => match version.name() {
            "v2" => assert!(
                printed.is_null()
                    || printed.as_array().is_some_and(|blobs| {
                        blobs.len() == ASKED && !blobs.iter().any(Value::is_null)
                    })
            ),
            "v3" if printed.is_null() => assert_eq!(last.status(), 204),
            _ => assert_eq!(printed.as_array().map(Vec::len), Some(ASKED)),
        },
        Method::InclusionList => {
            assert_eq!(last.status(), 200);
            let texts = printed.as_array().expect("a list of transactions");
            assert!(texts.iter().all(|text| text.as_str().is_some_and(|hex| {
                const_hex::decode(hex).is_ok_and(|bytes| occurs(&bytes, last.body()))
            })));
        }
        Method::ClientVersion | Method::ExchangeCapabilities => panic!("{printed}"),
    }
}

/// The status is the EL's: its first byte, and the hash out of its body.
fn judge_status(printed: &Value, last: &Response<Bytes>, status: &[u8]) {
    assert_eq!(last.status(), 200);
    let names = ["VALID", "INVALID", "SYNCING", "ACCEPTED"];
    let said = status.first().and_then(|byte| names.get(usize::from(*byte)));
    assert_eq!(printed["status"].as_str(), said.copied());
    let hash = printed["latestValidHash"].as_str().map(|hash| const_hex::decode(hash).unwrap());
    match (printed["status"].as_str(), &hash) {
        (Some("VALID"), hash) => assert_eq!(hash.as_deref(), Some(&BLOCK[..])),
        (Some("INVALID"), hash) => assert_ne!(hash.as_deref(), Some(&BLOCK[..])),
        _ => {}
    }
    assert!(hash.is_none_or(|hash| hash.len() == 32 && occurs(&hash, status)));
}

/// A build is the EL's, and remembered under the fork that it was asked under.
fn judge_update(conversation: &Conversation, printed: &Value, last: &Response<Bytes>) {
    // Two offsets, the status, the id.
    let status = last.body().get(8..).unwrap_or_default();
    judge_status(&printed["payloadStatus"], last, status);
    assert_ne!(printed["payloadStatus"]["status"], "ACCEPTED");
    let Some(id) = printed["payloadId"].as_str() else { return };
    assert_eq!(printed["payloadStatus"]["status"], "VALID");
    let id: [u8; 8] = const_hex::decode_to_array(id).expect("eight bytes");
    assert!(last.body().ends_with(&id));
    let build = conversation.memory.build(id).expect("a build is remembered");
    assert_eq!(Some(build.fork), conversation.fork);
    assert_eq!(build.timestamp, 0x64);
}

fn occurs(needle: &[u8], text: &[u8]) -> bool {
    needle.is_empty() || text.windows(needle.len()).any(|window| window == needle)
}
