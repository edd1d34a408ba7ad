//! Single values, members and elements out of JSON text.

use engine_ssz_proxy::wire::{
    Reason, is_null, json_array, json_data, json_first_member, json_member, json_u64,
};

#[test]
fn members_are_found_without_looking_into_the_others() {
    let text = br#" { "a" : [ {"b": "]}\"" }, [1, 2] ] , "b":{"a":3}, "c" : -1.5e3 ,"d":"x\\" } "#;
    assert_eq!(json_member(text, "a"), Ok(Some(&br#"[ {"b": "]}\"" }, [1, 2] ]"#[..])));
    assert_eq!(json_member(text, "b"), Ok(Some(&br#"{"a":3}"#[..])));
    assert_eq!(json_member(text, "c"), Ok(Some(&b"-1.5e3"[..])));
    assert_eq!(json_member(text, "d"), Ok(Some(&br#""x\\""#[..])));
    assert_eq!(json_member(text, "e"), Ok(None));
    assert_eq!(json_member(b"{}", "e"), Ok(None));
    let reason = |text: &[u8]| json_member(text, "a").unwrap_err().reason();
    assert_eq!(reason(br#"{"a":1,"b":2,"a":1}"#), Reason::Duplicate);
    assert_eq!(reason(br#"{"\u0061":1}"#), Reason::Escaped);
    assert_eq!(reason(br#"{"a":[1}"#), Reason::BadJson);
    assert_eq!(reason(br#"{"a":1,}"#), Reason::BadJson);
    assert_eq!(reason(br#"{"a":1} x"#), Reason::BadJson);
    assert_eq!(reason(br#"{"a":}"#), Reason::BadJson);
    assert_eq!(reason(br#"[1]"#), Reason::WrongType);
    assert_eq!(reason(&[b'{'; 10_000]), Reason::BadJson);
    assert_eq!(reason(&[&b"{\"a\":"[..], &[b'['; 1 << 20]].concat()), Reason::BadJson);
}

#[test]
fn the_first_member_is_found_without_looking_at_what_follows() {
    let text = br#" { "x" : [ {"a": 1} ] , "a" : "1" , "a" : 2, no JSON"#;
    assert_eq!(json_first_member(text, "a"), Ok(Some(&b"\"1\""[..])));
    assert_eq!(json_first_member(br#"{"b":1}"#, "a"), Ok(None));
    let reason = |text: &[u8]| json_first_member(text, "a").unwrap_err().reason();
    assert_eq!(reason(br#"{"\u0061":1,"a":1}"#), Reason::Escaped);
    assert_eq!(reason(br#"{"b":[1,"a":1}"#), Reason::BadJson);
    assert_eq!(reason(br#"{"b":1} x"#), Reason::BadJson);
    assert_eq!(reason(b"[1]"), Reason::WrongType);
}

#[test]
fn elements_are_given_without_the_white_space_around_them() {
    assert_eq!(json_array(b" [ ] ", usize::MAX), Ok(vec![]));
    assert_eq!(
        json_array(br#"[ {"a": [1]} , null ,"]" ]"#, usize::MAX),
        Ok(vec![&br#"{"a": [1]}"#[..], b"null", br#""]""#])
    );
    for bad in [&b"[1,]"[..], b"[,1]", b"[1", b"[1]]", b"", b"[1 2]"] {
        assert_eq!(json_array(bad, usize::MAX).unwrap_err().reason(), Reason::BadJson, "{bad:?}");
    }
    assert_eq!(json_array(b"{}", usize::MAX).unwrap_err().reason(), Reason::WrongType);
}

#[test]
fn single_values_are_as_strict_as_members() {
    assert_eq!(json_u64(b"\"0x1F\""), Ok(31));
    assert_eq!(json_u64(b"\"0x01\"").unwrap_err().reason(), Reason::NotCanonical);
    assert_eq!(json_u64(b"1").unwrap_err().reason(), Reason::WrongType);
    assert_eq!(json_u64(b"\"0x1\" 2").unwrap_err().reason(), Reason::BadJson);
    assert_eq!(json_data::<2>(b"\"0xaBcD\""), Ok([0xab, 0xcd]));
    assert_eq!(json_data::<2>(b"\"0xab\"").unwrap_err().reason(), Reason::WrongLength);
    assert_eq!(json_data::<2>(b"\"0x0x12\"").unwrap_err().reason(), Reason::BadHex);
    assert_eq!(json_data::<1>(b"\"0x0x\"").unwrap_err().reason(), Reason::BadHex);
    assert!(is_null(b" null ") && !is_null(b"nullx") && !is_null(b"null,") && !is_null(b""));
}

#[test]
fn an_array_longer_than_it_may_be_is_refused_before_it_is_collected() {
    assert_eq!(json_array(b"[1,2]", 2).map(|elements| elements.len()), Ok(2));
    assert_eq!(json_array(b"[1,2,3]", 2).unwrap_err().reason(), Reason::OverBound);
    // What follows is not even looked at.
    assert_eq!(json_array(b"[1,2,3,", 2).unwrap_err().reason(), Reason::OverBound);
}
