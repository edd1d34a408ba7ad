//! One request: who it is from, what it brings, what it gets.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Incoming};
use hyper_util::rt::TokioIo;
use tokio::sync::{mpsc, watch};

use super::attempt::{attempt, errors, pass};
use super::auth::Gate;
use super::body::{self, Outgoing, Whole};
use super::bounds::{Budget, Kind, Share};
use super::claim::{Claim, Patience};
use super::conversation::Conversation;
use super::metered::Metered;
use super::refusal::{JSON, Refusal, Speech, TEXT, response};
use super::server::Phase;
use super::{Call, Caller, Config, Handler, Outcome, Passage, StreamedBody, websocket};
use crate::jsonrpc::Reply;

/// Everything the requests of a server share.
pub(super) struct Service<H> {
    config: Config,
    gate: Gate,
    handler: H,
    budget: Arc<Budget>,
    /// Held by every call in flight, so that a stopping server knows when the last one is done.
    in_flight: mpsc::Sender<Infallible>,
    phase: watch::Receiver<Phase>,
}

/// What a request is by its head.
enum Route {
    /// A call of JSON-RPC.
    Call,
    /// A request of the REST-SSZ API.
    Pass,
    /// The handshake of a WebSocket.
    WebSocket,
}

impl<H: Handler> Service<H> {
    pub(super) fn new(
        config: Config,
        handler: H,
        budget: Arc<Budget>,
        in_flight: mpsc::Sender<Infallible>,
        phase: watch::Receiver<Phase>,
    ) -> Self {
        let gate = Gate::new(config.auth.clone(), config.clock);
        Self { config, gate, handler, budget, in_flight, phase }
    }

    /// Answers one request of a connection. To be dropped at any time without harm to a call under
    /// way.
    pub(super) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        connection: Arc<Share>,
    ) -> Response<Outgoing> {
        let version = request.version();
        let route = route(&request);
        let speech = if let Ok(Route::Pass) = route { Speech::Rest } else { Speech::JsonRpc };
        let answered = match route {
            Ok(Route::Call) => self.call(request).await,
            Ok(Route::Pass) => self.pass(request).await,
            Ok(Route::WebSocket) => self.open(request, connection),
            Err(refusal) => Err(refusal),
        };
        answered.unwrap_or_else(|refusal| refusal.response(speech, version))
    }

    /// The order matters: nothing of a body is read, and no `100 Continue` sent, before the head
    /// has passed every check.
    async fn call(&self, request: Request<Incoming>) -> Result<Response<Outgoing>, Refusal> {
        let received = Instant::now();
        let caller = self.gate.admit(request.headers()).map_err(Refusal::Denied)?;
        if !is_json(request.headers()) {
            return Err(Refusal::MediaType);
        }
        let Config { body_limit, body_timeout, place_pause, .. } = self.config;
        let patience = Patience::of(request.body().size_hint().lower(), place_pause);
        let may_stand = may_stand_in_line(&caller);
        let claim = Claim::new(patience, |first: &[u8]| {
            may_stand.then(|| self.handler.begun(first)).flatten()
        });
        let share = self.budget.body();
        let Whole { body, place, share } =
            body::read(request.into_body(), body_limit, body_timeout, share, claim)
                .await
                .map_err(Refusal::Body)?;
        let kind = if place.is_some() { Kind::InLine } else { Kind::Free };
        let room = match self.budget.call(kind).await {
            Ok(room) => room,
            // The body was read for the id in it.
            Err(busy) => {
                return Ok(response(StatusCode::OK, JSON, errors(&body, busy.to_string())));
            }
        };
        let call = Call { body, caller, received, place };
        let attempt = attempt(self.handler.clone(), call);
        Ok(match self.run(attempt, (room, share)).await.ok_or(Refusal::Panicked)? {
            Outcome::Json(reply) => response(StatusCode::OK, JSON, reply),
            Outcome::Status(status, text) => response(status, TEXT, Reply::raw(text)),
        })
    }

    async fn pass(&self, request: Request<Incoming>) -> Result<Response<Outgoing>, Refusal> {
        let caller = self.gate.admit(request.headers()).map_err(Refusal::Denied)?;
        let (head, body) = request.into_parts();
        match self.handler.in_order(&head) {
            Some(place) => self.pass_in_order(head, body, caller, place).await,
            None => self.pass_at_once(head, body, caller).await,
        }
    }

    /// Reads the body before it is passed on, with a place that is lost like that of a call.
    async fn pass_in_order(
        &self,
        head: Parts,
        body: Incoming,
        caller: Caller,
        place: H::Place,
    ) -> Result<Response<Outgoing>, Refusal> {
        let Config { body_limit, body_timeout, place_pause, .. } = self.config;
        let patience = Patience::of(body.size_hint().lower(), place_pause);
        let claim = Claim::taken(patience, may_stand_in_line(&caller).then_some(place));
        let share = self.budget.body();
        let Whole { body, place, share } = body::read(body, body_limit, body_timeout, share, claim)
            .await
            .map_err(Refusal::Body)?;
        let room = self.budget.call(Kind::InLine).await.map_err(Refusal::Busy)?;
        let body = StreamedBody::new(Full::new(body).map_err(|never| match never {}));
        let request = Request::from_parts(head, body);
        let passing = pass(self.handler.clone(), Passage { request, caller, place });
        let response = self.run(passing, (room, share)).await.flatten();
        Ok(response.ok_or(Refusal::Panicked)?.map(Outgoing::Passed))
    }

    /// Hands the body on as it comes.
    async fn pass_at_once(
        &self,
        head: Parts,
        body: Incoming,
        caller: Caller,
    ) -> Result<Response<Outgoing>, Refusal> {
        let Config { body_limit, body_timeout, .. } = self.config;
        let (body, fault) = Metered::new(body, body_limit, body_timeout).map_err(Refusal::Body)?;
        let room = self.budget.call(Kind::Free).await.map_err(Refusal::Busy)?;
        let request = Request::from_parts(head, StreamedBody::new(body));
        let passing = pass(self.handler.clone(), Passage { request, caller, place: None });
        let response = self.run(passing, room).await.flatten().ok_or(Refusal::Panicked)?;
        match fault.get() {
            // Whatever the handler makes of a request that breaks off, this is the reason.
            Some(unread) => Err(Refusal::Body(unread)),
            None => Ok(response.map(Outgoing::Passed)),
        }
    }

    /// Opens a WebSocket. The token of the handshake lets in all its messages (`authentication.md`).
    fn open(
        &self,
        mut request: Request<Incoming>,
        connection: Arc<Share>,
    ) -> Result<Response<Outgoing>, Refusal> {
        let caller = self.gate.admit(request.headers()).map_err(Refusal::Denied)?;
        let opening = websocket::opening(request.headers())?;
        let age = self.gate.age(&caller);
        let conversation = Conversation {
            handler: self.handler.clone(),
            caller,
            age,
            limit: self.config.body_limit,
            silence: self.config.head_timeout,
            budget: Arc::clone(&self.budget),
            _connection: connection,
            in_flight: self.in_flight.clone(),
            phase: self.phase.clone(),
        };
        let upgraded = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            match upgraded.await {
                Ok(stream) => conversation.run(TokioIo::new(stream)).await,
                Err(error) => tracing::debug!(%error, "WebSocket of the CL did not open"),
            }
        });
        Ok(opening)
    }

    /// Has the handler run in a task of its own: this future is dropped when the CL hangs up, the
    /// exchange with the EL goes on, and what it takes of the bounds is held until it is over.
    ///
    /// `None` only if the runtime is gone.
    async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
        held: impl Send + 'static,
    ) -> Option<T> {
        let in_flight = self.in_flight.clone();
        let task = tokio::spawn(async move {
            let done = work.await;
            drop((held, in_flight));
            done
        });
        task.await.ok()
    }
}

/// Whether a caller gets a place before its body is whole. One without a bearer is nobody that the EL
/// would serve, and may be anybody.
const fn may_stand_in_line(caller: &Caller) -> bool {
    caller.bearer.is_some()
}

fn route<B>(request: &Request<B>) -> Result<Route, Refusal> {
    // The REST-SSZ API's own paths. ELs take JSON-RPC on any other one, `/engine` included.
    if request.uri().path().starts_with("/engine/") {
        return Ok(Route::Pass);
    }
    if websocket::is_asked_for(request) {
        return Ok(Route::WebSocket);
    }
    match *request.method() {
        Method::POST => Ok(Route::Call),
        ref verb => Err(Refusal::Verb(verb.clone())),
    }
}

/// Whether the content type may be that of JSON. CLs have been seen to send none, or one with
/// parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE) else { return true };
    let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    ["application/json", "application/json-rpc", "application/jsonrequest", "text/plain"]
        .iter()
        .any(|accepted| essence.eq_ignore_ascii_case(accepted))
}
