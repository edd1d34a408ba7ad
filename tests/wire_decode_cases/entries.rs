//! The answers with entries that may be unavailable: bodies and blobs.

use engine_ssz_proxy::wire::{Defect, Fork, json_array, schema, to_json};

use crate::{bodies, bytes, one_body, print};

#[test]
fn json_13_bodies_always_have_the_members_of_their_version() {
    let entry = bytes("04000000 04000000 01 05000000 04000000");
    let v1 = print(schema::BODIES_RESPONSE_V1, Fork::Paris, &entry).unwrap();
    assert_eq!(v1, r#"[{"transactions":[],"withdrawals":null}]"#);
    assert_eq!(
        one_body(Fork::Osaka, "01 05000000 08000000 08000000").unwrap(),
        r#"[{"transactions":[],"withdrawals":[],"blockAccessList":null}]"#
    );
}

#[test]
fn a_pruned_block_access_list_is_null_and_an_empty_one_is_not() {
    let entry = "01 05000000 0c000000 0c000000 0c000000";
    assert!(one_body(Fork::Amsterdam, entry).unwrap().ends_with(r#""blockAccessList":null}]"#));
    let printed = one_body(Fork::Amsterdam, &format!("{entry} c0")).unwrap();
    assert!(printed.ends_with(r#""blockAccessList":"0xc0"}]"#), "{printed}");
    // V1 has never heard of it.
    let ssz = bytes(&format!("04000000 04000000 {entry} c0"));
    let v1 = print(schema::BODIES_RESPONSE_V1, Fork::Amsterdam, &ssz).unwrap();
    assert_eq!(v1, r#"[{"transactions":[],"withdrawals":[]}]"#);
}

#[test]
fn json_14_all_64_bits_are_printed() {
    for (number, text) in [(u64::MAX, "0xffffffffffffffff"), (1 << 63, "0x8000000000000000")] {
        let withdrawal = format!(
            "{0} {0} {1} {0}",
            const_hex::encode(number.to_le_bytes()),
            const_hex::encode([0x11; 20])
        );
        let printed =
            one_body(Fork::Shanghai, &format!("01 05000000 08000000 08000000 {withdrawal}"));
        let expected = format!(r#""index":"{text}","validatorIndex":"{text}""#);
        assert!(printed.unwrap().contains(&expected));
    }
}

#[test]
fn body_06_unavailable_is_null_whatever_else_it_holds() {
    for entry in ["00 05000000 08000000 08000000", "00 05000000", "00", "00 ffffffff ee", "00 01"] {
        assert_eq!(one_body(Fork::Cancun, entry), Ok("[null]".into()), "{entry}");
    }
    assert_eq!(
        one_body(Fork::Amsterdam, "00 05000000 0c000000 0c000000 0c000000"),
        Ok("[null]".into())
    );
    // Without even a flag there is nothing to ignore.
    assert_eq!(one_body(Fork::Cancun, ""), Err(Defect::Short));
    // An empty block is not unavailable.
    assert_eq!(
        one_body(Fork::Cancun, "01 05000000 08000000 08000000").unwrap(),
        r#"[{"transactions":[],"withdrawals":[],"blockAccessList":null}]"#
    );
}

/// A BlobV2Entry with that many proofs, in a response.
fn blob_v2(proofs: usize) -> Vec<u8> {
    let mut ssz = bytes("04000000 04000000 01 05000000");
    ssz.resize(13 + 131_072, 0xbb);
    ssz.extend(131_076_u32.to_le_bytes());
    ssz.resize(ssz.len() + 48 * proofs, 0xcc);
    ssz
}

#[test]
fn blob_03_one_proof_per_cell() {
    for container in [schema::BLOBS_V2_RESPONSE, schema::BLOBS_V3_RESPONSE] {
        let printed = print(container, Fork::Osaka, &blob_v2(128)).unwrap();
        let value: serde_json::Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(value[0]["proofs"].as_array().unwrap().len(), 128);
        for proofs in [0, 1, 127] {
            assert_eq!(print(container, Fork::Osaka, &blob_v2(proofs)), Err(Defect::BadLength));
        }
        let error = to_json(container, Fork::Osaka, &blob_v2(129)).unwrap_err();
        assert_eq!(error.path(), "entries[0].proofs");
    }
}

/// A BlobV4Entry with those cells and proofs, each either there or not, in a response.
fn blob_v4(cells: &[bool], proofs: &[bool]) -> Vec<u8> {
    fn list(present: &[bool], size: usize) -> Vec<u8> {
        let mut offset = 4 * present.len();
        let mut list = Vec::new();
        for &present in present {
            list.extend(u32::try_from(offset).unwrap().to_le_bytes());
            offset += if present { size } else { 0 };
        }
        list.resize(offset, 0xdd);
        list
    }
    let (cells, proofs) = (list(cells, 2048), list(proofs, 48));
    let mut ssz = bytes("04000000 04000000 01 05000000 08000000");
    ssz.extend(u32::try_from(8 + cells.len()).unwrap().to_le_bytes());
    ssz.extend(cells);
    ssz.extend(proofs);
    ssz
}

#[test]
fn blob_04_cells_are_copied_one_to_one() {
    let print = |ssz: &[u8]| print(schema::BLOBS_V4_RESPONSE, Fork::Amsterdam, ssz);
    let positions = [true, false, true];
    let printed = print(&blob_v4(&positions, &positions)).unwrap();
    let (cell, proof) = ("dd".repeat(2048), "dd".repeat(48));
    assert_eq!(
        printed,
        format!(
            r#"[{{"blob_cells":["0x{cell}",null,"0x{cell}"],"proofs":["0x{proof}",null,"0x{proof}"]}}]"#
        )
    );
    assert_eq!(print(&blob_v4(&[], &[])).unwrap(), r#"[{"blob_cells":[],"proofs":[]}]"#);
    let full = [false; 128];
    assert!(print(&blob_v4(&full, &full)).is_ok());
    let more = [false; 129];
    assert_eq!(print(&blob_v4(&more, &more)), Err(Defect::OverBound));
}

#[test]
fn blob_04_cells_and_proofs_belong_together() {
    let print = |ssz: &[u8]| print(schema::BLOBS_V4_RESPONSE, Fork::Amsterdam, ssz);
    assert_eq!(print(&blob_v4(&[true, false], &[false, true])), Err(Defect::Mismatch));
    assert_eq!(print(&blob_v4(&[true], &[true, false])), Err(Defect::Mismatch));
    assert_eq!(print(&blob_v4(&[], &[false])), Err(Defect::Mismatch));
}

#[test]
fn req_03_bounds_hold_for_the_answers_too() {
    let withdrawals = |count: usize| {
        let list = "00".repeat(44 * count);
        one_body(Fork::Cancun, &format!("01 05000000 08000000 08000000 {list}"))
    };
    assert!(withdrawals(16).is_ok());
    assert_eq!(withdrawals(17), Err(Defect::OverBound));
}

#[test]
fn printed_arrays_can_be_taken_apart_again() {
    let printed =
        bodies(Fork::Paris, "04000000 08000000 09000000 00 01 05000000 04000000 04000000").unwrap();
    let entries = json_array(printed.as_bytes(), usize::MAX).unwrap();
    assert_eq!(entries[0], b"null");
    assert!(entries[1].starts_with(b"{\"transactions\":[\"0x\"]"));
}
