//! A CL that proposes, imports and asks for one Osaka block with blobs, and tries again when told of an
//! error or of nothing.

use std::{io::Write, net::SocketAddr, time::Duration};

use alloy_eips::eip4844::{Bytes48, kzg_to_versioned_hash};
use engine_ssz_proxy::{
    mock_el::{Config, Genesis, Http, MockEl, Surface, faults::FaultsHandle},
    serve::Sidecar,
};
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::sync::OnceCell;

use crate::support::{mock_config, post, settings, sidecar};

/// How long the CL waits for an answer.
const CL_WAITS: Duration = Duration::from_secs(8);

/// How often it asks.
const TRIES: usize = 6;

/// A chain that is in Osaka from its first block on.
fn genesis() -> String {
    let text = include_str!("../../src/mock_el/genesis.json");
    let mut genesis: Value = serde_json::from_str(text).unwrap();
    for fork in ["shanghaiTime", "cancunTime", "pragueTime", "osakaTime"] {
        genesis["config"][fork] = json!(0);
    }
    genesis.to_string()
}

fn el_config(http: Http) -> Config {
    let genesis = Genesis::parse(&genesis()).unwrap();
    Config { genesis, ..mock_config(Surface::RestAndJson, http) }
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    Result(Value),
    Error(i64),
    /// An HTTP status other than 200.
    Status(u16),
    /// Nothing for as long as the CL waits.
    Nothing,
}

/// A sidecar before an EL with faults.
pub struct Stage {
    pub el: MockEl,
    pub sidecar: Sidecar,
    _genesis: NamedTempFile,
}

impl Stage {
    pub async fn new(http: Http, transport: &str) -> Self {
        let el = MockEl::start_with(el_config(http), FaultsHandle::default()).await.unwrap();
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(genesis().as_bytes()).unwrap();
        let mut settings = settings(el.addr());
        settings.transport = Some(transport.parse().unwrap());
        settings.genesis = Some(file.path().to_owned());
        let sidecar = sidecar(settings).await;
        Self { el, sidecar, _genesis: file }
    }
}

/// One call; the answer must be a JSON-RPC response with the call's id.
pub async fn call(address: SocketAddr, id: u64, method: &str, params: &Value) -> Said {
    let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let answer = match tokio::time::timeout(CL_WAITS, post(address, request.to_string())).await {
        Ok(answer) => answer,
        Err(_) => return Said::Nothing,
    };
    if answer.status != 200 {
        return Said::Status(answer.status.as_u16());
    }
    let mut said = answer.json();
    assert_eq!(said["id"], id, "{method}: {said}");
    match said["error"]["code"].as_i64() {
        Some(code) => {
            let message = said["error"]["message"].as_str().expect("a message");
            assert!(!message.is_empty() && said.get("result").is_none(), "{said}");
            Said::Error(code)
        }
        None => Said::Result(said.get_mut("result").expect("a result or an error").take()),
    }
}

/// The whole conversation: each call with everything that was said to it, a result last or none.
pub async fn converse(address: SocketAddr, genesis_hash: &str) -> Vec<(&'static str, Vec<Said>)> {
    let mut story = Vec::new();
    let mut id = 0;
    let mut ask = async |method: &'static str, params: Value| {
        let mut heard = Vec::new();
        while heard.len() < TRIES {
            id += 1;
            heard.push(call(address, id, method, &params).await);
            if let Some(Said::Result(result)) = heard.last() {
                let result = result.clone();
                story.push((method, heard));
                return Some(result);
            }
        }
        story.push((method, heard));
        None
    };
    let state = |head: &Value| json!({"headBlockHash": head, "safeBlockHash": head, "finalizedBlockHash": head});
    let root = format!("0x{}", "44".repeat(32));
    let attributes = json!({
        "timestamp": "0xc", "prevRandao": format!("0x{}", "22".repeat(32)),
        "suggestedFeeRecipient": format!("0x{}", "33".repeat(20)), "withdrawals": [],
        "parentBeaconBlockRoot": root,
    });
    let begin = json!([state(&json!(genesis_hash)), attributes]);
    let begun = ask("engine_forkchoiceUpdatedV3", begin).await.unwrap_or_default();
    let built = ask("engine_getPayloadV5", json!([begun["payloadId"]])).await.unwrap_or_default();
    let payload = &built["executionPayload"];
    let hashes: Vec<_> = built["blobsBundle"]["commitments"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|commitment| {
            let commitment: Bytes48 = serde_json::from_value(commitment.clone()).unwrap();
            kzg_to_versioned_hash(commitment.as_slice())
        })
        .collect();
    let import = json!([payload, hashes, root, built["executionRequests"]]);
    ask("engine_newPayloadV4", import).await;
    ask("engine_forkchoiceUpdatedV3", json!([state(&payload["blockHash"]), null])).await;
    ask("engine_getPayloadBodiesByRangeV1", json!(["0x1", "0x1"])).await;
    ask("engine_getPayloadBodiesByHashV1", json!([[payload["blockHash"]]])).await;
    ask("engine_getBlobsV2", json!([hashes])).await;
    let cl = json!([{"code": "XX", "name": "x", "version": "1", "commit": "0x00000000"}]);
    ask("engine_getClientVersionV1", cl).await;
    ask("eth_blockNumber", json!([])).await;
    story
}

/// What an EL without faults says, straight over JSON-RPC.
pub async fn honest() -> Vec<Value> {
    static HONEST: OnceCell<Vec<Value>> = OnceCell::const_new();
    HONEST.get_or_init(tell_honestly).await.clone()
}

async fn tell_honestly() -> Vec<Value> {
    let el = MockEl::start(el_config(Http::Both)).await.unwrap();
    let story = converse(el.addr(), &el.genesis_hash().to_string()).await;
    story
        .into_iter()
        .map(|(method, heard)| match heard.as_slice() {
            [Said::Result(result)] => result.clone(),
            other => panic!("{method}: {other:?}"),
        })
        .collect()
}
