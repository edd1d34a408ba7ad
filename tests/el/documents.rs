//! The capabilities document.

use engine_ssz_proxy::el::{Capabilities, Limits};

use crate::peer::{CAPABILITIES, Peer, json_el, open, reply, until};

#[test]
fn a_whole_document_is_read() {
    let read = Capabilities::read(CAPABILITIES.as_bytes()).unwrap();
    assert_eq!(read.supported_forks, ["paris", "osaka"]);
    assert!(read.supports_fork("osaka") && !read.supports_fork("prague"));
    assert!(read.serves("payloads") && !read.serves("bodies"));
    assert!(read.serves_blobs("v2") && !read.serves_blobs("v3"));
    let limits = Limits { bodies_max_count: 16, blobs_max: 64, payload_max_bytes: 1000 };
    assert_eq!(read.limits, limits);
}

#[test]
fn life_09_limits_are_clamped_and_wrong_types_count_as_absent() {
    let odd = r#"{"supported_forks":["paris","amsterdam","bogota",7],"fork_scoped_endpoints":["payloads"],"independently_versioned":{},"limits":{"bodies.max_count":128,"blobs.max_versioned_hashes":0,"payload.max_bytes":"67108863"},"x":1}"#;
    let read = Capabilities::read(odd.as_bytes()).unwrap();
    assert_eq!(read.supported_forks, ["paris", "amsterdam", "bogota"]);
    assert!(read.serves("payloads") && !read.serves("forkchoice"));
    assert!(read.blobs.is_empty());
    assert_eq!(read.limits, Limits::default());

    let larger = r#"{"supported_forks":[],"limits":{"bodies.max_count":-1,"blobs.max_versioned_hashes":4096,"payload.max_bytes":268435456}}"#;
    let limits = Capabilities::read(larger.as_bytes()).unwrap().limits;
    assert_eq!((limits.bodies_max_count, limits.blobs_max), (32, 128));
    assert_eq!(limits.payload_max_bytes, 268_435_456);
}

#[test]
fn life_09_members_left_out_mean_the_defaults() {
    for document in [
        r#"{"supported_forks":["osaka"]}"#,
        r#"{"supported_forks":["osaka"],"fork_scoped_endpoints":null,"independently_versioned":[],"limits":7}"#,
        r#"{"supported_forks":["osaka"],"fork_scoped_endpoints":"payloads","independently_versioned":{"blobs":{"v1":1}},"limits":{"bodies.max_count":null}}"#,
    ] {
        let read = Capabilities::read(document.as_bytes()).unwrap();
        assert!(read.serves("bodies"), "{document}");
        assert!(!read.serves_blobs("v1"), "{document}");
        assert_eq!(read.limits, Limits::default(), "{document}");
    }
}

const NO_DOCUMENTS: [&str; 9] = [
    "",
    "null",
    "[]",
    "{}",
    "<html>",
    r#"{"supported_forks":"osaka"}"#,
    r#"{"supported_forks":null}"#,
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Authentication error"}}"#,
    r#"{"supported_forks":["osaka"]"#,
];

#[tokio::test]
async fn life_09_a_200_without_the_document_is_no_rest() {
    for document in NO_DOCUMENTS {
        assert_eq!(Capabilities::read(document.as_bytes()), None, "{document}");
    }
    let peer = Peer::start(|seen| async move {
        match seen.path.as_str() {
            "/engine/v1/capabilities" => reply(200, "<html>"),
            _ => json_el(seen).await,
        }
    })
    .await;
    let el = open(peer.config());
    let surface = until(&el, |surface| surface.epoch == 1).await;
    assert_eq!(surface.rest, None);
    assert!(surface.why.contains("200 without a capabilities document"), "{}", surface.why);
}

#[tokio::test]
async fn life_09_a_document_of_more_than_a_megabyte_is_no_rest() {
    let peer = Peer::start(|_| async {
        let padding = " ".repeat(1 << 20);
        reply(200, format!("{CAPABILITIES}{padding}"))
    })
    .await;
    let el = open(peer.config());
    let surface = until(&el, |surface| surface.epoch == 1).await;
    assert_eq!(surface.rest, None);
}
