//! The schema table: every container of the REST-SSZ Engine API, Paris to Amsterdam, once, in SSZ
//! order (refactor-ssz.md). Adding a fork is adding rows.
//!
//! The rows of Bogota are those that the ELs with inclusion lists agree on; refactor-ssz.md does not
//! have them yet.
//!
//! Names in JSON are those of the Engine API's structures; where a container stands for positional
//! parameters, whose names are not on the wire, they are the camel case of the SSZ names.

use super::container::{Container, Field, Kind, List, Order, Rule, Shown};
use super::fork::Fork::{Amsterdam, Bogota, Cancun, Osaka, Prague, Shanghai};

/// `MAX_BODIES_REQUEST`: hashes or blocks in one bodies request.
pub const MAX_BODIES_REQUEST: usize = 32;
/// `MAX_BLOBS_REQUEST`: versioned hashes in one blobs request.
pub const MAX_BLOBS_REQUEST: usize = 128;
/// `CELLS_PER_EXT_BLOB` (EIP-7594).
pub const CELLS_PER_EXT_BLOB: usize = 128;

const MAX_BYTES_PER_TX: usize = 1 << 30;
const MAX_TXS_PER_PAYLOAD: usize = 1 << 20;
const MAX_EXTRA_DATA_BYTES: usize = 32;
const MAX_WITHDRAWALS_PER_PAYLOAD: usize = 16;
const MAX_BLOB_COMMITMENTS_PER_BLOCK: usize = 4096;
const BYTES_PER_BLOB: usize = 131_072;
const BYTES_PER_CELL: usize = 2048;
const MAX_BAL_BYTES: usize = MAX_BYTES_PER_TX;
const MAX_EXECUTION_REQUESTS_PER_PAYLOAD: usize = 256;
const MAX_BYTES_PER_EXECUTION_REQUEST: usize = MAX_BYTES_PER_TX;
const MAX_ERROR_BYTES: usize = 1024;
/// bogota.md: the bytes of all transactions of one list together, none of them empty.
const MAX_BYTES_PER_INCLUSION_LIST: usize = 8192;

const HASH: Kind = Kind::Data(32);
const ADDRESS: Kind = Kind::Data(20);
const BLOOM: Kind = Kind::Data(256);
const BYTES8: Kind = Kind::Data(8);
const BYTES48: Kind = Kind::Data(48);
const BLOB: Kind = Kind::Data(BYTES_PER_BLOB);
/// `Bitvector[CELLS_PER_EXT_BLOB]`: 16 bytes, copied verbatim both ways.
const COLUMNS: Kind = Kind::Data(CELLS_PER_EXT_BLOB / 8);
const BLOCK_ACCESS_LIST: Kind = Kind::Bytes(MAX_BAL_BYTES);
const TRANSACTIONS: Kind =
    Kind::List(&List::up_to(MAX_TXS_PER_PAYLOAD, Kind::Bytes(MAX_BYTES_PER_TX)));
const WITHDRAWALS: Kind =
    Kind::List(&List::up_to(MAX_WITHDRAWALS_PER_PAYLOAD, Kind::Container(WITHDRAWAL)));
const EXECUTION_REQUESTS: List =
    List::up_to(MAX_EXECUTION_REQUESTS_PER_PAYLOAD, Kind::Bytes(MAX_BYTES_PER_EXECUTION_REQUEST));
/// As the EL built them.
const BUILT_REQUESTS: Kind = Kind::List(&EXECUTION_REQUESTS);
/// As the CL submits them.
const SUBMITTED_REQUESTS: Kind = Kind::List(&EXECUTION_REQUESTS.ordered(Order::AscendingTypes));

/// The status bytes of `POST /payloads`, in order.
const PAYLOAD_STATUSES: &[&str] = &["VALID", "INVALID", "SYNCING", "ACCEPTED"];
/// The status bytes of `POST /forkchoice`, in order: `ACCEPTED` is a protocol error there.
const FORKCHOICE_STATUSES: &[&str] = &["VALID", "INVALID", "SYNCING"];

const WITHDRAWAL: &Container = &Container::new(
    "Withdrawal",
    &[
        Field::new("index", "index", Kind::U64),
        Field::new("validator_index", "validatorIndex", Kind::U64),
        Field::new("address", "address", ADDRESS),
        Field::new("amount", "amount", Kind::U64),
    ],
);

/// `ExecutionPayload`; JSON: ExecutionPayloadV1 to V4.
pub const EXECUTION_PAYLOAD: &Container = &Container::new(
    "ExecutionPayload",
    &[
        Field::new("parent_hash", "parentHash", HASH),
        Field::new("fee_recipient", "feeRecipient", ADDRESS),
        Field::new("state_root", "stateRoot", HASH),
        Field::new("receipts_root", "receiptsRoot", HASH),
        Field::new("logs_bloom", "logsBloom", BLOOM),
        Field::new("prev_randao", "prevRandao", HASH),
        Field::new("block_number", "blockNumber", Kind::U64),
        Field::new("gas_limit", "gasLimit", Kind::U64),
        Field::new("gas_used", "gasUsed", Kind::U64),
        Field::new("timestamp", "timestamp", Kind::U64),
        Field::new("extra_data", "extraData", Kind::Bytes(MAX_EXTRA_DATA_BYTES)),
        Field::new("base_fee_per_gas", "baseFeePerGas", Kind::U256),
        Field::new("block_hash", "blockHash", HASH),
        Field::new("transactions", "transactions", TRANSACTIONS),
        Field::new("withdrawals", "withdrawals", WITHDRAWALS).since(Shanghai),
        Field::new("blob_gas_used", "blobGasUsed", Kind::U64).since(Cancun),
        Field::new("excess_blob_gas", "excessBlobGas", Kind::U64).since(Cancun),
        Field::new("block_access_list", "blockAccessList", BLOCK_ACCESS_LIST).since(Amsterdam),
        Field::new("slot_number", "slotNumber", Kind::U64).since(Amsterdam),
    ],
);

/// `ExecutionPayloadEnvelope`, the request of `POST /payloads`; JSON: the parameters of
/// `engine_newPayload` but `expectedBlobVersionedHashes`, which the EL takes from the transactions.
pub const EXECUTION_PAYLOAD_ENVELOPE: &Container = &Container::new(
    "ExecutionPayloadEnvelope",
    &[
        Field::new("payload", "payload", Kind::Container(EXECUTION_PAYLOAD)),
        Field::new("parent_beacon_block_root", "parentBeaconBlockRoot", HASH).since(Cancun),
        Field::new("execution_requests", "executionRequests", SUBMITTED_REQUESTS).since(Prague),
        INCLUSION_LIST_TRANSACTIONS,
    ],
);
/// The lists of a whole committee, merged by the CL.
const INCLUSION_LIST_TRANSACTIONS: Field =
    Field::new("inclusion_list_transactions", "inclusionListTransactions", TRANSACTIONS)
        .since(Bogota);

/// `PayloadAttributes`; JSON: PayloadAttributesV1 to V5.
pub const PAYLOAD_ATTRIBUTES: &Container = &Container::new(
    "PayloadAttributes",
    &[
        Field::new("timestamp", "timestamp", Kind::U64),
        Field::new("prev_randao", "prevRandao", HASH),
        Field::new("suggested_fee_recipient", "suggestedFeeRecipient", ADDRESS),
        Field::new("withdrawals", "withdrawals", WITHDRAWALS).since(Shanghai),
        Field::new("parent_beacon_block_root", "parentBeaconBlockRoot", HASH).since(Cancun),
        Field::new("slot_number", "slotNumber", Kind::U64).since(Amsterdam),
        Field::new("target_gas_limit", "targetGasLimit", Kind::U64).since(Amsterdam),
        INCLUSION_LIST_TRANSACTIONS,
    ],
);

/// `ForkchoiceState`; JSON: ForkchoiceStateV1.
pub const FORKCHOICE_STATE: &Container = &Container::new(
    "ForkchoiceState",
    &[
        Field::new("head_block_hash", "headBlockHash", HASH),
        Field::new("safe_block_hash", "safeBlockHash", HASH),
        Field::new("finalized_block_hash", "finalizedBlockHash", HASH),
    ],
);

/// `ForkchoiceUpdate`, the request of `POST /forkchoice`; JSON: the parameters of
/// `engine_forkchoiceUpdated`.
pub const FORKCHOICE_UPDATE: &Container = &Container::new(
    "ForkchoiceUpdate",
    &[
        Field::new("forkchoice_state", "forkchoiceState", Kind::Container(FORKCHOICE_STATE)),
        Field::new(
            "payload_attributes",
            "payloadAttributes",
            Kind::Optional(&Kind::Container(PAYLOAD_ATTRIBUTES)),
        ),
        Field::new("custody_columns", "custodyColumns", Kind::Optional(&COLUMNS)).since(Amsterdam),
    ],
);

/// `BlobsBundleV1`, from Osaka on `BlobsBundleV2`: the same members, another bound on the proofs.
const BLOBS_BUNDLE: &Container = &Container::new(
    "BlobsBundle",
    &[
        Field::new("commitments", "commitments", BLOB_COMMITMENTS),
        Field::new("proofs", "proofs", BLOB_COMMITMENTS).before(Osaka),
        Field::new("proofs", "proofs", CELL_PROOFS).since(Osaka),
        Field::new(
            "blobs",
            "blobs",
            Kind::List(&List::up_to(MAX_BLOB_COMMITMENTS_PER_BLOCK, BLOB)),
        ),
    ],
);
const BLOB_COMMITMENTS: Kind = Kind::List(&List::up_to(MAX_BLOB_COMMITMENTS_PER_BLOCK, BYTES48));
const CELL_PROOFS: Kind =
    Kind::List(&List::up_to(MAX_BLOB_COMMITMENTS_PER_BLOCK * CELLS_PER_EXT_BLOB, BYTES48));

/// `BuiltPayload`, the answer of `GET /payloads/{payloadId}`; JSON: the result of
/// `engine_getPayloadV2` and later. SSZ has the requests before the flag, JSON after it.
pub const BUILT_PAYLOAD: &Container = &Container::new(
    "BuiltPayload",
    &[
        Field::new("payload", "executionPayload", Kind::Container(EXECUTION_PAYLOAD)),
        Field::new("block_value", "blockValue", Kind::U256),
        Field::new("blobs_bundle", "blobsBundle", Kind::Container(BLOBS_BUNDLE)).since(Cancun),
        Field::new("execution_requests", "executionRequests", BUILT_REQUESTS).since(Prague),
        Field::new("should_override_builder", "shouldOverrideBuilder", Kind::Boolean).since(Cancun),
    ],
)
.printing_last("executionRequests");

/// `PayloadStatus`, the answer of `POST /payloads`; JSON: PayloadStatusV1.
pub const PAYLOAD_STATUS: &Container =
    &Container::new("PayloadStatus", &payload_status(PAYLOAD_STATUSES));

/// `PayloadStatus`, the answer of `POST /payloads` from Bogota on; JSON: PayloadStatusV2, with
/// `inclusionListSatisfied` as `null` where the SSZ is that of an older fork.
pub const PAYLOAD_STATUS_V2: &Container =
    &Container::new("PayloadStatus", &payload_status_v2(PAYLOAD_STATUSES));

/// `ForkchoiceUpdateResponse`, the answer of `POST /forkchoice`; JSON: the result of
/// `engine_forkchoiceUpdatedV1` to `V4`.
pub const FORKCHOICE_UPDATE_RESPONSE: &Container = &Container::new(
    "ForkchoiceUpdateResponse",
    &forkchoice_update_response(FORKCHOICE_PAYLOAD_STATUS),
);
const FORKCHOICE_PAYLOAD_STATUS: &Container =
    &Container::new("PayloadStatus", &payload_status(FORKCHOICE_STATUSES));

/// `ForkchoiceUpdateResponse` from Bogota on; JSON: the result of `engine_forkchoiceUpdatedV5`, with
/// `inclusionListSatisfied` as `null` where the SSZ is that of an older fork.
pub const FORKCHOICE_UPDATE_RESPONSE_V2: &Container = &Container::new(
    "ForkchoiceUpdateResponse",
    &forkchoice_update_response(FORKCHOICE_PAYLOAD_STATUS_V2),
);
const FORKCHOICE_PAYLOAD_STATUS_V2: &Container =
    &Container::new("PayloadStatus", &payload_status_v2(FORKCHOICE_STATUSES));

const fn forkchoice_update_response(payload_status: &'static Container) -> [Field; 2] {
    [
        Field::new("payload_status", "payloadStatus", Kind::Container(payload_status)),
        Field::new("payload_id", "payloadId", Kind::Optional(&BYTES8)),
    ]
}

const fn payload_status(statuses: &'static [&'static str]) -> [Field; 3] {
    [
        Field::new("status", "status", Kind::Status(statuses)),
        Field::new("latest_valid_hash", "latestValidHash", Kind::Optional(&HASH)),
        Field::new(
            "validation_error",
            "validationError",
            Kind::Optional(&Kind::Text(MAX_ERROR_BYTES)),
        ),
    ]
}

const fn payload_status_v2(statuses: &'static [&'static str]) -> [Field; 4] {
    let [status, latest_valid_hash, validation_error] = payload_status(statuses);
    let satisfied = Kind::Optional(&Kind::Boolean);
    let satisfied = Field::new("inclusion_list_satisfied", "inclusionListSatisfied", satisfied);
    let satisfied = satisfied.since(Bogota).shown(Shown::Always);
    [status, latest_valid_hash, validation_error, satisfied]
}

/// `InclusionListResponse`, the answer of `GET /inclusion-list`; JSON: the array that is the result
/// of `engine_getInclusionListV1`.
pub const INCLUSION_LIST_RESPONSE: &Container = &Container::new(
    "InclusionListResponse",
    &[Field::new("transactions", "transactions", Kind::List(&INCLUSION_LIST))],
)
.bare();
const INCLUSION_LIST: List =
    List::up_to(MAX_BYTES_PER_INCLUSION_LIST, Kind::Bytes(MAX_BYTES_PER_INCLUSION_LIST));

/// `BodiesByHashRequest`, the request of `POST /bodies/hash`; JSON: the parameter of
/// `engine_getPayloadBodiesByHash`.
pub const BODIES_BY_HASH_REQUEST: &Container = &Container::new(
    "BodiesByHashRequest",
    &[Field::new(
        "block_hashes",
        "blockHashes",
        Kind::List(&List::up_to(MAX_BODIES_REQUEST, HASH)),
    )],
);

/// `BodiesResponse`, the answer of both bodies endpoints; JSON: an array of
/// ExecutionPayloadBodyV1 or `null`, as `engine_getPayloadBodiesByHashV1` and `ByRangeV1` give it.
pub const BODIES_RESPONSE_V1: &Container =
    &Container::new("BodiesResponse", &[entries(&BODIES_V1)]).bare();
const BODIES_V1: List = List::up_to(MAX_BODIES_REQUEST, Kind::Entry(BODY_V1));
const BODY_V1: &Container =
    &Container::new("ExecutionPayloadBody", &execution_payload_body(Shown::Never));

/// `BodiesResponse`; JSON: an array of ExecutionPayloadBodyV2 or `null`, as
/// `engine_getPayloadBodiesByHashV2` and `ByRangeV2` give it.
pub const BODIES_RESPONSE_V2: &Container =
    &Container::new("BodiesResponse", &[entries(&BODIES_V2)]).bare();
const BODIES_V2: List = List::up_to(MAX_BODIES_REQUEST, Kind::Entry(BODY_V2));
const BODY_V2: &Container =
    &Container::new("ExecutionPayloadBody", &execution_payload_body(Shown::NullWhenEmpty));

/// The list of a block without accesses is `c0`: no bytes at all means that it was pruned.
const fn execution_payload_body(block_access_list: Shown) -> [Field; 3] {
    [
        Field::new("transactions", "transactions", TRANSACTIONS),
        Field::new("withdrawals", "withdrawals", WITHDRAWALS).since(Shanghai).shown(Shown::Always),
        Field::new("block_access_list", "blockAccessList", BLOCK_ACCESS_LIST)
            .since(Amsterdam)
            .shown(block_access_list),
    ]
}

const fn entries(list: &'static List) -> Field {
    Field::new("entries", "entries", Kind::List(list))
}

const VERSIONED_HASHES: Field = Field::new(
    "versioned_hashes",
    "versionedHashes",
    Kind::List(&List::up_to(MAX_BLOBS_REQUEST, HASH)),
);

/// `BlobsV1Request`, the request of `POST /blobs/v1` to `v3`; JSON: the parameter of
/// `engine_getBlobsV1` to `V3`.
pub const BLOBS_REQUEST: &Container = &Container::new("BlobsV1Request", &[VERSIONED_HASHES]);

/// `BlobsV4Request`, the request of `POST /blobs/v4`; JSON: the parameters of
/// `engine_getBlobsV4`.
pub const BLOBS_V4_REQUEST: &Container = &Container::new(
    "BlobsV4Request",
    &[VERSIONED_HASHES, Field::new("indices_bitarray", "indicesBitarray", COLUMNS)],
);

/// `BlobsV1Response`, the answer of `POST /blobs/v1`; JSON: an array of BlobAndProofV1 or `null`.
pub const BLOBS_V1_RESPONSE: &Container =
    &Container::new("BlobsV1Response", &[entries(&BLOB_V1_ENTRIES)]).bare();
const BLOB_V1_ENTRIES: List = List::up_to(MAX_BLOBS_REQUEST, Kind::Entry(BLOB_AND_PROOF_V1));
const BLOB_AND_PROOF_V1: &Container = &Container::new(
    "BlobAndProofV1",
    &[Field::new("blob", "blob", BLOB), Field::new("proof", "proof", BYTES48)],
);

/// `BlobsV2Response`, the answer of `POST /blobs/v2`; JSON: an array of BlobAndProofV2 or `null`.
/// That one `null` makes the whole result `null` is the method's rule, not the container's.
pub const BLOBS_V2_RESPONSE: &Container =
    &Container::new("BlobsV2Response", &[entries(&BLOB_V2_ENTRIES)]).bare();

/// `BlobsV3Response`, the answer of `POST /blobs/v3`: `BlobV2Entry` verbatim.
pub const BLOBS_V3_RESPONSE: &Container =
    &Container::new("BlobsV3Response", &[entries(&BLOB_V2_ENTRIES)]).bare();

/// BlobAndProofV2 (osaka.md) has one proof per cell: another count cannot be verified by anybody.
const BLOB_V2_ENTRIES: List = List::up_to(MAX_BLOBS_REQUEST, Kind::Entry(BLOB_AND_PROOF_V2));
const BLOB_AND_PROOF_V2: &Container = &Container::new(
    "BlobAndProofV2",
    &[
        Field::new("blob", "blob", BLOB),
        Field::new("proofs", "proofs", Kind::List(&List::of(CELLS_PER_EXT_BLOB, BYTES48))),
    ],
);

/// `BlobsV4Response`, the answer of `POST /blobs/v4`; JSON: an array of BlobCellsAndProofsV1 or
/// `null`, whose lists are those of the SSZ, element by element, absent ones as `null`.
pub const BLOBS_V4_RESPONSE: &Container =
    &Container::new("BlobsV4Response", &[entries(&BLOB_V4_ENTRIES)]).bare();
const BLOB_V4_ENTRIES: List = List::up_to(MAX_BLOBS_REQUEST, Kind::Entry(BLOB_CELLS_AND_PROOFS));
const BLOB_CELLS_AND_PROOFS: &Container = &Container::new(
    "BlobCellsAndProofs",
    &[
        Field::new("blob_cells", "blob_cells", Kind::List(&CELLS)),
        Field::new("proofs", "proofs", Kind::List(&PROOFS)),
    ],
)
.obeying(Rule::SamePositions);
const CELLS: List = List::up_to(CELLS_PER_EXT_BLOB, Kind::Optional(&Kind::Data(BYTES_PER_CELL)));
const PROOFS: List = List::up_to(CELLS_PER_EXT_BLOB, Kind::Optional(&BYTES48));
