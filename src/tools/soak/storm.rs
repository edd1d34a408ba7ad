//! Which faults strike, and when: all of it drawn from the seed.

use super::draw::Draw;
use crate::mock_el::{
    Fork, Http, Limits, Surface,
    faults::{
        Accepted, At, ConnectionRule, Damage, Dialect, Encoding, Fault, FaultsHandle, JsonDamage,
        Kind, LastStream, Media, Memory, Operation, Pause, Refusal, ResetReason, Restart, Rule,
        Target, When,
    },
};
use std::{collections::BTreeSet, str::FromStr, time::Duration};

/// Every kind that can be asked for.
const KINDS: [Kind; 18] = [
    Kind::Delay,
    Kind::Silence,
    Kind::Stall,
    Kind::Cut,
    Kind::Reset,
    Kind::ResetStream,
    Kind::GoAway,
    Kind::TooLargeEarly,
    Kind::Refuse,
    Kind::Media,
    Kind::Encoding,
    Kind::NoContent,
    Kind::EmptyBody,
    Kind::Huge,
    Kind::Ssz,
    Kind::Json,
    Kind::Restart,
    Kind::Connection,
];

/// The kinds of faults of a run: `all`, `none`, or names with commas between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultKinds(BTreeSet<Kind>);

impl FromStr for FaultKinds {
    type Err = String;

    /// # Errors
    ///
    /// A name that is none of a kind.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => return Ok(Self::all()),
            "none" => return Ok(Self(BTreeSet::new())),
            _ => {}
        }
        let kind = |name: &str| {
            KINDS.into_iter().find(|kind| kind.to_string() == name).ok_or_else(|| {
                let known = KINDS.map(|kind| kind.to_string()).join(", ");
                format!("`{name}` is none of all, none, {known}")
            })
        };
        text.split(',').map(|name| kind(name.trim())).collect::<Result<_, _>>().map(Self)
    }
}

impl FaultKinds {
    /// Every kind.
    #[must_use]
    pub fn all() -> Self {
        Self(KINDS.into())
    }

    /// Whether nothing is to go wrong.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn has(&self, kind: Kind) -> bool {
        self.0.contains(&kind)
    }
}

/// Adds one fault that strikes the next request or connection that fits it. Restarts, and silences,
/// which only a restart ends, are not drawn here.
pub(super) fn strike(kinds: &FaultKinds, draw: &mut Draw, faults: &FaultsHandle) {
    let drawn: Vec<_> = kinds
        .0
        .iter()
        .copied()
        .filter(|kind| !matches!(kind, Kind::Restart | Kind::Silence))
        .collect();
    let Some(kind) = draw.one(&drawn) else { return };
    if *kind == Kind::Connection {
        let fault = accepted(draw);
        return faults.add_connection(ConnectionRule::new(fault).times(1));
    }
    if let Some(fault) = fault(*kind, draw) {
        faults.add(rule(draw, fault));
    }
}

/// Leaves one request without an answer until a restart ends its connection.
pub(super) fn silence(draw: &mut Draw, faults: &FaultsHandle) {
    let fault = Fault::Silence { when: when(draw) };
    faults.add(rule(draw, fault));
}

/// Another surface, for the time of a storm.
pub(super) fn restart(draw: &mut Draw) -> Restart {
    let surfaces = [
        (Surface::RestAndJson, Http::Both),
        (Surface::RestAndJson, Http::Both),
        (Surface::RestAndJson, Http::H1),
        (Surface::RestAndJson, Http::H2),
        (Surface::JsonOnly, Http::Both),
        (Surface::JsonOnly, Http::H1),
    ];
    let (surface, http) = draw.one(&surfaces).copied().unwrap_or_default();
    let small = Limits { bodies: 32, blobs: 128, payload_bytes: 16 << 10 };
    let fork = [Fork::Amsterdam, Fork::Amsterdam, Fork::Osaka, Fork::Cancun];
    Restart {
        memory: if draw.once_in(2) { Memory::ChainOnly } else { Memory::Kept },
        surface: Some(surface),
        http: Some(http),
        newest_fork: draw.one(&fork).copied(),
        limits: Some(if draw.once_in(4) { small } else { Limits::default() }),
        down: Duration::from_millis(if draw.once_in(2) { draw.below(250) } else { 0 }),
    }
}

/// Everything there is, for the time after a storm. It takes a moment, as restarts do, so that no
/// sidecar misses it.
pub(super) fn recovery(memory: Memory) -> Restart {
    Restart {
        memory,
        surface: Some(Surface::RestAndJson),
        http: Some(Http::Both),
        newest_fork: Some(Fork::Amsterdam),
        limits: Some(Limits::default()),
        down: Duration::from_millis(80),
    }
}

/// Short enough for many of them in a second.
fn pause(draw: &mut Draw) -> Duration {
    Duration::from_millis(5 + draw.below(120))
}

fn when(draw: &mut Draw) -> When {
    if draw.once_in(2) { When::Before } else { When::After }
}

fn at(draw: &mut Draw) -> At {
    match draw.below(3) {
        0 => At::Before,
        1 => At::After,
        _ => At::InBody(usize::try_from(draw.below(200)).unwrap_or_default()),
    }
}

fn rule(draw: &mut Draw, fault: Fault) -> Rule {
    let operations = [
        Operation::NewPayload,
        Operation::NewPayload,
        Operation::ForkchoiceUpdated,
        Operation::ForkchoiceUpdated,
        Operation::GetPayload,
        Operation::BodiesByHash,
        Operation::BodiesByRange,
        Operation::GetBlobs,
        Operation::Capabilities,
        Operation::Identity,
    ];
    // The ids within a batch are not looked into on the way.
    let is_single = matches!(fault, Fault::Json(JsonDamage::WrongId));
    let target = match draw.one(&operations) {
        Some(operation) if is_single || !draw.once_in(6) => Target::Operation(*operation),
        _ => Target::Any,
    };
    let rule = Rule::new(target, fault).times(1);
    match draw.below(4) {
        0 => rule.over(Dialect::JsonRpc),
        1 => rule,
        _ => rule.over(Dialect::Rest),
    }
}

fn accepted(draw: &mut Draw) -> Accepted {
    let faults = [
        Accepted::Closed,
        Accepted::Reset,
        Accepted::TinyWindow(1024),
        Accepted::TinyWindow(16_384),
        Accepted::MaxStreamsOne,
    ];
    draw.one(&faults).copied().unwrap_or(Accepted::Closed)
}

fn fault(kind: Kind, draw: &mut Draw) -> Option<Fault> {
    Some(match kind {
        // What waits before it is run may be run when its connection is long gone, and out of order.
        Kind::Delay => Fault::Delay { when: When::After, pause: pause(draw) },
        Kind::Stall => {
            let after = usize::try_from(draw.below(200)).unwrap_or_default();
            Fault::Stall { after, pause: Pause::For(pause(draw)) }
        }
        Kind::Cut => Fault::Cut { at: at(draw) },
        Kind::Reset => Fault::Reset { at: at(draw) },
        Kind::ResetStream => {
            // What a server refuses it must not have run (RFC 9113, section 8.7).
            let refusals = [ResetReason::RefusedStream, ResetReason::Http11Required];
            let others =
                [ResetReason::InternalError, ResetReason::Cancel, ResetReason::EnhanceYourCalm];
            match draw.once_in(3) {
                true => Fault::ResetStream { at: At::Before, reason: *draw.one(&refusals)? },
                false => Fault::ResetStream { at: at(draw), reason: *draw.one(&others)? },
            }
        }
        Kind::GoAway => {
            let last = [LastStream::Below, LastStream::This, LastStream::ThisUnanswered];
            Fault::GoAway { last: *draw.one(&last)? }
        }
        Kind::TooLargeEarly => Fault::TooLargeEarly,
        Kind::Refuse => {
            let refusals = [
                Refusal::Unauthorized,
                Refusal::NotFound,
                Refusal::Internal,
                Refusal::Internal,
                Refusal::Unavailable,
                Refusal::Unavailable,
            ];
            Fault::Refuse { when: when(draw), refusal: *draw.one(&refusals)? }
        }
        Kind::Media => Fault::Media(*draw.one(&[Media::JsonOnSsz, Media::Html, Media::Missing])?),
        Kind::Encoding => Fault::Encoding(*draw.one(&[Encoding::Gzip, Encoding::NoLength])?),
        Kind::NoContent => Fault::NoContent,
        Kind::EmptyBody => Fault::EmptyBody,
        Kind::Huge => Fault::Huge { bytes: 1 << 20 },
        Kind::Ssz => Fault::Ssz(*draw.one(&Damage::ALL)?),
        Kind::Json => Fault::Json(*draw.one(&[
            JsonDamage::Garbage,
            JsonDamage::WrongId,
            JsonDamage::Truncated,
        ])?),
        Kind::Silence | Kind::Restart | Kind::Connection => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_read_back_from_their_names() {
        assert!("none".parse::<FaultKinds>().unwrap().is_none());
        for kind in KINDS {
            let kinds: FaultKinds = kind.to_string().parse().unwrap();
            assert_eq!(kinds.0, [kind].into());
            assert!("all".parse::<FaultKinds>().unwrap().has(kind));
        }
        let two: FaultKinds = "cut, stall".parse().unwrap();
        assert!(two.has(Kind::Cut) && two.has(Kind::Stall) && !two.has(Kind::Reset));
        assert!("cut,thunder".parse::<FaultKinds>().unwrap_err().contains("`thunder`"));
    }

    #[test]
    fn the_same_seed_draws_the_same_faults() {
        let faults = |seed| -> Vec<_> {
            let mut draw = Draw::new(seed, 0);
            (0..50).map(|_| fault(KINDS[0], &mut draw)).collect()
        };
        assert_eq!(faults(7), faults(7));
        assert_ne!(faults(7), faults(8));
    }
}
