//! An EL that is killed and comes back, over and over.

mod support;

use engine_ssz_proxy::serve::Sidecar;
use http::StatusCode;
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    time::Duration,
};
use support::{post, settings, sidecar};

/// How long the specification has a CL wait.
fn cl_waits(method: &str) -> Duration {
    Duration::from_secs(if method.starts_with("engine_forkchoiceUpdated") { 8 } else { 1 })
}

/// An EL in a process of its own.
struct Process {
    child: Child,
    address: SocketAddr,
    genesis: String,
}

impl Process {
    /// Returns once it listens.
    fn start(listen: &str, surface: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_engine-ssz-proxy"))
            .args(["mock-el", "--listen", listen, "--surface", surface])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said = line.trim().strip_prefix("mock-el: listening on ").unwrap();
        let (address, genesis) = said.split_once(", genesis ").unwrap();
        Self { child, address: address.parse().unwrap(), genesis: genesis.to_owned() }
    }

    /// SIGKILL.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One call of a CL that leaves when its time is over.
async fn call(sidecar: SocketAddr, body: Value) -> Value {
    let waits = cl_waits(body["method"].as_str().unwrap());
    let answer = tokio::time::timeout(waits, post(sidecar, body.to_string())).await;
    let answer = answer.unwrap_or_else(|_| panic!("the CL has left: {}", body["method"]));
    assert_eq!(answer.status, StatusCode::OK);
    answer.json()
}

fn forkchoice(head: &str) -> Value {
    let state = json!({"headBlockHash": head, "safeBlockHash": head, "finalizedBlockHash": head});
    json!({"jsonrpc": "2.0", "id": 1, "method": "engine_forkchoiceUpdatedV1", "params": [state, null]})
}

fn blobs() -> Value {
    let hash = format!("0x01{}", "11".repeat(31));
    json!({"jsonrpc": "2.0", "id": 2, "method": "engine_getBlobsV2", "params": [[hash]]})
}

fn chain_id() -> Value {
    json!({"jsonrpc": "2.0", "id": 3, "method": "eth_chainId", "params": []})
}

async fn in_front_of(el: &Process) -> Sidecar {
    sidecar(settings(el.address)).await
}

#[tokio::test]
async fn life_04_fifty_kills_and_the_cl_never_waits_nor_misses_the_first_call_after() {
    let mut el = Process::start("127.0.0.1:0", "rest+json");
    let listen = el.address.to_string();
    let sidecar = in_front_of(&el).await;
    let cl = sidecar.address();
    for round in 0..50 {
        // In flight while it dies: an answer or an error, in time.
        let head = el.genesis.clone();
        let in_flight =
            [forkchoice(&head), blobs(), chain_id()].map(|request| tokio::spawn(call(cl, request)));
        el.kill();
        for call in in_flight {
            let said = call.await.unwrap();
            assert_ne!(said.get("result").is_some(), said.get("error").is_some(), "{said}");
        }
        // Gone: an error, and no invented status.
        for request in [forkchoice(&head), blobs(), chain_id()] {
            let said = call(cl, request).await;
            assert_eq!(said["error"]["code"], -32603, "round {round}: {said}");
        }
        // Back, each time with another surface: whatever comes first is answered.
        let surface = ["rest+json", "json"][round % 2];
        el = Process::start(&listen, surface);
        let (first, wanted) = match round % 3 {
            0 => (forkchoice(&head), json!("VALID")),
            1 => (blobs(), Value::Null),
            _ => (chain_id(), json!("0x539")),
        };
        let said = call(cl, first).await;
        assert!(said.get("error").is_none(), "round {round}: {said}");
        let result = &said["result"];
        let got = if result.is_object() { &result["payloadStatus"]["status"] } else { result };
        assert_eq!(got, &wanted, "round {round}: {said}");
    }
    // No lane is left with something that hangs.
    for (lane, numbers) in sidecar.proxy().el().lanes() {
        assert_eq!((numbers.in_flight, numbers.waiting), (0, 0), "{lane:?}");
    }
}
