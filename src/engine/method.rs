//! The Engine API methods that the sidecar gives a meaning of its own.

use crate::wire::Fork;
use std::time::Duration;

/// Version suffix of a method name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Version {
    V1,
    V2,
    V3,
    V4,
    V5,
    V6,
}

/// A method that is carried over REST-SSZ or whose answer is looked into. Every other method,
/// `engine_` or not, is relayed untouched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `engine_newPayloadV1` to `V6` → `POST /payloads`.
    NewPayload(Version),
    /// `engine_forkchoiceUpdatedV1` to `V5` → `POST /forkchoice`.
    ForkchoiceUpdated(Version),
    /// `engine_getPayloadV1` to `V6` → `GET /payloads/{id}`.
    GetPayload(Version),
    /// `engine_getPayloadBodiesByHashV1` and `V2` → `POST /bodies/hash`.
    BodiesByHash(Version),
    /// `engine_getPayloadBodiesByRangeV1` and `V2` → `GET /bodies`.
    BodiesByRange(Version),
    /// `engine_getBlobsV1` to `V4` → `POST /blobs/v1` to `v4`.
    Blobs(Version),
    /// `engine_getInclusionListV1` → `GET /inclusion-list`.
    InclusionList,
    /// `engine_getClientVersionV1` → `GET /identity`.
    ClientVersion,
    /// `engine_exchangeCapabilities`: the EL's own JSON-RPC answer, method names only.
    ExchangeCapabilities,
}

impl Version {
    /// Lower case, as the blob endpoints' paths have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
            Self::V3 => "v3",
            Self::V4 => "v4",
            Self::V5 => "v5",
            Self::V6 => "v6",
        }
    }
}

/// Where in `GET /capabilities` an endpoint is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedEndpoint {
    /// In `fork_scoped_endpoints`, by that name.
    ForkScoped(&'static str),
    /// In `independently_versioned.blobs`, by that revision.
    Blobs(&'static str),
    /// Every EL that has REST has it.
    Unscoped,
}

impl ListedEndpoint {
    /// Every one that an EL may leave out of its list.
    pub const LISTED: [Self; 7] = [
        Self::ForkScoped("payloads"),
        Self::ForkScoped("forkchoice"),
        Self::ForkScoped("bodies"),
        Self::Blobs("v1"),
        Self::Blobs("v2"),
        Self::Blobs("v3"),
        Self::Blobs("v4"),
    ];
}

/// An endpoint of the REST-SSZ surface that an EL implements, well or not, by itself.
///
/// Submitting and fetching payloads share a path but hardly any code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RestEndpoint {
    /// `POST /payloads`.
    PayloadSubmit,
    /// `GET /payloads/{id}`.
    PayloadFetch,
    /// `POST /forkchoice`.
    Forkchoice,
    /// `POST /bodies/hash` and `GET /bodies`.
    Bodies,
    /// `POST /blobs/vN`.
    Blobs(Version),
    /// `GET /inclusion-list`.
    InclusionList,
    /// `GET /identity`.
    Identity,
}

impl RestEndpoint {
    /// A label for logs and metrics; the set is bounded.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PayloadSubmit => "payloads_submit",
            Self::PayloadFetch => "payloads_fetch",
            Self::Forkchoice => "forkchoice",
            Self::Bodies => "bodies",
            Self::Blobs(Version::V1) => "blobs_v1",
            Self::Blobs(Version::V2) => "blobs_v2",
            Self::Blobs(Version::V3) => "blobs_v3",
            Self::Blobs(_) => "blobs_v4",
            Self::InclusionList => "inclusion_list",
            Self::Identity => "identity",
        }
    }
}

/// How calls of a method may run beside each other (common.md, "Message ordering").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// newPayload and forkchoiceUpdated: one at a time, in order of arrival.
    Command,
    /// Reads of what is built or pooled, which a proposer or a member of the inclusion list's
    /// committee waits for: beside everything else.
    Build,
    /// Bulk reads of old blocks: few at a time.
    History,
    /// Everything else.
    Free,
}

impl Order {
    /// How calls of a method may run beside each other, whether it is translated or not: a newer
    /// version or a witness variant is as much a command as what is.
    pub fn of_name(name: &str) -> Self {
        const COMMANDS: [&str; 2] = ["engine_newPayload", "engine_forkchoiceUpdated"];
        match Method::from_name(name) {
            _ if COMMANDS.iter().any(|command| name.starts_with(command)) => Self::Command,
            _ if name.starts_with("engine_getInclusionList") => Self::Build,
            Some(Method::GetPayload(_) | Method::Blobs(_)) => Self::Build,
            Some(Method::BodiesByHash(_) | Method::BodiesByRange(_)) => Self::History,
            _ => Self::Free,
        }
    }

    /// How a request of a CL that speaks REST-SSZ itself may run beside others. By the path's
    /// segments below `/engine/` and not by their place: drafts have had them in several.
    pub fn of_rest(verb: &http::Method, path: &str) -> Self {
        let has = |wanted: &str| path.split('/').any(|segment| segment == wanted);
        if has("bodies") {
            Self::History
        } else if has("blobs") || has("inclusion-list") || has("inclusion_list") {
            Self::Build
        } else if has("payloads") || has("forkchoice") {
            if *verb == http::Method::POST { Self::Command } else { Self::Build }
        } else {
            Self::Free
        }
    }
}

impl Method {
    /// Every method, for exhaustive tests and for the capabilities made up for an EL that has no
    /// JSON-RPC.
    pub const ALL: [(&'static str, Self); 28] = [
        ("engine_newPayloadV1", Self::NewPayload(Version::V1)),
        ("engine_newPayloadV2", Self::NewPayload(Version::V2)),
        ("engine_newPayloadV3", Self::NewPayload(Version::V3)),
        ("engine_newPayloadV4", Self::NewPayload(Version::V4)),
        ("engine_newPayloadV5", Self::NewPayload(Version::V5)),
        ("engine_newPayloadV6", Self::NewPayload(Version::V6)),
        ("engine_forkchoiceUpdatedV1", Self::ForkchoiceUpdated(Version::V1)),
        ("engine_forkchoiceUpdatedV2", Self::ForkchoiceUpdated(Version::V2)),
        ("engine_forkchoiceUpdatedV3", Self::ForkchoiceUpdated(Version::V3)),
        ("engine_forkchoiceUpdatedV4", Self::ForkchoiceUpdated(Version::V4)),
        ("engine_forkchoiceUpdatedV5", Self::ForkchoiceUpdated(Version::V5)),
        ("engine_getPayloadV1", Self::GetPayload(Version::V1)),
        ("engine_getPayloadV2", Self::GetPayload(Version::V2)),
        ("engine_getPayloadV3", Self::GetPayload(Version::V3)),
        ("engine_getPayloadV4", Self::GetPayload(Version::V4)),
        ("engine_getPayloadV5", Self::GetPayload(Version::V5)),
        ("engine_getPayloadV6", Self::GetPayload(Version::V6)),
        ("engine_getPayloadBodiesByHashV1", Self::BodiesByHash(Version::V1)),
        ("engine_getPayloadBodiesByHashV2", Self::BodiesByHash(Version::V2)),
        ("engine_getPayloadBodiesByRangeV1", Self::BodiesByRange(Version::V1)),
        ("engine_getPayloadBodiesByRangeV2", Self::BodiesByRange(Version::V2)),
        ("engine_getBlobsV1", Self::Blobs(Version::V1)),
        ("engine_getBlobsV2", Self::Blobs(Version::V2)),
        ("engine_getBlobsV3", Self::Blobs(Version::V3)),
        ("engine_getBlobsV4", Self::Blobs(Version::V4)),
        ("engine_getInclusionListV1", Self::InclusionList),
        ("engine_getClientVersionV1", Self::ClientVersion),
        ("engine_exchangeCapabilities", Self::ExchangeCapabilities),
    ];

    /// The method of that exact name; `None` for everything that is only relayed.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, method)| *method)
    }

    /// The method's JSON-RPC name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, method)| *method == self).map_or("", |(name, _)| name)
    }

    /// How long the specification has a CL wait for the answer at least (engine-api JSON-RPC texts,
    /// "Request" of each method).
    pub const fn timeout(self) -> Duration {
        Duration::from_secs(match self {
            Self::NewPayload(Version::V5 | Version::V6) => 6,
            Self::NewPayload(_) | Self::ForkchoiceUpdated(_) => 8,
            Self::BodiesByHash(_) | Self::BodiesByRange(_) => 10,
            Self::GetPayload(_)
            | Self::Blobs(_)
            | Self::InclusionList
            | Self::ClientVersion
            | Self::ExchangeCapabilities => 1,
        })
    }

    /// The endpoint that an EL must list for the method to be carried over REST (refactor.md,
    /// "Capabilities & identification").
    pub const fn endpoint(self) -> ListedEndpoint {
        match self {
            Self::NewPayload(_) | Self::GetPayload(_) => ListedEndpoint::ForkScoped("payloads"),
            Self::ForkchoiceUpdated(_) => ListedEndpoint::ForkScoped("forkchoice"),
            Self::BodiesByHash(_) | Self::BodiesByRange(_) => ListedEndpoint::ForkScoped("bodies"),
            Self::Blobs(version) => ListedEndpoint::Blobs(version.name()),
            // The ELs that serve inclusion lists do not list them: to offer Bogota says it.
            Self::InclusionList => ListedEndpoint::Unscoped,
            Self::ClientVersion | Self::ExchangeCapabilities => ListedEndpoint::Unscoped,
        }
    }

    /// The endpoint that carries the method; `None` for the one that is JSON-RPC's alone.
    pub const fn rest_endpoint(self) -> Option<RestEndpoint> {
        Some(match self {
            Self::NewPayload(_) => RestEndpoint::PayloadSubmit,
            Self::GetPayload(_) => RestEndpoint::PayloadFetch,
            Self::ForkchoiceUpdated(_) => RestEndpoint::Forkchoice,
            Self::BodiesByHash(_) | Self::BodiesByRange(_) => RestEndpoint::Bodies,
            Self::Blobs(version) => RestEndpoint::Blobs(version),
            Self::InclusionList => RestEndpoint::InclusionList,
            Self::ClientVersion => RestEndpoint::Identity,
            Self::ExchangeCapabilities => return None,
        })
    }

    /// The forks that a payload, attributes or a build of this method version can belong to
    /// (engine-api JSON-RPC texts, "Specification" of each method).
    ///
    /// Empty for methods that have no fork.
    pub const fn forks(self) -> &'static [Fork] {
        use Fork::{Amsterdam, Bogota, Cancun, Osaka, Paris, Prague, Shanghai};
        match self {
            Self::NewPayload(Version::V1)
            | Self::ForkchoiceUpdated(Version::V1)
            | Self::GetPayload(Version::V1) => &[Paris],
            Self::NewPayload(Version::V2)
            | Self::ForkchoiceUpdated(Version::V2)
            | Self::GetPayload(Version::V2) => &[Paris, Shanghai],
            Self::NewPayload(Version::V3) | Self::GetPayload(Version::V3) => &[Cancun],
            Self::NewPayload(Version::V4) => &[Prague, Osaka],
            Self::ForkchoiceUpdated(Version::V3) => &[Cancun, Prague, Osaka],
            Self::GetPayload(Version::V4) => &[Prague],
            Self::GetPayload(Version::V5) => &[Osaka],
            Self::NewPayload(Version::V5) | Self::ForkchoiceUpdated(Version::V4) => &[Amsterdam],
            Self::GetPayload(Version::V6) => &[Amsterdam, Bogota],
            Self::NewPayload(Version::V6) | Self::ForkchoiceUpdated(_) | Self::InclusionList => {
                &[Bogota]
            }
            Self::BodiesByHash(_)
            | Self::BodiesByRange(_)
            | Self::Blobs(_)
            | Self::ClientVersion
            | Self::ExchangeCapabilities => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Order, Version};
    use http::Method;

    #[test]
    fn every_method_has_the_timeout_of_its_text() {
        use super::Method as Engine;
        for (name, method) in Engine::ALL {
            let seconds = match name.trim_start_matches("engine_") {
                "newPayloadV5" | "newPayloadV6" => 6,
                name if name.starts_with("newPayload") => 8,
                name if name.starts_with("forkchoiceUpdated") => 8,
                name if name.starts_with("getPayloadBodies") => 10,
                _ => 1,
            };
            assert_eq!(method.timeout().as_secs(), seconds, "{name}");
        }
        assert_eq!(Engine::GetPayload(Version::V6).timeout().as_secs(), 1);
    }

    #[test]
    fn rest_requests_have_the_order_of_their_methods() {
        for (verb, path, order) in [
            (Method::POST, "/engine/v1/payloads", Order::Command),
            (Method::POST, "/engine/v1/payloads/witness", Order::Command),
            (Method::POST, "/engine/v2/osaka/payloads", Order::Command),
            (Method::POST, "/engine/v1/forkchoice", Order::Command),
            (Method::GET, "/engine/v1/payloads/0x0000000000000001", Order::Build),
            (Method::POST, "/engine/v1/blobs/v4", Order::Build),
            (Method::GET, "/engine/v1/inclusion-list", Order::Build),
            (Method::GET, "/engine/v1/inclusion_list", Order::Build),
            (Method::POST, "/engine/v1/bodies/hash", Order::History),
            (Method::GET, "/engine/v1/bodies", Order::History),
            (Method::POST, "/engine/v1/payloads/bodies/by-hash", Order::History),
            (Method::GET, "/engine/v1/capabilities", Order::Free),
            (Method::GET, "/engine/v1/payloadsX", Order::Free),
        ] {
            assert_eq!(Order::of_rest(&verb, path), order, "{verb} {path}");
        }
    }
}
