//! What the demo prints.

use serde_json::Value;
use std::{collections::BTreeMap, fmt, time::Duration};

/// The outcome of the whole conversation.
#[derive(Debug, Default)]
pub struct Report {
    /// By method, in the order of the first call.
    pub methods: Vec<Row>,
    /// By fork: calls of the hot path, and how many of them went over REST-SSZ.
    pub forks: Vec<ForkRow>,
    /// Every answer that was not the EL's own.
    pub differences: Vec<Difference>,
}

/// One line of the table.
#[derive(Debug)]
pub struct Row {
    /// JSON-RPC method, or what kind of batch.
    pub method: String,
    /// How the calls were carried, by transport.
    pub transports: BTreeMap<&'static str, u64>,
    /// Bytes between CL and sidecar.
    pub json_bytes: u64,
    /// Bytes of the bodies that the same calls cost between sidecar and EL, when carried over REST.
    pub ssz_bytes: u64,
    /// Bytes between CL and sidecar of the calls that were carried over REST.
    pub rest_json_bytes: u64,
    /// Latencies straight to the EL.
    pub direct: Vec<Duration>,
    /// Latencies through the sidecar.
    pub sidecar: Vec<Duration>,
    /// Answers that differ.
    pub differences: u64,
}

/// One fork of the conversation.
#[derive(Debug)]
pub struct ForkRow {
    /// Its name.
    pub fork: &'static str,
    /// Blocks built and imported.
    pub blocks: u64,
    /// newPayload, forkchoiceUpdated and getPayload calls.
    pub hot_calls: u64,
    /// Of these, carried over REST-SSZ.
    pub over_rest: u64,
}

/// An answer that is not what the EL says by itself.
#[derive(Debug)]
pub struct Difference {
    /// The method called.
    pub method: String,
    /// Where the answers part, as a JSON pointer.
    pub at: String,
    /// What the EL says directly.
    pub direct: Value,
    /// What came through the sidecar.
    pub sidecar: Value,
}

impl Row {
    pub(super) fn new(method: &str) -> Self {
        Self {
            method: method.to_owned(),
            transports: BTreeMap::new(),
            json_bytes: 0,
            ssz_bytes: 0,
            rest_json_bytes: 0,
            direct: Vec::new(),
            sidecar: Vec::new(),
            differences: 0,
        }
    }

    fn calls(&self) -> u64 {
        self.transports.values().sum()
    }

    /// Calls carried over REST-SSZ.
    pub fn over_rest(&self) -> u64 {
        let rest = ["h2c", "http1"];
        rest.iter().filter_map(|transport| self.transports.get(transport)).sum()
    }
}

impl Report {
    /// All calls.
    pub fn calls(&self) -> u64 {
        self.methods.iter().map(Row::calls).sum()
    }

    /// Calls carried over REST-SSZ.
    pub fn over_rest(&self) -> u64 {
        self.methods.iter().map(Row::over_rest).sum()
    }
}

/// Whose words a validation error has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Words {
    /// The EL was asked.
    OfEl,
    /// The sidecar answered by itself.
    OfSidecar,
}

impl Difference {
    /// The first place where two answers part; nothing when they are the same to a CL.
    ///
    /// Of an error only the code is compared: message and data are for people, and REST-SSZ does
    /// not carry the EL's JSON-RPC wording. The same goes for the `validationError` of the one
    /// verdict that the sidecar gives itself.
    pub(super) fn between(
        method: &str,
        words: Words,
        direct: &Value,
        sidecar: &Value,
    ) -> Option<Self> {
        const VALIDATION_ERROR: &str = "/result/validationError";
        let both_give_words = [direct, sidecar]
            .iter()
            .all(|said| said.pointer(VALIDATION_ERROR).is_some_and(Value::is_string));
        if words == Words::OfSidecar && both_give_words {
            let mut reworded = sidecar.clone();
            reworded["result"]["validationError"] = direct["result"]["validationError"].clone();
            return Self::between(method, Words::OfEl, direct, &reworded);
        }
        let difference = |at: &str, direct: &Value, sidecar: &Value| Self {
            method: method.to_owned(),
            at: at.to_owned(),
            direct: direct.clone(),
            sidecar: sidecar.clone(),
        };
        if let (Value::Array(left), Value::Array(right)) = (direct, sidecar)
            && left.len() == right.len()
        {
            return left.iter().zip(right).find_map(|(l, r)| Self::between(method, words, l, r));
        }
        let codes = (direct.pointer("/error/code"), sidecar.pointer("/error/code"));
        if let (Some(left), Some(right)) = codes {
            let same = left == right && direct["id"] == sidecar["id"];
            return (!same).then(|| difference("/error", direct, sidecar));
        }
        let (at, left, right) = first_difference(String::new(), direct, sidecar)?;
        Some(difference(&at, left, right))
    }
}

fn first_difference<'a>(
    at: String,
    left: &'a Value,
    right: &'a Value,
) -> Option<(String, &'a Value, &'a Value)> {
    match (left, right) {
        (Value::Object(l), Value::Object(r)) if l.keys().eq(r.keys()) => l
            .iter()
            .zip(r.values())
            .find_map(|((name, l), r)| first_difference(format!("{at}/{name}"), l, r)),
        (Value::Array(l), Value::Array(r)) if l.len() == r.len() => l
            .iter()
            .zip(r)
            .enumerate()
            .find_map(|(n, (l, r))| first_difference(format!("{at}/{n}"), l, r)),
        _ => (left != right).then_some((at, left, right)),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<10} {:>6} {:>10} {:>14}", "fork", "blocks", "hot calls", "over REST-SSZ")?;
        for row in &self.forks {
            let ForkRow { fork, blocks, hot_calls, over_rest } = row;
            writeln!(f, "{fork:<10} {blocks:>6} {hot_calls:>10} {over_rest:>14}")?;
        }
        writeln!(
            f,
            "\n{:<33} {:>5} {:<20} {:>10} {:>10} {:>6} {:>10} {:>10} {:>5}",
            "method", "calls", "transport", "JSON", "SSZ", "ratio", "direct", "sidecar", "diffs"
        )?;
        for row in &self.methods {
            let (ssz, ratio) = match (row.ssz_bytes, row.rest_json_bytes) {
                (0, _) | (_, 0) => ("-".to_owned(), "-".to_owned()),
                (ssz, json) => (ssz.to_string(), format!("{:.2}", ssz as f64 / json as f64)),
            };
            let transports: Vec<_> = row.transports.keys().copied().collect();
            writeln!(
                f,
                "{:<33} {:>5} {:<20} {:>10} {:>10} {:>6} {:>10} {:>10} {:>5}",
                row.method,
                row.calls(),
                transports.join("+"),
                row.json_bytes,
                ssz,
                ratio,
                median(&row.direct),
                median(&row.sidecar),
                row.differences
            )?;
        }
        for difference in &self.differences {
            let Difference { method, at, direct, sidecar } = difference;
            let json = serde_json::json!({
                "method": method, "at": at, "direct": direct, "sidecar": sidecar
            });
            writeln!(f, "\n{json:#}")?;
        }
        writeln!(
            f,
            "\nJSON: bytes of bodies between CL and sidecar. SSZ: bytes of bodies between sidecar and\n\
             EL for the calls carried over REST-SSZ; ratio: SSZ to JSON of these calls. direct and\n\
             sidecar: median time to the last byte, the EL being asked over JSON-RPC and through\n\
             the sidecar."
        )?;
        writeln!(
            f,
            "demo: {} calls, {} over REST-SSZ, {} differences",
            self.calls(),
            self.over_rest(),
            self.differences.len()
        )
    }
}

fn median(durations: &[Duration]) -> String {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    match sorted.get(sorted.len() / 2) {
        Some(median) => format!("{:.2} ms", median.as_secs_f64() * 1e3),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(direct: Value, sidecar: Value) -> Option<String> {
        Difference::between("m", Words::OfEl, &direct, &sidecar).map(|difference| difference.at)
    }

    #[test]
    fn only_the_sidecars_own_verdict_may_be_worded_otherwise() {
        let status = |status: &str, error: Value| json!({"id": 1, "result": {"status": status, "validationError": error}});
        let direct = status("INVALID", json!("x"));
        let own = |sidecar: Value| Difference::between("m", Words::OfSidecar, &direct, &sidecar);
        assert!(own(status("INVALID", json!("y"))).is_none());
        assert!(own(status("INVALID", Value::Null)).is_some());
        assert!(own(status("VALID", json!("y"))).is_some());
        assert!(at(direct.clone(), status("INVALID", json!("y"))).is_some());
    }

    #[test]
    fn any_other_result_id_or_error_code_is_a_difference() {
        let said = json!({"id": 1, "result": {"a": [1, {"b": null}]}});
        assert_eq!(at(said.clone(), said.clone()), None);
        let other = json!({"id": 1, "result": {"a": [1, {"b": "0x"}]}});
        assert_eq!(at(said.clone(), other).as_deref(), Some("/result/a/1/b"));
        let missing = json!({"id": 1, "result": {"a": [1, {}]}});
        assert_eq!(at(said.clone(), missing).as_deref(), Some("/result/a/1"));
        let id = json!({"id": "1", "result": {"a": [1, {"b": null}]}});
        assert_eq!(at(said.clone(), id).as_deref(), Some("/id"));
        let error = json!({"id": 1, "error": {"code": -38001, "message": "x"}});
        assert_eq!(at(said, error.clone()).as_deref(), Some(""));
        let reworded = json!({"id": 1, "error": {"code": -38001, "message": "y", "data": 1}});
        assert_eq!(at(error.clone(), reworded), None);
        let recoded = json!({"id": 1, "error": {"code": -38002, "message": "x"}});
        assert_eq!(at(error, recoded).as_deref(), Some("/error"));
    }

    #[test]
    fn a_batch_is_compared_element_by_element() {
        let left = json!([{"id": 1, "result": 1}, {"id": 2, "result": 2}]);
        let right = json!([{"id": 1, "result": 1}, {"id": 2, "result": 3}]);
        assert_eq!(at(left.clone(), right).as_deref(), Some("/result"));
        assert_eq!(at(left.clone(), left), None);
        assert!(at(json!([1]), json!([1, 2])).is_some());
    }
}
