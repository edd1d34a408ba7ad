//! The door to the EL: surface, connections, lanes, tokens, JSON-RPC relay. Knows nothing of engine
//! methods or SSZ: it moves requests and answers.
//!
//! [`El::keep_surface`] finds out what the EL offers, h2c before HTTP/1.1, and keeps that true;
//! [`El::surface`] tells it. [`El::send`] is one REST exchange over what was found; [`El::relay`]
//! posts the CL's own bytes to JSON-RPC, which always may be tried.
//!
//! Every exchange has a deadline, longer than any CL waits. One that is passed on has it up to the
//! head of its answer; whoever takes the body decides how long that may take.

mod answer;
mod capabilities;
mod changes;
mod client;
mod config;
mod connection;
mod deadline;
mod dial;
mod endpoint;
mod error;
mod gauge;
mod held;
mod in_turn;
mod keeper;
mod lane;
mod lease;
mod pool;
mod probe;
mod request;
mod resend;
mod round;
mod stream;
mod surface;
mod terms;
mod token;
mod trouble;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{Request, Response, StatusCode};
use tokio::sync::{Mutex, Notify, watch};

pub use answer::Answer;
pub use capabilities::{Capabilities, Limits};
pub use config::{Config, LaneSizes, TransportChoice, TransportChoiceError};
pub use connection::StreamedBody;
pub use deadline::{Deadline, TimeoutMultiplier, TimeoutMultiplierError};
pub use dial::Resolver;
pub use endpoint::{Endpoint, EndpointError, RestBase, RestBaseError};
pub use error::{ElError, ErrorKind, Origin, Phase};
pub use gauge::LaneNumbers;
pub use lane::{CommandTurn, Lane};
pub use resend::{Earlier, Freshness, Next, Path, Repeat, Resend, Time, Tries, next};
pub use surface::{JsonRpc, Reach, Rest, Spoken, Surface, Transport};
pub use terms::Terms;
pub use token::{Caller, Clock, Tokens};

use crate::jsonrpc;
use client::Clients;
use connection::{Connector, ElRequest};
use error::Failure;
use gauge::Gauges;
use keeper::Keeper;
use lane::CommandLine;
use probe::Prober;
use terms::Plan;
use token::TokenSource;

/// One EL. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct El(Arc<Inner>);

struct Inner {
    endpoint: Endpoint,
    config: Config,
    tokens: TokenSource,
    prober: Prober,
    clients: Clients,
    commands: CommandLine,
    gauges: Gauges,
    surface: watch::Sender<Arc<Surface>>,
    /// Rung when what is known of the EL may not be true any more.
    doubts: Notify,
    keeping: Mutex<()>,
}

impl El {
    /// Makes the door. Opens nothing: the EL need not be there yet.
    pub fn new(config: Config) -> Self {
        let endpoint = config.endpoint.clone();
        let connector = Connector::new(&endpoint, config.resolver.clone(), config.connect_timeout);
        let gauges = Gauges::default();
        Self(Arc::new(Inner {
            tokens: TokenSource::new(config.tokens.clone(), config.clock.clone()),
            prober: Prober::new(
                connector.clone(),
                &endpoint,
                &config.rest_base,
                config.probe_timeout,
            ),
            clients: Clients::new(&connector, config.lanes, gauges.clone(), config.answer_limit),
            commands: CommandLine::default(),
            gauges,
            surface: watch::Sender::new(Arc::new(Surface::unknown())),
            doubts: Notify::new(),
            keeping: Mutex::new(()),
            endpoint,
            config,
        }))
    }

    /// Finds out what the EL offers and keeps that true, for ever. To be spawned once; a second
    /// one waits until the first is dropped.
    ///
    /// With [`Tokens::Mint`] it needs no call of the CL; with [`Tokens::Borrow`] it waits for the
    /// first bearer handed to [`El::note_caller`].
    pub fn keep_surface(&self) -> impl Future<Output = Infallible> + Send + use<> {
        let inner = Arc::clone(&self.0);
        async move {
            let _keeping = inner.keeping.lock().await;
            Keeper::new(&inner).run().await
        }
    }

    /// What is known of the EL now. Before it was found, and while it is in doubt, `rest` is
    /// `None`: calls go over JSON-RPC at once and never wait for the probe.
    pub fn surface(&self) -> Arc<Surface> {
        self.0.surface.borrow().clone()
    }

    /// Tells every change of the surface.
    pub fn surface_changed(&self) -> watch::Receiver<Arc<Surface>> {
        self.0.surface.subscribe()
    }

    /// The numbers of a lane now. Those of the relayed and of the passed are in the lane they went
    /// in; the sidecar's own questions about the surface are in none.
    pub fn lane(&self, lane: Lane) -> LaneNumbers {
        self.0.gauges.of(lane).numbers()
    }

    /// The numbers of all lanes now.
    pub fn lanes(&self) -> [(Lane, LaneNumbers); 4] {
        Lane::ALL.map(|lane| (lane, self.lane(lane)))
    }

    /// Where the EL is.
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.endpoint
    }

    /// Remembers the CL's bearer, which the probes borrow under [`Tokens::Borrow`]. To be called
    /// for each call before it waits for anything.
    pub fn note_caller(&self, caller: &Caller) {
        self.0.tokens.note(caller);
    }

    /// Who asks when the sidecar asks JSON-RPC something of its own: with [`Tokens::Borrow`] the
    /// newest bearer seen. `None` while there is none that the EL would take.
    pub fn own_caller(&self) -> Option<Caller> {
        let bearer = self.0.tokens.for_probe()?;
        Some(Caller { bearer: Some(bearer), traceparent: None })
    }

    /// The deadline of a call that the specification gives `timeout` and that begins now; longer
    /// than that, and longer than any CL waits ([`TimeoutMultiplier`]).
    pub fn deadline(&self, timeout: Duration) -> Deadline {
        self.0.config.timeout_multiplier.deadline(timeout)
    }

    /// The deadline of a call that the specification gives no timeout and that begins now.
    pub fn relay_deadline(&self) -> Deadline {
        self.0.config.timeout_multiplier.relay_deadline()
    }

    /// Takes the next place in the line of commands, now and not when first polled; resolves when
    /// all earlier turns are over.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Busy`] when that takes longer than [`Config::command_wait`] times
    /// [`Config::timeout_multiplier`], counted from the first poll. The place is given up; the command in flight is left alone.
    pub fn command_turn(
        &self,
    ) -> impl Future<Output = Result<CommandTurn, ElError>> + Send + use<> {
        let config = &self.0.config;
        let patience = config.timeout_multiplier.stretch(config.command_wait);
        let turn = self.0.commands.turn(patience);
        let el = self.clone();
        async move {
            let _waiting = el.0.gauges.of(Lane::Command).wait();
            turn.await.map_err(|failure| el.error(failure, None))
        }
    }

    /// One REST exchange over the transport REST was found on.
    ///
    /// `request` has its method, its path below the REST base (such as `/payloads`) with the
    /// query, its engine headers and its body; authority, base path, authorization and
    /// `traceparent` are added here. The answer may have any status.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoRest`] if REST is not there now; everything else as in [`ElError`].
    ///
    /// # What is sent twice
    ///
    /// What [`next`] says goes once more, over a new connection. After an error,
    /// [`ElError::next`] tells whether the call goes to [`El::relay`], then with
    /// [`Terms::after`] it.
    pub async fn send(
        &self,
        lane: Lane,
        caller: &Caller,
        request: Request<Bytes>,
        terms: impl Into<Terms>,
    ) -> Result<Answer, ElError> {
        let surface = self.surface();
        let path = match surface.json_rpc {
            JsonRpc::Absent => Path::RestAlone,
            JsonRpc::Unknown | JsonRpc::Present => Path::Rest,
        };
        let plan = terms.into().plan(path, || self.relay_deadline());
        let transport = match &surface.rest {
            Some(rest) => rest.transport,
            None => return Err(self.error(Failure::no_rest(), Some(plan))),
        };
        let token = self.0.tokens.for_call(caller);
        let path = request::relative(&request);
        let uri = self.0.endpoint.rest_uri(&self.0.config.rest_base, path);
        let request = uri
            .map(|uri| request::rest(request, uri, caller, token))
            .map_err(|error| self.error(Failure::bad_request(Origin::Us, &error), Some(plan)))?;
        self.exchange(lane, transport, request, plan, &surface).await
    }

    /// Posts `body` as it is to the EL's JSON-RPC. What is sent twice is as for [`El::send`].
    ///
    /// # Errors
    ///
    /// See [`ElError`].
    pub async fn relay(
        &self,
        lane: Lane,
        caller: &Caller,
        body: Bytes,
        terms: impl Into<Terms>,
    ) -> Result<Answer, ElError> {
        let plan = terms.into().plan(Path::JsonRpc, || self.relay_deadline());
        let surface = self.surface();
        let token = self.0.tokens.for_call(caller);
        let request = self
            .0
            .endpoint
            .json_rpc_uri()
            .map(|uri| request::json_rpc(body, uri, caller, token))
            .map_err(|error| self.error(Failure::bad_request(Origin::Us, &error), Some(plan)))?;
        let transport = surface.relay_transport();
        let answer = self.exchange(lane, transport, request, plan, &surface).await?;
        self.0.learn_json_rpc(&answer);
        Ok(answer)
    }

    /// Passes on a request of a CL that speaks REST itself: verb, path below the endpoint's prefix,
    /// query, headers and body as they are, but for what concerns one connection alone (RFC 9110,
    /// section 7.6.1), the authority, which is the EL's, and the token, as for any other call.
    ///
    /// It goes over the transport REST was found on, else over the one of JSON-RPC, so that an EL
    /// without REST says so itself. Neither body is held here, nothing is sent twice once a byte of
    /// it was written, and the exchange is over when the answer's body is dropped. Without the head
    /// of an answer by the deadline it is cancelled.
    ///
    /// # Errors
    ///
    /// See [`ElError`]; no answer of the EL is one.
    pub async fn pass(
        &self,
        lane: Lane,
        caller: &Caller,
        request: Request<StreamedBody>,
        deadline: Deadline,
    ) -> Result<Response<StreamedBody>, ElError> {
        let surface = self.surface();
        let transport =
            surface.rest.as_ref().map_or(surface.relay_transport(), |rest| rest.transport);
        let token = self.0.tokens.for_call(caller);
        let request = self
            .0
            .endpoint
            .passing_uri(request::relative(&request))
            .map(|uri| request::passed(request, uri, token))
            .map_err(|error| self.error(Failure::bad_request(Origin::Cl, &error), None))?;
        let passed = self.0.clients.pass(lane, transport, request, deadline).await;
        self.noted(lane, transport, passed, None, &surface).map(request::passed_back)
    }

    /// Puts what is known of the EL in doubt: REST is withdrawn until it was found again. For
    /// answers that prove that the EL is not what it was in `epoch`; nothing happens if that is
    /// over already.
    pub fn doubt(&self, epoch: u64) {
        self.0.doubt(epoch);
    }

    async fn exchange(
        &self,
        lane: Lane,
        transport: Transport,
        request: ElRequest,
        plan: Plan,
        surface: &Surface,
    ) -> Result<Answer, ElError> {
        let bearer = request.headers().get(AUTHORIZATION).cloned();
        let exchanged = self.0.clients.exchange(lane, transport, request, plan).await;
        if let Ok(answer) = &exchanged
            && !matches!(answer.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
        {
            self.0.tokens.prove(bearer.as_ref());
        }
        self.noted(lane, transport, exchanged, Some(plan), surface)
    }

    /// Draws from an exchange what it says about the EL.
    fn noted<T>(
        &self,
        lane: Lane,
        transport: Transport,
        exchanged: Result<T, Failure>,
        plan: Option<Plan>,
        surface: &Surface,
    ) -> Result<T, ElError> {
        match exchanged {
            Ok(answer) => {
                self.0.heard_from();
                Ok(answer)
            }
            Err(failure) => {
                if failure.casts_doubt_on_surface() {
                    self.0.doubt(surface.epoch);
                }
                let error = self.error(failure, plan);
                let origin = error.origin().label();
                tracing::debug!(?lane, %transport, origin, %error, "exchange failed");
                Err(error)
            }
        }
    }

    fn error(&self, failure: Failure, plan: Option<Plan>) -> ElError {
        ElError::new(&self.0.endpoint, failure, plan)
    }
}

/// Whether an answer says that there is no JSON-RPC where it was looked for: by its status, unless its
/// body is a JSON-RPC response all the same.
pub fn denies_json_rpc(answer: &Answer) -> bool {
    let is_denial = matches!(
        answer.status(),
        StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::GONE
            | StatusCode::NOT_IMPLEMENTED
    );
    is_denial && jsonrpc::answer_of(answer.body()).is_none()
}

impl fmt::Debug for El {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("El")
            .field("endpoint", &self.0.endpoint)
            .field("surface", &self.surface())
            .finish_non_exhaustive()
    }
}
