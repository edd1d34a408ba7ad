//! Answers of real ELs through the translation.

mod calls;
mod samples;
mod table;

use calls::Likeness;
use engine_ssz_proxy::{
    engine::{Answer, Method, Said, Step},
    jsonrpc,
};
use samples::Sample;
use serde_json::{Value, json};
use std::{
    collections::{BTreeSet, HashMap},
    fs,
};
use table::Outcome;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/real-answers.md");

/// What that EL, or those ELs, said over REST but for their offers.
fn rest(prefix: &str) -> Vec<Sample> {
    let mut samples = samples::all();
    samples.retain(|sample| {
        sample.head.el.starts_with(prefix) && !sample.is_json_rpc() && !sample.is_offer()
    });
    samples
}

/// Endpoints turned by the answers to some requests.
fn turned(
    samples: &[Sample],
    counts: impl Fn(&Sample, Likeness) -> bool,
) -> BTreeSet<&'static str> {
    let mut turned = BTreeSet::new();
    for sample in samples {
        let matching = calls::matching(sample);
        if counts(sample, matching.likeness)
            && let Outcome::Turn(_) = table::outcome(sample, &matching)
        {
            let method = Method::from_name(matching.request["method"].as_str().unwrap());
            turned.insert(method.and_then(Method::rest_endpoint).unwrap().name());
        }
    }
    turned
}

#[test]
fn the_table_in_the_documentation_tells_what_the_cl_sees() {
    let samples = samples::all();
    assert!(samples.len() > 700, "only {} samples", samples.len());
    let document = table::document(&samples);
    if std::env::var_os("UPDATE_REAL_ANSWERS").is_some() {
        fs::write(DOCUMENT, &document).unwrap();
    }
    let kept = fs::read_to_string(DOCUMENT).unwrap_or_default();
    for (line, (kept, new)) in kept.lines().zip(document.lines()).enumerate() {
        assert_eq!(kept, new, "docs/real-answers.md:{}", line + 1);
    }
    assert_eq!(kept.len(), document.len(), "docs/real-answers.md ends early or late");
}

#[test]
fn most_samples_are_answers_to_the_very_bytes_that_the_sidecar_sends() {
    let samples = rest("");
    let same = samples.iter().filter(|sample| calls::matching(sample).likeness == Likeness::Same);
    let (same, all) = (same.count(), samples.len());
    assert!(same * 2 > all, "{same} of {all}");
}

#[test]
fn no_request_of_the_sidecar_turns_an_endpoint_of_the_newest_handlers() {
    let ours = |_: &Sample, likeness| likeness == Likeness::Same;
    assert_eq!(turned(&rest("reth-stage2"), ours), BTreeSet::new());
}

#[test]
fn each_deviating_endpoint_of_the_older_handlers_is_turned_and_no_other() {
    let samples = rest("reth-stage1");
    let ours = |_: &Sample, likeness| likeness == Likeness::Same;
    let wanted = ["blobs_v1", "blobs_v2", "blobs_v3", "blobs_v4", "forkchoice", "payloads_fetch"];
    assert_eq!(turned(&samples, ours), BTreeSet::from(wanted));
    // No good payload of the captures was refused; how they refuse is seen at the bad ones.
    let of_payloads = |sample: &Sample, _| sample.head.path.starts_with("/engine/v1/payloads");
    let wanted = ["payloads_fetch", "payloads_submit"];
    assert_eq!(turned(&samples, of_payloads), BTreeSet::from(wanted));
}

/// What was said, piece by piece: a body of a block, a blob of a hash, or one thing as a whole.
fn statements(request: &Value, said: Value) -> Vec<(String, Value)> {
    let (method, params) = (request["method"].as_str().unwrap(), &request["params"]);
    let key = |piece: String| format!("{method} {piece}");
    match said {
        Value::Array(entries) if method.starts_with("engine_getBlobs") => {
            let hashes = params[0].as_array().unwrap().iter();
            let piece = |hash| key(format!("{hash} of {}", params[1]));
            hashes.map(piece).zip(entries).collect()
        }
        Value::Array(entries) if method.starts_with("engine_getPayloadBodiesByRange") => {
            let start = params[0].as_str().unwrap().trim_start_matches("0x");
            let start = u64::from_str_radix(start, 16).unwrap();
            (start..).map(|number| key(number.to_string())).zip(entries).collect()
        }
        said => vec![(key(params.to_string()), said)],
    }
}

#[test]
fn what_the_cl_sees_is_what_the_same_el_says_over_json_rpc() {
    let samples = samples::all();
    let mut compared = BTreeSet::new();
    let mut different = Vec::new();
    for el in samples.iter().map(|sample| &sample.head.el).collect::<BTreeSet<_>>() {
        let mut over_rest: HashMap<String, Vec<(String, Value)>> = HashMap::new();
        for sample in rest(el) {
            let matching = calls::matching(&sample);
            let said = match table::outcome(&sample, &matching) {
                _ if matching.likeness != Likeness::Same => continue,
                Outcome::Result(result) => result,
                Outcome::Error(code) => json!({ "code": code }),
                _ => continue,
            };
            for (key, said) in statements(&matching.request, said) {
                over_rest.entry(key).or_default().push((sample.head.name.clone(), said));
            }
        }
        for twin in samples.iter().filter(|twin| twin.is_json_rpc() && twin.head.el == **el) {
            let asked: Value =
                serde_json::from_slice(&twin.request.clone().unwrap()).unwrap_or_default();
            let answer: Value = serde_json::from_slice(&twin.answer).unwrap_or_default();
            let said = match (answer.get("result"), answer.pointer("/error/code")) {
                (Some(result), _) => result.clone(),
                (None, Some(code)) => json!({ "code": code }),
                (None, None) => continue,
            };
            for (key, said) in statements(&asked, said) {
                // The same call at another time may rightly have had another answer.
                let Some(over_rest) = over_rest.get(&key) else { continue };
                compared.insert(asked["method"].as_str().unwrap().to_owned());
                if over_rest.iter().all(|(_, over_rest)| *over_rest != said) {
                    let names: Vec<_> = over_rest.iter().map(|(name, _)| name).collect();
                    let twin = &twin.head.name;
                    different.push(format!("{el}: {twin} says other than {names:?} of {key}"));
                }
            }
        }
    }
    assert!(compared.len() > 8, "only {compared:?}");
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn nothing_that_a_real_el_said_panics_whatever_it_is_an_answer_to() {
    let samples = rest("");
    let mut matchings: Vec<calls::Matching> = Vec::new();
    for sample in &samples {
        let matching = calls::matching(sample);
        if matchings.iter().all(|known| known.request["method"] != matching.request["method"]) {
            matchings.push(matching);
        }
    }
    let mut seen = BTreeSet::new();
    for sample in &samples {
        let kind = (sample.head.status, sample.head.content_type.clone(), sample.answer.clone());
        // A body of several hundred kB more or less is no other kind of answer.
        if sample.answer.len() > 50_000 || !seen.insert(kind) {
            continue;
        }
        for matching in &matchings {
            table::outcome(sample, matching);
        }
    }
    assert!(seen.len() > 60 && matchings.len() > 15, "{} x {}", seen.len(), matchings.len());
}

#[test]
fn each_json_rpc_answer_is_read_as_the_result_or_the_error_that_it_is() {
    let mut read = 0;
    for sample in samples::all().iter().filter(|sample| sample.is_json_rpc()) {
        let name = format!("{}/{}", sample.head.el, sample.head.name);
        let Some(answer) = jsonrpc::answer_of(&sample.answer) else {
            assert_ne!(sample.head.status, 200, "{name}");
            continue;
        };
        read += 1;
        let wanted: Value = serde_json::from_slice(&sample.answer).unwrap();
        let result = answer.verdict.result().map(|raw| serde_json::from_slice(raw).unwrap());
        assert_eq!(result.as_ref(), wanted.get("result"), "{name}");
        let code = answer.verdict.error().map(|error| Value::from(error.code.0));
        assert_eq!(code.as_ref(), wanted.pointer("/error/code"), "{name}");
    }
    assert!(read > 80, "only {read}");
}

#[test]
fn the_capabilities_of_a_real_el_reach_the_cl_as_they_are() {
    let method = Method::from_name("engine_exchangeCapabilities").unwrap();
    let mut read = 0;
    for sample in samples::all() {
        if !sample.head.name.ends_with("rpc-exchangeCapabilities") {
            continue;
        }
        let raw = jsonrpc::answer_of(&sample.answer).unwrap().verdict.result().unwrap();
        let raw = sample.answer.slice_ref(raw);
        let scene = crate::support::Scene::new();
        let (mut call, _) =
            engine_ssz_proxy::engine::Call::begin(method, Some(b"[[]]"), scene.context());
        match call.resume(Said::JsonResult(raw.clone()), scene.context()) {
            Step::Answer(Answer::Result(result)) => assert_eq!(result, raw),
            step => panic!("{step:?}"),
        }
        read += 1;
    }
    assert_eq!(read, 4);
}
