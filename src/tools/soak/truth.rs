//! What each answer may be, by the word of an EL that no fault ever strikes.

use super::heads::Span;
use crate::{
    mock_el::faults::Operation,
    tools::difference::{Difference, Words},
};
use serde_json::{Value, json};

/// What an answer is held against.
#[derive(Clone, Debug)]
pub(super) enum Truth {
    /// The whole response.
    Is(Value),
    /// One of these responses.
    OneOf(Vec<Value>),
    /// The first elements of this list: at least so many.
    Begins {
        /// With all elements.
        whole: Vec<Value>,
        /// The fewest.
        at_least: usize,
    },
    /// A list of so many entries, or that response.
    ListOr {
        /// How many.
        entries: usize,
        /// The response.
        otherwise: Value,
    },
    /// A quantity.
    Within(Span),
}

/// Why an answer is not the truth.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Untruth {
    /// What it is in a few words.
    pub why: String,
    /// The error code, if it is a well-formed error for this call.
    pub error: Option<i64>,
    /// Whether it is a well-formed result.
    pub is_result: bool,
    /// Whether it is one that says that there is nothing.
    pub is_nothing: bool,
}

impl Truth {
    /// Nothing if the response says the truth to the call of that id.
    pub(super) fn check(&self, method: &str, id: &Value, response: &Value) -> Option<Untruth> {
        if let Some(why) = malformed(id, response) {
            return Some(Untruth { why, error: None, is_result: false, is_nothing: false });
        }
        let why = match self {
            Self::Is(due) => difference(method, due, response)?,
            Self::OneOf(due) => {
                let differences = due.iter().map(|due| difference(method, due, response));
                differences.collect::<Option<Vec<_>>>()?.join("; or ")
            }
            Self::Begins { whole, at_least } => {
                let heard = response.get("result").and_then(Value::as_array);
                match heard {
                    Some(heard) if heard.len() >= *at_least && whole.starts_with(heard) => {
                        return None;
                    }
                    Some(heard) => format!(
                        "{} entries, of which the first {} are right; due are {at_least} to {}",
                        heard.len(),
                        heard.iter().zip(whole).take_while(|(heard, due)| heard == due).count(),
                        whole.len()
                    ),
                    None => format!("no list: {}", shortened(response)),
                }
            }
            Self::ListOr { entries, otherwise } => {
                let list = response.get("result").and_then(Value::as_array);
                if list.is_some_and(|list| list.len() == *entries) {
                    return None;
                }
                difference(method, otherwise, response)?
            }
            Self::Within(span) => {
                let heard = response.get("result").and_then(Value::as_str);
                let number = heard.and_then(|text| text.strip_prefix("0x"));
                match number.and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
                    Some(heard) if (span.lowest..=span.highest).contains(&heard) => return None,
                    _ => format!(
                        "{} where a number from {} to {} is due",
                        shortened(response),
                        span.lowest,
                        span.highest
                    ),
                }
            }
        };
        let is_result = response.get("result").is_some();
        let (error, is_nothing) = (error_of(response), is_nothing(response));
        Some(Untruth { why, error, is_result, is_nothing })
    }
}

/// The code of an error that names the EL, as all errors of the sidecar itself do, or that tells a
/// WebSocket what over HTTP is a status.
fn error_of(response: &Value) -> Option<i64> {
    let errors: Vec<&Value> = match response {
        Value::Array(responses) => responses.iter().map(|response| &response["error"]).collect(),
        response => vec![&response["error"]],
    };
    let mut codes = errors.iter().map(|error| {
        let message = error["message"].as_str()?;
        let code = error["code"].as_i64()?;
        let names_el = message.contains("EL ") || message.contains("execution client");
        let names_el = names_el || message.starts_with("401 Unauthorized");
        (code != -32603 || names_el).then_some(code)
    });
    let first = codes.next()??;
    codes.all(|code| code == Some(first)).then_some(first)
}

fn is_nothing(response: &Value) -> bool {
    match response.get("result") {
        Some(Value::Null) => true,
        Some(Value::Array(entries)) => entries.iter().all(Value::is_null),
        _ => false,
    }
}

/// What is wrong with the envelope, whatever is in it.
fn malformed(id: &Value, response: &Value) -> Option<String> {
    if let (Value::Array(ids), Value::Array(responses)) = (id, response) {
        if ids.len() != responses.len() {
            return Some(format!("{} answers to {} calls", responses.len(), ids.len()));
        }
        return ids.iter().zip(responses).find_map(|(id, response)| malformed(id, response));
    }
    if response["jsonrpc"] != "2.0" {
        return Some(format!("no JSON-RPC: {}", shortened(response)));
    }
    if response.get("id") != Some(id) {
        return Some(format!("answered with the id {}", response["id"]));
    }
    if response.get("result").is_some() == response.get("error").is_some() {
        return Some("a result and an error, or neither".to_owned());
    }
    None
}

fn difference(method: &str, due: &Value, response: &Value) -> Option<String> {
    let found = Difference::between(method, Words::OfEl, due, response)?;
    let Difference { at, .. } = found;
    let side = |value: &Value| shortened(value.pointer(&at).unwrap_or(value));
    Some(format!("{at}: {} where {} is due", side(response), side(due)))
}

/// JSON for a line.
pub(super) fn shortened(value: &Value) -> String {
    const MOST: usize = 200;
    let text = value.to_string();
    match text.get(..text.floor_char_boundary(MOST)) {
        Some(start) if text.len() > MOST => format!("{start}…"),
        _ => text,
    }
}

/// The call that a method is.
pub(super) fn operation(method: &str) -> Option<Operation> {
    let known = [
        ("engine_newPayload", Operation::NewPayload),
        ("engine_forkchoiceUpdated", Operation::ForkchoiceUpdated),
        ("engine_getPayloadBodiesByHash", Operation::BodiesByHash),
        ("engine_getPayloadBodiesByRange", Operation::BodiesByRange),
        ("engine_getPayloadV", Operation::GetPayload),
        ("engine_getBlobs", Operation::GetBlobs),
        ("engine_exchangeCapabilities", Operation::Capabilities),
        ("engine_getClientVersion", Operation::Identity),
    ];
    known.into_iter().find(|(start, _)| method.starts_with(start)).map(|(_, operation)| operation)
}

/// A response with that result.
pub(super) fn result(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(truth: &Truth, response: Value) -> Untruth {
        truth.check("m", &json!(1), &response).unwrap()
    }

    fn right(truth: &Truth, response: Value) -> bool {
        truth.check("m", &json!(1), &response).is_none()
    }

    fn of(value: Value) -> Value {
        result(&json!(1), value)
    }

    #[test]
    fn another_status_id_or_result_is_untrue() {
        let truth = Truth::Is(of(json!({"status": "VALID"})));
        assert!(right(&truth, of(json!({"status": "VALID"}))));
        for other in ["INVALID", "SYNCING", "ACCEPTED"] {
            let untruth = wrong(&truth, of(json!({"status": other})));
            assert!(untruth.why.contains("/result/status"), "{untruth:?}");
            assert_eq!((untruth.error, untruth.is_nothing), (None, false));
        }
        let other_id = json!({"jsonrpc": "2.0", "id": 2, "result": {"status": "VALID"}});
        assert!(wrong(&truth, other_id).why.contains("id 2"));
        let both = json!({"jsonrpc": "2.0", "id": 1, "result": 1, "error": {"code": -32603, "message": "EL "}});
        assert_eq!(wrong(&truth, both).error, None);
    }

    #[test]
    fn an_error_of_the_sidecar_can_be_excused_only_if_it_names_the_el() {
        let truth = Truth::Is(of(json!(1)));
        let error = |message: &str| json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": message}});
        assert_eq!(wrong(&truth, error("EL http://x cannot be reached")).error, Some(-32603));
        assert_eq!(wrong(&truth, error("internal error")).error, None);
    }

    #[test]
    fn a_list_may_end_early_but_not_too_early_and_a_number_stays_in_its_span() {
        let truth = Truth::Begins { whole: vec![json!(1), json!(2), json!(3)], at_least: 2 };
        assert!(right(&truth, of(json!([1, 2]))) && right(&truth, of(json!([1, 2, 3]))));
        for heard in [json!([1]), json!([1, 3]), json!([1, 2, 3, 4]), json!(null)] {
            wrong(&truth, of(heard));
        }
        let truth = Truth::Within(Span { lowest: 3, highest: 17 });
        assert!(right(&truth, of(json!("0x11"))) && right(&truth, of(json!("0x3"))));
        for heard in [json!("0x2"), json!("0x12"), json!(3), json!("three")] {
            wrong(&truth, of(heard));
        }
        let truth = Truth::OneOf(vec![of(json!(1)), of(json!(null))]);
        assert!(right(&truth, of(json!(null))) && right(&truth, of(json!(1))));
        assert!(wrong(&truth, of(json!(2))).why.contains("; or "));
    }

    #[test]
    fn a_batch_needs_an_answer_to_each() {
        let ids = json!(["a", "b"]);
        let answers = json!([result(&json!("a"), json!(1)), result(&json!("b"), json!(2))]);
        let truth = Truth::Is(answers.clone());
        assert_eq!(truth.check("batch", &ids, &answers), None);
        let one = json!([result(&json!("a"), json!(1))]);
        assert!(truth.check("batch", &ids, &one).is_some());
        let swapped = json!([result(&json!("b"), json!(2)), result(&json!("a"), json!(1))]);
        assert!(truth.check("batch", &ids, &swapped).is_some());
    }
}
