//! Refusals as `application/problem+json` (refactor.md, "Error model").

use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use ssz::DecodeError;

use super::super::{error::EngineError, server::Answer};

/// Why a REST request is refused.
#[derive(Debug)]
pub(super) enum Problem {
    NoEndpoint,
    InvalidRequest(String),
    MediaType,
    BodyTooLarge { limit: usize },
    SszDecode,
    Engine(EngineError),
    Internal(String),
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl From<DecodeError> for Problem {
    fn from(_: DecodeError) -> Self {
        Self::SszDecode
    }
}

#[derive(Serialize)]
struct Document {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

impl Problem {
    fn status_and_type(&self) -> (StatusCode, &'static str) {
        match self {
            Self::NoEndpoint => (StatusCode::NOT_FOUND, "/engine-api/errors/method-not-found"),
            Self::InvalidRequest(_) => {
                (StatusCode::BAD_REQUEST, "/engine-api/errors/invalid-request")
            }
            Self::MediaType => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "/engine-api/errors/unsupported-media-type")
            }
            Self::BodyTooLarge { .. } | Self::Engine(EngineError::TooLarge { .. }) => {
                (StatusCode::PAYLOAD_TOO_LARGE, "/engine-api/errors/request-too-large")
            }
            Self::SszDecode => (StatusCode::BAD_REQUEST, "/engine-api/errors/ssz-decode-error"),
            Self::Internal(_) => (StatusCode::INTERNAL_SERVER_ERROR, "/engine-api/errors/internal"),
            Self::Engine(EngineError::UnknownPayload) => {
                (StatusCode::NOT_FOUND, "/engine-api/errors/unknown-payload")
            }
            Self::Engine(EngineError::InvalidForkchoice(_)) => {
                (StatusCode::CONFLICT, "/engine-api/errors/invalid-forkchoice")
            }
            Self::Engine(EngineError::ReorgTooDeep(_)) => {
                (StatusCode::CONFLICT, "/engine-api/errors/reorg-too-deep")
            }
            Self::Engine(EngineError::InvalidAttributes(_)) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "/engine-api/errors/invalid-attributes")
            }
            Self::Engine(EngineError::InvalidParams(_)) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "/engine-api/errors/invalid-body")
            }
            Self::Engine(EngineError::UnsupportedFork(_)) => {
                (StatusCode::BAD_REQUEST, "/engine-api/errors/unsupported-fork")
            }
        }
    }

    fn detail(self) -> Option<String> {
        match self {
            Self::NoEndpoint | Self::SszDecode => None,
            Self::InvalidRequest(detail) | Self::Internal(detail) => Some(detail),
            Self::MediaType => Some("the content type must be application/octet-stream".into()),
            Self::BodyTooLarge { limit } => Some(format!("the body is above {limit} bytes")),
            Self::Engine(error) => Some(error.to_string()),
        }
    }
}

impl From<Problem> for Answer {
    fn from(problem: Problem) -> Self {
        let (status, r#type) = problem.status_and_type();
        let document = Document { r#type, detail: problem.detail() };
        // Two strings always serialize.
        let body = serde_json::to_vec(&document).unwrap_or_default();
        let mut answer = Self::new(body.into());
        *answer.status_mut() = status;
        answer
            .headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        answer
    }
}
