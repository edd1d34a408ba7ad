//! What a CL says on its way from genesis through Amsterdam, and the comparing of what it hears.

use super::{
    DemoError,
    report::{ForkRow, Report, Row},
};
use crate::{
    proxy::Proxy,
    telemetry::{Carried, tally::Sums},
    tools::{
        cl::{Answered, Cl},
        difference::{Difference, Words},
        eras::{ERAS, Era, ZERO_HASH, attributes, root, versioned_hashes},
    },
};
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Who takes part.
pub(super) struct Parties<'a> {
    /// The EL, through the sidecar.
    pub sidecar: Cl,
    /// The EL itself.
    pub el: Cl,
    /// Whose counts tell how each call was carried.
    pub tally: &'a Proxy,
    /// Where the chain begins.
    pub genesis_hash: String,
}

/// Plays everything.
pub(super) async fn play(parties: &Parties<'_>) -> Result<Report, DemoError> {
    let mut talk = Talk::new(parties);
    talk.introduce().await?;
    for era in &ERAS {
        let fork = talk.era(era).await?;
        talk.report.forks.push(fork);
    }
    talk.look_back().await?;
    talk.go_wrong().await?;
    talk.batch().await?;
    Ok(talk.report)
}

/// The conversation so far.
struct Talk<'a> {
    parties: &'a Parties<'a>,
    report: Report,
    next_id: u64,
    chain: Vec<String>,
    /// Parameters of the newest newPayload, to make faults of.
    last_params: Option<Value>,
}

impl<'a> Talk<'a> {
    fn new(parties: &'a Parties<'a>) -> Self {
        Self {
            parties,
            report: Report::default(),
            next_id: 0,
            chain: vec![parties.genesis_hash.clone()],
            last_params: None,
        }
    }

    async fn introduce(&mut self) -> Result<(), DemoError> {
        let own = json!([{
            "code": "EP", "name": "demo", "version": env!("CARGO_PKG_VERSION"), "commit": "0x00000000"
        }]);
        self.call("engine_exchangeCapabilities", json!([["engine_newPayloadV1"]])).await?;
        self.call("engine_getClientVersionV1", own).await?;
        self.call("eth_chainId", json!([])).await?;
        self.call("eth_syncing", json!([])).await?;
        self.call("eth_getBlockByNumber", json!(["0x0", false])).await?;
        Ok(())
    }

    /// Builds and imports the blocks of one fork, as a CL that proposes every slot.
    async fn era(&mut self, era: &Era) -> Result<ForkRow, DemoError> {
        let hot = |report: &Report| {
            let rows = report.methods.iter().filter(|row| is_hot(&row.method));
            rows.fold((0, 0), |(calls, rest), row| {
                (calls + row.transports.values().sum::<u64>(), rest + row.over_rest())
            })
        };
        let (calls_before, rest_before) = hot(&self.report);
        for _ in 0..era.blocks {
            self.slot(era).await?;
        }
        let (calls, rest) = hot(&self.report);
        Ok(ForkRow {
            fork: era.name,
            blocks: era.blocks,
            hot_calls: calls - calls_before,
            over_rest: rest - rest_before,
        })
    }

    async fn slot(&mut self, era: &Era) -> Result<(), DemoError> {
        let number = self.chain.len() as u64;
        let attributes = attributes(era, number);
        let updated = self.call(era.forkchoice, json!([self.state(), attributes])).await?;
        let id = text(&updated, "/payloadId")?;
        let built = self.call(era.get_payload, json!([id])).await?;
        let payload = built.get("executionPayload").unwrap_or(&built);
        let hashes = versioned_hashes(&built);
        let params = era.new_payload_params(&built, &hashes, &root(number));
        let block_hash = text(payload, "/blockHash")?;
        self.call(era.new_payload, params.clone()).await?;
        self.last_params = Some(params);
        self.chain.push(block_hash.clone());
        self.call(era.forkchoice, json!([self.state(), null])).await?;
        self.call(era.bodies, json!([[block_hash, ZERO_HASH]])).await?;
        for method in era.blobs {
            let mut params = json!([hashes]);
            if let ("engine_getBlobsV4", Some(params)) = (*method, params.as_array_mut()) {
                params.push(json!("0x81000000000000000000000000000080"));
            }
            self.call(method, params).await?;
        }
        Ok(())
    }

    /// What a CL asks when it comes back after a while.
    async fn look_back(&mut self) -> Result<(), DemoError> {
        self.call("engine_getPayloadBodiesByRangeV1", json!(["0x1", "0x20"])).await?;
        self.call("engine_getPayloadBodiesByRangeV2", json!(["0x1", "0x20"])).await?;
        let all = self.chain.clone();
        self.call("engine_getPayloadBodiesByHashV2", json!([all])).await?;
        self.call("engine_getBlobsV2", json!([[ZERO_HASH]])).await?;
        self.call("eth_getBlockByNumber", json!(["latest", false])).await?;
        Ok(())
    }

    /// Faults that a CL makes or meets.
    async fn go_wrong(&mut self) -> Result<(), DemoError> {
        self.call("engine_getPayloadV5", json!(["0x0000000000000001"])).await?;
        self.call("engine_getPayloadV5", json!(["0x1"])).await?;
        let mut state = self.state();
        state["finalizedBlockHash"] = json!(format!("0x{}", "11".repeat(32)));
        self.call("engine_forkchoiceUpdatedV4", json!([state, null])).await?;
        state["headBlockHash"] = state["finalizedBlockHash"].clone();
        state["finalizedBlockHash"] = json!(ZERO_HASH);
        state["safeBlockHash"] = json!(ZERO_HASH);
        self.call("engine_forkchoiceUpdatedV4", json!([state, null])).await?;
        let mut stale = attributes(&ERAS[5], 1_000);
        stale["timestamp"] = json!("0xb4");
        self.call("engine_forkchoiceUpdatedV4", json!([self.state(), stale])).await?;
        let early = attributes(&ERAS[4], self.chain.len() as u64);
        self.call("engine_forkchoiceUpdatedV3", json!([self.state(), early])).await?;
        let Some(params) = &self.last_params else {
            return Ok(());
        };
        let with = |member: &str, value: Value| {
            let mut params = params.clone();
            params[0][member] = value;
            params
        };
        let faults = [
            with("stateRoot", json!(ZERO_HASH)),
            with("parentHash", json!(format!("0x{}", "22".repeat(32)))),
            with("gasLimit", json!("0x01")),
            with("transactions", json!(["0x"])),
            json!([params[0], [ZERO_HASH], params[2], params[3]]),
            json!([params[0], null, params[2], params[3]]),
            json!([params[0], params[1], params[2], ["0x01aa", "0x00bb"]]),
            json!([params[0]]),
        ];
        for params in faults {
            self.call("engine_newPayloadV5", params).await?;
        }
        Ok(())
    }

    async fn batch(&mut self) -> Result<(), DemoError> {
        let eth = json!([
            {"jsonrpc": "2.0", "id": "a", "method": "eth_blockNumber", "params": []},
            {"jsonrpc": "2.0", "id": "b", "method": "eth_chainId"},
        ]);
        let engine = json!([
            {"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []},
            {"jsonrpc": "2.0", "id": 2, "method": "engine_forkchoiceUpdatedV4",
             "params": [self.state(), null, null]},
        ]);
        self.compare("batch of eth_ calls", eth.to_string().into()).await?;
        self.compare("batch with an engine_ call", engine.to_string().into()).await?;
        Ok(())
    }

    fn state(&self) -> Value {
        let back = |blocks: usize| {
            let hash = self.chain.len().checked_sub(1 + blocks).and_then(|at| self.chain.get(at));
            hash.map_or(ZERO_HASH, String::as_str)
        };
        json!({
            "headBlockHash": back(0), "safeBlockHash": back(1), "finalizedBlockHash": back(2)
        })
    }

    /// Calls through the sidecar and directly, compares, and gives the sidecar's result (null after
    /// an error).
    async fn call(&mut self, method: &str, params: Value) -> Result<Value, DemoError> {
        self.next_id += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
        let mut response = self.compare(method, request.to_string().into()).await?;
        Ok(response["result"].take())
    }

    async fn compare(&mut self, method: &str, body: Bytes) -> Result<Value, DemoError> {
        // Whoever is asked second finds the work half done, so they take turns.
        self.next_id += 1;
        let (direct, sidecar, carried) = if self.next_id.is_multiple_of(4) {
            let direct = self.parties.el.post(body.clone()).await?;
            let (sidecar, carried) = self.through_sidecar(body).await?;
            (direct, sidecar, carried)
        } else {
            let (sidecar, carried) = self.through_sidecar(body.clone()).await?;
            (self.parties.el.post(body).await?, sidecar, carried)
        };
        let by_itself = carried.iter().all(|(transport, _)| *transport == Carried::Sidecar);
        let words = if by_itself { Words::OfSidecar } else { Words::OfEl };
        let difference = Difference::between(method, words, &direct.response, &sidecar.response);
        let row = self.row(method);
        row.json_bytes += sidecar.bytes as u64;
        row.direct.push(direct.took);
        row.sidecar.push(sidecar.took);
        row.differences += u64::from(difference.is_some());
        for (transport, sums) in carried {
            *row.transports.entry(transport.label()).or_default() += sums.calls;
            row.ssz_bytes += sums.ssz_bytes;
            if matches!(transport, Carried::H2c | Carried::Http1) {
                row.rest_json_bytes += sums.json_bytes;
            }
        }
        self.report.differences.extend(difference);
        Ok(sidecar.response)
    }

    /// Also tells how the call was carried, by what the sidecar counted meanwhile.
    async fn through_sidecar(
        &self,
        body: Bytes,
    ) -> Result<(Answered, Vec<(Carried, Sums)>), DemoError> {
        let tally = self.parties.tally.tally();
        let before = tally.calls();
        let answered = self.parties.sidecar.post(body).await?;
        let carried = tally.calls().into_iter().filter_map(|(key, after)| {
            let before = before.get(&key).copied().unwrap_or_default();
            let sums = after.since(before);
            (sums.calls > 0).then_some((key.1, sums))
        });
        let by_transport =
            carried.fold(BTreeMap::<_, Sums>::new(), |mut all, (transport, sums)| {
                all.entry(transport).or_default().add(sums);
                all
            });
        Ok((answered, by_transport.into_iter().collect()))
    }

    fn row(&mut self, method: &str) -> &mut Row {
        let rows = &mut self.report.methods;
        let at = rows.iter().position(|row| row.method == method).unwrap_or_else(|| {
            rows.push(Row::new(method));
            rows.len() - 1
        });
        &mut rows[at]
    }
}

fn is_hot(method: &str) -> bool {
    method.starts_with("engine_newPayload")
        || method.starts_with("engine_forkchoiceUpdated")
        || method.starts_with("engine_getPayloadV")
}

fn text(value: &Value, pointer: &str) -> Result<String, DemoError> {
    let text = value.pointer(pointer).and_then(Value::as_str);
    Ok(text.ok_or_else(|| format!("no {pointer} in {value}"))?.to_owned())
}
