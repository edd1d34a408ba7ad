//! A body as the requests it holds.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;

use super::error::Error;
use super::scan::{Fault, Kind, Scanner, Token};
use super::text::{inside_quotes, unescape};

/// The most elements a batch may have.
///
/// On this port geth takes 2000, other ELs 1000, 1024 or any number; CLs batch up to some 1000
/// blocks. The bound is here because an element costs many times the two bytes it can be written in.
pub const MAX_BATCH_LENGTH: usize = 2048;

/// What one body asks for (JSON-RPC 2.0, sections 4 and 6).
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// One request, answered with one response object.
    Single(Result<Request, Invalid>),
    /// A batch, answered with an array in the same order. Never empty. An element that is no
    /// request has its own error and keeps no other element from being served.
    Batch(Vec<Result<Request, Invalid>>),
}

/// One request. Everything in it is a slice of the body it came in.
#[derive(Clone, PartialEq)]
pub struct Request {
    /// The id to echo. `None` is a notification: to be carried out, not answered (section 4.1).
    /// An explicit `null` is an id like any other.
    pub id: Option<RawId>,
    /// The method's name.
    pub method: Method,
    /// The text of the `params` array or object. `None` when the member is absent or `null`.
    pub params: Option<Bytes>,
    /// The request's own untouched text, from brace to brace.
    pub raw: Bytes,
}

impl fmt::Debug for Request {
    /// Lengths in place of texts: a body is never written to a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("id", &self.id)
            .field("method", &self.method)
            .field("params", &self.params.as_ref().map(Bytes::len))
            .field("raw", &self.raw.len())
            .finish()
    }
}

/// An element that is no request, with the answer it gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Invalid {
    /// The id to answer under: the element's own, or `null` when it cannot be told.
    pub id: RawId,
    /// `-32600` with the reason.
    pub error: Error,
}

/// An id as the token the caller wrote: `1`, `1e3`, `"\u0031"`, `null` (JSON-RPC 2.0, section 5:
/// the response's id is the same value as the request's). Never read as a number.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawId(Bytes);

impl RawId {
    /// The id of an answer to what had no readable id.
    pub const fn null() -> Self {
        Self(Bytes::from_static(b"null"))
    }

    /// The token's text: a JSON string, number or `null`.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<u64> for RawId {
    /// The id of a request of our own.
    fn from(number: u64) -> Self {
        Self(Bytes::from(number.to_string()))
    }
}

impl fmt::Debug for RawId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawId({})", String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Display for RawId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// A method's name, unescaped.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Method(Bytes);

impl Method {
    /// The name.
    pub fn as_str(&self) -> &str {
        // Always UTF-8: it comes from a string the scanner has passed.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Method({:?})", self.as_str())
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Reads a body. It is scanned once and nothing of it is copied but a method name with escapes.
///
/// # Errors
///
/// The one error object, under the id `null`, that answers the whole body:
/// - `-32700` when it is not one JSON value: broken grammar, a byte order mark, invalid UTF-8,
///   nesting beyond [`MAX_DEPTH`](super::MAX_DEPTH), or half a surrogate pair in a name or a
///   method (which no string can hold);
/// - `-32600` when it is neither an object nor an array, an empty array, or a batch of more than
///   [`MAX_BATCH_LENGTH`] elements.
pub fn parse(body: &Bytes) -> Result<Incoming, Error> {
    parse_with_limit(body, MAX_BATCH_LENGTH)
}

/// [`parse`] with another bound on the number of a batch's elements.
///
/// # Errors
///
/// As [`parse`].
pub fn parse_with_limit(body: &Bytes, max_batch_length: usize) -> Result<Incoming, Error> {
    let mut scanner = Scanner::new(body);
    let incoming = match scanner.kind()? {
        Kind::Object => Incoming::Single(element(body, &mut scanner)?),
        Kind::Array => {
            let mut batch = Vec::new();
            scanner.array(|scanner| {
                if batch.len() >= max_batch_length {
                    return Err(Error::invalid_request("Invalid Request: batch too large"));
                }
                batch.push(element(body, scanner)?);
                Ok(())
            })?;
            if batch.is_empty() {
                scanner.end()?;
                return Err(Error::invalid_request("Invalid Request: empty batch"));
            }
            Incoming::Batch(batch)
        }
        Kind::Null | Kind::Bool | Kind::Number | Kind::String => {
            scanner.value()?;
            scanner.end()?;
            return Err(Error::invalid_request("Invalid Request: not an object or array"));
        }
    };
    scanner.end()?;
    Ok(incoming)
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::parse(fault.reason())
    }
}

/// Reads the value that begins here as a request. The outer error is one of the whole body.
fn element(body: &Bytes, scanner: &mut Scanner<'_>) -> Result<Result<Request, Invalid>, Fault> {
    if scanner.kind()? != Kind::Object {
        scanner.value()?;
        return Ok(Err(invalid(None, "not an object")));
    }
    let mut members = Members::default();
    let span = scanner.object(|scanner, name| {
        let value = scanner.value()?;
        members.take(&name, value);
        Ok::<_, Fault>(())
    })?;
    members.request(body, span)
}

/// The envelope's members as they are found.
#[derive(Default)]
struct Members {
    jsonrpc: Member,
    id: Member,
    method: Member,
    params: Member,
}

/// One member of the envelope.
#[derive(Default)]
enum Member {
    #[default]
    Absent,
    Once(Token),
    /// Parsers differ in which of the two counts, so neither may (RFC 8259, section 4).
    Twice,
}

impl Member {
    fn put(&mut self, value: Token) {
        *self = match self {
            Self::Absent => Self::Once(value),
            Self::Once(_) | Self::Twice => Self::Twice,
        };
    }

    fn token(self) -> Result<Option<Token>, &'static str> {
        match self {
            Self::Absent => Ok(None),
            Self::Once(token) => Ok(Some(token)),
            Self::Twice => Err("duplicate member"),
        }
    }
}

impl Members {
    /// Some ELs match names in any letter case, so a second spelling is a second value to them.
    fn take(&mut self, name: &[u8], value: Token) {
        let known = [
            (&b"jsonrpc"[..], &mut self.jsonrpc),
            (b"id", &mut self.id),
            (b"method", &mut self.method),
            (b"params", &mut self.params),
        ];
        for (known, member) in known {
            if known.eq_ignore_ascii_case(name) {
                member.put(value);
                return;
            }
        }
    }

    fn request(self, body: &Bytes, span: Range<usize>) -> Result<Result<Request, Invalid>, Fault> {
        let id = match self.id.token() {
            Ok(None) => None,
            Ok(Some(Token { kind: Kind::Null | Kind::Number | Kind::String, span })) => {
                Some(RawId(body.slice(span)))
            }
            Ok(Some(_)) => return Ok(Err(invalid(None, "id is not a string, number or null"))),
            Err(reason) => return Ok(Err(invalid(None, reason))),
        };
        let version = match self.jsonrpc.token() {
            Ok(Some(Token { kind: Kind::String, span })) => Some(string(body, span)?),
            Ok(None) => None,
            Ok(Some(_)) => return Ok(Err(invalid(id, "jsonrpc is not \"2.0\""))),
            Err(reason) => return Ok(Err(invalid(id, reason))),
        };
        if version.is_some_and(|version| version != "2.0") {
            return Ok(Err(invalid(id, "jsonrpc is not \"2.0\"")));
        }
        let method = match self.method.token() {
            Ok(Some(Token { kind: Kind::String, span })) => Method(string(body, span)?),
            Ok(Some(_)) => return Ok(Err(invalid(id, "method is not a string"))),
            Ok(None) => return Ok(Err(invalid(id, "no method"))),
            Err(reason) => return Ok(Err(invalid(id, reason))),
        };
        let params = match self.params.token() {
            Ok(Some(Token { kind: Kind::Array | Kind::Object, span })) => Some(body.slice(span)),
            Ok(None | Some(Token { kind: Kind::Null, .. })) => None,
            Ok(Some(_)) => return Ok(Err(invalid(id, "params is not an array or object"))),
            Err(reason) => return Ok(Err(invalid(id, reason))),
        };
        Ok(Ok(Request { id, method, params, raw: body.slice(span) }))
    }
}

/// The value of a string token: a slice of the body unless it holds escapes.
fn string(body: &Bytes, span: Range<usize>) -> Result<Bytes, Fault> {
    let token = body.slice(span);
    if memchr::memchr(b'\\', &token).is_some() {
        return Ok(Bytes::from(unescape(&token)?));
    }
    Ok(token.slice_ref(inside_quotes(&token)))
}

fn invalid(id: Option<RawId>, reason: &'static str) -> Invalid {
    let message: Cow<'static, str> = format!("Invalid Request: {reason}").into();
    Invalid { id: id.unwrap_or(RawId::null()), error: Error::invalid_request(message) }
}
