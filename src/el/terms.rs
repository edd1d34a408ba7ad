//! On what terms a call goes to the EL.

use super::deadline::Deadline;
use super::error::{ElError, Failure};
use super::resend::{Earlier, Next, Path, Repeat, Resend, Tries, next};

/// On what terms a call goes to the EL: what harm a second copy does, what it has been through, and
/// when it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    repeat: Repeat,
    earlier: Earlier,
    deadline: Option<Deadline>,
}

impl From<Repeat> for Terms {
    /// Those of a call that was not tried yet, with the deadline of calls that the specification
    /// gives none.
    fn from(repeat: Repeat) -> Self {
        Self { repeat, earlier: Earlier::None, deadline: None }
    }
}

impl Terms {
    /// The same with a deadline, which holds for all attempts together.
    #[must_use]
    pub fn within(self, deadline: Deadline) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// The terms on which a call goes on after an attempt that failed.
    #[must_use]
    pub fn after(self, failed: &ElError) -> Self {
        match failed.resend() {
            Resend::NeverSent => self,
            _ => Self { earlier: Earlier::Some, ..self },
        }
    }

    pub(super) fn plan(self, path: Path, or_until: impl FnOnce() -> Deadline) -> Plan {
        let deadline = self.deadline.unwrap_or_else(or_until);
        Plan { path, repeat: self.repeat, earlier: self.earlier, deadline }
    }
}

/// What is settled about a request before it is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) path: Path,
    pub(super) repeat: Repeat,
    pub(super) earlier: Earlier,
    pub(super) deadline: Deadline,
}

impl Plan {
    /// What the rule of resends says after this failure.
    pub(super) fn next(self, failure: &Failure) -> Next {
        let tries = Tries {
            path: self.path,
            connection: failure.connection,
            earlier: match self.earlier {
                Earlier::Some => Earlier::Some,
                Earlier::None => failure.earlier,
            },
            time: failure.time(),
        };
        next(failure.resend, self.repeat, tries)
    }
}
