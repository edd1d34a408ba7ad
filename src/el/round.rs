//! One round of questions over the transports the operator allows, and what it comes to.

use super::capabilities::Capabilities;
use super::config::TransportChoice;
use super::connection::Connection;
use super::error::Failure;
use super::probe::{Foreign, NotNow, Prober, Question, Reply};
use super::surface::{Rest, Spoken, Transport};
use super::token::TokenSource;

/// What is known of the transports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) h2c: Spoken,
    pub(super) http1: Spoken,
}

impl Known {
    pub(super) const NOTHING: Self = Self { h2c: Spoken::Unknown, http1: Spoken::Unknown };
}

/// What a round came to.
pub(super) struct Round {
    pub(super) known: Known,
    pub(super) verdict: Verdict,
}

pub(super) enum Verdict {
    /// REST may be used; the connection it was found over, if that can be held open.
    Rest(Rest, Option<Connection>),
    /// JSON-RPC alone; why REST is not used.
    JsonRpc(String),
    /// The question stays open.
    NotNow(NotNow),
    /// Connections come up and end without a word in either protocol.
    Mute,
    /// No connection came up.
    Down(Failure),
}

/// Asks over every transport that is not known to be unspoken, all at once.
pub(super) async fn ask_round(
    prober: &Prober,
    tokens: &TokenSource,
    choice: TransportChoice,
    known: Known,
) -> Round {
    let (h2c_question, http1_question) = plan(choice);
    let ask = async |transport, question, before| match question {
        Some(question) if before != Spoken::No => {
            let (reply, connection) = prober.ask(transport, question, tokens.for_probe()).await;
            (Some(reply), connection)
        }
        _ => (None, None),
    };
    let (mut h2c, mut http1) = tokio::join!(
        ask(Transport::H2c, h2c_question, known.h2c),
        ask(Transport::Http1, http1_question, known.http1),
    );
    // One of two questions asked at once may have come too early for an EL that just starts; if
    // the other one was answered, the second try tells.
    if spoken(&http1, known.http1) == Spoken::Yes && was_closed(&h2c) {
        h2c = ask(Transport::H2c, h2c_question, Spoken::Unknown).await;
    } else if spoken(&h2c, known.h2c) == Spoken::Yes && was_closed(&http1) {
        http1 = ask(Transport::Http1, http1_question, Spoken::Unknown).await;
    } else if h2c_question.is_none() && spoken(&http1, known.http1) == Spoken::No {
        // Not part of the plan as long as HTTP/1.1 will do.
        h2c = ask(Transport::H2c, Some(Question::Spoken), known.h2c).await;
    }
    let known = Known { h2c: spoken(&h2c, known.h2c), http1: spoken(&http1, known.http1) };
    Round { known: settle(known), verdict: verdict(h2c, http1) }
}

/// What to ask over h2c and over HTTP/1.1.
fn plan(choice: TransportChoice) -> (Option<Question>, Option<Question>) {
    match choice {
        TransportChoice::Auto => (Some(Question::Capabilities), Some(Question::Capabilities)),
        TransportChoice::H2c => (Some(Question::Capabilities), Some(Question::Spoken)),
        TransportChoice::Http1 => (None, Some(Question::Capabilities)),
        TransportChoice::Json => (None, Some(Question::Spoken)),
    }
}

fn spoken((reply, _): &Asked, before: Spoken) -> Spoken {
    reply.as_ref().map_or(before, Reply::spoken)
}

fn was_closed((reply, _): &Asked) -> bool {
    matches!(reply, Some(Reply::Foreign(Foreign::Closed)))
}

/// A peer that answers in neither protocol is no peer yet: nothing is known of it.
fn settle(known: Known) -> Known {
    match (known.h2c, known.http1) {
        (Spoken::Yes, _) | (_, Spoken::Yes) => known,
        _ => Known::NOTHING,
    }
}

type Asked = (Option<Reply>, Option<Connection>);

/// The best of the two answers, h2c first.
fn verdict((h2c, h2c_connection): Asked, (http1, http1_connection): Asked) -> Verdict {
    let rest = |transport, capabilities: Capabilities, connection| {
        Verdict::Rest(Rest { transport, capabilities }, connection)
    };
    match (h2c, http1) {
        (Some(Reply::Rest(capabilities)), _) => rest(Transport::H2c, capabilities, h2c_connection),
        (_, Some(Reply::Rest(capabilities))) => {
            rest(Transport::Http1, capabilities, http1_connection)
        }
        (Some(Reply::NoRest(why)), _) | (_, Some(Reply::NoRest(why))) => {
            Verdict::JsonRpc(format!("the EL answers the capabilities request with {why}"))
        }
        (Some(Reply::NotNow(why)), _) | (_, Some(Reply::NotNow(why))) => Verdict::NotNow(why),
        (Some(Reply::Spoken), _) | (_, Some(Reply::Spoken)) => {
            Verdict::JsonRpc("the EL speaks no transport REST may be used over".to_owned())
        }
        (Some(Reply::Unreachable(why)), _) | (_, Some(Reply::Unreachable(why))) => {
            Verdict::Down(why)
        }
        (Some(Reply::Foreign(_)) | None, Some(Reply::Foreign(_)) | None) => Verdict::Mute,
    }
}
