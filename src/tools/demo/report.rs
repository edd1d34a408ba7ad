//! What the demo prints.

use crate::tools::difference::Difference;
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
