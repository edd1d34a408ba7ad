//! What the EL has received, for tests to assert on.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use alloy_primitives::B256;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, Request, StatusCode, Version, header};

use super::faults::{Kind, Operation};

/// Entries kept; older ones are forgotten.
const KEPT: usize = 4096;

/// Bodies above this size are counted but not kept.
const BODY_KEPT: usize = 16 * 1024;

/// One HTTP request the EL has received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The HTTP method.
    pub verb: Method,
    /// The path with its query.
    pub path: String,
    /// HTTP/1.1 or HTTP/2.
    pub http_version: Version,
    /// Which accepted connection it came on: 0 for the first since start.
    pub connection: u64,
    /// `Eth-Execution-Version`, as sent.
    pub fork_header: Option<String>,
    /// `X-Engine-Client-Version`, as sent.
    pub client_version: Option<String>,
    /// `Content-Type`, as sent.
    pub content_type: Option<String>,
    /// `Authorization`, as sent.
    pub authorization: Option<String>,
    /// The method of a single JSON-RPC call.
    pub rpc_method: Option<String>,
    /// The methods of a JSON-RPC batch, in order; empty if it was no batch.
    pub rpc_batch: Vec<String>,
    /// Bytes of the body that were read.
    pub body_bytes: usize,
    /// The body itself, unless it is above 16 KiB.
    pub body: Option<Bytes>,
    /// The call it is, in either dialect; of a batch the first one's.
    pub operation: Option<Operation>,
    /// The hash of the block it is about: that of the payload, or the head of the forkchoice; of a
    /// batch the first call's.
    pub block_hash: Option<B256>,
    /// Whether it was run against the chain, whatever became of its answer.
    pub processed: bool,
    /// The place among the requests that were run, from 0: the order in which the chain saw them.
    pub run: Option<u64>,
    /// The fault that took place, if any.
    pub fault: Option<Kind>,
    /// The status of the answer; `None` while there is none, or if the peer left before it.
    pub status: Option<u16>,
}

/// How many requests have come in since the start, by dialect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Over REST-SSZ, without those for the capabilities.
    pub rest: u64,
    /// Everything else.
    pub json_rpc: u64,
}

/// A place in the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket(u64);

/// The requests in order of arrival of their heads.
#[derive(Debug, Default)]
pub(super) struct Log {
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    kept: VecDeque<Seen>,
    forgotten: u64,
    /// Requests run so far.
    runs: u64,
    requests: Requests,
}

impl Log {
    pub(super) fn arrived<B>(&self, connection: u64, request: &Request<B>) -> Ticket {
        let header = |name| text(request.headers(), &name);
        let seen = Seen {
            verb: request.method().clone(),
            path: request.uri().path_and_query().map(ToString::to_string).unwrap_or_default(),
            http_version: request.version(),
            connection,
            fork_header: header(HeaderName::from_static("eth-execution-version")),
            client_version: header(HeaderName::from_static("x-engine-client-version")),
            content_type: header(header::CONTENT_TYPE),
            authorization: header(header::AUTHORIZATION),
            rpc_method: None,
            rpc_batch: Vec::new(),
            body_bytes: 0,
            body: None,
            operation: None,
            block_hash: None,
            processed: false,
            run: None,
            fault: None,
            status: None,
        };
        let path = request.uri().path();
        let mut entries = self.entries();
        if !path.starts_with("/engine/") {
            entries.requests.json_rpc += 1;
        } else if !path.ends_with("/capabilities") {
            entries.requests.rest += 1;
        }
        if entries.kept.len() >= KEPT {
            entries.kept.pop_front();
            entries.forgotten += 1;
        }
        entries.kept.push_back(seen);
        Ticket(entries.forgotten + entries.kept.len() as u64 - 1)
    }

    pub(super) fn body(&self, ticket: Ticket, body: &Bytes) {
        self.update(ticket, |seen| {
            seen.body_bytes = body.len();
            seen.body = (body.len() <= BODY_KEPT).then(|| body.clone());
        });
    }

    pub(super) fn rpc_method(&self, ticket: Ticket, method: String) {
        self.update(ticket, |seen| seen.rpc_method = Some(method));
    }

    pub(super) fn rpc_batch(&self, ticket: Ticket, methods: Vec<String>) {
        self.update(ticket, |seen| seen.rpc_batch = methods);
    }

    pub(super) fn about(
        &self,
        ticket: Ticket,
        operation: Option<Operation>,
        block_hash: Option<B256>,
    ) {
        self.update(ticket, |seen| {
            seen.operation = operation;
            seen.block_hash = block_hash;
        });
    }

    /// To be called with the chain locked, so that the order is the chain's.
    pub(super) fn processed(&self, ticket: Ticket) {
        let mut entries = self.entries();
        let run = entries.runs;
        entries.runs += 1;
        drop(entries);
        self.update(ticket, |seen| {
            seen.processed = true;
            seen.run = Some(run);
        });
    }

    pub(super) fn fault(&self, ticket: Ticket, kind: Kind) {
        self.update(ticket, |seen| seen.fault = Some(kind));
    }

    pub(super) fn answered(&self, ticket: Ticket, status: StatusCode) {
        self.update(ticket, |seen| seen.status = Some(status.as_u16()));
    }

    pub(super) fn requests(&self) -> Requests {
        self.entries().requests
    }

    pub(super) fn all(&self) -> Vec<Seen> {
        self.entries().kept.iter().cloned().collect()
    }

    fn update(&self, Ticket(number): Ticket, change: impl FnOnce(&mut Seen)) {
        let mut entries = self.entries();
        let index = number.checked_sub(entries.forgotten).and_then(|i| usize::try_from(i).ok());
        if let Some(seen) = index.and_then(|index| entries.kept.get_mut(index)) {
            change(seen);
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_finds_its_request_after_older_ones_are_forgotten() {
        let log = Log::default();
        let request = |n: usize| Request::get(format!("/{n}")).body(()).unwrap();
        let first = log.arrived(0, &request(0));
        let tickets: Vec<_> = (1..=KEPT).map(|n| log.arrived(0, &request(n))).collect();
        log.answered(first, StatusCode::OK);
        log.answered(tickets[0], StatusCode::NOT_FOUND);
        let all = log.all();
        assert_eq!(all.len(), KEPT);
        assert_eq!((all[0].path.as_str(), all[0].status), ("/1", Some(404)));
        assert!(all[1..].iter().all(|seen| seen.status.is_none()));
    }
}
