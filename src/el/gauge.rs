//! Numbers of each lane: who waits, what is in flight, how much of both there was.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::lane::Lane;

/// The numbers of all lanes at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneNumbers {
    /// Exchanges that wait for their turn or for a place; of commands, whole calls.
    pub waiting: usize,
    /// Exchanges in flight: begun and not answered to the last byte.
    pub in_flight: usize,
    /// How long the oldest exchange in flight has been so; zero if there is none.
    pub oldest: Duration,
    /// Exchanges that ended, since the start. One that was sent twice is one.
    pub ended: u64,
    /// Those of them that ended without a whole answer.
    pub failed: u64,
    /// How long those that have left the queue had waited in it, all together.
    pub queued: Duration,
    /// How long those that ended were in flight, all together.
    pub in_exchange: Duration,
}

/// The numbers of one lane as they change.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    waiting: AtomicUsize,
    /// When each exchange in flight began, in order of beginning.
    in_flight: Mutex<BTreeMap<u64, Instant>>,
    begun: AtomicU64,
    ended: AtomicU64,
    failed: AtomicU64,
    queued_nanos: AtomicU64,
    exchange_nanos: AtomicU64,
}

/// The gauges of all lanes.
#[derive(Clone, Debug, Default)]
pub(super) struct Gauges([Arc<Gauge>; 4]);

impl Gauges {
    pub(super) fn of(&self, lane: Lane) -> &Arc<Gauge> {
        let [command, build, history, relay] = &self.0;
        match lane {
            Lane::Command => command,
            Lane::Build => build,
            Lane::History => history,
            Lane::Relay => relay,
        }
    }
}

impl Gauge {
    pub(super) fn numbers(&self) -> LaneNumbers {
        let (in_flight, oldest) = {
            let in_flight = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
            (in_flight.len(), in_flight.values().next().map_or(Duration::ZERO, Instant::elapsed))
        };
        let nanos = |sum: &AtomicU64| Duration::from_nanos(sum.load(Ordering::Relaxed));
        LaneNumbers {
            waiting: self.waiting.load(Ordering::Relaxed),
            in_flight,
            oldest,
            ended: self.ended.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            queued: nanos(&self.queued_nanos),
            in_exchange: nanos(&self.exchange_nanos),
        }
    }

    /// Somebody waits from now on, until this is dropped.
    pub(super) fn wait(self: &Arc<Self>) -> Waiting {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting { gauge: Arc::clone(self), since: Instant::now() }
    }

    /// An exchange is in flight from now on, until this is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Flight {
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        let since = Instant::now();
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner).insert(number, since);
        Flight { gauge: Arc::clone(self), number, since, end: End::Failed }
    }
}

/// A place in a queue.
#[derive(Debug)]
pub(super) struct Waiting {
    gauge: Arc<Gauge>,
    since: Instant,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.gauge.waiting.fetch_sub(1, Ordering::Relaxed);
        add(&self.gauge.queued_nanos, self.since.elapsed());
    }
}

/// An exchange in flight.
#[derive(Debug)]
pub(super) struct Flight {
    gauge: Arc<Gauge>,
    number: u64,
    since: Instant,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Answered,
    Failed,
}

impl Flight {
    /// It ended with a whole answer.
    pub(super) fn answered(mut self) {
        self.end = End::Answered;
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let gauge = &self.gauge;
        gauge.in_flight.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
        add(&gauge.exchange_nanos, self.since.elapsed());
        gauge.ended.fetch_add(1, Ordering::Relaxed);
        if self.end == End::Failed {
            gauge.failed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn add(sum: &AtomicU64, duration: Duration) {
    sum.fetch_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
}
