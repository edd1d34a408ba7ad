//! Bodies are streamed, within limits.

use crate::SYNCING;
use crate::peers::{BOTH, StreamingEl, fed, http_client, request, whole};
use crate::support::{
    scripted_el::{answer, ssz},
    settings, sidecar,
};
use axum::{body::Body, extract::Request, response::Response};
use bytes::Bytes;
use engine_ssz_proxy::config::{Number, Settings};
use http::{Method, Version};
use http_body_util::BodyExt;
use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};
use tokio::{io::AsyncWriteExt, net::TcpStream, sync::mpsc};

/// No command, so that nothing of it has to be whole.
const READ: &str = "/engine/v1/bodies/hash";

/// Each piece has to arrive before the next one is sent, in both directions.
#[tokio::test]
async fn bodies_are_handed_on_piece_by_piece() {
    let (tell, mut arrived) = mpsc::unbounded_channel();
    let (feed_answer, answer_fed) = mpsc::unbounded_channel::<Bytes>();
    let answer_fed = Arc::new(Mutex::new(Some(answer_fed)));
    let el = StreamingEl::start(move |request| {
        let (tell, answer_fed) = (tell.clone(), answer_fed.clone());
        async move {
            let mut body = request.into_body();
            while let Some(frame) = body.frame().await {
                tell.send(frame.unwrap().into_data().unwrap()).unwrap();
            }
            let mut fed = answer_fed.lock().unwrap().take().unwrap();
            let stream = futures_util::stream::poll_fn(move |cx| {
                fed.poll_recv(cx).map(|data| data.map(Ok::<_, Infallible>))
            });
            Response::new(Body::from_stream(stream))
        }
    })
    .await;
    let sidecar = sidecar(settings(el.address)).await;
    let (feeder, body) = fed();
    let asked = request(&sidecar, Method::POST, READ, body);
    let answered =
        tokio::spawn(async move { http_client(Version::HTTP_2).request(asked).await.unwrap() });
    for piece in ["one", "two", "three"] {
        feeder.send(piece.into()).unwrap();
        assert_eq!(arrived.recv().await.unwrap(), piece);
    }
    drop(feeder);
    let mut body = answered.await.unwrap().into_body();
    for piece in ["four", "five", "six"] {
        feed_answer.send(piece.into()).unwrap();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), piece);
    }
    drop(feed_answer);
    assert_eq!(body.collect().await.unwrap().to_bytes(), "");
}

#[tokio::test]
async fn a_body_over_the_limit_is_413_by_its_head_and_by_its_bytes() {
    let el = StreamingEl::start(|request| async move {
        match request.into_body().collect().await {
            Ok(body) => ssz(body.to_bytes()),
            Err(_) => answer(400, "text/plain", "cut off"),
        }
    })
    .await;
    for transport in ["h2c", "http1"] {
        let settings = Settings {
            body_limit: Some(Number::Integer(1000)),
            transport: Some(transport.to_owned()),
            ..settings(el.address)
        };
        let sidecar = sidecar(settings).await;
        for version in BOTH {
            let client = http_client(version);
            for path in ["/engine/v1/payloads", READ] {
                let send = async |body| {
                    let asked = request(&sidecar, Method::POST, path, body);
                    client.request(asked).await.unwrap().status()
                };
                let with = format!("{transport} {version:?} {path}");
                assert_eq!(send(whole(vec![0; 1000])).await, 200, "{with}");
                assert_eq!(send(whole(vec![0; 1001])).await, 413, "{with}");
                let (feeder, body) = fed();
                feeder.send(vec![0; 600].into()).unwrap();
                feeder.send(vec![0; 401].into()).unwrap();
                assert_eq!(send(body).await, 413, "{with}, streamed");
                // What it stood in line with goes on, and the EL is not thought to be another.
                assert_eq!(send(whole("x")).await, 200, "{with}");
                assert!(sidecar.proxy().el().surface().rest.is_some(), "{with}");
            }
        }
        sidecar.stop().await;
    }
}

#[tokio::test]
async fn a_cl_that_hangs_up_in_its_body_costs_nobody_else_anything() {
    let (tell, mut seen) = mpsc::unbounded_channel();
    let el = StreamingEl::start(move |request: Request| {
        let tell = tell.clone();
        async move {
            let mut body = request.into_body();
            tell.send(body.frame().await.map(|frame| frame.unwrap().into_data().unwrap())).unwrap();
            let end = body.collect().await.map(|rest| rest.to_bytes()).ok();
            tell.send(end).unwrap();
            ssz(SYNCING.to_vec())
        }
    })
    .await;
    for transport in ["h2c", "http1"] {
        let mut settings = settings(el.address);
        settings.transport = Some(transport.to_owned());
        // With a schedule, so that no question of the sidecar's own changes what is known of the EL.
        settings.network = Some("mainnet".to_owned());
        let sidecar = sidecar(settings).await;
        let mut surface = sidecar.proxy().el().surface_changed();
        surface.mark_unchanged();
        let mut connection = TcpStream::connect(sidecar.address()).await.unwrap();
        let half = format!("POST {READ} HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf");
        connection.write_all(half.as_bytes()).await.unwrap();
        assert_eq!(seen.recv().await.unwrap().unwrap(), "half");
        drop(connection);
        assert_eq!(seen.recv().await.unwrap(), None, "the EL must not take it for whole");

        // Half a command never gets there, and the line of commands goes on, over REST.
        let mut connection = TcpStream::connect(sidecar.address()).await.unwrap();
        connection.write_all(half.replace(READ, "/engine/v1/payloads").as_bytes()).await.unwrap();
        drop(connection);
        let asked = request(&sidecar, Method::POST, "/engine/v1/payloads", whole("next"));
        let answered = http_client(Version::HTTP_11).request(asked).await.unwrap();
        assert_eq!(answered.status(), 200, "{transport}");
        assert_eq!(seen.recv().await.unwrap().unwrap(), "next");
        seen.recv().await.unwrap();
        assert!(!surface.has_changed().unwrap(), "{transport}: the EL is not in doubt");
        sidecar.stop().await;
    }
}
