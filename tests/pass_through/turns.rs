//! The line of commands, with a CL that speaks REST-SSZ in it.

use crate::peers::{StreamingEl, http_client, request, whole};
use crate::support::{post, scripted_el::ssz, settings, sidecar};
use crate::{FORKCHOICE, FORKCHOICE_SYNCING, SYNCING};
use axum::{body::Body, extract::Request, response::Response};
use bytes::Bytes;
use engine_ssz_proxy::el::Lane;
use futures_util::FutureExt;
use http::{Method, Version};
use http_body_util::BodyExt;
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::{Notify, mpsc},
};

/// An EL that tells which paths it was asked, once it has their bodies, and waits with its answer to
/// a payload for as long as it is told to.
async fn el(tell: mpsc::UnboundedSender<String>, go: Arc<Notify>) -> StreamingEl {
    StreamingEl::start(move |request: Request| {
        let (tell, go) = (tell.clone(), go.clone());
        async move {
            let path = request.uri().path().rsplit('/').next().unwrap().to_owned();
            request.into_body().collect().await.unwrap();
            tell.send(path.clone()).unwrap();
            match path.as_str() {
                "payloads" => {
                    go.notified().await;
                    ssz(SYNCING.to_vec())
                }
                "forkchoice" => ssz(FORKCHOICE_SYNCING.to_vec()),
                _ => ssz("read"),
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_command_whose_body_stalls_does_not_hold_up_the_line() {
    let (tell, mut arrived) = mpsc::unbounded_channel();
    let go = Arc::new(Notify::new());
    let el = el(tell, go.clone()).await;
    let sidecar = sidecar(settings(el.address)).await;
    let mut stalling = TcpStream::connect(sidecar.address()).await.unwrap();
    let half = "POST /engine/v1/payloads HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
                content-length: 8\r\n\r\nhalf";
    stalling.write_all(half.as_bytes()).await.unwrap();
    let answer = post(sidecar.address(), FORKCHOICE).await.json();
    assert_eq!(answer["result"]["payloadStatus"]["status"], "SYNCING");
    go.notify_one();
    // By now it would have been told that it has stalled for too long.
    stalling.write_all(b"half").await.unwrap();
    let mut answer = Vec::new();
    stalling.read_to_end(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", answer.escape_ascii());
    assert_eq!(arrived.recv().await.unwrap(), "forkchoice");
    assert_eq!(arrived.recv().await.unwrap(), "payloads");
}

#[tokio::test]
async fn a_read_gets_past_a_command_that_is_under_way_and_one_that_waits() {
    let (tell, mut arrived) = mpsc::unbounded_channel();
    let go = Arc::new(Notify::new());
    let el = el(tell, go.clone()).await;
    for transport in ["h2c", "http1"] {
        let mut settings = settings(el.address);
        settings.transport = Some(transport.to_owned());
        let sidecar = sidecar(settings).await;
        let command = || {
            let asked = request(&sidecar, Method::POST, "/engine/v1/payloads", whole("x"));
            tokio::spawn(async move { http_client(Version::HTTP_2).request(asked).await.unwrap() })
        };
        let first = command();
        assert_eq!(arrived.recv().await.unwrap(), "payloads");
        let second = command();
        for path in ["/engine/v1/payloads/0x01", "/engine/v1/bodies", "/engine/v1/identity"] {
            let asked = request(&sidecar, Method::GET, path, whole(""));
            let answered = http_client(Version::HTTP_11).request(asked).await.unwrap();
            let body = answered.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(body, "read", "{path} {transport}");
            assert_eq!(arrived.recv().await.unwrap(), path.rsplit('/').next().unwrap());
        }
        go.notify_one();
        assert_eq!(first.await.unwrap().status(), 200);
        assert_eq!(arrived.recv().await.unwrap(), "payloads");
        go.notify_one();
        assert_eq!(second.await.unwrap().status(), 200);
        sidecar.stop().await;
    }
}

/// Over HTTP/1.1 a CL that closes one direction may still read, so that it is gone shows at the next
/// piece; over HTTP/2 its stream is reset.
#[tokio::test]
async fn the_turn_of_a_cl_that_hangs_up_within_its_answer_is_over() {
    let (feed, fed) = mpsc::channel::<Bytes>(1);
    let fed = Arc::new(tokio::sync::Mutex::new(fed));
    let el = StreamingEl::start(move |request: Request| {
        let fed = fed.clone();
        async move {
            if request.uri().path() == "/engine/v1/forkchoice" {
                return ssz(FORKCHOICE_SYNCING.to_vec());
            }
            // An answer without an end.
            let mut fed = fed.lock_owned().await;
            let stream = futures_util::stream::poll_fn(move |cx| {
                fed.poll_recv(cx).map(|data| data.map(Ok::<_, Infallible>))
            });
            Response::new(Body::from_stream(stream))
        }
    })
    .await;
    for version in [Version::HTTP_2, Version::HTTP_11] {
        let sidecar = sidecar(settings(el.address)).await;
        let asked = request(&sidecar, Method::POST, "/engine/v1/payloads", whole("x"));
        let client = http_client(version);
        let answered = tokio::spawn(async move { client.request(asked).await.unwrap() });
        feed.send("begun".into()).await.unwrap();
        let mut answer = answered.await.unwrap().into_body();
        assert_eq!(answer.frame().await.unwrap().unwrap().into_data().unwrap(), "begun");
        drop(answer);
        let goes_on = async {
            if version == Version::HTTP_11 {
                loop {
                    feed.send("more".into()).await.unwrap();
                }
            }
            std::future::pending::<()>().await;
        };
        let next = tokio::select! {
            next = post(sidecar.address(), FORKCHOICE) => next.json(),
            () = goes_on => unreachable!("it has no end"),
        };
        assert_eq!(next["result"]["payloadStatus"]["status"], "SYNCING", "{version:?}");
        sidecar.stop().await;
    }
}

/// The connection lives meanwhile: it is the stream that is forgotten.
#[tokio::test]
async fn a_command_that_the_el_never_answers_is_504_and_the_next_has_its_turn() {
    let (tell, mut arrived) = mpsc::unbounded_channel();
    let el = el(tell, Arc::new(Notify::new())).await;
    for transport in ["h2c", "http1"] {
        let mut settings = settings(el.address);
        settings.transport = Some(transport.to_owned());
        let sidecar = sidecar(settings).await;
        let asked = request(&sidecar, Method::POST, "/engine/v1/payloads", whole("x"));
        let mut asked =
            tokio::spawn(async move { http_client(Version::HTTP_2).request(asked).await.unwrap() });
        assert_eq!(arrived.recv().await.unwrap(), "payloads");
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(12)).await;
        assert!((&mut asked).now_or_never().is_none(), "given up before the CL leaves");
        tokio::time::advance(Duration::from_secs(1)).await;
        tokio::time::resume();
        let answered = asked.await.unwrap();
        assert_eq!(answered.status(), 504, "{transport}");
        assert_eq!(answered.headers()["content-type"], "application/problem+json");
        let answer = post(sidecar.address(), FORKCHOICE).await.json();
        assert_eq!(answer["result"]["payloadStatus"]["status"], "SYNCING");
        assert_eq!(arrived.recv().await.unwrap(), "forkchoice");
        sidecar.stop().await;
    }
}

#[tokio::test]
async fn a_read_whose_head_never_comes_is_504_after_the_time_of_a_relayed_call() {
    let el = StreamingEl::start(|_| std::future::pending()).await;
    let sidecar = sidecar(settings(el.address)).await;
    let asked = request(&sidecar, Method::GET, "/engine/v1/bodies", whole(""));
    let asked = async move { http_client(Version::HTTP_11).request(asked).await.unwrap() };
    let mut asked = std::pin::pin!(asked);
    while sidecar.proxy().el().lane(Lane::History).in_flight == 0 {
        tokio::select! {
            biased;
            answered = &mut asked => panic!("{answered:?}"),
            () = tokio::task::yield_now() => {}
        }
    }
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(60)).await;
    tokio::time::resume();
    assert_eq!(asked.await.status(), 504);
    assert_eq!(sidecar.proxy().el().lane(Lane::History).in_flight, 0);
}
