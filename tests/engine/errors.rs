//! What becomes of an answer that is no result: the table of `docs/errors.md`, row by row, each
//! with every family of methods. Without a fork schedule, so that headers are guesses.

use crate::support::*;
use bytes::Bytes;
use engine_ssz_proxy::engine::{Answer, Step, Verdict};
use http::Response;
use serde_json::{Value, json};
use std::fmt;

/// What the CL gets, or what is done instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    /// The call is asked over JSON-RPC.
    Ask,
    /// That, and the endpoint goes to JSON-RPC until the EL restarts.
    Turn,
    /// Sent once more under the fork of the same shape, then asked over JSON-RPC.
    SiblingThenAsk,
    /// That JSON-RPC error.
    Code(i64),
    /// The same HTTP status.
    SameStatus,
    /// `null` or as many as were asked for; V4 is asked over JSON-RPC, which decides the endpoint.
    Null,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ask => f.write_str("ask"),
            Self::Turn => f.write_str("turn"),
            Self::SiblingThenAsk => f.write_str("sibling, then ask"),
            Self::Code(code) => write!(f, "{code}"),
            Self::SameStatus => f.write_str("same HTTP status"),
            Self::Null => f.write_str("null; V4: ask, turn if JSON-RPC has them"),
        }
    }
}

use Cell::{Ask, Code, Null, SameStatus, SiblingThenAsk, Turn};

/// One row: how it is called, what the EL says, and the cells of newPayload, forkchoiceUpdated,
/// getPayload, bodies and blobs.
type Row = (&'static str, Vec<Response<Bytes>>, [Cell; 5]);

fn problems(status: u16, names: &[&str]) -> Vec<Response<Bytes>> {
    names.iter().map(|name| problem(status, name)).collect()
}

/// The forms of an answer that is no problem document of the specification.
fn bare(statuses: &[u16]) -> Vec<Response<Bytes>> {
    let forms = |status: &u16| {
        let said = r#"{"type":"/engine-api/errors/unsupported-fork"}"#;
        [
            answer(*status, "text/plain", "forkchoice update error: invalid forkchoice state"),
            answer(*status, "text/html; charset=utf-8", "<html>"),
            answer(*status, "application/json", said),
            answer(*status, "application/octet-stream", vec![0; 9]),
            answer(*status, PROBLEM, r#"{"type":"about:blank","title":"Not Found"}"#),
            answer(*status, PROBLEM, "{"),
            answer(*status, "", ""),
        ]
    };
    statuses.iter().flat_map(forms).collect()
}

fn any_form(status: u16, name: &str) -> Vec<Response<Bytes>> {
    [vec![problem(status, name)], bare(&[status])].concat()
}

fn rows() -> Vec<Row> {
    let media_types = [("text/plain", "ok"), ("application/json", "{}"), ("", "")];
    let other = |(content_type, body)| answer(200, content_type, body);
    let elsewhere = [408, 413, 429, 431, 502, 504].map(|status| any_form(status, "any")).concat();
    let untaken = [405, 415, 501].map(|status| any_form(status, "any")).concat();
    let auth = [401, 403].map(|status| any_form(status, "unauthorized")).concat();
    let attributes = [400, 422].map(|status| problem(status, "invalid-attributes")).into();
    vec![
        ("200 of another media type", media_types.map(other).into(), [Turn; 5]),
        ("200 that is not the endpoint's SSZ", vec![answer(200, SSZ, "short")], [Turn; 5]),
        ("204", vec![answer(204, "", "")], [Turn, Turn, Turn, Turn, Null]),
        ("any other 2xx, 3xx", bare(&[202, 206, 301, 307]), [Turn; 5]),
        (
            "400 parse-error, ssz-decode-error",
            problems(400, &["parse-error", "ssz-decode-error"]),
            [Ask, Turn, Turn, Turn, Turn],
        ),
        ("400 invalid-request", problems(400, &["invalid-request"]), [Ask; 5]),
        (
            "400 unsupported-fork",
            problems(400, &["unsupported-fork"]),
            [SiblingThenAsk, SiblingThenAsk, SiblingThenAsk, Ask, Ask],
        ),
        ("400 or 422 invalid-attributes", attributes, [Ask, Code(-38003), Ask, Ask, Ask]),
        ("401, 403 in any form", auth, [SameStatus; 5]),
        ("404 unknown-payload", problems(404, &["unknown-payload"]), [Ask; 5]),
        ("404 in any other form", any_form(404, "method-not-found"), [Turn; 5]),
        ("405, 415, 501 in any form", untaken, [Turn; 5]),
        (
            "409 invalid-forkchoice",
            problems(409, &["invalid-forkchoice"]),
            [Ask, Code(-38002), Ask, Ask, Ask],
        ),
        (
            "409 reorg-too-deep, too-deep-reorg",
            problems(409, &["reorg-too-deep", "too-deep-reorg"]),
            [Ask, Code(-38006), Ask, Ask, Ask],
        ),
        ("408, 413, 429, 431, 502, 504 in any form", elsewhere, [Ask; 5]),
        ("422 invalid-body", problems(422, &["invalid-body"]), [Ask, Code(-32602), Ask, Ask, Ask]),
        ("500 internal", problems(500, &["internal"]), [Ask; 5]),
        (
            "503 in any form",
            any_form(503, "service-unavailable"),
            [Code(-32000), Code(-32000), Code(-32000), Ask, Ask],
        ),
        (
            "another problem type",
            [400, 409, 418, 422, 500].map(|status| problem(status, "a-type-of-tomorrow")).into(),
            [Ask; 5],
        ),
        (
            "any other 4xx or 5xx as text, HTML, JSON, about:blank or nothing",
            bare(&[400, 409, 410, 418, 422, 500, 505]),
            [Turn; 5],
        ),
    ]
}

/// Each family's column with calls of it; all of a family fare alike.
fn families() -> [(&'static str, Vec<Value>); 5] {
    let call = |method: &str, params: Value| json!({"method": method, "params": params});
    let hashes = || json!([format!("0x{:064x}", 1)]);
    let with_attributes = build("12-osaka").0;
    let mut without = with_attributes.clone();
    without["params"][1] = Value::Null;
    let columns = format!("0x{}", "ff".repeat(16));
    [
        ("newPayload", vec![golden("12-osaka", "newPayload"), golden("09-prague", "newPayload")]),
        ("forkchoiceUpdated", vec![without, with_attributes]),
        ("getPayload", vec![call("engine_getPayloadV2", json!(["0x0000000000000001"]))]),
        (
            "bodies",
            vec![
                call("engine_getPayloadBodiesByHashV1", json!([hashes()])),
                call("engine_getPayloadBodiesByHashV2", json!([hashes()])),
                call("engine_getPayloadBodiesByRangeV1", json!(["0x1", "0x1"])),
                call("engine_getPayloadBodiesByRangeV2", json!(["0x1", "0x1"])),
            ],
        ),
        (
            "blobs",
            vec![
                call("engine_getBlobsV1", json!([hashes()])),
                call("engine_getBlobsV2", json!([hashes()])),
                call("engine_getBlobsV3", json!([hashes()])),
                call("engine_getBlobsV4", json!([hashes(), columns])),
            ],
        ),
    ]
}

/// What becomes of the call when the EL says this, however often it is asked.
///
/// The schedule is known, except where what is done without one is the point of the row.
fn outcome(row: &str, request: &Value, said: &Response<Bytes>) -> Result<Cell, Step> {
    let scene = match row {
        "400 unsupported-fork" => Scene::new(),
        _ => Scene::scheduled(),
    };
    let (mut call, _) = scene.sent(request);
    let mut step = scene.hear(&mut call, said.clone());
    let is_sent_again = matches!(step, Step::Send(_));
    if is_sent_again {
        step = scene.hear(&mut call, said.clone());
    }
    match step {
        Step::Relay(reason) => match (reason.verdict(), is_sent_again) {
            (Verdict::Open, true) => Ok(SiblingThenAsk),
            (Verdict::Open, false) => Ok(Ask),
            (Verdict::Deviates, false) => Ok(Turn),
            (Verdict::DeviatesIfJsonRpcHas, false) => Ok(Null),
            (_, true) => Err(Step::Relay(reason)),
        },
        _ if is_sent_again => Err(step),
        Step::Answer(Answer::Error(error)) => Ok(Code(error.code.0)),
        Step::Answer(Answer::Refused(status)) if status == said.status() => Ok(SameStatus),
        Step::Answer(Answer::Result(result)) if result == "null" || result == "[null]" => Ok(Null),
        step => Err(step),
    }
}

#[test]
fn status_06_status_07_each_row_of_the_error_table_holds_for_each_family_of_methods() {
    let mut wrong = Vec::new();
    let mut checked = 0;
    for (row, answers, cells) in rows() {
        for said in &answers {
            for ((family, requests), wanted) in families().into_iter().zip(cells) {
                for request in requests {
                    checked += 1;
                    match outcome(row, &request, said) {
                        Ok(got) if got == wanted => {}
                        got => wrong.push(format!(
                            "{row} / {family} ({}): {wanted:?} wanted, got {got:?} for {said:?}",
                            request["method"]
                        )),
                    }
                }
            }
        }
    }
    assert!(checked > 1000, "only {checked} cells");
    assert!(wrong.is_empty(), "{} of {checked}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_table_in_the_documentation_is_this_one() {
    let families = families().map(|(family, _)| family).join(" | ");
    let mut table = format!("| REST answer | {families} |\n|-|-|-|-|-|-|\n");
    for (row, _, cells) in rows() {
        table += &format!("| {row} | {} |\n", cells.map(|cell| cell.to_string()).join(" | "));
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/errors.md");
    let document = std::fs::read_to_string(path).unwrap();
    assert!(document.contains(&table), "docs/errors.md is to have this table:\n{table}");
}

#[test]
fn a_refused_forkchoice_keeps_the_els_words() {
    let scene = Scene::scheduled();
    let (mut call, _) = scene.sent(&build("12-osaka").0);
    let body = r#"{"type":"/engine-api/errors/invalid-forkchoice","detail":"unknown head"}"#;
    match scene.hear(&mut call, answer(409, PROBLEM, body)) {
        Step::Answer(Answer::Error(error)) => {
            let data = error.data.map(|data| data.get().to_owned());
            assert_eq!(data.as_deref(), Some(r#""unknown head""#));
        }
        step => panic!("{step:?}"),
    }
}

#[test]
fn an_identity_is_asked_over_json_rpc_whatever_the_refusal_and_the_token_is_the_cls() {
    let version = json!({"code": "XX", "name": "x", "version": "v1", "commit": "0x00000000"});
    let request = json!({"method": "engine_getClientVersionV1", "params": [version]});
    for (said, wanted) in [
        (problem(404, "method-not-found"), Turn),
        (answer(404, "", ""), Turn),
        (answer(200, "text/plain", "v1"), Turn),
        (problem(500, "internal"), Ask),
        (problem(503, "service-unavailable"), Ask),
        (answer(401, "text/plain", "no"), SameStatus),
    ] {
        assert_eq!(outcome("", &request, &said).unwrap(), wanted, "{said:?}");
    }
}
