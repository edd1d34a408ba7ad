//! Hang-ups and the end.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine_ssz_proxy::cl::{Bounds, Call, Config, Outcome, Server, Stopped};
use engine_ssz_proxy::jsonrpc::Reply;
use http::StatusCode;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};

use crate::support::{BOTH, Door, Http, Script, open, soon};

/// What a test sees of a call that waits behind the door.
#[derive(Debug, PartialEq)]
enum Seen {
    Begun,
    Done,
    /// The handler was dropped before it was done.
    Cut,
}

/// A handler whose calls wait to be let go; the call `quick` does not.
struct Waiting {
    script: Script,
    seen: mpsc::UnboundedReceiver<Seen>,
    go: Arc<Semaphore>,
}

/// Tells how a handler ended, even when it is dropped.
struct Witness(mpsc::UnboundedSender<Seen>, Seen);

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.0.send(std::mem::replace(&mut self.1, Seen::Cut));
    }
}

fn waiting() -> Waiting {
    let (tell, seen) = mpsc::unbounded_channel();
    let go = Arc::new(Semaphore::new(0));
    let script = Script::new({
        let go = Arc::clone(&go);
        move |call: Call| {
            let (tell, go) = (tell.clone(), Arc::clone(&go));
            async move {
                if call.body != "quick" {
                    tell.send(Seen::Begun).unwrap();
                    let mut witness = Witness(tell, Seen::Cut);
                    go.acquire().await.unwrap().forget();
                    witness.1 = Seen::Done;
                }
                Outcome::Json(Reply::raw(Bytes::from_static(b"answer")))
            }
        }
    });
    Waiting { script, seen, go }
}

#[tokio::test]
async fn time_04_a_reset_of_the_connection_does_not_cut_the_call() {
    let Waiting { script, mut seen, go } = waiting();
    let door = Door::new(open(), script).await;
    let mut connection = door.raw().await;
    connection.write("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nslow").await;
    assert_eq!(seen.recv().await, Some(Seen::Begun));
    connection.0.set_zero_linger().unwrap();
    drop(connection);
    // The next call is served, so the loop has been round since.
    assert_eq!(door.client(Http::One).await.post("quick").await.body, "answer");
    go.add_permits(1);
    assert_eq!(seen.recv().await, Some(Seen::Done));
}

#[tokio::test]
async fn time_04_a_reset_of_the_stream_does_not_cut_the_call() {
    let Waiting { script, mut seen, go } = waiting();
    let door = Door::new(open(), script).await;
    let mut client = door.client(Http::Two).await;
    tokio::select! {
        answer = client.post("slow") => panic!("{answer:?}"),
        begun = seen.recv() => assert_eq!(begun, Some(Seen::Begun)),
    }
    // Frames are read in order: with this answer the reset has been read.
    assert_eq!(client.post("quick").await.body, "answer");
    go.add_permits(1);
    assert_eq!(seen.recv().await, Some(Seen::Done));
}

#[tokio::test]
async fn a_cl_that_has_only_stopped_sending_gets_its_answer() {
    let Waiting { script, mut seen, go } = waiting();
    let door = Door::new(open(), script).await;
    let mut connection = door.raw().await;
    connection.write("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nslow").await;
    tokio::io::AsyncWriteExt::shutdown(&mut connection.0).await.unwrap();
    assert_eq!(seen.recv().await, Some(Seen::Begun));
    assert_eq!(door.client(Http::One).await.post("quick").await.body, "answer");
    go.add_permits(1);
    let (head, body) = connection.response().await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert_eq!(body, "answer");
}

#[tokio::test]
async fn a_stop_lets_the_call_in_flight_end() {
    for http in BOTH {
        let Waiting { script, mut seen, go } = waiting();
        let door = Door::new(open(), script).await;
        let addr = door.addr;
        let mut client = door.client(http).await;
        let idle = door.client(http).await;
        let answer = tokio::spawn(async move { client.post("slow").await });
        assert_eq!(seen.recv().await, Some(Seen::Begun));
        let stopped = door.stop();
        // No one else gets in from now on.
        while TcpStream::connect(addr).await.is_ok() {
            tokio::task::yield_now().await;
        }
        assert!(!stopped.is_finished());
        go.add_permits(1);
        let answer = answer.await.unwrap();
        assert_eq!((answer.status, &answer.body[..]), (StatusCode::OK, &b"answer"[..]));
        assert_eq!(soon(stopped).await.unwrap(), Stopped::Drained);
        drop(idle);
    }
}

#[tokio::test]
async fn a_stop_waits_for_the_call_of_a_cl_that_is_gone() {
    let Waiting { script, mut seen, go } = waiting();
    let door = Door::new(open(), script).await;
    let mut client = door.client(Http::Two).await;
    tokio::select! {
        answer = client.post("slow") => panic!("{answer:?}"),
        begun = seen.recv() => assert_eq!(begun, Some(Seen::Begun)),
    }
    drop(client);
    let addr = door.addr;
    let stopped = door.stop();
    while TcpStream::connect(addr).await.is_ok() {
        tokio::task::yield_now().await;
    }
    // Time enough for a server that does not wait to be gone.
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert!(!stopped.is_finished());
    go.add_permits(1);
    assert_eq!(soon(stopped).await.unwrap(), Stopped::Drained);
    assert_eq!(seen.try_recv(), Ok(Seen::Done));
}

#[tokio::test]
async fn a_stop_does_not_wait_beyond_its_grace() {
    let Waiting { script, mut seen, .. } = waiting();
    let door = Door::new(Config { grace: Duration::ZERO, ..open() }, script).await;
    let mut connection = door.raw().await;
    connection.write("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nslow").await;
    assert_eq!(seen.recv().await, Some(Seen::Begun));
    assert_eq!(soon(door.stop()).await.unwrap(), Stopped::Cut);
    assert_eq!(connection.rest().await, b"");
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let door = Door::new(open(), Script::names()).await;
    let error = Server::bind(door.addr).await.unwrap_err();
    assert!(error.to_string().contains(&door.addr.to_string()), "{error}");
}

#[tokio::test]
async fn a_cl_that_does_not_read_its_answer_loses_its_connection() {
    let long =
        Script::new(|_| async { Outcome::Status(StatusCode::OK, vec![b' '; 64 << 20].into()) });
    let bounds = Bounds { connections: 1, ..open().bounds };
    let door = Door::new(Config { bounds, ..open() }, long).await;
    let request = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}";
    let mut first = door.raw().await;
    first.write(request).await;
    first.head().await;
    for _ in 0..100 {
        let mut second = door.raw().await;
        // May be closed already.
        let _ = second.0.try_write(request.as_bytes());
        if soon(second.0.read(&mut [0; 64])).await.unwrap_or(0) > 0 {
            return;
        }
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(60)).await;
        tokio::time::resume();
    }
    panic!("it keeps its share");
}
