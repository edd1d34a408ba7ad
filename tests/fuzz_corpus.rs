//! Every committed input of the fuzz targets, through the same functions, on any toolchain.

#![allow(dead_code, reason = "the property tests use more of the oracle")]

#[path = "wire_properties/differences.rs"]
mod differences;
#[path = "wire_properties/draw.rs"]
mod draw;
#[path = "wire_properties/judge.rs"]
mod judge;
#[path = "wire_properties/oracle/mod.rs"]
mod oracle;
#[path = "../fuzz/src/targets/mod.rs"]
mod targets;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A name that is a directory below `fuzz/corpus`, and what is done with the inputs in it.
type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 6] = [
    ("envelope", targets::envelope),
    ("json_to_ssz", targets::json_to_ssz),
    ("jwt", targets::jwt),
    ("problem", targets::problem),
    ("rest_answers", targets::rest_answers),
    ("ssz_to_json", targets::ssz_to_json),
];

fn below_fuzz(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(name)
}

fn files(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn every_committed_input_passes() {
    for (name, target) in TARGETS {
        let inputs = files(&below_fuzz("corpus").join(name));
        assert!(!inputs.is_empty(), "{name} has no corpus");
        // Values with blobs pass the stack by copy.
        let thread = std::thread::Builder::new().stack_size(64 << 20).name(name.to_owned());
        let replay = move || {
            for input in inputs {
                println!("{}", input.display());
                target(&fs::read(input).unwrap());
            }
        };
        thread.spawn(replay).unwrap().join().unwrap();
    }
}

#[test]
fn the_targets_are_those_that_are_fuzzed() {
    let stems = |directory: &str| -> BTreeSet<String> {
        let files = files(&below_fuzz(directory)).into_iter();
        files.map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    };
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(stems("fuzz_targets"), targets);
    assert_eq!(stems("corpus"), targets);
}
