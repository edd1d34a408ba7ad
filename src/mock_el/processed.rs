//! What the chain was told, in the order in which it was told.

use alloy_primitives::B256;
use alloy_rpc_types_engine::PayloadId;
use tokio::sync::mpsc::UnboundedSender;

/// A command that the chain has carried out, whichever dialect it came in and whatever became of
/// its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processed {
    /// A payload was validated.
    NewPayload {
        /// The block hash that it claims.
        block_hash: B256,
        /// Whether it was found valid.
        is_valid: bool,
    },
    /// A forkchoice state was applied, or refused.
    Forkchoice {
        /// `headBlockHash`.
        head: B256,
        /// `safeBlockHash`.
        safe: B256,
    },
    /// A build was begun, or found under way; it follows its forkchoice.
    Build {
        /// `prevRandao` of its attributes.
        prev_randao: B256,
        /// The id that was given out.
        payload_id: PayloadId,
    },
}

/// Tells whoever listens, if anybody does.
#[derive(Debug, Default)]
pub(super) struct Journal(Option<UnboundedSender<Processed>>);

impl Journal {
    pub(super) fn to(listener: UnboundedSender<Processed>) -> Self {
        Self(Some(listener))
    }

    pub(super) fn note(&self, processed: Processed) {
        if let Some(listener) = &self.0 {
            // A listener that is gone has heard enough.
            let _ = listener.send(processed);
        }
    }
}
