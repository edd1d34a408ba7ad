//! One connection: which HTTP it speaks, and how its streams are numbered.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Version;
use hyper::{
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::io::AsyncWriteExt;

use super::{
    super::{faults::Accepted, surface::Http},
    El,
    exchange::Exchange,
    line::{Hand, Line},
};

/// HTTP/2 flow-control window, of a stream and of the connection, in bytes: above any body but a
/// full bundle of blobs, so that an upload never waits for an update.
const WINDOW: u32 = 16 * 1024 * 1024;

/// The window every connection starts with (RFC 9113, section 6.9.2), in bytes.
const DEFAULT_WINDOW: u32 = 65_535;

/// What an HTTP/1.1 server has to say to an HTTP/2 preface.
const BAD_REQUEST: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// A SETTINGS frame without settings (RFC 9113, section 6.5).
const EMPTY_SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

/// What the exchanges of a connection share.
#[derive(Debug)]
pub(super) struct Connection {
    /// 0 for the first one accepted.
    pub(super) number: u64,
    pub(super) hand: Hand,
    streams: Mutex<Streams>,
}

/// The HTTP/2 streams of a connection.
#[derive(Debug)]
struct Streams {
    requests: u32,
    /// The last one that is served: the one a GOAWAY named.
    last: u32,
    /// The highest one whose request was run.
    highest_run: u32,
}

/// The settings of an HTTP/2 connection that faults may change.
#[derive(Clone, Copy)]
struct Settings {
    stream_window: u32,
    connection_window: u32,
    max_streams: Option<u32>,
}

impl Connection {
    fn new(number: u64, hand: Hand) -> Self {
        let streams = Mutex::new(Streams { requests: 0, last: u32::MAX, highest_run: 0 });
        Self { number, hand, streams }
    }

    /// The stream of the next HTTP/2 request: clients use odd numbers in order, and real ones leave
    /// none out.
    fn next_stream(&self) -> u32 {
        let mut streams = self.streams();
        let stream = streams.requests.saturating_mul(2).saturating_add(1);
        streams.requests = streams.requests.saturating_add(1);
        stream
    }

    /// Whether that stream's request may be run; if so, no GOAWAY will ever deny it.
    pub(super) fn may_run(&self, stream: u32) -> bool {
        let mut streams = self.streams();
        let may = stream <= streams.last;
        if may {
            streams.highest_run = streams.highest_run.max(stream);
        }
        may
    }

    /// Sends GOAWAY that names the stream before this one, unless that would be a lie: a request as
    /// late as this one was run. Returns whether it did.
    pub(super) fn go_away_below(&self, stream: u32) -> bool {
        let mut streams = self.streams();
        let may = streams.highest_run < stream;
        if may {
            self.leave(&mut streams, stream.saturating_sub(2));
        }
        may
    }

    /// Sends GOAWAY that names this stream, or the highest one that was run.
    pub(super) fn go_away_at(&self, stream: u32) {
        let mut streams = self.streams();
        let last = stream.max(streams.highest_run);
        self.leave(&mut streams, last);
    }

    /// Sends GOAWAY with `NO_ERROR`, and runs no request of a later stream from now on.
    fn leave(&self, streams: &mut Streams, last: u32) {
        streams.last = streams.last.min(last);
        let mut frame = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for (byte, value) in frame.iter_mut().skip(9).zip(last.to_be_bytes()) {
            *byte = value;
        }
        self.hand.inject(&frame);
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Settings {
    fn of(fault: Option<Accepted>) -> Self {
        let honest =
            Self { stream_window: WINDOW, connection_window: WINDOW, max_streams: Some(200) };
        match fault {
            Some(Accepted::TinyWindow(bytes)) => {
                Self { stream_window: bytes.max(1), connection_window: DEFAULT_WINDOW, ..honest }
            }
            Some(Accepted::MaxStreamsOne) => Self { max_streams: Some(1), ..honest },
            _ => honest,
        }
    }
}

/// Serves a connection until its end, which, good or bad, concerns only its peer.
pub(super) async fn converse(
    mut line: Line,
    hand: Hand,
    el: Arc<El>,
    number: u64,
    fault: Option<Accepted>,
) {
    line.no_delay();
    if fault == Some(Accepted::SettingsOnly) && line.write_all(EMPTY_SETTINGS).await.is_err() {
        return;
    }
    if matches!(fault, Some(Accepted::Mute | Accepted::SettingsOnly)) {
        return std::future::pending().await;
    }
    let settings = Settings::of(fault);
    let http = el.standing().http;
    let connection = Arc::new(Connection::new(number, hand));
    let io = TokioIo::new(line);
    let service = service_fn(move |request: http::Request<_>| {
        let stream = match request.version() {
            Version::HTTP_2 => Some(connection.next_stream()),
            _ => None,
        };
        let exchange = Exchange { el: el.clone(), connection: connection.clone(), stream };
        exchange.answer(request)
    });
    match http {
        Http::H1 => {
            let mut connection = http1::Builder::new().serve_connection(io, service);
            if (&mut connection).await.is_err_and(|error| error.is_parse_version_h2()) {
                // hyper hangs up on an HTTP/2 preface without a word; other servers say 400 first.
                let mut line = connection.into_parts().io.into_inner();
                let _ = line.write_all(BAD_REQUEST).await;
                let _ = line.shutdown().await;
            }
        }
        Http::H2 => {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder
                .initial_stream_window_size(settings.stream_window)
                .initial_connection_window_size(settings.connection_window)
                .max_concurrent_streams(settings.max_streams);
            drop(builder.serve_connection(io, service).await);
        }
        Http::Both => {
            let mut builder = auto::Builder::new(TokioExecutor::new());
            builder
                .http2()
                .initial_stream_window_size(settings.stream_window)
                .initial_connection_window_size(settings.connection_window)
                .max_concurrent_streams(settings.max_streams);
            drop(builder.serve_connection(io, service).await);
        }
    }
}
