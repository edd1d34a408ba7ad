//! The CLs that only ask.

use super::{
    draw::Draw,
    heads::Span,
    lap::{Due, Lap, Outcome, PAUSE, PayloadIds, Question, Slot},
    line::Line,
    truth::{Truth, result},
};
use crate::tools::eras::{Era, ZERO_HASH, quantity};
use serde_json::{Value, json};
use std::sync::Arc;

/// Bodies in one question, at most.
const BODIES: u64 = 12;

/// Asks whatever a CL asks, in no order.
pub(super) async fn read(lap: Arc<Lap>, line: Line, mut draw: Draw) {
    while !lap.is_over() {
        let question = lap.any_question(&mut draw);
        if let Outcome::Else = lap.ask(&line, question).await {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Lap {
    /// `engine_getPayload` of a build.
    pub(super) fn get_payload(&self, era: &'static Era, payload: &PayloadIds) -> Question {
        let mut question = self.question(era.get_payload, json!([payload.el]));
        question.due = Due::Instead(request(era.get_payload, json!([payload.reference])));
        question.build_made = Some(payload.made);
        question
    }

    fn any_question(&self, draw: &mut Draw) -> Question {
        let newest = self.newest();
        match (draw.below(20), newest) {
            (0..=3, Some(newest)) => self.blobs(draw, &newest),
            (4..=6, _) => self.bodies_by_hash(draw),
            (7..=8, Some(newest)) => self.bodies_by_range(draw, &newest),
            (9..=10, Some(newest)) => self.get_payload(newest.era, &newest.payload),
            (11, _) => {
                self.question("engine_exchangeCapabilities", json!([["engine_newPayloadV1"]]))
            }
            (12, _) => self.question(
                "engine_getClientVersionV1",
                json!([{"code": "EP", "name": "soak", "version": "1", "commit": "0x00000000"}]),
            ),
            (13, Some(newest)) => self.block_by_number(draw, &newest),
            (14..=15, Some(slot)) => self.question("eth_getBlockByHash", json!([slot.hash, false])),
            (16, _) => self.block_number(),
            (17, _) => self.batch(),
            (18, _) => self.question("eth_syncing", json!([])),
            _ => self.question("eth_chainId", json!([])),
        }
    }

    fn any_slot(&self, draw: &mut Draw) -> Option<Arc<Slot>> {
        draw.one(&self.slots()).cloned()
    }

    fn blobs(&self, draw: &mut Draw, newest: &Slot) -> Question {
        let slot = self.any_slot(draw);
        let slot = slot.as_deref().unwrap_or(newest);
        let Some(method) = draw.one(slot.era.blobs).copied() else {
            return self.question("eth_getBlockByHash", json!([slot.hash, false]));
        };
        // After Osaka no CL asks for what has ended with it.
        if method == "engine_getBlobsV1" && newest.number >= self.first_of("osaka") {
            return self.question("eth_getBlockByHash", json!([slot.hash, false]));
        }
        let mut hashes = slot.blobs.clone();
        if hashes.is_empty() || draw.once_in(8) {
            hashes.push(ZERO_HASH.to_owned());
        }
        let mut params = json!([hashes]);
        if let ("engine_getBlobsV4", Some(params)) = (method, params.as_array_mut()) {
            params.push(json!("0x81000000000000000000000000000080"));
        }
        let mut question = self.question(method, params);
        if method == "engine_getBlobsV1" {
            question.due = self.blobs_v1(question.body.clone(), hashes.len());
        }
        question
    }

    /// osaka.md ends this method with the first head of Osaka.
    fn blobs_v1(&self, request: Value, asked: usize) -> Due {
        let first = self.first_of("osaka");
        Due::Made(
            request,
            Box::new(move |said, span| {
                let id = said["id"].clone();
                let ended = json!({
                    "jsonrpc": "2.0", "id": id, "error": {"code": -38005, "message": ""}
                });
                match said.get("error") {
                    // The reference is ahead, so it cannot say what the blobs are.
                    Some(_) => Truth::ListOr { entries: asked, otherwise: said },
                    None if span.highest >= first => Truth::OneOf(vec![ended, said]),
                    None => Truth::Is(said),
                }
            }),
        )
    }

    fn bodies_by_hash(&self, draw: &mut Draw) -> Question {
        let mut hashes: Vec<_> = (0..=draw.below(BODIES))
            .filter_map(|_| self.any_slot(draw).map(|slot| slot.hash.clone()))
            .collect();
        if hashes.is_empty() || draw.once_in(4) {
            hashes.push(ZERO_HASH.to_owned());
        }
        let methods = ["engine_getPayloadBodiesByHashV1", "engine_getPayloadBodiesByHashV2"];
        self.question(draw.one(&methods).copied().unwrap_or(methods[0]), json!([hashes]))
    }

    /// The reference is asked by hash, as its own head is another one.
    fn bodies_by_range(&self, draw: &mut Draw, newest: &Slot) -> Question {
        let methods = [
            ("engine_getPayloadBodiesByRangeV1", "engine_getPayloadBodiesByHashV1"),
            ("engine_getPayloadBodiesByRangeV2", "engine_getPayloadBodiesByHashV2"),
        ];
        let (method, by_hash) = draw.one(&methods).copied().unwrap_or(methods[0]);
        let count = 1 + draw.below(BODIES);
        // Not up to the head: what is published until the answer comes is not known here.
        let start = 1 + draw.below(newest.number.saturating_sub(count));
        let hashes: Vec<_> = {
            let slots = self.slots();
            let skipped = usize::try_from(start - 1).unwrap_or(usize::MAX);
            let taken = usize::try_from(count).unwrap_or(usize::MAX);
            slots.iter().skip(skipped).take(taken).map(|slot| slot.hash.clone()).collect()
        };
        let asked = hashes.len() as u64;
        let mut question = self.question(method, json!([quantity(start), quantity(asked)]));
        question.due = Due::Made(
            request(by_hash, json!([hashes])),
            Box::new(move |said, span| {
                let whole = said["result"].as_array().cloned().unwrap_or_default();
                let there = (span.lowest + 1).saturating_sub(start).min(asked);
                Truth::Begins { whole, at_least: usize::try_from(there).unwrap_or(usize::MAX) }
            }),
        );
        question
    }

    fn block_by_number(&self, draw: &mut Draw, newest: &Slot) -> Question {
        let slot = self.any_slot(draw);
        let slot = slot.as_deref().unwrap_or(newest);
        let number = slot.number;
        let params = json!([quantity(number), false]);
        let mut question = self.question("eth_getBlockByNumber", params);
        question.due = Due::Made(
            request("eth_getBlockByHash", json!([slot.hash, false])),
            Box::new(move |said, span| match span.lowest >= number {
                true => Truth::Is(said),
                false => {
                    let none = result(&said["id"], Value::Null);
                    Truth::OneOf(vec![said, none])
                }
            }),
        );
        question
    }

    fn block_number(&self) -> Question {
        let mut question = self.question("eth_blockNumber", json!([]));
        let due = question.body.clone();
        question.due = Due::Made(due, Box::new(|_, span: Span| Truth::Within(span)));
        question
    }

    /// Calls that have no meaning to the sidecar.
    fn batch(&self) -> Question {
        let hash = self.newest().map_or_else(|| self.genesis_hash(), |slot| slot.hash.clone());
        let calls = [
            ("eth_chainId", json!([])),
            ("eth_getBlockByHash", json!([hash, false])),
            ("net_version", json!([])),
        ]
        .map(|(method, params)| self.question(method, params));
        let id = calls.iter().map(|call| call.id.clone()).collect();
        let body = calls.into_iter().map(|call| call.body).collect();
        Question { method: "batch", id, body, due: Due::Same, command: None, build_made: None }
    }
}

/// A request to the reference; its id does not matter.
fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": params})
}
