//! What the CL sees for each answer, and the table of it in `docs/real-answers.md`.

use super::{
    calls::{self, Likeness, Matching},
    samples::{self, Sample},
};
use engine_ssz_proxy::{
    el::Capabilities,
    engine::{Answer, Method, Step, Verdict},
};
use serde_json::Value;
use std::fmt;

/// What becomes of a call when the EL answers it so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Result(Value),
    Error(i64),
    Status(u16),
    /// Asked over JSON-RPC, with the reason's label.
    Ask(&'static str),
    /// The same, and its endpoint with it.
    Turn(&'static str),
}

pub fn outcome(sample: &Sample, matching: &Matching) -> Outcome {
    let scene = calls::scene(matching.fork, &matching.request);
    let (mut call, mut step) = scene.begin(&matching.request);
    // A call in pieces hears the same each time.
    for _ in 0..8 {
        step = match step {
            Step::Send(_) => scene.hear(&mut call, sample.response()),
            Step::Relay(reason) if reason.verdict() == Verdict::Deviates => {
                return Outcome::Turn(reason.label());
            }
            Step::Relay(reason) => return Outcome::Ask(reason.label()),
            Step::Answer(Answer::Result(result)) => {
                return Outcome::Result(serde_json::from_slice(&result).unwrap());
            }
            Step::Answer(Answer::Error(error)) => return Outcome::Error(error.code.0),
            Step::Answer(Answer::Refused(status)) => return Outcome::Status(status.as_u16()),
            Step::Consult(_) => break,
        }
    }
    panic!("{}/{}: no end", sample.head.el, sample.head.name);
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Result(result) => write!(f, "result: {}", summary(result)),
            Self::Error(code) => write!(f, "error {code}"),
            Self::Status(status) => write!(f, "HTTP {status}"),
            Self::Ask(label) => write!(f, "asked over JSON-RPC ({label})"),
            Self::Turn(label) => write!(f, "**endpoint turned to JSON-RPC** ({label})"),
        }
    }
}

fn summary(result: &Value) -> String {
    let status = |status: &Value| {
        let hash = match status["latestValidHash"].is_null() {
            true => "without",
            false => "with",
        };
        format!("{} {hash} latestValidHash", status["status"].as_str().unwrap())
    };
    if let Some(payload_status) = result.get("payloadStatus") {
        let id = if result["payloadId"].is_null() { "no id" } else { "an id" };
        return format!("{}, {id}", status(payload_status));
    }
    if result.get("status").is_some() {
        return status(result);
    }
    if let Some(payload) = result.get("executionPayload") {
        let blobs = result.pointer("/blobsBundle/blobs").and_then(Value::as_array).map(Vec::len);
        let transactions = payload["transactions"].as_array().unwrap().len();
        return format!("payload, {transactions} transactions, {} blobs", blobs.unwrap_or(0));
    }
    match result.as_array() {
        Some(list) if list.iter().any(|entry| entry.get("code").is_some()) => "identity".to_owned(),
        Some(list) => {
            let missing = list.iter().filter(|entry| entry.is_null()).count();
            format!("{} entries, {missing} of them null", list.len())
        }
        None => result.to_string(),
    }
}

/// One row of the table, and the chains that it holds for.
struct Row {
    name: String,
    cells: String,
    chains: Vec<String>,
}

/// The whole document.
pub fn document(samples: &[Sample]) -> String {
    let mut document = INTRODUCTION.to_owned();
    for (title, prefix) in SECTIONS {
        document += &format!(
            "\n## {title}\n\n| sample | chain | the EL's answer | call | the CL sees |\n|-|-|-|-|-|\n"
        );
        let of_section =
            |sample: &&Sample| sample.head.el.starts_with(prefix) && !sample.is_json_rpc();
        for row in rows(samples.iter().filter(of_section)) {
            let chains = row.chains.join(", ");
            document += &format!("| `{}` | {chains} | {} |\n", row.name, row.cells);
        }
    }
    document += "\n## Left out\n\n| sample | chain | why |\n|-|-|-|\n";
    for left_out in samples::left_out() {
        let chain = chain(&left_out.el);
        document += &format!("| `{}` | {chain} | {} |\n", left_out.name, left_out.why);
    }
    document
}

fn rows<'a>(samples: impl Iterator<Item = &'a Sample>) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for sample in samples {
        let cells = format!("{} | {}", said(sample), seen(sample));
        let name = sample.head.name.clone();
        let chain = chain(&sample.head.el);
        match rows.iter_mut().find(|row| row.name == name && row.cells == cells) {
            Some(row) => row.chains.push(chain),
            None => rows.push(Row { name, cells, chains: vec![chain] }),
        }
    }
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    rows
}

/// Call and outcome.
fn seen(sample: &Sample) -> String {
    if sample.is_offer() {
        let capabilities = Capabilities::read(&sample.answer).unwrap();
        return format!("- | an offer of {} forks", capabilities.supported_forks.len());
    }
    let matching = calls::matching(sample);
    let mark = match matching.likeness {
        Likeness::Same => "",
        Likeness::SameBut => " †",
        Likeness::Unsent => " §",
        Likeness::Canonical => " ‡",
    };
    let method = matching.request["method"].as_str().unwrap();
    // Chains differ in the versions only; blobs have an endpoint for each.
    let family = match Method::from_name(method) {
        Some(Method::Blobs(_)) => method,
        _ => method.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('V'),
    };
    format!("{}{mark} | {}", family.trim_start_matches("engine_"), outcome(sample, &matching))
}

/// Status, and media type or problem type.
fn said(sample: &Sample) -> String {
    let status = sample.head.status;
    let media_type = sample.head.content_type.as_deref().unwrap_or("no content type");
    let problem: Option<Value> = match media_type {
        "application/problem+json" => serde_json::from_slice(&sample.answer).ok(),
        _ => None,
    };
    let problem =
        problem.and_then(|problem| Some(problem["type"].as_str()?.rsplit('/').next()?.to_owned()));
    match (problem, media_type) {
        (Some(problem), _) => format!("{status} {problem}"),
        (None, "application/octet-stream") => format!("{status} SSZ"),
        (None, media_type) => format!("{status} {media_type}"),
    }
}

fn chain(el: &str) -> String {
    el.rsplit('-').next().unwrap_or_default().to_owned()
}

const SECTIONS: [(&str, &str); 2] = [
    ("reth, newest handlers", "reth-stage2"),
    ("reth, handlers of July and August", "reth-stage1"),
];

const INTRODUCTION: &str = "\
# What the CL sees for the answers of real ELs

Answers captured from two builds of reth 2.5.0-dev on chains of one fork each: one with the newest REST
handlers, one with the handlers of July and August 2026, which answer errors with plain text and serve blobs
as bare lists. Each was fed to the translation as the EL's answer to the JSON-RPC call that the captured
request stands for. `cargo test --test engine real_answers` holds this table; with `UPDATE_REAL_ANSWERS=1` it
is written anew. The bytes are in `tests/data/real-answers`.

- † the request had a wrong header on purpose, which the sidecar never sends; verb, path, fork and body are
  those that the sidecar sends.
- ‡ the request was wrong on purpose or is of no endpoint: the answer was fed to a well-formed call of the
  endpoint, or to newPayload.
- § the sidecar never sends this call, so the answer does not matter.
- In parentheses: the label of the reason, as in the metrics. An endpoint is turned until the EL restarts; see
  [errors.md](errors.md).
";
