//! Exchanges that go wrong, and whether they may be sent again.

use bytes::Bytes;
use engine_ssz_proxy::el::{
    Caller, El, ElError, ErrorKind, Lane, Next, Phase, Repeat, Resend, TransportChoice,
};
use http::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::peer::{CAPABILITIES, Http1, Peer, Preface, config, open, reply, rest_el, until};

fn outcome(error: &ElError) -> (ErrorKind, Resend) {
    (error.kind().clone(), error.resend())
}

async fn relay(el: &El, lane: Lane) -> ElError {
    el.relay(lane, &Caller::default(), Bytes::from_static(b"{}"), Repeat::Harmless)
        .await
        .unwrap_err()
}

/// Answers each connection's first request with these bytes, then closes.
async fn scripted(answer: &'static [u8]) -> El {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.ends_with(b"{}") {
                stream.read_buf(&mut request).await.unwrap();
            }
            stream.write_all(answer).await.unwrap();
        }
    });
    El::new(config(format!("http://{address}").parse().unwrap()))
}

const LANES: [Lane; 4] = [Lane::Command, Lane::Build, Lane::History, Lane::Relay];

#[tokio::test]
async fn h1_02_a_close_after_the_request_may_have_been_processed() {
    let el = scripted(b"").await;
    for lane in LANES {
        let broken = ErrorKind::Broken { phase: Phase::BeforeAnswer };
        assert_eq!(outcome(&relay(&el, lane).await), (broken, Resend::MaybeProcessed));
    }
}

#[tokio::test]
async fn h1_03_a_part_of_an_answer_is_no_answer() {
    for answer in [
        b"HTTP/1.1 200 OK\r\nContent-Length: 41\r\n\r\n12345678901234567890".as_slice(),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ] {
        let el = scripted(answer).await;
        for lane in LANES {
            let broken = ErrorKind::Broken { phase: Phase::InAnswer };
            assert_eq!(outcome(&relay(&el, lane).await), (broken, Resend::Answered));
        }
    }
}

#[tokio::test]
async fn ssz_07_a_promise_of_a_terabyte_is_refused_before_a_byte_of_it() {
    let el = scripted(b"HTTP/1.1 200 OK\r\nContent-Length: 1099511627776\r\n\r\n").await;
    for lane in LANES {
        assert!(matches!(relay(&el, lane).await.kind(), ErrorKind::TooLarge { .. }));
    }
}

#[tokio::test]
async fn what_is_no_http_is_told_so() {
    let el = scripted(b"SSH-2.0-OpenSSH_9.6\r\n").await;
    for lane in LANES {
        assert_eq!(outcome(&relay(&el, lane).await), (ErrorKind::NotHttp, Resend::Answered));
    }
}

#[tokio::test]
async fn h1_06_an_encoding_nobody_asked_for_is_refused() {
    let peer = Peer::start(|_| async {
        let mut reply = reply(200, "{}");
        reply.headers_mut().insert("content-encoding", "GZIP".parse().unwrap());
        reply
    })
    .await;
    let el = El::new(peer.config());
    let error = relay(&el, Lane::Relay).await;
    assert!(matches!(error.kind(), ErrorKind::BadAnswer { .. }), "{error}");
    assert!(error.to_string().contains("`GZIP`"), "{error}");
}

#[tokio::test]
async fn size_04_an_answer_is_read_up_to_the_limit_and_not_beyond() {
    let peer = Peer::start(|seen| async move {
        let length: usize = std::str::from_utf8(&seen.body).unwrap().parse().unwrap();
        reply(200, vec![7; length])
    })
    .await;
    let mut config = peer.config();
    config.answer_limit = 1_000_000;
    let el = El::new(config);
    for lane in LANES {
        let ask = |length: usize| {
            let body = Bytes::from(length.to_string());
            let el = el.clone();
            async move { el.relay(lane, &Caller::default(), body, Repeat::Harmless).await }
        };
        for length in [0, 1, 999_999, 1_000_000] {
            let answer = ask(length).await.unwrap();
            assert_eq!(answer.body().len(), length);
            assert!(answer.body().iter().all(|byte| *byte == 7));
        }
        let error = ask(1_000_001).await.unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::TooLarge { limit: 1_000_000 });
    }
}

#[tokio::test]
async fn size_05_a_chunked_answer_without_end_is_cut_off_at_the_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = config(format!("http://{}", listener.local_addr().unwrap()).parse().unwrap());
    config.answer_limit = 100_000;
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let mut sent = stream.write_all(head).await;
        while sent.is_ok() {
            sent = stream.write_all(b"5\r\nhello\r\n").await;
        }
    });
    let error = relay(&El::new(config), Lane::Command).await;
    assert_eq!(error.kind(), &ErrorKind::TooLarge { limit: 100_000 });
}

/// Which streams are reset.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Resets {
    All,
    /// All but the first of each connection.
    Later,
}

/// Offers REST over h2c; resets streams for this reason.
async fn resetting(resets: Resets, reason: h2::Reason) -> El {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = config(format!("http://{}", listener.local_addr().unwrap()).parse().unwrap());
    config.transport = TransportChoice::H2c;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let Ok(mut server) = h2::server::handshake(stream).await else { return };
                let mut first = true;
                while let Some(Ok((request, mut respond))) = server.accept().await {
                    let answered = resets == Resets::Later && first;
                    first = false;
                    if answered || request.uri().path() == "/engine/v1/capabilities" {
                        let mut body =
                            respond.send_response(http::Response::new(()), false).unwrap();
                        body.send_data(Bytes::from_static(CAPABILITIES.as_bytes()), true).unwrap();
                    } else {
                        respond.send_reset(reason);
                    }
                }
            });
        }
    });
    let el = open(config);
    until(&el, |surface| surface.rest.is_some()).await;
    el
}

async fn send(el: &El, lane: Lane) -> ElError {
    let request = Request::post("/payloads").body(Bytes::from_static(b"ssz")).unwrap();
    el.send(lane, &Caller::default(), request, Repeat::Harmless).await.unwrap_err()
}

#[tokio::test]
async fn h2_02_only_a_refused_stream_was_never_processed() {
    let broken = ErrorKind::Broken { phase: Phase::BeforeAnswer };
    for (reason, resend) in [
        (h2::Reason::REFUSED_STREAM, Resend::NeverSent),
        (h2::Reason::HTTP_1_1_REQUIRED, Resend::NeverSent),
        (h2::Reason::INTERNAL_ERROR, Resend::MaybeProcessed),
        (h2::Reason::CANCEL, Resend::MaybeProcessed),
    ] {
        let el = resetting(Resets::All, reason).await;
        for lane in LANES {
            assert_eq!(outcome(&send(&el, lane).await), (broken.clone(), resend), "{reason}");
            assert!(el.surface().rest.is_some(), "one stream says nothing of the EL");
        }
    }
}

#[tokio::test]
async fn h2_02_a_request_refused_on_a_used_connection_is_sent_once_more_on_a_new_one() {
    let exchange = async |el: &El, lane, repeat| {
        let request = Request::post("/payloads").body(Bytes::from_static(b"ssz")).unwrap();
        el.send(lane, &Caller::default(), request, repeat).await
    };
    for lane in LANES {
        let el = resetting(Resets::Later, h2::Reason::REFUSED_STREAM).await;
        for _ in 0..3 {
            exchange(&el, lane, Repeat::OnlyIfNeverSent).await.unwrap();
        }
        let el = resetting(Resets::Later, h2::Reason::INTERNAL_ERROR).await;
        exchange(&el, lane, Repeat::OnlyIfNeverSent).await.unwrap();
        let error = exchange(&el, lane, Repeat::OnlyIfNeverSent).await.unwrap_err();
        assert_eq!((error.resend(), error.next()), (Resend::MaybeProcessed, Next::GiveUp));
    }
}

#[tokio::test]
async fn h2_02_a_stream_reset_on_a_used_connection_that_lives_goes_to_json_rpc_at_once() {
    for reason in [h2::Reason::INTERNAL_ERROR, h2::Reason::CANCEL] {
        for (lane, repeat) in LANES.map(|lane| match lane {
            Lane::Command => (lane, Repeat::OnceMore),
            _ => (lane, Repeat::Harmless),
        }) {
            let el = resetting(Resets::Later, reason).await;
            let ask = async || {
                let request = Request::post("/payloads").body(Bytes::from_static(b"ssz")).unwrap();
                el.send(lane, &Caller::default(), request, repeat).await
            };
            ask().await.unwrap();
            let error = ask().await.unwrap_err();
            let said = (error.resend(), error.next());
            assert_eq!(said, (Resend::MaybeProcessed, Next::JsonRpc), "{lane:?} {reason}");
            assert!(el.surface().rest.is_some(), "one stream says nothing of the EL");
        }
    }
}

/// Offers REST over h2c and answers a head, then refuses the stream it has begun to answer.
async fn refusing_late() -> El {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = config(format!("http://{}", listener.local_addr().unwrap()).parse().unwrap());
    config.transport = TransportChoice::H2c;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let Ok(mut server) = h2::server::handshake(stream).await else { return };
                while let Some(Ok((request, mut respond))) = server.accept().await {
                    let mut body = respond.send_response(http::Response::new(()), false).unwrap();
                    if request.uri().path() == "/engine/v1/capabilities" {
                        body.send_data(Bytes::from_static(CAPABILITIES.as_bytes()), true).unwrap();
                        continue;
                    }
                    // Once the first bytes are out, the head is.
                    body.reserve_capacity(1);
                    body.send_data(Bytes::from_static(b"s"), false).unwrap();
                    tokio::spawn(async move {
                        body.reserve_capacity(1);
                        std::future::poll_fn(|cx| body.poll_capacity(cx)).await;
                        body.send_reset(h2::Reason::REFUSED_STREAM);
                    });
                }
            });
        }
    });
    let el = open(config);
    until(&el, |surface| surface.rest.is_some()).await;
    el
}

#[tokio::test]
async fn h2_02_a_stream_refused_within_its_answer_was_seen() {
    let el = refusing_late().await;
    for lane in LANES {
        let error = send(&el, lane).await;
        let broken = ErrorKind::Broken { phase: Phase::InAnswer };
        assert_eq!(outcome(&error), (broken, Resend::Answered), "{lane:?}");
    }
}

#[tokio::test]
async fn h2_01_a_stream_above_the_goaways_last_was_never_processed() {
    for lane in LANES {
        let peer = Peer::speaking(Preface::ServedOnceThenGoAway, Http1::Served, rest_el).await;
        let mut config = peer.config();
        config.transport = TransportChoice::H2c;
        let el = open(config);
        until(&el, |surface| surface.rest.is_some()).await;
        let error = send(&el, lane).await;
        assert_eq!(error.resend(), Resend::NeverSent, "{lane:?}: {error}");
    }
}

#[tokio::test]
async fn h2_07_sixteen_megabytes_come_in_without_a_window_update() {
    const WINDOW: usize = 16 << 20;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = config(format!("http://{}", listener.local_addr().unwrap()).parse().unwrap());
    config.transport = TransportChoice::H2c;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut server = h2::server::Builder::new();
                server.max_send_buffer_size(2 * WINDOW);
                let Ok(mut server) = server.handshake::<_, Bytes>(stream).await else { return };
                while let Some(Ok((request, mut respond))) = server.accept().await {
                    let mut body = respond.send_response(http::Response::new(()), false).unwrap();
                    let answer = match request.uri().path() {
                        "/engine/v1/capabilities" => Bytes::from_static(CAPABILITIES.as_bytes()),
                        _ => {
                            body.reserve_capacity(2 * WINDOW);
                            Bytes::from(body.capacity().to_string())
                        }
                    };
                    body.send_data(answer, true).unwrap();
                }
            });
        }
    });
    let el = open(config);
    until(&el, |surface| surface.rest.is_some()).await;
    for lane in LANES {
        let request = Request::get("/window").body(Bytes::new()).unwrap();
        let answer = el.send(lane, &Caller::default(), request, Repeat::Harmless).await.unwrap();
        assert_eq!(answer.body(), &WINDOW.to_string(), "{lane:?}");
    }
}

#[tokio::test]
async fn a_dropped_exchange_leaves_the_lane_usable() {
    let peer = Peer::start(|seen| async move {
        if seen.body == "hang" {
            std::future::pending::<()>().await;
        }
        rest_el(seen).await
    })
    .await;
    for choice in [TransportChoice::H2c, TransportChoice::Http1] {
        let mut config = peer.config();
        config.transport = choice;
        let el = open(config);
        until(&el, |surface| surface.rest.is_some()).await;
        let hanging = tokio::spawn({
            let el = el.clone();
            async move {
                let request = Request::post("/x").body(Bytes::from_static(b"hang")).unwrap();
                el.send(Lane::Command, &Caller::default(), request, Repeat::Harmless)
                    .await
                    .map(drop)
            }
        });
        let so_far = peer.seen_on("/engine/v1/x").len();
        peer.until_seen("/engine/v1/x", so_far + 1).await;
        hanging.abort();
        let _ = hanging.await;
        let request = Request::post("/y").body(Bytes::new()).unwrap();
        let answer =
            el.send(Lane::Command, &Caller::default(), request, Repeat::Harmless).await.unwrap();
        assert_eq!(answer.body(), "/engine/v1/y");
    }
}

#[tokio::test]
async fn errors_are_one_line_that_names_the_endpoint() {
    let peer = Peer::start(rest_el).await;
    let (endpoint, el) = (peer.endpoint().to_string(), El::new(peer.config()));
    peer.stop().await;
    let error = relay(&el, Lane::Relay).await;
    let text = error.to_string();
    assert!(text.contains(&endpoint) && text.contains("is it running"), "{text}");
    assert!(text.contains("refused"), "the cause is told: {text}");
    assert!(!text.contains('\n'), "{text}");
    assert!(std::error::Error::source(&error).is_some());
}
