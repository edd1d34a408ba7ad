//! Honest answers made others, and answers of nobody's.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header, response::Parts};
use http_body_util::Full;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    super::{
        faults::{Encoding, Fault, HttpVersion, JsonDamage, Media, Refusal, damaged},
        rest,
    },
    Answer,
    body::AnswerBody,
    call::Call,
};

/// A server's page for somebody with a browser.
const PAGE: &[u8] =
    b"<!DOCTYPE html><html><head><title>200 OK</title></head><body>ok</body></html>\n";

/// Whether the fault is an honest run with another answer.
pub(super) const fn is_of_answer(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::Media(_)
            | Fault::Encoding(_)
            | Fault::NoContent
            | Fault::EmptyBody
            | Fault::Huge { .. }
            | Fault::Ssz(_)
            | Fault::Json(_)
    )
}

/// The other answer; `None` if this one has nothing to harm. Only answers with 200 have.
pub(super) fn mangled(
    fault: &Fault,
    call: &Call,
    head: &Parts,
    body: &Bytes,
) -> Option<Response<AnswerBody>> {
    if head.status != StatusCode::OK {
        return None;
    }
    let with = |change: &dyn Fn(&mut Parts), body| {
        let mut head = head.clone();
        change(&mut head);
        Response::from_parts(head, body)
    };
    let labelled = |text| {
        move |head: &mut Parts| {
            head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(text));
        }
    };
    let whole = AnswerBody::whole;
    Some(match fault {
        Fault::Media(Media::JsonOnSsz) => {
            is_ssz(head).then(|| with(&labelled("application/json"), whole(body.clone())))?
        }
        Fault::Media(Media::Html) => with(&labelled("text/html"), whole(PAGE.into())),
        Fault::Media(Media::Missing) => with(
            &|head| {
                head.headers.remove(header::CONTENT_TYPE);
            },
            whole(body.clone()),
        ),
        Fault::Encoding(_) if body.is_empty() => return None,
        Fault::Encoding(Encoding::NoLength) => {
            with(&|_| {}, AnswerBody::NoLength(Some(body.clone())))
        }
        Fault::Encoding(Encoding::Gzip) => {
            let gzip = HeaderValue::from_static("gzip");
            with(
                &|head| {
                    head.headers.insert(header::CONTENT_ENCODING, gzip.clone());
                },
                whole(gzipped(body).into()),
            )
        }
        Fault::NoContent => with(
            &|head| {
                head.status = StatusCode::NO_CONTENT;
                head.headers.remove(header::CONTENT_TYPE);
            },
            whole(Bytes::new()),
        ),
        Fault::EmptyBody => with(&|_| {}, whole(Bytes::new())),
        Fault::Huge { bytes } => with(&|_| {}, AnswerBody::Zeros(*bytes)),
        Fault::Ssz(damage) => {
            let Call::Rest { route, headers, .. } = call else { return None };
            let container = rest::container(route, headers).filter(|_| is_ssz(head))?;
            with(&|_| {}, whole(damaged(*damage, container, body)?.into()))
        }
        Fault::Json(damage) => with(&|_| {}, whole(damaged_json(*damage, body)?.into())),
        _ => return None,
    })
}

fn is_ssz(head: &Parts) -> bool {
    head.headers.get(header::CONTENT_TYPE).is_some_and(|value| value == "application/octet-stream")
}

fn damaged_json(damage: JsonDamage, body: &[u8]) -> Option<Vec<u8>> {
    match damage {
        JsonDamage::Garbage => Some(b"<no json>".to_vec()),
        JsonDamage::Truncated => body.split_last().map(|(_, first)| first.to_vec()),
        JsonDamage::WrongId => {
            #[derive(Deserialize)]
            struct Single<'a> {
                #[serde(borrow)]
                id: &'a RawValue,
                #[serde(borrow)]
                result: Option<&'a RawValue>,
                #[serde(borrow)]
                error: Option<&'a RawValue>,
            }
            let single: Single<'_> = serde_json::from_slice(body).ok()?;
            let id = match single.id.get().parse::<u64>() {
                Ok(number) => number.wrapping_add(1).to_string(),
                Err(_) => r#""another""#.to_owned(),
            };
            let (member, value) = match (single.result, single.error) {
                (_, Some(error)) => ("error", error.get()),
                (Some(result), None) => ("result", result.get()),
                (None, None) => ("result", "null"),
            };
            Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"{member}":{value}}}"#).into_bytes())
        }
    }
}

/// A gzip member (RFC 1952) of stored blocks (RFC 1951, section 3.2.4).
fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut member = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let mut blocks = bytes.chunks(usize::from(u16::MAX)).peekable();
    while let Some(block) = blocks.next() {
        // A block is at most that long.
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        member.push(u8::from(blocks.peek().is_none()));
        member.extend_from_slice(&length.to_le_bytes());
        member.extend_from_slice(&(!length).to_le_bytes());
        member.extend_from_slice(block);
    }
    let sum = bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 * (sum & 1)))
    });
    member.extend_from_slice(&(!sum).to_le_bytes());
    // Modulo 2^32, as the format has it.
    member.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    member
}

/// 413, and the end of an HTTP/1.1 connection.
pub(super) fn too_large_early(http: HttpVersion) -> Answer {
    let mut answer = text(StatusCode::PAYLOAD_TOO_LARGE, "request entity too large");
    if http == HttpVersion::Http1 {
        answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

/// A refusal in plain text.
pub(super) fn refusal(refusal: Refusal) -> Answer {
    match refusal {
        Refusal::Unauthorized => text(StatusCode::UNAUTHORIZED, "stale token"),
        Refusal::NotFound => text(StatusCode::NOT_FOUND, "404 page not found"),
        Refusal::Internal => text(StatusCode::INTERNAL_SERVER_ERROR, "handler crashed"),
        Refusal::Unavailable => {
            let mut answer = text(StatusCode::SERVICE_UNAVAILABLE, "starting");
            answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            answer
        }
    }
}

fn text(status: StatusCode, text: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    answer
}
