//! Who this EL says it is, in both dialects (identification.md, ClientVersionV1).

use serde::Serialize;

#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct ClientVersion {
    code: &'static str,
    name: &'static str,
    version: &'static str,
    commit: &'static str,
}

/// One EL, hence one entry.
pub(super) const IDENTITY: [ClientVersion; 1] = [ClientVersion {
    code: "ME",
    name: "mock-el",
    version: concat!("v", env!("CARGO_PKG_VERSION")),
    commit: "0x00000000",
}];
