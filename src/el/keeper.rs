//! Keeps the surface true: finds it, holds on to the connection it was found over, and finds it
//! anew when that is lost or an exchange casts doubt on it.
//!
//! That connection is the witness. Only one that lives before and after a question proves that the
//! same EL process answered; the same answer over another connection may come from a new process,
//! which knows nothing of the old one's payload ids.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use super::Inner;
use super::config::TransportChoice;
use super::connection::Connection;
use super::probe::{NotNow, Question, Reply};
use super::round::{Known, Round, Verdict, ask_round};
use super::surface::{Reach, Rest, Spoken, Transport};
use super::token::Proofs;
use super::trouble::{Trouble, Troubles};

/// Over HTTP/1.1 the witness is asked at least this often: many servers close a connection that is
/// idle for 15 s and more, and each close would look like a restart. h2c has its pings.
const HTTP1_REPROBE: Duration = Duration::from_secs(10);

pub(super) struct Keeper<'a> {
    inner: &'a Inner,
    troubles: Troubles,
    pause: Duration,
    known: Known,
}

/// What became of a surface that was held.
enum Held {
    /// Still what it was, by the word of the witness.
    Same,
    /// The same is offered, but by what may be another process.
    Succeeded,
    /// Not any more, or not to be told; it has to be found anew.
    Lost,
    /// The EL does not say. One too busy to answer has not changed.
    Unsaid,
}

impl<'a> Keeper<'a> {
    pub(super) fn new(inner: &'a Inner) -> Self {
        Self {
            inner,
            troubles: Troubles::default(),
            pause: inner.config.backoff_min,
            known: Known::NOTHING,
        }
    }

    pub(super) async fn run(mut self) -> Infallible {
        let config = &self.inner.config;
        loop {
            if config.transport != TransportChoice::Json {
                self.wait_for_token().await;
            }
            // What is proven from here on may be better than what is asked with now.
            let proofs = self.inner.tokens.proofs();
            let Round { known, verdict } =
                ask_round(&self.inner.prober, &self.inner.tokens, config.transport, self.known)
                    .await;
            self.known = known;
            match verdict {
                Verdict::Rest(rest, connection) => self.on_rest(rest, connection).await,
                Verdict::JsonRpc(why) => self.on_json_rpc(&why).await,
                Verdict::NotNow(why) => self.on_trouble(Trouble::from(why), proofs).await,
                Verdict::Mute => self.on_trouble(Trouble::Mute, proofs).await,
                Verdict::Down(failure) => self.on_trouble(Trouble::Down(failure), proofs).await,
            }
        }
    }

    async fn wait_for_token(&self) {
        if self.inner.tokens.for_probe().is_none() {
            self.inner.waiting_for_bearer();
            self.inner.tokens.wait_for_probe().await;
        }
    }

    async fn on_rest(&mut self, rest: Rest, connection: Option<Connection>) {
        self.troubles.over();
        let transport = rest.transport;
        self.inner.found(Some(rest.clone()), self.known, format!("REST-SSZ over {transport}"));
        let found_at = Instant::now();
        self.hold(&rest, connection).await;
        self.inner.withdraw_rest("the EL is asked anew");
        self.known = Known::NOTHING;
        // An EL that drops its connections as soon as they are up must not be asked in a circle.
        if found_at.elapsed() < self.inner.config.backoff_max {
            self.back_off(self.inner.config.backoff_max).await;
        } else {
            self.pause = self.inner.config.backoff_min;
        }
    }

    /// Returns when the surface has to be found anew.
    async fn hold(&mut self, rest: &Rest, mut witness: Option<Connection>) {
        let config = &self.inner.config;
        let mut interval = self.interval(rest, witness.as_ref());
        loop {
            tokio::select! {
                biased;
                () = ended(witness.as_mut()) => return,
                // As long as the witness answers, it is the same EL process, whatever became of
                // another connection.
                () = self.inner.doubts.notified() => {
                    match self.check(rest, &mut witness).await {
                        Held::Same => self.inner.reinstate(rest.clone()),
                        Held::Succeeded => self.inner.succeed(rest.clone()),
                        Held::Lost | Held::Unsaid => return,
                    }
                    interval = self.interval(rest, witness.as_ref());
                }
                () = tokio::time::sleep(interval) => {
                    interval = match self.check(rest, &mut witness).await {
                        Held::Same => self.interval(rest, witness.as_ref()),
                        Held::Succeeded => {
                            self.inner.succeed(rest.clone());
                            self.interval(rest, witness.as_ref())
                        }
                        Held::Lost => return,
                        // A restart may be next, and over HTTP/1.1 the witness is gone.
                        Held::Unsaid => config.reprobe_interval.min(HTTP1_REPROBE),
                    };
                    if self.h2c_has_come(rest).await {
                        return;
                    }
                }
            }
        }
    }

    /// How long to wait before the EL is asked again.
    fn interval(&self, rest: &Rest, witness: Option<&Connection>) -> Duration {
        let interval = self.inner.config.reprobe_interval;
        match (rest.transport, witness) {
            (Transport::Http1, Some(_)) => interval.min(HTTP1_REPROBE),
            // Over HTTP/1.1 this EL closes after each answer: every question ends an epoch.
            (Transport::Http1, None) | (Transport::H2c, _) => interval,
        }
    }

    /// Asks again over the witness or, if there is none, over a new connection, which is the
    /// witness from then on.
    async fn check(&self, rest: &Rest, witness: &mut Option<Connection>) -> Held {
        let token = self.inner.tokens.for_probe();
        if token.is_none() {
            return Held::Unsaid;
        }
        let prober = &self.inner.prober;
        let (transport, question) = (rest.transport, Question::Capabilities);
        let (same, (reply, connection)) = match witness.take() {
            Some(witness) => {
                (Held::Same, prober.ask_over(witness, transport, question, token).await)
            }
            None => (Held::Succeeded, prober.ask(transport, question, token).await),
        };
        *witness = connection;
        match reply {
            Reply::Rest(capabilities) if capabilities == rest.capabilities => same,
            Reply::NotNow(NotNow::Broken(_)) => Held::Lost,
            Reply::NotNow(_) => Held::Unsaid,
            _ => Held::Lost,
        }
    }

    /// On HTTP/1.1 although h2c is spoken, or may be: whether REST has come to h2c meanwhile.
    async fn h2c_has_come(&self, rest: &Rest) -> bool {
        let worth_asking = rest.transport == Transport::Http1
            && self.inner.config.transport == TransportChoice::Auto
            && self.known.h2c != Spoken::No;
        let token = self.inner.tokens.for_probe();
        if !worth_asking || token.is_none() {
            return false;
        }
        let asked = self.inner.prober.ask(Transport::H2c, Question::Capabilities, token).await;
        matches!(asked, (Reply::Rest(_), _))
    }

    async fn on_json_rpc(&mut self, why: &str) {
        self.troubles.over();
        self.pause = self.inner.config.backoff_min;
        self.inner.found(None, self.known, format!("JSON-RPC alone: {why}"));
        if self.inner.config.transport == TransportChoice::Json {
            self.inner.doubts.notified().await;
            self.known = Known::NOTHING;
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(self.inner.config.reprobe_interval) => {}
            // It may be another EL by now, so nothing of it is known any more.
            () = self.inner.doubts.notified() => self.known = Known::NOTHING,
        }
    }

    async fn on_trouble(&mut self, trouble: Trouble, proofs: Proofs) {
        let config = &self.inner.config;
        let (reach, longest) = match &trouble {
            Trouble::Down(_) | Trouble::Mute => (Reach::Down, config.backoff_max),
            Trouble::Starting(_) | Trouble::Silent | Trouble::Broken(_) => {
                (Reach::Up, config.backoff_max)
            }
            // Somebody has to change a setting first; no need to fill the EL's log until then.
            Trouble::Unauthorized | Trouble::Forbidden => (Reach::Up, config.reprobe_interval),
        };
        let is_refusal = matches!(trouble, Trouble::Unauthorized | Trouble::Forbidden);
        self.inner.not_found(reach, self.known, trouble.to_string());
        self.troubles.tell(trouble, &self.inner.endpoint);
        if reach == Reach::Down {
            self.known = Known::NOTHING;
        }
        if is_refusal {
            // It may have been somebody else's bearer.
            tokio::select! {
                () = proofs.next() => {}
                () = self.back_off(longest) => {}
            }
        } else {
            self.back_off(longest).await;
        }
    }

    /// Waits a little longer each time, or until a call of the CL shows that the EL is back.
    async fn back_off(&mut self, longest: Duration) {
        let pause = self.pause.min(longest);
        self.pause = (pause * 2).min(longest);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.inner.doubts.notified() => {}
        }
    }
}

async fn ended(connection: Option<&mut Connection>) {
    match connection {
        Some(connection) => connection.ended().await,
        None => std::future::pending().await,
    }
}
