//! NET-01 to NET-03: names, addresses, and packets that vanish.

use crate::{
    peer::{Http1, Peer, Preface, Reply, Seen},
    peers::{self, call, calls, in_front, in_front_of, unaware},
    port::{self, Asked, Deed, Port},
    scene::{forkchoice, golden, rpc},
    support::{any_port, settings},
};
use engine_ssz_proxy::{config::Number, serve::Sidecar};
use std::{net::SocketAddr, time::Duration};
use tokio::net::{TcpSocket, TcpStream};

const ETH: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_syncing"}"#;

/// Another service at the EL's old address, with a JSON-RPC and no REST.
async fn stranger(seen: Seen) -> Reply {
    match seen.path.as_str() {
        "/" if !seen.body.is_empty() => peers::by_json_rpc(&seen),
        _ => crate::peer::reply(404, ""),
    }
}

#[tokio::test]
async fn net_01_who_is_at_an_address_is_found_out_anew_after_each_loss() {
    let script = || peers::el(|seen| async move { peers::syncing(&seen) });
    let old = Peer::start(script()).await;
    let address = old.address;
    let sidecar = in_front_of(&old).await;
    call(&sidecar, golden("12-osaka-newPayload")).await;
    old.stop().await;
    let down = call(&sidecar, golden("12-osaka-newPayload")).await;
    assert_eq!(down["error"]["code"], -32603, "{down}");
    let new = Peer::at(address, Preface::Served, Http1::Served, stranger).await;
    for _ in 0..3 {
        let said = call(&sidecar, golden("12-osaka-newPayload")).await;
        assert_eq!(said["result"], "by JSON-RPC", "{said}");
    }
    peers::until(&sidecar, |surface| surface.why.contains("404")).await;
    let rest = new.seen().into_iter().filter(|seen| seen.path.starts_with("/engine/"));
    assert!(rest.into_iter().all(|seen| seen.path.ends_with("/capabilities")));
}

#[tokio::test]
async fn net_01_a_name_is_resolved_for_each_connection_and_not_once() {
    let script = || peers::el(|seen| async move { peers::syncing(&seen) });
    let old = Peer::start(script()).await;
    let port = old.address.port();
    let sidecar = in_front(old.address, |config| {
        config.el.endpoint = format!("http://localhost:{port}").parse().unwrap();
    })
    .await;
    call(&sidecar, ETH).await;
    assert_eq!(calls(&old)[0].header("host"), Some(format!("localhost:{port}").as_str()));
    old.stop().await;
    // The other address of the name. Some machines have none.
    let moved = SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, port));
    if !tokio::net::lookup_host(("localhost", port)).await.unwrap().any(|known| known == moved) {
        return;
    }
    let new = Peer::at(moved, Preface::Served, Http1::Served, script()).await;
    assert_eq!(call(&sidecar, ETH).await["result"], "by JSON-RPC");
    peers::until_rest(&sidecar).await;
    call(&sidecar, forkchoice("V3", &[])).await;
    assert_eq!(peers::paths(&new), ["/", "/engine/v1/forkchoice"]);
}

#[tokio::test]
async fn net_02_a_name_with_several_addresses_and_literals_lead_to_the_el() {
    let syncing = |asked: Asked| async move { Deed::Answer(port::syncing(&asked)) };
    let el = Port::http1(syncing).await;
    let port = el.address.port();
    let mut ways = vec![(format!("http://localhost:{port}"), format!("localhost:{port}"), el)];
    let v6 = SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, 0));
    if let Ok(el) = Port::http1_at(v6, syncing).await {
        let port = el.address.port();
        ways.push((format!("http://[::1]:{port}"), format!("[::1]:{port}"), el));
    }
    for (endpoint, host, el) in ways {
        let sidecar = in_front(el.address, |config| {
            config.el.endpoint = endpoint.parse().unwrap();
        })
        .await;
        for request in [golden("12-osaka-newPayload"), rpc("eth_syncing", serde_json::json!([]))] {
            assert!(call(&sidecar, request).await["error"].is_null());
        }
        assert_eq!(el.paths(), ["/engine/v1/payloads", "/"], "{endpoint}");
        assert!(el.seen().iter().all(|asked| asked.header("host") == Some(&host)), "{endpoint}");
    }
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
    for (endpoint, is_good) in
        [("http://[fd00::2]:8551", true), ("http://[fe80::1%lo]:8551", false)]
    {
        let mut settings = settings(nowhere);
        settings.execution_endpoint = Some(endpoint.to_owned());
        assert_eq!(settings.check().is_ok(), is_good, "{endpoint}");
    }
    let taken = std::net::TcpListener::bind(any_port()).unwrap();
    let mut settings = settings(nowhere);
    let address = taken.local_addr().unwrap();
    settings.listen_port = Some(Number::Integer(address.port().into()));
    let error = Sidecar::start(settings.check().unwrap()).await.unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

/// An address that takes no connection and refuses none: its queue is full.
async fn black_hole() -> (tokio::net::TcpListener, Vec<tokio::task::JoinHandle<()>>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(any_port()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queue = Vec::new();
    // A connection that does not come up shows that the queue is full.
    loop {
        let connecting = TcpStream::connect(address);
        match tokio::time::timeout(Duration::from_millis(200), connecting).await {
            Ok(stream) => queue.push(tokio::spawn(async move {
                let _open = stream.unwrap();
                std::future::pending().await
            })),
            Err(_) => return (listener, queue),
        }
    }
}

#[tokio::test]
async fn net_03_an_address_that_swallows_packets_is_a_definite_error_and_no_wait() {
    let (listener, _queue) = black_hole().await;
    let address = listener.local_addr().unwrap();
    let sidecar = unaware(address, |config| {
        config.el.connect_timeout = Duration::from_millis(50);
    })
    .await;
    for request in [golden("12-osaka-newPayload").to_string(), ETH.to_owned()] {
        // By a clock that goes on as soon as nothing else happens.
        tokio::time::pause();
        let said = tokio::time::timeout(Duration::from_secs(1), call(&sidecar, request)).await;
        tokio::time::resume();
        let said = said.expect("an answer in time");
        assert_eq!(said["error"]["code"], -32603, "{said}");
        let message = said["error"]["message"].as_str().unwrap();
        assert!(message.contains(&address.to_string()), "{message}");
        assert!(message.contains("cannot be reached"), "{message}");
    }
}
