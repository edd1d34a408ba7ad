//! What is known of a fork schedule that nobody gave: which fork a time belongs to at least, and at
//! most.

use crate::wire::Fork;
use serde_json::{Map, Value};
use std::ops::RangeInclusive;

/// Bounds on the fork of each timestamp, in seconds since the Unix epoch. They come from traffic, one
/// timestamp of one fork at a time, and from the EL's `eth_config`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    forks: [Bound; Fork::ALL.len()],
}

/// What is known of one fork.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bound {
    /// From this time on it is this fork or a later one.
    since: Option<u64>,
    /// Up to this time it is this fork or an earlier one.
    until: Option<u64>,
}

impl Bounds {
    /// Reads the `result` of `eth_config` (EIP-7910). `None`: it is none, or says nothing of use.
    ///
    /// The result names no forks, so they are told by the precompiles that came with them. Nothing
    /// tells Osaka from its successors, nor how long the newest entry lasts: both stay open. `last` is
    /// the furthest fork of the future; between `next` and it there may be others.
    pub fn from_eth_config(result: &[u8]) -> Option<Self> {
        let config: Value = serde_json::from_slice(result).ok()?;
        let entry = |name| Entry::read(config.get(name)?);
        let current = entry("current")?;
        let mut bounds = Self::default();
        let newest = match entry("next") {
            Some(next) => {
                // An entry that does not come later is no end of the one before it.
                let end = next.from.checked_sub(1).filter(|end| *end >= current.from)?;
                bounds.since(current.from, *current.forks.start());
                bounds.until(end, *current.forks.end());
                next
            }
            None => current,
        };
        bounds.since(newest.from, *newest.forks.start());
        bounds.until(newest.from, *newest.forks.end());
        if let Some(last) = entry("last").filter(|last| last.from >= newest.from) {
            bounds.since(last.from, *last.forks.start());
        }
        Some(bounds)
    }

    /// Notes that a block or attributes of that timestamp belong to that fork.
    pub(super) fn note(&mut self, timestamp: u64, fork: Fork) {
        self.since(timestamp, fork);
        self.until(timestamp, fork);
    }

    /// Adds what others say.
    pub(super) fn add(&mut self, others: &Self) {
        for (fork, bound) in Fork::ALL.into_iter().zip(others.forks) {
            if let Some(from) = bound.since {
                self.since(from, fork);
            }
            if let Some(to) = bound.until {
                self.until(to, fork);
            }
        }
    }

    /// The forks that a block of that timestamp can belong to, none later than `newest`. Bounds that
    /// contradict each other are as good as none.
    pub(super) fn forks_at(&self, timestamp: u64, newest: Fork) -> RangeInclusive<Fork> {
        let bounds = || Fork::ALL.into_iter().zip(self.forks);
        let begun = bounds().filter(|(_, bound)| bound.since.is_some_and(|from| from <= timestamp));
        let not_over = bounds().filter(|(_, bound)| bound.until.is_some_and(|to| to >= timestamp));
        let from = begun.map(|(fork, _)| fork).max().unwrap_or(Fork::Paris);
        let to = not_over.map(|(fork, _)| fork).min().unwrap_or(newest).min(newest);
        if from <= to { from..=to } else { Fork::Paris..=newest }
    }

    fn since(&mut self, from: u64, fork: Fork) {
        let bound = &mut self.forks[fork as usize].since;
        *bound = Some(bound.map_or(from, |known| known.min(from)));
    }

    fn until(&mut self, to: u64, fork: Fork) {
        let bound = &mut self.forks[fork as usize].until;
        *bound = Some(bound.map_or(to, |known| known.max(to)));
    }
}

/// One fork configuration of `eth_config`; forks that only change blob parameters have their own.
struct Entry {
    from: u64,
    forks: RangeInclusive<Fork>,
}

impl Entry {
    fn read(value: &Value) -> Option<Self> {
        let from = value.get("activationTime")?.as_u64()?;
        let precompiles = value.get("precompiles")?.as_object()?;
        let brings = |name: &str| has(precompiles, |known| known == name);
        let forks = if brings("P256VERIFY") {
            Fork::Osaka..=Fork::Bogota
        } else if has(precompiles, |known| known.starts_with("BLS12_")) {
            Fork::Prague..=Fork::Prague
        } else if brings("KZG_POINT_EVALUATION") {
            Fork::Cancun..=Fork::Cancun
        } else {
            Fork::Paris..=Fork::Shanghai
        };
        Some(Self { from, forks })
    }
}

/// The object is of names to addresses; drafts of the EIP had it the other way round.
fn has(precompiles: &Map<String, Value>, is: impl Fn(&str) -> bool) -> bool {
    precompiles.iter().any(|(key, value)| is(key) || value.as_str().is_some_and(&is))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// An entry with those precompiles beside the oldest ones.
    fn entry(from: u64, precompiles: &[&str]) -> Value {
        let mut object = Map::new();
        for (place, name) in ["ECREC", "SHA256"].iter().chain(precompiles).enumerate() {
            object.insert((*name).to_owned(), json!(format!("0x{:040x}", place + 1)));
        }
        json!({
            "activationTime": from, "chainId": "0x88bb0", "forkId": "0x0929e24e",
            "blobSchedule": {"baseFeeUpdateFraction": 3338477, "max": 6, "target": 3},
            "precompiles": object, "systemContracts": {}
        })
    }

    const KZG: &str = "KZG_POINT_EVALUATION";
    const BLS: &str = "BLS12_G1ADD";
    const P256: &str = "P256VERIFY";

    /// What an EL says at `current`.
    fn bounds(current: Value, next: Value, last: Value) -> Option<Bounds> {
        let result = json!({"current": current, "next": next, "last": last});
        Bounds::from_eth_config(result.to_string().as_bytes())
    }

    fn at(bounds: &Bounds, timestamp: u64) -> RangeInclusive<Fork> {
        bounds.forks_at(timestamp, Fork::Amsterdam)
    }

    #[test]
    fn neighbouring_entries_bound_each_other() {
        let (prague, osaka) = (entry(200, &[KZG, BLS]), entry(300, &[KZG, BLS, P256]));
        // The fork after this one is the furthest; or it is followed by one of blob parameters.
        for last in [osaka.clone(), entry(400, &[KZG, BLS, P256])] {
            let known = bounds(prague.clone(), osaka.clone(), last).unwrap();
            for (timestamp, forks) in [
                (0, Fork::Paris..=Fork::Prague),
                (199, Fork::Paris..=Fork::Prague),
                (200, Fork::Prague..=Fork::Prague),
                (299, Fork::Prague..=Fork::Prague),
                (300, Fork::Osaka..=Fork::Amsterdam),
                (u64::MAX, Fork::Osaka..=Fork::Amsterdam),
            ] {
                assert_eq!(at(&known, timestamp), forks, "at {timestamp}");
            }
        }
    }

    #[test]
    fn forks_may_lie_between_the_next_one_and_the_furthest() {
        let cancun = entry(100, &[KZG]);
        let known = bounds(entry(0, &[]), cancun, entry(400, &[KZG, BLS, P256])).unwrap();
        for (timestamp, forks) in [
            (0, Fork::Paris..=Fork::Shanghai),
            (99, Fork::Paris..=Fork::Shanghai),
            (100, Fork::Cancun..=Fork::Cancun),
            (101, Fork::Cancun..=Fork::Amsterdam),
            (399, Fork::Cancun..=Fork::Amsterdam),
            (400, Fork::Osaka..=Fork::Amsterdam),
        ] {
            assert_eq!(at(&known, timestamp), forks, "at {timestamp}");
        }
    }

    #[test]
    fn the_newest_entry_does_not_last_for_ever() {
        let known = bounds(entry(200, &[KZG, BLS]), Value::Null, Value::Null).unwrap();
        assert_eq!(at(&known, 200), Fork::Prague..=Fork::Prague);
        assert_eq!(at(&known, 201), Fork::Prague..=Fork::Amsterdam);
        let old = bounds(entry(0, &[]), entry(9, &[KZG]), entry(9, &[KZG])).unwrap();
        assert_eq!(at(&old, 8), Fork::Paris..=Fork::Shanghai);
    }

    #[test]
    fn a_blob_parameter_fork_only_moves_the_bounds() {
        let osaka = [KZG, BLS, P256];
        let known = bounds(entry(100, &osaka), entry(200, &osaka), entry(300, &osaka)).unwrap();
        assert_eq!(at(&known, 99), Fork::Paris..=Fork::Amsterdam);
        assert_eq!(at(&known, 100), Fork::Osaka..=Fork::Amsterdam);
    }

    #[test]
    fn precompiles_by_address_are_read_as_well() {
        let mut current = entry(200, &[]);
        current["precompiles"] = json!({
            "0x000000000000000000000000000000000000000a": KZG,
            "0x000000000000000000000000000000000000000b": BLS,
        });
        let known = bounds(current, Value::Null, Value::Null).unwrap();
        assert_eq!(at(&known, 200), Fork::Prague..=Fork::Prague);
    }

    #[test]
    fn what_is_no_configuration_teaches_nothing() {
        let good = entry(200, &[KZG]);
        for result in [json!(null), json!([]), json!({"current": null}), json!({"next": good})] {
            assert_eq!(Bounds::from_eth_config(result.to_string().as_bytes()), None, "{result}");
        }
        assert_eq!(Bounds::from_eth_config(b"{"), None);
        let mut untimed = entry(200, &[KZG]);
        untimed["activationTime"] = json!("0xc8");
        assert_eq!(bounds(untimed, Value::Null, Value::Null), None);
        assert_eq!(bounds(entry(300, &[KZG]), good.clone(), Value::Null), None, "next before");
        let known = bounds(good.clone(), entry(300, &[KZG, BLS]), Value::Null);
        assert_eq!(
            bounds(good, entry(300, &[KZG, BLS]), entry(100, &[P256])),
            known,
            "last before"
        );
    }

    #[test]
    fn what_contradicts_itself_is_as_good_as_unknown() {
        let mut known = Bounds::default();
        known.note(40, Fork::Osaka);
        known.note(60, Fork::Cancun);
        assert_eq!(at(&known, 50), Fork::Paris..=Fork::Amsterdam);
    }

    #[test]
    fn traffic_narrows_what_the_el_left_open() {
        let mut known = Bounds::default();
        known.note(250, Fork::Osaka);
        let told = bounds(entry(200, &[KZG, BLS, P256]), Value::Null, Value::Null).unwrap();
        known.add(&told);
        assert_eq!(at(&known, 220), Fork::Osaka..=Fork::Osaka);
        assert_eq!(at(&known, 260), Fork::Osaka..=Fork::Amsterdam);
        assert_eq!(at(&known, 190), Fork::Paris..=Fork::Osaka);
    }
}
