//! Calls over a WebSocket: one message is one unit of JSON-RPC, the answers go out as they come.

mod age;
mod inflow;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::{interval_at, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as SocketError, Message, Utf8Bytes};

use super::attempt::{attempt, errors};
use super::bounds::{BodyShare, Budget, Busy, Kind, Share};
use super::linger::PATIENCE;
use super::server::{PING_INTERVAL, Phase};
use super::{Call, Caller, FIRST_BYTES, Handler, Outcome};
use crate::jsonrpc::Reply;

use inflow::{Inflow, Meter};

pub(super) use age::Age;

/// Calls that one WebSocket may have under way.
const CALLS_AT_ONCE: u32 = 64;

/// Messages that may wait for one of those to be answered. As long as there are fewer more is read,
/// pings among it; then TCP slows the CL down.
const WAITING: usize = 2;

/// For how long nothing comes and nothing is under way where a socket can be closed without a call
/// running into it: what a CL has to say of a block comes in one go.
const LULL: Duration = Duration::from_secs(1);

/// One open WebSocket.
pub(super) struct Conversation<H> {
    pub(super) handler: H,
    /// Who opened it; every message is theirs.
    pub(super) caller: Caller,
    /// When that is to be told anew.
    pub(super) age: Age,
    /// The longest message, in bytes.
    pub(super) limit: usize,
    /// How long nothing at all may come, not even the answer to a ping.
    pub(super) silence: Duration,
    pub(super) budget: Arc<Budget>,
    /// The share that its connection has of the bounds.
    pub(super) _connection: Arc<Share>,
    /// Held by the conversation and by each of its calls.
    pub(super) in_flight: mpsc::Sender<Infallible>,
    pub(super) phase: watch::Receiver<Phase>,
}

/// An answer on its way out, with the place it takes among [`CALLS_AT_ONCE`] until it is written.
struct Answer {
    message: Message,
    _place: OwnedSemaphorePermit,
}

/// Why no more is read.
enum Ending {
    /// The CL is gone, or has said that it goes.
    Gone,
    /// We go, once the calls under way are answered.
    Closing(CloseCode, &'static str),
}

impl Ending {
    /// Another socket would bring a token that is new.
    const AGED: Self = Self::Closing(CloseCode::Away, "the token ages, connect anew");
}

impl<H: Handler> Conversation<H> {
    /// Serves the WebSocket to its end. Calls under way go on without it.
    pub(super) async fn run<S>(self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let mut phase = self.phase.clone();
        // A stop waits for the goodbye too, which comes after the last call.
        let _in_flight = self.in_flight.clone();
        tokio::select! {
            () = self.talk(stream) => {}
            // The grace period is over.
            _ = phase.wait_for(|phase| *phase == Phase::Cut) => {}
        }
    }

    async fn talk<S>(self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let config = WebSocketConfig::default()
            .max_message_size(Some(self.limit))
            .max_frame_size(Some(self.limit));
        let (stream, meter) = Inflow::new(stream);
        let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
        let (sink, mut stream) = socket.split();
        let (answers, queue) = mpsc::unbounded_channel();
        // Both at once: a CL that writes much before it reads must not bring us to a stop.
        let mut writing = pin!(write(sink, queue));
        let ending = tokio::select! {
            ending = self.read(&mut stream, &meter, answers) => ending,
            _ = &mut writing => Ending::Gone,
        };
        let Ending::Closing(code, reason) = ending else { return };
        let Some(sink) = writing.await else { return };
        if let Ok(socket) = sink.reunite(stream) {
            close(socket, CloseFrame { code, reason: Utf8Bytes::from_static(reason) }).await;
        }
    }

    /// Reads messages and begins their calls, in order.
    async fn read<S>(
        mut self,
        stream: &mut SplitStream<WebSocketStream<S>>,
        meter: &Meter,
        answers: mpsc::UnboundedSender<Answer>,
    ) -> Ending
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let places = Arc::new(Semaphore::new(CALLS_AT_ONCE as usize));
        let stale = Arc::new(Notify::new());
        let budget = Arc::clone(&self.budget);
        let mut room = budget.body();
        let mut waiting = VecDeque::with_capacity(WAITING);
        loop {
            let Self { age, limit, silence, .. } = self;
            let heard = meter.total();
            let message = tokio::select! {
                biased;
                ending = self.due(&stale) => return ending,
                place = Arc::clone(&places).acquire_owned(), if !waiting.is_empty() => {
                    // They are never closed, and there is one that waits.
                    if let (Ok(place), Some((body, room))) = (place, waiting.pop_front()) {
                        self.begin(body, room, answers.clone(), Arc::clone(&stale), place).await;
                    }
                    continue;
                }
                length = meter.wanted() => {
                    // What there is no room for cannot be read over to what comes after it.
                    if room.hold(length.min(limit)).await.is_err() {
                        return Ending::Closing(CloseCode::Again, "busy (--body-limit)");
                    }
                    meter.allow(length);
                    continue;
                }
                message = timeout(silence, stream.next()), if waiting.len() < WAITING => message,
                () = lull(age, &places, meter) => return Ending::AGED,
            };
            let message = match message {
                Ok(Some(Ok(message))) => message,
                Ok(Some(Err(error))) => return after(&error),
                Ok(None) => return Ending::Gone,
                // A long message is on its way.
                Err(_) if meter.total() > heard => continue,
                Err(_) => {
                    tracing::debug!("WebSocket of the CL is silent");
                    return Ending::Gone;
                }
            };
            meter.taken(&message);
            let body = match message {
                Message::Text(text) => Bytes::from(text),
                Message::Binary(bytes) => bytes,
                // A ping has been answered, and so has a close: after it comes the end.
                _ => continue,
            };
            waiting.push_back((body, std::mem::replace(&mut room, budget.body())));
        }
    }

    /// Waits until no further call may be begun.
    async fn due(&mut self, stale: &Notify) -> Ending {
        let age = self.age;
        tokio::select! {
            biased;
            _ = self.phase.wait_for(|phase| *phase != Phase::Open) => {
                Ending::Closing(CloseCode::Away, "stopping")
            }
            () = stale.notified() => Ending::Closing(CloseCode::Policy, "the token is refused"),
            () = age.over() => Ending::AGED,
        }
    }

    /// Begins a call, and returns when it has taken its place in whatever line it has to stand in.
    /// Spawning alone would not do: tasks begin in any order.
    async fn begin(
        &self,
        body: Bytes,
        room: BodyShare<'_>,
        answers: mpsc::UnboundedSender<Answer>,
        stale: Arc<Notify>,
        place: OwnedSemaphorePermit,
    ) {
        // It is all there, so nobody waits for its bytes. What has a place is counted by itself.
        let place_in_line = self.handler.begun(body.get(..FIRST_BYTES).unwrap_or(&body));
        let kind = if place_in_line.is_some() { Kind::InLine } else { Kind::Free };
        let shares = match self.shares(&body, room, kind).await {
            Ok(shares) => shares,
            Err(busy) => {
                let reply = errors(&body, busy.to_string());
                return answer(&answers, &reply, place);
            }
        };
        let in_flight = self.in_flight.clone();
        let (tell_begun, begun) = oneshot::channel();
        let caller = self.caller.clone();
        let received = Instant::now();
        let call = Call { body: body.clone(), caller, received, place: place_in_line };
        let attempt = attempt(self.handler.clone(), call);
        tokio::spawn(async move {
            let mut attempt = pin!(attempt);
            let first = std::future::poll_fn(|cx| Poll::Ready(attempt.as_mut().poll(cx))).await;
            // The reader is gone if the CL is.
            let _ = tell_begun.send(());
            let outcome = match first {
                Poll::Ready(outcome) => outcome,
                Poll::Pending => attempt.await,
            };
            let reply = match outcome {
                Outcome::Json(reply) => reply,
                Outcome::Status(status, text) => {
                    // Every later call would be refused too: this token does not get any younger.
                    if status == StatusCode::UNAUTHORIZED {
                        stale.notify_one();
                    }
                    let text = String::from_utf8_lossy(&text);
                    errors(&body, format!("{status}: {text}"))
                }
            };
            answer(&answers, &reply, place);
            drop((shares, in_flight));
        });
        let _ = begun.await;
    }

    /// What a call takes of the bounds. A short message has no room before it is there.
    async fn shares(
        &self,
        body: &Bytes,
        mut room: BodyShare<'_>,
        kind: Kind,
    ) -> Result<(Share, Option<Share>), Busy> {
        room.hold(body.len()).await?;
        Ok((self.budget.call(kind).await?, room.into_share()))
    }
}

/// Waits for a moment in which nothing is under way in either direction, once the token is to be
/// renewed.
async fn lull(age: Age, calls: &Semaphore, meter: &Meter) {
    age.to_be_renewed().await;
    loop {
        let _all = calls.acquire_many(CALLS_AT_ONCE).await;
        let heard = meter.total();
        sleep(LULL).await;
        if meter.total() == heard {
            return;
        }
    }
}

/// Sends a reply on its way, unless it is to a notification.
fn answer(answers: &mpsc::UnboundedSender<Answer>, reply: &Reply, place: OwnedSemaphorePermit) {
    if !reply.is_empty() {
        // Undeliverable if the CL is gone.
        let _ = answers.send(Answer { message: message(reply), _place: place });
    }
}

/// Writes answers until there can be no more; gives the sink back unless it is broken.
async fn write<S>(
    mut sink: SplitSink<WebSocketStream<S>, Message>,
    mut queue: mpsc::UnboundedReceiver<Answer>,
) -> Option<SplitSink<WebSocketStream<S>, Message>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut pings = interval_at(tokio::time::Instant::now() + PING_INTERVAL, PING_INTERVAL);
    loop {
        let sent = tokio::select! {
            answer = queue.recv() => match answer {
                Some(Answer { message, _place }) => sink.send(message).await,
                None => return Some(sink),
            },
            _ = pings.tick() => sink.send(Message::Ping(Bytes::new())).await,
        };
        if let Err(error) = sent {
            tracing::debug!(%error, "WebSocket of the CL broke");
            return None;
        }
    }
}

/// Says goodbye and waits a little for the CL to say it too.
async fn close<S>(mut socket: WebSocketStream<S>, frame: CloseFrame)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let goodbye = async {
        socket.send(Message::Close(Some(frame))).await?;
        while socket.next().await.transpose()?.is_some() {}
        Ok::<_, SocketError>(())
    };
    // It is the end either way.
    let _ = timeout(PATIENCE, goodbye).await;
    let _ = socket.get_mut().shutdown().await;
}

/// What is said to a CL whose message cannot be read.
fn after(error: &SocketError) -> Ending {
    tracing::debug!(%error, "WebSocket of the CL broke");
    match error {
        SocketError::Capacity(_) => Ending::Closing(CloseCode::Size, "message too large"),
        SocketError::Utf8(_) => Ending::Closing(CloseCode::Invalid, "text is not UTF-8"),
        SocketError::Protocol(_) => Ending::Closing(CloseCode::Protocol, "protocol violated"),
        _ => Ending::Gone,
    }
}

/// Text, as JSON is; only an EL that breaks that rule makes it binary.
fn message(reply: &Reply) -> Message {
    let bytes = reply.to_bytes();
    match Utf8Bytes::try_from(bytes.clone()) {
        Ok(text) => Message::Text(text),
        Err(_) => Message::Binary(bytes),
    }
}
