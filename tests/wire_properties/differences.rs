//! Where this crate and alloy judge differently, and why that is meant.

use engine_ssz_proxy::wire::{Container, Defect, Fork, Malformed, elements, field, schema};

/// A body and this crate's verdict on it, which is not alloy's.
pub struct Dispute<'a> {
    pub container: &'a Container,
    pub fork: Fork,
    pub ssz: &'a [u8],
    pub ours: Result<(), Malformed>,
    /// Whether alloy takes a body.
    pub oracle: &'a dyn Fn(&[u8]) -> bool,
}

pub struct Difference {
    /// The case the decision is from.
    pub case: &'static str,
    pub why: &'static str,
    /// Whether the difference explains a dispute.
    pub explains: fn(&Dispute<'_>) -> bool,
}

/// All of them. A dispute that none explains is a failure.
pub static DIFFERENCES: [Difference; 7] = [
    Difference {
        case: "STATUS-02",
        why: "an error text that is not UTF-8 is printed with replacement characters: refusing it \
              would cost the CL the verdict on a block for the sake of a message",
        explains: |dispute| {
            dispute.ours.is_ok()
                && validation_error(dispute).is_some_and(|text| std::str::from_utf8(text).is_err())
        },
    },
    Difference {
        case: "STATUS-02",
        why: "an error text beside a status other than INVALID is printed, as it would be over \
              JSON-RPC: no spec forbids it, the verdict is clear, and the text only informs",
        explains: |dispute| {
            dispute.ours.is_ok()
                && validation_error(dispute).is_some()
                && status(dispute).is_some_and(|status| status != [1])
        },
    },
    Difference {
        case: "BLOB-06",
        why: "a bundle whose counts do not fit each other is printed as received: it is the CL's \
              check, over JSON-RPC too",
        explains: |dispute| {
            dispute.ours.is_ok()
                && bundle_does_not_fit(dispute.container, dispute.fork, dispute.ssz)
        },
    },
    Difference {
        case: "BODY-06",
        why: "an entry that says it is unavailable is null, whatever its contents look like: the \
              spec has the reader ignore them",
        explains: |dispute| {
            dispute.ours.is_ok() && unavailable(dispute) && (dispute.oracle)(&available(dispute))
        },
    },
    Difference {
        case: "BLOB-03",
        why: "a blob with any other count than one proof per cell is of no use to anybody",
        explains: |dispute| {
            defect(dispute).is_some_and(|(defect, path)| {
                defect == Defect::BadLength && path.ends_with("].proofs")
            })
        },
    },
    Difference {
        case: "REQ-03",
        why: "alloy forgets the bounds of the payload in the built payload of Cancun",
        explains: |dispute| {
            dispute.fork == Fork::Cancun
                && dispute.container.name() == schema::BUILT_PAYLOAD.name()
                && defect(dispute).is_some_and(|(defect, path)| {
                    defect == Defect::OverBound && path.starts_with("executionPayload.")
                })
        },
    },
    Difference {
        case: "REQ-03",
        why: "alloy has no bounds on the lists of a blobs bundle",
        explains: |dispute| {
            defect(dispute).is_some_and(|(defect, path)| {
                defect == Defect::OverBound && path.starts_with("blobsBundle.")
            })
        },
    },
];

/// Whether the counts of a blobs bundle of Osaka or later do not fit each other. Alloy refuses such
/// a built payload, in JSON too; to print it is BLOB-06, and to encode it again only follows.
pub fn bundle_does_not_fit(container: &Container, fork: Fork, ssz: &[u8]) -> bool {
    let count = |member, size| {
        field(container, fork, ssz, &["blobsBundle", member]).map(|region| region.len() / size)
    };
    let (commitments, proofs) = (count("commitments", 48), count("proofs", 48));
    let blobs = count("blobs", 131_072);
    fork >= Fork::Osaka && (commitments != blobs || proofs != blobs.map(|blobs| 128 * blobs))
}

/// The difference that explains a dispute.
pub fn explain(dispute: &Dispute<'_>) -> Option<&'static Difference> {
    DIFFERENCES.iter().find(|difference| (difference.explains)(dispute))
}

fn defect<'d>(dispute: &'d Dispute<'_>) -> Option<(Defect, &'d str)> {
    dispute.ours.as_ref().err().map(|error| (error.defect(), error.path()))
}

fn in_status<'a>(dispute: &Dispute<'a>, name: &str) -> Option<&'a [u8]> {
    let path: &[&str] = match dispute.container.name() {
        "PayloadStatus" => &[name],
        "ForkchoiceUpdateResponse" => &["payloadStatus", name],
        _ => return None,
    };
    field(dispute.container, dispute.fork, dispute.ssz, path)
}

fn status<'a>(dispute: &Dispute<'a>) -> Option<&'a [u8]> {
    in_status(dispute, "status")
}

fn validation_error<'a>(dispute: &Dispute<'a>) -> Option<&'a [u8]> {
    in_status(dispute, "validationError")?.get(4..)
}

fn entries<'a>(dispute: &Dispute<'a>) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let region = field(dispute.container, dispute.fork, dispute.ssz, &["entries"]);
    elements(region.unwrap_or_default())
}

fn unavailable(dispute: &Dispute<'_>) -> bool {
    entries(dispute).any(|entry| entry.first() == Some(&0))
}

/// The body without its unavailable entries.
fn available(dispute: &Dispute<'_>) -> Vec<u8> {
    let entries: Vec<&[u8]> = entries(dispute).filter(|entry| entry.first() != Some(&0)).collect();
    let mut body = vec![4, 0, 0, 0];
    let mut offset = 4 * entries.len();
    for entry in &entries {
        body.extend(u32::try_from(offset).unwrap().to_le_bytes());
        offset += entry.len();
    }
    body.extend(entries.concat());
    body
}
