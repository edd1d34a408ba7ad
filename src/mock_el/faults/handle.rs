//! A running script: who is struck, and how many were.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{
    super::entropy::Entropy, Accepted, ConnectionRule, Dialect, Fault, Faults, HttpVersion, Kind,
    Operation, Probability, Rule, Target, Times,
};

/// How many faults took place, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Injected(BTreeMap<Kind, u64>);

/// A fault that is about to take place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Injection {
    /// To a request.
    Request {
        /// By which dialect it came.
        dialect: Dialect,
        /// What it asks, as far as that is known when the fault is chosen.
        operation: Option<Operation>,
        /// The fault.
        fault: Fault,
    },
    /// To a connection just accepted.
    Connection(Accepted),
}

/// The script of a running EL; clones share it.
#[derive(Clone, Debug)]
pub struct FaultsHandle(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    entropy: Entropy,
    rules: Vec<Running<Rule>>,
    connections: Vec<Running<ConnectionRule>>,
    injected: Injected,
    /// Told of every fault.
    listener: Option<UnboundedSender<(Instant, Injection)>>,
    /// Names rules across additions and clearings.
    next: u64,
}

#[derive(Debug)]
struct Running<R> {
    number: u64,
    rule: R,
    matched: u64,
    struck: u64,
}

/// What there is to know of a request when a rule must be chosen.
#[derive(Clone, Copy, Debug)]
pub(in crate::mock_el) struct Asked<'a> {
    pub(in crate::mock_el) dialect: Dialect,
    pub(in crate::mock_el) http: HttpVersion,
    pub(in crate::mock_el) operation: Option<Operation>,
    pub(in crate::mock_el) method: Option<&'a str>,
    pub(in crate::mock_el) stage: Stage,
}

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mock_el) enum Stage {
    /// Its head is in.
    Head,
    /// Its body is in too.
    Whole,
}

/// A fault chosen for a request, to be counted once it takes place.
#[derive(Clone, Debug)]
pub(in crate::mock_el) struct Chosen {
    rule: u64,
    pub(in crate::mock_el) fault: Fault,
}

impl Injected {
    /// How many of a kind.
    #[must_use]
    pub fn of(&self, kind: Kind) -> u64 {
        self.0.get(&kind).copied().unwrap_or_default()
    }

    /// How many in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// The kinds that took place, in their order, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Kind, u64)> {
        self.0.iter().map(|(kind, count)| (*kind, *count))
    }

    fn count(&mut self, kind: Kind) {
        let count = self.0.entry(kind).or_default();
        *count = count.saturating_add(1);
    }
}

impl Default for FaultsHandle {
    /// No fault, seed 0.
    fn default() -> Self {
        Self::new(Faults::default())
    }
}

impl FaultsHandle {
    /// Starts a script.
    #[must_use]
    pub fn new(script: Faults) -> Self {
        let handle = Self(Arc::new(Mutex::new(State {
            entropy: Entropy::of(&script.seed.to_le_bytes()),
            rules: Vec::new(),
            connections: Vec::new(),
            injected: Injected::default(),
            listener: None,
            next: 0,
        })));
        script.rules.into_iter().for_each(|rule| handle.add(rule));
        script.connections.into_iter().for_each(|rule| handle.add_connection(rule));
        handle
    }

    /// Adds a rule for requests, last in order.
    pub fn add(&self, rule: Rule) {
        let mut state = self.state();
        let number = state.number();
        state.rules.push(Running { number, rule, matched: 0, struck: 0 });
    }

    /// Adds a rule for connections accepted from now on, last in order.
    pub fn add_connection(&self, rule: ConnectionRule) {
        let mut state = self.state();
        let number = state.number();
        state.connections.push(Running { number, rule, matched: 0, struck: 0 });
    }

    /// Removes every rule. What is under way stays so, and the counts stay.
    pub fn clear(&self) {
        let mut state = self.state();
        state.rules.clear();
        state.connections.clear();
    }

    /// Tells every fault from now on, when it is chosen, before it takes place. There is one
    /// listener; a new one takes the place of the one before.
    #[must_use]
    pub fn listen(&self) -> UnboundedReceiver<(Instant, Injection)> {
        let (tell, listener) = unbounded_channel();
        self.state().listener = Some(tell);
        listener
    }

    /// How many faults took place since the start.
    #[must_use]
    pub fn injected(&self) -> Injected {
        self.state().injected.clone()
    }

    /// The fault of a request, by the first rule that wants it.
    pub(in crate::mock_el) fn choose(&self, asked: Asked<'_>) -> Option<Chosen> {
        let state = &mut *self.state();
        for running in &mut state.rules {
            if running.rule.matches(asked)
                && running.wants(&mut state.entropy, running.rule.limits())
            {
                let fault = running.rule.fault.clone();
                if let Some(listener) = &state.listener {
                    let Asked { dialect, operation, .. } = asked;
                    let fault = fault.clone();
                    let injection = Injection::Request { dialect, operation, fault };
                    // A listener that is gone has heard enough.
                    let _ = listener.send((Instant::now(), injection));
                }
                return Some(Chosen { rule: running.number, fault });
            }
        }
        None
    }

    /// Counts a chosen fault that takes place.
    pub(in crate::mock_el) fn took_place(&self, chosen: &Chosen) {
        self.state().injected.count(chosen.fault.kind());
    }

    /// Gives back a chosen fault that found nothing to harm.
    pub(in crate::mock_el) fn unspent(&self, chosen: &Chosen) {
        let mut state = self.state();
        if let Some(running) = state.rules.iter_mut().find(|rule| rule.number == chosen.rule) {
            running.struck = running.struck.saturating_sub(1);
        }
    }

    /// The fault of a connection just accepted; counted at once.
    pub(in crate::mock_el) fn accept(&self) -> Option<Accepted> {
        let state = &mut *self.state();
        for running in &mut state.connections {
            if running.wants(&mut state.entropy, running.rule.limits()) {
                state.injected.count(Kind::Connection);
                if let Some(listener) = &state.listener {
                    let injection = Injection::Connection(running.rule.fault);
                    let _ = listener.send((Instant::now(), injection));
                }
                return Some(running.rule.fault);
            }
        }
        None
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// How often a rule strikes what it matches.
#[derive(Clone, Copy)]
struct Limits {
    skip: u64,
    probability: Probability,
    times: Times,
}

impl<R> Running<R> {
    /// Whether it strikes, now that it matches.
    fn wants(&mut self, entropy: &mut Entropy, limits: Limits) -> bool {
        let before = self.matched;
        self.matched = before.saturating_add(1);
        let spent = matches!(limits.times, Times::Count(times) if self.struck >= times);
        if spent || before < limits.skip || !limits.probability.happens(entropy.u64()) {
            return false;
        }
        self.struck += 1;
        true
    }
}

impl ConnectionRule {
    fn limits(&self) -> Limits {
        Limits { skip: self.skip, probability: self.probability, times: self.times }
    }
}

impl Rule {
    fn limits(&self) -> Limits {
        Limits { skip: self.skip, probability: self.probability, times: self.times }
    }

    fn matches(&self, asked: Asked<'_>) -> bool {
        let needs_h2 = matches!(self.fault, Fault::ResetStream { .. } | Fault::GoAway { .. });
        let stage = match self.fault {
            Fault::TooLargeEarly => Stage::Head,
            _ => Stage::Whole,
        };
        let dialect = match self.fault {
            Fault::Ssz(_) => Some(Dialect::Rest),
            Fault::Json(_) => Some(Dialect::JsonRpc),
            _ => None,
        };
        let is_target = match &self.target {
            Target::Any => true,
            Target::Operation(operation) => asked.operation == Some(*operation),
            Target::Method(name) => asked.method == Some(name.as_str()),
        };
        stage == asked.stage
            && is_target
            && self.dialect.is_none_or(|dialect| dialect == asked.dialect)
            && dialect.is_none_or(|dialect| dialect == asked.dialect)
            && self.http.is_none_or(|http| http == asked.http)
            && (!needs_h2 || asked.http == HttpVersion::Http2)
    }
}
