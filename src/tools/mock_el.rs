//! `mock-el`: the embedded EL as a program.

use crate::{
    cli::refuse,
    mock_el::{
        Config, Genesis, Http, MockEl, Surface,
        faults::{Faults, FaultsHandle},
    },
    telemetry,
};
use alloy_rpc_types_engine::JwtSecret;
use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

/// Runs an embedded EL with REST-SSZ and JSON-RPC over one in-memory chain.
///
/// It builds and imports blocks with real hashes and executes nothing.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8561")]
    listen: SocketAddr,
    /// File with the secret of 64 hex digits; without it no token is asked for
    #[arg(long, value_name = "FILE")]
    jwt_secret: Option<PathBuf>,
    /// Genesis file of geth's form; without it six forks three slots apart
    #[arg(long, value_name = "FILE")]
    genesis: Option<PathBuf>,
    /// What it speaks: rest+json, json or rest
    #[arg(long, value_name = "NAME", default_value = "rest+json")]
    surface: Surface,
    /// HTTP versions it speaks: h1, h2 or both
    #[arg(long, value_name = "NAME", default_value = "both")]
    http: Http,
    /// Script of faults, as config/mock-el-faults.toml shows; without it there are none
    #[arg(long, value_name = "FILE.toml")]
    faults: Option<PathBuf>,
}

/// Runs the subcommand until SIGTERM or SIGINT.
pub fn run(arguments: Arguments) -> ExitCode {
    let faults = match arguments.faults() {
        Ok(faults) => faults,
        Err(error) => return refuse(&error),
    };
    let config = match arguments.config() {
        Ok(config) => config,
        Err(error) => return refuse(&error),
    };
    if let Err(error) = telemetry::init("info", telemetry::Format::Pretty) {
        return refuse(&error);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return refuse(&error),
    };
    runtime.block_on(async {
        let mock = match MockEl::start_with(config, faults).await {
            Ok(mock) => mock,
            Err(error) => {
                eprintln!("engine-ssz-proxy: {error}");
                return ExitCode::FAILURE;
            }
        };
        // Before the line that tells others to begin, and perhaps to end it.
        let signals = crate::serve::StopSignals::new();
        println!("mock-el: listening on {}, genesis {}", mock.addr(), mock.genesis_hash());
        if let Ok(mut signals) = signals {
            signals.next().await;
        }
        for (kind, count) in mock.faults().injected().iter() {
            println!("mock-el: {kind}: {count} times");
        }
        mock.stop().await;
        ExitCode::SUCCESS
    })
}

impl Arguments {
    fn faults(&self) -> Result<FaultsHandle, String> {
        let Some(path) = &self.faults else { return Ok(FaultsHandle::default()) };
        let why = |error: &dyn std::fmt::Display| format!("faults: {}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| why(&error))?;
        text.parse::<Faults>().map(FaultsHandle::new).map_err(|error| why(&error))
    }

    fn config(self) -> Result<Config, String> {
        let genesis = match &self.genesis {
            Some(path) => {
                let why =
                    |error: &dyn std::fmt::Display| format!("genesis: {}: {error}", path.display());
                let text = std::fs::read_to_string(path).map_err(|error| why(&error))?;
                Genesis::parse(&text).map_err(|error| why(&error))?
            }
            None => Genesis::built_in(),
        };
        let jwt_secret = match &self.jwt_secret {
            Some(path) => Some(
                JwtSecret::from_file(path)
                    .map_err(|error| format!("jwt-secret: {}: {error}", path.display()))?,
            ),
            None => None,
        };
        Ok(Config {
            listen: self.listen,
            jwt_secret,
            genesis,
            surface: self.surface,
            http: self.http,
        })
    }
}
