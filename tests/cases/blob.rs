//! BLOB-01 to BLOB-06: blobs by hash, the hashes of a payload, and the bundle of a build.

use crate::{
    scene::{
        Scene, attributes, changed, fork_header, forkchoice, golden, golden_ssz, json_rpc_error,
        json_rpc_result, rpc, ssz, syncing,
    },
    support::scripted_el::{Seen, problem},
};
use alloy_eips::{
    eip4844::{Blob, BlobAndProofV1, BlobAndProofV2, Bytes48},
    eip7594::Cell,
};
use alloy_rpc_types_engine::ssz_engine_types::{
    BlobCellsAndProofs, BlobEntry, BlobsResponse, BlobsV1Response, BlobsV3Response,
    BuiltPayloadOsaka, BuiltPayloadPrague, Optional,
};
use axum::response::Response;
use serde_json::{Value, json};
use ssz::{Decode, Encode};

/// The hash that repeats that byte after its version byte.
fn hash(version: u8, byte: u8) -> String {
    format!("0x{version:02x}{}", const_hex::encode([byte; 31]))
}

fn get_blobs(version: &str, hashes: &[String]) -> Value {
    rpc(&format!("engine_getBlobs{version}"), json!([hashes]))
}

fn no_content() -> Response {
    Response::builder().status(204).body(axum::body::Body::empty()).unwrap()
}

/// A blob and its proofs, each of one repeated byte; `None` is one that the EL does not have.
fn v1(blobs: &[Option<u8>]) -> Vec<u8> {
    let blob = |byte| BlobAndProofV1 {
        blob: Box::new(Blob::repeat_byte(byte)),
        proof: Bytes48::repeat_byte(byte),
    };
    let blobs: Vec<_> = blobs.iter().map(|byte| byte.map(blob)).collect();
    BlobsV1Response::try_from(blobs).unwrap().as_ssz_bytes()
}

fn with_cells(byte: u8, proofs: usize) -> BlobAndProofV2 {
    let proofs = vec![Bytes48::repeat_byte(byte); proofs];
    BlobAndProofV2 { blob: Box::new(Blob::repeat_byte(byte)), proofs }
}

fn v3(blobs: &[Option<u8>]) -> Vec<u8> {
    let blobs: Vec<_> = blobs.iter().map(|byte| byte.map(|byte| with_cells(byte, 128))).collect();
    BlobsV3Response::try_from(blobs).unwrap().as_ssz_bytes()
}

/// The first byte of each blob, or null.
fn first_bytes(said: &Value) -> Value {
    let Some(blobs) = said["result"].as_array() else { return said["result"].clone() };
    blobs.iter().map(|blob| blob["blob"].as_str().map(|text| text[2..4].to_owned())).collect()
}

/// The EL says this to the only request over REST.
async fn saying(rest: impl Fn() -> Response + Clone + Send + Sync + 'static) -> Scene {
    Scene::learned(move |_: &Seen| rest()).await
}

#[tokio::test]
async fn blob_01_v2_is_all_or_nothing_and_v3_has_holes() {
    let two = [hash(1, 1), hash(1, 2)];
    let misses: [fn() -> Response; 3] = [no_content, || ssz(v3(&[])), || ssz(v3(&[Some(1), None]))];
    for miss in misses {
        let scene = saying(miss).await;
        let said = scene.json(get_blobs("V2", &two)).await;
        assert_eq!(said.get("result"), Some(&Value::Null), "{said}");
        assert_eq!(scene.paths(), ["/engine/v1/blobs/v2"]);
    }
    let scene = saying(|| ssz(v3(&[Some(1), Some(2)]))).await;
    assert_eq!(first_bytes(&scene.json(get_blobs("V2", &two)).await), json!(["01", "02"]));
    for (blobs, wanted) in [
        ([Some(1), None], json!(["01", null])),
        ([None, Some(2)], json!([null, "02"])),
        ([None, None], json!([null, null])),
    ] {
        let scene = saying(move || ssz(v3(&blobs))).await;
        assert_eq!(first_bytes(&scene.json(get_blobs("V3", &two)).await), wanted);
        assert_eq!(scene.paths(), ["/engine/v1/blobs/v3"]);
    }
    // A list of another length than asked for is no list of holes.
    let scene = saying(|| ssz(v3(&[]))).await;
    assert_eq!(scene.json(get_blobs("V3", &two)).await["result"], "by JSON-RPC");
    // No hashes at all: the EL's own words.
    let empty = |seen: &Seen| json_rpc_result(seen, "[]");
    let scene = Scene::with(|_: &Seen| no_content(), empty, |_| {}).await;
    for version in ["V2", "V3"] {
        assert_eq!(scene.json(get_blobs(version, &[])).await["result"], json!([]));
    }
    assert_eq!(scene.paths(), ["/", "/"]);
}

#[tokio::test]
async fn blob_02_hashes_go_out_as_they_come_in_up_to_128() {
    // A hole for each hash asked for; the first is there.
    let scene = Scene::learned(|seen: &Seen| {
        let count = (seen.body.len() - 4) / 32;
        let mut blobs = vec![None; count];
        blobs[0] = Some(7);
        ssz(v3(&blobs))
    })
    .await;
    for count in [1, 128] {
        let hashes: Vec<_> = (0..count).map(|byte| hash(1, byte as u8)).collect();
        let before = scene.seen().len();
        let said = scene.json(get_blobs("V3", &hashes)).await;
        assert_eq!(said["result"].as_array().unwrap().len(), count);
        assert_eq!(said["result"][0]["proofs"].as_array().unwrap().len(), 128);
        assert_eq!(scene.seen().len() - before, 1);
    }
    // Twice the same, and one of no known version: asked and answered place by place.
    let hashes = [hash(1, 5), hash(0, 9), hash(1, 5)];
    let said = scene.json(get_blobs("V3", &hashes)).await;
    assert_eq!(first_bytes(&said), json!(["07", null, null]));
    let wanted: String = hashes.iter().map(|hash| &hash[2..]).collect();
    assert_eq!(const_hex::encode(&scene.seen().last().unwrap().body[4..]), wanted);
    let hashes: Vec<_> = (0..129).map(|byte| hash(1, byte)).collect();
    scene.assert_relayed(get_blobs("V3", &hashes), "129").await;
    scene.assert_relayed(get_blobs("V3", &[]), "0").await;
    // Without JSON-RPC there is nobody to say -38004 but the sidecar.
    let scene = Scene::rest_only(|_: &Seen| no_content()).await;
    let said = scene.json(get_blobs("V3", &hashes)).await;
    assert_eq!(said["error"]["code"], -38004, "{said}");
}

#[tokio::test]
async fn blob_03_each_version_has_its_proofs_and_another_number_of_them_is_no_answer() {
    let one = [hash(1, 1)];
    let scene = saying(|| ssz(v1(&[Some(1)]))).await;
    let said = scene.json(get_blobs("V1", &one)).await;
    let members: Vec<_> = said["result"][0].as_object().unwrap().keys().collect();
    assert_eq!(members, ["blob", "proof"]);
    assert_eq!(said["result"][0]["proof"], format!("0x{}", "01".repeat(48)));
    assert_eq!(said["result"][0]["blob"], format!("0x{}", "01".repeat(131_072)));
    for version in ["V2", "V3"] {
        let scene = saying(|| ssz(v3(&[Some(1)]))).await;
        let said = scene.json(get_blobs(version, &one)).await;
        let proofs = json!(vec![format!("0x{}", "01".repeat(48)); 128]);
        assert_eq!(said["result"][0]["proofs"], proofs, "{version}");
        for count in [0, 1, 127] {
            let scene = saying(move || {
                let contents = with_cells(1, count);
                let entries = vec![BlobEntry { available: true, contents }];
                ssz(BlobsResponse { entries }.as_ssz_bytes())
            })
            .await;
            let said = scene.json(get_blobs(version, &one)).await;
            assert_eq!(said["result"], "by JSON-RPC", "{version} {count}");
        }
    }
}

/// Cells whose bytes are their place in the list; those given are missing.
fn cells(count: usize, missing: &[usize]) -> Vec<u8> {
    let there = |place: &usize| !missing.contains(place);
    let cell = |place| there(&place).then(|| Cell::from([place as u8; 2048]));
    let proof = |place: usize| there(&place).then(|| Bytes48::repeat_byte(place as u8));
    let contents = BlobCellsAndProofs {
        blob_cells: (0..count).map(|place| Optional::from(cell(place))).collect(),
        proofs: (0..count).map(|place| Optional::from(proof(place))).collect(),
    };
    BlobsResponse { entries: vec![BlobEntry { available: true, contents }] }.as_ssz_bytes()
}

#[tokio::test]
async fn blob_04_columns_go_out_bit_for_bit_and_only_those_asked_for_come_back() {
    for (columns, slots, wanted) in [
        ("01000000000000000000000000000080", cells(128, &[]), json!(["00", "7f"])),
        ("01000000000000000000000000000080", cells(128, &[127]), json!(["00", null])),
        ("01000000000000000000000000000080", cells(2, &[]), json!(["00", "01"])),
        ("02800000000000000000000000000000", cells(128, &[]), json!(["01", "0f"])),
    ] {
        let scene = saying(move || ssz(&slots)).await;
        let params = json!([[hash(1, 1)], format!("0x{columns}")]);
        let said = scene.json(rpc("engine_getBlobsV4", params)).await;
        for member in ["blob_cells", "proofs"] {
            let list = said["result"][0][member].as_array().unwrap().iter();
            let first: Value =
                list.map(|text| text.as_str().map(|text| text[2..4].to_owned())).collect();
            assert_eq!(first, wanted, "{columns} {member}");
        }
        let [seen] = scene.seen().try_into().unwrap();
        assert_eq!(seen.path, "/engine/v1/blobs/v4");
        assert_eq!(const_hex::encode(&seen.body[4..20]), columns);
    }
    let scene = saying(|| ssz(cells(3, &[]))).await;
    let params = json!([[hash(1, 1)], "0x01000000000000000000000000000080"]);
    assert_eq!(scene.json(rpc("engine_getBlobsV4", params)).await["result"], "by JSON-RPC");
}

#[tokio::test]
async fn blob_05_hashes_other_than_the_payloads_are_invalid_at_once_even_while_the_el_syncs() {
    let payload = golden("12-osaka-newPayload");
    let [a, b] = [0, 1].map(|place| payload["params"][1][place].as_str().unwrap());
    let other = format!("0x02{}", &a[4..]);
    let scene = Scene::learned(syncing).await;
    let said = scene.json(&payload).await;
    assert_eq!(said["result"]["status"], "SYNCING", "the hashes as they are");
    for expected in [
        json!([a]),
        json!([a, b, hash(1, 9)]),
        json!([b, a]),
        json!([a, a]),
        json!([a, other]),
        json!([]),
    ] {
        let said = scene.json(changed(payload.clone(), "/params/1", expected.clone())).await;
        assert_eq!(said["result"]["status"], "INVALID", "{expected}");
        assert_eq!(said["result"].get("latestValidHash"), Some(&Value::Null), "{expected}");
        assert!(said["result"]["validationError"].is_string(), "{expected}");
    }
    // A payload without a blob.
    let none = golden("06-cancun-newPayload");
    let said = scene.json(changed(none, "/params/1", json!([a]))).await;
    assert_eq!(said["result"]["status"], "INVALID");
    assert_eq!(scene.paths(), ["/engine/v1/payloads"], "the EL is asked for none of them");

    scene.assert_relayed(changed(payload.clone(), "/params/1", Value::Null), "null").await;
    for transaction in ["0x03", "0x03c0", "0x03ffffff"] {
        let unreadable = changed(payload.clone(), "/params/0/transactions/2", json!(transaction));
        scene.assert_relayed(unreadable, transaction).await;
    }
    let refusing = |seen: &Seen| json_rpc_error(seen, -32602, "missing hashes");
    let scene = Scene::with(syncing, refusing, |_| {}).await;
    let said = scene.json(changed(payload, "/params/1", Value::Null)).await;
    assert_eq!(said["error"]["code"], -32602);
}

/// VALID for the head of [`forkchoice`], and the build 0x07….
fn building() -> Vec<u8> {
    let mut ssz = vec![8, 0, 0, 0, 49, 0, 0, 0, 0, 9, 0, 0, 0, 41, 0, 0, 0];
    ssz.extend([0x11; 32]);
    ssz.extend([7; 8]);
    ssz
}

#[tokio::test]
async fn blob_06_a_bundle_is_printed_as_received_and_forks_are_not_bridged() {
    let get_payload =
        |version: &str| rpc(&format!("engine_getPayload{version}"), json!(["0x0707070707070707"]));
    let counts = |said: &Value| {
        let bundle = &said["result"]["blobsBundle"];
        ["commitments", "proofs", "blobs"].map(|name| bundle[name].as_array().unwrap().len())
    };
    let mut osaka = BuiltPayloadOsaka::from_ssz_bytes(&golden_ssz("12-osaka-getPayload")).unwrap();
    osaka.blobs_bundle.proofs.pop();
    let mut prague =
        BuiltPayloadPrague::from_ssz_bytes(&golden_ssz("09-prague-getPayload")).unwrap();
    prague.blobs_bundle.proofs = vec![prague.blobs_bundle.proofs[0]; 256];
    for (version, built, wanted) in [
        ("V5", osaka.as_ssz_bytes(), [2, 255, 2]),
        ("V4", prague.as_ssz_bytes(), [2, 256, 2]),
        ("V3", golden_ssz("06-cancun-getPayload"), [0, 0, 0]),
    ] {
        let scene = saying(move || ssz(&built)).await;
        let said = scene.json(get_payload(version)).await;
        assert_eq!(counts(&said), wanted, "{version}");
        assert_eq!(scene.paths().len(), 1, "{version}");
    }
    // A build of Osaka asked for by the method of Prague.
    let scene = Scene::with(
        |seen: &Seen| match (seen.path.as_str(), fork_header(seen)) {
            ("/engine/v1/forkchoice", _) => ssz(building()),
            (_, "osaka") => ssz(golden_ssz("12-osaka-getPayload")),
            _ => problem(400, "unsupported-fork"),
        },
        |seen: &Seen| json_rpc_error(seen, -38005, "Unsupported fork"),
        |settings| settings.genesis = Some(crate::scene::genesis()),
    )
    .await;
    let said = scene.json(forkchoice("V3", &[attributes(0x90)])).await;
    assert_eq!(said["result"]["payloadId"], "0x0707070707070707", "{said}");
    assert_eq!(fork_header(scene.seen().last().unwrap()), "osaka");
    assert_eq!(scene.json(get_payload("V4")).await["error"]["code"], -38005);
    assert!(scene.json(get_payload("V5")).await["result"].is_object());
}
