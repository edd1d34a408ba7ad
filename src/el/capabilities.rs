//! The document an EL says what it offers in: `GET {base}/capabilities`.

use serde_json::{Map, Value};

/// The document is a few hundred bytes; whatever is larger than this is not it.
pub(super) const MAX_DOCUMENT_BYTES: usize = 1 << 20;

/// The bounds the SSZ containers set whatever the EL advertises (`refactor-ssz.md`, *Constants*).
const MAX_BODIES: u64 = 32;
const MAX_BLOB_HASHES: u64 = 128;
/// The draft's default for a payload's size.
const DEFAULT_PAYLOAD_BYTES: u64 = 64 << 20;

/// What the EL says it offers (`refactor.md`, *Capabilities*).
///
/// Read leniently: a member of the wrong type counts as absent, unknown members and values are
/// kept out of the way, limits are clamped to the bounds of the SSZ containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Fork names as written, oldest first by convention. May hold names nobody knows yet.
    pub supported_forks: Vec<String>,
    /// The routes that take a fork header, such as `payloads`; `None` if the EL does not say.
    pub fork_scoped_endpoints: Option<Vec<String>>,
    /// The revisions of the blob routes, such as `v2`. Empty if the EL does not say.
    pub blobs: Vec<String>,
    /// How much may be asked for at once.
    pub limits: Limits,
}

/// The EL's limits on requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bodies in one request, 1 to 32.
    pub bodies_max_count: u64,
    /// The most versioned hashes in one request, 1 to 128.
    pub blobs_max: u64,
    /// The largest request body with a payload in it, in bytes.
    pub payload_max_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bodies_max_count: MAX_BODIES,
            blobs_max: MAX_BLOB_HASHES,
            payload_max_bytes: DEFAULT_PAYLOAD_BYTES,
        }
    }
}

impl Capabilities {
    /// Reads the document; `None` if it is no JSON object with a `supported_forks` array, which
    /// means that REST-SSZ is not spoken here, whatever the status was.
    pub fn read(document: &[u8]) -> Option<Self> {
        let document: Map<String, Value> = serde_json::from_slice(document).ok()?;
        Some(Self {
            supported_forks: names(document.get("supported_forks"))?,
            fork_scoped_endpoints: names(document.get("fork_scoped_endpoints")),
            blobs: document
                .get("independently_versioned")
                .and_then(|versioned| names(versioned.get("blobs")))
                .unwrap_or_default(),
            limits: limits(document.get("limits")),
        })
    }

    /// Whether `fork` is offered.
    pub fn supports_fork(&self, fork: &str) -> bool {
        self.supported_forks.iter().any(|name| name == fork)
    }

    /// Whether the fork-scoped route is offered. An EL that lists no routes offers them all; one
    /// that lists some offers no others.
    pub fn serves(&self, endpoint: &str) -> bool {
        self.fork_scoped_endpoints
            .as_ref()
            .is_none_or(|endpoints| endpoints.iter().any(|name| name == endpoint))
    }

    /// Whether the revision of the blob routes, such as `v2`, is offered.
    pub fn serves_blobs(&self, revision: &str) -> bool {
        self.blobs.iter().any(|name| name == revision)
    }
}

/// The strings of an array; anything else in it is left out.
fn names(value: Option<&Value>) -> Option<Vec<String>> {
    let entries = value?.as_array()?;
    Some(entries.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

fn limits(value: Option<&Value>) -> Limits {
    let default = Limits::default();
    // Nothing could be asked under a limit of zero: such a value is no limit but a mistake.
    let limit = |name: &str| value?.get(name)?.as_u64().filter(|limit| *limit > 0);
    Limits {
        bodies_max_count: limit("bodies.max_count").unwrap_or(MAX_BODIES).min(MAX_BODIES),
        blobs_max: limit("blobs.max_versioned_hashes")
            .unwrap_or(MAX_BLOB_HASHES)
            .min(MAX_BLOB_HASHES),
        payload_max_bytes: limit("payload.max_bytes").unwrap_or(default.payload_max_bytes),
    }
}
