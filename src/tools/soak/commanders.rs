//! The CLs that give commands.

use super::{
    draw::Draw,
    lap::{Command, Lap, Outcome, PAUSE, PayloadIds, Question, Slot},
    line::Line,
    order::{Commander, Mark},
};
use crate::tools::eras::{Era, ZERO_HASH, attributes, root, versioned_hashes};
use alloy_primitives::B256;
use serde_json::{Value, json};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Shortest time from one block to the next, so that a lap does not fill the memory of the EL.
const SLOT_TIME: Duration = Duration::from_millis(20);

/// Commands of the follower in one round, at most.
const STEPS: u64 = 4;

/// Builds the chain block by block, as a CL that proposes every slot and gives up none: what fails is
/// said again until the EL has answered.
pub(super) async fn propose(lap: Arc<Lap>, line: Line, mut draw: Draw) {
    let mut chain = vec![lap.genesis_hash()];
    while !lap.is_over() {
        let begun = Instant::now();
        match slot(&lap, &line, &mut draw, &chain).await {
            Some(slot) => {
                chain.push(slot.hash.clone());
                lap.publish(slot);
            }
            None => tokio::time::sleep(PAUSE).await,
        }
        tokio::time::sleep(SLOT_TIME.saturating_sub(begun.elapsed())).await;
    }
}

/// One block from its build to its being the head; nothing if it has to be built anew.
async fn slot(lap: &Lap, line: &Line, draw: &mut Draw, chain: &[String]) -> Option<Slot> {
    let number = chain.len() as u64;
    let era = lap.era(number);
    let step = number * 4;
    let build = Build { commander: Commander::Proposer, step, era, number, safe: back(chain, 2) };
    let payload = build.begin(lap, line, draw, back(chain, 0)).await?;
    let built = fetch(lap, line, era, &payload).await?;
    let block_hash = built.get("executionPayload").unwrap_or(&built)["blockHash"].as_str()?;
    let hashes = versioned_hashes(&built);
    let import = era.new_payload_params(&built, &hashes, &root(number));
    let slot = Slot { number, hash: block_hash.to_owned(), era, payload, blobs: hashes, import };
    until_right(lap, line, || new_payload(lap, Commander::Proposer, step + 1, era, &slot.import))
        .await?;
    until_right(lap, line, || {
        let (head, safe) = (slot.hash.as_str(), back(chain, 0));
        let state = state(head, safe);
        let mut question = lap.question(era.forkchoice, json!([state, null]));
        question.command = Some(Command {
            commander: Commander::Proposer,
            step: step + 2,
            marks: vec![Mark::State { head: hash(head), safe: hash(safe) }],
            head: Some(number),
        });
        question
    })
    .await?;
    Some(slot)
}

/// Builds beside the chain: imports what nobody makes the head, and payloads that are damaged. Over
/// a socket two commands are on their way at once.
pub(super) async fn follow(lap: Arc<Lap>, line: Line, mut draw: Draw) {
    let mut followed = None;
    let mut round = 0;
    while !lap.is_over() {
        let newest = lap.newest().filter(|slot| Some(slot.number) != followed);
        let Some(parent) = newest else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        followed = Some(parent.number);
        round += 1;
        if beside(&lap, &line, &mut draw, &parent, round * STEPS).await.is_none() {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// A block beside the one that the proposer builds on the same parent.
async fn beside(lap: &Lap, line: &Line, draw: &mut Draw, parent: &Slot, step: u64) -> Option<()> {
    let commander = Commander::Follower;
    let number = parent.number + 1;
    let era = lap.era(number);
    let safe = {
        let slots = lap.slots();
        let place = usize::try_from(parent.number).ok()?.checked_sub(4);
        place.and_then(|place| slots.get(place)).map_or(ZERO_HASH.to_owned(), |s| s.hash.clone())
    };
    let damaged = damaged(&parent.import, draw);
    let build = Build { commander, step: step + 1, era, number, safe: &safe };
    let first = lap.send(line, new_payload(lap, commander, step, parent.era, &damaged)).await;
    let second = lap.send(line, build.question(lap, draw, &parent.hash)).await;
    lap.hear(first).await;
    let payload = ids(lap.hear(second).await)?;
    let built = fetch(lap, line, era, &payload).await?;
    let import = era.new_payload_params(&built, &versioned_hashes(&built), &root(number));
    let damaged = self::damaged(&import, draw);
    let first = lap.send(line, new_payload(lap, commander, step + 2, era, &import)).await;
    let second = lap.send(line, new_payload(lap, commander, step + 3, era, &damaged)).await;
    lap.hear(first).await;
    lap.hear(second).await;
    Some(())
}

/// The same payload under a block hash that is not its own.
fn damaged(import: &Value, draw: &mut Draw) -> Value {
    let mut params = import.clone();
    params[0]["blockHash"] = json!(B256::from(draw.hash()));
    params
}

/// A forkchoice with attributes.
struct Build<'a> {
    commander: Commander,
    step: u64,
    era: &'static Era,
    /// Of the block to build.
    number: u64,
    safe: &'a str,
}

impl Build<'_> {
    /// Each one is another build, so that none is mistaken for another.
    fn question(&self, lap: &Lap, draw: &mut Draw, head: &str) -> Question {
        let randao = B256::from(draw.hash());
        let mut attributes = attributes(self.era, self.number);
        attributes["prevRandao"] = json!(randao);
        let params = json!([state(head, self.safe), attributes]);
        let mut question = lap.question(self.era.forkchoice, params);
        let state = Mark::State { head: hash(head), safe: hash(self.safe) };
        question.command = Some(Command {
            commander: self.commander,
            step: self.step,
            marks: vec![state, Mark::Build(randao)],
            head: Some(self.number - 1),
        });
        question
    }

    async fn begin(
        &self,
        lap: &Lap,
        line: &Line,
        draw: &mut Draw,
        head: &str,
    ) -> Option<PayloadIds> {
        ids(lap.ask(line, self.question(lap, draw, head)).await)
    }
}

/// The names of the build that an answer tells of.
fn ids(outcome: Outcome) -> Option<PayloadIds> {
    let Outcome::Right { heard, reference_id, sent } = outcome else { return None };
    let el = heard.pointer("/result/payloadId")?.as_str()?.to_owned();
    Some(PayloadIds { el, reference: reference_id?, made: sent })
}

/// The payload of a build; nothing once the EL does not know it any more.
async fn fetch(lap: &Lap, line: &Line, era: &'static Era, payload: &PayloadIds) -> Option<Value> {
    const TRIES: usize = 3;
    for _ in 0..TRIES {
        let outcome = lap.ask(line, lap.get_payload(era, payload)).await;
        if let Outcome::Right { mut heard, .. } = outcome {
            return Some(heard["result"].take());
        }
        tokio::time::sleep(PAUSE).await;
    }
    None
}

/// Says the same until the answer is the truth.
async fn until_right(lap: &Lap, line: &Line, question: impl Fn() -> Question) -> Option<()> {
    while !lap.is_over() {
        if let Outcome::Right { .. } = lap.ask(line, question()).await {
            return Some(());
        }
        tokio::time::sleep(PAUSE).await;
    }
    None
}

fn new_payload(
    lap: &Lap,
    commander: Commander,
    step: u64,
    era: &'static Era,
    import: &Value,
) -> Question {
    let claimed = hash(import[0]["blockHash"].as_str().unwrap_or_default());
    let mut question = lap.question(era.new_payload, import.clone());
    let marks = vec![Mark::Payload(claimed)];
    question.command = Some(Command { commander, step, marks, head: None });
    question
}

/// A forkchoice state. Nothing is finalized, or the follower could not lag behind.
fn state(head: &str, safe: &str) -> Value {
    json!({"headBlockHash": head, "safeBlockHash": safe, "finalizedBlockHash": ZERO_HASH})
}

/// The hash so many blocks behind the newest.
fn back(chain: &[String], blocks: usize) -> &str {
    let place = chain.len().checked_sub(1 + blocks);
    place.and_then(|place| chain.get(place)).map_or(ZERO_HASH, String::as_str)
}

fn hash(text: &str) -> B256 {
    text.parse().unwrap_or_default()
}
