//! One question to the EL over one transport: is this protocol spoken, and is REST-SSZ here?
//!
//! h2c and REST are separate facts, so they are told apart in what comes back. Only what an EL
//! says on purpose counts against REST: an EL that starts up refuses, stalls or answers 401 and
//! 503 for a while.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::Full;

use super::answer::{self, Answer};
use super::capabilities::{Capabilities, MAX_DOCUMENT_BYTES};

use super::connection::{Connection, Connector, ElRequest};
use super::endpoint::{Endpoint, RestBase};
use super::error::{ErrorKind, Failure, Origin, Phase};
use super::held::ends_connection;
use super::surface::{Spoken, Transport};

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// `GET {base}/capabilities`: is REST here?
    Capabilities,
    /// `GET` of the JSON-RPC path: is this transport spoken? Any answer will do.
    Spoken,
}

/// What came of a question.
pub(super) enum Reply {
    /// REST is here.
    Rest(Capabilities),
    /// The transport is spoken and REST is not here; the reason.
    NoRest(String),
    /// The transport is spoken; REST was not asked for.
    Spoken,
    /// The EL cannot say now.
    NotNow(NotNow),
    /// What listens there does not speak the transport.
    Foreign(Foreign),
    /// No connection came up.
    Unreachable(Failure),
}

/// Why an EL cannot say now whether REST is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NotNow {
    /// 401.
    Unauthorized,
    /// 403.
    Forbidden,
    /// 5xx or 429.
    Status(StatusCode),
    /// No answer in time.
    Silent,
    /// The answer broke off; the reason.
    Broken(String),
}

/// How it shows that a transport is not spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Foreign {
    /// The peer answered in another protocol, or said so (`HTTP_1_1_REQUIRED`).
    Certain,
    /// The peer closed the connection. A container's port without a process behind it does too.
    Closed,
    /// The peer said nothing at all.
    Silent,
}

impl Reply {
    /// What this says about the transport.
    pub(super) fn spoken(&self) -> Spoken {
        match self {
            Self::Rest(_) | Self::NoRest(_) | Self::Spoken => Spoken::Yes,
            Self::NotNow(NotNow::Silent | NotNow::Broken(_)) | Self::Unreachable(_) => {
                Spoken::Unknown
            }
            Self::NotNow(_) => Spoken::Yes,
            Self::Foreign(_) => Spoken::No,
        }
    }
}

/// Asks.
pub(super) struct Prober {
    connector: Connector,
    capabilities: Result<Uri, http::Error>,
    json_rpc: Result<Uri, http::Error>,
    timeout: Duration,
}

impl Prober {
    pub(super) fn new(
        connector: Connector,
        endpoint: &Endpoint,
        base: &RestBase,
        timeout: Duration,
    ) -> Self {
        Self {
            connector,
            capabilities: endpoint.rest_uri(base, "/capabilities"),
            json_rpc: endpoint.json_rpc_uri(),
            timeout,
        }
    }

    /// Asks over a connection of its own, which is handed back if it can be held open.
    pub(super) async fn ask(
        &self,
        transport: Transport,
        question: Question,
        token: Option<HeaderValue>,
    ) -> (Reply, Option<Connection>) {
        match Connection::open(&self.connector, transport).await {
            Ok(connection) => self.ask_over(connection, transport, question, token).await,
            Err(failure) => (Reply::Unreachable(failure), None),
        }
    }

    /// Asks over a connection that is there already.
    pub(super) async fn ask_over(
        &self,
        mut connection: Connection,
        transport: Transport,
        question: Question,
        token: Option<HeaderValue>,
    ) -> (Reply, Option<Connection>) {
        let uri = match self.uri(question) {
            Ok(uri) => uri.clone(),
            Err(failure) => return (Reply::Unreachable(failure), None),
        };
        let exchange = async {
            let response = connection.send(request(uri, token)).await?;
            answer::read(response, MAX_DOCUMENT_BYTES).await
        };
        match tokio::time::timeout(self.timeout, exchange).await {
            Ok(Ok(answer)) => {
                let lasts = transport == Transport::H2c || !ends_connection(&answer);
                (judge(question, &answer), lasts.then_some(connection))
            }
            Ok(Err(failure)) => (fault(&failure), None),
            // A peer that takes HTTP/2 opens with its SETTINGS whatever it does with the request.
            Err(_) if transport == Transport::H2c && !connection.was_heard_from() => {
                (Reply::Foreign(Foreign::Silent), None)
            }
            // The unanswered request would stand in the way of the next one over HTTP/1.1.
            Err(_) => {
                let lasts = transport == Transport::H2c;
                (Reply::NotNow(NotNow::Silent), lasts.then_some(connection))
            }
        }
    }

    fn uri(&self, question: Question) -> Result<&Uri, Failure> {
        let uri = match question {
            Question::Capabilities => &self.capabilities,
            Question::Spoken => &self.json_rpc,
        };
        uri.as_ref().map_err(|error| Failure::bad_request(Origin::Us, error))
    }
}

fn request(uri: Uri, token: Option<HeaderValue>) -> ElRequest {
    let mut request = Request::new(Full::new(Bytes::new()));
    *request.method_mut() = Method::GET;
    *request.uri_mut() = uri;
    let headers = request.headers_mut();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    if let Some(token) = token {
        headers.insert(AUTHORIZATION, token);
    }
    request
}

fn judge(question: Question, answer: &Answer) -> Reply {
    if question == Question::Spoken {
        return Reply::Spoken;
    }
    match answer.status() {
        StatusCode::OK => match Capabilities::read(answer.body()) {
            Some(capabilities) => Reply::Rest(capabilities),
            None => Reply::NoRest("status 200 without a capabilities document".to_owned()),
        },
        StatusCode::UNAUTHORIZED => Reply::NotNow(NotNow::Unauthorized),
        StatusCode::FORBIDDEN => Reply::NotNow(NotNow::Forbidden),
        // 501 is a "no such thing" of old servers, and no trouble that passes.
        StatusCode::NOT_IMPLEMENTED => Reply::NoRest("status 501".to_owned()),
        StatusCode::TOO_MANY_REQUESTS => Reply::NotNow(NotNow::Status(answer.status())),
        status if status.is_server_error() => Reply::NotNow(NotNow::Status(status)),
        status => Reply::NoRest(format!("status {}", status.as_u16())),
    }
}

/// What an exchange without an answer says about the peer.
fn fault(failure: &Failure) -> Reply {
    match &failure.kind {
        ErrorKind::TooLarge { limit } => {
            Reply::NoRest(format!("a document of more than {limit} bytes"))
        }
        ErrorKind::Broken { phase: Phase::InAnswer } => {
            Reply::NotNow(NotNow::Broken(format!("the answer broke off{failure}")))
        }
        ErrorKind::BadAnswer { reason } => Reply::NoRest(reason.clone()),
        ErrorKind::NotHttp => Reply::Foreign(Foreign::Certain),
        _ => match failure.h2_error() {
            Some(error) => h2_fault(error, failure),
            None => Reply::Foreign(Foreign::Closed),
        },
    }
}

fn h2_fault(error: &h2::Error, failure: &Failure) -> Reply {
    let reason = error.reason();
    if error.is_io() || (error.is_go_away() && reason == Some(h2::Reason::NO_ERROR)) {
        // On its way down, or a port without a process behind it.
        Reply::Foreign(Foreign::Closed)
    } else if error.is_reset() && reason != Some(h2::Reason::HTTP_1_1_REQUIRED) {
        Reply::NotNow(NotNow::Broken(format!("the stream was reset{failure}")))
    } else {
        // What came was no HTTP/2, or HTTP/2 that says to go away.
        Reply::Foreign(Foreign::Certain)
    }
}
