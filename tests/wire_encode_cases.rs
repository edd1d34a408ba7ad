//! Calls of the CL: what is encoded, and what is refused. Tests bear the ids of the cases they
//! guard.

use bytes::Bytes;
use engine_ssz_proxy::wire::{Fork, NotTranscodable, Reason, Source, schema, to_ssz};
use serde_json::{Value, json};

fn hash(digit: char) -> String {
    format!("0x{}", String::from(digit).repeat(64))
}

/// The members of a Paris payload, in an order of its own.
fn payload() -> Value {
    json!({
        "transactions": ["0x02aa", "0x"],
        "timestamp": "0xc",
        "parentHash": hash('1'),
        "feeRecipient": format!("0x{}", "2".repeat(40)),
        "stateRoot": hash('3'),
        "receiptsRoot": hash('4'),
        "logsBloom": format!("0x{}", "5".repeat(512)),
        "prevRandao": hash('6'),
        "blockNumber": "0x1",
        "gasLimit": "0x1c9c380",
        "gasUsed": "0x0",
        "extraData": "0x",
        "baseFeePerGas": "0x7",
        "blockHash": hash('7'),
    })
}

fn with(mut object: Value, member: &str, value: impl Into<Value>) -> Value {
    object[member] = value.into();
    object
}

fn encode(fork: Fork, payload: &Value) -> Result<Bytes, NotTranscodable> {
    encode_text(fork, &payload.to_string())
}

fn encode_text(fork: Fork, payload: &str) -> Result<Bytes, NotTranscodable> {
    to_ssz(schema::EXECUTION_PAYLOAD, fork, Source::Object(payload.as_bytes()))
}

/// The reason why a Paris payload with that member is refused.
fn refused(member: &str, value: impl Into<Value>) -> Reason {
    let error = encode(Fork::Paris, &with(payload(), member, value)).unwrap_err();
    assert!(error.path().starts_with(member), "{error}");
    error.reason()
}

fn attributes(text: &str) -> Result<Bytes, NotTranscodable> {
    to_ssz(schema::PAYLOAD_ATTRIBUTES, Fork::Paris, Source::Object(text.as_bytes()))
}

#[test]
fn json_01_hexadecimal_digits_of_any_case_are_the_same() {
    let lower = with(payload(), "blockHash", format!("0x{}", "ab".repeat(32)));
    let upper = with(payload(), "blockHash", format!("0x{}", "Ab".repeat(32)));
    let upper = with(upper, "timestamp", "0xC");
    assert_eq!(encode(Fork::Paris, &lower), encode(Fork::Paris, &upper));
    assert_eq!(refused("blockHash", hash('1').replace("0x", "0X")), Reason::BadHex);
    assert_eq!(refused("timestamp", "0XC"), Reason::NotCanonical);
}

#[test]
fn json_02_quantities_with_leading_zeros_are_refused() {
    for member in ["timestamp", "baseFeePerGas"] {
        for text in ["0x00", "0x01c9c380", "0x0400", "0x", "c", "", "12"] {
            assert_eq!(refused(member, text), Reason::NotCanonical, "{text}");
        }
        assert_eq!(refused(member, "0xg"), Reason::BadHex);
        assert_eq!(refused(member, "0x-1"), Reason::BadHex);
        assert_eq!(refused(member, 12), Reason::WrongType);
    }
}

#[test]
fn json_03_no_bytes_are_legal_data_and_no_quantity() {
    assert_eq!(refused("baseFeePerGas", "0x"), Reason::NotCanonical);
    assert_eq!(refused("blockHash", "0x"), Reason::WrongLength);
    assert!(encode(Fork::Paris, &with(payload(), "extraData", "0x")).is_ok());
}

#[test]
fn status_05_empty_transactions_are_forwarded() {
    let transactions = |list: Value| {
        let ssz = encode(Fork::Paris, &with(payload(), "transactions", list)).unwrap();
        ssz[508..].to_vec()
    };
    assert!(transactions(json!([])).is_empty());
    assert_eq!(transactions(json!(["0x"])), [4, 0, 0, 0]);
    assert_eq!(transactions(json!(["0x", "0x02"])), [8, 0, 0, 0, 8, 0, 0, 0, 2]);
}

#[test]
fn json_04_odd_digits_are_refused() {
    assert_eq!(refused("extraData", "0xabc"), Reason::BadHex);
    assert_eq!(refused("blockHash", hash('1').replacen('1', "", 1)), Reason::BadHex);
    assert_eq!(refused("transactions", json!(["0x02", "0xa"])), Reason::BadHex);
}

#[test]
fn json_05_null_is_no_value_and_missing_is_no_null() {
    assert_eq!(refused("gasUsed", Value::Null), Reason::Null);
    assert_eq!(refused("transactions", Value::Null), Reason::Null);
    assert_eq!(refused("transactions", json!(["0x", null])), Reason::Null);
    let mut short = payload();
    short.as_object_mut().unwrap().remove("gasUsed");
    let error = encode(Fork::Paris, &short).unwrap_err();
    assert_eq!((error.reason(), error.path()), (Reason::Missing, "gasUsed"));

    let root = hash('8');
    let payload = cancun().to_string();
    let fields: [&[u8]; 2] = [payload.as_bytes(), b"null"];
    let envelope = |fields: &[&[u8]]| {
        to_ssz(schema::EXECUTION_PAYLOAD_ENVELOPE, Fork::Cancun, Source::Fields(fields))
    };
    assert_eq!(envelope(&fields).unwrap_err().reason(), Reason::Null);
    assert_eq!(envelope(&fields[..1]).unwrap_err().reason(), Reason::Missing);
    let root = format!("\"{root}\"");
    let fields: [&[u8]; 3] = [payload.as_bytes(), root.as_bytes(), b"[]"];
    assert!(envelope(&fields[..2]).is_ok());
    assert_eq!(envelope(&fields).unwrap_err().reason(), Reason::UnknownMember);
}

fn shanghai() -> Value {
    with(payload(), "withdrawals", json!([]))
}

fn cancun() -> Value {
    with(with(shanghai(), "blobGasUsed", "0x0"), "excessBlobGas", "0x0")
}

fn forkchoice(fork: Fork, rest: &[&[u8]]) -> Result<Bytes, NotTranscodable> {
    let state = json!({
        "headBlockHash": hash('1'), "safeBlockHash": hash('1'), "finalizedBlockHash": hash('1'),
    })
    .to_string();
    let fields = [&[state.as_bytes()], rest].concat();
    to_ssz(schema::FORKCHOICE_UPDATE, fork, Source::Fields(&fields))
}

#[test]
fn json_06_optional_parameters_may_be_null_or_left_out() {
    let expected = [&[0x11; 96][..], &[0x68, 0, 0, 0, 0x68, 0, 0, 0]].concat();
    let expected = Bytes::from(expected);
    for rest in [&[][..], &[b"null".as_slice()], &[b"null", b"null"]] {
        assert_eq!(forkchoice(Fork::Amsterdam, rest), Ok(expected.clone()));
    }
    let expected = [&[0x11; 96][..], &[0x64, 0, 0, 0]].concat();
    let expected = Bytes::from(expected);
    assert_eq!(forkchoice(Fork::Osaka, &[]), Ok(expected.clone()));
    assert_eq!(forkchoice(Fork::Osaka, &[b" null "]), Ok(expected));
    let custody = forkchoice(Fork::Osaka, &[b"null", b"null"]);
    assert_eq!(custody.unwrap_err().reason(), Reason::UnknownMember);
}

#[test]
fn json_06_custody_columns_are_16_bytes_copied_verbatim() {
    let columns = |text: &str| forkchoice(Fork::Amsterdam, &[b"null", text.as_bytes()]);
    let ssz = columns("\"0x01000000000000000000000000000080\"").unwrap();
    assert_eq!(ssz[96..104], [0x68, 0, 0, 0, 0x68, 0, 0, 0]);
    assert_eq!(ssz[104..], [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80]);
    assert_eq!(columns("\"0x01\"").unwrap_err().reason(), Reason::WrongLength);
}

#[test]
fn req_05_attributes_of_fixed_size_have_no_inner_offset() {
    let attributes = json!({
        "timestamp": "0xffffffffffffffff",
        "prevRandao": hash('2'),
        "suggestedFeeRecipient": format!("0x{}", "3".repeat(40)),
    });
    let paris = forkchoice(Fork::Paris, &[attributes.to_string().as_bytes()]).unwrap();
    assert_eq!(paris.len(), 100 + 60);
    assert_eq!(paris[100..108], [0xff; 8]);

    let attributes = with(attributes, "withdrawals", json!([]));
    let attributes = with(attributes, "parentBeaconBlockRoot", hash('4'));
    let cancun = forkchoice(Fork::Cancun, &[attributes.to_string().as_bytes()]).unwrap();
    assert_eq!(cancun.len(), 100 + 4 + 96);
    assert_eq!(cancun[100..104], [4, 0, 0, 0]);
    assert_eq!(cancun[164..168], [96, 0, 0, 0]);

    let attributes = with(attributes, "slotNumber", "0x1");
    let error = forkchoice(Fork::Amsterdam, &[attributes.to_string().as_bytes()]).unwrap_err();
    assert_eq!(
        (error.reason(), error.path()),
        (Reason::Missing, "payloadAttributes.targetGasLimit")
    );
    let error = forkchoice(Fork::Osaka, &[attributes.to_string().as_bytes()]).unwrap_err();
    assert_eq!(error.reason(), Reason::UnknownMember);
    let attributes = with(attributes, "targetGasLimit", "0xffffffffffffffff");
    let amsterdam = forkchoice(Fork::Amsterdam, &[attributes.to_string().as_bytes()]).unwrap();
    assert_eq!(amsterdam.len(), 104 + 4 + 112);
}

#[test]
fn json_08_duplicates_are_refused() {
    let text = payload().to_string();
    let twice = text.replacen('{', r#"{"gasUsed":"0x0","#, 1);
    let error = encode_text(Fork::Paris, &twice).unwrap_err();
    assert_eq!((error.reason(), error.path()), (Reason::Duplicate, "gasUsed"));
    let twice = text.replacen('{', r#"{"withdrawals":null,"withdrawals":null,"#, 1);
    assert_eq!(encode_text(Fork::Paris, &twice).unwrap_err().reason(), Reason::Duplicate);
}

#[test]
fn json_14_all_64_bits_are_encoded_and_no_more() {
    let at = |text: &str| encode(Fork::Paris, &with(payload(), "gasLimit", text)).unwrap();
    assert_eq!(at("0xffffffffffffffff")[412..420], [0xff; 8]);
    assert_eq!(at("0x8000000000000000")[412..420], (1_u64 << 63).to_le_bytes());
    assert_eq!(at("0x20000000000001")[412..420], 0x20_0000_0000_0001_u64.to_le_bytes());
    assert_eq!(refused("blockNumber", "0x10000000000000000"), Reason::OverBound);
}

#[test]
fn json_15_256_bit_quantities_are_encoded_little_endian() {
    let at = |text: &str| {
        let ssz = encode(Fork::Paris, &with(payload(), "baseFeePerGas", text)).unwrap();
        ssz[440..472].to_vec()
    };
    assert_eq!(at("0x0"), [0; 32]);
    assert_eq!(at("0x102")[..2], [2, 1]);
    assert_eq!(at(&format!("0x8{}", "0".repeat(62)))[31], 8);
    assert_eq!(at(&format!("0x{}", "f".repeat(64))), [0xff; 32]);
    assert_eq!(refused("baseFeePerGas", format!("0x1{}", "0".repeat(64))), Reason::OverBound);
}

#[test]
fn fork_07_null_withdrawals_are_the_paris_shape_and_a_list_is_not() {
    let paris = encode(Fork::Paris, &payload()).unwrap();
    assert_eq!(paris.len(), 508 + 2 * 4 + 2);
    assert_eq!(encode(Fork::Paris, &with(payload(), "withdrawals", Value::Null)), Ok(paris));
    assert_eq!(refused("withdrawals", json!([])), Reason::UnknownMember);
    assert_eq!(encode(Fork::Shanghai, &shanghai()).unwrap().len(), 512 + 2 * 4 + 2);
    let null = with(payload(), "withdrawals", Value::Null);
    assert_eq!(encode(Fork::Shanghai, &null).unwrap_err().reason(), Reason::Null);
}

#[test]
fn unknown_members_are_refused_even_as_null() {
    assert_eq!(refused("surprise", "0x1"), Reason::UnknownMember);
    assert_eq!(refused("surprise", Value::Null), Reason::UnknownMember);
    // Its SSZ name is not its JSON name.
    assert_eq!(refused("gas_used", "0x0"), Reason::UnknownMember);
}

#[test]
fn escapes_are_refused_in_names_and_values() {
    let text = payload().to_string();
    let key = text.replace("\"gasUsed\"", r#""\u0067asUsed""#);
    assert_eq!(encode_text(Fork::Paris, &key).unwrap_err().reason(), Reason::Escaped);
    for value in [r#""0x\u0030a""#, r#""\u0030x0a""#, r#""0x1\"22""#, r#""0x\\0a""#] {
        let escaped = text.replace(r#""extraData":"0x""#, &format!(r#""extraData":{value}"#));
        assert_ne!(escaped, text);
        let error = encode_text(Fork::Paris, &escaped).unwrap_err();
        assert_eq!((error.reason(), error.path()), (Reason::Escaped, "extraData"), "{value}");
    }
}

#[test]
fn white_space_is_legal_wherever_json_has_it() {
    let text = payload().to_string();
    let airy = text.replace(':', " :\r\n").replace(',', "\t, ").replace('{', " { ");
    let airy = airy.replace('}', " } ").replace('[', "[ ").replace(']', "\n]");
    assert_eq!(encode_text(Fork::Paris, &airy), encode_text(Fork::Paris, &text));
    let odd = text.replacen(':', "\u{a0}:", 1);
    assert_eq!(encode_text(Fork::Paris, &odd).unwrap_err().reason(), Reason::BadJson);
}

#[test]
fn what_is_not_json_is_refused() {
    let text = payload().to_string();
    let inside = text.trim_end_matches('}');
    for bad in [
        format!("{inside},}}"),
        inside.to_owned(),
        format!("{text}x"),
        format!("{text}{text}"),
        format!("{text},"),
        text.replacen(',', ",,", 1),
        text.replacen(':', "", 1),
        text.replacen('{', r#"{"withdrawals":nullx,"#, 1),
        text.replacen('{', r#"{"withdrawals":null0,"#, 1),
        text.replace(r#""0x02aa","0x""#, r#""0x02aa","0x","#),
        text.replace(r#""0x02aa","0x""#, r#""0x02aa" "0x""#),
        String::new(),
        " ".into(),
        "{".into(),
    ] {
        assert_eq!(encode_text(Fork::Paris, &bad).unwrap_err().reason(), Reason::BadJson, "{bad}");
    }
    for (other, reason) in
        [("[]", Reason::WrongType), ("\"\"", Reason::WrongType), ("null", Reason::Null)]
    {
        assert_eq!(encode_text(Fork::Paris, other).unwrap_err().reason(), reason);
    }
}

fn requests(list: &str) -> Result<Bytes, NotTranscodable> {
    let payload = cancun().to_string();
    let root = format!("\"{}\"", hash('8'));
    let fields = [payload.as_bytes(), root.as_bytes(), list.as_bytes()];
    to_ssz(schema::EXECUTION_PAYLOAD_ENVELOPE, Fork::Prague, Source::Fields(&fields))
}

#[test]
fn req_01_requests_that_json_rpc_answers_with_an_error_are_refused() {
    for (list, reason) in [
        (r#"["0x"]"#, Reason::WrongLength),
        (r#"["0x00"]"#, Reason::WrongLength),
        (r#"["0x01aa","0x00bb"]"#, Reason::NotCanonical),
        (r#"["0x02aa","0x02aa"]"#, Reason::NotCanonical),
        ("null", Reason::Null),
    ] {
        let error = requests(list).unwrap_err();
        assert_eq!(error.reason(), reason, "{list}");
        assert!(error.path().starts_with("executionRequests"));
    }
    assert_eq!(requests(r#"["0x01aa","0x00bb"]"#).unwrap_err().path(), "executionRequests[1]");
}

#[test]
fn req_01_requests_in_order_are_carried_with_their_types() {
    let ssz = requests(r#"["0x00aa","0xffaabb"]"#).unwrap();
    assert_eq!(ssz[ssz.len() - 13..], [8, 0, 0, 0, 10, 0, 0, 0, 0, 0xaa, 0xff, 0xaa, 0xbb]);
    let none = requests("[]").unwrap();
    assert_eq!(none[..4], [40, 0, 0, 0]);
    assert_eq!(none[36..40], u32::try_from(none.len()).unwrap().to_le_bytes());
}

#[test]
fn req_03_more_than_the_ssz_bounds_is_refused() {
    assert_eq!(refused("extraData", format!("0x{}", "00".repeat(33))), Reason::OverBound);
    assert!(encode(Fork::Paris, &with(payload(), "extraData", hash('0'))).is_ok());

    let withdrawal = json!({
        "index": "0x0", "validatorIndex": "0x1", "amount": "0x2",
        "address": format!("0x{}", "9".repeat(40)),
    });
    let withdrawals = |count| {
        encode(Fork::Shanghai, &with(payload(), "withdrawals", vec![withdrawal.clone(); count]))
    };
    assert_eq!(withdrawals(16).unwrap().len(), 512 + 2 * 4 + 2 + 16 * 44);
    assert_eq!(withdrawals(17).unwrap_err().reason(), Reason::OverBound);

    let list: Vec<String> = (0..257).map(|kind| format!("\"0x{:02x}aa\"", kind % 256)).collect();
    assert!(requests(&format!("[{}]", list[..256].join(","))).is_ok());
    assert_eq!(requests(&format!("[{}]", list.join(","))).unwrap_err().path(), "executionRequests");

    let many = format!("[{}\"0x\"]", "\"0x\",".repeat(1 << 20));
    let text = payload().to_string().replace(r#"["0x02aa","0x"]"#, &many);
    let error = encode_text(Fork::Paris, &text).unwrap_err();
    assert_eq!((error.reason(), error.path()), (Reason::OverBound, "transactions"));
}

#[test]
fn ssz_06_requests_are_containers() {
    let hashes = |count| json!(vec![hash('1'); count]).to_string();
    let bodies = |count| {
        let list = hashes(count);
        to_ssz(schema::BODIES_BY_HASH_REQUEST, Fork::Osaka, Source::Fields(&[list.as_bytes()]))
    };
    assert_eq!(bodies(1), Ok([&[4, 0, 0, 0][..], &[0x11; 32]].concat().into()));
    assert_eq!(bodies(0), Ok(vec![4, 0, 0, 0].into()));
    assert_eq!(bodies(32).unwrap().len(), 1028);
    assert_eq!(bodies(33).unwrap_err().reason(), Reason::OverBound);

    let list = hashes(1);
    let columns = b"\"0x01000000000000000000000000000080\"";
    let fields = [list.as_bytes(), columns];
    let blobs = to_ssz(schema::BLOBS_V4_REQUEST, Fork::Amsterdam, Source::Fields(&fields)).unwrap();
    // BLOB-04: the columns go verbatim.
    assert_eq!(blobs[..5], [20, 0, 0, 0, 1]);
    assert_eq!(blobs[19], 0x80);
    assert_eq!(blobs.len(), 20 + 32);
}

#[test]
fn blob_02_as_many_hashes_as_the_container_holds() {
    let blobs = |count| {
        let list = json!(vec![hash('1'); count]).to_string();
        to_ssz(schema::BLOBS_REQUEST, Fork::Osaka, Source::Fields(&[list.as_bytes()]))
    };
    assert_eq!(blobs(128).unwrap().len(), 4 + 128 * 32);
    assert_eq!(blobs(129).unwrap_err().reason(), Reason::OverBound);
}

#[test]
fn json_05_a_boolean_is_one_of_two_words() {
    let path =
        format!("{}/tests/data/golden/06-cancun-getPayload.json", env!("CARGO_MANIFEST_DIR"));
    let mut response: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let built = response["result"].take();
    let flag = |value: Value| {
        let text = with(built.clone(), "shouldOverrideBuilder", value).to_string();
        to_ssz(schema::BUILT_PAYLOAD, Fork::Cancun, Source::Object(text.as_bytes()))
            .map(|ssz| ssz[40])
            .map_err(|error| error.reason())
    };
    assert_eq!(flag(json!(false)), Ok(0));
    assert_eq!(flag(json!(true)), Ok(1));
    assert_eq!(flag(Value::Null), Err(Reason::Null));
    for other in [json!(0), json!(1), json!("true"), json!([])] {
        assert_eq!(flag(other), Err(Reason::WrongType));
    }
}

#[test]
fn errors_say_where_and_what_in_one_line() {
    let error = encode(Fork::Paris, &with(payload(), "transactions", json!(["0x", "0xzz"])));
    assert_eq!(
        error.unwrap_err().to_string(),
        "not transcodable: transactions[1]: not whole bytes of hexadecimal digits after 0x"
    );
    assert_eq!(attributes("{}").unwrap_err().to_string(), "not transcodable: timestamp: missing");
}
