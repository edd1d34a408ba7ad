//! The REST error table, header rules and limits (refactor.md).

use alloy_primitives::{B256, hex};
use alloy_rpc_types_engine::{ForkchoiceState, PayloadAttributes, ssz_engine_types as rest};
use http::Method;
use serde_json::json;
use ssz::{Decode, Encode};

use super::{
    client::{Answer, Peer, SSZ, config, start},
    conversation::{attributes, fork, rest_block, ssz_update, state, whole_chain},
};

const FORKCHOICE: &str = "/engine/v1/forkchoice";
const PAYLOADS: &str = "/engine/v1/payloads";
const NOWHERE: B256 = B256::repeat_byte(0xee);

fn refused(answer: &Answer, status: u16, kind: &str) {
    assert_eq!(answer.problem(), (status, kind.to_owned()));
}

#[tokio::test]
async fn capabilities_and_identity_are_json_whatever_is_accepted_or_named() {
    let el = start(config()).await;
    let peer = Peer::h2(&el);
    let headers = [("accept", SSZ), ("eth-execution-version", "no such fork")];
    let answer = peer.send(Method::GET, "/engine/v1/capabilities", &headers, "").await.unwrap();
    assert_eq!(answer.content_type(), Some("application/json"));
    let expected = json!({
        "supported_forks": ["paris", "shanghai", "cancun", "prague", "osaka", "amsterdam"],
        "fork_scoped_endpoints": ["payloads", "forkchoice", "bodies"],
        "independently_versioned": { "blobs": ["v1", "v2", "v3", "v4"] },
        "unscoped_endpoints": ["capabilities", "identity"],
        "limits": {
            "bodies.max_count": 32,
            "blobs.max_versioned_hashes": 128,
            "payload.max_bytes": 67_108_864,
        },
    });
    assert_eq!(answer.json(), expected);
    let answer = peer.send(Method::GET, "/engine/v1/identity", &headers, "").await.unwrap();
    let version = json!({"code": "XX", "name": "CL", "version": "v1", "commit": "0x00000000"});
    let over_json = peer.result("engine_getClientVersionV1", json!([version])).await;
    assert_eq!(answer.json(), over_json);
    assert_eq!(answer.json()[0]["name"], "mock-el");
}

#[tokio::test]
async fn only_the_endpoints_of_the_specification_exist() {
    let el = start(config()).await;
    let peer = Peer::h1(&el);
    let elsewhere = [
        (Method::GET, "/engine/v1/forkchoice"),
        (Method::GET, "/engine/v1/payloads"),
        (Method::GET, "/engine/v1/payloads/0x0000000000000001/"),
        (Method::POST, "/engine/v1/payloads/"),
        (Method::POST, "/engine/v1/payloads/0x0000000000000001"),
        (Method::DELETE, "/engine/v1/payloads/0x0000000000000001"),
        (Method::POST, "/engine/v1/bodies"),
        (Method::GET, "/engine/v1/bodies/hash"),
        (Method::POST, "/engine/v1/blobs/v5"),
        (Method::POST, "/engine/v1/blobs"),
        (Method::POST, "/engine/v1/capabilities"),
        (Method::GET, "/engine/v1/"),
        (Method::GET, "/engine/v2/capabilities"),
        (Method::POST, "/engine/"),
    ];
    for (verb, path) in elsewhere {
        let headers = [("content-type", SSZ), ("eth-execution-version", "osaka")];
        let answer = peer.send(verb.clone(), path, &headers, "").await.unwrap();
        assert_eq!(answer.problem(), (404, "method-not-found".into()), "{verb} {path}");
    }
}

#[tokio::test]
async fn ssz_comes_under_exactly_one_content_type() {
    let el = start(config()).await;
    let peer = Peer::h2(&el);
    let update = ssz_update("paris", state(el.genesis_hash()), None);
    let fork = ("eth-execution-version", "paris");
    let wrong = ["application/json", "application/octet-stream; q=1", "Application/Octet-Stream"];
    for content_type in wrong {
        let headers = [fork, ("content-type", content_type)];
        let answer = peer.send(Method::POST, FORKCHOICE, &headers, update.clone()).await.unwrap();
        refused(&answer, 415, "unsupported-media-type");
    }
    for path in [FORKCHOICE, PAYLOADS, "/engine/v1/bodies/hash", "/engine/v1/blobs/v1"] {
        let answer = peer.send(Method::POST, path, &[fork], update.clone()).await.unwrap();
        refused(&answer, 415, "unsupported-media-type");
    }
}

#[tokio::test]
async fn the_fork_header_must_name_a_fork_of_this_chain_to_the_letter() {
    let mut genesis: serde_json::Value =
        serde_json::from_str(include_str!("../data/genesis/genesis-allforks.json")).unwrap();
    genesis["config"].as_object_mut().unwrap().remove("amsterdamTime");
    let genesis = engine_ssz_proxy::mock_el::Genesis::parse(&genesis.to_string()).unwrap();
    let config = engine_ssz_proxy::mock_el::Config { genesis, ..config() };
    let el = start(config).await;
    let peer = Peer::h1(&el);
    let supported = peer.get("/engine/v1/capabilities", "").await.json();
    assert_eq!(supported["supported_forks"].as_array().map(Vec::len), Some(5));
    for name in ["amsterdam", "OSAKA", "bpo1", "", " "] {
        let update = ssz_update("osaka", state(el.genesis_hash()), None);
        refused(&peer.post(FORKCHOICE, name, update).await, 400, "unsupported-fork");
        refused(&peer.post(PAYLOADS, name, "").await, 400, "unsupported-fork");
        refused(&peer.post("/engine/v1/bodies/hash", name, "").await, 400, "unsupported-fork");
        let range = "/engine/v1/bodies?from=1&count=1";
        refused(&peer.get(range, name).await, 400, "unsupported-fork");
        let payload = "/engine/v1/payloads/0x0000000000000001";
        refused(&peer.get(payload, name).await, 400, "unsupported-fork");
    }
    let headers = [("content-type", SSZ)];
    let answer = peer.send(Method::POST, FORKCHOICE, &headers, "").await.unwrap();
    refused(&answer, 400, "unsupported-fork");
    let twice = [
        ("content-type", SSZ),
        ("eth-execution-version", "osaka"),
        ("eth-execution-version", "osaka"),
    ];
    let answer = peer.send(Method::POST, FORKCHOICE, &twice, "").await.unwrap();
    refused(&answer, 400, "unsupported-fork");
    let hashes = rest::BlobsV1Request { versioned_hashes: vec![NOWHERE] }.as_ssz_bytes();
    assert_eq!(peer.post("/engine/v1/blobs/v1", "no such fork", hashes).await.status, 200);
}

#[tokio::test]
async fn malformed_ssz_is_refused_without_a_detail() {
    let el = start(config()).await;
    let peer = Peer::h2(&el);
    let good = ssz_update("osaka", state(el.genesis_hash()), None);
    let long = [good.as_slice(), &[0]].concat();
    let mut offset = good.clone();
    offset[96] = 101;
    for body in [&good[..99], &long, &offset, b""] {
        let answer = peer.post(FORKCHOICE, "osaka", body.to_vec()).await;
        refused(&answer, 400, "ssz-decode-error");
        assert_eq!(*answer.body, *br#"{"type":"/engine-api/errors/ssz-decode-error"}"#);
    }
    refused(&peer.post(PAYLOADS, "amsterdam", "x").await, 400, "ssz-decode-error");
    refused(&peer.post("/engine/v1/blobs/v4", "", "x").await, 400, "ssz-decode-error");
}

#[tokio::test]
async fn attributes_must_be_of_the_fork_the_header_names() {
    let el = start(config()).await;
    let peer = Peer::h1(&el);
    let genesis = state(el.genesis_hash());
    for number in [1, 3, 6, 9, 12, 15] {
        for named in ["paris", "shanghai", "cancun", "prague", "osaka", "amsterdam"] {
            // The attributes in the shape of the header, with the timestamp of the block.
            let of_header = (1..=15).find(|n| fork(*n) == named).unwrap();
            let attributes = PayloadAttributes { timestamp: 12 * number, ..attributes(of_header) };
            let update = ssz_update(named, genesis, Some(attributes));
            let answer = peer.post(FORKCHOICE, named, update).await;
            if named == fork(number) {
                assert_eq!(answer.status, 200, "{named} for {}", fork(number));
            } else {
                refused(&answer, 400, "unsupported-fork");
            }
        }
    }
    for named in ["paris", "shanghai", "cancun", "prague", "osaka", "amsterdam"] {
        let answer = peer.post(FORKCHOICE, named, ssz_update(named, genesis, None)).await;
        assert_eq!(answer.status, 200, "without attributes any header does");
    }
}

#[tokio::test]
async fn payloads_must_be_of_the_fork_the_header_names() {
    let el = start(config()).await;
    let peer = Peer::h2(&el);
    let (mut head, mut chain) = (el.genesis_hash(), Vec::new());
    for number in 1..=13 {
        let (id, built) = rest_block(&peer, number, head).await;
        head = built.payload.block_hash();
        chain.push((id, built));
    }
    // Cancun, Prague and Osaka: the same payload; Prague and Osaka: the same envelope.
    let (id, osaka) = &chain[12];
    refused(&peer.post(PAYLOADS, "prague", osaka.envelope(13)).await, 400, "unsupported-fork");
    refused(&peer.post(PAYLOADS, "cancun", osaka.envelope(13)).await, 400, "ssz-decode-error");
    let path = format!("{PAYLOADS}/{id}");
    for named in ["paris", "prague", "amsterdam"] {
        refused(&peer.get(&path, named).await, 400, "unsupported-fork");
    }
}

#[tokio::test]
async fn a_payload_id_is_0x_and_sixteen_digits() {
    let el = start(config()).await;
    let peer = Peer::h1(&el);
    for id in ["0x1", "0000000000000001", "0x00000000000000001", "0x000000000000000g", "0x", "x"] {
        let answer = peer.get(&format!("{PAYLOADS}/{id}"), "no such fork").await;
        assert_eq!(answer.problem(), (400, "invalid-request".into()), "{id}");
    }
    let answer = peer.get(&format!("{PAYLOADS}/0x000000000000000A"), "osaka").await;
    refused(&answer, 404, "unknown-payload");
}

#[tokio::test]
async fn forkchoice_states_are_judged_by_the_chain_they_make() {
    let el = start(config()).await;
    let chain = whole_chain(&el).await;
    let peer = Peer::h2(&el);
    let at = |number: usize| chain[number - 1].payload.block_hash();
    let update = |head, safe_block_hash, finalized_block_hash| {
        let state =
            ForkchoiceState { head_block_hash: head, safe_block_hash, finalized_block_hash };
        peer.post(FORKCHOICE, "amsterdam", ssz_update("amsterdam", state, None))
    };
    let zero = B256::ZERO;
    // Nothing known of the head, whatever the rest.
    let answer = update(NOWHERE, at(1), NOWHERE).await;
    assert_eq!(hex::encode(&answer.body), "0800000011000000020900000009000000");
    refused(&update(zero, zero, zero).await, 409, "invalid-forkchoice");
    refused(&update(at(10), NOWHERE, zero).await, 409, "invalid-forkchoice");
    refused(&update(at(10), zero, NOWHERE).await, 409, "invalid-forkchoice");
    refused(&update(at(10), at(11), zero).await, 409, "invalid-forkchoice");
    refused(&update(at(10), at(9), at(11)).await, 409, "invalid-forkchoice");
    assert_eq!(update(at(10), at(9), at(8)).await.status, 200);
    assert_eq!(peer.result("eth_blockNumber", json!([])).await, "0xa");
    refused(&update(at(7), zero, zero).await, 409, "reorg-too-deep");
    assert_eq!(update(at(8), zero, zero).await.status, 200);
    // A lower finalized block does not unfinalize.
    assert_eq!(update(at(17), at(3), at(2)).await.status, 200);
    refused(&update(at(7), zero, zero).await, 409, "reorg-too-deep");
    let finalized = peer.result("eth_getBlockByNumber", json!(["finalized", false])).await;
    assert_eq!(finalized["hash"], json!(at(8)));
}

#[tokio::test]
async fn refused_attributes_leave_the_forkchoice_state_applied() {
    let el = start(config()).await;
    let chain = whole_chain(&el).await;
    let peer = Peer::h1(&el);
    let head = chain[3].payload.block_hash();
    let late = PayloadAttributes { timestamp: 48, ..attributes(4) };
    let update = ssz_update("shanghai", state(head), Some(late));
    let answer = peer.post(FORKCHOICE, "shanghai", update).await;
    refused(&answer, 422, "invalid-attributes");
    assert_eq!(peer.result("eth_blockNumber", json!([])).await, "0x4");
}

#[tokio::test]
async fn a_range_is_two_decimal_numbers_and_nothing_else() {
    let el = start(config()).await;
    let peer = Peer::h2(&el);
    let malformed = [
        "",
        "?",
        "?from=1",
        "?count=1",
        "?from=1&count=1&x=1",
        "?from=1&from=1&count=1",
        "?from=0x1&count=1",
        "?from=+1&count=1",
        "?from=-1&count=1",
        "?from=&count=1",
        "?from=18446744073709551616&count=1",
        "?from=1&count=1&",
    ];
    for query in malformed {
        let answer = peer.get(&format!("/engine/v1/bodies{query}"), "paris").await;
        assert_eq!(answer.problem(), (400, "invalid-request".into()), "{query}");
    }
    for query in ["from=0&count=1", "from=1&count=0"] {
        let answer = peer.get(&format!("/engine/v1/bodies?{query}"), "paris").await;
        refused(&answer, 422, "invalid-body");
    }
    let answer = peer.get("/engine/v1/bodies?from=1&count=33", "paris").await;
    refused(&answer, 413, "request-too-large");
    let answer = peer.get("/engine/v1/bodies?count=32&from=18446744073709551615", "paris").await;
    assert_eq!(*answer.body, [4, 0, 0, 0]);
}

#[tokio::test]
async fn lists_and_bodies_above_the_limits_are_too_large() {
    let el = start(config()).await;
    let (h1, h2) = (Peer::h1(&el), Peer::h2(&el));
    let hashes = vec![NOWHERE; 129];
    let bodies = rest::BodiesByHashRequest { block_hashes: hashes[..33].to_vec() }.as_ssz_bytes();
    refused(&h2.post("/engine/v1/bodies/hash", "osaka", bodies).await, 413, "request-too-large");
    let blobs = rest::BlobsV1Request { versioned_hashes: hashes.clone() }.as_ssz_bytes();
    for path in ["/engine/v1/blobs/v1", "/engine/v1/blobs/v2", "/engine/v1/blobs/v3"] {
        refused(&h2.post(path, "", blobs.clone()).await, 413, "request-too-large");
    }
    let cells =
        rest::BlobsV4Request { versioned_hashes: hashes, indices_bitarray: Default::default() };
    let answer = h2.post("/engine/v1/blobs/v4", "", cells.as_ssz_bytes()).await;
    refused(&answer, 413, "request-too-large");
    let whole = h1.post(PAYLOADS, "osaka", vec![0; 1 << 26]).await;
    refused(&whole, 400, "ssz-decode-error");
}

#[tokio::test]
async fn a_transaction_that_cannot_be_decoded_makes_an_invalid_block_not_a_bad_request() {
    let el = start(config()).await;
    let peer = Peer::h2(&el);
    let mut head = el.genesis_hash();
    for number in 1..=7 {
        let (_, built) = rest_block(&peer, number, head).await;
        head = built.payload.block_hash();
        for broken in [vec![], vec![0x7f], [&built.payload.transactions()[0][..], &[0]].concat()] {
            let mut built = built.clone();
            built.payload.transactions_mut().push(broken.into());
            let answer = peer.post(PAYLOADS, fork(number), built.envelope(number)).await;
            assert_eq!(answer.status, 200);
            let status = rest::PayloadStatus::from_ssz_bytes(&answer.body).unwrap();
            assert_eq!(status.status, rest::PayloadStatusKind::Invalid);
            assert!(status.latest_valid_hash.is_none());
        }
    }
}
