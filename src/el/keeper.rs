//! Keeps the surface true: finds it, holds on to the connection it was found over, and finds it
//! anew when that is lost or an exchange casts doubt on it.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use super::Inner;
use super::config::TransportChoice;
use super::connection::Connection;
use super::probe::{NotNow, Question, Reply};
use super::round::{Known, Round, Verdict, ask_round};
use super::surface::{Reach, Rest, Spoken, Transport};
use super::trouble::{Trouble, Troubles};

pub(super) struct Keeper<'a> {
    inner: &'a Inner,
    troubles: Troubles,
    pause: Duration,
    known: Known,
}

/// What became of a surface that was held.
enum Held {
    /// Still what it was.
    Same,
    /// Not any more, or not to be told; it has to be found anew.
    Lost,
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
            let Round { known, verdict } =
                ask_round(&self.inner.prober, &self.inner.tokens, config.transport, self.known)
                    .await;
            self.known = known;
            match verdict {
                Verdict::Rest(rest, connection) => self.on_rest(rest, connection).await,
                Verdict::JsonRpc(why) => self.on_json_rpc(&why).await,
                Verdict::NotNow(why) => self.on_trouble(Trouble::from(why)).await,
                Verdict::Mute => self.on_trouble(Trouble::Mute).await,
                Verdict::Down(failure) => self.on_trouble(Trouble::Down(failure)).await,
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
    async fn hold(&mut self, rest: &Rest, mut connection: Option<Connection>) {
        loop {
            tokio::select! {
                biased;
                () = ended(connection.as_mut()) => return,
                () = self.inner.doubts.notified() => {
                    // The connection it was found over is the judge: as long as it answers, it is
                    // the same EL process, whatever became of another connection.
                    match self.check(rest, &mut connection).await {
                        Some(Held::Same) if connection.is_some() => {
                            self.inner.reinstate(rest.clone());
                        }
                        _ => return,
                    }
                }
                () = tokio::time::sleep(self.inner.config.reprobe_interval) => {
                    if let Some(Held::Lost) = self.check(rest, &mut connection).await {
                        return;
                    }
                    if self.h2c_has_come(rest).await {
                        return;
                    }
                }
            }
        }
    }

    /// Asks again over the held connection, or a new one in its place; `None` if the EL does not
    /// say. An EL too busy to answer has not changed.
    async fn check(&self, rest: &Rest, held: &mut Option<Connection>) -> Option<Held> {
        let token = self.inner.tokens.for_probe();
        token.as_ref()?;
        let prober = &self.inner.prober;
        let (transport, question) = (rest.transport, Question::Capabilities);
        let (reply, connection) = match held.take() {
            Some(connection) => prober.ask_over(connection, transport, question, token).await,
            None => prober.ask(transport, question, token).await,
        };
        *held = connection;
        match reply {
            Reply::Rest(capabilities) if capabilities == rest.capabilities => Some(Held::Same),
            Reply::NotNow(NotNow::Broken(_)) => Some(Held::Lost),
            Reply::NotNow(_) => None,
            _ => Some(Held::Lost),
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

    async fn on_trouble(&mut self, trouble: Trouble) {
        let config = &self.inner.config;
        let (reach, longest) = match &trouble {
            Trouble::Down(_) | Trouble::Mute => (Reach::Down, config.backoff_max),
            Trouble::Starting(_) | Trouble::Silent | Trouble::Broken(_) => {
                (Reach::Up, config.backoff_max)
            }
            // Somebody has to change a setting first; no need to fill the EL's log until then.
            Trouble::Unauthorized | Trouble::Forbidden => (Reach::Up, config.reprobe_interval),
        };
        self.inner.not_found(reach, self.known, trouble.to_string());
        self.troubles.tell(trouble, &self.inner.endpoint);
        if reach == Reach::Down {
            self.known = Known::NOTHING;
        }
        self.back_off(longest).await;
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
