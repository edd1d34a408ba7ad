//! The command lane's one connection.

use std::time::Duration;

use http::header::{CONNECTION, HeaderValue};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::answer::{self, Answer};
use super::connection::{Connection, Connector, ElRequest};
use super::error::Failure;
use super::resend::Next;
use super::surface::Transport;
use super::terms::Plan;

/// How long an idle HTTP/1.1 connection is kept: longer than a slot, so that one connection serves
/// slot after slot, and shorter than any EL keeps its end (geth and Nethermind two minutes, some
/// servers 15 s and more).
pub(super) const HTTP1_IDLE: Duration = Duration::from_secs(15);

/// Opens connections of one lane over one transport.
pub(super) struct Opener {
    pub(super) connector: Connector,
    pub(super) transport: Transport,
}

impl Opener {
    /// One exchange over a new connection, after `first` had failed over a used one.
    pub(super) async fn exchange(
        &self,
        request: ElRequest,
        limit: usize,
        first: Option<&Failure>,
    ) -> Result<(Answer, Connection), Failure> {
        let exchange = async {
            let mut connection = Connection::open(&self.connector, self.transport).await?;
            let response = connection.send(request).await?;
            Ok((answer::read(response, limit).await?, connection))
        };
        exchange.await.map_err(|failure: Failure| failure.after(first))
    }
}

/// One connection, one exchange at a time.
///
/// A pool would not do: it opens a second connection when the next request comes before the first
/// one is back, and then commands could overtake each other on the way.
pub(super) struct Held {
    opener: Opener,
    slot: Mutex<Option<Idle>>,
}

struct Idle {
    connection: Connection,
    since: Instant,
}

impl Held {
    pub(super) fn new(connector: Connector, transport: Transport) -> Self {
        Self { opener: Opener { connector, transport }, slot: Mutex::new(None) }
    }

    pub(super) async fn exchange(
        &self,
        request: ElRequest,
        plan: Plan,
        limit: usize,
    ) -> Result<Answer, Failure> {
        let mut slot = self.slot.lock().await;
        let mut first = None;
        // Taken out for the exchange: if this future is dropped or fails, so is the connection.
        if let Some(mut connection) = self.reusable(slot.take()).await {
            match connection.send(request.clone()).await {
                Ok(response) => {
                    let answer = answer::read(response, limit).await?;
                    *slot = self.keep(connection, &answer);
                    return Ok(answer);
                }
                Err(failure) => {
                    let failure = failure.on_reused();
                    if plan.next(&failure) != Next::NewConnection {
                        return Err(failure);
                    }
                    first = Some(failure);
                }
            }
        }
        let (answer, connection) = self.opener.exchange(request, limit, first.as_ref()).await?;
        *slot = self.keep(connection, &answer);
        Ok(answer)
    }

    async fn reusable(&self, idle: Option<Idle>) -> Option<Connection> {
        let Idle { mut connection, since } = idle?;
        let kept_alive = self.opener.transport == Transport::H2c || since.elapsed() < HTTP1_IDLE;
        (kept_alive && connection.is_usable().await).then_some(connection)
    }

    /// An HTTP/1.1 peer that answered before it had read the request may never read the rest: until
    /// it does, nothing else can be written.
    fn keep(&self, connection: Connection, answer: &Answer) -> Option<Idle> {
        let is_http1 = self.opener.transport == Transport::Http1;
        let ends = is_http1 && (ends_connection(answer) || connection.is_write_pending());
        (!ends).then(|| Idle { connection, since: Instant::now() })
    }
}

/// Whether an HTTP/1.1 peer closes after this answer.
pub(super) fn ends_connection(answer: &Answer) -> bool {
    answer.version() < http::Version::HTTP_11
        || answer.headers().get_all(CONNECTION).iter().any(|value: &HeaderValue| {
            value
                .as_bytes()
                .split(|byte| *byte == b',')
                .any(|token| token.trim_ascii().eq_ignore_ascii_case(b"close"))
        })
}
