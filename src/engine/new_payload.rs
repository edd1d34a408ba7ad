//! `engine_newPayloadV1` to `V6` → `POST /payloads`.

use super::{
    Answer, Context, Exchange, Problem, ProblemKind, RelayReason, Replay, Step,
    exchange::{Endpoint, INVALID, VALID, bad_answer, check_size, ssz_body},
    header_fork::{self, Certainty, HeaderFork},
    method::{Method, RestEndpoint, Version},
    params::{note_time, params, shapes, timestamp},
    payload_status,
    versioned_hashes::{self, Comparison},
};
use crate::wire::{self, Fork, Source, schema};
use bytes::Bytes;
use http::Response;

/// What the CL is told when the hashes it expects are not those of the payload. REST-SSZ has no
/// field for them, so this is the one status that does not come from the EL (cancun.md,
/// `engine_newPayloadV3`, point 2: at once, even while the EL syncs).
fn hashes_differ(version: Version) -> Bytes {
    const MEMBERS: &str = r#""status":"INVALID","latestValidHash":null,"validationError":"the blob versioned hashes of the payload's transactions are not the expected ones""#;
    Bytes::from(match version {
        Version::V6 => format!(r#"{{{MEMBERS},"inclusionListSatisfied":null}}"#),
        _ => format!("{{{MEMBERS}}}"),
    })
}

/// More blobs than any payload can have (deneb, `MAX_BLOB_COMMITMENTS_PER_BLOCK`).
const MAX_VERSIONED_HASHES: usize = 4096;

/// A payload on its way to the EL.
#[derive(Debug)]
pub(super) struct NewPayload {
    version: Version,
    header: HeaderFork,
    body: Bytes,
    block_hash: [u8; 32],
    timestamp: u64,
}

impl NewPayload {
    /// Gives no state when the call is answered at once.
    pub(super) fn begin(
        version: Version,
        raw: Option<&[u8]>,
        context: Context<'_>,
    ) -> Result<(Option<Self>, Step), RelayReason> {
        let params = params(raw)?;
        let (payload, expected_hashes, envelope) = split(version, &params)?;
        let timestamp = timestamp(payload)?;
        let shapes = shapes(Method::NewPayload(version), payload)?;
        note_time(timestamp, shapes, context);
        let header = header_fork::of_timestamp(shapes, timestamp, context)?;
        let container = schema::EXECUTION_PAYLOAD_ENVELOPE;
        let body = wire::to_ssz(container, header.fork, Source::Fields(&envelope))?;
        check_size(&body, context)?;
        if let Some(expected) = expected_hashes
            && compare_hashes(expected, header.fork, &body)? == Comparison::Different
        {
            return Ok((None, Step::Answer(Answer::Result(hashes_differ(version)))));
        }
        let block_hash = payload_field(header.fork, &body, "blockHash");
        let block_hash = block_hash.and_then(|hash| hash.try_into().ok()).unwrap_or_default();
        let state = Self { version, header, body, block_hash, timestamp };
        let exchange = state.exchange(context);
        Ok((Some(state), Step::send(exchange)))
    }

    fn exchange(&self, context: Context<'_>) -> Exchange {
        let endpoint = Endpoint::Payloads(self.header.fork, self.body.clone());
        Exchange::new(endpoint, Replay::Harmless, context.memory)
    }

    pub(super) fn resume(
        &mut self,
        answer: &Response<Bytes>,
        context: Context<'_>,
    ) -> Result<Step, RelayReason> {
        match ssz_body(answer)? {
            Some(body) => self.status(body, context),
            None => self.refused(&Problem::read(answer), context),
        }
    }

    fn status(&self, ssz: &[u8], context: Context<'_>) -> Result<Step, RelayReason> {
        let fork = self.header.fork;
        let container = payload_status::container(Method::NewPayload(self.version));
        let shape = payload_status::shape(ssz, fork);
        let result = wire::to_json(container, shape, ssz)?;
        let field = |name| wire::field(container, shape, ssz, &[name]);
        let latest_valid = field("latestValidHash").unwrap_or_default();
        let satisfied = field("inclusionListSatisfied").unwrap_or_default();
        match field("status") {
            // paris.md, "Payload validation": VALID carries the block's own hash, INVALID an
            // ancestor's. Statuses numbered otherwise would show up here.
            Some(VALID) if latest_valid != self.block_hash => {
                return Err(bad_answer("VALID without the hash of the block"));
            }
            Some(INVALID) if latest_valid == self.block_hash => {
                return Err(bad_answer("INVALID with the hash of the block as the latest valid"));
            }
            // bogota.md, `engine_newPayloadV6`: VALID says whether the list was satisfied, and a CL
            // that is not told may take it for a no.
            Some(VALID) if self.version == Version::V6 && satisfied.is_empty() => {
                return Err(bad_answer("VALID without whether the inclusion list was satisfied"));
            }
            // Under a header of another fork the EL hashes another block.
            Some(INVALID) if latest_valid.is_empty() && self.is_guess() => {
                return Err(RelayReason::InvalidUnderGuess(fork));
            }
            Some(VALID) => {
                context.memory.note_block(self.block_hash, fork);
                self.learn(context);
            }
            _ => {}
        }
        Ok(Step::Answer(Answer::Result(result)))
    }

    fn is_guess(&self) -> bool {
        self.header.certainty == Certainty::Guess
    }

    /// A VALID under a header that has no sibling of the same shape proves the fork; where there
    /// is one, an EL may have taken either.
    fn learn(&self, context: Context<'_>) {
        if self.header.sibling.is_none() {
            context.memory.learn(self.timestamp, self.header.fork);
        }
    }

    fn refused(&mut self, problem: &Problem, context: Context<'_>) -> Result<Step, RelayReason> {
        match problem.kind {
            ProblemKind::UnsupportedFork => match self.header.sibling.take() {
                Some(sibling) => {
                    self.header.fork = sibling;
                    Ok(Step::send(self.exchange(context)))
                }
                None => Err(problem.to_relay(RestEndpoint::PayloadSubmit)),
            },
            ProblemKind::Auth(_) | ProblemKind::NotReady => Ok(Step::Answer(problem.to_answer())),
            // A payload that REST cannot even decode may still be an INVALID one to the CL.
            _ => Err(problem.to_relay(RestEndpoint::PayloadSubmit)),
        }
    }
}

/// The payload, the hashes to compare, and the fields of the envelope in SSZ order.
type Parts<'a> = (&'a [u8], Option<&'a [u8]>, Vec<&'a [u8]>);

fn split<'a>(version: Version, params: &[&'a [u8]]) -> Result<Parts<'a>, RelayReason> {
    match (version, params) {
        (Version::V1 | Version::V2, &[payload]) => Ok((payload, None, vec![payload])),
        (Version::V3, &[payload, hashes, root]) => Ok((payload, Some(hashes), vec![payload, root])),
        (Version::V4 | Version::V5, &[payload, hashes, root, requests]) => {
            Ok((payload, Some(hashes), vec![payload, root, requests]))
        }
        // Drafts of Bogota have had more: another number is another shape.
        (Version::V6, &[payload, hashes, root, requests, inclusion_list]) => {
            Ok((payload, Some(hashes), vec![payload, root, requests, inclusion_list]))
        }
        _ => Err(RelayReason::ParamCount {
            wanted: match version {
                Version::V1 | Version::V2 => "1",
                Version::V3 => "3",
                Version::V4 | Version::V5 => "4",
                Version::V6 => "5",
            },
            got: params.len(),
        }),
    }
}

fn compare_hashes(expected: &[u8], fork: Fork, body: &[u8]) -> Result<Comparison, RelayReason> {
    let expected = wire::json_array(expected, MAX_VERSIONED_HASHES)?;
    let expected = expected.into_iter().map(wire::json_data).collect::<Result<Vec<_>, _>>()?;
    let transactions = payload_field(fork, body, "transactions").unwrap_or_default();
    Ok(versioned_hashes::compare(wire::elements(transactions), &expected)?)
}

fn payload_field<'a>(fork: Fork, body: &'a [u8], name: &str) -> Option<&'a [u8]> {
    wire::field(schema::EXECUTION_PAYLOAD_ENVELOPE, fork, body, &["payload", name])
}
