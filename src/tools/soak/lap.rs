//! One lap: a chain from its genesis on, the CLs that drive it, and the judging of what they hear.

use super::{
    draw::Draw,
    heads::{Ending, Heads, Span},
    incidents::{Incidents, Window},
    line::{Heard, Line},
    order::{Commander, Mark, Orders},
    record::Record,
    truth::{Truth, operation},
};
use crate::{
    jwt::Secret,
    mock_el::MockEl,
    tools::eras::{ERAS, Era},
};
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// No fault takes longer; a call without an answer by then is lost.
const PATIENCE: Duration = Duration::from_secs(20);

/// Pause after a call that failed.
pub(super) const PAUSE: Duration = Duration::from_millis(10);

/// What outlives a lap.
#[derive(Debug)]
pub(super) struct Session {
    /// Where the sidecar listens.
    pub address: SocketAddr,
    /// What the CLs sign with.
    pub secret: Secret,
    /// All chance comes from here.
    pub seed: u64,
    /// What was counted so far.
    pub record: Record,
    incidents: Mutex<Incidents>,
    next_id: AtomicU64,
}

/// A chain and what is known of it.
#[derive(Debug)]
pub(super) struct Lap {
    /// Counted from 0.
    pub number: u64,
    session: Arc<Session>,
    /// An EL that hears every command of the CLs and is never struck.
    reference: MockEl,
    slots_per_fork: u64,
    slots: Mutex<Vec<Arc<Slot>>>,
    heads: Mutex<Heads>,
    orders: Mutex<Orders>,
    is_over: AtomicBool,
}

/// A block that the proposer has made the head.
#[derive(Debug)]
pub(super) struct Slot {
    pub number: u64,
    pub hash: String,
    pub era: &'static Era,
    pub payload: PayloadIds,
    /// Versioned hashes of its blobs.
    pub blobs: Vec<String>,
    /// Parameters of its `engine_newPayload`.
    pub import: Value,
}

/// The names of one build.
#[derive(Clone, Debug)]
pub(super) struct PayloadIds {
    /// To the EL under test.
    pub el: String,
    /// To the reference.
    pub reference: String,
    /// Not after the EL gave it.
    pub made: Instant,
}

/// A command, as the judges have to know it.
#[derive(Clone, Debug)]
pub(super) struct Command {
    pub commander: Commander,
    pub step: u64,
    pub marks: Vec<Mark>,
    /// Number of the block that a forkchoice makes the head.
    pub head: Option<u64>,
}

/// A call with all that is needed to judge its answer.
pub(super) struct Question {
    pub method: &'static str,
    pub id: Value,
    pub body: Value,
    pub due: Due,
    pub command: Option<Command>,
    /// When the build that is asked for was begun.
    pub build_made: Option<Instant>,
}

/// Where the truth comes from.
pub(super) enum Due {
    /// The reference's answer to the same call.
    Same,
    /// The reference's answer to another call, under the id of this one.
    Instead(Value),
    /// Made of the reference's answer to another call and of what the head may have been meanwhile.
    Made(Value, Box<dyn FnOnce(Value, Span) -> Truth + Send>),
}

/// How a call ended.
#[derive(Debug)]
pub(super) enum Outcome {
    /// With the truth.
    Right {
        /// What was heard.
        heard: Value,
        /// The payload id that the reference gave, if it gave one.
        reference_id: Option<String>,
        /// When the call was sent.
        sent: Instant,
    },
    /// With something else.
    Else,
}

/// A call that is on its way.
pub(super) struct Sent<F> {
    answer: F,
    question: Question,
    early: Option<Value>,
    update: Option<u64>,
    span: u64,
    at: Instant,
}

impl Session {
    pub(super) fn new(
        address: SocketAddr,
        secret: Secret,
        seed: u64,
        incidents: Incidents,
    ) -> Self {
        let (record, next_id) = (Record::default(), AtomicU64::new(0));
        Self { address, secret, seed, record, incidents: Mutex::new(incidents), next_id }
    }

    pub(super) fn incidents(&self) -> MutexGuard<'_, Incidents> {
        self.incidents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An id that no other call has: numbers and texts in turn.
    pub(super) fn id(&self) -> Value {
        let number = self.next_id.fetch_add(1, Ordering::Relaxed);
        if number.is_multiple_of(3) { json!(format!("soak-{number}")) } else { json!(number) }
    }
}

impl Lap {
    pub(super) fn new(
        number: u64,
        session: Arc<Session>,
        reference: MockEl,
        slots_per_fork: u64,
        orders: Orders,
    ) -> Self {
        Self {
            number,
            session,
            reference,
            slots_per_fork,
            slots: Mutex::default(),
            heads: Mutex::new(Heads::new()),
            orders: Mutex::new(orders),
            is_over: AtomicBool::new(false),
        }
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    pub(super) fn genesis_hash(&self) -> String {
        self.reference.genesis_hash().to_string()
    }

    /// The fork of a block of that number.
    pub(super) fn era(&self, number: u64) -> &'static Era {
        let place = usize::try_from(number / self.slots_per_fork.max(1)).unwrap_or(usize::MAX);
        ERAS.get(place).unwrap_or(&ERAS[ERAS.len() - 1])
    }

    /// The number of the first block of a fork.
    pub(super) fn first_of(&self, fork: &str) -> u64 {
        let place = ERAS.iter().position(|era| era.name == fork).unwrap_or(ERAS.len());
        self.slots_per_fork.saturating_mul(place as u64)
    }

    pub(super) fn slots(&self) -> MutexGuard<'_, Vec<Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn newest(&self) -> Option<Arc<Slot>> {
        self.slots().last().cloned()
    }

    pub(super) fn publish(&self, slot: Slot) {
        self.slots().push(Arc::new(slot));
    }

    /// Tells the CLs to come to an end.
    pub(super) fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// A stream of chance of its own for a CL.
    pub(super) fn draw(&self, cl: u64) -> Draw {
        Draw::new(self.session.seed, (self.number << 8) | cl)
    }

    /// What the reference says to a request.
    pub(super) fn reference(&self, request: &Value) -> Value {
        let text = self.reference.answer(request.to_string().as_bytes());
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// A call to which the reference's own answer is the only right one.
    pub(super) fn question(&self, method: &'static str, params: Value) -> Question {
        let id = self.session.id();
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        Question { method, id, body, due: Due::Same, command: None, build_made: None }
    }

    /// Sends a call and judges its answer.
    pub(super) async fn ask(&self, line: &Line, question: Question) -> Outcome {
        let sent = self.send(line, question).await;
        self.hear(sent).await
    }

    /// Sends a call. Over a socket it is on its way when this returns.
    pub(super) async fn send(
        &self,
        line: &Line,
        question: Question,
    ) -> Sent<impl Future<Output = Heard>> {
        let mut early = None;
        let mut update = None;
        if let Some(command) = &question.command {
            self.orders().begin(command.commander, command.step, &command.marks);
            update = command.head.map(|head| self.heads().begin(head));
            // The reference has to know of it before anything that builds on it.
            early = Some(self.reference(&question.body));
        }
        let span = self.heads().open();
        let at = Instant::now();
        let answer = line.send(&question.id, question.body.to_string()).await;
        Sent { answer, question, early, update, span, at }
    }

    /// Waits for the answer and judges it.
    pub(super) async fn hear(&self, sent: Sent<impl Future<Output = Heard>>) -> Outcome {
        let Sent { answer, mut question, early, update, span, at } = sent;
        let heard = tokio::time::timeout(PATIENCE, answer).await;
        let answered = Instant::now();
        let heard =
            heard.unwrap_or_else(|_| Heard::Lost(format!("no answer in {} s", PATIENCE.as_secs())));
        let due = std::mem::replace(&mut question.due, Due::Same);
        let (asked, made) = match due {
            Due::Same => (None, None),
            Due::Instead(request) => (Some(request), None),
            Due::Made(request, make) => (Some(request), Some(make)),
        };
        // Asked before the span is closed: the reference is never behind the EL.
        let mut said = match early {
            Some(said) => said,
            None => self.reference(asked.as_ref().unwrap_or(&question.body)),
        };
        let span = self.heads().close(span);
        if asked.is_some() {
            said["id"] = question.id.clone();
        }
        let reference_id = match &heard {
            Heard::Json(heard) => take_payload_id(&mut said, heard),
            _ => None,
        };
        let truth = match made {
            Some(make) => make(said, span),
            None => Truth::Is(said),
        };
        let window = Window {
            operation: operation(question.method),
            builds: question.command.as_ref().is_some_and(Command::builds),
            sent: at,
            answered,
        };
        let outcome = self.judge(&question, truth, heard, window, reference_id);
        if let Some(command) = &question.command {
            let is_right = matches!(outcome, Outcome::Right { .. });
            self.orders().end(&command.marks, is_right);
            if let Some(update) = update {
                let ending = if is_right { Ending::Applied } else { Ending::Unknown };
                self.heads().end(update, ending);
            }
            self.judge_command(&question, command, &outcome, window);
        }
        outcome
    }

    pub(super) fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn heads(&self) -> MutexGuard<'_, Heads> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Command {
    /// Whether it begins a build.
    pub(super) fn builds(&self) -> bool {
        self.marks.iter().any(|mark| matches!(mark, Mark::Build(_)))
    }
}

/// Names of builds are an EL's own: if both have begun one, the name heard is the one due. Gives the
/// reference's.
fn take_payload_id(due: &mut Value, heard: &Value) -> Option<String> {
    const ID: &str = "/result/payloadId";
    let heard = heard.pointer(ID).filter(|id| id.is_string())?.clone();
    let due = due.pointer_mut(ID).filter(|id| id.is_string())?;
    let reference = due.as_str().map(ToOwned::to_owned);
    *due = heard;
    reference
}
