use bytes::Bytes;
use proptest::prelude::*;
use serde_json::Value;

use super::scan::Scanner;
use super::*;

fn parsed(body: impl AsRef<[u8]>) -> Result<Incoming, Error> {
    parse(&Bytes::copy_from_slice(body.as_ref()))
}

fn single(body: impl AsRef<[u8]>) -> Result<Request, Invalid> {
    match parsed(body.as_ref()) {
        Ok(Incoming::Single(request)) => request,
        other => panic!("{}: {other:?}", String::from_utf8_lossy(body.as_ref())),
    }
}

fn request(body: impl AsRef<[u8]>) -> Request {
    single(body).unwrap()
}

/// The code and id of the refusal of a single element.
fn refused(body: impl AsRef<[u8]>) -> (Code, String) {
    let invalid = single(body).unwrap_err();
    (invalid.error.code, invalid.id.to_string())
}

/// Whether `part` lies in the memory of `whole`.
fn is_slice_of(part: &[u8], whole: &[u8]) -> bool {
    whole.as_ptr_range().contains(&part.as_ptr())
}

#[test]
fn a_request_is_slices_of_its_body() {
    let body = Bytes::from_static(
        br#" {"jsonrpc":"2.0","id":"a b","method":"engine_newPayloadV4","params":[{"k":"\""},[]]} "#,
    );
    let Ok(Incoming::Single(Ok(request))) = parse(&body) else { panic!() };
    assert_eq!(request.method.as_str(), "engine_newPayloadV4");
    assert_eq!(request.params.as_deref(), Some(&br#"[{"k":"\""},[]]"#[..]));
    assert_eq!(request.raw, body.trim_ascii());
    for part in [&request.raw, request.params.as_ref().unwrap()] {
        assert!(is_slice_of(part, &body));
    }
    assert!(is_slice_of(request.id.unwrap().as_bytes(), &body));
    assert!(is_slice_of(request.method.as_str().as_bytes(), &body));
}

#[test]
fn members_come_in_any_order_and_unknown_ones_are_ignored() {
    let request = request(
        br#"{"params":[1],"x":{"method":"no","id":[2]},"method":"m","id":3,"x":0,"jsonrpc":"2.0"}"#,
    );
    assert_eq!(request.method.as_str(), "m");
    assert_eq!(request.id, Some(RawId::from(3)));
    assert_eq!(request.params.as_deref(), Some(&b"[1]"[..]));
}

#[test]
fn json_07_id_is_echoed_byte_for_byte() {
    for id in [
        r#""1""#,
        r#""""#,
        r#""0x1""#,
        "null",
        "-1",
        "1.5",
        "1e3",
        "1E+03",
        "-0",
        "18446744073709551616",
        "123456789012345678901234567890",
        r#""\u0031""#,
        r#""a\"}{""#,
        r#""\ud800""#,
        "\"\u{1f600}\"",
    ] {
        let request = request(format!(r#"{{"jsonrpc":"2.0","id": {id} ,"method":"m"}}"#));
        let reply = Reply::result(&request.id.unwrap(), Bytes::from_static(b"true"));
        assert_eq!(
            reply.to_bytes(),
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":true}}"#),
            "{id}"
        );
    }
}

#[test]
fn json_07_an_id_of_another_type_is_refused_under_null() {
    for id in ["[1]", "{}", "true", "false"] {
        let body = format!(r#"{{"id":{id},"method":"m"}}"#);
        assert_eq!(refused(body), (Code::INVALID_REQUEST, "null".into()), "{id}");
    }
}

#[test]
fn json_08_duplicate_members_are_refused_under_the_id_when_it_is_told_once() {
    for (body, id) in [
        (r#"{"id":1,"method":"eth_chainId","method":"engine_forkchoiceUpdatedV3"}"#, "1"),
        (r#"{"id":1,"method":"m","params":[1],"params":[]}"#, "1"),
        (r#"{"jsonrpc":"2.0","id":1,"jsonrpc":"2.0","method":"m"}"#, "1"),
        (r#"{"id":1,"method":"m","id":1}"#, "null"),
        // The same name in other words: escaped, or in the case some ELs also take.
        (r#"{"id":1,"method":"m","\u006dethod":"n"}"#, "1"),
        (r#"{"id":1,"method":"m","METHOD":"n"}"#, "1"),
        (r#"{"id":1,"method":"m","params":[],"Params":[1]}"#, "1"),
    ] {
        assert_eq!(refused(body), (Code::INVALID_REQUEST, id.into()), "{body}");
    }
}

#[test]
fn json_09_one_bad_element_leaves_the_others_of_a_batch_alone() {
    let body = r#"[{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]},1,
                   {"jsonrpc":"2.0","id":2,"method":"engine_getBlobsV2","params":[[]]}]"#;
    let Ok(Incoming::Batch(batch)) = parsed(body) else { panic!() };
    let [Ok(first), Err(bad), Ok(last)] = batch.as_slice() else { panic!("{batch:?}") };
    assert_eq!(first.id, Some(RawId::from(1)));
    assert_eq!(bad.id, RawId::null());
    assert_eq!(bad.error.code, Code::INVALID_REQUEST);
    assert_eq!(last.method.as_str(), "engine_getBlobsV2");
    assert_eq!(last.raw, r#"{"jsonrpc":"2.0","id":2,"method":"engine_getBlobsV2","params":[[]]}"#);
}

#[test]
fn json_09_every_kind_of_element_that_is_no_object_is_refused_by_itself() {
    let body = r#"[null,true,-1.5e3,"s",[],[{"method":"m"}]]"#;
    let Ok(Incoming::Batch(batch)) = parsed(body) else { panic!() };
    assert_eq!(batch.len(), 6);
    assert!(batch.iter().all(|element| element.is_err()));
}

#[test]
fn json_09_an_empty_batch_and_a_lone_value_are_one_invalid_request() {
    for body in ["[]", " [ ] ", "1", "null", r#""engine""#, "true", "-0.1e-5"] {
        assert_eq!(parsed(body).unwrap_err().code, Code::INVALID_REQUEST, "{body}");
    }
}

#[test]
fn a_batch_has_a_bounded_number_of_elements() {
    let body = Bytes::from_static(b"[1,2,3]");
    assert!(matches!(parse_with_limit(&body, 3), Ok(Incoming::Batch(batch)) if batch.len() == 3));
    assert_eq!(parse_with_limit(&body, 2).unwrap_err().code, Code::INVALID_REQUEST);
    // As many as geth takes on this port are always taken.
    let of = |length: usize| parsed(format!("[{}]", vec!["1"; length].join(",")));
    assert!(matches!(of(2000), Ok(Incoming::Batch(batch)) if batch.len() == 2000));
    let Err(error) = of(MAX_BATCH_LENGTH + 1) else { panic!("taken") };
    assert_eq!(error.code, Code::INVALID_REQUEST);
    assert_eq!(error.message, "Invalid Request: batch too large");
}

#[test]
fn json_10_a_missing_id_is_a_notification_and_a_null_id_is_not() {
    assert_eq!(request(r#"{"jsonrpc":"2.0","method":"m"}"#).id, None);
    assert_eq!(request(r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#).id, Some(RawId::null()));
}

#[test]
fn json_10_a_batch_of_notifications_has_no_body() {
    assert!(Reply::batch(vec![Reply::empty(), Reply::empty()]).is_empty());
    assert!(Reply::batch(vec![]).segments().is_empty());
}

#[test]
fn json_11_params_are_an_array_an_object_or_absent() {
    let with = |params: &str| format!(r#"{{"id":1,"method":"m","params":{params}}}"#);
    assert_eq!(request(with("[]")).params.as_deref(), Some(&b"[]"[..]));
    assert_eq!(request(with(r#"{"a":1}"#)).params.as_deref(), Some(&br#"{"a":1}"#[..]));
    assert_eq!(request(with("null")).params, None);
    assert_eq!(request(r#"{"id":1,"method":"m"}"#).params, None);
    for params in ["1", r#""[]""#, "true"] {
        assert_eq!(refused(with(params)), (Code::INVALID_REQUEST, "1".into()), "{params}");
    }
}

#[test]
fn json_12_what_is_no_json_is_one_parse_error() {
    let deep = "[".repeat(10_000);
    for body in [
        // The case's own bytes: half a character in the method's name.
        &b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"engine_\xc3\",\"params\":[]}"[..],
        br#"{"jsonrpc":"2.0","id":1,"method":"engine_\ud800","params":[]}"#,
        br#"[{"id":1,"method":"m"},{"id":2,"method":"\udfff"}]"#,
        br#"{"id":1,"method":"m","\ud800":1}"#,
        b"\xef\xbb\xbf{\"id\":1,\"method\":\"m\"}",
        b"{\"id\":1,\"method\":\"m\",\"params\":[\"\xc0\xaf\"]}",
        b"{\"id\":1,\"method\":\"m\",\"params\":[\"\xed\xa0\x80\"]}",
        b"{\"id\":1,\"method\":\"m\"}\xff",
        deep.as_bytes(),
        b"",
        b" ",
        b"{",
        b"[",
        b"[1,]",
        b"[,1]",
        b"{\"a\"}",
        b"{\"a\":1,}",
        b"{a:1}",
        b"[1}",
        b"{\"a\":[1}]",
        b"{\"id\":01}",
        b"{\"id\":1.}",
        b"{\"id\":.5}",
        b"{\"id\":+1}",
        b"{\"id\":1e}",
        b"{\"id\":-}",
        b"{\"id\":NaN}",
        b"{\"id\":nul}",
        b"{\"id\":'1'}",
        b"{\"id\":\"\x01\"}",
        b"{\"id\":\"\\x\"}",
        b"{\"id\":\"\\u00g0\"}",
        b"{\"id\":\"1}",
        b"{} {}",
        b"{}]",
        b"{\"id\":1 \"method\":\"m\"}",
        b"[] ]",
        b"1 2",
    ] {
        let error = parsed(body).unwrap_err();
        assert_eq!(error.code, Code::PARSE, "{}", String::from_utf8_lossy(body));
        let reply = Reply::error(&RawId::null(), &error).to_bytes();
        assert!(reply.starts_with(br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"#));
    }
}

#[test]
fn json_12_invalid_utf_8_is_found_wherever_it_stands() {
    for at in 0..200 {
        let mut body = format!(r#"["{}"]"#, "a".repeat(200)).into_bytes();
        body[2 + at] = 0xc3;
        assert_eq!(parsed(&body).unwrap_err().code, Code::PARSE, "{at}");
        body[2 + at] = b'\n';
        assert_eq!(parsed(&body).unwrap_err().code, Code::PARSE, "{at}");
        body.splice(2 + at..3 + at, "\u{e9}".bytes());
        assert!(parsed(&body).is_ok(), "{at}");
    }
}

#[test]
fn json_12_nesting_is_bounded_at_its_limit() {
    let nested = |extra: usize| {
        // The request object is one level.
        let inner = MAX_DEPTH as usize - 1 + extra;
        format!(r#"{{"method":"m","params":{}{}}}"#, "[".repeat(inner), "]".repeat(inner))
    };
    assert!(parsed(nested(0)).is_ok());
    assert_eq!(parsed(nested(1)).unwrap_err().code, Code::PARSE);
    assert_eq!(parsed(format!("[{}]", nested(0))).unwrap_err().code, Code::PARSE);
    let objects = format!("{}1{}", r#"{"a":"#.repeat(200), "}".repeat(200));
    assert_eq!(parsed(objects).unwrap_err().code, Code::PARSE);
}

#[test]
fn siblings_do_not_add_up_to_depth() {
    let body = format!(r#"{{"method":"m","params":[{}{{}}]}}"#, r#"[[]],{"a":{}},"#.repeat(1000));
    assert!(request(body).params.is_some());
}

#[test]
fn a_method_is_unescaped_and_must_be_a_string() {
    assert_eq!(request(r#"{"method":"eth\u005fchainId"}"#).method.as_str(), "eth_chainId");
    assert_eq!(request("{\"method\":\"\u{e9}\\ud83d\\ude00\"}").method.as_str(), "\u{e9}\u{1f600}");
    for body in [r#"{"id":1}"#, r#"{"id":1,"method":1}"#, r#"{"id":1,"method":null}"#] {
        assert_eq!(refused(body), (Code::INVALID_REQUEST, "1".into()), "{body}");
    }
}

#[test]
fn the_version_is_2_0_or_unstated() {
    assert!(single(r#"{"id":1,"method":"m"}"#).is_ok());
    assert!(single(r#"{"jsonrpc":"\u0032.0","id":1,"method":"m"}"#).is_ok());
    for version in [r#""1.0""#, "2.0", "null", r#""2""#] {
        let body = format!(r#"{{"jsonrpc":{version},"id":1,"method":"m"}}"#);
        assert_eq!(refused(body), (Code::INVALID_REQUEST, "1".into()), "{version}");
    }
}

#[test]
fn a_large_result_is_handed_on_without_a_copy() {
    let result = Bytes::from(format!("\"{}\"", "a".repeat(100_000)));
    let reply = Reply::result(&RawId::from(1), result.clone());
    assert!(reply.segments().iter().any(|segment| segment.as_ptr() == result.as_ptr()));
    let batch = Reply::batch(vec![Reply::raw(Bytes::from_static(b"{}")), reply]);
    assert!(batch.segments().iter().any(|segment| segment.as_ptr() == result.as_ptr()));
    let text = batch.to_bytes();
    assert_eq!(text.len(), batch.len());
    let value: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(value[1]["id"], 1);
    assert_eq!(value[1]["result"].as_str().unwrap().len(), 100_000);
}

#[test]
fn a_batch_joins_what_is_not_empty_in_order() {
    let reply = |id: u64| Reply::result(&RawId::from(id), Bytes::from_static(b"0"));
    let batch = Reply::batch(vec![Reply::empty(), reply(1), Reply::empty(), reply(2)]);
    assert_eq!(
        batch.to_bytes(),
        r#"[{"jsonrpc":"2.0","id":1,"result":0},{"jsonrpc":"2.0","id":2,"result":0}]"#
    );
}

#[test]
fn no_text_of_a_body_is_in_a_debug_print() {
    let request = request(r#"{"id":1,"method":"m","params":["secret"]}"#);
    assert!(!format!("{request:?}").contains("secret"));
}

/// Bodies in each client's own member order, id rule and parameter count.
const CONSENSUS_CLIENTS: &str = include_str!("../../tests/data/jsonrpc/consensus-clients.jsonl");

#[test]
fn what_consensus_clients_send_is_read_as_they_meant_it() {
    #[derive(serde::Deserialize)]
    struct Sample {
        cl: String,
        body: String,
    }
    let samples: Vec<Sample> =
        CONSENSUS_CLIENTS.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(samples.len() > 80);
    for Sample { cl, body } in samples {
        let elements = match parsed(&body).unwrap() {
            Incoming::Single(element) => vec![element],
            Incoming::Batch(elements) => elements,
        };
        let meant: Value = serde_json::from_str(&body).unwrap();
        let meant = meant.as_array().cloned().unwrap_or_else(|| vec![meant]);
        assert_eq!(elements.len(), meant.len());
        for (request, meant) in elements.into_iter().map(Result::unwrap).zip(meant) {
            let read = |text: &[u8]| serde_json::from_slice::<Value>(text).unwrap();
            assert_eq!(request.method.as_str(), meant["method"], "{cl}");
            assert_eq!(read(request.id.unwrap().as_bytes()), meant["id"], "{cl}");
            assert_eq!(request.params.as_deref().map(read), meant.get("params").cloned(), "{cl}");
            assert_eq!(read(&request.raw), meant, "{cl}");
        }
    }
}

/// Text that is JSON or nearly so: real JSON with a few bytes changed, cut out or put in.
fn near_json() -> impl Strategy<Value = Vec<u8>> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,80}".prop_map(Value::from),
        "[ -~\n\u{0}\u{e9}]{0,80}".prop_map(Value::from),
    ];
    let value = scalar.prop_recursive(4, 24, 4, |inner| {
        let name = prop_oneof!["id|method|params|jsonrpc", "[a-z\"\n]{0,3}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    });
    let spot = (any::<prop::sample::Index>(), prop::option::of(any::<u8>()));
    let structural = prop::sample::select(&b"{}[],:\"\\ \n0-.eEtnu\xc3\xff"[..]);
    let spot = prop_oneof![spot, (any::<prop::sample::Index>(), structural.prop_map(Some))];
    (value, any::<bool>(), prop::collection::vec(spot, 0..3)).prop_map(|(value, pretty, spots)| {
        let text = if pretty {
            serde_json::to_string_pretty(&value)
        } else {
            serde_json::to_string(&value)
        };
        let mut text = text.unwrap().into_bytes();
        for (index, byte) in spots {
            match byte {
                Some(byte) => text.insert(index.index(text.len() + 1), byte),
                None if text.is_empty() => {}
                None => drop(text.remove(index.index(text.len()))),
            }
        }
        text
    })
}

fn scans(text: &[u8]) -> bool {
    let mut scanner = Scanner::new(text);
    scanner.value().and_then(|_| scanner.end()).is_ok()
}

/// serde_json's opinion of the grammar alone, without limits on numbers or half surrogates.
fn is_json(text: &[u8]) -> bool {
    std::str::from_utf8(text)
        .is_ok_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok())
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(body in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parsed(&body);
        let _ = answer_of(&body);
        prop_assert_eq!(scans(&body), is_json(&body));
    }

    #[test]
    fn the_scanner_and_serde_json_take_the_same_texts(body in near_json()) {
        prop_assert_eq!(scans(&body), is_json(&body), "{}", String::from_utf8_lossy(&body));
        match parsed(&body) {
            // Half a surrogate in a name is grammar, and yet refused.
            Err(error) if error.code == Code::PARSE => {
                prop_assert!(serde_json::from_slice::<Value>(&body).is_err());
            }
            _ => prop_assert!(is_json(&body)),
        }
    }

    #[test]
    fn a_string_ends_at_its_quote_wherever_that_is(
        plain in "[ !#-\\[\\]-~]{0,200}",
        stop in prop::sample::select(&b"\"\x1f\x00\n"[..]),
    ) {
        let mut text = format!("\"{plain}").into_bytes();
        text.push(stop);
        prop_assert_eq!(scans(&text), stop == b'"');
    }

    #[test]
    fn every_valid_request_gives_back_its_own_parts(
        id in prop_oneof!["-?[1-9][0-9]{0,40}(\\.[0-9]{1,5})?(e[+-]?[0-9]{1,3})?", "\"[a-z ]{0,9}\"", "null"],
        method in "[a-zA-Z_0-9]{0,40}",
        params in near_json().prop_filter("array", |text| {
            is_json(text) && text.trim_ascii().first() == Some(&b'[')
        }),
        space in "[ \t\r\n]{0,3}",
        order in Just([0, 1, 2, 3]).prop_shuffle(),
    ) {
        let params = String::from_utf8(params).unwrap();
        let params = params.trim_matches([' ', '\t', '\r', '\n']);
        let members = [
            format!("\"jsonrpc\"{space}:{space}\"2.0\""),
            format!("\"id\":{space}{id}"),
            format!("\"method\"{space}:\"{method}\""),
            format!("\"params\":{space}{params}{space}"),
        ];
        let ordered = order.map(|index| members[index].clone());
        let object = format!("{{{space}{}{space}}}", ordered.join(&format!("{space},{space}")));
        let expected = |request: &Request| {
            request.raw == object
                && request.params.as_deref() == Some(params.as_bytes())
                && request.method.as_str() == method
                && request.id.as_ref().is_some_and(|it| it.as_bytes() == id.as_bytes())
        };
        let alone = request(format!("{space}{object}{space}"));
        prop_assert!(expected(&alone), "{:?}", alone);
        let Ok(Incoming::Batch(batch)) = parsed(format!("[{space}{object},1,{object}]")) else {
            panic!()
        };
        prop_assert!(batch[0].as_ref().is_ok_and(expected));
        prop_assert!(batch[2].as_ref().is_ok_and(expected));
    }
}
