//! ELs of which it matters what came over which connection, and sidecars in front of them.

use crate::{
    peer::{Peer, Reply, Seen, patiently, reply},
    support::{post, scripted_el::CAPABILITIES, settings},
};
use bytes::Bytes;
use engine_ssz_proxy::{config::Config, el::Surface, engine::Schedule, serve::Sidecar, wire::Fork};
use serde_json::{Value, value::RawValue};
use std::{net::SocketAddr, pin::Pin, time::Duration};

/// The call by which a sidecar without a secret gets to know a bearer.
pub const GREETING: &str = r#"{"jsonrpc":"2.0","id":0,"method":"eth_chainId"}"#;
const NO_METHOD: &str =
    r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"the method does not exist"}}"#;

/// A sidecar that has found its EL.
pub async fn in_front_of(peer: &Peer) -> Sidecar {
    in_front(peer.address, |_| {}).await
}

/// The same with settings of its own. Tries follow each other closely.
pub async fn in_front(el: SocketAddr, change: impl FnOnce(&mut Config)) -> Sidecar {
    let sidecar = unaware(el, change).await;
    patiently(sidecar.el_found()).await;
    sidecar
}

/// A chain whose blocks are of those forks alone, oldest first.
pub fn chain_of(forks: &[Fork]) -> Schedule {
    let begun = Fork::SPECIFIED.iter().filter(|fork| **fork > Fork::Paris);
    let begun = begun.filter(|fork| Some(*fork) <= forks.last());
    let time = |fork: &Fork| forks.iter().position(|other| other == fork).unwrap_or(0);
    let times: Vec<_> = begun.map(|fork| format!(r#""{fork}Time":{}"#, time(fork))).collect();
    Schedule::from_genesis(&format!(r#"{{"config":{{{}}}}}"#, times.join(","))).unwrap()
}

/// The same, and the EL may not be there yet.
pub async fn unaware(el: SocketAddr, change: impl FnOnce(&mut Config)) -> Sidecar {
    let mut config = settings(el).check().unwrap();
    config.el.backoff_min = Duration::from_millis(1);
    config.el.backoff_max = Duration::from_millis(10);
    change(&mut config);
    let sidecar = Sidecar::start(config).await.unwrap();
    post(sidecar.address(), GREETING).await;
    sidecar
}

/// Waits until what the sidecar knows of its EL is so.
pub async fn until(sidecar: &Sidecar, is_so: impl Fn(&Surface) -> bool) {
    let mut changes = sidecar.proxy().el().surface_changed();
    patiently(changes.wait_for(|surface| is_so(surface))).await.unwrap();
}

pub async fn until_rest(sidecar: &Sidecar) {
    until(sidecar, |surface| surface.rest.is_some()).await;
}

/// One call of the CL, answered with HTTP 200.
pub async fn call(sidecar: &Sidecar, body: impl ToString) -> Value {
    call_at(sidecar.address(), body.to_string()).await
}

/// The same, for calls at once.
pub async fn call_at(sidecar: SocketAddr, body: String) -> Value {
    let answer = post(sidecar, body).await;
    assert_eq!(answer.status, 200);
    answer.json()
}

/// Answers what a sidecar asks by itself with everything; what is left is the script's.
pub fn el<F, Fut>(script: F) -> impl Fn(Seen) -> Pin<Box<dyn Future<Output = Reply> + Send>> + Clone
where
    F: Fn(Seen) -> Fut,
    F: Clone,
    Fut: Future<Output = Reply> + Send + 'static,
{
    offering(CAPABILITIES, script)
}

/// The same with another capabilities document.
pub fn offering<F, Fut>(
    capabilities: impl Into<Bytes>,
    script: F,
) -> impl Fn(Seen) -> Pin<Box<dyn Future<Output = Reply> + Send>> + Clone
where
    F: Fn(Seen) -> Fut,
    F: Clone,
    Fut: Future<Output = Reply> + Send + 'static,
{
    let capabilities = capabilities.into();
    move |seen| match own_question(&seen) {
        Some(Own::Capabilities) => Box::pin(std::future::ready(json(capabilities.clone()))),
        Some(Own::Spoken) => Box::pin(std::future::ready(reply(405, ""))),
        Some(Own::Greeting) => Box::pin(std::future::ready(result(&seen, r#""0x1""#))),
        Some(Own::Config) => Box::pin(std::future::ready(json(NO_METHOD))),
        None => Box::pin(script(seen)),
    }
}

enum Own {
    Capabilities,
    Spoken,
    Greeting,
    Config,
}

fn own_question(seen: &Seen) -> Option<Own> {
    match seen.path.as_str() {
        path if path.ends_with("/engine/v1/capabilities") => Some(Own::Capabilities),
        _ if seen.method == http::Method::GET && !seen.path.contains("/engine/") => {
            Some(Own::Spoken)
        }
        _ if seen.body == GREETING => Some(Own::Greeting),
        _ if seen.body.ends_with(br#""method":"eth_config","params":[]}"#) => Some(Own::Config),
        _ => None,
    }
}

/// What the EL received for the calls, in order.
pub fn calls(peer: &Peer) -> Vec<Seen> {
    peer.seen().into_iter().filter(|seen| own_question(seen).is_none()).collect()
}

pub fn paths(peer: &Peer) -> Vec<String> {
    calls(peer).into_iter().map(|seen| seen.path).collect()
}

/// How often the EL was asked what it offers.
pub fn probes(peer: &Peer) -> usize {
    peer.seen_on("/engine/v1/capabilities").len()
}

pub fn answer(status: u16, content_type: &str, body: impl Into<Bytes>) -> Reply {
    let mut answer = reply(status, body);
    answer.headers_mut().insert("content-type", content_type.parse().unwrap());
    answer
}

pub fn json(body: impl Into<Bytes>) -> Reply {
    answer(200, "application/json", body)
}

pub fn ssz(body: impl AsRef<[u8]>) -> Reply {
    answer(200, "application/octet-stream", body.as_ref().to_vec())
}

pub fn problem(status: u16, name: &str) -> Reply {
    let body = format!(r#"{{"type":"/engine-api/errors/{name}"}}"#);
    answer(status, "application/problem+json", body)
}

/// A JSON-RPC answer to that call.
pub fn result(seen: &Seen, result: &str) -> Reply {
    json(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id(&seen.body)))
}

pub fn by_json_rpc(seen: &Seen) -> Reply {
    result(seen, r#""by JSON-RPC""#)
}

/// The text of a call's id.
pub fn id(call: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Call<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
    }
    let call: Call<'_> = serde_json::from_slice(call).unwrap();
    call.id.map_or("null", RawValue::get).to_owned()
}

/// An EL that syncs, and has JSON-RPC for the rest.
pub fn syncing(seen: &Seen) -> Reply {
    match seen.path.as_str() {
        "/engine/v1/payloads" => ssz(crate::scene::SYNCING),
        "/engine/v1/forkchoice" => ssz(crate::scene::FORKCHOICE_SYNCING),
        _ => by_json_rpc(seen),
    }
}
