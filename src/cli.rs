//! The command line: flags are declared once, and the help is made from them.

use crate::{
    config::{ConfigError, Settings},
    tools,
};
use clap::{Args, Parser, Subcommand};
use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Exit code of a command line or configuration that cannot be used (sysexits.h, `EX_USAGE`).
pub const EXIT_USAGE: u8 = 64;

/// A transparent sidecar that carries the JSON-RPC Engine API over REST-SSZ and h2c.
///
/// Point the consensus client's execution endpoint at the sidecar, and the sidecar at the execution
/// client.
#[derive(Debug, Parser)]
#[command(name = "engine-ssz-proxy", version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    tool: Option<Tool>,
    #[command(flatten)]
    run: Run,
}

/// What `engine-ssz-proxy [OPTIONS] [EXECUTION_ENDPOINT]` takes.
#[derive(Debug, Args)]
struct Run {
    /// The EL's Engine API, for example http://127.0.0.1:8561 or unix:///run/el/engine.sock
    #[arg(value_name = "EXECUTION_ENDPOINT")]
    endpoint: Option<String>,
    #[command(flatten)]
    settings: Settings,
    /// File with the same settings in TOML; flags and environment go before it
    #[arg(long, value_name = "FILE.toml", env = "ENGINE_SSZ_PROXY_CONFIG")]
    config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Tool {
    /// Runs an embedded EL with REST-SSZ and JSON-RPC over one in-memory chain
    MockEl(tools::mock_el::Arguments),
    /// Plays a CL through six forks against the embedded EL and compares every answer
    Demo(tools::demo::Arguments),
    /// Drives slots at high speed while the EL misbehaves, and judges every answer
    Soak(tools::soak::Arguments),
    /// Reads a JSON-RPC request and writes the REST-SSZ request that it becomes
    Encode(tools::encode::Arguments),
    /// Reads an SSZ answer and writes the JSON-RPC result that it becomes
    Decode(tools::decode::Arguments),
}

/// Runs the program with the process's arguments and gives its exit code.
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse_from(without_snoopers_name(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => return explain(&error),
    };
    match cli.tool {
        None => match cli.run.settings().and_then(Settings::check) {
            Ok(config) => crate::serve::run(config),
            Err(error) => refuse(&error),
        },
        Some(Tool::MockEl(arguments)) => tools::mock_el::run(arguments),
        Some(Tool::Demo(arguments)) => tools::demo::run(arguments),
        Some(Tool::Soak(arguments)) => tools::soak::run(arguments),
        Some(Tool::Encode(arguments)) => tools::encode::run(arguments),
        Some(Tool::Decode(arguments)) => tools::decode::run(arguments),
    }
}

/// Name under which the stock Kurtosis ethereum-package starts its snooper.
const SNOOPER: &str = "json_rpc_snoop";

/// The package gives `./json_rpc_snoop` as the container's command; behind an image's entry point it
/// arrives as the first argument.
fn without_snoopers_name(
    arguments: impl IntoIterator<Item = OsString>,
) -> impl Iterator<Item = OsString> {
    arguments.into_iter().enumerate().filter_map(|(place, argument)| {
        let is_name = Path::new(&argument).file_name() == Some(OsStr::new(SNOOPER));
        (place != 1 || !is_name).then_some(argument)
    })
}

impl Run {
    fn settings(mut self) -> Result<Settings, ConfigError> {
        if self.endpoint.is_some() {
            self.settings.execution_endpoint = self.endpoint;
        }
        match &self.config {
            Some(path) => Ok(self.settings.over(Settings::from_file(path)?)),
            None => Ok(self.settings),
        }
    }
}

/// One clear line for a configuration that cannot be used.
pub(crate) fn refuse(error: &impl std::fmt::Display) -> ExitCode {
    eprintln!("engine-ssz-proxy: {error}");
    ExitCode::from(EXIT_USAGE)
}

/// Help and version go to stdout; everything else is one line and exit 64.
fn explain(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Nothing can be done about a stdout that is gone.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    refuse(&first.strip_prefix("error: ").unwrap_or(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    fn settings(arguments: &[&str]) -> Settings {
        let arguments = without_snoopers_name(arguments.iter().map(OsString::from));
        Cli::try_parse_from(arguments).unwrap().run.settings().unwrap()
    }

    #[test]
    fn the_snoopers_argument_forms_are_understood() {
        for arguments in [
            &["./json_rpc_snoop", "-b=0.0.0.0", "-p=8561", "http://el:8551"][..],
            &["engine-ssz-proxy", "./json_rpc_snoop", "-b=0.0.0.0", "-p=8561", "http://el:8551"],
            &["./json_rpc_snoop", "http://el:8551", "-b", "0.0.0.0", "--port", "8561"],
            &["./json_rpc_snoop", "--bind-address=0.0.0.0", "--port=8561", "http://el:8551"],
        ] {
            let settings = settings(arguments);
            assert_eq!(settings.execution_endpoint.as_deref(), Some("http://el:8551"));
            assert_eq!(settings.check().unwrap().listen.to_string(), "0.0.0.0:8561");
        }
    }

    #[test]
    fn the_positional_endpoint_is_the_flag() {
        let flag = settings(&["p", "--execution-endpoint", "http://el:1"]);
        let positional = settings(&["p", "http://el:1"]);
        assert_eq!(flag.execution_endpoint, positional.execution_endpoint);
    }
}
