//! Where an answer through the sidecar parts from the EL's own.

use serde_json::Value;

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
