//! One request and its answer, honest or not. Every answer comes from here.

use std::sync::Arc;

use bytes::Bytes;
use h2::Reason;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;

use super::{
    super::{
        faults::{
            Asked, At, Chosen, Fault, HttpVersion, LastStream, Pause, ResetReason, Stage, When,
        },
        seen::Ticket,
    },
    Answer, El,
    body::{AnswerBody, Interruption},
    call::Call,
    connection::Connection,
    life::Order,
    line::Ending,
    mangle,
};

/// A request on its connection.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) el: Arc<El>,
    pub(super) connection: Arc<Connection>,
    /// The HTTP/2 stream; `None` over HTTP/1.1.
    pub(super) stream: Option<u32>,
}

/// An answer as it goes out; an error resets the stream, or ends an HTTP/1.1 connection.
type Outcome = Result<Response<AnswerBody>, h2::Error>;

impl Exchange {
    /// Answers: log, token, faults, dialect.
    pub(super) async fn answer(self, request: Request<Incoming>) -> Outcome {
        let el = &self.el;
        let ticket = el.log.arrived(self.connection.number, &request);
        if let Err(reason) = el.authorize(request.headers()) {
            return Ok(self.send(ticket, unauthorized(reason)).await);
        }
        let http = match self.stream {
            Some(_) => HttpVersion::Http2,
            None => HttpVersion::Http1,
        };
        let dialect = Call::dialect(&request);
        let operation = Call::operation_of_head(&request);
        let asked = Asked { dialect, http, operation, method: None, stage: Stage::Head };
        if let Some(chosen) = el.faults.choose(asked) {
            self.count(ticket, &chosen);
            return Ok(self.send(ticket, mangle::too_large_early(http)).await);
        }
        let call = el.read(ticket, request).await;
        let (operation, method) = (call.operation(), call.method());
        let asked = Asked { dialect, http, operation, method, stage: Stage::Whole };
        match el.faults.choose(asked) {
            None => {
                let answer = self.run(ticket, &call).await;
                Ok(self.send(ticket, answer).await)
            }
            Some(chosen) => self.faulty(ticket, &call, chosen).await,
        }
    }

    /// Carries a fault out.
    async fn faulty(&self, ticket: Ticket, call: &Call, chosen: Chosen) -> Outcome {
        let el = &self.el;
        let run = || self.run(ticket, call);
        if mangle::is_of_answer(&chosen.fault) {
            let (head, body) = parts(run().await).await;
            let mangled = mangle::mangled(&chosen.fault, call, &head, &body);
            match mangled {
                Some(_) => self.count(ticket, &chosen),
                None => el.faults.unspent(&chosen),
            }
            let answer =
                mangled.unwrap_or_else(|| Response::from_parts(head, AnswerBody::whole(body)));
            el.log.answered(ticket, answer.status());
            return Ok(answer);
        }
        if let (Fault::GoAway { last: LastStream::Below }, Some(stream)) =
            (&chosen.fault, self.stream)
        {
            if !self.connection.go_away_below(stream) {
                el.faults.unspent(&chosen);
                return Ok(self.send(ticket, run().await).await);
            }
            self.count(ticket, &chosen);
            return std::future::pending().await;
        }
        self.count(ticket, &chosen);
        match chosen.fault {
            Fault::Delay { when: When::Before, pause } => {
                tokio::time::sleep(pause).await;
                Ok(self.send(ticket, run().await).await)
            }
            Fault::Delay { when: When::After, pause } => {
                let answer = run().await;
                tokio::time::sleep(pause).await;
                Ok(self.send(ticket, answer).await)
            }
            Fault::Silence { when } => {
                if when == When::After {
                    run().await;
                }
                std::future::pending().await
            }
            Fault::Stall { after, pause } => {
                let pause = match pause {
                    Pause::Endless => None,
                    Pause::For(pause) => Some(pause),
                };
                self.broken(ticket, run().await, after, Interruption::Pause(pause)).await
            }
            Fault::Cut { at } => {
                self.break_off(ticket, call, at, Interruption::End(Ending::Closed)).await
            }
            Fault::Reset { at } => {
                self.break_off(ticket, call, at, Interruption::End(Ending::Reset)).await
            }
            Fault::ResetStream { at, reason } => {
                self.break_off(ticket, call, at, Interruption::ResetStream(code(reason))).await
            }
            Fault::GoAway { last } => self.go_away(ticket, call, last).await,
            Fault::Refuse { when, refusal } => {
                if when == When::After {
                    run().await;
                }
                Ok(self.send(ticket, mangle::refusal(refusal)).await)
            }
            Fault::Restart { when, restart } => {
                if when == When::After {
                    run().await;
                }
                // The receiver is gone only if the server has ended already.
                let _ = el.orders.send(Order::Restart(Box::new(restart), None));
                std::future::pending().await
            }
            // Chosen before the body, or carried out above.
            Fault::TooLargeEarly
            | Fault::Media(_)
            | Fault::Encoding(_)
            | Fault::NoContent
            | Fault::EmptyBody
            | Fault::Huge { .. }
            | Fault::Ssz(_)
            | Fault::Json(_) => Ok(self.send(ticket, run().await).await),
        }
    }

    /// Runs the call, unless a GOAWAY has told the client that it is not: then it has no answer.
    async fn run(&self, ticket: Ticket, call: &Call) -> Answer {
        if self.stream.is_none_or(|stream| self.connection.may_run(stream)) {
            self.el.run(ticket, call)
        } else {
            std::future::pending().await
        }
    }

    async fn break_off(&self, ticket: Ticket, call: &Call, at: At, how: Interruption) -> Outcome {
        if at != At::Before {
            let answer = self.run(ticket, call).await;
            if let At::InBody(after) = at {
                return self.broken(ticket, answer, after, how).await;
            }
        }
        self.interrupt(how).await
    }

    /// The beginning of an answer; of one without a body nothing.
    async fn broken(
        &self,
        ticket: Ticket,
        answer: Answer,
        after: usize,
        how: Interruption,
    ) -> Outcome {
        let (head, bytes) = parts(answer).await;
        if bytes.is_empty() {
            if let Interruption::Pause(Some(pause)) = how {
                tokio::time::sleep(pause).await;
                self.el.log.answered(ticket, head.status);
                return Ok(Response::from_parts(head, AnswerBody::whole(bytes)));
            }
            return self.interrupt(how).await;
        }
        self.el.log.answered(ticket, head.status);
        let body = AnswerBody::broken(bytes, after, how, self.connection.hand.clone());
        Ok(Response::from_parts(head, body))
    }

    /// Ends without a byte.
    async fn interrupt(&self, how: Interruption) -> Outcome {
        match how {
            Interruption::ResetStream(reason) => return Err(reason.into()),
            Interruption::End(ending) => self.connection.hand.end(ending),
            Interruption::Pause(_) => {}
        }
        std::future::pending().await
    }

    async fn go_away(&self, ticket: Ticket, call: &Call, last: LastStream) -> Outcome {
        let this = self.stream.unwrap_or_default();
        match last {
            // Carried out already.
            LastStream::Below => std::future::pending().await,
            LastStream::This => {
                self.connection.go_away_at(this);
                self.connection.hand.flushed().await;
                let answer = self.run(ticket, call).await;
                Ok(self.send(ticket, answer).await)
            }
            LastStream::ThisUnanswered => {
                self.run(ticket, call).await;
                self.connection.go_away_at(this);
                self.connection.hand.flushed().await;
                self.interrupt(Interruption::End(Ending::Closed)).await
            }
        }
    }

    fn count(&self, ticket: Ticket, chosen: &Chosen) {
        self.el.faults.took_place(chosen);
        self.el.log.fault(ticket, chosen.fault.kind());
    }

    async fn send(&self, ticket: Ticket, answer: Answer) -> Response<AnswerBody> {
        self.el.log.answered(ticket, answer.status());
        let (head, bytes) = parts(answer).await;
        Response::from_parts(head, AnswerBody::whole(bytes))
    }
}

impl El {
    /// The token check (authentication.md). The scheme must be `Bearer` to the letter, as real ELs
    /// want it.
    fn authorize(&self, headers: &HeaderMap) -> Result<(), &'static str> {
        let Some(secret) = &self.jwt_secret else { return Ok(()) };
        let token = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "))
            .ok_or("missing or malformed bearer token")?;
        secret
            .validate(token)
            .map_err(|_| "the token is not valid now or not signed with the secret")
    }
}

/// Head and body; the body is there already.
async fn parts(answer: Answer) -> (http::response::Parts, Bytes) {
    let (head, body) = answer.into_parts();
    let Ok(body) = body.collect().await;
    (head, body.to_bytes())
}

fn code(reason: ResetReason) -> Reason {
    match reason {
        ResetReason::RefusedStream => Reason::REFUSED_STREAM,
        ResetReason::InternalError => Reason::INTERNAL_ERROR,
        ResetReason::Cancel => Reason::CANCEL,
        ResetReason::EnhanceYourCalm => Reason::ENHANCE_YOUR_CALM,
        ResetReason::Http11Required => Reason::HTTP_1_1_REQUIRED,
    }
}

fn unauthorized(reason: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from_static(reason.as_bytes())));
    *answer.status_mut() = StatusCode::UNAUTHORIZED;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    answer
}
