//! The one chain behind both dialects.
//!
//! Every operation is typed and knows nothing of JSON, SSZ or HTTP; the two surfaces only translate.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use alloy_eips::eip7685::Requests;
use alloy_primitives::{B64, B128, B256};
use alloy_rpc_types_engine::{
    ExecutionPayload, ForkchoiceState, PayloadAttributes, PayloadId, PayloadStatus,
    PayloadStatusEnum,
};

use super::{
    blobs::BlobPool,
    block::{Block, Extras, versioned_hashes},
    build::{Built, build, payload_id},
    error::EngineError,
    fork::Fork,
    genesis::Genesis,
    processed::{Journal, Processed},
};

/// Validation errors are cut here: the SSZ status holds no more (refactor.md, MAX_ERROR_BYTES).
const MAX_ERROR_BYTES: usize = 1024;

/// A payload to validate, whichever dialect it came in.
#[derive(Debug)]
pub(super) struct NewPayload {
    pub(super) payload: ExecutionPayload,
    pub(super) parent_beacon_block_root: Option<B256>,
    pub(super) requests: Option<Requests>,
    /// What the CL thinks the blob transactions carry; the REST dialect has no such field.
    pub(super) expected_blob_versioned_hashes: Option<Vec<B256>>,
}

/// What became of the forkchoice state of an update that was not refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// The head is this known, valid block, and now the chain's.
    Valid(B256),
    /// The head is not known; nothing changed.
    Syncing,
    /// The head is a block that was found invalid; nothing changed.
    Invalid(PayloadStatus),
}

impl From<Head> for PayloadStatus {
    fn from(head: Head) -> Self {
        match head {
            Head::Valid(hash) => valid(hash),
            Head::Syncing => syncing(),
            Head::Invalid(status) => status,
        }
    }
}

/// The chain: every valid block ever seen, the canonical ones by number, all builds, all blobs.
#[derive(Debug)]
pub(super) struct Chain {
    genesis: Genesis,
    genesis_hash: B256,
    blocks: HashMap<B256, Arc<Block>>,
    /// Blocks with a right hash that broke another rule, with their last valid ancestor.
    rejected: HashMap<B256, B256>,
    canonical: BTreeMap<u64, B256>,
    head: Arc<Block>,
    safe: Option<B256>,
    finalized: Option<B256>,
    built: HashMap<PayloadId, Arc<Built>>,
    pub(super) blobs: BlobPool,
    custody_columns: Option<B128>,
    pub(super) journal: Journal,
    /// How often builds were forgotten; another number makes other payload ids.
    builds_forgotten: u64,
}

impl Chain {
    pub(super) fn new(genesis: Genesis) -> Self {
        let block = Arc::new(genesis.block());
        Self {
            genesis,
            genesis_hash: block.hash,
            blocks: HashMap::from([(block.hash, block.clone())]),
            rejected: HashMap::new(),
            canonical: BTreeMap::from([(block.header.number, block.hash)]),
            head: block,
            safe: None,
            finalized: None,
            built: HashMap::new(),
            blobs: BlobPool::default(),
            custody_columns: None,
            journal: Journal::default(),
            builds_forgotten: 0,
        }
    }

    /// As after a restart: builds are gone, and the same attributes get another id.
    pub(super) fn forget_builds(&mut self) {
        self.built.clear();
        self.builds_forgotten = self.builds_forgotten.wrapping_add(1);
    }

    /// As after a restart on an empty disk: the genesis alone.
    pub(super) fn forget(&mut self) {
        let builds_forgotten = self.builds_forgotten.wrapping_add(1);
        let journal = std::mem::take(&mut self.journal);
        *self = Self { builds_forgotten, journal, ..Self::new(self.genesis.clone()) };
    }

    pub(super) fn genesis(&self) -> &Genesis {
        &self.genesis
    }

    pub(super) fn genesis_hash(&self) -> B256 {
        self.genesis_hash
    }

    /// The fork a block of that timestamp belongs to.
    pub(super) fn fork_at(&self, timestamp: u64) -> Fork {
        self.genesis.schedule().at(timestamp)
    }

    /// Validates a payload and keeps it if it is valid (paris.md, engine_newPayloadV1, point 6; its
    /// later versions' additions). The caller has checked that its shape is that of its fork.
    pub(super) fn new_payload(&mut self, new: NewPayload) -> PayloadStatus {
        let block_hash = new.payload.block_hash();
        let status = self.validate(new);
        let is_valid = status.status == PayloadStatusEnum::Valid;
        self.journal.note(Processed::NewPayload { block_hash, is_valid });
        status
    }

    fn validate(&mut self, new: NewPayload) -> PayloadStatus {
        let claimed = new.payload.block_hash();
        let hashes = match versioned_hashes(new.payload.transactions()) {
            Ok(hashes) => hashes,
            Err(error) => return invalid(None, error),
        };
        if new.expected_blob_versioned_hashes.is_some_and(|expected| expected != hashes) {
            return invalid(None, "blob versioned hashes are not the expected ones".into());
        }
        let extras = Extras {
            parent_beacon_block_root: new.parent_beacon_block_root,
            requests: new.requests,
        };
        let block = match Block::seal(new.payload, &extras, self.genesis.schedule()) {
            Ok(block) => block,
            Err(error) => return invalid(None, error.to_string()),
        };
        // paris.md says INVALID_BLOCK_HASH to V1; shanghai.md did away with it, and real ELs say
        // INVALID to every version.
        if block.hash != claimed {
            let error = format!("block hash mismatch: want {}, got {claimed}", block.hash);
            return invalid(None, error);
        }
        if self.blocks.contains_key(&block.hash) {
            return valid(block.hash);
        }
        let parent = block.header.parent_hash;
        if let Some(last_valid) = self.rejected.get(&block.hash).or(self.rejected.get(&parent)) {
            let last_valid = *last_valid;
            self.rejected.insert(block.hash, last_valid);
            return invalid(Some(last_valid), "links to an invalid block".into());
        }
        let Some(parent) = self.blocks.get(&parent) else {
            return syncing();
        };
        if let Err(error) = block.follows(parent, hashes.len()) {
            self.rejected.insert(block.hash, parent.hash);
            return invalid(Some(parent.hash), error);
        }
        let hash = block.hash;
        self.blocks.insert(hash, Arc::new(block));
        valid(hash)
    }

    /// Moves the head (paris.md, engine_forkchoiceUpdatedV1, points 1 to 7).
    ///
    /// A zero safe or finalized hash leaves the known one as it is, and finality never goes back: a
    /// head that does not descend from the finalized block is too deep a reorg, not a no-op.
    ///
    /// # Errors
    ///
    /// [`EngineError::InvalidForkchoice`] and [`EngineError::ReorgTooDeep`]; nothing has changed
    /// then.
    pub(super) fn update_head(&mut self, state: &ForkchoiceState) -> Result<Head, EngineError> {
        let ForkchoiceState { head_block_hash, safe_block_hash, finalized_block_hash } = *state;
        self.journal.note(Processed::Forkchoice { head: head_block_hash, safe: safe_block_hash });
        if head_block_hash.is_zero() {
            return Err(EngineError::InvalidForkchoice("head is the zero hash".into()));
        }
        if let Some(last_valid) = self.rejected.get(&head_block_hash) {
            let status = invalid(Some(*last_valid), "head is an invalid block".into());
            return Ok(Head::Invalid(status));
        }
        let Some(head) = self.blocks.get(&head_block_hash).cloned() else {
            return Ok(Head::Syncing);
        };
        if let Some(finalized) = self.finalized
            && !self.descends(&head, finalized)
        {
            return Err(EngineError::ReorgTooDeep(format!(
                "head {head_block_hash} does not descend from finalized {finalized}"
            )));
        }
        for (name, hash) in [("safe", safe_block_hash), ("finalized", finalized_block_hash)] {
            if !hash.is_zero() && !self.descends(&head, hash) {
                return Err(EngineError::InvalidForkchoice(format!(
                    "{name} {hash} is not an ancestor of head {head_block_hash}"
                )));
            }
        }
        self.set_canonical(head);
        if !safe_block_hash.is_zero() {
            self.safe = Some(safe_block_hash);
        }
        if !finalized_block_hash.is_zero() {
            let number = |hash: B256| self.blocks.get(&hash).map(|block| block.header.number);
            if self.finalized.and_then(number) <= number(finalized_block_hash) {
                self.finalized = Some(finalized_block_hash);
            }
        }
        Ok(Head::Valid(head_block_hash))
    }

    /// Builds on the head (paris.md, engine_forkchoiceUpdatedV1, point 8). The forkchoice state
    /// stays as it is even if the attributes are refused.
    ///
    /// # Errors
    ///
    /// [`EngineError::InvalidAttributes`].
    pub(super) fn start_build(
        &mut self,
        attributes: &PayloadAttributes,
    ) -> Result<PayloadId, EngineError> {
        if attributes.timestamp <= self.head.header.timestamp {
            return Err(EngineError::InvalidAttributes(format!(
                "timestamp {} is not after the head's {}",
                attributes.timestamp, self.head.header.timestamp
            )));
        }
        let mut id = payload_id(self.head.hash, attributes);
        if self.builds_forgotten > 0 {
            id.0 ^= B64::from(self.builds_forgotten);
        }
        if !self.built.contains_key(&id) {
            let built = build(&self.genesis, &self.head, attributes)
                .map_err(|error| EngineError::InvalidAttributes(error.to_string()))?;
            for sidecar in &built.sidecars {
                self.blobs.insert(sidecar.clone());
            }
            self.built.insert(id, Arc::new(built));
        }
        let prev_randao = attributes.prev_randao;
        self.journal.note(Processed::Build { prev_randao, payload_id: id });
        Ok(id)
    }

    /// Adopts a custody set (amsterdam.md, engine_forkchoiceUpdatedV4, point 3). It has no effect
    /// here beyond being kept.
    pub(super) fn set_custody(&mut self, columns: B128) {
        self.custody_columns = Some(columns);
    }

    /// The custody set adopted last.
    pub(super) const fn custody(&self) -> Option<B128> {
        self.custody_columns
    }

    /// A payload built earlier; asking for it does not end it.
    ///
    /// # Errors
    ///
    /// [`EngineError::UnknownPayload`]; [`EngineError::UnsupportedFork`] if it is of another fork
    /// than those the caller can express.
    pub(super) fn payload(&self, id: PayloadId, forks: &[Fork]) -> Result<Arc<Built>, EngineError> {
        let built = self.built.get(&id).ok_or(EngineError::UnknownPayload)?;
        if !forks.contains(&built.fork) {
            return Err(EngineError::wrong_fork("the built payload", built.fork));
        }
        Ok(built.clone())
    }

    /// The block of that hash, canonical or not.
    pub(super) fn block(&self, hash: &B256) -> Option<&Block> {
        self.blocks.get(hash).map(AsRef::as_ref)
    }

    /// The canonical block of that number.
    pub(super) fn block_at(&self, number: u64) -> Option<&Block> {
        self.block(self.canonical.get(&number)?)
    }

    /// The canonical blocks `start`, `start + 1`, ... up to `count` of them or the head, whichever
    /// comes first; `None` below the genesis.
    pub(super) fn range(&self, start: u64, count: u64) -> Vec<Option<&Block>> {
        let end = start.saturating_add(count).min(self.head.header.number.saturating_add(1));
        (start..end).map(|number| self.block_at(number)).collect()
    }

    pub(super) fn head(&self) -> &Block {
        &self.head
    }

    pub(super) fn safe(&self) -> Option<&Block> {
        self.block(self.safe.as_ref()?)
    }

    pub(super) fn finalized(&self) -> Option<&Block> {
        self.block(self.finalized.as_ref()?)
    }

    /// Whether `ancestor` is known and `block` itself or one it builds on.
    fn descends(&self, block: &Block, ancestor: B256) -> bool {
        let Some(ancestor) = self.block(&ancestor) else { return false };
        let mut current = Some(block);
        while let Some(block) = current {
            let number = block.header.number;
            if number <= ancestor.header.number {
                return block.hash == ancestor.hash;
            }
            if self.canonical.get(&number) == Some(&block.hash) {
                return self.canonical.get(&ancestor.header.number) == Some(&ancestor.hash);
            }
            current = self.block(&block.header.parent_hash);
        }
        false
    }

    /// Makes `head` and all below it the canonical chain.
    fn set_canonical(&mut self, head: Arc<Block>) {
        self.canonical.split_off(&head.header.number.saturating_add(1));
        let mut current = Some(head.clone());
        while let Some(block) = current {
            let before = self.canonical.insert(block.header.number, block.hash);
            if before == Some(block.hash) {
                break;
            }
            current = self.blocks.get(&block.header.parent_hash).cloned();
        }
        self.head = head;
    }
}

fn valid(hash: B256) -> PayloadStatus {
    PayloadStatus::new(PayloadStatusEnum::Valid, Some(hash))
}

fn syncing() -> PayloadStatus {
    PayloadStatus::from_status(PayloadStatusEnum::Syncing)
}

fn invalid(latest_valid_hash: Option<B256>, mut error: String) -> PayloadStatus {
    error.truncate(error.floor_char_boundary(MAX_ERROR_BYTES));
    let status = PayloadStatusEnum::Invalid { validation_error: error };
    PayloadStatus::new(status, latest_valid_hash)
}
