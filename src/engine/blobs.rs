//! `engine_getBlobsV1` to `V4` → `POST /blobs/v1` to `v4`.

use super::{
    Answer, Context, Exchange, Problem, ProblemKind, RelayReason, Replay, Step,
    exchange::{Endpoint, bad_answer, ssz_body},
    method::{RestEndpoint, Version},
    params::{exactly, params},
};
use crate::wire::{self, Container, Fork, Source, schema};
use bytes::Bytes;
use http::{Response, StatusCode};

/// Blob containers are the same under every fork (refactor.md, "Blob pool").
const ANY_FORK: Fork = Fork::Amsterdam;

/// Blobs being asked for, in pieces that the EL takes.
#[derive(Debug)]
pub(super) struct Blobs {
    version: Version,
    hashes: Vec<[u8; 32]>,
    /// `indices_bitarray` of V4, copied as it is.
    columns: Option<[u8; 16]>,
    /// Printed arrays of the pieces answered.
    pieces: Vec<Bytes>,
    asked: usize,
}

impl Blobs {
    pub(super) fn begin(
        version: Version,
        raw: Option<&[u8]>,
        context: Context<'_>,
    ) -> Result<(Self, Exchange), RelayReason> {
        context.offer.ok_or(RelayReason::NoRest)?;
        let is_over = context.memory.newest_fork() >= Some(Fork::Osaka);
        if version == Version::V1 && is_over {
            return Err(RelayReason::EndedWithOsaka);
        }
        let params = params(raw)?;
        let (hashes, columns) = match version {
            Version::V4 => {
                let [hashes, columns] = exactly(&params)?;
                (hashes, Some(wire::json_data(columns)?))
            }
            _ => {
                let [hashes] = exactly(&params)?;
                (hashes, None)
            }
        };
        let hashes = wire::json_array(hashes, schema::MAX_BLOBS_REQUEST + 1)?;
        // An EL may serve more over JSON-RPC, or has its own words for too many.
        if hashes.is_empty() || hashes.len() > schema::MAX_BLOBS_REQUEST {
            return Err(RelayReason::Count(hashes.len()));
        }
        let hashes = hashes.into_iter().map(wire::json_data).collect::<Result<Vec<_>, _>>()?;
        let mut state = Self { version, hashes, columns, pieces: Vec::new(), asked: 0 };
        let exchange = state.next_piece(context)?;
        Ok((state, exchange))
    }

    /// What was asked for and is not answered yet begins at `asked`.
    fn next_piece(&mut self, context: Context<'_>) -> Result<Exchange, RelayReason> {
        let piece = self.piece(context);
        let hex = |hash: &[u8]| format!("\"{}\"", const_hex::encode_prefixed(hash));
        let texts: Vec<_> = piece.iter().map(|hash| hex(hash)).collect();
        let list = format!("[{}]", texts.join(","));
        let body = match &self.columns {
            Some(columns) => {
                let columns = hex(columns);
                let fields = [list.as_bytes(), columns.as_bytes()];
                wire::to_ssz(schema::BLOBS_V4_REQUEST, ANY_FORK, Source::Fields(&fields))?
            }
            None => {
                wire::to_ssz(schema::BLOBS_REQUEST, ANY_FORK, Source::Fields(&[list.as_bytes()]))?
            }
        };
        let endpoint = Endpoint::Blobs(self.version, body);
        Ok(Exchange::new(endpoint, Replay::Harmless, context.memory))
    }

    fn piece(&self, context: Context<'_>) -> &[[u8; 32]] {
        let limit =
            context.offer.map_or(schema::MAX_BLOBS_REQUEST, |offer| offer.limits().blobs_max);
        let rest = self.hashes.get(self.asked..).unwrap_or_default();
        rest.get(..limit.max(1)).unwrap_or(rest)
    }

    pub(super) fn resume(
        &mut self,
        answer: &Response<Bytes>,
        context: Context<'_>,
    ) -> Result<Step, RelayReason> {
        if answer.status() == StatusCode::NO_CONTENT {
            return self.nothing();
        }
        let Some(ssz) = ssz_body(answer)? else {
            let problem = Problem::read(answer);
            return match problem.kind {
                ProblemKind::Auth(_) => Ok(Step::Answer(problem.to_answer())),
                // Which revision is served when differs between ELs, and JSON-RPC has its own
                // codes for it.
                _ => Err(problem.to_relay(RestEndpoint::Blobs(self.version))),
            };
        };
        let asked = self.piece(context).len();
        let printed = wire::to_json(self.container(), ANY_FORK, ssz)?;
        let entries = wire::json_array(&printed, schema::MAX_BLOBS_REQUEST)?;
        let missed = entries.iter().any(|entry| wire::is_null(entry)) || entries.is_empty();
        if self.version == Version::V2 && missed {
            // osaka.md, `engine_getBlobsV2`: all or nothing.
            return self.nothing();
        }
        if entries.len() != asked {
            let got = entries.len();
            return Err(bad_answer(format_args!("{got} blobs where {asked} were asked for")));
        }
        let printed = match self.columns {
            Some(columns) => only_requested(&entries, columns)?.unwrap_or(printed),
            None => printed,
        };
        self.pieces.push(printed);
        self.asked += asked;
        if self.asked < self.hashes.len() {
            return Ok(Step::send(self.next_piece(context)?));
        }
        Ok(Step::Answer(Answer::Result(joined(std::mem::take(&mut self.pieces)))))
    }

    /// The EL serves nothing, or not all of what comes only whole.
    fn nothing(&self) -> Result<Step, RelayReason> {
        let result = match self.version {
            // cancun.md knows no null but in place of an element.
            Version::V1 => format!("[{}]", vec!["null"; self.hashes.len()].join(",")).into(),
            // Some ELs answer 204 to everything and serve cells over JSON-RPC alone.
            Version::V4 => return Err(RelayReason::NoContent),
            _ => Bytes::from_static(b"null"),
        };
        Ok(Step::Answer(Answer::Result(result)))
    }

    const fn container(&self) -> &'static Container {
        match self.version {
            Version::V1 => schema::BLOBS_V1_RESPONSE,
            Version::V2 => schema::BLOBS_V2_RESPONSE,
            Version::V3 => schema::BLOBS_V3_RESPONSE,
            _ => schema::BLOBS_V4_RESPONSE,
        }
    }
}

/// One array out of several.
fn joined(mut pieces: Vec<Bytes>) -> Bytes {
    if pieces.len() == 1 {
        return pieces.pop().unwrap_or_default();
    }
    let mut all = Vec::with_capacity(pieces.iter().map(Bytes::len).sum());
    all.push(b'[');
    for (place, piece) in pieces.iter().enumerate() {
        if place > 0 {
            all.push(b',');
        }
        let inner = piece.strip_prefix(b"[").and_then(|piece| piece.strip_suffix(b"]"));
        all.extend_from_slice(inner.unwrap_or_default());
    }
    all.push(b']');
    all.into()
}

/// The result of `engine_getBlobsV4` out of the printed BlobsV4Response: only the cells that
/// `columns`, the request's `indices_bitarray`, asks for (amsterdam.md, `engine_getBlobsV4`).
///
/// # Errors
///
/// [`RelayReason::BadAnswer`] if a list has neither one cell for each asked nor all 128 slots;
/// another reason if `printed` is not the JSON of that container.
pub fn requested_cells(printed: Bytes, columns: [u8; 16]) -> Result<Bytes, RelayReason> {
    let entries = wire::json_array(&printed, schema::MAX_BLOBS_REQUEST)?;
    let picked = only_requested(&entries, columns)?;
    Ok(picked.unwrap_or(printed))
}

/// JSON lists only the cells that were asked for (amsterdam.md, `engine_getBlobsV4`). REST leaves
/// open whether its lists do the same or have a slot for each of the 128 columns: the slots that were
/// not asked for are left out. `None`: the lists are as JSON has them.
fn only_requested(entries: &[&[u8]], columns: [u8; 16]) -> Result<Option<Bytes>, RelayReason> {
    let requested: Vec<_> = (0..schema::CELLS_PER_EXT_BLOB)
        .filter(|column| columns[column / 8] >> (column % 8) & 1 == 1)
        .collect();
    let (mut slots_left_out, mut as_asked) = (false, false);
    let mut cells = Vec::with_capacity(entries.len());
    for entry in entries {
        let lists = cells_and_proofs(entry)?;
        for list in lists.iter().flatten() {
            match list.len() {
                length if length == requested.len() => as_asked = true,
                schema::CELLS_PER_EXT_BLOB => slots_left_out = true,
                length => {
                    let asked = requested.len();
                    return Err(bad_answer(format_args!(
                        "{length} cells where {asked} were asked"
                    )));
                }
            }
        }
        cells.push(lists);
    }
    match (slots_left_out, as_asked) {
        (false, _) => return Ok(None),
        (true, false) => {}
        (true, true) => return Err(bad_answer("cells in two forms")),
    }
    let pick = |list: &Vec<&[u8]>| {
        let picked = requested.iter().filter_map(|column| list.get(*column));
        let texts: Vec<_> = picked.map(|text| String::from_utf8_lossy(text)).collect();
        texts.join(",")
    };
    let print = |lists: Option<[Vec<&[u8]>; 2]>| match lists {
        Some([cells, proofs]) => {
            format!(r#"{{"blob_cells":[{}],"proofs":[{}]}}"#, pick(&cells), pick(&proofs))
        }
        None => "null".to_owned(),
    };
    let printed: Vec<_> = cells.into_iter().map(print).collect();
    Ok(Some(format!("[{}]", printed.join(",")).into()))
}

/// The elements of both lists of an entry; `None` for a blob that is not there.
fn cells_and_proofs(entry: &[u8]) -> Result<Option<[Vec<&[u8]>; 2]>, RelayReason> {
    if wire::is_null(entry) {
        return Ok(None);
    }
    let list = |name| {
        let list = wire::json_member(entry, name)?.unwrap_or_default();
        wire::json_array(list, schema::CELLS_PER_EXT_BLOB)
    };
    Ok(Some([list("blob_cells")?, list("proofs")?]))
}
