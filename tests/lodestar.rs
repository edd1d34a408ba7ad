//! The engine client of a real CL, unmodified, through the sidecar over six forks.
//!
//! Needs Node.js and the packages that `tests/lodestar/prepare.sh target/lodestar` installs from npm.

mod support;

use engine_ssz_proxy::mock_el::{Http, MockEl, Seen, Surface};
use std::{net::SocketAddr, path::Path, process::Command};
use support::{mock_config, settings, sidecar_of_secret};

const SECRET: &str = "7365637265747365637265747365637265747365637265747365637265747365";

async fn mock() -> MockEl {
    let mut config = mock_config(Surface::RestAndJson, Http::Both);
    config.jwt_secret = Some(SECRET.parse().unwrap());
    MockEl::start(config).await.unwrap()
}

/// Runs the driver and gives what it printed.
async fn drive(engine: SocketAddr, mock: &MockEl) -> String {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/lodestar");
    assert!(
        installed.join("node_modules").exists(),
        "run tests/lodestar/prepare.sh target/lodestar"
    );
    for script in ["driver.mjs", "hooks.mjs"] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lodestar").join(script);
        std::fs::copy(source, installed.join(script)).unwrap();
    }
    let genesis = mock.genesis_hash().to_string();
    let run = move || {
        Command::new("node")
            .args(["--import", "./hooks.mjs", "driver.mjs"])
            .args([&format!("http://{engine}"), SECRET, &genesis])
            .current_dir(installed)
            .output()
            .unwrap()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}\n{errors}");
    printed
}

fn is_hot(method: &str) -> bool {
    ["engine_newPayload", "engine_forkchoiceUpdated", "engine_getPayloadV"]
        .iter()
        .any(|hot| method.starts_with(hot))
}

fn over_rest(seen: &Seen) -> bool {
    seen.path.starts_with("/engine/v1/payloads") || seen.path == "/engine/v1/forkchoice"
}

#[tokio::test]
#[ignore = "needs Node.js and packages from npm: tests/lodestar/prepare.sh target/lodestar"]
async fn lodestar_goes_through_six_forks_over_rest_with_the_same_blocks() {
    let direct = mock().await;
    let straight = drive(direct.addr(), &direct).await;
    let hot = |mock: &MockEl| -> Vec<_> {
        let is_hot = |seen: &Seen| seen.rpc_method.as_deref().is_some_and(is_hot);
        mock.log().into_iter().filter(is_hot).collect()
    };
    let hot_calls = hot(&direct).len();
    assert!(hot_calls > 70, "{hot_calls}");

    let behind = mock().await;
    let mut settings = settings(behind.addr());
    // With the schedule no call needs a second exchange, so that they can be counted.
    let genesis = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/genesis/genesis-allforks.json");
    settings.genesis = Some(genesis.into());
    let sidecar = sidecar_of_secret(settings, SECRET).await;
    let through = drive(sidecar.address(), &behind).await;
    assert_eq!(through, straight);
    assert_eq!(through.lines().filter(|line| line.starts_with("block ")).count(), 17, "{through}");

    // JSON-RPC is asked for nothing but the payload that REST does not know.
    let over_json_rpc: Vec<_> = hot(&behind)
        .into_iter()
        .filter_map(|seen| String::from_utf8(seen.body?.into()).ok())
        .collect();
    assert_eq!(over_json_rpc.len(), 1, "a hot call went over JSON-RPC: {over_json_rpc:?}");
    assert!(over_json_rpc[0].contains("engine_getPayloadV5"), "{over_json_rpc:?}");
    assert!(over_json_rpc[0].contains(r#"["0x0000000000000001"]"#), "{over_json_rpc:?}");
    let rest: Vec<_> = behind.log().into_iter().filter(over_rest).collect();
    assert_eq!(rest.len(), hot_calls);
    sidecar.stop().await;
}
