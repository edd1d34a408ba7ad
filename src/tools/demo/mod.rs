//! `demo`: the first thing a newcomer runs. A CL's conversation through six forks, through the
//! sidecar and straight to the EL, with every answer compared.

mod conversation;
mod report;

use crate::{
    cli::refuse,
    config::Settings,
    mock_el::{Config, Genesis, Http, MockEl, Surface},
    serve::Sidecar,
    telemetry,
    tools::cl::{Cl, Version},
};
use alloy_rpc_types_engine::JwtSecret;
use std::{net::SocketAddr, process::ExitCode};

pub use super::difference::Difference;
pub use report::Report;

/// Starts the embedded EL and the sidecar on free loopback ports and plays a CL over HTTP through
/// six forks. Every call is also asked of the EL directly over JSON-RPC, and the answers compared.
///
/// Exit codes: 0 no difference; 1 a difference, printed as JSON.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// How the sidecar reaches the EL: auto, h2c, http1 or json
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub transport: String,
    /// What the embedded EL speaks: rest+json or json
    #[arg(long, value_name = "NAME", default_value = "rest+json")]
    pub surface: Surface,
    /// HTTP versions the embedded EL speaks: h1, h2 or both
    #[arg(long, value_name = "NAME", default_value = "both")]
    pub http: Http,
    /// What to log on stderr
    #[arg(long, value_name = "LEVEL", default_value = "error")]
    pub log_level: String,
}

impl Default for Arguments {
    fn default() -> Self {
        Self {
            transport: "auto".to_owned(),
            surface: Surface::RestAndJson,
            http: Http::Both,
            log_level: "error".to_owned(),
        }
    }
}

/// A demo that could not be played.
pub type DemoError = Box<dyn std::error::Error + Send + Sync>;

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> ExitCode {
    if let Err(error) = telemetry::init(&arguments.log_level, telemetry::Format::Pretty) {
        return refuse(&format_args!("log-level: {error}"));
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return refuse(&error),
    };
    match runtime.block_on(play(&arguments)) {
        Ok(report) => {
            print!("{report}");
            if report.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("engine-ssz-proxy: demo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Plays the whole conversation.
///
/// # Errors
/// When a port cannot be bound or an answer is no JSON-RPC response; differences are no error.
pub async fn play(arguments: &Arguments) -> Result<Report, DemoError> {
    let secret = JwtSecret::random();
    let hex = const_hex::encode(secret.as_bytes());
    let mock = MockEl::start(Config {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        jwt_secret: Some(secret),
        genesis: Genesis::built_in(),
        surface: arguments.surface,
        http: arguments.http,
    })
    .await?;
    let settings = Settings {
        execution_endpoint: Some(format!("http://{}", mock.addr())),
        listen_port: Some(crate::config::Number::Integer(0)),
        jwt_secret: Some(hex.clone().into()),
        transport: Some(arguments.transport.clone()),
        ..Settings::default()
    };
    let sidecar = Sidecar::start(settings.check()?).await?;
    sidecar.el_found().await;

    let parties = conversation::Parties {
        sidecar: Cl::new(sidecar.address(), hex.parse()?, Version::Http1),
        el: Cl::new(mock.addr(), hex.parse()?, Version::spoken_by(arguments.http)),
        tally: sidecar.proxy(),
        genesis_hash: mock.genesis_hash().to_string(),
    };
    let report = conversation::play(&parties).await?;
    sidecar.stop().await;
    mock.stop().await;
    Ok(report)
}
