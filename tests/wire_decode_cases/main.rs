//! Bodies of the EL: what is printed, and what is refused. Tests bear the ids of the cases they
//! guard.

mod bounds;
mod built;
mod entries;
mod status;

use engine_ssz_proxy::wire::{Container, Defect, Fork, check, elements, field, schema, to_json};

const HASH: &str = "1111111111111111111111111111111111111111111111111111111111111111";

fn bytes(hex: &str) -> Vec<u8> {
    const_hex::decode(hex.replace(' ', "")).unwrap()
}

fn print(container: &Container, fork: Fork, ssz: &[u8]) -> Result<String, Defect> {
    let printed = to_json(container, fork, ssz).map_err(|error| error.defect());
    // Whatever is printed is checked, and the other way round.
    assert_eq!(
        check(container, fork, ssz).map_err(|error| error.defect()).err(),
        printed.clone().err()
    );
    printed.map(|text| String::from_utf8(text.into()).unwrap())
}

fn status(hex: &str) -> Result<String, Defect> {
    print(schema::PAYLOAD_STATUS, Fork::Osaka, &bytes(hex))
}

fn forkchoice(hex: &str) -> Result<String, Defect> {
    print(schema::FORKCHOICE_UPDATE_RESPONSE, Fork::Osaka, &bytes(hex))
}

fn bodies(fork: Fork, hex: &str) -> Result<String, Defect> {
    print(schema::BODIES_RESPONSE_V2, fork, &bytes(hex))
}

/// A `BodiesResponse` of one entry.
fn one_body(fork: Fork, entry: &str) -> Result<String, Defect> {
    bodies(fork, &format!("04000000 04000000 {entry}"))
}

/// An available Paris entry with that transactions region.
fn transactions(region: &str) -> Result<String, Defect> {
    one_body(Fork::Paris, &format!("01 05000000 04000000 {region}"))
}

#[test]
fn ssz_01_gap_is_refused() {
    assert_eq!(status(&format!("00 0d000000 2d000000 00000000 {HASH}")), Err(Defect::BadOffset));
}

#[test]
fn ssz_01_second_offset_before_the_first_is_refused() {
    assert_eq!(status(&format!("00 29000000 09000000 {HASH}")), Err(Defect::BadOffset));
    // The first offset is right, the second points into the fixed part.
    assert_eq!(status(&format!("00 09000000 08000000 {HASH}")), Err(Defect::BadOffset));
}

#[test]
fn ssz_01_offset_out_of_bounds_is_refused() {
    assert_eq!(status(&format!("00 09000000 ffffff7f {HASH}")), Err(Defect::BadOffset));
    assert_eq!(status("00 09000000 0a000000"), Err(Defect::BadOffset));
}

#[test]
fn ssz_01_first_offset_into_the_fixed_part_is_refused() {
    assert_eq!(status(&format!("00 08000000 29000000 {HASH}")), Err(Defect::BadOffset));
    assert_eq!(status(&format!("00 00000000 29000000 {HASH}")), Err(Defect::BadOffset));
}

#[test]
fn ssz_02_lists_of_variable_elements() {
    let empty = r#"[{"transactions":[],"withdrawals":null,"blockAccessList":null}]"#;
    let one = r#"[{"transactions":["0x"],"withdrawals":null,"blockAccessList":null}]"#;
    assert_eq!(transactions(""), Ok(empty.into()));
    assert_eq!(transactions("04000000"), Ok(one.into()));
    for region in
        ["00000000", "05000000aa", "02000000", "0800000007000000", "0c000000", "040000", "08000000"]
    {
        assert_eq!(transactions(region), Err(Defect::BadOffset), "{region}");
    }
}

#[test]
fn ssz_02_an_element_ends_where_the_next_begins() {
    let region = "0c000000 0d000000 0d000000 aa bbcc";
    let printed = transactions(region).unwrap();
    assert!(printed.contains(r#""transactions":["0xaa","0x","0xbbcc"]"#), "{printed}");
    let region = bytes(region);
    let found: Vec<&[u8]> = elements(&region).collect();
    assert_eq!(found, [&[0xaa][..], &[], &[0xbb, 0xcc]]);
    assert_eq!(transactions("0c000000 0e000000 0d000000 aa bbcc"), Err(Defect::BadOffset));
    assert_eq!(elements(&bytes("0c000000 0e000000 0d000000 aa bbcc")).count(), 1);
}

#[test]
fn ssz_03_optional_is_a_list_of_at_most_one() {
    // A plain byte list where the optional one must be, and two errors.
    assert_eq!(status("01 09000000 09000000 62616420737461746520726f6f74"), BAD_OPTIONAL);
    assert_eq!(status("01 09000000 09000000 08000000 09000000 6162"), BAD_OPTIONAL);
    assert_eq!(status("01 09000000 09000000 626164"), BAD_OPTIONAL);
    // Two hashes; a union selector before one hash.
    assert_eq!(status(&format!("00 09000000 49000000 {HASH}{HASH}")), BAD_OPTIONAL);
    assert_eq!(status(&format!("00 09000000 2a000000 01{HASH}")), BAD_OPTIONAL);
    for id in ["00000000000000", "000000000000000000"] {
        let answer = format!("08000000 11000000 00 09000000 09000000 {id}");
        assert_eq!(forkchoice(&answer), BAD_OPTIONAL);
    }
}

const BAD_OPTIONAL: Result<String, Defect> = Err(Defect::BadOptional);

#[test]
fn ssz_04_booleans_other_than_00_and_01_are_refused() {
    let entry = |available: &str| {
        one_body(Fork::Shanghai, &format!("{available} 05000000 08000000 08000000"))
    };
    assert!(entry("01").is_ok());
    for available in ["02", "ff", "80"] {
        assert_eq!(entry(available), Err(Defect::BadBoolean));
    }
    let mut blob = bytes("04000000 02");
    blob.resize(4 + 1 + 131_072 + 48, 0);
    assert_eq!(print(schema::BLOBS_V1_RESPONSE, Fork::Prague, &blob), Err(Defect::BadBoolean));

    let mut built = golden("09-prague-getPayload.ssz");
    assert!(print(schema::BUILT_PAYLOAD, Fork::Prague, &built).is_ok());
    built[44] = 0xff;
    let error = to_json(schema::BUILT_PAYLOAD, Fork::Prague, &built).unwrap_err();
    assert_eq!((error.defect(), error.path()), (Defect::BadBoolean, "shouldOverrideBuilder"));
}

#[test]
fn ssz_05_trailing_and_missing_bytes_are_refused() {
    let hashes = |ssz: &[u8]| print(schema::BLOBS_REQUEST, Fork::Osaka, ssz);
    assert_eq!(hashes(&bytes(&format!("04000000 {HASH} 00"))), Err(Defect::BadLength));
    assert_eq!(status("00 09000000 090000"), Err(Defect::Short));
    assert_eq!(status(""), Err(Defect::Short));
    assert_eq!(
        one_body(Fork::Shanghai, "01 05000000 08000000 08000000 00"),
        Err(Defect::BadLength)
    );
    let state = bytes(&HASH.repeat(3));
    assert!(check(schema::FORKCHOICE_STATE, Fork::Paris, &state).is_ok());
    let longer = [state.as_slice(), &[0]].concat();
    assert_eq!(print(schema::FORKCHOICE_STATE, Fork::Paris, &longer), Err(Defect::Trailing));
    assert_eq!(print(schema::FORKCHOICE_STATE, Fork::Paris, &state[1..]), Err(Defect::Short));

    let mut blob = bytes("04000000 01");
    blob.resize(4 + 1 + 131_072 + 48, 0);
    assert!(check(schema::BLOBS_V1_RESPONSE, Fork::Prague, &blob).is_ok());
    blob.push(0);
    assert_eq!(print(schema::BLOBS_V1_RESPONSE, Fork::Prague, &blob), Err(Defect::BadLength));
}

#[test]
fn ssz_05_an_empty_answer_is_no_list() {
    for container in [schema::BODIES_RESPONSE_V1, schema::BLOBS_V2_RESPONSE] {
        assert_eq!(print(container, Fork::Osaka, &[]), Err(Defect::Short));
        assert_eq!(print(container, Fork::Osaka, &[4, 0, 0, 0]), Ok("[]".into()));
    }
}

#[test]
fn ssz_06_bare_lists_are_refused() {
    let bare = |hex: &str| print(schema::BODIES_BY_HASH_REQUEST, Fork::Osaka, &bytes(hex));
    assert_eq!(bare(HASH), Err(Defect::BadOffset));
    assert!(bare(&format!("04000000{HASH}")).is_ok());
}

#[test]
fn ssz_07_claimed_counts_are_held_against_the_bytes_at_hand() {
    // An offset table of 2^20 elements in a body of a few bytes.
    assert_eq!(transactions("00004000"), Err(Defect::BadOffset));
    // A table that is all there, but of more elements than the bound.
    let table = "84000000".repeat(33);
    assert_eq!(bodies(Fork::Paris, &format!("04000000 {table}")), Err(Defect::OverBound));
    let hashes = format!("04000000 {}", HASH.repeat(129));
    assert_eq!(print(schema::BLOBS_REQUEST, Fork::Osaka, &bytes(&hashes)), Err(Defect::OverBound));
}

#[test]
fn fields_are_found_by_either_name_and_through_optionals() {
    let answer = bytes(&format!("08000000 31000000 01 09000000 29000000 {HASH} 00000000000000aa"));
    let at = |path: &[&str]| field(schema::FORKCHOICE_UPDATE_RESPONSE, Fork::Paris, &answer, path);
    assert_eq!(at(&["payloadStatus", "status"]), Some(&[1][..]));
    assert_eq!(at(&["payload_status", "latest_valid_hash"]), Some(&[0x11; 32][..]));
    assert_eq!(at(&["payloadStatus", "validationError"]), Some(&[][..]));
    assert_eq!(at(&["payloadId"]), Some(&bytes("00000000000000aa")[..]));
    assert_eq!(at(&[]), Some(&answer[..]));
    assert_eq!(at(&["payloadStatus", "nothing"]), None);
    assert_eq!(at(&["payloadId", "nothing"]), None);

    let absent = bytes(&format!("{} 68000000 68000000", HASH.repeat(3)));
    let path = ["payloadAttributes", "timestamp"];
    assert_eq!(field(schema::FORKCHOICE_UPDATE, Fork::Amsterdam, &absent, &path), None);
    let paris = bytes(&format!("{} 64000000 0700000000000000 {}", HASH.repeat(3), "00".repeat(52)));
    assert_eq!(
        field(schema::FORKCHOICE_UPDATE, Fork::Paris, &paris, &path),
        Some(&7_u64.to_le_bytes()[..])
    );
}

#[test]
fn errors_say_where_and_what_in_one_line() {
    let error = to_json(schema::BODIES_RESPONSE_V1, Fork::Paris, &bytes("04000000 04000000 07"))
        .unwrap_err();
    assert_eq!(error.to_string(), "malformed SSZ: entries[0]: boolean other than 00 and 01");
}

fn golden(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/data/golden/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}
