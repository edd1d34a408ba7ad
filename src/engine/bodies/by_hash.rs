//! Bodies by hash.

use super::{
    Entry, MAX_ENTRIES, end, entries, era_filter::EraFilter, forks, piece, print, wrong_number,
};
use crate::{
    engine::{
        Answer, Context, Exchange, RelayReason, Replay, Step,
        exchange::Endpoint,
        method::Version,
        params::{exactly, params},
    },
    wire::{self, Fork, Source, schema},
};
use bytes::Bytes;
use http::Response;

/// Hashes being looked up, fork by fork.
#[derive(Debug)]
pub(in crate::engine) struct BodiesByHash {
    version: Version,
    hashes: Vec<[u8; 32]>,
    found: Vec<Entry>,
    /// Forks not asked to the end yet; the last one is asked now.
    forks: Vec<Fork>,
    /// Places not found when the current fork's turn began and not asked under it yet.
    left: Vec<usize>,
    /// Places asked for in the exchange under way.
    asked: Vec<usize>,
    era_filter: EraFilter,
}

impl BodiesByHash {
    pub(in crate::engine) fn begin(
        version: Version,
        raw: Option<&[u8]>,
        context: Context<'_>,
    ) -> Result<(Self, Exchange), RelayReason> {
        let mut forks = forks(context)?;
        forks.reverse();
        let [hashes] = exactly(&params(raw)?)?;
        let hashes = wire::json_array(hashes, MAX_ENTRIES + 1)?;
        if hashes.is_empty() || hashes.len() > MAX_ENTRIES {
            return Err(RelayReason::Count(hashes.len()));
        }
        let hashes = hashes.into_iter().map(wire::json_data).collect::<Result<Vec<_>, _>>()?;
        let mut state = Self {
            version,
            found: vec![None; hashes.len()],
            left: (0..hashes.len()).rev().collect(),
            hashes,
            forks,
            asked: Vec::new(),
            era_filter: EraFilter::new(context),
        };
        let fork = state.fork().ok_or(RelayReason::ForkNotOffered)?;
        let exchange = state.next_piece(fork, context)?;
        Ok((state, exchange))
    }

    fn fork(&self) -> Option<Fork> {
        self.forks.last().copied()
    }

    /// Asks the current fork for as many as it takes.
    fn next_piece(&mut self, fork: Fork, context: Context<'_>) -> Result<Exchange, RelayReason> {
        let rest = self.left.len().saturating_sub(piece(context));
        self.asked = self.left.split_off(rest);
        self.asked.reverse();
        self.exchange(&self.asked, fork, context)
    }

    fn exchange(
        &self,
        places: &[usize],
        fork: Fork,
        context: Context<'_>,
    ) -> Result<Exchange, RelayReason> {
        let hashes = places.iter().filter_map(|place| self.hashes.get(*place));
        let texts: Vec<_> =
            hashes.map(|hash| format!("\"{}\"", const_hex::encode_prefixed(hash))).collect();
        let list = format!("[{}]", texts.join(","));
        let request = schema::BODIES_BY_HASH_REQUEST;
        let body = wire::to_ssz(request, fork, Source::Fields(&[list.as_bytes()]))?;
        let endpoint = Endpoint::BodiesByHash(fork, body);
        Ok(Exchange::new(endpoint, Replay::Harmless, context.memory))
    }

    pub(in crate::engine) fn resume(
        &mut self,
        answer: &Response<Bytes>,
        context: Context<'_>,
    ) -> Result<Step, RelayReason> {
        if let EraFilter::Testing { under, .. } = self.era_filter {
            match entries(answer, self.version, under)? {
                Ok(entries) => self.era_filter.tested(&entries, context)?,
                Err(step) => return Ok(step),
            }
            return self.go_on(context);
        }
        let Some(fork) = self.fork() else {
            return self.go_on(context);
        };
        let entries = match entries(answer, self.version, fork)? {
            Ok(entries) => entries,
            Err(step) => return Ok(step),
        };
        if entries.len() != self.asked.len() {
            return Err(wrong_number(entries.len(), self.asked.len()));
        }
        let mut first_found = None;
        for (place, entry) in self.asked.drain(..).zip(entries) {
            if entry.is_some() {
                first_found = first_found.or(Some(place));
            }
            if let Some(slot) = self.found.get_mut(place) {
                *slot = entry;
            }
        }
        let test = first_found.and_then(|place| {
            self.era_filter.found(place, fork, context).map(|under| (place, under))
        });
        match test {
            Some((place, under)) => Ok(Step::send(self.exchange(&[place], under, context)?)),
            None => self.go_on(context),
        }
    }

    /// The next piece, the next fork, or the end.
    fn go_on(&mut self, context: Context<'_>) -> Result<Step, RelayReason> {
        if self.left.is_empty() {
            self.forks.pop();
            let missing = self.found.iter().enumerate().rev();
            self.left = missing.filter(|(_, entry)| entry.is_none()).map(|(at, _)| at).collect();
        }
        match self.fork() {
            Some(fork) if !self.left.is_empty() => Ok(Step::send(self.next_piece(fork, context)?)),
            _ => Ok(end(&self.found, context)),
        }
    }

    /// What was found, for a CL whose EL has no JSON-RPC to ask for the rest.
    pub(in crate::engine) fn end(&self) -> Step {
        Step::Answer(Answer::Result(print(&self.found)))
    }
}
