//! Fork schedules from the files that a devnet's generator writes for its clients, all of one chain.

use engine_ssz_proxy::{
    engine::{Horizon, Memory, Schedule},
    wire::Fork,
};

const GETH: &str = include_str!("data/schedules/genesis.json");
const BESU: &str = include_str!("data/schedules/besu.json");
const NETHERMIND: &str = include_str!("data/schedules/chainspec.json");
const CONFIG_YAML: &str = include_str!("data/schedules/config.yaml");

/// Genesis and the length of an epoch, in seconds.
const GENESIS: u64 = 1_764_590_420;
const EPOCH: u64 = 192;

fn read(text: &str) -> Schedule {
    Schedule::from_genesis(text).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(text: &str) -> String {
    let error = Schedule::from_genesis(text).unwrap_err().to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

/// The file of the CL, with one text in place of another.
fn config_yaml(old: &str, new: &str) -> String {
    assert_eq!(CONFIG_YAML.matches(old).count(), 1, "{old:?}");
    CONFIG_YAML.replace(old, new)
}

#[test]
fn all_files_of_a_chain_give_the_same_eras() {
    let cl = read(CONFIG_YAML);
    for (name, text) in [("geth", GETH), ("besu", BESU), ("nethermind", NETHERMIND)] {
        let el = read(text);
        let named = el.activations().strip_suffix(&[(GENESIS + 6 * EPOCH, Fork::Bogota)]);
        assert_eq!(named, Some(cl.activations()), "{name}");
    }
    for (timestamp, fork) in [
        (GENESIS, Fork::Shanghai),
        (GENESIS + EPOCH - 1, Fork::Shanghai),
        (GENESIS + EPOCH, Fork::Cancun),
        (GENESIS + 2 * EPOCH, Fork::Prague),
        (GENESIS + 3 * EPOCH, Fork::Osaka),
        (GENESIS + 4 * EPOCH, Fork::Amsterdam),
        // A blob parameter fork.
        (GENESIS + 5 * EPOCH, Fork::Amsterdam),
        (u64::MAX, Fork::Amsterdam),
    ] {
        assert_eq!(cl.forks_at(timestamp), fork..=fork, "{timestamp}");
    }
    assert_eq!(read(GETH).forks_at(u64::MAX), Fork::Bogota..=Fork::Bogota);
}

#[test]
fn bogota_is_beyond_the_horizon_unless_asked_for() {
    let at = GENESIS + 6 * EPOCH;
    let memory = || Memory::new(Some(read(GETH)));
    assert_eq!(memory().forks_at(at), Fork::Amsterdam..=Fork::Amsterdam);
    let wider = memory().within(Horizon::Bogota);
    assert_eq!(wider.forks_at(at), Fork::Bogota..=Fork::Bogota);
    assert_eq!(wider.forks_at(at - 1), Fork::Amsterdam..=Fork::Amsterdam);
}

#[test]
fn an_epoch_is_as_long_as_its_preset_and_slots_say() {
    let cancun = |text: &str| {
        read(text).activations().iter().find(|(_, fork)| *fork == Fork::Cancun).unwrap().0
    };
    assert_eq!(cancun(CONFIG_YAML), GENESIS + 32 * 6);
    assert_eq!(cancun(&config_yaml("'mainnet'", "minimal")), GENESIS + 8 * 6);
    assert_eq!(cancun(&config_yaml("'mainnet'", "\"gnosis\"")), GENESIS + 16 * 6);
    assert_eq!(cancun(&config_yaml("SLOT_DURATION_MS: 6000\n", "")), GENESIS + 32 * 12);
    assert_eq!(cancun(&config_yaml("MS: 6000", "MS: 4500")), GENESIS + 32 * 45 / 10);
}

#[test]
fn slots_that_change_their_length_are_reckoned_by_era() {
    let schedule = "SLOT_DURATION_MS: 6000\nSLOT_DURATION_SCHEDULE:\n  \
         - EPOCH: 4\n    SLOT_DURATION_MS: 2000\n  - EPOCH: 2\n    SLOT_DURATION_MS: 4000\n";
    let schedule = read(&config_yaml("SLOT_DURATION_MS: 6000\n", schedule));
    let starts: Vec<_> = schedule.activations().iter().map(|(from, _)| *from).collect();
    let [two, three, four] = [2 * 32 * 6, 2 * 32 * 6 + 32 * 4, 2 * 32 * 6 + 2 * 32 * 4];
    let wanted = [0, 0, GENESIS + 32 * 6, GENESIS + two, GENESIS + three, GENESIS + four];
    assert_eq!(starts, wanted);
}

#[test]
fn quoted_numbers_and_document_marks_are_read() {
    let quoted = config_yaml("FULU_FORK_EPOCH: 3", "FULU_FORK_EPOCH: '3'");
    assert_eq!(read(&format!("---\n{quoted}")), read(CONFIG_YAML));
    let heze = "HEZE_FORK_EPOCH: 18446744073709551615";
    assert_eq!(read(&config_yaml(heze, "")), read(CONFIG_YAML));
    let planned = read(&config_yaml(heze, "HEZE_FORK_EPOCH: \"6\""));
    assert_eq!(planned, read(GETH));
}

#[test]
fn chains_that_began_by_deposits_have_their_genesis_time_built_in() {
    // The fork epochs of mainnet, whose times are known.
    let text = "PRESET_BASE: mainnet\nCONFIG_NAME: mainnet\nMIN_GENESIS_TIME: 1606824000\n\
         GENESIS_DELAY: 604800\nSECONDS_PER_SLOT: 12\nCAPELLA_FORK_EPOCH: 194048\n\
         DENEB_FORK_EPOCH: 269568\nELECTRA_FORK_EPOCH: 364032\nFULU_FORK_EPOCH: 411392\n";
    let mainnet = Schedule::of_network(engine_ssz_proxy::engine::Network::Mainnet);
    assert_eq!(read(text).activations(), mainnet.activations());
    let sepolia = "PRESET_BASE: mainnet\nCONFIG_NAME: sepolia\nMIN_GENESIS_TIME: 1655647200\n\
         GENESIS_DELAY: 86400\nSECONDS_PER_SLOT: 12\nCAPELLA_FORK_EPOCH: 56832\n\
         DENEB_FORK_EPOCH: 132608\nELECTRA_FORK_EPOCH: 222464\nFULU_FORK_EPOCH: 272640\n";
    let of_network = Schedule::of_network(engine_ssz_proxy::engine::Network::Sepolia);
    assert_eq!(read(sepolia).activations(), of_network.activations());
}

#[test]
fn a_configuration_that_gives_no_times_is_refused_with_the_reason() {
    for (old, new, why) in [
        ("PRESET_BASE: 'mainnet'", "", "PRESET_BASE"),
        ("PRESET_BASE: 'mainnet'", "PRESET_BASE: 'holesky'", "holesky"),
        ("MIN_GENESIS_TIME: 1764590400", "", "MIN_GENESIS_TIME"),
        ("GENESIS_DELAY: 20", "GENESIS_DELAY: soon", "GENESIS_DELAY"),
        ("DENEB_FORK_EPOCH: 1\n", "DENEB_FORK_EPOCH: 18446744073709551614\n", "DENEB_FORK_EPOCH"),
        ("ELECTRA_FORK_EPOCH: 2\n", "ELECTRA_FORK_EPOCH: 0\n", "prague is set to 0"),
        ("DENEB_FORK_EPOCH: 1\n", "DENEB_FORK_EPOCH: [1]\n", "config.yaml"),
        ("PRESET_BASE: 'mainnet'", "PRESET_BASE: 'mainnet", "config.yaml"),
    ] {
        let said = refusal(&config_yaml(old, new));
        assert!(said.contains(why), "{new:?}: {said}");
    }
    for text in ["", "plain text", "- a\n- list", "\u{1}"] {
        refusal(text);
    }
}
