//! Which fork header a call goes under.

use super::{Context, Method, Offer, RelayReason};
use crate::wire::Fork;

/// A fork header and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderFork {
    /// The header.
    pub fork: Fork,
    /// Where it comes from.
    pub certainty: Certainty,
    /// A fork of the same wire shape to try once when the EL calls this one unsupported.
    pub sibling: Option<Fork>,
}

/// How sure a fork header is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// The timestamp belongs to this fork by schedule or by earlier traffic.
    Known,
    /// It is what the method version suggests.
    Guess,
}

/// The header for a payload, or attributes, of that timestamp.
///
/// `shapes` are the forks that the parameters have the shape of, a subset of the method's.
pub fn of_timestamp(
    shapes: &[Fork],
    timestamp: u64,
    context: Context<'_>,
) -> Result<HeaderFork, RelayReason> {
    let offer = context.offer.ok_or(RelayReason::NoRest)?;
    let known = context.memory.forks_at(timestamp);
    let possible: Vec<_> = shapes.iter().copied().filter(|fork| known.contains(fork)).collect();
    if !shapes.iter().any(|fork| offer.has(*fork)) {
        return Err(RelayReason::ForkNotOffered);
    }
    if possible.is_empty() {
        return Err(RelayReason::ForkDisagrees { timestamp });
    }
    let mut offered: Vec<_> = possible.into_iter().filter(|fork| offer.has(*fork)).collect();
    // A chain mostly stays in the era it was last seen in; one never seen is most likely new.
    if *known.start() == Fork::Paris {
        offered.reverse();
    }
    let mut offered = offered.into_iter();
    let fork = offered.next().ok_or(RelayReason::ForkNotOffered)?;
    let certainty = if known.start() == known.end() { Certainty::Known } else { Certainty::Guess };
    Ok(HeaderFork { fork, certainty, sibling: offered.next() })
}

/// The header for a forkchoice without attributes: the head's own fork if it is remembered, else
/// the newest that the method version permits.
///
/// Any offered fork of the right shape is legal (refactor.md, "Stale-fork"); methods are used on
/// heads of older forks, so the method version alone says only what shape the body may have.
/// Custody columns fit only into the containers from Amsterdam on, and the answer that V5 has is that
/// of Bogota alone.
pub fn of_head(
    method: Method,
    head: [u8; 32],
    custody: Option<&[u8]>,
    context: Context<'_>,
) -> Result<HeaderFork, RelayReason> {
    let offer = context.offer.ok_or(RelayReason::NoRest)?;
    let newest = method.forks().last().copied().unwrap_or(Fork::Paris);
    let oldest = match custody {
        _ if newest == Fork::Bogota => Fork::Bogota,
        Some(_) => Fork::Amsterdam,
        None => Fork::Paris,
    };
    let permits = |fork: &Fork| (oldest..=newest).contains(fork) && offer.has(*fork);
    let fork = context
        .memory
        .block_fork(head)
        .filter(permits)
        .or_else(|| offer.forks().iter().rev().copied().find(permits))
        .ok_or(RelayReason::ForkNotOffered)?;
    Ok(HeaderFork { fork, certainty: Certainty::Guess, sibling: older_of_same_shape(fork, offer) })
}

/// The body of a forkchoice without attributes is the same from Paris to Osaka.
fn older_of_same_shape(fork: Fork, offer: &Offer) -> Option<Fork> {
    let older = offer.forks().iter().rev().copied().find(|other| *other < fork);
    older.filter(|_| fork < Fork::Amsterdam)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Memory, Schedule, Version};

    const V4_SHAPES: &[Fork] = &[Fork::Prague, Fork::Osaka];

    fn pick(memory: &Memory, offer: &[Fork], timestamp: u64) -> Result<HeaderFork, RelayReason> {
        let offer = Offer::of_forks(offer);
        of_timestamp(V4_SHAPES, timestamp, Context { memory, offer: Some(&offer) })
    }

    fn schedule() -> Memory {
        let genesis = r#"{"config":{"shanghaiTime":1,"cancunTime":2,"pragueTime":3,"osakaTime":10,"amsterdamTime":20}}"#;
        Memory::new(Some(Schedule::from_genesis(genesis).unwrap()))
    }

    #[test]
    fn fork_01_the_timestamp_decides_where_a_method_spans_forks() {
        let memory = schedule();
        for (timestamp, fork) in [(3, Fork::Prague), (9, Fork::Prague), (10, Fork::Osaka)] {
            let header = pick(&memory, &Fork::SPECIFIED, timestamp).unwrap();
            assert_eq!((header.fork, header.certainty), (fork, Certainty::Known));
            assert_eq!(header.sibling, None, "nothing to retry under a known schedule");
        }
    }

    #[test]
    fn fork_01_a_timestamp_of_another_methods_fork_is_relayed() {
        for timestamp in [0, 2, 20] {
            let reason = pick(&schedule(), &Fork::SPECIFIED, timestamp).unwrap_err();
            assert!(matches!(reason, RelayReason::ForkDisagrees { .. }), "{timestamp}: {reason}");
        }
    }

    #[test]
    fn without_a_schedule_the_newest_offered_fork_goes_first_and_its_sibling_second() {
        let memory = Memory::new(None);
        let header = pick(&memory, &Fork::SPECIFIED, 5).unwrap();
        assert_eq!(
            header,
            HeaderFork {
                fork: Fork::Osaka,
                certainty: Certainty::Guess,
                sibling: Some(Fork::Prague)
            }
        );
        assert_eq!(pick(&memory, &[Fork::Prague], 5).unwrap().fork, Fork::Prague);
        assert!(matches!(pick(&memory, &[Fork::Cancun], 5), Err(RelayReason::ForkNotOffered)));
    }

    #[test]
    fn without_a_schedule_the_era_last_seen_goes_first() {
        let memory = Memory::new(None);
        memory.learn(5, Fork::Prague);
        let header = pick(&memory, &Fork::SPECIFIED, 6).unwrap();
        assert_eq!((header.fork, header.sibling), (Fork::Prague, Some(Fork::Osaka)));
        memory.learn(6, Fork::Osaka);
        let header = pick(&memory, &Fork::SPECIFIED, 7).unwrap();
        assert_eq!((header.fork, header.sibling), (Fork::Osaka, None));
    }

    fn head(
        version: Version,
        custody: Option<&[u8]>,
        offer: &[Fork],
        known: Option<Fork>,
    ) -> Option<Fork> {
        let memory = Memory::new(None);
        if let Some(fork) = known {
            memory.note_block([7; 32], fork);
        }
        let offer = Offer::of_forks(offer);
        let context = Context { memory: &memory, offer: Some(&offer) };
        of_head(Method::ForkchoiceUpdated(version), [7; 32], custody, context)
            .ok()
            .map(|header| header.fork)
    }

    #[test]
    fn fork_03_without_attributes_any_offered_fork_of_the_methods_shape_will_do() {
        let all = &Fork::SPECIFIED[..];
        assert_eq!(head(Version::V1, None, all, None), Some(Fork::Paris));
        assert_eq!(head(Version::V3, None, all, None), Some(Fork::Osaka));
        assert_eq!(head(Version::V3, None, all, Some(Fork::Shanghai)), Some(Fork::Shanghai));
        assert_eq!(head(Version::V3, None, all, Some(Fork::Amsterdam)), Some(Fork::Osaka));
        assert_eq!(head(Version::V3, None, &[Fork::Cancun], None), Some(Fork::Cancun));
        assert_eq!(head(Version::V1, None, &[Fork::Cancun], None), None);
    }

    #[test]
    fn a_newest_method_version_on_an_old_head_goes_under_the_heads_fork() {
        let all = &Fork::SPECIFIED[..];
        assert_eq!(head(Version::V4, None, all, Some(Fork::Paris)), Some(Fork::Paris));
        assert_eq!(head(Version::V4, None, &Fork::SPECIFIED[..4], None), Some(Fork::Prague));
        let custody = Some(&b"\"0x00\""[..]);
        assert_eq!(head(Version::V4, custody, all, Some(Fork::Paris)), Some(Fork::Amsterdam));
        assert_eq!(head(Version::V4, custody, &Fork::SPECIFIED[..4], None), None);
    }
}
