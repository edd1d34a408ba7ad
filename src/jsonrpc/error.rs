//! Error codes and the error object.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The `code` of a JSON-RPC error object.
///
/// The named values are those of the Engine API's `common.md`, section "Errors"; an EL may send
/// any other, which passes through as it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Code(pub i64);

impl Code {
    /// `-32700` Parse error: invalid JSON was received by the server.
    pub const PARSE: Self = Self(-32700);
    /// `-32600` Invalid Request: the JSON sent is not a valid Request object.
    pub const INVALID_REQUEST: Self = Self(-32600);
    /// `-32601` Method not found: the method does not exist or is not available.
    pub const METHOD_NOT_FOUND: Self = Self(-32601);
    /// `-32602` Invalid params: invalid method parameters.
    pub const INVALID_PARAMS: Self = Self(-32602);
    /// `-32603` Internal error: internal JSON-RPC error.
    pub const INTERNAL: Self = Self(-32603);
    /// `-32000` Server error: generic client error while processing the request.
    pub const SERVER: Self = Self(-32000);
    /// `-38001` Unknown payload: the payload does not exist or is not available.
    pub const UNKNOWN_PAYLOAD: Self = Self(-38001);
    /// `-38002` Invalid forkchoice state: the forkchoice state is invalid or inconsistent.
    pub const INVALID_FORKCHOICE: Self = Self(-38002);
    /// `-38003` Invalid payload attributes: they are invalid or inconsistent.
    pub const INVALID_ATTRIBUTES: Self = Self(-38003);
    /// `-38004` Too large request: the number of requested entities is too large.
    pub const TOO_LARGE: Self = Self(-38004);
    /// `-38005` Unsupported fork: the payload belongs to a fork that is not supported.
    pub const UNSUPPORTED_FORK: Self = Self(-38005);
    /// `-38006` Too deep reorg: the reorg depth exceeds the EL's limit.
    pub const REORG_TOO_DEEP: Self = Self(-38006);
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Code({})", self.0)
    }
}

/// A JSON-RPC error object: `{"code":…,"message":…}` and, when there is any, `"data"`.
#[derive(Clone, Debug, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct Error {
    /// What kind of error it is.
    pub code: Code,
    /// One short sentence. A CL may show it to its user.
    pub message: Cow<'static, str>,
    /// Further JSON, printed as it is. Left out when `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl Error {
    /// An error without `data`.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The same error with `data`. A value that has no JSON form leaves the error without data:
    /// the code and the message matter more.
    #[must_use]
    pub fn with_data(mut self, data: &(impl Serialize + ?Sized)) -> Self {
        self.data = serde_json::value::to_raw_value(data).ok();
        self
    }

    /// `-32700` with a reason.
    pub fn parse(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::PARSE, reason)
    }

    /// `-32600` with a reason.
    pub fn invalid_request(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::INVALID_REQUEST, reason)
    }
}

impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
            && self.message == other.message
            && self.data.as_deref().map(RawValue::get) == other.data.as_deref().map(RawValue::get)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_object_has_data_only_when_there_is_any() {
        let bare = Error::new(Code::UNKNOWN_PAYLOAD, "Unknown payload");
        assert_eq!(
            serde_json::to_string(&bare).unwrap(),
            r#"{"code":-38001,"message":"Unknown payload"}"#
        );
        let full = bare.with_data("no such \"id\"");
        assert_eq!(
            serde_json::to_string(&full).unwrap(),
            r#"{"code":-38001,"message":"Unknown payload","data":"no such \"id\""}"#
        );
    }

    #[test]
    fn an_error_without_a_json_form_of_its_data_keeps_its_code() {
        let unprintable = std::collections::HashMap::from([((1, 2), 3)]);
        let error = Error::new(Code::SERVER, "Server error").with_data(&unprintable);
        assert_eq!(error, Error::new(Code::SERVER, "Server error"));
    }
}
