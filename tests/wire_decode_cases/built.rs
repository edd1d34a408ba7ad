//! The answer to getPayload.

use engine_ssz_proxy::wire::{Defect, Fork, member_to_json, schema};

use crate::{golden, print};

/// The printed `blockValue` of a built payload with that value.
fn block_value(value: [u8; 32]) -> String {
    let mut built = golden("01-paris-getPayload.ssz");
    built[4..36].copy_from_slice(&value);
    let printed = member_to_json(schema::BUILT_PAYLOAD, Fork::Paris, &built, "blockValue");
    String::from_utf8(printed.unwrap().into()).unwrap()
}

#[test]
fn json_15_uint256_is_little_endian_and_printed_minimally() {
    let mut value = [0; 32];
    assert_eq!(block_value(value), r#""0x0""#);
    value[0] = 1;
    assert_eq!(block_value(value), r#""0x1""#);
    value = [0; 32];
    value[31] = 0x80;
    assert_eq!(block_value(value), format!("\"0x80{}\"", "0".repeat(62)));
    value[31] = 0x08;
    assert_eq!(block_value(value), format!("\"0x8{}\"", "0".repeat(62)));
    assert_eq!(block_value([0xff; 32]), format!("\"0x{}\"", "f".repeat(64)));
}

#[test]
fn blob_06_bundles_print_as_received() {
    let fork = Fork::Osaka;
    let built = golden("12-osaka-getPayload.ssz");
    // The last blob goes, so that the counts no longer fit each other.
    let requests = u32::from_le_bytes(built[40..44].try_into().unwrap()) as usize;
    let shorter = requests - 131_072;
    let mut odd = [&built[..shorter], &built[requests..]].concat();
    odd[40..44].copy_from_slice(&u32::try_from(shorter).unwrap().to_le_bytes());
    let printed = print(schema::BUILT_PAYLOAD, fork, &odd).unwrap();
    let value: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let count = |member: &str| value["blobsBundle"][member].as_array().unwrap().len();
    assert_eq!(count("blobs") + 1, count("commitments"));

    let empty = golden("06-cancun-getPayload.ssz");
    let printed = print(schema::BUILT_PAYLOAD, Fork::Cancun, &empty).unwrap();
    assert!(printed.contains(r#""blobsBundle":{"commitments":[],"proofs":[],"blobs":[]}"#));
}

#[test]
fn req_02_requests_come_before_the_flag_in_ssz_and_last_in_json() {
    for (name, fork, first_offset) in [
        ("01-paris", Fork::Paris, 36),
        ("03-shanghai", Fork::Shanghai, 36),
        ("06-cancun", Fork::Cancun, 41),
        ("09-prague", Fork::Prague, 45),
        ("15-amsterdam", Fork::Amsterdam, 45),
    ] {
        let mut built = golden(&format!("{name}-getPayload.ssz"));
        assert_eq!(built[0], first_offset);
        let printed = print(schema::BUILT_PAYLOAD, fork, &built).unwrap();
        let flag = printed.find("shouldOverrideBuilder");
        assert_eq!(flag.is_some(), fork >= Fork::Cancun);
        let requests = printed.find("executionRequests");
        assert_eq!(requests.is_some(), fork >= Fork::Prague);
        assert!(requests.is_none() || requests > flag);
        // An older draft of the container has another fixed part.
        built[0] ^= 1;
        assert_eq!(print(schema::BUILT_PAYLOAD, fork, &built), Err(Defect::BadOffset));
    }
}

#[test]
fn fork_07_paris_prints_no_withdrawals_and_shanghai_prints_them() {
    let paris = golden("01-paris-getPayload.ssz");
    let printed = print(schema::BUILT_PAYLOAD, Fork::Paris, &paris).unwrap();
    assert!(!printed.contains("withdrawals"));
    assert!(printed.ends_with('}') && printed.contains(r#"},"blockValue":"0x"#));
    let shanghai = golden("03-shanghai-getPayload.ssz");
    let printed = print(schema::BUILT_PAYLOAD, Fork::Shanghai, &shanghai).unwrap();
    assert!(printed.contains(r#""withdrawals":[{"#));
    // Read as the other fork each is no container at all.
    assert!(print(schema::BUILT_PAYLOAD, Fork::Shanghai, &paris).is_err());
    assert!(print(schema::BUILT_PAYLOAD, Fork::Paris, &shanghai).is_err());
}

#[test]
fn one_member_is_printed_only_after_the_whole_body_is_checked() {
    let mut built = golden("09-prague-getPayload.ssz");
    let member = |built: &[u8], name: &str| {
        member_to_json(schema::BUILT_PAYLOAD, Fork::Prague, built, name)
            .map_err(|error| error.defect())
    };
    assert!(member(&built, "executionPayload").is_ok());
    assert_eq!(member(&built, "noSuchThing"), Err(Defect::NoSuchMember));
    built[44] = 2;
    assert_eq!(member(&built, "executionPayload"), Err(Defect::BadBoolean));
}
