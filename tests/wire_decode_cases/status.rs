//! The answers to newPayload and forkchoiceUpdated.

use engine_ssz_proxy::wire::{Defect, Fork, schema};

use crate::{HASH, bytes, forkchoice, print, status};

#[test]
fn status_01_null_zero_and_real_hash_stay_apart() {
    let printed = |hash: &str| {
        format!(r#"{{"status":"INVALID","latestValidHash":{hash},"validationError":null}}"#)
    };
    let zeros = "00".repeat(32);
    assert_eq!(status("01 09000000 09000000"), Ok(printed("null")));
    assert_eq!(
        status(&format!("01 09000000 29000000 {zeros}")),
        Ok(printed(&format!("\"0x{zeros}\"")))
    );
    assert_eq!(
        status(&format!("01 09000000 29000000 {HASH}")),
        Ok(printed(&format!("\"0x{HASH}\"")))
    );
}

/// The printed validation error of an INVALID status.
fn validation_error(region: &[u8]) -> Result<String, Defect> {
    let ssz = [&bytes("01 09000000 09000000"), region].concat();
    let printed = print(schema::PAYLOAD_STATUS, Fork::Osaka, &ssz)?;
    let value: serde_json::Value = serde_json::from_str(&printed).unwrap();
    Ok(value["validationError"].to_string())
}

fn present(text: &[u8]) -> Vec<u8> {
    [&[4, 0, 0, 0], text].concat()
}

#[test]
fn status_02_validation_error_absent_empty_and_text() {
    assert_eq!(validation_error(&[]), Ok("null".into()));
    assert_eq!(validation_error(&present(b"")), Ok(r#""""#.into()));
    assert_eq!(validation_error(&present(b"bad state root")), Ok(r#""bad state root""#.into()));
}

#[test]
fn status_02_validation_error_that_is_not_utf_8_is_printed_with_replacements() {
    assert_eq!(
        validation_error(&present(b"\xff\xfe\x80")),
        Ok("\"\u{fffd}\u{fffd}\u{fffd}\"".into())
    );
    // A character cut in half by a byte limit.
    assert_eq!(validation_error(&present(b"ok \xf0\x9f\x92")), Ok("\"ok \u{fffd}\"".into()));
}

#[test]
fn status_02_validation_error_is_escaped() {
    let text = "quote \" backslash \\ nul \0 line \u{2028} \u{1f4a9}";
    let ssz = [&bytes("01 09000000 09000000"), present(text.as_bytes()).as_slice()].concat();
    let printed = print(schema::PAYLOAD_STATUS, Fork::Osaka, &ssz).unwrap();
    let value: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(value["validationError"], text);
    assert!(printed.contains(r#"\" backslash \\ nul \u0000 line"#), "{printed}");
    // The longest text of the longest escapes there can be.
    assert!(validation_error(&present(&[0; 1024])).is_ok());
}

#[test]
fn status_02_validation_error_is_bounded() {
    assert!(validation_error(&present(&[b'x'; 1024])).is_ok());
    assert_eq!(validation_error(&present(&[b'x'; 1025])), Err(Defect::OverBound));
}

#[test]
fn status_03_unknown_status_bytes_are_refused() {
    for byte in ["04", "05", "ff"] {
        assert_eq!(status(&format!("{byte} 09000000 09000000")), Err(Defect::BadStatus));
    }
}

#[test]
fn status_04_accepted_is_for_payloads_only() {
    assert!(status("03 09000000 09000000").unwrap().contains(r#""status":"ACCEPTED""#));
    let answer =
        |status: &str| forkchoice(&format!("08000000 11000000 {status} 09000000 09000000"));
    assert_eq!(answer("03"), Err(Defect::BadStatus));
    assert!(answer("02").is_ok());
}

#[test]
fn json_04_payload_id_keeps_its_leading_zeros() {
    let answer = format!("08000000 31000000 00 09000000 29000000 {HASH} 00000000000000aa");
    let printed = forkchoice(&answer).unwrap();
    assert!(printed.ends_with(r#""payloadId":"0x00000000000000aa"}"#), "{printed}");
}

#[test]
fn json_13_null_members_are_written() {
    assert_eq!(
        status("02 09000000 09000000").unwrap(),
        r#"{"status":"SYNCING","latestValidHash":null,"validationError":null}"#
    );
    assert_eq!(
        forkchoice("08000000 11000000 02 09000000 09000000").unwrap(),
        concat!(
            r#"{"payloadStatus":{"status":"SYNCING","latestValidHash":null,"#,
            r#""validationError":null},"payloadId":null}"#
        )
    );
}
