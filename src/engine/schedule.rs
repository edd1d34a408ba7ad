//! Which fork a timestamp belongs to.

mod config_yaml;
mod genesis;

use crate::wire::Fork;
use serde::Deserialize;
use std::ops::RangeInclusive;

/// The activation times of the named forks of one chain, in seconds since the Unix epoch.
///
/// Blob-parameter-only forks have no entry: a timestamp in their era belongs to the named fork
/// below them (refactor.md, "Versioning model").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    activations: Vec<(u64, Fork)>,
    end: End,
}

/// What a schedule says of the time after its last entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The file that it was read from is the chain's own: a fork it does not name is not planned.
    Closed,
    /// Built in when the program was made: later forks may have been planned since.
    Open,
}

/// A public network whose schedule is built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Chain id 1.
    Mainnet,
    /// Chain id 11155111.
    Sepolia,
    /// Chain id 560048.
    Hoodi,
}

/// Why a genesis file gives no schedule.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// Not JSON.
    #[error("not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    /// JSON, but neither form.
    #[error(
        "neither a geth/besu genesis (an object with `config`) nor a Nethermind chainspec (an \
         object with `params`)"
    )]
    UnknownForm,
    /// Neither JSON nor a CL's configuration.
    #[error("neither JSON nor a CL's config.yaml: {0}")]
    NotYaml(String),
    /// A CL's configuration without what times are reckoned from.
    #[error("the CL's config.yaml has no `{name}`")]
    Missing {
        /// The key.
        name: &'static str,
    },
    /// A CL's configuration of a preset whose epochs are of unknown length.
    #[error("`PRESET_BASE` is {0:?}: mainnet, minimal and gnosis are known")]
    UnknownPreset(String),
    /// A fork time is not a number, or out of all proportion.
    #[error("`{name}` is not a number of seconds")]
    BadTime {
        /// Member name as the file has it.
        name: &'static str,
    },
    /// A fork is placed before the one it builds on.
    #[error("{later} is set to {later_at}, before {earlier} at {earlier_at}")]
    OutOfOrder {
        /// The fork that comes first by rule.
        earlier: Fork,
        /// Its time.
        earlier_at: u64,
        /// The fork that comes later by rule.
        later: Fork,
        /// Its time.
        later_at: u64,
    },
}

impl Schedule {
    /// Reads a genesis file of geth's, Besu's or Nethermind's form, or the `config.yaml` of a CL.
    ///
    /// # Errors
    /// When the text is none of the forms, or its times are no schedule.
    pub fn from_genesis(text: &str) -> Result<Self, ScheduleError> {
        let later = match text.trim_start().as_bytes().first() {
            Some(b'{' | b'[') => genesis::activations(text)?,
            _ => config_yaml::activations(text)?,
        };
        let mut activations = vec![(0, Fork::Paris)];
        activations.extend(later);
        Self::new(activations, End::Closed)
    }

    /// The built-in schedule of a public network.
    pub fn of_network(network: Network) -> Self {
        let later: &[(u64, Fork)] = match network {
            Network::Mainnet => &[
                (1_681_338_455, Fork::Shanghai),
                (1_710_338_135, Fork::Cancun),
                (1_746_612_311, Fork::Prague),
                (1_764_798_551, Fork::Osaka),
            ],
            Network::Sepolia => &[
                (1_677_557_088, Fork::Shanghai),
                (1_706_655_072, Fork::Cancun),
                (1_741_159_776, Fork::Prague),
                (1_760_427_360, Fork::Osaka),
            ],
            Network::Hoodi => &[
                (0, Fork::Shanghai),
                (0, Fork::Cancun),
                (1_742_999_832, Fork::Prague),
                (1_761_677_592, Fork::Osaka),
            ],
        };
        let mut activations = vec![(0, Fork::Paris)];
        activations.extend_from_slice(later);
        Self { activations, end: End::Open }
    }

    fn new(activations: Vec<(u64, Fork)>, end: End) -> Result<Self, ScheduleError> {
        for pair in activations.windows(2) {
            if let [(earlier_at, earlier), (later_at, later)] = *pair
                && later_at < earlier_at
            {
                return Err(ScheduleError::OutOfOrder { earlier, earlier_at, later, later_at });
            }
        }
        Ok(Self { activations, end })
    }

    /// The forks that a block of that timestamp can belong to: one, unless it lies beyond the last
    /// entry of a built-in schedule.
    pub fn forks_at(&self, timestamp: u64) -> RangeInclusive<Fork> {
        let active = self.activations.iter().rposition(|(from, _)| *from <= timestamp);
        let fork = active.map_or(Fork::Paris, |at| self.activations[at].1);
        let last = active.is_some_and(|at| at + 1 == self.activations.len());
        if last && self.end == End::Open { fork..=Fork::Bogota } else { fork..=fork }
    }

    /// The entries, oldest first.
    pub fn activations(&self) -> &[(u64, Fork)] {
        &self.activations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn geth_genesis_gives_each_fork_its_era() {
        let schedule = Schedule::from_genesis(
            r#"{"config":{"shanghaiTime":36,"cancunTime":72,"pragueTime":108,"osakaTime":144,
                "bpo1Time":150,"amsterdamTime":180}}"#,
        )
        .unwrap();
        for (timestamp, fork) in [
            (0, Fork::Paris),
            (35, Fork::Paris),
            (36, Fork::Shanghai),
            (107, Fork::Cancun),
            (108, Fork::Prague),
            (151, Fork::Osaka),
            (180, Fork::Amsterdam),
            (u64::MAX, Fork::Amsterdam),
        ] {
            assert_eq!(schedule.forks_at(timestamp), fork..=fork, "at {timestamp}");
        }
    }

    #[test]
    fn fork_09_a_blob_parameter_fork_maps_to_the_named_fork_below_it() {
        let schedule = Schedule::from_genesis(
            r#"{"config":{"shanghaiTime":0,"cancunTime":0,"pragueTime":0,"osakaTime":0,"bpo1Time":10,"bpo2Time":20}}"#,
        )
        .unwrap();
        assert_eq!(schedule.forks_at(25), Fork::Osaka..=Fork::Osaka);
    }

    #[test]
    fn nethermind_chainspec_names_forks_by_eip() {
        let schedule = Schedule::from_genesis(
            r#"{"params":{"eip4895TransitionTimestamp":"0x24","eip4844TransitionTimestamp":"0x48",
                "eip6110TransitionTimestamp":"0x6c","eip7702TransitionTimestamp":"0x6c",
                "eip7594TransitionTimestamp":"0x90"}}"#,
        )
        .unwrap();
        assert_eq!(schedule.forks_at(0x47), Fork::Shanghai..=Fork::Shanghai);
        assert_eq!(schedule.forks_at(0x6c), Fork::Prague..=Fork::Prague);
        assert_eq!(schedule.forks_at(u64::MAX), Fork::Osaka..=Fork::Osaka);
    }

    #[test]
    fn a_genesis_that_starts_late_puts_time_zero_into_its_newest_fork() {
        let schedule = Schedule::from_genesis(
            r#"{"config":{"shanghaiTime":0,"cancunTime":0,"pragueTime":0}}"#,
        )
        .unwrap();
        assert_eq!(schedule.forks_at(0), Fork::Prague..=Fork::Prague);
    }

    #[test]
    fn a_built_in_schedule_leaves_the_future_open() {
        let mainnet = Schedule::of_network(Network::Mainnet);
        assert_eq!(mainnet.forks_at(1_746_612_310), Fork::Cancun..=Fork::Cancun);
        assert_eq!(mainnet.forks_at(1_746_612_311), Fork::Prague..=Fork::Prague);
        assert_eq!(mainnet.forks_at(1_764_798_551), Fork::Osaka..=Fork::Bogota);
        assert_eq!(
            Schedule::of_network(Network::Hoodi).forks_at(1_742_213_400),
            Fork::Cancun..=Fork::Cancun
        );
    }

    #[test]
    fn what_is_no_schedule_is_refused_with_a_reason() {
        for (text, reason) in [
            ("{", "not JSON"),
            ("[]", "neither"),
            (r#"{"config":{"cancunTime":"soon"}}"#, "`cancunTime`"),
            (r#"{"config":{"shanghaiTime":9,"cancunTime":8}}"#, "cancun is set to 8"),
        ] {
            let error = Schedule::from_genesis(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
