//! Every list bound of the table that a body of less than 30 MB reaches: as many elements pass, one
//! more does not. The bodies are made by hand, all zero but for their offsets.

use engine_ssz_proxy::wire::{Container, Defect, Fork, Reason, Source, check, schema, to_ssz};
use serde_json::json;

/// A field of a container.
enum Part {
    /// That many zero bytes in the fixed part.
    Fixed(usize),
    /// An offset, and what is there.
    Variable(Vec<u8>),
}
use Part::{Fixed, Variable};

fn container(parts: &[Part]) -> Vec<u8> {
    let size = |part: &Part| if let Fixed(size) = part { *size } else { 4 };
    let mut offset: usize = parts.iter().map(size).sum();
    let (mut fixed, mut variable) = (Vec::new(), Vec::<u8>::new());
    for part in parts {
        match part {
            Fixed(size) => fixed.resize(fixed.len() + size, 0),
            Variable(bytes) => {
                fixed.extend(u32::try_from(offset).unwrap().to_le_bytes());
                offset += bytes.len();
                variable.extend(bytes);
            }
        }
    }
    fixed.extend(variable);
    fixed
}

/// A list of `count` elements of `size` bytes.
fn fixed(count: usize, size: usize) -> Vec<u8> {
    vec![0; count * size]
}

/// A list of `count` elements of variable size, all alike.
fn variable(count: usize, element: &[u8]) -> Vec<u8> {
    let offsets = (0..count).map(|index| 4 * count + index * element.len());
    let mut list: Vec<u8> =
        offsets.flat_map(|offset| u32::try_from(offset).unwrap().to_le_bytes()).collect();
    list.extend(element.repeat(count));
    list
}

/// A container that is nothing but a list.
fn only(list: Vec<u8>) -> Vec<u8> {
    container(&[Variable(list)])
}

const WITHDRAWAL: usize = 44;

/// Extra data, transactions and, from Shanghai on, withdrawals.
fn payload(fork: Fork, lists: [Vec<u8>; 3]) -> Vec<u8> {
    let [extra_data, transactions, withdrawals] = lists;
    let mut parts =
        vec![Fixed(436), Variable(extra_data), Fixed(32), Fixed(32), Variable(transactions)];
    if fork >= Fork::Shanghai {
        parts.push(Variable(withdrawals));
    }
    if fork >= Fork::Cancun {
        parts.push(Fixed(16));
    }
    container(&parts)
}

fn no_lists() -> [Vec<u8>; 3] {
    [Vec::new(), Vec::new(), Vec::new()]
}

fn extra_data(count: usize) -> Vec<u8> {
    payload(Fork::Paris, [fixed(count, 1), Vec::new(), Vec::new()])
}

fn transactions(count: usize) -> Vec<u8> {
    payload(Fork::Paris, [Vec::new(), variable(count, b""), Vec::new()])
}

fn withdrawals(count: usize) -> Vec<u8> {
    payload(Fork::Shanghai, [Vec::new(), Vec::new(), fixed(count, WITHDRAWAL)])
}

fn submitted_requests(count: usize) -> Vec<u8> {
    let payload = payload(Fork::Prague, no_lists());
    container(&[Variable(payload), Fixed(32), Variable(variable(count, b""))])
}

fn attributes(count: usize) -> Vec<u8> {
    container(&[Fixed(8 + 32 + 20), Variable(fixed(count, WITHDRAWAL))])
}

/// Commitments, proofs, and the requests behind the bundle from Prague on.
fn built(fork: Fork, commitments: usize, proofs: usize, requests: usize) -> Vec<u8> {
    let bundle = [fixed(commitments, 48), fixed(proofs, 48), Vec::new()].map(Variable);
    let mut parts = vec![
        Variable(payload(fork, no_lists())),
        Fixed(32),
        Variable(container(&bundle)),
        Variable(variable(requests, b"")),
        Fixed(1),
    ];
    if fork < Fork::Prague {
        parts.remove(3);
    }
    container(&parts)
}

fn commitments(count: usize) -> Vec<u8> {
    built(Fork::Cancun, count, 0, 0)
}

fn blob_proofs(count: usize) -> Vec<u8> {
    built(Fork::Prague, 0, count, 0)
}

fn cell_proofs(count: usize) -> Vec<u8> {
    built(Fork::Osaka, 0, count, 0)
}

fn built_requests(count: usize) -> Vec<u8> {
    built(Fork::Prague, 0, 0, count)
}

fn status(count: usize) -> Vec<u8> {
    container(&[Fixed(1), Variable(Vec::new()), Variable(variable(1, &fixed(count, 1)))])
}

fn updated(count: usize) -> Vec<u8> {
    container(&[Variable(status(count)), Variable(Vec::new())])
}

fn hashes(count: usize) -> Vec<u8> {
    only(fixed(count, 32))
}

fn hashes_and_columns(count: usize) -> Vec<u8> {
    container(&[Variable(fixed(count, 32)), Fixed(16)])
}

/// Entries that are not available.
fn entries(count: usize) -> Vec<u8> {
    only(variable(count, &[0]))
}

fn blob_v1_entries(count: usize) -> Vec<u8> {
    only(fixed(count, 1 + 131_072 + 48))
}

fn body_withdrawals(count: usize) -> Vec<u8> {
    let body = container(&[Variable(Vec::new()), Variable(fixed(count, WITHDRAWAL))]);
    only(variable(1, &[&[1, 5, 0, 0, 0], body.as_slice()].concat()))
}

/// Cells and proofs that are all absent.
fn cells_and_proofs(cells: usize, proofs: usize) -> Vec<u8> {
    let entry = container(&[Variable(variable(cells, b"")), Variable(variable(proofs, b""))]);
    only(variable(1, &[&[1, 5, 0, 0, 0], entry.as_slice()].concat()))
}

#[test]
fn req_03_a_list_takes_as_many_as_its_bound_and_no_more() {
    use Fork::{Amsterdam, Cancun, Osaka, Paris, Prague, Shanghai};
    use schema::*;
    type Row = (&'static Container, Fork, &'static str, usize, fn(usize) -> Vec<u8>);
    let table: [Row; 23] = [
        (EXECUTION_PAYLOAD, Paris, "extraData", 32, extra_data),
        (EXECUTION_PAYLOAD, Paris, "transactions", 1 << 20, transactions),
        (EXECUTION_PAYLOAD, Shanghai, "withdrawals", 16, withdrawals),
        (EXECUTION_PAYLOAD_ENVELOPE, Prague, "executionRequests", 256, submitted_requests),
        (PAYLOAD_ATTRIBUTES, Shanghai, "withdrawals", 16, attributes),
        (BUILT_PAYLOAD, Cancun, "blobsBundle.commitments", 4096, commitments),
        (BUILT_PAYLOAD, Prague, "blobsBundle.proofs", 4096, blob_proofs),
        (BUILT_PAYLOAD, Osaka, "blobsBundle.proofs", 4096 * 128, cell_proofs),
        (BUILT_PAYLOAD, Prague, "executionRequests", 256, built_requests),
        (PAYLOAD_STATUS, Osaka, "validationError", 1024, status),
        (FORKCHOICE_UPDATE_RESPONSE, Osaka, "payloadStatus.validationError", 1024, updated),
        (BODIES_BY_HASH_REQUEST, Osaka, "blockHashes", 32, hashes),
        (BODIES_RESPONSE_V1, Paris, "entries", 32, entries),
        (BODIES_RESPONSE_V2, Paris, "entries", 32, entries),
        (BODIES_RESPONSE_V1, Shanghai, "entries[0].withdrawals", 16, body_withdrawals),
        (BODIES_RESPONSE_V2, Shanghai, "entries[0].withdrawals", 16, body_withdrawals),
        (BLOBS_REQUEST, Osaka, "versionedHashes", 128, hashes),
        (BLOBS_V4_REQUEST, Amsterdam, "versionedHashes", 128, hashes_and_columns),
        (BLOBS_V1_RESPONSE, Amsterdam, "entries", 128, blob_v1_entries),
        (BLOBS_V2_RESPONSE, Amsterdam, "entries", 128, entries),
        (BLOBS_V3_RESPONSE, Amsterdam, "entries", 128, entries),
        (BLOBS_V4_RESPONSE, Amsterdam, "entries", 128, entries),
        (BLOBS_V4_RESPONSE, Amsterdam, "entries[0].blob_cells", 128, |cells| {
            cells_and_proofs(cells, cells)
        }),
    ];
    for (container, fork, path, bound, body) in table {
        let name = container.name();
        assert_eq!(check(container, fork, &body(bound)), Ok(()), "{name}: {path}");
        let error = check(container, fork, &body(bound + 1)).unwrap_err();
        assert_eq!((error.defect(), error.path()), (Defect::OverBound, path), "{name}");
    }
}

#[test]
fn req_03_each_of_the_lists_of_cells_and_of_proofs_has_its_bound() {
    let over = |cells, proofs| {
        let body = cells_and_proofs(cells, proofs);
        let error = check(schema::BLOBS_V4_RESPONSE, Fork::Amsterdam, &body).unwrap_err();
        (error.defect(), error.path().to_owned())
    };
    assert_eq!(over(129, 128), (Defect::OverBound, "entries[0].blob_cells".into()));
    assert_eq!(over(128, 129), (Defect::OverBound, "entries[0].proofs".into()));
}

#[test]
fn req_03_an_error_text_is_measured_in_bytes_of_utf_8() {
    let encode = |text: String| {
        let json = json!({"status": "INVALID", "latestValidHash": null, "validationError": text});
        let json = json.to_string();
        to_ssz(schema::PAYLOAD_STATUS, Fork::Osaka, Source::Object(json.as_bytes()))
            .map_err(|error| error.reason())
    };
    assert_eq!(encode("é".repeat(512)).unwrap().len(), 9 + 4 + 1024);
    assert_eq!(encode("é".repeat(512) + "a"), Err(Reason::OverBound));
}
