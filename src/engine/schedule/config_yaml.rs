//! The `config.yaml` of a CL (consensus-specs, "Configurations"): forks by epoch.

use super::ScheduleError;
use crate::wire::Fork;
use serde::Deserialize;

/// The epoch of what is not planned (phase0, `FAR_FUTURE_EPOCH`).
const FAR_FUTURE: u64 = u64::MAX;

/// The keys that times are reckoned from; there are a hundred others.
#[derive(Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
struct ConfigYaml {
    preset_base: Option<String>,
    config_name: Option<String>,
    min_genesis_time: Option<Number>,
    genesis_delay: Option<Number>,
    slot_duration_ms: Option<Number>,
    seconds_per_slot: Option<Number>,
    #[serde(default)]
    slot_duration_schedule: Vec<SlotDuration>,
    capella_fork_epoch: Option<Number>,
    deneb_fork_epoch: Option<Number>,
    electra_fork_epoch: Option<Number>,
    fulu_fork_epoch: Option<Number>,
    gloas_fork_epoch: Option<Number>,
    heze_fork_epoch: Option<Number>,
}

/// From an epoch on, slots are of another length (EIP-8198).
#[derive(Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
struct SlotDuration {
    epoch: Number,
    slot_duration_ms: Number,
}

/// Some CLs write their numbers in quotes.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Number {
    Plain(u64),
    Quoted(String),
}

impl Number {
    fn read(&self, name: &'static str) -> Result<u64, ScheduleError> {
        match self {
            Self::Plain(number) => Ok(*number),
            Self::Quoted(text) => text.parse().map_err(|_| ScheduleError::BadTime { name }),
        }
    }
}

/// When epochs begin.
struct Clock {
    /// Seconds since the Unix epoch.
    genesis: u64,
    slots_per_epoch: u64,
    /// First epoch and milliseconds per slot of each era, oldest first.
    eras: Vec<(u64, u64)>,
}

/// The forks after Paris that the file plans, oldest first, with their times.
pub(super) fn activations(text: &str) -> Result<Vec<(u64, Fork)>, ScheduleError> {
    let options = serde_saphyr::options! { with_snippet: false };
    let config: ConfigYaml = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| ScheduleError::NotYaml(error.to_string().replace('\n', " ")))?;
    let clock = Clock::of(&config)?;
    let epochs = [
        ("CAPELLA_FORK_EPOCH", &config.capella_fork_epoch, Fork::Shanghai),
        ("DENEB_FORK_EPOCH", &config.deneb_fork_epoch, Fork::Cancun),
        ("ELECTRA_FORK_EPOCH", &config.electra_fork_epoch, Fork::Prague),
        ("FULU_FORK_EPOCH", &config.fulu_fork_epoch, Fork::Osaka),
        ("GLOAS_FORK_EPOCH", &config.gloas_fork_epoch, Fork::Amsterdam),
        ("HEZE_FORK_EPOCH", &config.heze_fork_epoch, Fork::Bogota),
    ];
    let mut activations = Vec::new();
    for (name, epoch, fork) in epochs {
        let Some(epoch) = epoch else { continue };
        let epoch = epoch.read(name)?;
        if epoch != FAR_FUTURE {
            let from = clock.start(epoch).ok_or(ScheduleError::BadTime { name })?;
            activations.push((from, fork));
        }
    }
    Ok(activations)
}

impl Clock {
    fn of(config: &ConfigYaml) -> Result<Self, ScheduleError> {
        let missing = |name| ScheduleError::Missing { name };
        let required = |name, value: &Option<Number>| {
            value.as_ref().ok_or(ScheduleError::Missing { name })?.read(name)
        };
        let preset = config.preset_base.as_deref().ok_or(missing("PRESET_BASE"))?;
        let slots_per_epoch = match preset {
            "mainnet" => 32,
            "minimal" => 8,
            "gnosis" => 16,
            other => return Err(ScheduleError::UnknownPreset(other.to_owned())),
        };
        // The name in seconds is deprecated, and generators were seen to leave it at 12.
        let slot = match &config.slot_duration_ms {
            Some(_) => required("SLOT_DURATION_MS", &config.slot_duration_ms)?,
            None => required("SECONDS_PER_SLOT", &config.seconds_per_slot)?
                .checked_mul(1000)
                .ok_or(ScheduleError::BadTime { name: "SECONDS_PER_SLOT" })?,
        };
        let genesis = match config.config_name.as_deref() {
            // These two began when enough had been deposited, which no file has.
            Some("mainnet") => 1_606_824_023,
            Some("gnosis") => 1_638_993_340,
            _ => required("MIN_GENESIS_TIME", &config.min_genesis_time)?
                .checked_add(required("GENESIS_DELAY", &config.genesis_delay)?)
                .ok_or(ScheduleError::BadTime { name: "MIN_GENESIS_TIME" })?,
        };
        let mut eras = vec![(0, slot)];
        for era in &config.slot_duration_schedule {
            let name = "SLOT_DURATION_SCHEDULE";
            eras.push((era.epoch.read(name)?, era.slot_duration_ms.read(name)?));
        }
        eras.sort_by_key(|(epoch, _)| *epoch);
        Ok(Self { genesis, slots_per_epoch, eras })
    }

    /// When the epoch begins; `None`: later than there are numbers for.
    ///
    /// What is active at genesis is so from time 0 on, as in the genesis files of ELs.
    fn start(&self, epoch: u64) -> Option<u64> {
        if epoch == 0 {
            return Some(0);
        }
        let mut milliseconds: u64 = 0;
        for (place, (first, slot)) in self.eras.iter().enumerate() {
            let end = self.eras.get(place + 1).map_or(epoch, |(next, _)| epoch.min(*next));
            let epochs = end.saturating_sub(*first);
            let era = epochs.checked_mul(self.slots_per_epoch)?.checked_mul(*slot)?;
            milliseconds = milliseconds.checked_add(era)?;
        }
        self.genesis.checked_add(milliseconds / 1000)
    }
}
