//! Which block may be the EL's head while a call is under way. With several CLs, and with answers
//! that get lost, that is not one block but a span of them.

/// The forkchoices that may have the last word, and the spans of the calls under way.
#[derive(Debug)]
pub(super) struct Heads {
    updates: Vec<Update>,
    spans: Vec<(u64, Span)>,
    next: u64,
    clock: u64,
}

#[derive(Debug)]
struct Update {
    number: u64,
    head: u64,
    begun: u64,
    ended: Option<u64>,
}

/// Lowest and highest block number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub lowest: u64,
    pub highest: u64,
}

/// How a forkchoice ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The EL has said that it is applied.
    Applied,
    /// Nobody knows.
    Unknown,
}

impl Heads {
    /// The head is the genesis block.
    pub(super) fn new() -> Self {
        let genesis = Update { number: 0, head: 0, begun: 0, ended: Some(1) };
        Self { updates: vec![genesis], spans: Vec::new(), next: 1, clock: 1 }
    }

    /// A forkchoice is about to be sent.
    pub(super) fn begin(&mut self, head: u64) -> u64 {
        let (number, begun) = (self.number(), self.tick());
        self.updates.push(Update { number, head, begun, ended: None });
        for (_, span) in &mut self.spans {
            span.lowest = span.lowest.min(head);
            span.highest = span.highest.max(head);
        }
        number
    }

    /// It was answered. One that was applied has the last word over all that ended before it began.
    pub(super) fn end(&mut self, number: u64, ending: Ending) {
        let now = self.tick();
        let Some(update) = self.updates.iter_mut().find(|update| update.number == number) else {
            return;
        };
        update.ended = Some(now);
        let begun = update.begun;
        if ending == Ending::Applied {
            self.updates.retain(|update| update.ended.is_none_or(|ended| ended >= begun));
        }
    }

    /// A call that depends on the head is about to be sent.
    pub(super) fn open(&mut self) -> u64 {
        let number = self.number();
        let heads = || self.updates.iter().map(|update| update.head);
        let span = Span {
            lowest: heads().min().unwrap_or_default(),
            highest: heads().max().unwrap_or_default(),
        };
        self.spans.push((number, span));
        number
    }

    /// It was answered: what the head may have been meanwhile.
    pub(super) fn close(&mut self, number: u64) -> Span {
        match self.spans.iter().position(|(known, _)| *known == number) {
            Some(at) => self.spans.swap_remove(at).1,
            None => Span { lowest: 0, highest: u64::MAX },
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(heads: &mut Heads) -> (u64, u64) {
        let number = heads.open();
        let Span { lowest, highest } = heads.close(number);
        (lowest, highest)
    }

    #[test]
    fn an_applied_forkchoice_has_the_last_word_and_one_under_way_may_have_it() {
        let mut heads = Heads::new();
        let first = heads.begin(1);
        assert_eq!(now(&mut heads), (0, 1));
        heads.end(first, Ending::Applied);
        assert_eq!(now(&mut heads), (1, 1));
        let (second, third) = (heads.begin(2), heads.begin(3));
        heads.end(third, Ending::Applied);
        // Either of two that were under way at once may have come last.
        assert_eq!(now(&mut heads), (2, 3));
        heads.end(second, Ending::Applied);
        assert_eq!(now(&mut heads), (2, 3));
    }

    #[test]
    fn one_that_nobody_knows_of_does_away_with_nothing() {
        let mut heads = Heads::new();
        let lost = heads.begin(1);
        heads.end(lost, Ending::Unknown);
        assert_eq!(now(&mut heads), (0, 1));
        let next = heads.begin(2);
        heads.end(next, Ending::Applied);
        assert_eq!(now(&mut heads), (2, 2));
    }

    #[test]
    fn a_span_grows_with_what_begins_within_it() {
        let mut heads = Heads::new();
        let span = heads.open();
        let update = heads.begin(5);
        heads.end(update, Ending::Applied);
        assert_eq!(heads.close(span), Span { lowest: 0, highest: 5 });
    }
}
