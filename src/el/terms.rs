//! On what terms a call goes to the EL.

use super::error::{ElError, Plan};
use super::resend::{Earlier, Path, Repeat, Resend};

/// On what terms a call goes to the EL: what harm a second copy does, and what it has been through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    repeat: Repeat,
    earlier: Earlier,
}

impl From<Repeat> for Terms {
    /// Those of a call that was not tried yet.
    fn from(repeat: Repeat) -> Self {
        Self { repeat, earlier: Earlier::None }
    }
}

impl Terms {
    /// The terms on which a call goes on after an attempt that failed.
    #[must_use]
    pub fn after(self, failed: &ElError) -> Self {
        match failed.resend() {
            Resend::NeverSent => self,
            _ => Self { earlier: Earlier::Some, ..self },
        }
    }

    pub(super) fn plan(self, path: Path) -> Plan {
        Plan { path, repeat: self.repeat, earlier: self.earlier }
    }
}
