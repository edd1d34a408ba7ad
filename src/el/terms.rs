//! On what terms a call goes to the EL.

use http::StatusCode;

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
            Resend::Unfit => self.done_once(),
            _ => Self { earlier: Earlier::Some, ..self },
        }
    }

    /// The terms on which a call goes on after an answer with this status that does not end it. What
    /// the EL refused (4xx) it did not carry out.
    #[must_use]
    pub fn answered(self, status: StatusCode) -> Self {
        if status.is_client_error() { self } else { self.done_once() }
    }

    /// The same for an exchange that is part of the call and does that harm.
    #[must_use]
    pub fn of(self, repeat: Repeat) -> Self {
        Self { repeat, ..self }
    }

    /// The EL is done with one copy. Whoever goes on with what must not be repeated has decided that
    /// it goes once more all the same, and that one may be lost before it is sent.
    fn done_once(self) -> Self {
        match self.repeat {
            Repeat::OnlyIfNeverSent => self,
            Repeat::Harmless | Repeat::OnceMore => Self { earlier: Earlier::Some, ..self },
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

#[cfg(test)]
mod tests {
    use super::{Earlier, Repeat, StatusCode, Terms};

    #[test]
    fn an_answer_is_a_copy_of_a_command_unless_it_refuses_it() {
        let after = |repeat, status| {
            let status = StatusCode::from_u16(status).unwrap();
            Terms::from(repeat).answered(status).earlier
        };
        for status in [200, 204, 500, 503] {
            assert_eq!(after(Repeat::OnceMore, status), Earlier::Some, "{status}");
        }
        for status in [400, 404, 422] {
            assert_eq!(after(Repeat::OnceMore, status), Earlier::None, "{status}");
        }
        // It goes on all the same, and may be lost before it is sent.
        assert_eq!(after(Repeat::OnlyIfNeverSent, 200), Earlier::None);
    }
}
