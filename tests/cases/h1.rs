//! H1-01 to H1-11: HTTP/1.1, on either side.

use crate::{
    log::Log,
    peer::{Http1, Peer, Preface, patiently},
    peers::{self, call, call_at, calls, in_front, in_front_of},
    port::{self, Asked, Deed, Port},
    raw::Connection,
    scene::{SYNCING, attributes, forkchoice, golden, golden_ssz, rpc},
    websocket::{Socket, call as message},
};
use engine_ssz_proxy::{cl::Auth, el::Tokens, serve::Sidecar};
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};
use tokio::sync::{Barrier, Notify};

const ETH: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_syncing"}"#;

fn new_payload() -> Value {
    golden("12-osaka-newPayload")
}

fn get_payload() -> Value {
    rpc("engine_getPayloadV5", json!(["0x0000000000000001"]))
}

/// A call that must not be given a status which the EL did not say.
fn assert_no_status(said: &Value) {
    assert_eq!(said["error"]["code"], -32603, "{said}");
    assert!(said["result"].is_null(), "{said}");
}

/// An EL that answers one call on each connection, and ends the connection as soon as the next one
/// has come over it.
async fn one_call_a_connection(end: Deed, at_once: usize) -> Port {
    let used = Arc::new(Mutex::new(HashSet::new()));
    let barrier = Arc::new(Barrier::new(at_once));
    Port::http1(move |asked: Asked| {
        let is_first = used.lock().unwrap().insert(asked.connection);
        let is_warm_up = used.lock().unwrap().len() <= at_once;
        let (end, barrier) = (end.clone(), barrier.clone());
        async move {
            if !is_first {
                return end;
            }
            if is_warm_up {
                barrier.wait().await;
            }
            Deed::Answer(port::syncing(&asked))
        }
    })
    .await
}

/// The last two requests are the same call: the first over a connection that was used before, the
/// second over a new one.
fn assert_sent_again_on_a_new_connection(el: &Port, earlier: usize) {
    let calls = el.calls();
    let (before, copies) = calls.split_at(earlier);
    let used: HashSet<_> = before.iter().map(|asked| asked.connection).collect();
    assert_eq!(copies.len(), 2, "{copies:?}");
    assert!(used.contains(&copies[0].connection));
    assert!(!used.contains(&copies[1].connection), "not over the next idle one");
}

#[tokio::test]
async fn h1_01_a_command_whose_idle_connection_was_closed_goes_to_json_rpc_on_a_new_one() {
    for end in [Deed::Last(Vec::new()), Deed::Reset] {
        for request in [new_payload(), forkchoice("V3", &[])] {
            let el = one_call_a_connection(end.clone(), 1).await;
            let sidecar = in_front(el.address, |_| {}).await;
            call(&sidecar, &request).await;
            let said = call(&sidecar, &request).await;
            assert!(!said["result"].is_null(), "{said}");
            assert_sent_again_on_a_new_connection(&el, 1);
            assert_eq!(el.paths()[2], "/", "{request}");
        }
    }
}

#[tokio::test]
async fn h1_01_an_el_that_dies_of_each_payload_over_rest_still_gets_each_by_json_rpc() {
    for end in [Deed::Last(Vec::new()), Deed::Reset] {
        let el = Port::http1(move |asked: Asked| {
            let dies = asked.path() == "/engine/v1/payloads";
            let end = end.clone();
            async move { if dies { end } else { Deed::Answer(port::syncing(&asked)) } }
        })
        .await;
        let sidecar = in_front(el.address, |_| {}).await;
        for slot in 0..3 {
            assert!(call(&sidecar, forkchoice("V3", &[])).await["error"].is_null());
            let said = call(&sidecar, new_payload()).await;
            assert_eq!(said["result"], "by JSON-RPC", "{slot}: {said}");
        }
    }
}

#[tokio::test]
async fn h1_01_a_relayed_call_is_sent_once_more_on_a_new_connection_and_not_on_the_next_idle_one() {
    for end in [Deed::Last(Vec::new()), Deed::Reset] {
        let el = one_call_a_connection(end, 5).await;
        let sidecar = in_front(el.address, |_| {}).await;
        let five = [(); 5].map(|()| tokio::spawn(call_at(sidecar.address(), ETH.to_owned())));
        for said in five {
            assert_eq!(said.await.unwrap()["result"], "by JSON-RPC");
        }
        assert_eq!(call(&sidecar, ETH).await["result"], "by JSON-RPC");
        assert_sent_again_on_a_new_connection(&el, 5);
    }
}

#[tokio::test]
async fn h1_02_a_build_that_the_el_may_have_begun_is_not_asked_for_twice_and_nothing_thrice() {
    let build = forkchoice("V3", &[attributes(0x90)]);
    for is_reused in [false, true] {
        let ends = Arc::new(Mutex::new(!is_reused));
        let el = Port::http1({
            let ends = ends.clone();
            move |asked: Asked| {
                let end = *ends.lock().unwrap();
                async move {
                    if end { Deed::Last(Vec::new()) } else { Deed::Answer(port::syncing(&asked)) }
                }
            }
        })
        .await;
        let sidecar = in_front(el.address, |_| {}).await;
        if is_reused {
            call(&sidecar, forkchoice("V3", &[])).await;
            *ends.lock().unwrap() = true;
        }
        assert_no_status(&call(&sidecar, &build).await);
        let copies: Vec<_> = el.paths().into_iter().skip(usize::from(is_reused)).collect();
        assert_eq!(copies, ["/engine/v1/forkchoice"], "{is_reused}");
    }
    for request in [new_payload(), forkchoice("V3", &[])] {
        let el = Port::http1(|_| async { Deed::Last(Vec::new()) }).await;
        let sidecar = in_front(el.address, |_| {}).await;
        assert_no_status(&call(&sidecar, &request).await);
        assert_eq!(el.calls().len(), 2, "once over REST, once over JSON-RPC");
        assert_eq!(el.paths()[1], "/");
    }
}

#[tokio::test]
async fn h1_03_a_part_of_an_answer_is_never_read_even_if_it_could_be() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\n";
    let parts = |fragment: &[u8]| {
        let short = format!("{head}content-length: 41\r\n\r\n");
        let open = format!("{head}transfer-encoding: chunked\r\n\r\n{:x}\r\n", fragment.len());
        [[short.as_bytes(), fragment].concat(), [open.as_bytes(), fragment, b"\r\n"].concat()]
    };
    // A whole SYNCING, had it come with its end.
    for part in parts(&SYNCING) {
        for (json_rpc, request) in
            [(true, new_payload()), (false, new_payload()), (true, get_payload())]
        {
            let part = part.clone();
            let el = Port::http1(move |asked: Asked| {
                let part = part.clone();
                async move {
                    match asked.path() {
                        "/" if json_rpc => Deed::Answer(port::by_json_rpc(&asked)),
                        _ => Deed::Last(part),
                    }
                }
            })
            .await;
            let sidecar = in_front(el.address, |_| {}).await;
            let said = call(&sidecar, &request).await;
            if json_rpc {
                assert_eq!(said["result"], "by JSON-RPC", "{said}");
            } else {
                assert_no_status(&said);
            }
            assert_eq!(el.calls().len(), 2);
        }
    }
}

#[tokio::test]
async fn h1_04_the_body_is_asked_for_after_the_head_has_passed_and_the_els_1xx_end_here() {
    let secret: engine_ssz_proxy::jwt::Secret = "11".repeat(32).parse().unwrap();
    let el = Port::http1(|asked: Asked| async move {
        let early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n";
        Deed::Answer([early.as_slice(), &port::syncing(&asked)].concat())
    })
    .await;
    let sidecar = in_front(el.address, |config| {
        config.cl.auth = Auth::Check(secret.clone());
        config.cl.body_limit = 100_000;
        config.el.tokens = Tokens::Mint(secret.clone());
    })
    .await;
    let token = secret.mint(engine_ssz_proxy::cl::system_clock());
    let expecting = async |token: &str, length: usize| {
        let mut connection = Connection::to(sidecar.address()).await;
        let head = format!(
            "POST / HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
             expect: 100-continue\r\ncontent-length: {length}\r\n\r\n"
        );
        connection.write(head.as_bytes()).await;
        let (head, _) = connection.response().await;
        (connection, head)
    };
    for request in [new_payload(), rpc("eth_syncing", json!([]))] {
        let body = request.to_string();
        let (mut connection, head) = expecting(&token, body.len()).await;
        assert!(head.starts_with("HTTP/1.1 100 "), "{head}");
        connection.write(body.as_bytes()).await;
        let (head, said) = connection.response().await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert!(!head.contains("link"), "{head}");
        let said: Value = serde_json::from_slice(&said).unwrap();
        assert!(!said["result"].is_null(), "{said}");
    }
    let (_, head) = expecting("not.a.token", 10).await;
    assert!(head.starts_with("HTTP/1.1 401 "), "{head}");
    let (_, head) = expecting(&token, 100_001).await;
    assert!(head.starts_with("HTTP/1.1 413 "), "{head}");
    assert_eq!(el.paths(), ["/engine/v1/payloads", "/"]);
    assert!(el.seen().iter().all(|asked| asked.header("expect").is_none()));
}

/// RFC 9112, section 6.1, lets a server take chunks that come with a length if it closes after the
/// answer; it is such a request that must not be followed by another one. Section 7.1 has no bound
/// for a chunk: it is the body's limit that a large one meets.
#[tokio::test]
async fn h1_05_framings_in_conflict_end_the_connection_and_no_framing_reaches_the_el() {
    let el = Port::http1(|asked: Asked| async move { Deed::Answer(port::syncing(&asked)) }).await;
    let sidecar = in_front(el.address, |config| config.cl.body_limit = 1_000_000).await;
    let head = "POST / HTTP/1.1\r\nhost: x\r\nauthorization: Bearer a.b.c\r\n\
                content-type: application/json\r\n";
    let filler = "x".repeat(1_000_001);
    for (framing, body, status) in [
        ("transfer-encoding: chunked", format!("80000000\r\n{filler}"), "413"),
        ("transfer-encoding: chunked", "10000000000000000\r\n{}".to_owned(), "400"),
        ("transfer-encoding: chunked", "xyz\r\n{}".to_owned(), "400"),
        ("content-length: 2\r\ncontent-length: 3", "{}".to_owned(), "400"),
        ("transfer-encoding: chunked, identity", "{}".to_owned(), "400"),
    ] {
        let mut connection = Connection::to(sidecar.address()).await;
        connection.write(format!("{head}{framing}\r\n\r\n{body}").as_bytes()).await;
        let (head, _) = connection.response().await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{framing}: {head}");
        connection.assert_closed().await;
    }
    assert_eq!(el.paths(), [""; 0]);

    let mut connection = Connection::to(sidecar.address()).await;
    let hops = "content-length: 3\r\ntransfer-encoding: chunked\r\nconnection: x-mine, te\r\n\
                x-mine: 1\r\nte: trailers\r\nkeep-alive: timeout=5\r\nproxy-connection: close\r\n\
                trailer: x-end\r\n";
    let (first, second) = ETH.split_at(10);
    let chunks = format!("a\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n", second.len());
    let smuggled = "GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n";
    connection.write(format!("{head}{hops}\r\n{chunks}{smuggled}").as_bytes()).await;
    let (answer, _) = connection.response().await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    connection.assert_closed().await;
    let [asked] = el.calls().try_into().expect("one call");
    assert_eq!(asked.header("content-length"), Some(ETH.len().to_string().as_str()));
    assert_eq!(asked.body, ETH.as_bytes());
    for name in [
        "transfer-encoding",
        "connection",
        "x-mine",
        "te",
        "keep-alive",
        "proxy-connection",
        "trailer",
    ] {
        assert_eq!(asked.header(name), None, "{}", asked.head);
    }
}

/// `{"jsonrpc":"2.0","id":1,"result":"0x1"}` and SYNCING.
const GZIP_JSON: &str = "1f8b0800000000000203ab56ca2acecf2b2a4856b25232d23350d251ca4c51b232d4512a4a2d2ecd29018a1a54182ad50200c023c3ed27000000";
const GZIP_SYNCING: &str = "1f8b080000000000020363e26460600061008968b8aa09000000";

#[tokio::test]
async fn h1_06_compressed_bytes_that_nobody_asked_for_are_not_an_answer() {
    let encoded = |content_type: &str, hex: &str| {
        let body = const_hex::decode(hex).unwrap();
        let length = body.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-type: {content_type}\r\n\
             content-length: {length}\r\n\r\n"
        );
        [head.as_bytes(), &body].concat()
    };
    let ssz = encoded("application/octet-stream", GZIP_SYNCING);
    let json = encoded("application/json", GZIP_JSON);
    for (rest, json_rpc, wanted) in [
        (ssz.clone(), None, Ok("by JSON-RPC")),
        // Not compressed at all, but said to be.
        (
            encoded("application/octet-stream", &const_hex::encode(SYNCING)),
            None,
            Ok("by JSON-RPC"),
        ),
        // Its length is not worth a byte of room: it is never unpacked.
        (
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-type: application/octet-stream\r\n\
              content-length: 1073741824\r\n\r\n"
                .to_vec(),
            None,
            Ok("by JSON-RPC"),
        ),
        (ssz, Some(json), Err(-32603)),
    ] {
        let el = Port::http1(move |asked: Asked| {
            let (rest, json_rpc) = (rest.clone(), json_rpc.clone());
            async move {
                Deed::Last(match asked.path() {
                    "/" => json_rpc.unwrap_or_else(|| port::by_json_rpc(&asked)),
                    _ => rest,
                })
            }
        })
        .await;
        let sidecar = in_front(el.address, |_| {}).await;
        let said = call(&sidecar, new_payload()).await;
        match wanted {
            Ok(result) => assert_eq!(said["result"], result, "{said}"),
            Err(code) => assert_eq!(said["error"]["code"], code, "{said}"),
        }
        assert_eq!(el.paths(), ["/engine/v1/payloads", "/"]);
        assert!(el.calls().iter().all(|asked| asked.header("accept-encoding") == Some("identity")));
    }
}

/// As for an answer whose meaning cannot be used: the next one would be no better.
#[tokio::test]
async fn h1_06_a_build_whose_answer_is_encoded_or_too_large_is_asked_for_by_json_rpc() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\n";
    for unfit in ["content-encoding: gzip\r\ncontent-length: 0", "content-length: 1073741824"] {
        let rest = format!("{head}{unfit}\r\n\r\n");
        let el = Port::http1(move |asked: Asked| {
            let rest = rest.clone();
            async move {
                match asked.path() {
                    "/" => Deed::Answer(port::by_json_rpc(&asked)),
                    _ => Deed::Last(rest.into_bytes()),
                }
            }
        })
        .await;
        let sidecar = in_front(el.address, |_| {}).await;
        let said = call(&sidecar, forkchoice("V3", &[attributes(0x90)])).await;
        assert_eq!(said["result"], "by JSON-RPC", "{unfit}: {said}");
        assert_eq!(el.paths(), ["/engine/v1/forkchoice", "/"]);
    }
}

/// An answer is a copy that the EL had, so that the one over JSON-RPC is the last.
#[tokio::test]
async fn h1_01_a_payload_answered_uselessly_over_rest_arrives_once_more_and_not_twice() {
    let el = Port::http1(|asked: Asked| async move {
        match (asked.path(), asked.connection) {
            // The connection is used when the payload comes over JSON-RPC.
            ("/engine/v1/payloads", _) => Deed::Answer(port::ssz([1, 2, 3])),
            ("/engine/v1/forkchoice", _) => Deed::Answer(port::syncing(&asked)),
            _ => Deed::Last(Vec::new()),
        }
    })
    .await;
    let sidecar = in_front(el.address, |_| {}).await;
    assert!(call(&sidecar, forkchoice("V3", &[])).await["error"].is_null());
    assert_no_status(&call(&sidecar, new_payload()).await);
    assert_eq!(el.paths(), ["/engine/v1/forkchoice", "/engine/v1/payloads", "/"]);
}

#[tokio::test]
async fn h1_07_json_is_taken_under_any_name_and_ssz_sent_under_its_only_one() {
    let el = Port::http1(|asked: Asked| async move { Deed::Answer(port::syncing(&asked)) }).await;
    let sidecar = in_front(el.address, |_| {}).await;
    let said_by = async |content_type: &str| {
        let body = new_payload().to_string();
        let mut connection = Connection::to(sidecar.address()).await;
        let head = format!(
            "POST / HTTP/1.1\r\nhost: x\r\nauthorization: Bearer a.b.c\r\n{content_type}\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        connection.write(head.as_bytes()).await;
        connection.response().await
    };
    for content_type in [
        "",
        "content-type: application/json; charset=utf-8\r\n",
        "content-type: Application/JSON\r\n",
        "content-type: text/plain\r\n",
    ] {
        let (head, said) = said_by(content_type).await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{content_type}: {head}");
        assert!(String::from_utf8(said).unwrap().contains("SYNCING"), "{content_type}");
    }
    let calls = el.calls();
    assert_eq!(calls.len(), 4);
    for asked in calls {
        assert_eq!(asked.path(), "/engine/v1/payloads");
        assert_eq!(asked.header("content-type"), Some("application/octet-stream"));
    }
    let (head, _) = said_by("content-type: text/html\r\n").await;
    assert!(head.starts_with("HTTP/1.1 400 "), "{head}");
    assert_eq!(el.calls().len(), 4);

    // A 415 of the EL ends the use of the route, and is not the CL's.
    let el = Port::http1(|asked: Asked| async move {
        Deed::Answer(match asked.path() {
            "/engine/v1/payloads" => {
                port::response("415 Unsupported Media Type", "text/plain", b"")
            }
            _ => port::syncing(&asked),
        })
    })
    .await;
    let sidecar = in_front(el.address, |_| {}).await;
    for _ in 0..2 {
        assert_eq!(call(&sidecar, new_payload()).await["result"], "by JSON-RPC");
    }
    call(&sidecar, forkchoice("V3", &[])).await;
    assert_eq!(el.paths(), ["/engine/v1/payloads", "/", "/", "/engine/v1/forkchoice"]);
}

#[tokio::test]
async fn h1_08_ssz_is_asked_for_by_name_and_nothing_else_is_read_as_ssz() {
    for said in [None, Some("application/json"), Some("text/html"), Some("application/ssz")] {
        let el = Port::http1(move |asked: Asked| async move {
            let ssz = golden_ssz("12-osaka-getPayload");
            Deed::Answer(match (asked.path(), said) {
                ("/", _) => port::by_json_rpc(&asked),
                (_, None) => port::ssz(ssz),
                (_, Some(content_type)) => port::response("200 OK", content_type, &ssz),
            })
        })
        .await;
        let sidecar = in_front(el.address, |_| {}).await;
        let answer = call(&sidecar, get_payload()).await;
        match said {
            None => assert_eq!(answer["result"], golden("12-osaka-getPayload")["result"]),
            Some(_) => assert_eq!(answer["result"], "by JSON-RPC", "{said:?}"),
        }
        let asked = el.calls().remove(0);
        assert_eq!(asked.header("accept"), Some("application/octet-stream"));
        call(
            &sidecar,
            rpc(
                "engine_getClientVersionV1",
                json!([{"code": "XX", "name": "x", "version": "1", "commit": "0x00000000"}]),
            ),
        )
        .await;
        for asked in el.seen() {
            if asked.path().ends_with("capabilities") || asked.path().ends_with("identity") {
                assert_eq!(asked.header("accept"), Some("application/json"), "{}", asked.head);
            }
        }
        assert!(el.paths().iter().any(|path| path == "/engine/v1/identity"));
    }
}

#[tokio::test]
async fn h1_09_side_calls_do_not_wait_behind_a_payload_over_http1() {
    let release = Arc::new(Notify::new());
    let gate = release.clone();
    let script = move |seen: crate::peer::Seen| {
        let gate = gate.clone();
        async move {
            match seen.path.as_str() {
                "/engine/v1/payloads" => gate.notified().await,
                "/engine/v1/blobs/v2" => return crate::peer::reply(204, ""),
                _ => {}
            }
            peers::syncing(&seen)
        }
    };
    let el = Peer::speaking(Preface::Answered400, Http1::Served, peers::el(script)).await;
    let sidecar = in_front_of(&el).await;
    let held = tokio::spawn(call_at(sidecar.address(), new_payload().to_string()));
    el.until_seen("/engine/v1/payloads", 1).await;
    let behind = tokio::spawn(call_at(sidecar.address(), forkchoice("V3", &[]).to_string()));
    let hash = format!("0x01{}", "00".repeat(31));
    assert_eq!(
        call(&sidecar, rpc("engine_getBlobsV2", json!([[hash]]))).await["result"],
        Value::Null
    );
    assert_eq!(call(&sidecar, ETH).await["result"], "by JSON-RPC");
    assert_eq!(peers::paths(&el), ["/engine/v1/payloads", "/engine/v1/blobs/v2", "/"]);
    release.notify_one();
    assert_eq!(held.await.unwrap()["result"]["status"], "SYNCING");
    behind.await.unwrap();
    let seen = calls(&el);
    assert_eq!(seen[3].path, "/engine/v1/forkchoice");
    assert_eq!(seen[3].connection, seen[0].connection, "commands keep to their connection");
    assert!(seen[1..3].iter().all(|side| side.connection != seen[0].connection));
}

#[tokio::test]
async fn h1_10_a_websocket_is_served_and_one_message_is_one_call() {
    let el = Peer::start(peers::el(|seen| async move { peers::syncing(&seen) })).await;
    let sidecar = in_front_of(&el).await;
    let mut socket = patiently(Socket::open(&sidecar)).await;
    socket.send(new_payload()).await;
    let said = patiently(socket.json()).await;
    assert_eq!((&said["id"], &said["result"]["status"]), (&new_payload()["id"], &json!("SYNCING")));
    // More than the frames and messages of 16 and 64 MiB that libraries stop at.
    let large = message(7, "eth_call", json!(["x".repeat(70 << 20)]));
    socket.send(large).await;
    let said = patiently(socket.json()).await;
    assert_eq!((&said["id"], &said["result"]), (&json!(7), &json!("by JSON-RPC")));
    let lengths: Vec<_> =
        calls(&el).iter().map(|seen| (seen.path.clone(), seen.body.len())).collect();
    assert_eq!(lengths[0].0, "/engine/v1/payloads");
    assert!(lengths[1].0 == "/" && lengths[1].1 > 70 << 20, "{lengths:?}");
    // Any other protocol is refused at once.
    let mut connection = Connection::to(sidecar.address()).await;
    connection
        .write(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: irc\r\n\r\n")
        .await;
    let (head, _) = connection.response().await;
    assert!(head.starts_with("HTTP/1.1 405 "), "{head}");
}

async fn with_host(sidecar: &Sidecar, body: &str) -> String {
    let mut connection = Connection::to(sidecar.address()).await;
    let head = format!(
        "POST / HTTP/1.1\r\nhost: engine-proxy:8551\r\nauthorization: Bearer a.b.c\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.write(head.as_bytes()).await;
    connection.response().await.0
}

#[tokio::test]
async fn h1_11_the_el_is_called_by_its_own_name_and_a_403_is_told_and_not_worked_around() {
    for preface in [Preface::Served, Preface::Answered400] {
        let script = peers::el(|seen| async move { peers::syncing(&seen) });
        let el = Peer::speaking(preface, Http1::Served, script).await;
        let sidecar = in_front_of(&el).await;
        for body in [new_payload().to_string(), get_payload().to_string(), ETH.to_owned()] {
            let head = with_host(&sidecar, &body).await;
            assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        }
        for seen in el.seen() {
            let host = seen.authority.as_deref().or(seen.header("host"));
            assert_eq!(host, Some(el.address.to_string().as_str()), "{seen:?}");
        }
    }

    let log = Log::of_this_thread();
    let refusing = Arc::new(Mutex::new(true));
    let refuses = refusing.clone();
    let el = Peer::start(move |seen: crate::peer::Seen| {
        let refuses = *refuses.lock().unwrap();
        let inner = peers::el(|seen| async move { peers::syncing(&seen) });
        async move {
            match refuses {
                true => peers::answer(403, "text/plain", "invalid host specified\n"),
                false => inner(seen).await,
            }
        }
    })
    .await;
    let sidecar = peers::unaware(el.address, |_| {}).await;
    peers::until(&sidecar, |surface| surface.why.contains("403")).await;
    let head = with_host(&sidecar, &new_payload().to_string()).await;
    assert!(head.starts_with("HTTP/1.1 403 "), "{head}");
    let warnings = log.lines("WARN");
    assert!(warnings.iter().any(|line| line.contains("authrpc.vhosts")), "{warnings:?}");
    // The setting was mended: no trace of the 403 is left.
    *refusing.lock().unwrap() = false;
    sidecar.proxy().el().doubt(sidecar.proxy().el().surface().epoch);
    peers::until_rest(&sidecar).await;
    assert_eq!(call(&sidecar, new_payload()).await["result"]["status"], "SYNCING");
}
