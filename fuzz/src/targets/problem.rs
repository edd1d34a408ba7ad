//! Any bytes as the body of an answer that carries no result: what it is read as, and what becomes
//! of a call that gets it.
//!
//! The first byte chooses the method, the second the status, the third the media type. The other
//! opinion on the document is serde_json's.

use bytes::Bytes;
use engine_ssz_proxy::engine::{Answer, Method, Problem, ProblemKind, Said, Step};
use engine_ssz_proxy::jsonrpc::Code;
use http::{Response, StatusCode};

use super::calls::{Conversation, answer};
use super::json::{members, only};

const STATUSES: [u16; 24] = [
    400, 401, 403, 404, 405, 408, 409, 410, 413, 415, 418, 422, 429, 431, 500, 501, 502, 503, 504,
    505, 100, 301, 304, 599,
];

const MEDIA_TYPES: [&str; 8] = [
    "application/problem+json",
    "application/problem+json; charset=utf-8",
    "Application/Problem+JSON",
    "application/json",
    "application/octet-stream",
    "text/plain",
    "text/html",
    "",
];

/// The target.
pub fn problem(input: &[u8]) {
    let [method, status, media_type, body @ ..] = input else { return };
    let (_, method) = Method::ALL[usize::from(*method) % Method::ALL.len()];
    let status = STATUSES[usize::from(*status) % STATUSES.len()];
    let media_type = MEDIA_TYPES[usize::from(*media_type) % MEDIA_TYPES.len()];
    let body = Bytes::copy_from_slice(body);
    let Some(refusal) = answer(status, media_type.as_bytes(), body) else { return };
    let problem = Problem::read(&refusal);
    judge(&problem, &refusal, media_type);
    refuse(method, &refusal, &problem);
}

fn judge(problem: &Problem, refusal: &Response<Bytes>, media_type: &str) {
    let is_problem = media_type.to_ascii_lowercase().starts_with("application/problem+json");
    // A message that is not UTF-8 is no reason to miss what kind of problem it is.
    let body = String::from_utf8_lossy(refusal.body());
    let document = members(&body).filter(|_| is_problem).unwrap_or_default();
    let text = |name| serde_json::from_str::<String>(only(&document, name)?).ok();
    match (&problem.detail, text("detail")) {
        (Some(cut), Some(whole)) => {
            assert!(whole.starts_with(cut.as_str()) && cut.len() <= 1024);
            assert!(cut.len() == whole.len() || cut.len() > 1020);
        }
        (Some(_), None) => panic!("words that the EL did not say"),
        (None, _) => {}
    }
    let status = refusal.status();
    let name = text("type").unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or_default();
    let meant = match problem.kind {
        ProblemKind::UnsupportedFork => Some((&[400][..], &["unsupported-fork"][..])),
        ProblemKind::UnknownPayload => Some((&[404][..], &["unknown-payload"][..])),
        ProblemKind::InvalidForkchoice => Some((&[409][..], &["invalid-forkchoice"][..])),
        ProblemKind::ReorgTooDeep => Some((&[409][..], &["reorg-too-deep", "too-deep-reorg"][..])),
        ProblemKind::InvalidAttributes => Some((&[400, 422][..], &["invalid-attributes"][..])),
        ProblemKind::InvalidBody => Some((&[422][..], &["invalid-body"][..])),
        ProblemKind::NotReady => return assert_eq!(status, 503),
        ProblemKind::Auth(said) => {
            return assert!(said == status && matches!(status.as_u16(), 401 | 403));
        }
        ProblemKind::Other(said) => return assert_eq!(said, status),
    };
    let (statuses, names) = meant.expect("a meaning");
    assert!(statuses.contains(&status.as_u16()) && names.contains(&name), "{status} {name}");
}

/// A refusal never becomes a result, and the CL is told only what it says.
fn refuse(method: Method, refusal: &Response<Bytes>, problem: &Problem) {
    let mut conversation = Conversation::begin(method);
    while conversation.asks() {
        conversation.resume(Said::Rest(refusal.clone()));
    }
    match &conversation.step {
        Step::Answer(Answer::Result(result)) => {
            panic!("{} of {problem:?}", String::from_utf8_lossy(result))
        }
        Step::Answer(Answer::Refused(status)) => {
            assert_eq!(problem.kind, ProblemKind::Auth(*status));
            assert_eq!(*status, refusal.status());
        }
        Step::Answer(Answer::Error(error)) => {
            let wanted = match problem.kind {
                ProblemKind::UnsupportedFork => Code::UNSUPPORTED_FORK,
                ProblemKind::UnknownPayload => Code::UNKNOWN_PAYLOAD,
                ProblemKind::InvalidForkchoice => Code::INVALID_FORKCHOICE,
                ProblemKind::ReorgTooDeep => Code::REORG_TOO_DEEP,
                ProblemKind::InvalidAttributes => Code::INVALID_ATTRIBUTES,
                ProblemKind::InvalidBody => Code::INVALID_PARAMS,
                ProblemKind::NotReady => Code::SERVER,
                ProblemKind::Auth(_) | ProblemKind::Other(_) => panic!("{error} of {problem:?}"),
            };
            assert_eq!(error.code, wanted);
            assert!(serde_json::to_vec(error).is_ok());
        }
        Step::Relay(reason) => {
            assert!(!matches!(problem.kind, ProblemKind::Auth(_)), "{reason}");
            let _ = (reason.to_string(), reason.label(), reason.expected());
            let _ = (reason.without_json_rpc(), reason.verdict().is_proof(Some(refusal.body())));
        }
        Step::Consult(reason) => {
            assert!(reason.is_some() || method == Method::ExchangeCapabilities);
        }
        Step::Send(_) => unreachable!("the loop is over"),
    }
    let auth = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&refusal.status());
    assert!(!auth || !matches!(conversation.step, Step::Relay(_)));
}
