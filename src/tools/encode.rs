//! `encode`: the translation of a request by itself, for people who debug clients.

use crate::{
    cli::refuse,
    config::read_schedule,
    engine::{
        Answer, Call, Context, Exchange, Horizon, Memory, Method, Network, Offer, Schedule, Step,
    },
    jsonrpc::{self, Incoming, Request},
    wire::Fork,
};
use bytes::Bytes;
use std::{
    fmt::Write as _,
    io::{self, Read, Write},
    path::PathBuf,
    process::ExitCode,
};

/// Exit code when the sidecar would send no REST request for the call.
const EXIT_NO_EXCHANGE: u8 = 3;
/// Base path of the REST-SSZ Engine API.
const BASE: &str = "/engine/v1";

/// Reads one JSON-RPC request from stdin; prints the HTTP head of the REST request that it becomes
/// on stderr and writes its SSZ body to stdout (nothing for GET).
///
/// Exit codes: 0 translated; 3 the sidecar would send no REST request (it relays the call over
/// JSON-RPC, or answers it at once), with the reason on stderr; 64 the input is no single request.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Genesis file with the fork schedule
    #[arg(long, value_name = "FILE", conflicts_with = "network")]
    genesis: Option<PathBuf>,
    /// Public network whose fork schedule is built in
    #[arg(long, value_name = "NAME", value_enum)]
    network: Option<Network>,
    /// Fork header to use where the method version spans forks of one shape; bogota asks for its
    /// experimental shapes
    #[arg(long, value_name = "NAME", value_parser = fork)]
    fork: Option<Fork>,
}

/// A fork by its header name.
pub(super) fn fork(name: &str) -> Result<Fork, String> {
    Fork::from_name(name).ok_or_else(|| {
        let names: Vec<_> = Fork::ALL.iter().map(|fork| fork.name()).collect();
        format!("the forks are {}", names.join(", "))
    })
}

/// What a request becomes.
#[derive(Debug)]
pub enum Encoded {
    /// A REST request.
    Exchange(Box<Exchange>),
    /// Nothing: why.
    Nothing(String),
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> ExitCode {
    let schedule = match (&arguments.genesis, arguments.network) {
        (Some(path), _) => match read_schedule(path) {
            Ok(schedule) => Some(schedule),
            Err(error) => return refuse(&error),
        },
        (None, network) => network.map(Schedule::of_network),
    };
    let mut text = Vec::new();
    if let Err(error) = io::stdin().lock().read_to_end(&mut text) {
        return refuse(&format_args!("stdin: {error}"));
    }
    match encode(&Bytes::from(text), schedule, arguments.fork) {
        Ok(Encoded::Exchange(exchange)) => {
            eprint!("{}", head(&exchange));
            match io::stdout().lock().write_all(exchange.request.body()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => refuse(&format_args!("stdout: {error}")),
            }
        }
        Ok(Encoded::Nothing(why)) => {
            eprintln!("{why}");
            ExitCode::from(EXIT_NO_EXCHANGE)
        }
        Err(error) => refuse(&error),
    }
}

/// Translates one JSON-RPC request as the sidecar would for an EL that offers every fork of the
/// specification, or only the one given.
///
/// # Errors
/// When the text is not one JSON-RPC request.
pub fn encode(
    text: &Bytes,
    schedule: Option<Schedule>,
    fork: Option<Fork>,
) -> Result<Encoded, jsonrpc::Error> {
    let request = single(text)?;
    let Some(method) = Method::from_name(request.method.as_str()) else {
        return Ok(Encoded::Nothing(format!(
            "relayed over JSON-RPC: {} is not translated",
            request.method.as_str()
        )));
    };
    let horizon = match fork {
        Some(Fork::Bogota) => Horizon::Bogota,
        _ => Horizon::Specified,
    };
    let memory = Memory::new(schedule).within(horizon);
    let offer = match fork {
        Some(fork) => Offer::of_forks(&[fork]),
        None => Offer::of_forks(&Fork::SPECIFIED),
    };
    let context = Context { memory: &memory, offer: Some(&offer) };
    let (_, step) = Call::begin(method, request.params.as_deref(), context);
    Ok(match step {
        Step::Send(exchange) => Encoded::Exchange(exchange),
        Step::Relay(reason) => Encoded::Nothing(format!("relayed over JSON-RPC: {reason}")),
        Step::Consult(_) => Encoded::Nothing(
            "relayed over JSON-RPC: the answer is then reduced to method names".to_owned(),
        ),
        Step::Answer(Answer::Result(result)) => Encoded::Nothing(format!(
            "answered at once, the EL is not asked: {}",
            String::from_utf8_lossy(&result)
        )),
        Step::Answer(answer) => Encoded::Nothing(format!("answered at once: {answer:?}")),
    })
}

fn single(text: &Bytes) -> Result<Request, jsonrpc::Error> {
    match jsonrpc::parse(text)? {
        Incoming::Single(request) => request.map_err(|invalid| invalid.error),
        Incoming::Batch(_) => Err(jsonrpc::Error::invalid_request("one request, not a batch")),
    }
}

/// The request line and the engine headers, as HTTP/1.1 writes them.
fn head(exchange: &Exchange) -> String {
    let request = &exchange.request;
    let mut head = format!("{} {BASE}{}\n", request.method(), request.uri().path());
    for (name, value) in request.headers() {
        // Writing to a String cannot fail.
        let _ = writeln!(head, "{name}: {}", String::from_utf8_lossy(value.as_bytes()));
    }
    if !request.body().is_empty() {
        let _ = writeln!(head, "content-length: {}", request.body().len());
    }
    head
}
