//! The verdict on one answer: the truth, something that a fault explains, or a violation.

use super::{
    incidents::{Excuse, Window},
    lap::{Command, Lap, Outcome, Question},
    line::Heard,
    order::{Fate, Mark},
    record::Kind,
    truth::{Truth, Untruth, shortened},
};
use crate::mock_el::faults::Operation;
use http::StatusCode;
use serde_json::Value;

impl Lap {
    /// Judges an answer.
    pub(super) fn judge(
        &self,
        question: &Question,
        truth: Truth,
        heard: Heard,
        window: Window,
        reference_id: Option<String>,
    ) -> Outcome {
        let record = &self.session().record;
        record.call(question.method);
        let (excuse, kind, why) = match heard {
            Heard::Json(heard) => match truth.check(question.method, &question.id, &heard) {
                None => return Outcome::Right { heard, reference_id, sent: window.sent },
                Some(untruth) => {
                    (self.excuse(question, &untruth, window), Kind::Wrong, untruth.why)
                }
            },
            Heard::Status(StatusCode::UNAUTHORIZED) => {
                (Some(Excuse::Unauthorized), Kind::Wrong, "HTTP 401".to_owned())
            }
            Heard::Status(status) => (None, Kind::Wrong, format!("HTTP {status}")),
            Heard::Lost(why) => (None, Kind::Lost, why),
        };
        let explained = excuse.filter(|excuse| match excuse {
            // Looked into already.
            Excuse::Error(UNKNOWN_PAYLOAD) if question.build_made.is_some() => true,
            excuse => self.session().incidents().explain(window, *excuse),
        });
        match explained {
            Some(excuse) => record.excused(excuse),
            None => self.violation(kind, question, &why, window),
        }
        Outcome::Else
    }

    /// What would have to be explained.
    fn excuse(&self, question: &Question, untruth: &Untruth, window: Window) -> Option<Excuse> {
        match untruth.error {
            Some(UNKNOWN_PAYLOAD) => question
                .build_made
                .filter(|made| self.session().incidents().builds_lost_since(*made))
                .map(|_| Excuse::Error(UNKNOWN_PAYLOAD)),
            Some(code) => Some(Excuse::Error(code)),
            None if untruth.is_nothing && window.operation == Some(Operation::GetBlobs) => {
                Some(Excuse::NoBlobs)
            }
            // Those that JSON-RPC is consulted for.
            None if untruth.is_result => match window.operation {
                Some(
                    Operation::Capabilities | Operation::BodiesByHash | Operation::BodiesByRange,
                ) => Some(Excuse::RestAlone),
                _ => None,
            },
            None => None,
        }
    }

    /// What the EL did with a command must be what the CL was told of it.
    pub(super) fn judge_command(
        &self,
        question: &Question,
        command: &Command,
        outcome: &Outcome,
        window: Window,
    ) {
        for mark in &command.marks {
            let fate = self.orders().fate(*mark);
            if let Some(why) = disagreement(*mark, &fate, outcome) {
                self.violation(Kind::Wrong, question, &why, window);
            }
            let is_twice = fate.builds.len() > 1;
            if is_twice && !self.session().incidents().explain(window, Excuse::BuiltTwice) {
                let why = format!("one call, {} builds", fate.builds.len());
                self.violation(Kind::Order, question, &why, window);
            }
        }
        let found = self.orders().violations();
        for why in found {
            self.violation(Kind::Order, question, &why, window);
        }
    }

    /// Notes a violation with all that is needed to look into it.
    fn violation(&self, kind: Kind, question: &Question, why: &str, window: Window) {
        let session = self.session();
        let struck = session.incidents().told(window);
        let took = window.answered.duration_since(window.sent).as_millis();
        session.record.violation(
            kind,
            format!(
                "{kind}: seed {}, lap {}: {why}: {} took {took} ms; struck: {struck}",
                session.seed,
                self.number,
                shortened(&question.body)
            ),
        );
    }
}

/// Where the EL's deeds and the answer to the CL part.
fn disagreement(mark: Mark, fate: &Fate, outcome: &Outcome) -> Option<String> {
    let Outcome::Right { heard, .. } = outcome else { return None };
    match mark {
        Mark::Payload(_) => {
            let told = heard.pointer("/result/status").and_then(Value::as_str)?;
            match (told, fate.valid) {
                (_, None) => Some(format!("{told} of a payload that the EL has not seen")),
                ("VALID", Some(false)) | ("INVALID", Some(true)) => {
                    Some(format!("{told} of a payload that is not so to the EL"))
                }
                _ => None,
            }
        }
        Mark::State { .. } => {
            (!fate.is_applied).then(|| "a forkchoice that the EL has not seen".to_owned())
        }
        Mark::Build(_) => {
            let told = heard.pointer("/result/payloadId").and_then(Value::as_str);
            let is_known = |told: &str| fate.builds.iter().any(|built| built.to_string() == told);
            match told {
                Some(told) if is_known(told) => None,
                Some(told) => Some(format!("the payload id {told}, which the EL has not given")),
                None => Some("no payload id".to_owned()),
            }
        }
    }
}

/// The JSON-RPC code of a payload that is not there (paris.md, "Errors").
const UNKNOWN_PAYLOAD: i64 = -38001;
