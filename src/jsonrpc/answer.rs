//! A look into an EL's response.

use super::error::Error;
use super::scan::{Fault, Kind, Scanner, Token};

/// An EL's response object, as slices of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The id's token; `None` when the EL left it out.
    pub id: Option<&'a [u8]>,
    /// What the EL says.
    pub verdict: Verdict<'a>,
}

/// The half of a response that is there (JSON-RPC 2.0, section 5: exactly one of the two).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// The text of `result`, which may be `null`.
    Result(&'a [u8]),
    /// The text of `error`, an object.
    Error(&'a [u8]),
}

impl<'a> Verdict<'a> {
    /// The text of `result`.
    pub const fn result(&self) -> Option<&'a [u8]> {
        match self {
            Self::Result(text) => Some(text),
            Self::Error(_) => None,
        }
    }

    /// The error object read; `None` for a result, and for an error without a whole-number `code`
    /// and a `message` text.
    pub fn error(&self) -> Option<Error> {
        match self {
            Self::Result(_) => None,
            Self::Error(text) => serde_json::from_slice(text).ok(),
        }
    }
}

/// Reads the body of an EL's JSON-RPC answer to a single request.
///
/// `None` when it is no response object: not JSON, not an object, neither or both of `result` and
/// `error`, an `error` that is no object, or a member twice. A `null` beside the other one counts
/// as absent, as some servers always print both.
pub fn answer_of(body: &[u8]) -> Option<Answer<'_>> {
    let mut scanner = Scanner::new(body);
    if scanner.kind().ok()? != Kind::Object {
        return None;
    }
    let (mut id, mut result, mut error) = (None, None, None);
    scanner
        .object(|scanner, name| {
            let value = scanner.value()?;
            let slot = match name.as_ref() {
                b"id" => &mut id,
                b"result" => &mut result,
                b"error" => &mut error,
                _ => return Ok(()),
            };
            match slot.replace(value) {
                Some(_) => Err(Fault::Byte),
                None => Ok(()),
            }
        })
        .ok()?;
    scanner.end().ok()?;
    let text = |token: Token| body.get(token.span);
    let is_there = |token: &Token| token.kind != Kind::Null;
    let verdict = match (result, error.filter(is_there)) {
        (Some(result), None) => Verdict::Result(text(result)?),
        (result, Some(error)) if error.kind == Kind::Object => {
            if result.as_ref().is_some_and(is_there) {
                return None;
            }
            Verdict::Error(text(error)?)
        }
        _ => return None,
    };
    Some(Answer { id: id.and_then(text), verdict })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::Code;

    #[test]
    fn a_result_is_found_in_any_member_order() {
        for body in [
            &br#"{"id":7,"jsonrpc":"2.0","result":{"a":[1]}}"#[..],
            br#" {"result" : {"a":[1]} ,"error":null,"id":7} "#,
            br#"{"x":{"result":1},"result":{"a":[1]},"id":7}"#,
        ] {
            let answer = answer_of(body).unwrap();
            assert_eq!(answer.id, Some(&b"7"[..]));
            assert_eq!(answer.verdict.result(), Some(&br#"{"a":[1]}"#[..]));
            assert_eq!(answer.verdict.error(), None);
        }
    }

    #[test]
    fn a_null_result_is_a_result() {
        let answer = answer_of(br#"{"jsonrpc":"2.0","id":1,"result":null}"#).unwrap();
        assert_eq!(answer.verdict, Verdict::Result(b"null"));
    }

    #[test]
    fn auth_05_an_error_with_status_200_is_read_as_an_error() {
        let body =
            br#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Authentication error"},"id":null}"#;
        let answer = answer_of(body).unwrap();
        assert_eq!(answer.id, Some(&b"null"[..]));
        assert_eq!(answer.verdict.error(), Some(Error::new(Code::PARSE, "Authentication error")));
    }

    #[test]
    fn the_data_of_an_error_is_kept_as_it_is() {
        let body = br#"{"error":{"code":-32000,"message":"m","data":{"err":1e2}}}"#;
        let error = answer_of(body).unwrap().verdict.error().unwrap();
        assert_eq!(error.data.unwrap().get(), r#"{"err":1e2}"#);
    }

    #[test]
    fn status_07_what_is_no_response_is_told_apart() {
        for body in [
            &b""[..],
            b"null",
            b"<html>",
            b"[]",
            b"{}",
            br#"{"id":1}"#,
            br#"{"result":1,"error":{"code":1,"message":""}}"#,
            br#"{"result":1,"result":2}"#,
            br#"{"result":1,"error":"no"}"#,
            br#"{"error":null}"#,
            br#"{"result":1"#,
            br#"{"result":1} x"#,
        ] {
            assert_eq!(answer_of(body), None, "{}", String::from_utf8_lossy(body));
        }
    }
}
