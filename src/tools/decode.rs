//! `decode`: the translation of an answer by itself, for people who debug clients.

use super::encode::fork;
use crate::{
    cli::refuse,
    engine::{self, Method, RelayReason},
    wire::{self, Container, Fork, Malformed, schema},
};
use bytes::Bytes;
use serde_json::value::RawValue;
use std::{
    io::{self, Read, Write},
    process::ExitCode,
};

/// Exit code when the body is not valid SSZ of the answer's container.
const EXIT_MALFORMED: u8 = 2;

/// Reads the SSZ body of an EL's answer from stdin and prints the JSON `result` that the CL gets.
///
/// An empty body stands for 204 No Content. Exit codes: 0 decoded; 2 the body is malformed, with
/// the reason on stderr; 64 the arguments fit no answer.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// JSON-RPC method whose answer it is, such as engine_getPayloadV5
    #[arg(long, value_name = "NAME")]
    method: String,
    /// Fork header that the request was sent under; where left out, each fork of the method is
    /// tried, newest first
    #[arg(long, value_name = "NAME", value_parser = fork)]
    fork: Option<Fork>,
    /// `params` of the request as JSON, where the answer depends on them (getBlobs, bodies)
    #[arg(long, value_name = "JSON")]
    params: Option<String>,
    /// `id` of the request as JSON: prints the whole JSON-RPC response instead of the result
    #[arg(long, value_name = "JSON")]
    id: Option<String>,
}

/// Why nothing can be printed.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// No SSZ answer belongs to that method.
    #[error("method: {0} has no SSZ answer")]
    NoAnswer(String),
    /// The fork does not fit the method.
    #[error("fork: {0} has no answers of fork {1}")]
    WrongFork(String, Fork),
    /// `--params` is not what the method takes.
    #[error("params: {0}")]
    Params(&'static str),
    /// The answer has another number of entries than were asked for.
    #[error("{answered} entries for {asked} asked")]
    Entries {
        /// Entries in the body.
        answered: usize,
        /// Asked for in `params`.
        asked: usize,
    },
    /// The answer has other cells than were asked for.
    #[error("{0}")]
    Cells(RelayReason),
    /// The body is not valid SSZ of the container.
    #[error("malformed body: {0}")]
    Malformed(#[from] Malformed),
}

/// The answer of a method: its container, the forks that it differs by, and what 204 means.
struct Shape {
    container: &'static Container,
    forks: &'static [Fork],
    part: Part,
    no_content: NoContent,
}

/// Which part of the container the CL gets.
enum Part {
    Whole,
    Member(&'static str),
}

/// What 204 No Content means to the CL.
enum NoContent {
    /// Nothing: it is no legal answer.
    Illegal,
    Null,
    /// A null for each hash asked (cancun.md, `engine_getBlobsV1`).
    ArrayOfNulls,
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> ExitCode {
    let mut ssz = Vec::new();
    if let Err(error) = io::stdin().lock().read_to_end(&mut ssz) {
        return refuse(&format_args!("stdin: {error}"));
    }
    let id = match arguments.id.as_deref().map(serde_json::from_str::<Box<RawValue>>).transpose() {
        Ok(id) => id,
        Err(error) => return refuse(&format_args!("id: {error}")),
    };
    let params = arguments.params.as_deref();
    match decode(&arguments.method, arguments.fork, params, &ssz) {
        Ok(result) => {
            let mut out = io::stdout().lock();
            let printed = match id {
                Some(id) => out
                    .write_all(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#).as_bytes())
                    .and_then(|()| out.write_all(&result))
                    .and_then(|()| out.write_all(b"}\n")),
                None => out.write_all(&result).and_then(|()| out.write_all(b"\n")),
            };
            match printed {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => refuse(&format_args!("stdout: {error}")),
            }
        }
        Err(
            error @ (DecodeError::Malformed(_)
            | DecodeError::Entries { .. }
            | DecodeError::Cells(_)),
        ) => {
            eprintln!("engine-ssz-proxy: {error}");
            ExitCode::from(EXIT_MALFORMED)
        }
        Err(error) => refuse(&error),
    }
}

/// The JSON `result` that the CL gets for that SSZ answer.
///
/// # Errors
/// When the arguments fit no answer or the body is malformed.
pub fn decode(
    method: &str,
    fork: Option<Fork>,
    params: Option<&str>,
    ssz: &[u8],
) -> Result<Bytes, DecodeError> {
    let shape = Shape::of(method).ok_or_else(|| DecodeError::NoAnswer(method.to_owned()))?;
    let forks = match fork {
        Some(fork) if shape.forks.contains(&fork) => vec![fork],
        Some(fork) => return Err(DecodeError::WrongFork(method.to_owned(), fork)),
        None => shape.forks.iter().rev().copied().collect(),
    };
    let params = params.map(parameters).transpose()?;
    let asked = params.as_deref().map(|params| asked(method, params)).transpose()?.flatten();
    let columns = params.as_deref().map(|params| columns(method, params)).transpose()?.flatten();
    if ssz.is_empty() {
        match shape.no_content {
            NoContent::Illegal => {}
            NoContent::Null => return Ok(Bytes::from_static(b"null")),
            NoContent::ArrayOfNulls => {
                let asked = asked.ok_or(DecodeError::Params(
                    "an empty answer is a null for each hash asked: give the request's params",
                ))?;
                return Ok(format!("[{}]", vec!["null"; asked].join(",")).into());
            }
        }
    }
    let result = shape.print(&forks, ssz)?;
    if let Some(asked) = asked {
        check_entries(method, &result, asked)?;
    }
    match columns {
        Some(columns) => engine::requested_cells(result, columns).map_err(DecodeError::Cells),
        None => Ok(result),
    }
}

impl Shape {
    fn of(method: &str) -> Option<Self> {
        use Fork::{Amsterdam, Bogota};
        let shape = |container, forks| Self {
            container,
            forks,
            part: Part::Whole,
            no_content: NoContent::Illegal,
        };
        let all = &Fork::SPECIFIED[..];
        let built = || {
            let forks = Method::from_name(method).map_or(&[][..], Method::forks);
            shape(schema::BUILT_PAYLOAD, forks)
        };
        // ELs differ in which of the two they answer with.
        let with_or_without_list = &[Amsterdam, Bogota];
        Some(match method.strip_prefix("engine_")? {
            "newPayloadV1" | "newPayloadV2" | "newPayloadV3" | "newPayloadV4" | "newPayloadV5" => {
                shape(schema::PAYLOAD_STATUS, all)
            }
            "newPayloadV6" => shape(schema::PAYLOAD_STATUS_V2, with_or_without_list),
            "forkchoiceUpdatedV5" => {
                shape(schema::FORKCHOICE_UPDATE_RESPONSE_V2, with_or_without_list)
            }
            "getInclusionListV1" => shape(schema::INCLUSION_LIST_RESPONSE, &[Bogota]),
            "forkchoiceUpdatedV1"
            | "forkchoiceUpdatedV2"
            | "forkchoiceUpdatedV3"
            | "forkchoiceUpdatedV4" => shape(schema::FORKCHOICE_UPDATE_RESPONSE, all),
            "getPayloadV1" => Self { part: Part::Member("executionPayload"), ..built() },
            "getPayloadV2" | "getPayloadV3" | "getPayloadV4" | "getPayloadV5" | "getPayloadV6" => {
                built()
            }
            "getPayloadBodiesByHashV1" | "getPayloadBodiesByRangeV1" => {
                shape(schema::BODIES_RESPONSE_V1, all)
            }
            "getPayloadBodiesByHashV2" | "getPayloadBodiesByRangeV2" => {
                shape(schema::BODIES_RESPONSE_V2, all)
            }
            "getBlobsV1" => Self {
                no_content: NoContent::ArrayOfNulls,
                ..shape(schema::BLOBS_V1_RESPONSE, &[Fork::Amsterdam])
            },
            "getBlobsV2" => Self {
                no_content: NoContent::Null,
                ..shape(schema::BLOBS_V2_RESPONSE, &[Fork::Amsterdam])
            },
            "getBlobsV3" => Self {
                no_content: NoContent::Null,
                ..shape(schema::BLOBS_V3_RESPONSE, &[Fork::Amsterdam])
            },
            "getBlobsV4" => Self {
                no_content: NoContent::Null,
                ..shape(schema::BLOBS_V4_RESPONSE, &[Fork::Amsterdam])
            },
            _ => return None,
        })
    }

    /// Tries the forks in turn; the reason of the first refusal is the one that is told.
    fn print(&self, forks: &[Fork], ssz: &[u8]) -> Result<Bytes, Malformed> {
        let mut refusal = None;
        for fork in forks {
            let printed = match self.part {
                Part::Whole => wire::to_json(self.container, *fork, ssz),
                Part::Member(name) => wire::member_to_json(self.container, *fork, ssz, name),
            };
            match printed {
                Ok(result) => return Ok(result),
                Err(malformed) => refusal = refusal.or(Some(malformed)),
            }
        }
        refusal.map_or_else(|| Ok(Bytes::new()), Err)
    }
}

const NO_LIST: DecodeError = DecodeError::Params("is not a JSON array of the parameters");

fn parameters(params: &str) -> Result<Vec<&RawValue>, DecodeError> {
    serde_json::from_str(params).map_err(|_| NO_LIST)
}

/// How many entries the request asked for.
fn asked(method: &str, params: &[&RawValue]) -> Result<Option<usize>, DecodeError> {
    let by_hash = method.contains("BodiesByHash") || method.contains("getBlobs");
    if !by_hash {
        return Ok(None);
    }
    let hashes = params.first().ok_or(NO_LIST)?;
    let hashes: Vec<&RawValue> = serde_json::from_str(hashes.get()).map_err(|_| NO_LIST)?;
    Ok(Some(hashes.len()))
}

/// The columns whose cells the request asked for.
fn columns(method: &str, params: &[&RawValue]) -> Result<Option<[u8; 16]>, DecodeError> {
    if method != "engine_getBlobsV4" {
        return Ok(None);
    }
    let columns = params.get(1).and_then(|columns| wire::json_data(columns.get().as_bytes()).ok());
    columns.map(Some).ok_or(DecodeError::Params("has no indices_bitarray of 16 bytes"))
}

/// An answer by hash has one entry for each hash.
fn check_entries(method: &str, result: &[u8], asked: usize) -> Result<(), DecodeError> {
    let entries = serde_json::from_slice::<Vec<&RawValue>>(result);
    match entries {
        Ok(entries) if entries.len() != asked => {
            Err(DecodeError::Entries { answered: entries.len(), asked })
        }
        Ok(_) => Ok(()),
        Err(_) => Err(DecodeError::NoAnswer(method.to_owned())),
    }
}
