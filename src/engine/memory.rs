//! What the sidecar remembers between calls. All of it may be lost without harm: each entry only
//! saves a guess.

use super::{Bounds, Horizon, InclusionListPath, schedule::Schedule};
use crate::wire::Fork;
use std::{
    collections::VecDeque,
    ops::RangeInclusive,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// How many payload ids and block hashes are remembered: several slots' worth, so that a reorg or
/// a CL that builds each slot finds its own.
const REMEMBERED: usize = 64;

/// Shared between all calls. Its methods lock for a few instructions and never across a call.
#[derive(Debug)]
pub struct Memory {
    schedule: Option<Schedule>,
    horizon: Horizon,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    learned: Bounds,
    /// Of what the CL spoke of, the latest time in seconds.
    newest_time: Option<u64>,
    /// The newest fork that the chain is known to have reached.
    newest_fork: Option<Fork>,
    payload_ids: Recent<[u8; 8], Build>,
    blocks: Recent<[u8; 32], Fork>,
    client_version: Option<http::HeaderValue>,
    has_era_filter: bool,
    inclusion_list_path: Option<InclusionListPath>,
}

/// A build that the EL was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build {
    /// The fork header that the build was asked under.
    pub fork: Fork,
    /// Timestamp of its attributes, in seconds.
    pub timestamp: u64,
}

impl Memory {
    /// An empty memory; with a schedule, timestamps need not be learned.
    pub fn new(schedule: Option<Schedule>) -> Self {
        Self { schedule, horizon: Horizon::default(), inner: Mutex::default() }
    }

    /// The same with forks up to that horizon.
    pub fn within(self, horizon: Horizon) -> Self {
        Self { horizon, ..self }
    }

    /// How far forks are known.
    pub const fn horizon(&self) -> Horizon {
        self.horizon
    }

    /// Whether the schedule was given, so that nothing needs to be learned.
    pub const fn has_schedule(&self) -> bool {
        self.schedule.is_some()
    }

    /// The forks that a block of that timestamp can belong to, as far as is known. Several: nobody
    /// knows; never empty.
    pub fn forks_at(&self, timestamp: u64) -> RangeInclusive<Fork> {
        let newest = self.horizon.newest();
        let fixed = match &self.schedule {
            Some(schedule) => {
                let fixed = schedule.forks_at(timestamp);
                // Beyond the horizon time stands still.
                (*fixed.start()).min(newest)..=(*fixed.end()).min(newest)
            }
            None => Fork::Paris..=newest,
        };
        if fixed.start() == fixed.end() {
            return fixed;
        }
        let learned = self.lock().learned.forks_at(timestamp, newest);
        let from = (*fixed.start()).max(*learned.start());
        let to = (*fixed.end()).min(*learned.end());
        if from <= to { from..=to } else { fixed }
    }

    /// Notes that the CL spoke of a block or attributes of that timestamp in a method that exists
    /// from that fork on, whatever the EL says to it: a CL follows its chain's schedule.
    pub fn note_time(&self, timestamp: u64, since: Fork) {
        let mut inner = self.lock();
        inner.newest_time = inner.newest_time.max(Some(timestamp));
        inner.newest_fork = inner.newest_fork.max(Some(since));
    }

    /// The forks that the chain's blocks can be of, as far as is known: from the fork of time 0 up to
    /// that of the latest time which the CL spoke of. Those that the REST-SSZ specification does not
    /// have are left out until the chain is known to have reached them.
    pub fn eras(&self) -> impl Iterator<Item = Fork> {
        let oldest = *self.forks_at(0).start();
        let inner = self.lock();
        let time = inner.newest_time.unwrap_or(u64::MAX);
        let ([.., last], [.., last_specified]) = (Fork::ALL, Fork::SPECIFIED);
        let learned = *inner.learned.forks_at(time, last).end();
        let scheduled = self.schedule.as_ref().map(|schedule| *schedule.forks_at(time).end());
        let newest = learned.min(scheduled.unwrap_or(last)).min(last_specified);
        let newest = newest.max(inner.newest_fork.unwrap_or(oldest));
        Fork::ALL.into_iter().filter(move |fork| (oldest..=newest).contains(fork))
    }

    /// Notes that the EL took a block or attributes of that timestamp for one of that fork.
    pub fn learn(&self, timestamp: u64, fork: Fork) {
        if self.forks_at(timestamp) != (fork..=fork) {
            self.lock().learned.note(timestamp, fork);
        }
    }

    /// Notes what the EL itself said of the schedule.
    pub fn learn_bounds(&self, bounds: &Bounds) {
        self.lock().learned.add(bounds);
    }

    /// Notes which build an id belongs to (paris.md, `engine_forkchoiceUpdatedV1`, point 8).
    pub fn note_build(&self, payload_id: [u8; 8], build: Build) {
        self.lock().payload_ids.insert(payload_id, build);
    }

    /// The build that an id belongs to, when this sidecar saw it asked for.
    pub fn build(&self, payload_id: [u8; 8]) -> Option<Build> {
        self.lock().payload_ids.get(&payload_id)
    }

    /// Notes the fork of a block that the EL called VALID. That the chain has reached the fork
    /// outlives the EL process.
    pub fn note_block(&self, block_hash: [u8; 32], fork: Fork) {
        let mut inner = self.lock();
        inner.blocks.insert(block_hash, fork);
        inner.newest_fork = inner.newest_fork.max(Some(fork));
    }

    /// The fork of a block that the EL called VALID not long ago.
    pub fn block_fork(&self, block_hash: [u8; 32]) -> Option<Fork> {
        self.lock().blocks.get(&block_hash)
    }

    /// The newest fork that the chain is known to have reached: by a block that the EL called VALID,
    /// by a method that the CL called, or by the time of what it spoke of.
    pub fn newest_fork(&self) -> Option<Fork> {
        let (time, newest) = {
            let inner = self.lock();
            (inner.newest_time, inner.newest_fork)
        };
        newest.max(time.map(|time| *self.forks_at(time).start()))
    }

    /// Notes that the EL serves a body only under its block's own fork.
    pub fn note_era_filter(&self) {
        self.lock().has_era_filter = true;
    }

    /// Whether the EL was seen to serve a body only under its block's own fork.
    pub fn has_era_filter(&self) -> bool {
        self.lock().has_era_filter
    }

    /// Notes where the EL serves inclusion lists.
    pub fn note_inclusion_list_path(&self, path: InclusionListPath) {
        self.lock().inclusion_list_path = Some(path);
    }

    /// Where the EL was seen to serve inclusion lists.
    pub fn inclusion_list_path(&self) -> Option<InclusionListPath> {
        self.lock().inclusion_list_path
    }

    /// Forgets what belongs to one EL process: ids, blocks, how it keeps to forks, and its paths.
    /// Called when the EL came back.
    pub fn forget_process(&self) {
        let mut inner = self.lock();
        inner.payload_ids = Recent::default();
        inner.blocks = Recent::default();
        inner.has_era_filter = false;
        inner.inclusion_list_path = None;
    }

    /// Notes who the CL is, in the form of the `X-Engine-Client-Version` header.
    pub fn note_client_version(&self, version: http::HeaderValue) {
        self.lock().client_version = Some(version);
    }

    /// Who the CL is, once it said so.
    pub fn client_version(&self) -> Option<http::HeaderValue> {
        self.lock().client_version.clone()
    }

    /// A panic elsewhere leaves at worst an entry too few, so poison is no reason to stop.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The newest entries, oldest out first.
#[derive(Debug)]
struct Recent<K, V>(VecDeque<(K, V)>);

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<K: PartialEq, V: Copy> Recent<K, V> {
    fn insert(&mut self, key: K, value: V) {
        self.0.retain(|(known, _)| *known != key);
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((key, value));
    }

    fn get(&self, key: &K) -> Option<V> {
        self.0.iter().rev().find(|(known, _)| known == key).map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::schedule::Network;

    #[test]
    fn without_a_schedule_each_fork_learned_narrows_the_rest() {
        let memory = Memory::new(None);
        assert_eq!(memory.forks_at(50), Fork::Paris..=Fork::Amsterdam);
        memory.learn(40, Fork::Prague);
        memory.learn(60, Fork::Osaka);
        assert_eq!(memory.forks_at(30), Fork::Paris..=Fork::Prague);
        assert_eq!(memory.forks_at(40), Fork::Prague..=Fork::Prague);
        assert_eq!(memory.forks_at(50), Fork::Prague..=Fork::Osaka);
        assert_eq!(memory.forks_at(60), Fork::Osaka..=Fork::Osaka);
        assert_eq!(memory.forks_at(70), Fork::Osaka..=Fork::Amsterdam);
    }

    #[test]
    fn a_schedule_is_not_overruled_by_traffic_except_where_it_is_open() {
        let osaka = 1_764_798_551;
        let memory = Memory::new(Some(Schedule::of_network(Network::Mainnet)));
        memory.learn(osaka - 1, Fork::Osaka);
        assert_eq!(memory.forks_at(osaka - 1), Fork::Prague..=Fork::Prague);
        memory.learn(osaka + 1000, Fork::Amsterdam);
        assert_eq!(memory.forks_at(osaka + 1000), Fork::Amsterdam..=Fork::Amsterdam);
        assert_eq!(memory.forks_at(osaka + 10), Fork::Osaka..=Fork::Amsterdam);
    }

    #[test]
    fn ids_are_bounded_and_the_oldest_goes_first() {
        let memory = Memory::new(None);
        let build = |timestamp| Build { fork: Fork::Paris, timestamp };
        for n in 0..=REMEMBERED as u64 {
            memory.note_build(n.to_be_bytes(), build(n));
        }
        assert_eq!(memory.build(0u64.to_be_bytes()), None);
        assert_eq!(memory.build(1u64.to_be_bytes()), Some(build(1)));
        memory.forget_process();
        assert_eq!(memory.build(1u64.to_be_bytes()), None);
    }
}
