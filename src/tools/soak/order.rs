//! Whether the EL carried out what the CLs commanded: nothing else, in their order, and a build once
//! for each call.

use crate::mock_el::Processed;
use alloy_primitives::B256;
use alloy_rpc_types_engine::PayloadId;
use std::collections::HashMap;
use tokio::sync::mpsc::UnboundedReceiver;

/// A CL that gives commands. The order is judged for each by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Commander {
    /// Builds the chain.
    Proposer,
    /// Builds beside it.
    Follower,
}

/// What tells a command that reaches the EL from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Mark {
    /// A payload, by the hash that it claims.
    Payload(B256),
    /// A forkchoice state.
    State {
        /// Its head.
        head: B256,
        /// Its safe block.
        safe: B256,
    },
    /// A build, by the `prevRandao` of its attributes.
    Build(B256),
}

/// What is known of the marks of one lap.
#[derive(Debug)]
pub(super) struct Orders {
    journal: UnboundedReceiver<Processed>,
    commands: HashMap<Mark, Command>,
    newest: HashMap<Commander, u64>,
    violations: Vec<String>,
}

#[derive(Debug)]
struct Command {
    commander: Commander,
    /// Its place among the commands of its CL; a command that is given again keeps it.
    step: u64,
    in_flight: u32,
    /// Whether a call with it ended without a word of the EL.
    in_doubt: bool,
    /// Two commands look the same, so neither is judged.
    is_ambiguous: bool,
    fate: Fate,
}

/// What the EL did with a command so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fate {
    /// Of a payload: whether it was validated, and found valid.
    pub valid: Option<bool>,
    /// Of a forkchoice: whether it was applied, or refused.
    pub is_applied: bool,
    /// Of a build: the ids that were given out, one for each time.
    pub builds: Vec<PayloadId>,
}

impl Orders {
    pub(super) fn new(journal: UnboundedReceiver<Processed>) -> Self {
        Self { journal, commands: HashMap::new(), newest: HashMap::new(), violations: Vec::new() }
    }

    /// A command is about to be sent.
    pub(super) fn begin(&mut self, commander: Commander, step: u64, marks: &[Mark]) {
        for mark in marks {
            let command = self.commands.entry(*mark).or_insert_with(|| Command {
                commander,
                step,
                in_flight: 0,
                in_doubt: false,
                is_ambiguous: false,
                fate: Fate::default(),
            });
            command.is_ambiguous |= (command.commander, command.step) != (commander, step);
            command.in_flight += 1;
        }
    }

    /// It was answered, with a word of the EL or without one.
    pub(super) fn end(&mut self, marks: &[Mark], is_answered: bool) {
        self.settle();
        for mark in marks {
            if let Some(command) = self.commands.get_mut(mark) {
                command.in_flight = command.in_flight.saturating_sub(1);
                command.in_doubt |= !is_answered;
            }
        }
    }

    /// What became of a command until now.
    pub(super) fn fate(&mut self, mark: Mark) -> Fate {
        self.settle();
        self.commands.get(&mark).map(|command| command.fate.clone()).unwrap_or_default()
    }

    /// What was found since the last time.
    pub(super) fn violations(&mut self) -> Vec<String> {
        self.settle();
        std::mem::take(&mut self.violations)
    }

    /// Reads what the EL has carried out meanwhile. An answer comes after what it answers, so all
    /// that an answered call has caused is there.
    fn settle(&mut self) {
        while let Ok(processed) = self.journal.try_recv() {
            self.carried_out(processed);
        }
    }

    fn carried_out(&mut self, processed: Processed) {
        let mark = match processed {
            Processed::NewPayload { block_hash, .. } => Mark::Payload(block_hash),
            Processed::Forkchoice { head, safe } => Mark::State { head, safe },
            Processed::Build { prev_randao, .. } => Mark::Build(prev_randao),
        };
        let Some(command) = self.commands.get_mut(&mark) else {
            self.violations.push(format!("the EL carried out what no CL commanded: {mark:?}"));
            return;
        };
        match processed {
            Processed::NewPayload { is_valid, .. } => command.fate.valid = Some(is_valid),
            Processed::Build { payload_id, .. } => command.fate.builds.push(payload_id),
            Processed::Forkchoice { .. } => command.fate.is_applied = true,
        }
        if command.is_ambiguous {
            return;
        }
        let Command { commander, step, .. } = *command;
        if command.in_flight == 0 && !command.in_doubt {
            self.violations.push(format!(
                "the EL carried out a command of the {commander:?} again when all was answered: {mark:?}"
            ));
        }
        let newest = self.newest.entry(commander).or_default();
        if step < *newest {
            self.violations.push(format!(
                "the EL carried out a command of the {commander:?} after a later one: {mark:?}, step {step} after {newest}"
            ));
        }
        *newest = step.max(*newest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

    fn orders() -> (UnboundedSender<Processed>, Orders) {
        let (tell, journal) = unbounded_channel();
        (tell, Orders::new(journal))
    }

    fn hash(byte: u8) -> B256 {
        B256::repeat_byte(byte)
    }

    fn payload(byte: u8) -> Processed {
        Processed::NewPayload { block_hash: hash(byte), is_valid: true }
    }

    #[test]
    fn commands_in_order_are_no_violation_and_a_swap_is_one() {
        for (order, wanted) in [([1, 2], 0), ([2, 1], 1)] {
            let (tell, mut orders) = orders();
            orders.begin(Commander::Proposer, 1, &[Mark::Payload(hash(1))]);
            orders.begin(Commander::Proposer, 2, &[Mark::Payload(hash(2))]);
            order.iter().for_each(|byte| tell.send(payload(*byte)).unwrap());
            assert_eq!(orders.violations().len(), wanted, "{order:?}");
        }
    }

    #[test]
    fn two_cls_are_not_held_against_each_other() {
        let (tell, mut orders) = orders();
        orders.begin(Commander::Proposer, 2, &[Mark::Payload(hash(1))]);
        orders.begin(Commander::Follower, 1, &[Mark::Payload(hash(2))]);
        [1, 2].iter().for_each(|byte| tell.send(payload(*byte)).unwrap());
        assert!(orders.violations().is_empty());
    }

    #[test]
    fn what_nobody_commanded_or_was_answered_already_is_a_violation() {
        let (tell, mut orders) = orders();
        let mark = [Mark::Payload(hash(1))];
        orders.begin(Commander::Proposer, 1, &mark);
        tell.send(payload(1)).unwrap();
        orders.end(&mark, true);
        assert!(orders.violations().is_empty());
        tell.send(payload(1)).unwrap();
        tell.send(payload(9)).unwrap();
        assert_eq!(orders.violations().len(), 2);
    }

    #[test]
    fn a_command_in_doubt_may_still_be_carried_out() {
        let (tell, mut orders) = orders();
        let mark = [Mark::Payload(hash(1))];
        orders.begin(Commander::Proposer, 1, &mark);
        orders.end(&mark, false);
        tell.send(payload(1)).unwrap();
        assert!(orders.violations().is_empty());
        assert_eq!(orders.fate(mark[0]).valid, Some(true));
    }
}
