//! How a WebSocket ends, and what becomes of its calls.

use super::*;
use futures_util::{SinkExt, StreamExt};
use support::scripted_el::answer;
use tokio_tungstenite::tungstenite::{Message, protocol::frame::coding::CloseCode};

/// An EL whose payloads wait to be let go, and tell when they are done.
struct SlowPayloads {
    el: ScriptedEl,
    go: Arc<Notify>,
    done: mpsc::UnboundedReceiver<()>,
}

async fn slow_payloads() -> SlowPayloads {
    let go = Arc::new(Notify::new());
    let (tell, done) = mpsc::unbounded_channel();
    let el = ScriptedEl::start({
        let go = go.clone();
        move |seen: Seen| {
            let (go, tell) = (go.clone(), tell.clone());
            async move {
                if seen.path == "/engine/v1/payloads" {
                    go.notified().await;
                    tell.send(()).unwrap();
                }
                agreeable(seen).await
            }
        }
    })
    .await;
    SlowPayloads { el, go, done }
}

#[tokio::test]
async fn a_ping_is_answered_and_a_close_too() {
    let el = ScriptedEl::start(agreeable).await;
    let sidecar = sidecar(settings(el.address)).await;
    let Socket(mut socket) = Socket::open(&sidecar).await;
    socket.send(Message::Ping("are you there".into())).await.unwrap();
    assert_eq!(socket.next().await.unwrap().unwrap(), Message::Pong("are you there".into()));
    socket.close(None).await.unwrap();
    assert!(matches!(socket.next().await.unwrap().unwrap(), Message::Close(_)));
    assert!(socket.next().await.is_none());
}

#[tokio::test]
async fn time_04_a_call_goes_on_when_its_socket_is_closed_or_lost() {
    let SlowPayloads { mut el, go, mut done } = slow_payloads().await;
    let sidecar = sidecar(settings(el.address)).await;
    for closes in ["with a word", "without"] {
        let mut socket = Socket::open(&sidecar).await;
        socket.send(new_payload(1)).await;
        assert_eq!(el.arrival().await.path, "/engine/v1/payloads");
        if closes == "with a word" {
            socket.0.close(None).await.unwrap();
            assert!(socket.0.next().await.unwrap().unwrap().is_close());
        }
        drop(socket);
        // Another one is served, so the end of the first has been seen since.
        let mut other = Socket::open(&sidecar).await;
        other.send(call(1, "eth_call", json!([]))).await;
        other.json().await;
        assert_eq!(el.arrival().await.path, "/");
        go.notify_one();
        done.recv().await.unwrap();
        // And its turn is over.
        other.send(forkchoice(2, &format!("0x{:064x}", 1))).await;
        assert_eq!(other.json().await["id"], 2);
        assert_eq!(el.arrival().await.path, "/engine/v1/forkchoice");
    }
}

#[tokio::test]
async fn a_stop_lets_calls_under_way_end_and_says_goodbye() {
    let SlowPayloads { mut el, go, done: _done } = slow_payloads().await;
    let sidecar = sidecar(settings(el.address)).await;
    let mut idle = Socket::open(&sidecar).await;
    let mut busy = Socket::open(&sidecar).await;
    busy.send(new_payload(1)).await;
    assert_eq!(el.arrival().await.path, "/engine/v1/payloads");
    let stopped = tokio::spawn(sidecar.stop());
    assert_eq!(idle.closed().await, CloseCode::Away);
    assert!(!stopped.is_finished());
    go.notify_one();
    assert_eq!(busy.json().await["result"]["status"], "SYNCING");
    assert_eq!(busy.closed().await, CloseCode::Away);
    stopped.await.unwrap();
}

#[tokio::test]
async fn a_stop_cuts_what_outlasts_its_grace() {
    let SlowPayloads { mut el, go: _go, done: _done } = slow_payloads().await;
    let settings = Settings {
        grace_period: Some(engine_ssz_proxy::config::Number::Integer(0)),
        ..settings(el.address)
    };
    let sidecar = sidecar(settings).await;
    let mut socket = Socket::open(&sidecar).await;
    socket.send(new_payload(1)).await;
    el.arrival().await;
    sidecar.stop().await;
    assert!(!matches!(socket.0.next().await, Some(Ok(_))));
}

#[tokio::test]
async fn a_message_over_the_limit_is_1009_and_the_calls_before_it_are_answered() {
    let SlowPayloads { mut el, go, done: _done } = slow_payloads().await;
    let settings = Settings {
        body_limit: Some(engine_ssz_proxy::config::Number::Integer(100_000)),
        ..settings(el.address)
    };
    let sidecar = sidecar(settings).await;
    let mut socket = Socket::open(&sidecar).await;
    socket.send(new_payload(1)).await;
    assert_eq!(el.arrival().await.path, "/engine/v1/payloads");
    let frame = call(2, "eth_call", json!(["x".repeat(100_000)])).to_string();
    // It may be cut off before the last of it is written.
    let _ = socket.0.send(Message::text(frame)).await;
    go.notify_one();
    assert_eq!(socket.json().await["id"], 1);
    assert_eq!(socket.closed().await, CloseCode::Size);
    assert_eq!(el.paths(), ["/engine/v1/payloads"]);
}

/// A token handed on with every message grows old; a new socket brings a new one.
#[tokio::test]
async fn a_token_the_el_refuses_is_an_error_of_the_call_and_the_end_of_the_socket() {
    let el = ScriptedEl::start(|seen: Seen| async move {
        match seen.headers["authorization"].to_str().unwrap() {
            "Bearer stale" => answer(401, "text/plain", "token is expired"),
            _ => agreeable(seen).await,
        }
    })
    .await;
    let sidecar = sidecar(settings(el.address)).await;
    let mut socket = Socket::open_as(&sidecar, Some("Bearer stale".to_owned())).await.unwrap();
    socket.send(json!([call(1, "eth_call", json!([])), call("b", "eth_call", json!([]))])).await;
    let answers = socket.json().await;
    for (answer, id) in answers.as_array().unwrap().iter().zip([json!(1), json!("b")]) {
        assert_eq!(answer["id"], id);
        assert_eq!(answer["error"]["code"], -32603);
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("401") && message.contains("token is expired"), "{message}");
    }
    assert_eq!(socket.closed().await, CloseCode::Policy);
}

#[tokio::test]
async fn a_panic_behind_the_door_would_be_an_answer_too() {
    use engine_ssz_proxy::cl::{Auth, Call, Config, Handler, Outcome, Server};

    #[derive(Clone)]
    struct Panics;

    impl Handler for Panics {
        type Place = ();

        async fn call(&self, call: Call) -> Outcome {
            panic!("{} bytes", call.body.len());
        }
    }

    let server = Server::bind(support::any_port()).await.unwrap();
    let url = format!("ws://{}/", server.place());
    let config = Config::new(Auth::Forward);
    let served = tokio::spawn(server.serve(config, Panics, std::future::pending()));
    let (socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    let connected = socket;
    let mut socket = Socket(connected);
    for id in 1..3 {
        socket.send(call(id, "eth_call", json!([]))).await;
        let answer = socket.json().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32603)));
    }
    served.abort();
}
