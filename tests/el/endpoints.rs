//! Where requests go.

use bytes::Bytes;
use engine_ssz_proxy::el::{Caller, Endpoint, Lane, Repeat, RestBase, TransportChoice};
use http::Request;

use crate::peer::{Peer, config, open, rest_el, until};

fn parsed(text: &str) -> String {
    match text.parse::<Endpoint>() {
        Ok(endpoint) => endpoint.to_string(),
        Err(error) => format!("refused: {error}"),
    }
}

#[test]
fn net_02_an_endpoint_is_kept_with_its_port_and_bracketed_literals() {
    assert_eq!(parsed("http://el:9000"), "http://el:9000");
    assert_eq!(parsed("http://el"), "http://el:8551");
    assert_eq!(parsed("HTTP://localhost/"), "http://localhost:8551");
    assert_eq!(parsed("http://[::1]"), "http://[::1]:8551");
    assert_eq!(parsed("http://[fd00::2]:8552/x/"), "http://[fd00::2]:8552/x");
    assert_eq!(parsed(" http://10.0.0.1:8551\n"), "http://10.0.0.1:8551");
    assert_eq!(parsed("unix:///run/a b/é%20.sock"), "unix:///run/a b/é%20.sock");
}

#[test]
fn an_endpoint_that_promises_what_is_not_kept_is_refused() {
    for (text, reason) in [
        ("el:8551", "must be written as http://host:port"),
        ("", "must be written as http://host:port"),
        ("https://el:8551", "not https://"),
        ("ws://el:8551", "not ws://"),
        ("unix://", "an absolute path"),
        ("unix://el.sock", "an absolute path"),
        ("unix:///run/", "an absolute path"),
        ("http://user:hunter2@el:8551", "must not carry user info"),
        ("http://:8551", ""),
        ("http:///engine", ""),
        ("http://el:0", "from 1 to 65535"),
        ("http://el:", "from 1 to 65535"),
        ("http://el:65536", ""),
        ("http://el:8551/?a=b", "must not carry a query"),
        ("http://el:8551/#a", "must not carry a query or a fragment"),
        ("http://[::1%lo]:8551", "without a zone"),
        ("http://[el]:8551", "no IPv6 address"),
        ("http://[::1", ""),
        ("http://e l", ""),
        ("http://él", ""),
    ] {
        let outcome = parsed(text);
        assert!(outcome.starts_with("refused: "), "{text}: {outcome}");
        assert!(outcome.contains(reason), "{text}: {outcome}");
        assert!(!outcome.contains("hunter2"), "{outcome}");
    }
}

#[test]
fn a_rest_base_is_an_absolute_path() {
    assert_eq!(RestBase::default().to_string(), "/engine/v1");
    assert_eq!("/engine//v2/".parse::<RestBase>().unwrap().to_string(), "/engine/v2");
    for text in ["", "engine/v1", "/engine?x", "/engine#x", "http://el/engine", "/a b"] {
        assert!(text.parse::<RestBase>().is_err(), "{text}");
    }
}

#[test]
fn a_transport_choice_reads_what_it_writes() {
    for text in ["auto", "h2c", "http1", "json"] {
        assert_eq!(text.parse::<TransportChoice>().unwrap().to_string(), text);
    }
    assert!("h2".parse::<TransportChoice>().is_err());
}

#[tokio::test]
async fn rest_04_paths_are_joined_without_doubling_and_keep_the_prefix() {
    for (suffix, prefix) in [
        ("", ""),
        ("/", ""),
        ("/some/prefix", "/some/prefix"),
        ("//some//prefix//", "/some/prefix"),
    ] {
        let peer = Peer::start(rest_el).await;
        let el = open(config(format!("http://{}{suffix}", peer.address).parse().unwrap()));
        until(&el, |surface| surface.rest.is_some()).await;

        let caller = Caller::default();
        for path in ["/payloads", "/bodies?from=1&count=2"] {
            let request = Request::post(path).body(Bytes::new()).unwrap();
            let answer = el.send(Lane::Command, &caller, request, Repeat::Harmless).await.unwrap();
            assert_eq!(answer.body(), &format!("{prefix}/engine/v1{path}"));
        }
        let answer = el
            .relay(Lane::Relay, &caller, Bytes::from_static(b"{}"), Repeat::Harmless)
            .await
            .unwrap();
        let json_rpc = if prefix.is_empty() { "/" } else { prefix };
        assert_eq!(answer.body(), json_rpc);
    }
}

#[tokio::test]
async fn the_rest_base_can_be_moved() {
    let peer = Peer::start(rest_el).await;
    let mut config = peer.config();
    config.rest_base = "/engine/v2/".parse().unwrap();
    let el = open(config);
    until(&el, |surface| surface.rest.is_some()).await;
    assert!(!peer.seen_on("/engine/v2/capabilities").is_empty());
}

#[tokio::test]
async fn net_02_a_name_with_several_addresses_finds_the_one_that_listens() {
    let peer = Peer::start(rest_el).await;
    let el = open(config(format!("http://localhost:{}", peer.address.port()).parse().unwrap()));
    until(&el, |surface| surface.rest.is_some()).await;
}

#[tokio::test]
async fn h1_11_the_authority_is_the_endpoints_in_both_protocols() {
    let peer = Peer::start(rest_el).await;
    let authority = format!("localhost:{}", peer.address.port());
    for choice in [TransportChoice::H2c, TransportChoice::Http1] {
        let mut config = config(format!("http://{authority}").parse().unwrap());
        config.transport = choice;
        let el = open(config);
        until(&el, |surface| surface.rest.is_some()).await;
        let caller = Caller::default();
        for lane in [Lane::Command, Lane::Build] {
            let request = Request::post("/x").header("host", "proxy").body(Bytes::new()).unwrap();
            el.send(lane, &caller, request, Repeat::Harmless).await.unwrap();
        }
        el.relay(Lane::Relay, &caller, Bytes::new(), Repeat::Harmless).await.unwrap();
    }
    for seen in peer.seen() {
        let host = seen.authority.as_deref().or(seen.header("host"));
        assert_eq!(host, Some(authority.as_str()), "{seen:?}");
    }
}
