//! Bodies by range.

use super::{Entry, MAX_ENTRIES, end, entries, era_filter::EraFilter, forks, piece, print};
use crate::{
    engine::{
        Answer, Context, Exchange, RelayReason, Replay, Step,
        exchange::{Endpoint, bad_answer},
        method::Version,
        params::{exactly, params},
    },
    wire::{self, Fork},
};
use bytes::Bytes;
use http::Response;

/// Block numbers being looked up, piece by piece, each fork by fork.
#[derive(Debug)]
pub(in crate::engine) struct BodiesByRange {
    version: Version,
    /// Entries of the pieces that are complete.
    found: Vec<Entry>,
    /// Entries of the piece asked for now, merged over the forks asked so far.
    current: Vec<Entry>,
    start: u64,
    count: usize,
    forks: Vec<Fork>,
    /// Place of the fork asked now in `forks`.
    turn: usize,
    era_filter: EraFilter,
}

impl BodiesByRange {
    pub(in crate::engine) fn begin(
        version: Version,
        raw: Option<&[u8]>,
        context: Context<'_>,
    ) -> Result<(Self, Exchange), RelayReason> {
        let forks = forks(context)?;
        let [start, count] = exactly(&params(raw)?)?;
        let (start, count) = (wire::json_u64(start)?, wire::json_u64(count)?);
        // Zeros are -32602 and too many are -38004: the EL's to say (shanghai.md).
        if start == 0 || count == 0 {
            return Err(RelayReason::EmptyRange { start, count });
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > MAX_ENTRIES {
            return Err(RelayReason::Count(count));
        }
        let mut state = Self {
            version,
            found: Vec::new(),
            current: Vec::new(),
            start,
            count,
            forks,
            turn: 0,
            era_filter: EraFilter::new(context),
        };
        let exchange = state.ask(context).ok_or(RelayReason::ForkNotOffered)?;
        Ok((state, exchange))
    }

    fn fork(&self) -> Option<Fork> {
        self.forks.get(self.turn).copied()
    }

    /// First block and length of the piece asked for now; `None` past the last number there is.
    fn span(&self, context: Context<'_>) -> Option<(u64, usize)> {
        let from = self.start.checked_add(self.found.len() as u64)?;
        let left = self.count.checked_sub(self.found.len()).filter(|left| *left > 0)?;
        Some((from, left.min(piece(context))))
    }

    /// The current piece under the current fork.
    fn ask(&mut self, context: Context<'_>) -> Option<Exchange> {
        let (from, count) = self.span(context)?;
        Some(exchange(self.fork()?, from, count, context))
    }

    pub(in crate::engine) fn resume(
        &mut self,
        answer: &Response<Bytes>,
        context: Context<'_>,
    ) -> Result<Step, RelayReason> {
        if let EraFilter::Testing { under, .. } = self.era_filter {
            match entries(answer, self.version, under)? {
                // The block was there a moment ago.
                Ok(entries) if entries.is_empty() => return Err(RelayReason::HeadMoved),
                Ok(entries) => self.era_filter.tested(&entries, context)?,
                Err(step) => return Ok(step),
            }
            return Ok(self.go_on(context));
        }
        let (Some(fork), Some((from, asked))) = (self.fork(), self.span(context)) else {
            return Ok(end(&self.found, context));
        };
        let entries = match entries(answer, self.version, fork)? {
            Ok(entries) => entries,
            Err(step) => return Ok(step),
        };
        if entries.len() > asked {
            return Err(super::wrong_number(entries.len(), asked));
        }
        if self.turn > 0 && entries.len() != self.current.len() {
            // The head moved between two forks of one piece.
            return Err(RelayReason::HeadMoved);
        }
        if self.turn == 0 {
            self.current = vec![None; entries.len()];
        }
        let mut first_found = None;
        for (place, (slot, entry)) in self.current.iter_mut().zip(entries).enumerate() {
            if entry.is_some() {
                if slot.is_some() {
                    return Err(bad_answer("the same body under two forks"));
                }
                first_found = first_found.or(Some(place));
                *slot = entry;
            }
        }
        let test = first_found.and_then(|place| {
            self.era_filter.found(place, fork, context).map(|under| (place, under))
        });
        match test {
            Some((place, under)) => {
                Ok(Step::send(exchange(under, from.saturating_add(place as u64), 1, context)))
            }
            None => Ok(self.go_on(context)),
        }
    }

    /// The next fork, the next piece, or the end.
    fn go_on(&mut self, context: Context<'_>) -> Step {
        self.turn += 1;
        let complete = self.current.iter().all(Option::is_some);
        if !complete && let Some(exchange) = self.ask(context) {
            return Step::send(exchange);
        }
        let short = self.span(context).is_none_or(|(_, asked)| self.current.len() < asked);
        self.found.append(&mut self.current);
        self.turn = 0;
        // A short piece ends at the head: there is nothing behind it.
        match self.ask(context) {
            Some(exchange) if !short => Step::send(exchange),
            _ => end(&self.found, context),
        }
    }

    /// What was found, for a CL whose EL has no JSON-RPC to ask for the rest.
    pub(in crate::engine) fn end(&self) -> Step {
        Step::Answer(Answer::Result(print(&self.found)))
    }
}

fn exchange(fork: Fork, from: u64, count: usize, context: Context<'_>) -> Exchange {
    Exchange::new(Endpoint::BodiesByRange { fork, from, count }, Replay::Harmless, context.memory)
}
