//! The way of one call, top to bottom. The only file that knows all the rooms.

mod dialects;
mod outcome;
mod passage;
mod place;
mod refusals;
mod repeat;
mod trip;

use crate::{
    cl::{self, Outcome},
    el::{self, Deadline, El, Lane, Next, Repeat, StreamedBody, Terms},
    engine::{
        self, Bounds, Context, Horizon, Limits, ListedEndpoint, Memory, Method, Offer, Order,
        RelayReason, RestEndpoint, Said, Schedule, Step, Verdict,
    },
    jsonrpc::{self, Incoming, Invalid, RawId, Reply, Request},
    telemetry::{Carried, First, OTHER, Tally},
};
use bytes::Bytes;
use dialects::Dialects;
use http::{Response, request::Parts};
use outcome::{Relayed, Whom};
use refusals::Refusals;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use trip::Trip;

pub use place::Place;

/// Carries calls from the CL to the EL. Cheap to clone; all clones are the same sidecar.
#[derive(Clone, Debug)]
pub struct Proxy(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    el: El,
    memory: Memory,
    dialects: Dialects,
    refusals: Refusals,
    tally: Tally,
}

impl cl::Handler for Proxy {
    type Place = Place;

    /// Commands keep the order they came in, so the place is taken before a large body is read.
    fn begun(&self, first: &[u8]) -> Option<Place> {
        place::may_be_command(first).then(|| self.place())
    }

    fn panicked(&self) {
        self.0.tally.panicked();
    }

    async fn call(&self, call: cl::Call<Place>) -> Outcome {
        let caller = self.note(call.caller);
        // Before the body is parsed, which takes its time too; whatever turns out to be no command
        // leaves the line.
        let place = call.place.unwrap_or_else(|| self.place());
        match jsonrpc::parse(&call.body) {
            Ok(incoming) => {
                let _turn = if has_command(&incoming) {
                    match place.turn().await {
                        Ok(turn) => Some(turn),
                        Err(busy) => return outcome::of_untried(incoming, &busy),
                    }
                } else {
                    drop(place);
                    None
                };
                match incoming {
                    Incoming::Single(item) => self.item(item, &caller, None).await,
                    Incoming::Batch(items) => self.batch(call.body, items, &caller).await,
                }
            }
            Err(error) => Outcome::Json(Reply::error(&RawId::null(), &error)),
        }
    }

    /// The same for the commands of a CL that speaks REST-SSZ itself.
    fn in_order(&self, head: &Parts) -> Option<Place> {
        let order = Order::of_rest(&head.method, head.uri.path());
        (order == Order::Command).then(|| self.place())
    }

    async fn pass(&self, passage: cl::Passage<Place>) -> Response<StreamedBody> {
        self.pass_on(passage).await
    }
}

impl Proxy {
    /// A sidecar in front of that EL, with forks up to that horizon; with a schedule, they need not
    /// be learned.
    pub fn new(el: El, schedule: Option<Schedule>, horizon: Horizon) -> Self {
        let memory = Memory::new(schedule).within(horizon);
        let (dialects, refusals) = (Dialects::default(), Refusals::default());
        Self(Arc::new(Inner { el, memory, dialects, refusals, tally: Tally::default() }))
    }

    /// The door to the EL.
    pub fn el(&self) -> &El {
        &self.0.el
    }

    /// What was carried how.
    pub fn tally(&self) -> &Tally {
        &self.0.tally
    }

    /// Whether the fork schedule was given; otherwise it is learned from traffic.
    pub fn knows_schedule(&self) -> bool {
        self.0.memory.has_schedule()
    }

    /// Forgets what belonged to an EL process that is gone. To be called whenever the surface changes.
    ///
    /// An EL that closes each connection over HTTP/1.1 proves at no question that it is the process
    /// that it was, and has a new epoch each time. As long as its REST was never withdrawn in between
    /// and is the same, it is taken for that process: if it is another one after all, no more than a
    /// guess is lost.
    pub fn surface_changed(&self, old: &el::Surface, new: &el::Surface) {
        if old.epoch == new.epoch {
            return;
        }
        if old.rest.is_some() && old.rest == new.rest {
            self.0.dialects.carry_over(old.epoch, new.epoch);
        } else {
            self.0.memory.forget_process();
        }
    }

    /// Asks the EL's JSON-RPC for its fork configuration (EIP-7910), which bounds what traffic has
    /// not taught yet. Does nothing while there is no token that the EL would take; an EL without an
    /// answer is no trouble, as no call depends on it.
    pub async fn learn_schedule(&self) {
        const QUESTION: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"eth_config","params":[]}"#;
        let Some(caller) = self.0.el.own_caller() else { return };
        let answer = self
            .0
            .el
            .relay(Lane::Relay, &caller, Bytes::from_static(QUESTION), Repeat::Harmless)
            .await;
        let bounds = match answer.map(Relayed::of) {
            Ok(Relayed::Answer(_, body)) => {
                outcome::result_of(&body).and_then(|result| Bounds::from_eth_config(&result))
            }
            _ => None,
        };
        match bounds {
            Some(bounds) => self.0.memory.learn_bounds(&bounds),
            None => tracing::debug!("the EL does not tell its fork schedule through eth_config"),
        }
    }

    fn place(&self) -> Place {
        Place::new(self.0.el.command_turn())
    }

    /// Remembers what the caller's head says, and gives what of it the EL is to know.
    fn note(&self, caller: cl::Caller) -> el::Caller {
        let cl::Caller { bearer, traceparent, client_version } = caller;
        let caller = el::Caller { bearer, traceparent };
        self.0.el.note_caller(&caller);
        if let Some(version) = client_version {
            self.0.memory.note_client_version(version);
        }
        caller
    }

    /// A batch in which nothing has a meaning here goes to the EL as it is; any other is taken
    /// apart and its elements are run one after the other (JSON-RPC 2.0, section 6).
    async fn batch(
        &self,
        body: Bytes,
        items: Vec<Result<Request, Invalid>>,
        caller: &el::Caller,
    ) -> Outcome {
        let is_foreign = |item: &Result<Request, Invalid>| {
            item.as_ref().is_ok_and(|request| Method::from_name(request.method.as_str()).is_none())
        };
        if items.iter().all(is_foreign) && !items.iter().any(is_command) {
            let mut trip = Trip::begin(OTHER, body.len());
            let repeat = repeat::of_batch(&items);
            let relayed = self.relay(Lane::Relay, body, caller, repeat, &mut trip).await;
            let ids = items.iter().filter_map(|item| item.as_ref().ok()?.id.as_ref()).collect();
            let outcome = outcome::of_relayed(relayed, Whom::Batch(ids), None);
            return trip.end(outcome, &self.0.tally);
        }
        // Its commands are one turn, which must be over before those behind it give up waiting.
        let has_turn = items.iter().any(is_command);
        let turn = has_turn.then(|| self.0.el.deadline(COMMAND_TIMEOUT));
        let mut replies = Vec::with_capacity(items.len());
        for item in items {
            let id = item.as_ref().ok().and_then(|request| request.id.clone());
            match (id, self.item(item, caller, turn).await) {
                (_, Outcome::Json(reply)) => replies.push(reply),
                // What was carried out before it must still be answered.
                (id, Outcome::Status(status, _)) if !replies.is_empty() => {
                    replies.push(outcome::of_status(status, id.as_ref()));
                }
                (_, refused) => return refused,
            }
        }
        Outcome::Json(Reply::batch(replies))
    }

    /// One call, with the deadline of the turn that it shares with others if it does.
    async fn item(
        &self,
        item: Result<Request, Invalid>,
        caller: &el::Caller,
        turn: Option<Deadline>,
    ) -> Outcome {
        let request = match item {
            Ok(request) => request,
            Err(invalid) => return Outcome::Json(Reply::error(&invalid.id, &invalid.error)),
        };
        let method = Method::from_name(request.method.as_str());
        let mut trip = Trip::begin(method.map_or(OTHER, Method::name), request.raw.len());
        let outcome = match method {
            Some(method) => self.carry(method, &request, caller, turn, &mut trip).await,
            None => {
                let lane = lane_of(Order::of_name(request.method.as_str()));
                let mut terms = Terms::from(repeat::of_name(request.method.as_str()));
                let of_command = || self.0.el.deadline(COMMAND_TIMEOUT);
                if let Some(deadline) = turn.or_else(|| (lane == Lane::Command).then(of_command)) {
                    terms = terms.within(deadline);
                }
                let relayed = self.relay(lane, request.raw, caller, terms, &mut trip).await;
                outcome::of_relayed(relayed, Whom::Single(request.id.as_ref()), None)
            }
        };
        trip.end(outcome, &self.0.tally)
    }

    /// Carries one call of a method that has a meaning here: asks the translation what to do, does
    /// it, tells it what came of it. The attempt and its fallback are one unit of their lane: a
    /// command's turn lasts until both are over.
    async fn carry(
        &self,
        method: Method,
        request: &Request,
        caller: &el::Caller,
        turn: Option<Deadline>,
        trip: &mut Trip,
    ) -> Outcome {
        let el = &self.0.el;
        let lane = lane_of(Order::of_name(method.name()));
        let surface = el.surface();
        let rest = surface.rest.as_ref();
        let offer = rest.map(|rest| offer_of(rest, self.0.memory.horizon()));
        let deviates = |endpoint| self.0.dialects.has(surface.epoch, endpoint);
        // With JSON-RPC gone, REST is all there is.
        let has_json_rpc = surface.json_rpc != el::JsonRpc::Absent;
        let deviates = has_json_rpc && method.rest_endpoint().is_some_and(deviates);
        let offer = offer.filter(|offer| offer.serves(method) && !deviates);
        let context = Context { memory: &self.0.memory, offer: offer.as_ref() };
        let whom = Whom::Single(request.id.as_ref());
        // One for all that is sent for the call.
        let deadline = turn.unwrap_or_else(|| el.deadline(method.timeout()));
        let mut terms = Terms::from(repeat::of_name(method.name())).within(deadline);

        // Begun all the same: the call may say where the chain is.
        let (mut call, mut step) = engine::Call::begin(method, request.params.as_deref(), context);
        if deviates {
            step = Step::Relay(RelayReason::EndpointDeviates);
        }
        loop {
            let said = match step {
                Step::Answer(answer) => return outcome::of_answer(answer, whom),
                Step::Relay(reason) => {
                    self.note_relay(method, &reason);
                    let relayed = self.relay(lane, request.raw.clone(), caller, terms, trip).await;
                    if let (Some(endpoint), Ok(Relayed::Answer(_, body))) =
                        (method.rest_endpoint(), &relayed)
                    {
                        self.judge(surface.epoch, endpoint, &reason, body);
                    }
                    return outcome::of_relayed(relayed, whom, Some(&reason));
                }
                Step::Send(exchange) => {
                    trip.sent(&exchange, rest.map_or(Carried::JsonRpc, carried_over));
                    let repeat = repeat::of_replay(exchange.replay, lane);
                    let of_exchange = terms.of(repeat);
                    match el.send(lane, caller, exchange.request, of_exchange).await {
                        Ok(answer) => {
                            terms = terms.answered(answer.status());
                            trip.received(&answer);
                            self.0.refusals.note_rest(answer.status());
                            Said::Rest(answer)
                        }
                        Err(error) if error.next() == Next::JsonRpc => {
                            let terms = of_exchange.after(&error);
                            let reason = RelayReason::Failed(error.to_string().into());
                            self.note_relay(method, &reason);
                            let relayed =
                                self.relay(lane, request.raw.clone(), caller, terms, trip).await;
                            return outcome::of_relayed(relayed, whom, Some(&reason));
                        }
                        Err(error) => return outcome::of_el_error(&error, whom),
                    }
                }
                Step::Consult(reason) => {
                    if let Some(reason) = &reason {
                        self.note_relay(method, reason);
                    }
                    match self.relay(lane, request.raw.clone(), caller, terms, trip).await {
                        Ok(Relayed::NoJsonRpc) => Said::NoJsonRpc,
                        Ok(Relayed::Answer(status, body)) => match outcome::result_of(&body) {
                            Some(result) => Said::JsonResult(result),
                            None => return outcome::of_json_rpc(status, body, whom),
                        },
                        other => return outcome::of_relayed(other, whom, reason.as_ref()),
                    }
                }
            };
            step = call.resume(said, context);
        }
    }

    /// Sends the CL's own bytes to the EL's JSON-RPC.
    async fn relay(
        &self,
        lane: Lane,
        body: Bytes,
        caller: &el::Caller,
        terms: impl Into<Terms>,
        trip: &mut Trip,
    ) -> Result<Relayed, el::ElError> {
        trip.relayed();
        let relayed = Relayed::of(self.0.el.relay(lane, caller, body, terms).await?);
        self.0.refusals.note_json_rpc(&relayed);
        Ok(relayed)
    }

    /// The first time of each kind of trouble with the EL is worth a line.
    fn note_relay(&self, method: Method, reason: &RelayReason) {
        let method = method.name();
        let first = self.0.tally.relayed(method, reason.label());
        // A deviation has a line of its own.
        let is_one_off = reason.is_fault_of_el() && reason.verdict() == Verdict::Open;
        if first == First::Yes && is_one_off {
            tracing::warn!(
                method,
                %reason,
                "the EL's REST-SSZ answer cannot be used; such calls go over JSON-RPC. Tell the \
                 EL's developers; --transport json turns REST-SSZ off"
            );
        } else {
            tracing::debug!(method, %reason, "relayed over JSON-RPC");
        }
    }

    /// Turns an endpoint to JSON-RPC, for as long as the EL is the one it is, if its answer and
    /// JSON-RPC's to the same call prove that it deviates. Without an answer of JSON-RPC
    /// there is nothing to turn to.
    fn judge(&self, epoch: u64, endpoint: RestEndpoint, reason: &RelayReason, json_rpc: &Bytes) {
        let verdict = reason.verdict();
        let json_result = match verdict {
            Verdict::DeviatesIfJsonRpcHas => outcome::result_of(json_rpc),
            _ => None,
        };
        if !verdict.is_proof(json_result.as_deref())
            || jsonrpc::answer_of(json_rpc).is_none()
            || self.0.dialects.note(epoch, endpoint) == First::No
        {
            return;
        }
        self.0.tally.deviates(endpoint.name());
        if self.0.dialects.tell(endpoint, Instant::now()) == First::No {
            return;
        }
        tracing::warn!(
            endpoint = endpoint.name(),
            epoch,
            seen = %reason,
            expected = reason.expected(),
            "the EL's REST-SSZ endpoint deviates from the specification; its calls go over \
             JSON-RPC until the EL restarts. An update of the EL may help, else tell its \
             developers; --transport json turns REST-SSZ off"
        );
    }
}

/// What a batch with commands has in time, and a command that is newer than the table of methods: as
/// much as the longest of those that are in it.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(8);

fn is_command(item: &Result<Request, Invalid>) -> bool {
    item.as_ref().is_ok_and(|request| Order::of_name(request.method.as_str()) == Order::Command)
}

fn has_command(incoming: &Incoming) -> bool {
    match incoming {
        Incoming::Single(item) => is_command(item),
        Incoming::Batch(items) => items.iter().any(is_command),
    }
}

fn lane_of(order: Order) -> Lane {
    match order {
        Order::Command => Lane::Command,
        Order::Build => Lane::Build,
        Order::History => Lane::History,
        Order::Free => Lane::Relay,
    }
}

fn offer_of(rest: &el::Rest, horizon: Horizon) -> Offer {
    let capabilities = &rest.capabilities;
    let forks = capabilities.supported_forks.iter().map(String::as_str);
    let size = |limit| usize::try_from(limit).unwrap_or(usize::MAX);
    let limits = Limits {
        payload_max_bytes: size(capabilities.limits.payload_max_bytes),
        bodies_max: size(capabilities.limits.bodies_max_count),
        blobs_max: size(capabilities.limits.blobs_max),
    };
    Offer::within(horizon, forks, limits).listing(|endpoint| match endpoint {
        ListedEndpoint::ForkScoped(name) => capabilities.serves(name),
        ListedEndpoint::Blobs(revision) => capabilities.serves_blobs(revision),
        ListedEndpoint::Unscoped => true,
    })
}

fn carried_over(rest: &el::Rest) -> Carried {
    match rest.transport {
        el::Transport::H2c => Carried::H2c,
        el::Transport::Http1 => Carried::Http1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    fn surface(epoch: u64, forks: Option<&str>) -> el::Surface {
        let capabilities = |forks| {
            let document = format!(r#"{{"supported_forks":["{forks}"]}}"#);
            el::Capabilities::read(document.as_bytes()).unwrap()
        };
        el::Surface {
            epoch,
            reach: el::Reach::Up,
            rest: forks.map(|forks| el::Rest {
                transport: el::Transport::Http1,
                capabilities: capabilities(forks),
            }),
            h2c: el::Spoken::No,
            http1: el::Spoken::Yes,
            json_rpc: el::JsonRpc::Unknown,
            why: String::new(),
        }
    }

    /// Whether what was remembered of the process and the dialect of epoch 1 are known after those surfaces.
    fn known(surfaces: &[el::Surface]) -> (bool, bool) {
        let el = El::new(el::Config::new("http://127.0.0.1:1".parse().unwrap()));
        let proxy = Proxy::new(el, None, Horizon::default());
        proxy.0.memory.note_era_filter();
        proxy.0.dialects.note(1, RestEndpoint::Forkchoice);
        for pair in surfaces.windows(2) {
            proxy.surface_changed(&pair[0], &pair[1]);
        }
        let epoch = surfaces.last().unwrap().epoch;
        let is_remembered = proxy.0.memory.has_era_filter();
        (is_remembered, proxy.0.dialects.has(epoch, RestEndpoint::Forkchoice))
    }

    #[test]
    fn an_el_that_cannot_prove_to_be_the_same_process_is_taken_for_it_while_it_offers_the_same() {
        let osaka = Some("osaka");
        let same = [surface(1, osaka), surface(2, osaka), surface(3, osaka)];
        assert_eq!(known(&same), (true, true));
        let another_offer = [surface(1, osaka), surface(2, Some("amsterdam"))];
        assert_eq!(known(&another_offer), (false, false));
    }

    #[test]
    fn life_04_an_el_whose_rest_was_gone_is_another_process() {
        let osaka = Some("osaka");
        let gone = [surface(1, osaka), surface(1, None), surface(2, osaka)];
        assert_eq!(known(&gone), (false, false));
        let doubted = [surface(1, osaka), surface(1, None), surface(1, osaka)];
        assert_eq!(known(&doubted), (true, true), "its word proved that it is the same");
    }
}
