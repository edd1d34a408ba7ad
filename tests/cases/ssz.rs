//! SSZ-01 to SSZ-08: bytes that are none of the containers, and bytes that are.

use crate::{
    raw::{Deed, RawEl},
    scene::{
        Scene, changed, fork_header, forkchoice, golden, golden_ssz, hex, rpc, ssz, state, syncing,
    },
    support::{
        post,
        scripted_el::{Seen, answer},
        settings, sidecar,
    },
};
use http::StatusCode;
use serde_json::{Value, json};

const ID: &str = "0x0000000000000001";

/// What the CL gets when the EL answers the call's first exchange with that SSZ.
async fn told(call: &Value, said: &[u8]) -> Value {
    let (said, asked) = (said.to_vec(), call["method"].clone());
    let scene = Scene::scheduled(move |seen: &Seen| match fork_header(seen) {
        // Bodies are looked for in every fork; they are of the newest.
        "amsterdam" => ssz(&said),
        _ if seen.path == "/engine/v1/bodies/hash" => ssz(unknown()),
        _ => ssz(&said),
    })
    .await;
    let answer = scene.json(call).await;
    let paths = scene.paths();
    let over_json_rpc = answer["result"] == "by JSON-RPC";
    assert_eq!(paths.last().unwrap() == "/", over_json_rpc, "{asked}: {paths:?}");
    assert_ne!(paths[0], "/", "{asked} was sent over REST first");
    answer["result"].clone()
}

/// A bad answer: the call is asked again over JSON-RPC.
async fn assert_refused(call: &Value, said: &[u8], what: &str) {
    assert_eq!(told(call, said).await, "by JSON-RPC", "{what}");
}

fn bodies() -> Value {
    rpc("engine_getPayloadBodiesByHashV2", json!([[state("11")["headBlockHash"]]]))
}

/// One body that the EL does not have.
fn unknown() -> Vec<u8> {
    hex("04000000 04000000 00 05000000 08000000 08000000")
}

/// One body of Amsterdam.
fn one_body(flag: u8, transactions: &[u8], withdrawals: &[u8]) -> Vec<u8> {
    let offset = |at: usize| u32::try_from(at).unwrap().to_le_bytes();
    let after = 12 + transactions.len();
    [
        &hex("04000000 04000000")[..],
        &[flag],
        &hex("05000000 0c000000"),
        &offset(after),
        &offset(after + withdrawals.len()),
        transactions,
        withdrawals,
    ]
    .concat()
}

#[tokio::test]
async fn ssz_01_offsets_that_do_not_add_up_are_a_bad_answer() {
    let hash = "11".repeat(32);
    for (what, said) in [
        ("a gap", format!("00 0d000000 2d000000 00000000 {hash}")),
        ("backwards", format!("00 29000000 09000000 {hash}")),
        ("out of bounds", format!("00 09000000 ffffff7f {hash}")),
        ("just out of bounds", format!("00 09000000 2a000000 {hash}")),
        ("into the fixed part", format!("00 08000000 29000000 {hash}")),
        ("zero", format!("00 00000000 29000000 {hash}")),
        ("four billion", "00 ffffffff ffffffff".to_owned()),
    ] {
        assert_refused(&golden("12-osaka-newPayload"), &hex(&said), what).await;
    }
    let odd = hex("09000000 11000000 00 02 09000000 09000000");
    assert_refused(&forkchoice("V3", &[]), &odd, "forkchoice").await;
}

#[tokio::test]
async fn ssz_02_a_list_of_variable_elements_begins_with_its_own_length() {
    for (region, wanted) in [
        ("04000000", Some(json!(["0x"]))),
        ("", Some(json!([]))),
        ("08000000 09000000 aabb", Some(json!(["0xaa", "0xbb"]))),
        ("00000000", None),
        ("05000000 aa", None),
        ("02000000", None),
        ("08000000 07000000", None),
        ("0c000000", None),
        ("08000000 0b000000 aabb", None),
    ] {
        let said = told(&bodies(), &one_body(1, &hex(region), &[])).await;
        match wanted {
            Some(wanted) => assert_eq!(said[0]["transactions"], wanted, "{region}"),
            None => assert_eq!(said, "by JSON-RPC", "{region}"),
        }
    }
    let scene = Scene::scheduled(syncing).await;
    let call = changed(golden("01-paris-newPayload"), "/params/0/transactions", json!(["0x"]));
    let body = scene.carried(call).await.body;
    assert!(body.ends_with(&[4, 0, 0, 0]));
}

#[tokio::test]
async fn ssz_03_an_optional_is_a_list_of_at_most_one() {
    let hash = "11".repeat(32);
    let call = golden("12-osaka-newPayload");
    for (what, said) in [
        ("a plain list", "01 09000000 09000000 62616420737461746520726f6f74".to_owned()),
        ("two errors", "01 09000000 09000000 08000000 09000000 6162".to_owned()),
        ("two hashes", format!("00 09000000 49000000 {hash}{hash}")),
        ("a selector", format!("00 09000000 2a000000 01 {hash}")),
        ("half a hash", format!("00 09000000 19000000 {}", "11".repeat(16))),
    ] {
        assert_refused(&call, &hex(&said), what).await;
    }
    for id in ["01020304050607", "010203040506070809", "01"] {
        let said = format!("08000000 31000000 00 09000000 29000000 {hash} {id}");
        let call = forkchoice("V3", &[crate::scene::attributes(150)]);
        assert_refused(&call, &hex(&said), id).await;
    }
}

#[tokio::test]
async fn ssz_04_a_boolean_is_00_or_01() {
    for flag in [0x02, 0x80, 0xff] {
        assert_refused(&bodies(), &one_body(flag, &[], &[]), "available").await;

        // Behind the payload's offset, the value and the bundle's offset.
        let mut built = golden_ssz("06-cancun-getPayload");
        built[40] = flag;
        let get_payload = rpc("engine_getPayloadV3", json!([ID]));
        assert_refused(&get_payload, &built, "override").await;

        let hashes = json!([[format!("0x01{}", "00".repeat(31))]]);
        let entry = [&[flag][..], &hex("05000000"), &[0; 131_072 + 48]].concat();
        let blobs = [&hex("04000000 04000000")[..], &entry].concat();
        assert_refused(&rpc("engine_getBlobsV1", hashes), &blobs, "blob").await;
    }
    let mut built = golden_ssz("06-cancun-getPayload");
    built[40] = 1;
    let said = told(&rpc("engine_getPayloadV3", json!([ID])), &built).await;
    assert_eq!(said["shouldOverrideBuilder"], true);
}

#[tokio::test]
async fn ssz_05_not_a_byte_more_or_less() {
    let call = golden("12-osaka-newPayload");
    for (what, said) in [
        ("a hash of 33 bytes", format!("01 09000000 2a000000 {}", "11".repeat(33))),
        ("8 bytes", "02 09000000 090000".to_owned()),
        ("nothing", String::new()),
        ("one byte", "02".to_owned()),
    ] {
        assert_refused(&call, &hex(&said), what).await;
    }
    let no_content = |_: &Seen| answer(204, "application/octet-stream", "");
    let scene = Scene::scheduled(no_content).await;
    assert_eq!(scene.json(&call).await["result"], "by JSON-RPC", "204 is not an empty 200");

    for length in [1, 43, 45] {
        assert_refused(&bodies(), &one_body(1, &[], &vec![0; length]), "withdrawals").await;
    }
    // One byte more in the commitments, the first list of the bundle.
    let golden_build = golden_ssz("07-cancun-getPayload");
    let bundle = u32::from_le_bytes(golden_build[36..40].try_into().unwrap()) as usize;
    let mut built = golden_build.clone();
    built.insert(bundle + 12, 0);
    for place in [bundle + 4, bundle + 8] {
        built[place] += 1;
    }
    assert_refused(&rpc("engine_getPayloadV3", json!([ID])), &built, "commitments").await;
    let trailing = [&golden_build[..], &[0]].concat();
    assert_refused(&rpc("engine_getPayloadV3", json!([ID])), &trailing, "trailing").await;

    // The sidecar's own are the bytes that a real client made of the same payload.
    let scene = Scene::scheduled(syncing).await;
    for block in ["01-paris", "03-shanghai", "06-cancun", "09-prague", "12-osaka", "15-amsterdam"] {
        let seen = scene.carried(golden(&format!("{block}-newPayload"))).await;
        assert_eq!(seen.body, golden_ssz(&format!("{block}-newPayload")), "{block}");
    }
}

#[tokio::test]
async fn ssz_06_requests_are_containers_and_never_bare_lists() {
    let rest = |seen: &Seen| match seen.path.as_str() {
        "/engine/v1/blobs/v4" => answer(204, "application/octet-stream", ""),
        _ => answer(500, "text/plain", ""),
    };
    let hash = state("11")["headBlockHash"].clone();
    for (call, wanted) in [
        (bodies(), [&hex("04000000")[..], &[0x11; 32]].concat()),
        (
            rpc("engine_getPayloadBodiesByHashV1", json!([vec![&hash; 32]])),
            [&hex("04000000")[..], &[0x11; 1024]].concat(),
        ),
        (
            rpc("engine_getBlobsV4", json!([[hash], "0x05000000000000000000000000000080"])),
            [&hex("14000000 05000000000000000000000000000080")[..], &[0x11; 32]].concat(),
        ),
        (rpc("engine_getBlobsV3", json!([[hash]])), [&hex("04000000")[..], &[0x11; 32]].concat()),
    ] {
        let scene = Scene::learned(rest).await;
        scene.json(&call).await;
        assert_eq!(scene.seen()[0].body, wanted, "{}", call["method"]);
        assert!(scene.paths()[0].starts_with("/engine/v1/"));
    }
}

#[tokio::test]
async fn ssz_07_a_count_or_length_that_is_only_claimed_costs_nothing() {
    for claim in ["00004000", "fcffffff", "00000080"] {
        // A table of up to a billion elements in four bytes.
        let said = one_body(1, &hex(claim), &[]);
        assert!(said.len() < 40);
        assert_refused(&bodies(), &said, claim).await;
    }

    let promise = b"HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\n\
        content-length: 1099511627776\r\n\r\n\x08\0\0\0";
    let by_json_rpc = br#"{"jsonrpc":"2.0","id":1,"result":"by JSON-RPC"}"#;
    let el = RawEl::start(move |path| match path {
        "/" => Deed::Answer(crate::raw::response("200 OK", "application/json", by_json_rpc)),
        // The rest never comes.
        _ => Deed::Answer(promise.to_vec()),
    })
    .await;
    let mut settings = settings(el.address);
    settings.transport = Some("http1".to_owned());
    let sidecar = sidecar(settings).await;
    let call = rpc("engine_getPayloadV5", json!([ID])).to_string();
    let answer = post(sidecar.address(), call).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.json()["result"], "by JSON-RPC");
    assert_eq!(el.paths(), [format!("/engine/v1/payloads/{ID}"), "/".to_owned()]);
}

#[tokio::test]
async fn ssz_08_valid_is_zero_and_a_status_that_contradicts_its_hash_is_not_believed() {
    let call = golden("12-osaka-newPayload");
    let own = call["params"][0]["blockHash"].as_str().unwrap()[2..].to_owned();
    let other = "22".repeat(32);
    for (said, wanted) in [
        (format!("00 09000000 29000000 {own}"), "VALID"),
        (format!("01 09000000 29000000 {other}"), "INVALID"),
        ("02 09000000 09000000".to_owned(), "SYNCING"),
        ("03 09000000 09000000".to_owned(), "ACCEPTED"),
    ] {
        assert_eq!(told(&call, &hex(&said)).await["status"], wanted);
    }
    for (what, said) in [
        ("VALID without a hash", "00 09000000 09000000".to_owned()),
        ("VALID with another's", format!("00 09000000 29000000 {other}")),
        ("INVALID with its own", format!("01 09000000 29000000 {own}")),
    ] {
        assert_refused(&call, &hex(&said), what).await;
    }
    let head = "11".repeat(32);
    for (what, said) in [
        ("VALID without a hash", "08000000 11000000 00 09000000 09000000".to_owned()),
        ("VALID with another's", format!("08000000 31000000 00 09000000 29000000 {other}")),
        ("INVALID with the head's", format!("08000000 31000000 01 09000000 29000000 {head}")),
    ] {
        assert_refused(&forkchoice("V3", &[]), &hex(&said), what).await;
    }
}
