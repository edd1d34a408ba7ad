//! Any bytes as the body of a JSON-RPC call, and as an EL's JSON-RPC answer.
//!
//! The other opinion is serde_json's: what is JSON, where its values begin and end, what its
//! strings are. What the envelope makes of them is told here once more, from JSON-RPC 2.0 and the
//! documentation of `jsonrpc`.

use std::borrow::Cow;

use bytes::Bytes;
use engine_ssz_proxy::jsonrpc::{
    Answer, Code, Error, Incoming, Invalid, MAX_DEPTH, RawId, Reply, Request, Verdict, answer_of,
    parse, parse_with_limit,
};
use serde_json::value::RawValue;

use super::json::members;

/// The target.
pub fn envelope(input: &[u8]) {
    let body = Bytes::copy_from_slice(input);
    let parsed = parse(&body);
    let answer = answer_of(&body);
    match json(&body) {
        None => {
            assert_eq!(parsed.as_ref().err().map(|error| error.code), Some(Code::PARSE));
            assert_eq!(answer, None);
        }
        Some(text) => {
            judge_answer(text, answer);
            judge_request(&body, text, &parsed);
        }
    }
    judge_limit(&body, &parsed);
    if let Ok(incoming) = parsed {
        reply_to(&incoming);
    }
}

/// The text between white space, when it is JSON that is not nested too deep.
fn json(body: &[u8]) -> Option<&str> {
    // What serde_json passes over it does not check for UTF-8.
    let body = std::str::from_utf8(body).ok()?;
    let text = serde_json::from_str::<&RawValue>(body).ok()?.get();
    (depth(text) <= MAX_DEPTH).then_some(text)
}

fn depth(json: &str) -> u32 {
    let (mut depth, mut deepest, mut in_string) = (0, 0, false);
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth -= 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn elements(array: &str) -> Vec<&str> {
    let elements: Vec<&RawValue> = serde_json::from_str(array).expect("an array");
    elements.into_iter().map(RawValue::get).collect()
}

fn judge_answer(text: &str, answer: Option<Answer<'_>>) {
    let is_error = |text: &str| text.starts_with('{');
    let wanted =
        Some(text).filter(|text| text.starts_with('{')).and_then(members).and_then(|members| {
            let all = |name| members.iter().filter(move |(other, _)| other == name);
            if ["id", "result", "error"].into_iter().any(|name| all(name).count() > 1) {
                return None;
            }
            let one = |name| all(name).next().map(|(_, value)| *value);
            let verdict = match (one("result"), one("error").filter(|error| *error != "null")) {
                (Some(result), None) => Verdict::Result(result.as_bytes()),
                (None | Some("null"), Some(error)) if is_error(error) => {
                    Verdict::Error(error.as_bytes())
                }
                _ => return None,
            };
            Some((one("id").map(str::as_bytes), verdict))
        });
    assert_eq!(answer.map(|answer| (answer.id, answer.verdict)), wanted);
    if let Some(Answer { verdict: Verdict::Error(text), .. }) = answer
        && let Some(error) = answer.and_then(|answer| answer.verdict.error())
    {
        let value: serde_json::Value = serde_json::from_slice(text).unwrap_or_default();
        // A number that is too great for serde_json's own values passes by as text.
        if !value.is_null() {
            assert_eq!(value["code"].as_i64(), Some(error.code.0));
            assert_eq!(value["message"].as_str(), Some(&*error.message));
        }
    }
}

fn judge_request(body: &Bytes, text: &str, parsed: &Result<Incoming, Error>) {
    let code = parsed.as_ref().err().map(|error| error.code);
    let elements = match text.as_bytes() {
        [b'{', ..] => vec![text],
        [b'[', ..] => elements(text),
        _ => return assert_eq!(code, Some(Code::INVALID_REQUEST)),
    };
    if elements.is_empty() {
        return assert_eq!(code, Some(Code::INVALID_REQUEST));
    }
    let wanted: Option<Vec<_>> = elements.iter().map(|element| Wanted::of(element)).collect();
    let Some(wanted) = wanted else { return assert_eq!(code, Some(Code::PARSE)) };
    let found = match parsed.as_ref().expect("JSON of requests is parsed") {
        Incoming::Single(only) => std::slice::from_ref(only),
        Incoming::Batch(batch) => {
            assert!(text.starts_with('['));
            batch
        }
    };
    assert_eq!(found.len(), wanted.len());
    for ((found, wanted), element) in found.iter().zip(wanted).zip(elements) {
        match (found, wanted) {
            (Ok(request), Wanted::Request { id, method, params }) => {
                assert_eq!(request.id.as_ref().map(RawId::as_bytes), id.map(str::as_bytes));
                assert_eq!(request.method.as_str(), method);
                assert_eq!(request.params.as_deref(), params.map(str::as_bytes));
                assert_eq!(request.raw, element);
                let slices = [Some(&request.raw), request.params.as_ref()];
                for slice in slices.into_iter().flatten() {
                    assert!(body.as_ptr_range().contains(&slice.as_ptr()), "a copy of the body");
                }
            }
            (Err(invalid), Wanted::Invalid { id }) => {
                assert_eq!(invalid.id.as_bytes(), id.as_bytes());
                assert_eq!(invalid.error.code, Code::INVALID_REQUEST);
            }
            _ => panic!("{found:?} for {element}"),
        }
    }
}

/// What an element is.
enum Wanted<'t> {
    Request { id: Option<&'t str>, method: Cow<'t, str>, params: Option<&'t str> },
    Invalid { id: &'t str },
}

impl<'t> Wanted<'t> {
    /// `None` if a string that must be read cannot be one.
    fn of(element: &'t str) -> Option<Self> {
        if !element.starts_with('{') {
            return Some(Self::Invalid { id: "null" });
        }
        let members = members(element)?;
        // All values of a member, in whatever case its name is written.
        let all = |wanted: &str| -> Vec<&'t str> {
            let named = members.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
            named.map(|(_, value)| *value).collect()
        };
        let id = match all("id")[..] {
            [] => None,
            [id] if !id.starts_with(['{', '[', 't', 'f']) => Some(id),
            _ => return Some(Self::Invalid { id: "null" }),
        };
        let invalid = Some(Self::Invalid { id: id.unwrap_or("null") });
        match all("jsonrpc")[..] {
            [] => {}
            [version] if version.starts_with('"') => {
                if string(version)? != "2.0" {
                    return invalid;
                }
            }
            _ => return invalid,
        }
        let method = match all("method")[..] {
            [method] if method.starts_with('"') => string(method)?,
            _ => return invalid,
        };
        let params = match all("params")[..] {
            [] | ["null"] => None,
            [params] if params.starts_with(['{', '[']) => Some(params),
            _ => return invalid,
        };
        Some(Self::Request { id, method: method.into(), params })
    }
}

fn string(token: &str) -> Option<String> {
    serde_json::from_str(token).ok()
}

/// A lower bound on the elements refuses what has more of them, and nothing else.
fn judge_limit(body: &Bytes, parsed: &Result<Incoming, Error>) {
    const LIMIT: usize = 3;
    let limited = parse_with_limit(body, LIMIT);
    match parsed {
        Ok(Incoming::Batch(batch)) if batch.len() > LIMIT => {
            assert_eq!(limited.err().map(|error| error.code), Some(Code::INVALID_REQUEST));
        }
        Ok(incoming) => assert_eq!(limited.as_ref().ok(), Some(incoming)),
        Err(_) => assert!(limited.is_err()),
    }
}

/// What is answered is JSON-RPC to serde_json and to the reader of answers, id for id.
fn reply_to(incoming: &Incoming) {
    let reply = |element: &Result<Request, Invalid>| match element {
        Ok(Request { id: Some(id), params, .. }) => {
            let result = params.clone().unwrap_or(Bytes::from_static(b"null"));
            let reply = Reply::result(id, result.clone());
            judge_reply(&reply, id, Verdict::Result(&result));
            reply
        }
        Ok(_) => Reply::empty(),
        Err(Invalid { id, error }) => {
            let reply = Reply::error(id, error);
            let text = serde_json::to_vec(error).expect("an error has a JSON form");
            judge_reply(&reply, id, Verdict::Error(&text));
            reply
        }
    };
    match incoming {
        Incoming::Single(element) => drop(reply(element)),
        Incoming::Batch(batch) => {
            let replies: Vec<_> = batch.iter().map(reply).collect();
            let answered = replies.iter().filter(|reply| !reply.is_empty()).count();
            let joined = Reply::batch(replies).to_bytes();
            if answered == 0 {
                assert!(joined.is_empty());
                return;
            }
            let text = std::str::from_utf8(&joined).expect("replies are UTF-8");
            assert_eq!(elements(text).len(), answered);
        }
    }
}

fn judge_reply(reply: &Reply, id: &RawId, verdict: Verdict<'_>) {
    let text = reply.to_bytes();
    assert_eq!(reply.len(), text.len());
    // A result at the greatest depth is one deeper within a reply.
    if json(&text).is_some() {
        assert_eq!(answer_of(&text), Some(Answer { id: Some(id.as_bytes()), verdict }));
    }
}
