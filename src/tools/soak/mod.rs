//! `soak`: several CLs drive a chain through the sidecar at high speed while the EL goes wrong in
//! every way that it can, and every answer is held against the truth.
//!
//! ```text
//! CLs ──▶ sidecar (a process of its own) ──▶ mock EL with faults
//!  └────▶ reference: a mock EL that is never struck, and told every command
//! ```
//!
//! A run is a sequence of laps. Each starts a chain from its genesis through all forks; in its storm
//! faults strike and the EL restarts with other surfaces; in the calm after it the EL offers all it
//! has, and REST-SSZ has to come back.

mod commanders;
mod draw;
mod heads;
mod incidents;
mod judge;
mod lap;
mod line;
mod memory;
mod order;
mod reader;
mod record;
mod report;
mod run;
mod sidecar;
mod storm;
mod truth;

use crate::{cli::refuse, telemetry};
use std::{net::SocketAddr, process::ExitCode, time::Duration};

pub use incidents::Excuse;
pub use memory::{Memory, Trend};
pub use record::{Counts, Kind};
pub use report::Report;
pub use run::play;
pub use storm::FaultKinds;

/// A soak that could not be run.
pub type SoakError = Box<dyn std::error::Error + Send + Sync>;

/// Drives slots at high speed through the sidecar against the embedded EL, which misbehaves at random,
/// and holds every answer against what an undisturbed EL says.
///
/// The sidecar runs as a process of its own, of which the memory is measured. The last line tells
/// calls, faults, violations and peak memory. Exit codes: 0 no violation; 1 a violation, printed
/// with the seed and the call.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// How long: a number with ms, s, m or h; the calm after the last storm comes on top
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub duration: Duration,
    /// What goes wrong: all, none, or kinds with commas between them, such as cut,stall,restart
    #[arg(long, value_name = "KINDS", default_value = "all")]
    pub faults: FaultKinds,
    /// Where all chance comes from; without it another one each time
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How many CLs: one that proposes, one that follows, the others only ask
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub cls: u64,
    /// What to log on stderr
    #[arg(long, value_name = "LEVEL", default_value = "error")]
    pub log_level: String,
}

impl Default for Arguments {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(60),
            faults: FaultKinds::all(),
            seed: None,
            cls: 6,
            log_level: "error".to_owned(),
        }
    }
}

/// Where the sidecar is to stand.
#[derive(Clone, Debug)]
pub struct Stand {
    /// The EL to be in front of.
    pub el: SocketAddr,
    /// The secret of both sides, 64 hex digits.
    pub secret: String,
}

/// A sidecar that stands there.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its process, if its memory is to be measured.
    pub process: Option<u32>,
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> ExitCode {
    if let Err(error) = telemetry::init(&arguments.log_level, telemetry::Format::Pretty) {
        return refuse(&format_args!("log-level: {error}"));
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return refuse(&error),
    };
    match runtime.block_on(with_a_process(&arguments)) {
        Ok(report) => {
            for violation in &report.counts.told {
                eprintln!("{violation}");
            }
            print!("{report}");
            if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("engine-ssz-proxy: soak: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The sidecar is this program once more.
async fn with_a_process(arguments: &Arguments) -> Result<Report, SoakError> {
    let program = std::env::current_exe()?;
    let mut process = None;
    let mut report = play(arguments, async |stand: Stand| {
        let started = sidecar::Process::start(&program, stand.el, &stand.secret)?;
        let standing = Standing { address: started.address(), process: Some(started.id()) };
        process = Some(started);
        Ok(standing)
    })
    .await?;
    if let Some(trouble) = process.as_mut().and_then(sidecar::Process::trouble) {
        report.counts.add(Kind::Run, format!("run: seed {}: {trouble}", report.seed));
    }
    if let Some(process) = process.filter(|_| !report.is_clean()) {
        eprintln!("the end of the sidecar's log:\n{}", process.log());
    }
    Ok(report)
}

/// A number and its unit.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| format!("{text:?} is no number with a unit"))?;
    let seconds = |factor: u64| number.checked_mul(factor).map(Duration::from_secs);
    let duration = match &text[digits.len()..] {
        "ms" => Some(Duration::from_millis(number)),
        "s" => seconds(1),
        "m" => seconds(60),
        "h" => seconds(3600),
        unit => return Err(format!("the unit is ms, s, m or h, not {unit:?}")),
    };
    duration.ok_or_else(|| format!("{text:?} is too long"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_number_and_a_unit() {
        assert_eq!(duration("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(duration("1500ms"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        for bad in ["", "60", "s", "60 s", "-1s", "1d", "18446744073709551615h"] {
            assert!(duration(bad).is_err(), "{bad:?}");
        }
    }
}
