//! The commands in README.md.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_engine-ssz-proxy");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every line of every `sh` block.
fn commands() -> Vec<String> {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    let blocks = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.flat_map(str::lines).map(str::to_owned).collect()
}

/// Runs a line as a shell does, with the program on the path.
fn run_in_shell(line: &str) {
    let folder = Path::new(PROGRAM).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let scratch = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root().join("tests"), scratch.path().join("tests")).unwrap();
    let output = Command::new("sh")
        .args(["-euc", line])
        .env("PATH", path)
        .current_dir(scratch.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_command_is_run_or_its_flags_are_known() {
    let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
    let mut seen = 0;
    for line in commands() {
        seen += 1;
        match line.split_whitespace().next().unwrap() {
            "engine-ssz-proxy" if line.contains(" < ") => run_in_shell(&line),
            // It would run for ever.
            "engine-ssz-proxy" => run_in_shell(&format!("{line} --help")),
            "cargo" => {
                let arguments: Vec<_> = line.split_whitespace().skip(1).collect();
                let is_run = |command: &str| {
                    let words: Vec<_> = command.split_whitespace().collect();
                    words.first() == Some(&"cargo")
                        && arguments.iter().all(|arg| words.contains(arg))
                };
                assert!(ci.lines().any(is_run), "CI does not run {line:?}");
            }
            "docker" => assert!(root().join("Dockerfile").exists()),
            other => panic!("{other}: a command that nothing tests"),
        }
    }
    assert!(seen >= 8, "{seen} commands");
}

#[test]
fn every_linked_file_is_there() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(link.starts_with("http") || root().join(link).exists(), "{link}");
    }
}

#[test]
fn the_picture_of_the_rooms_is_the_tree() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    for entry in fs::read_dir(root().join("src")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let wanted = match entry.file_type().unwrap().is_dir() {
            true => format!("`src/{name}/`"),
            false if name == "lib.rs" => continue,
            false => name,
        };
        assert!(text.contains(&wanted), "README does not show {wanted}");
    }
}
