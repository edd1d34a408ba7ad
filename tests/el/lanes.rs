//! The line of commands.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use engine_ssz_proxy::el::{Caller, El, ErrorKind, Lane, Resend, StreamedBody};
use http::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};

use crate::peer::{config, patiently};

fn el() -> El {
    El::new(config("http://127.0.0.1:1".parse().unwrap()))
}

#[tokio::test]
async fn commands_go_in_the_order_in_which_they_took_their_turn_and_not_in_that_of_waking() {
    let el = el();
    let order = Arc::new(Mutex::new(Vec::new()));
    let first = el.command_turn().await.unwrap();
    let turns: Vec<_> = (0..8).map(|place| (place, el.command_turn())).collect();
    // Polled for the first time from the last to the first.
    let tasks: Vec<_> = turns
        .into_iter()
        .rev()
        .map(|(place, turn)| {
            let order = Arc::clone(&order);
            tokio::spawn(async move {
                let _turn = turn.await.unwrap();
                order.lock().unwrap().push(place);
                tokio::task::yield_now().await;
                order.lock().unwrap().push(place);
            })
        })
        .collect();
    tokio::task::yield_now().await;
    assert!(order.lock().unwrap().is_empty(), "somebody overtook the first");
    drop(first);
    for task in tasks {
        patiently(task).await.unwrap();
    }
    let expected: Vec<_> = (0..8).flat_map(|place| [place, place]).collect();
    assert_eq!(*order.lock().unwrap(), expected);
}

#[tokio::test]
async fn who_leaves_the_line_holds_nobody_up() {
    let el = el();
    let first = el.command_turn().await.unwrap();
    let leaves = el.command_turn();
    let stays = el.command_turn();
    drop(leaves);
    drop(first);
    drop(patiently(stays).await.unwrap());
    // A turn granted before it was asked for, and dropped.
    let granted = el.command_turn();
    drop(granted);
    drop(patiently(el.command_turn()).await.unwrap());
}

#[tokio::test]
async fn a_task_that_has_used_up_its_budget_still_gets_its_place() {
    let el = el();
    let first = el.command_turn().await.unwrap();
    let (hand_over, early) = oneshot::channel();
    tokio::spawn({
        let el = el.clone();
        async move {
            use_up_budget();
            assert!(hand_over.send(el.command_turn()).is_ok());
        }
    });
    let early = early.await.unwrap();
    let late = el.command_turn();
    drop(first);
    // Were the early one without a place, the late one would be first and this would hang.
    drop(patiently(early).await.unwrap());
    drop(patiently(late).await.unwrap());
}

/// A clock that stands still but for those who wait for it: no wait takes any time.
#[tokio::test(start_paused = true)]
async fn a_command_waits_so_long_behind_one_that_is_never_answered_and_is_then_given_up() {
    let el = el();
    let stuck = el.command_turn().await.unwrap();
    let began = tokio::time::Instant::now();
    let waiters: Vec<_> = (0..3).map(|_| tokio::spawn(el.command_turn())).collect();
    for waiter in waiters {
        let error = waiter.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Busy { waited: Duration::from_secs(30) });
        assert_eq!(error.resend(), Resend::NeverSent);
        let text = error.to_string();
        assert!(text.contains("http://127.0.0.1:1"), "{text}");
        assert!(
            text.contains("not answered the command before this one for 30 s; see its log"),
            "{text}"
        );
    }
    assert_eq!(began.elapsed(), Duration::from_secs(30));

    // They have left the line: who comes next is next.
    let next = tokio::spawn(el.command_turn());
    tokio::task::yield_now().await;
    drop(stuck);
    drop(next.await.unwrap().unwrap());
}

#[tokio::test(start_paused = true)]
async fn the_time_before_a_caller_begins_to_wait_does_not_count() {
    let el = el();
    let first = el.command_turn().await.unwrap();
    let place = el.command_turn();
    tokio::time::advance(Duration::from_secs(31)).await;
    let waits = tokio::spawn(place);
    tokio::time::advance(Duration::from_secs(29)).await;
    drop(first);
    drop(waits.await.unwrap().unwrap());
}

/// Makes tokio answer "not yet" for the rest of this poll of the task.
fn use_up_budget() {
    let free = Semaphore::new(1);
    let mut waker = Context::from_waker(Waker::noop());
    while pin!(free.acquire()).poll(&mut waker).is_ready() {}
}

/// Begins an answer to each request and never ends it.
async fn endless() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                asked.push(stream.read_u8().await.unwrap());
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbeg").await.unwrap();
            open.push(stream);
        }
    });
    address
}

/// Time passes only when nothing else can happen.
#[tokio::test(start_paused = true)]
async fn readers_that_do_not_read_on_keep_their_places_in_a_lane_for_a_while_only() {
    let el = El::new(config(format!("http://{}", endless().await).parse().unwrap()));
    let mut unread = Vec::new();
    for _ in 0..5 {
        let request = Request::get("/engine/v1/bodies").body(StreamedBody::default()).unwrap();
        let passed =
            patiently(el.pass(Lane::History, &Caller::default(), request, el.relay_deadline()))
                .await;
        unread.push(passed.unwrap());
    }
}
