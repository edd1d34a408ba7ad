//! What the EL says when it does not say 200: the table of refactor.md, "Error model", with the
//! deviations that real ELs show.

use super::{Answer, Deviation, RelayReason, RestEndpoint, exchange::media_type};
use crate::jsonrpc::{self, Code};
use http::{Response, StatusCode};
use serde::Deserialize;

/// Longest text of the EL that is handed on to the CL, in bytes.
const MAX_DETAIL: usize = 1024;

/// An answer that carries no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What it means.
    pub kind: ProblemKind,
    /// The EL's own words, cut to 1024 bytes.
    pub detail: Option<String>,
    form: Form,
}

/// How the EL said it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    /// As a problem document with that last segment of `type`, cut to 64 characters.
    Document(Box<str>),
    /// In any other way, with that media type.
    Bare(Box<str>),
}

/// The meanings that are told apart. HTTP status first, then the last segment of `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// 400 unsupported-fork, -38005.
    UnsupportedFork,
    /// 404 unknown-payload, -38001.
    UnknownPayload,
    /// 409 invalid-forkchoice, -38002.
    InvalidForkchoice,
    /// 409 reorg-too-deep (nimbus-eth1 says too-deep-reorg), -38006.
    ReorgTooDeep,
    /// 422 invalid-attributes (go-ethereum says it with 400), -38003.
    InvalidAttributes,
    /// 422 invalid-body, -32602.
    InvalidBody,
    /// 503: not ready.
    NotReady,
    /// 401 or 403: the token.
    Auth(StatusCode),
    /// Anything else. Our encoding, this EL's dialect or a fault of the EL: its JSON-RPC knows
    /// better what to say.
    Other(StatusCode),
}

#[derive(Deserialize, Default)]
struct Document {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    detail: Option<String>,
}

impl Problem {
    /// Reads an answer whose status is not a success.
    pub fn read<B: AsRef<[u8]>>(answer: &Response<B>) -> Self {
        let document = document(answer);
        let name = document.kind.as_deref().and_then(|kind| kind.rsplit('/').next());
        let form = match name {
            // RFC 9457, section 4.2.1: no more than the status says.
            None | Some("" | "about:blank") => {
                Form::Bare(media_type(answer).unwrap_or("no content type").into())
            }
            Some(name) => Form::Document(name.chars().take(64).collect()),
        };
        let kind = match (answer.status().as_u16(), name.unwrap_or_default()) {
            (400, "unsupported-fork") => ProblemKind::UnsupportedFork,
            (404, "unknown-payload") => ProblemKind::UnknownPayload,
            (409, "invalid-forkchoice") => ProblemKind::InvalidForkchoice,
            (409, "reorg-too-deep" | "too-deep-reorg") => ProblemKind::ReorgTooDeep,
            (400 | 422, "invalid-attributes") => ProblemKind::InvalidAttributes,
            (422, "invalid-body") => ProblemKind::InvalidBody,
            (401 | 403, _) => ProblemKind::Auth(answer.status()),
            (503, _) => ProblemKind::NotReady,
            _ => ProblemKind::Other(answer.status()),
        };
        Self { kind, detail: document.detail.map(cut), form }
    }
}

impl Problem {
    /// What the CL is told (refactor.md, "Error model", column "Old JSON-RPC code").
    pub(super) fn to_answer(&self) -> Answer {
        let (code, message) = match self.kind {
            ProblemKind::Auth(status) => return Answer::Refused(status),
            ProblemKind::UnsupportedFork => (Code::UNSUPPORTED_FORK, "Unsupported fork"),
            ProblemKind::UnknownPayload => (Code::UNKNOWN_PAYLOAD, "Unknown payload"),
            ProblemKind::InvalidForkchoice => {
                (Code::INVALID_FORKCHOICE, "Invalid forkchoice state")
            }
            ProblemKind::ReorgTooDeep => (Code::REORG_TOO_DEEP, "Too deep reorg"),
            ProblemKind::InvalidAttributes => {
                (Code::INVALID_ATTRIBUTES, "Invalid payload attributes")
            }
            ProblemKind::InvalidBody => (Code::INVALID_PARAMS, "Invalid params"),
            ProblemKind::NotReady => (Code::SERVER, "Server error"),
            ProblemKind::Other(_) => (Code::INTERNAL, "Internal error"),
        };
        let error = jsonrpc::Error::new(code, message);
        Answer::Error(match &self.detail {
            // common.md, "Errors": -32000 alone carries an object.
            Some(detail) if code == Code::SERVER => {
                error.with_data(&serde_json::json!({ "err": detail }))
            }
            Some(detail) => error.with_data(detail),
            None => error,
        })
    }

    /// Why the EL's JSON-RPC is asked instead, after that endpoint said this.
    pub(super) fn to_relay(&self, endpoint: RestEndpoint) -> RelayReason {
        if let ProblemKind::Other(status) = self.kind
            && let Some(deviation) = self.deviation(status, endpoint)
        {
            return RelayReason::Dialect(deviation);
        }
        RelayReason::RestRefused(match self.kind {
            ProblemKind::UnsupportedFork => return RelayReason::UnsupportedFork,
            ProblemKind::UnknownPayload => StatusCode::NOT_FOUND,
            ProblemKind::InvalidForkchoice | ProblemKind::ReorgTooDeep => StatusCode::CONFLICT,
            ProblemKind::InvalidAttributes | ProblemKind::InvalidBody => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            ProblemKind::NotReady => StatusCode::SERVICE_UNAVAILABLE,
            ProblemKind::Auth(status) | ProblemKind::Other(status) => status,
        })
    }

    /// What of it proves that the endpoint deviates. Statuses that are the connection's, a
    /// gateway's or this one body's prove nothing, whoever says them in whatever words.
    fn deviation(&self, status: StatusCode, endpoint: RestEndpoint) -> Option<Deviation> {
        const OWN_PROBLEM: &str = "application/problem+json with a type of the specification";
        const TAKEN: &str = "an endpoint that takes what the specification lets be sent";
        let expected = match (status.as_u16(), &self.form) {
            (408 | 413 | 429 | 431 | 502 | 504, _) => return None,
            (404 | 405 | 415 | 501, _) => TAKEN,
            (_, Form::Bare(_)) => OWN_PROBLEM,
            // An undecodable transaction within a payload gives it as well.
            (400, Form::Document(name))
                if matches!(&**name, "parse-error" | "ssz-decode-error")
                    && endpoint != RestEndpoint::PayloadSubmit =>
            {
                TAKEN
            }
            _ => return None,
        };
        let words = match &self.form {
            Form::Document(words) | Form::Bare(words) => words,
        };
        Some(Deviation { seen: format!("HTTP {status} ({words})").into(), expected })
    }
}

fn document<B: AsRef<[u8]>>(answer: &Response<B>) -> Document {
    let is_problem = media_type(answer)
        .is_some_and(|said| said.eq_ignore_ascii_case("application/problem+json"));
    if !is_problem {
        return Document::default();
    }
    let body = answer.body().as_ref();
    // Serde would take an array for the members in their order.
    if !body.trim_ascii_start().starts_with(b"{") {
        return Document::default();
    }
    serde_json::from_slice(body).unwrap_or_default()
}

fn cut(mut text: String) -> String {
    let mut end = text.len().min(MAX_DETAIL);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Verdict, Version};
    use http::header::CONTENT_TYPE;

    fn answer(status: u16, content_type: &str, body: &str) -> Response<Vec<u8>> {
        let mut response = Response::builder().status(status);
        if !content_type.is_empty() {
            response = response.header(CONTENT_TYPE, content_type);
        }
        response.body(body.as_bytes().to_vec()).unwrap()
    }

    fn kind(status: u16, content_type: &str, body: &str) -> ProblemKind {
        Problem::read(&answer(status, content_type, body)).kind
    }

    const PROBLEM: &str = "application/problem+json";

    #[test]
    fn status_06_each_row_of_the_table_has_its_meaning() {
        use ProblemKind::*;
        for (status, name, wanted) in [
            (400, "parse-error", Other(StatusCode::BAD_REQUEST)),
            (400, "invalid-request", Other(StatusCode::BAD_REQUEST)),
            (400, "ssz-decode-error", Other(StatusCode::BAD_REQUEST)),
            (400, "unsupported-fork", UnsupportedFork),
            (400, "invalid-attributes", InvalidAttributes),
            (401, "unauthorized", Auth(StatusCode::UNAUTHORIZED)),
            (403, "unauthorized", Auth(StatusCode::FORBIDDEN)),
            (404, "method-not-found", Other(StatusCode::NOT_FOUND)),
            (404, "unknown-payload", UnknownPayload),
            (405, "method-not-allowed", Other(StatusCode::METHOD_NOT_ALLOWED)),
            (409, "invalid-forkchoice", InvalidForkchoice),
            (409, "reorg-too-deep", ReorgTooDeep),
            (409, "too-deep-reorg", ReorgTooDeep),
            (413, "request-too-large", Other(StatusCode::PAYLOAD_TOO_LARGE)),
            (415, "unsupported-media-type", Other(StatusCode::UNSUPPORTED_MEDIA_TYPE)),
            (418, "about:blank", Other(StatusCode::IM_A_TEAPOT)),
            (422, "invalid-body", InvalidBody),
            (422, "invalid-attributes", InvalidAttributes),
            (500, "internal", Other(StatusCode::INTERNAL_SERVER_ERROR)),
            (503, "service-unavailable", NotReady),
        ] {
            let body = format!(r#"{{"type":"/engine-api/errors/{name}"}}"#);
            assert_eq!(kind(status, PROBLEM, &body), wanted, "{status} {name}");
        }
    }

    #[test]
    fn life_02_a_404_without_the_problem_type_is_no_unknown_payload() {
        let other = ProblemKind::Other(StatusCode::NOT_FOUND);
        let said = r#"{"type":"/engine-api/errors/unknown-payload"}"#;
        assert_eq!(kind(404, "text/plain", said), other);
        assert_eq!(kind(404, "text/html", "<html>"), other);
        assert_eq!(kind(404, "", ""), other);
        assert_eq!(kind(404, PROBLEM, "{broken"), other);
        assert_eq!(kind(404, PROBLEM, "null"), other);
        assert_eq!(kind(404, PROBLEM, r#"["/engine-api/errors/unknown-payload","gone"]"#), other);
    }

    const ENDPOINTS: [RestEndpoint; 9] = [
        RestEndpoint::PayloadSubmit,
        RestEndpoint::PayloadFetch,
        RestEndpoint::Forkchoice,
        RestEndpoint::Bodies,
        RestEndpoint::Blobs(Version::V1),
        RestEndpoint::Blobs(Version::V2),
        RestEndpoint::Blobs(Version::V3),
        RestEndpoint::Blobs(Version::V4),
        RestEndpoint::Identity,
    ];

    fn proves(status: u16, content_type: &str, body: &str, endpoint: RestEndpoint) -> bool {
        let problem = Problem::read(&answer(status, content_type, body));
        problem.to_relay(endpoint).verdict() == Verdict::Deviates
    }

    fn problem_proves(status: u16, name: &str, endpoint: RestEndpoint) -> bool {
        let body = format!(r#"{{"type":"/engine-api/errors/{name}"}}"#);
        proves(status, PROBLEM, &body, endpoint)
    }

    #[test]
    fn what_an_endpoint_of_the_specification_never_says_proves_that_it_deviates() {
        for endpoint in ENDPOINTS {
            for (status, name) in [
                (404, "method-not-found"),
                (405, "method-not-allowed"),
                (415, "unsupported-media-type"),
                (501, "not-implemented"),
            ] {
                assert!(problem_proves(status, name, endpoint), "{status} {name} {endpoint:?}");
            }
            for status in [400, 404, 405, 409, 410, 415, 418, 422, 500, 501, 505] {
                for (content_type, body) in [
                    ("text/plain", "forkchoice update error"),
                    ("text/html", "<html>"),
                    ("application/json", r#"{"type":"/engine-api/errors/unsupported-fork"}"#),
                    (PROBLEM, r#"{"type":"about:blank"}"#),
                    (PROBLEM, "{broken"),
                    ("", ""),
                ] {
                    assert!(
                        proves(status, content_type, body, endpoint),
                        "{status} {content_type} {body} {endpoint:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_the_specification_has_or_others_may_say_proves_nothing() {
        for endpoint in ENDPOINTS {
            for (status, name) in [
                (400, "invalid-request"),
                (400, "unsupported-fork"),
                (400, "invalid-attributes"),
                (401, "unauthorized"),
                (404, "unknown-payload"),
                (409, "invalid-forkchoice"),
                (409, "reorg-too-deep"),
                (413, "request-too-large"),
                (422, "invalid-body"),
                (422, "a-type-of-tomorrow"),
                (500, "internal"),
                (503, "service-unavailable"),
            ] {
                assert!(!problem_proves(status, name, endpoint), "{status} {name} {endpoint:?}");
            }
            for status in [401, 403, 408, 413, 429, 431, 502, 503, 504] {
                assert!(!proves(status, "text/html", "<html>", endpoint), "{status} {endpoint:?}");
                assert!(!proves(status, "", "", endpoint), "{status} {endpoint:?}");
            }
        }
    }

    #[test]
    fn a_request_that_cannot_be_the_cls_fault_is_called_undecodable_by_a_dialect_alone() {
        for endpoint in ENDPOINTS {
            for name in ["parse-error", "ssz-decode-error"] {
                let wanted = endpoint != RestEndpoint::PayloadSubmit;
                assert_eq!(problem_proves(400, name, endpoint), wanted, "{name} {endpoint:?}");
            }
        }
    }

    #[test]
    fn a_deviation_says_what_was_seen_and_what_was_expected() {
        let problem = Problem::read(&answer(500, "text/plain; charset=utf-8", "no"));
        assert_eq!(
            problem.to_relay(RestEndpoint::Forkchoice).to_string(),
            "HTTP 500 Internal Server Error (text/plain) where application/problem+json with a \
             type of the specification was due"
        );
    }

    #[test]
    fn status_06_the_detail_is_capped_at_a_character() {
        let body = format!(r#"{{"type":"x","detail":"a{}"}}"#, "é".repeat(3000));
        let problem = Problem::read(&answer(500, PROBLEM, &body));
        assert_eq!(problem.detail.map(|detail| detail.len()), Some(1023));
    }
}
