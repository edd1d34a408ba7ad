//! The answers in `tests/data/real-answers`; its README tells the form.

use bytes::Bytes;
use http::Response;
use serde::Deserialize;
use std::{collections::HashMap, fs, path::PathBuf};

/// One exchange with a real EL.
#[derive(Clone, Debug)]
pub struct Sample {
    pub head: Head,
    /// Body of the request, where it was kept.
    pub request: Option<Bytes>,
    pub answer: Bytes,
}

/// What `answers.jsonl` says of an exchange.
#[derive(Clone, Debug, Deserialize)]
pub struct Head {
    pub el: String,
    pub name: String,
    pub method: String,
    /// With the query.
    pub path: String,
    /// `Eth-Execution-Version` of the request.
    pub fork: Option<String>,
    /// `Content-Type` of the request.
    pub request_type: Option<String>,
    request: Option<String>,
    pub status: u16,
    /// `Content-Type` of the answer.
    pub content_type: Option<String>,
    answer: String,
}

/// An exchange that is not among the samples, and why.
#[derive(Clone, Debug, Deserialize)]
pub struct LeftOut {
    pub el: String,
    pub name: String,
    pub why: String,
}

#[derive(Deserialize)]
struct Body {
    id: String,
    pieces: Vec<Piece>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Piece {
    Hex(String),
    Text(String),
    Zeros(usize),
    File(String),
    HexOf(String),
}

impl Sample {
    pub fn is_json_rpc(&self) -> bool {
        self.head.method == "POST" && self.head.path == "/"
    }

    /// A capabilities document, which is the probe's to read.
    pub fn is_offer(&self) -> bool {
        self.head.path.starts_with("/engine/v1/capabilities") && self.head.status == 200
    }

    /// The answer as the door to the EL hands it on.
    pub fn response(&self) -> Response<Bytes> {
        let mut response = Response::builder().status(self.head.status);
        if let Some(content_type) = &self.head.content_type {
            response = response.header("content-type", content_type);
        }
        response.body(self.answer.clone()).unwrap()
    }
}

pub fn all() -> Vec<Sample> {
    let bodies: HashMap<String, Bytes> =
        lines("bodies.jsonl").map(|body: Body| (body.id, joined(&body.pieces))).collect();
    lines("answers.jsonl")
        .map(|head: Head| Sample {
            request: head.request.as_ref().map(|id| bodies[id].clone()),
            answer: bodies[&head.answer].clone(),
            head,
        })
        .collect()
}

pub fn left_out() -> Vec<LeftOut> {
    lines("left-out.jsonl").collect()
}

fn lines<T: for<'a> Deserialize<'a>>(file: &str) -> impl Iterator<Item = T> {
    let text = fs::read_to_string(path(file)).unwrap();
    let lines: Vec<_> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.into_iter()
}

fn joined(pieces: &[Piece]) -> Bytes {
    let mut body = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Hex(hex) => body.extend(const_hex::decode(hex).unwrap()),
            Piece::Text(text) => body.extend(text.as_bytes()),
            Piece::Zeros(count) => body.resize(body.len() + count, 0),
            Piece::File(name) => body.extend(fs::read(path("chunks").join(name)).unwrap()),
            Piece::HexOf(name) => {
                let chunk = fs::read(path("chunks").join(name)).unwrap();
                body.extend(const_hex::encode(chunk).into_bytes());
            }
        }
    }
    body.into()
}

fn path(file: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/data/real-answers", file].iter().collect()
}
