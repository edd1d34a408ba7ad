//! A chain that an EL serves the bodies of, built with alloy's containers.

use crate::{
    peer::{Reply, Seen},
    peers,
};
use alloy_primitives::Bytes;
use alloy_rpc_types_engine::ssz_engine_types::{
    BodiesResponse, BodyEntry, ExecutionPayloadBodyAmsterdam, ExecutionPayloadBodyParis,
    ExecutionPayloadBodyShanghai,
};
use engine_ssz_proxy::wire::Fork;
use serde_json::{Value, json};
use ssz::{Decode, Encode};
use std::ops::RangeInclusive;

/// Block n is of the fork at place n, and has one transaction of the byte n. Block n's hash repeats
/// that byte. Past the end nothing is known.
#[derive(Clone, Debug)]
pub struct Chain(Vec<Fork>);

impl Chain {
    pub fn new(eras: &[(Fork, usize)]) -> Self {
        Self(eras.iter().flat_map(|&(fork, blocks)| vec![fork; blocks]).collect())
    }

    /// What the EL says to a request for bodies: only blocks of the fork in the header are available.
    pub fn serve(&self, seen: &Seen) -> Reply {
        let fork = fork(seen);
        let mut numbers = numbers(seen);
        if is_range(seen) {
            numbers.retain(|number| *number < self.0.len() as u64);
        }
        match fork {
            Fork::Paris => self
                .answer(&numbers, fork, |transactions| ExecutionPayloadBodyParis { transactions }),
            Fork::Amsterdam => {
                self.answer(&numbers, fork, |transactions| ExecutionPayloadBodyAmsterdam {
                    transactions,
                    withdrawals: vec![],
                    block_access_list: vec![0xc0].into(),
                })
            }
            _ => self.answer(&numbers, fork, |transactions| ExecutionPayloadBodyShanghai {
                transactions,
                withdrawals: vec![],
            }),
        }
    }

    fn answer<T: Encode + Decode + Default>(
        &self,
        numbers: &[u64],
        fork: Fork,
        body: impl Fn(Vec<Bytes>) -> T,
    ) -> Reply {
        let entry = |&number: &u64| match self.fork_of(number) {
            Some(of) if of == fork => BodyEntry::available(body(vec![vec![number as u8].into()])),
            _ => BodyEntry::unavailable(),
        };
        peers::ssz(BodiesResponse { entries: numbers.iter().map(entry).collect() }.as_ssz_bytes())
    }

    fn fork_of(&self, number: u64) -> Option<Fork> {
        self.0.get(usize::try_from(number).ok()?).copied()
    }

    /// What JSON-RPC says of a block.
    pub fn json(&self, version: &str, number: u64) -> Value {
        let Some(fork) = self.fork_of(number) else {
            return Value::Null;
        };
        let withdrawals = if fork >= Fork::Shanghai { json!([]) } else { Value::Null };
        let mut body =
            json!({"transactions": [format!("0x{number:02x}")], "withdrawals": withdrawals});
        if version == "V2" {
            let list = if fork >= Fork::Amsterdam { json!("0xc0") } else { Value::Null };
            body["blockAccessList"] = list;
        }
        body
    }

    /// The same for a range.
    pub fn json_of(&self, numbers: RangeInclusive<u64>) -> Value {
        numbers.map(|number| self.json("V1", number)).collect()
    }
}

fn is_range(seen: &Seen) -> bool {
    seen.method == http::Method::GET
}

pub fn fork(seen: &Seen) -> Fork {
    seen.header("eth-execution-version").and_then(Fork::from_name).unwrap()
}

/// The blocks that a request asks for.
pub fn numbers(seen: &Seen) -> Vec<u64> {
    if !is_range(seen) {
        assert_eq!(seen.path, "/engine/v1/bodies/hash");
        return seen.body[4..].chunks(32).map(|hash| u64::from(hash[0])).collect();
    }
    let (from, count) = range(seen);
    (0..count).filter_map(|place| from.checked_add(place)).collect()
}

/// First block and length.
pub fn range(seen: &Seen) -> (u64, u64) {
    let query = seen.path.strip_prefix("/engine/v1/bodies?from=").unwrap();
    let (from, count) = query.split_once("&count=").unwrap();
    (from.parse().unwrap(), count.parse().unwrap())
}
