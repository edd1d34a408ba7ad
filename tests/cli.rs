//! The program as people run it.

use engine_ssz_proxy::config::Settings;
use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_engine-ssz-proxy");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The program without whatever the environment sets.
fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("ENGINE_SSZ_PROXY_")) {
        command.env_remove(name);
    }
    command.args(arguments);
    command
}

fn run(mut command: Command, stdin: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A program that refuses its arguments does not read.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    child.wait_with_output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Exit 64 and one line that names the field and why.
fn assert_refused(command: Command, field: &str, why: &str) {
    let output = run(command, b"");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(64), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains(field) && said.contains(why), "{said:?} lacks {field:?} or {why:?}");
    assert!(output.stdout.is_empty());
}

#[test]
fn bad_configuration_is_one_line_and_exit_64() {
    let url = "http://127.0.0.1:1";
    for (arguments, field, why) in [
        (&[][..], "execution-endpoint", "is missing"),
        (&["https://el:8551"], "execution-endpoint", "https"),
        (&["not a url"], "execution-endpoint", "http://host:port"),
        (&[url, "--listen-port", "70000"], "listen-port", "70000"),
        (&[url, "--listen-port", "x"], "listen-port", "x"),
        (&[url, "--timeout-multiplier", "0.5"], "timeout-multiplier", "from 1 to 100"),
        (&[url, "--build-connections", "0"], "build-connections", "zero"),
        (&[url, "--history-in-flight", "1.5"], "history-in-flight", "invalid digit"),
        (&[url, "--relay-connections", "many"], "relay-connections", "invalid digit"),
        (&[url, "--listen-address", "nowhere"], "listen-address", "nowhere"),
        (&[url, "--listen-path", ""], "listen-path", "none was supplied"),
        (&["unix://run/el.sock"], "execution-endpoint", "absolute path"),
        (&[url, "--transport", "h3"], "transport", "h2c"),
        (&[url, "--rest-base-path", "engine/v2"], "rest-base-path", "absolute path"),
        (&[url, "--jwt-secret", "/does/not/exist"], "jwt-secret", "/does/not/exist"),
        (&[url, "--jwt-secret", "11111111111111111111111111111111111111"], "jwt-secret", "38"),
        (&[url, "--genesis", "/does/not/exist"], "genesis", "/does/not/exist"),
        (&[url, "--genesis", "Cargo.toml"], "genesis", "not JSON"),
        (&[url, "--network", "ropsten"], "network", "hoodi"),
        (&[url, "--genesis", "x", "--network", "hoodi"], "network", "genesis"),
        (&[url, "--log-level", "info,=x="], "log-level", "info,=x="),
        (&[url, "--log-format", "xml"], "log-format", "logfmt"),
        (&[url, "--body-limit", "128M"], "body-limit", "128M"),
        (&[url, "--max-connections", "0"], "max-connections", "1 or more"),
        (&[url, "--max-connections", "many"], "max-connections", "many"),
        (&[url, "--max-calls", "0"], "max-calls", "1 or more"),
        (&[url, "--max-calls=-1"], "max-calls", "-1"),
        (&[url, "--grace-period", "soon"], "grace-period", "soon"),
        (&[url, "--config", "/does/not/exist"], "config", "/does/not/exist"),
        (&[url, "--no-such-flag"], "--no-such-flag", "unexpected"),
        (&["mock-el", "--surface", "xml"], "--surface", "xml"),
        (&["mock-el", "--faults", "/does/not/exist"], "faults", "/does/not/exist"),
        (&["mock-el", "--faults", "Cargo.toml"], "faults", "unknown field"),
        (&["encode", "--fork", "london"], "--fork", "amsterdam"),
    ] {
        let mut command = program(arguments);
        command.current_dir(root());
        assert_refused(command, field, why);
    }
}

#[test]
fn a_secret_is_never_shown_in_whatever_form_or_place() {
    let key = "ab".repeat(32);
    let slip = format!("{}zz", "ab".repeat(31));
    for wrong in [slip, "ab".repeat(33), "ab".repeat(31), format!("{key} {key}")] {
        assert_hidden(
            program(&["http://127.0.0.1:1", "--jwt-secret", &wrong]),
            "jwt-secret",
            &wrong,
        );
        assert_hidden(program(&[&wrong]), "execution-endpoint", &wrong);
    }
    let user = "http://user:hunter2@127.0.0.1:1";
    assert_hidden(program(&[user]), "execution-endpoint", "hunter2");
}

fn assert_hidden(command: Command, field: &str, secret: &str) {
    let output = run(command, b"");
    assert_eq!(output.status.code(), Some(64));
    let said = stderr(&output);
    assert!(said.contains(field) && !said.contains(secret), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn auth_04_a_secret_is_taken_in_each_form_that_others_write() {
    let key = "aB".repeat(32);
    for form in [key.clone(), format!("0x{key}"), format!("0X{key}"), format!(" {key}\n")] {
        // Good as it is, so that the next field is the one refused.
        let mut command = program(&["http://127.0.0.1:1", "--transport", "h3"]);
        command.env("ENGINE_SSZ_PROXY_JWT_SECRET", form);
        assert_refused(command, "transport", "h2c");
    }
}

#[test]
fn a_bad_file_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.toml");
    for (text, why) in [
        ("listen-port = 1\nlisten-prot = 2", "line 2"),
        ("listen-port = 1\nlisten-port = 2", "line 2"),
        ("execution-endpoint = 7", "line 1"),
        ("=", "line 1"),
    ] {
        fs::write(&file, text).unwrap();
        assert_refused(program(&["--config", file.to_str().unwrap()]), "config: ", why);
    }
}

#[test]
fn flags_go_over_environment_over_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.toml");
    fs::write(&file, "execution-endpoint = \"http://el:1\"\ntransport = \"of-the-file\"").unwrap();
    let command = || program(&["--config", file.to_str().unwrap()]);
    assert_refused(command(), "transport", "of-the-file");

    let mut by_environment = command();
    by_environment.env("ENGINE_SSZ_PROXY_TRANSPORT", "of-the-environment");
    assert_refused(by_environment, "transport", "of-the-environment");

    let mut by_flag = command();
    by_flag.env("ENGINE_SSZ_PROXY_TRANSPORT", "of-the-environment");
    by_flag.args(["--transport", "of-the-flag"]);
    assert_refused(by_flag, "transport", "of-the-flag");

    let mut by_positional = command();
    by_positional.env("ENGINE_SSZ_PROXY_EXECUTION_ENDPOINT", "http://el:2").arg("ftp://el:3");
    assert_refused(by_positional, "execution-endpoint", "ftp");
}

/// Names of the settings, by the help text.
fn flags() -> BTreeSet<String> {
    let help = String::from_utf8(run(program(&["--help"]), b"").stdout).unwrap();
    let words = help.split_whitespace().filter_map(|word| word.strip_prefix("--"));
    let names = words.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned());
    names
        .filter(|name| !["help", "version", "config", "genesis)"].contains(&name.as_str()))
        .collect()
}

#[test]
fn the_annotated_file_has_every_setting_and_its_every_line_is_good() {
    let text = fs::read_to_string(root().join("config/engine-ssz-proxy.toml")).unwrap();
    let settings: Vec<_> = text
        .lines()
        .map(|line| line.strip_prefix('#').unwrap_or(line))
        .filter(|line| {
            line.split_once(" = ").is_some_and(|(key, _)| !key.contains(' ') && !key.is_empty())
        })
        .collect();
    let keys: BTreeSet<_> =
        settings.iter().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    assert_eq!(keys, flags());
    assert_eq!(keys.len(), settings.len(), "a key stands twice");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.toml");
    fs::write(&file, settings.join("\n")).unwrap();
    let all = Settings::from_file(&file).unwrap();
    // As it stands, with only what must be set.
    Settings::from_file(&root().join("config/engine-ssz-proxy.toml")).unwrap().check().unwrap();
    // And with everything, but for the files that are not here and for one of the two schedules.
    let all = Settings { genesis: None, jwt_secret: None, ..all };
    all.check().unwrap();
}

#[test]
fn each_flag_names_its_environment_variable() {
    let help = String::from_utf8(run(program(&["--help"]), b"").stdout).unwrap();
    for flag in flags() {
        let variable = format!("ENGINE_SSZ_PROXY_{}", flag.to_uppercase().replace('-', "_"));
        assert!(help.contains(&variable), "{variable}");
    }
}

/// Runs until it listens, as another name with the snooper's arguments; then stops on SIGTERM.
#[test]
fn it_runs_in_the_snoopers_place_and_stops_on_sigterm() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(PROGRAM, folder.path().join("json_rpc_snoop")).unwrap();
    let mut child = Command::new("./json_rpc_snoop")
        .args(["-b=127.0.0.1", "-p=0", "http://127.0.0.1:1"])
        .env("ENGINE_SSZ_PROXY_LOG_FORMAT", "json")
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    log.read_line(&mut line).unwrap();
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    let address = line["address"].as_str().unwrap();
    assert!(std::net::TcpStream::connect(address).is_ok(), "{address}");
    let terminated = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(terminated.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut rest = String::new();
    log.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("stopping"), "{rest}");
}

#[test]
fn mock_el_obeys_its_script_of_faults_and_counts_them_at_the_end() {
    let mut script = tempfile::NamedTempFile::new().unwrap();
    script
        .write_all(b"[[rule]]\nfault.refuse = { when = \"before\", refusal = \"unavailable\" }")
        .unwrap();
    let path = script.path().to_str().unwrap();
    let mut child = program(&["mock-el", "--listen", "127.0.0.1:0", "--faults", path])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let address = line.split_whitespace().nth(3).unwrap().trim_end_matches(',');
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /x HTTP/1.1\r\nhost: el\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    let terminated = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(terminated.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "mock-el: refuse: 1 times\n");
}

#[test]
fn a_port_that_is_taken_is_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = run(program(&["http://127.0.0.1:1", "-p", &port, "--log-level", "error"]), b"");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(&format!("127.0.0.1:{port}")), "{}", stderr(&output));
}

const BLOCKS: [(&str, &str); 11] = [
    ("01-paris", "V2"),
    ("03-shanghai", "V2"),
    ("04-shanghai", "V2"),
    ("06-cancun", "V3"),
    ("07-cancun", "V3"),
    ("09-prague", "V4"),
    ("10-prague", "V4"),
    ("12-osaka", "V5"),
    ("13-osaka", "V5"),
    ("15-amsterdam", "V6"),
    ("16-amsterdam", "V6"),
];

fn golden(name: &str) -> Vec<u8> {
    let path: PathBuf = root().join("tests/data/golden").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn encode_writes_the_bytes_that_a_real_el_took() {
    for (block, _) in BLOCKS {
        let genesis = "tests/data/genesis/genesis-allforks.json";
        let mut command = program(&["encode", "--genesis", genesis]);
        command.current_dir(root());
        let output = run(command, &golden(&format!("{block}-newPayload.json")));
        let head = stderr(&output);
        assert!(output.status.success(), "{head}");
        assert!(output.stdout == golden(&format!("{block}-newPayload.ssz")), "{block}");
        assert!(head.starts_with("POST /engine/v1/payloads\n"), "{head}");
        assert!(head.contains(&format!("eth-execution-version: {}\n", &block[3..])), "{head}");
    }
}

#[test]
fn decode_prints_what_a_real_el_answered_over_json_rpc() {
    for (block, version) in BLOCKS {
        let method = format!("engine_getPayload{version}");
        let command = program(&["decode", "--method", &method, "--id", "1"]);
        let output = run(command, &golden(&format!("{block}-getPayload.ssz")));
        assert!(output.status.success(), "{}", stderr(&output));
        let ours: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let theirs: serde_json::Value =
            serde_json::from_slice(&golden(&format!("{block}-getPayload.json"))).unwrap();
        assert!(ours == theirs, "{block}");
    }
}

#[test]
fn encode_says_why_it_would_relay() {
    for (request, why) in [
        (r#"{"id":1,"method":"eth_chainId"}"#, "not translated"),
        (r#"{"id":1,"method":"engine_getPayloadV1","params":["0x1"]}"#, "cannot be written as SSZ"),
        (r#"{"id":1,"method":"engine_newPayloadV1","params":[]}"#, "takes 1 parameters"),
    ] {
        let output = run(program(&["encode"]), request.as_bytes());
        assert_eq!(output.status.code(), Some(3), "{request}");
        assert!(output.stdout.is_empty());
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    }
    for junk in ["", "{", "[]", "7", r#"[{"id":1,"method":"eth_x"}]"#] {
        assert_eq!(run(program(&["encode"]), junk.as_bytes()).status.code(), Some(64), "{junk}");
    }
}

#[test]
fn encode_of_a_get_has_a_head_and_no_body() {
    let request = r#"{"id":1,"method":"engine_getPayloadV5","params":["0x00000000000000AA"]}"#;
    let output = run(program(&["encode"]), request.as_bytes());
    assert!(output.status.success());
    assert!(output.stdout.is_empty());
    assert_eq!(
        stderr(&output),
        "GET /engine/v1/payloads/0x00000000000000aa\n\
         eth-execution-version: osaka\n\
         accept: application/octet-stream\n"
    );
}

#[test]
fn encode_takes_the_fork_it_is_told() {
    let request = golden("09-prague-newPayload.json");
    for fork in ["prague", "osaka"] {
        let output = run(program(&["encode", "--fork", fork]), &request);
        assert!(stderr(&output).contains(&format!("eth-execution-version: {fork}\n")));
    }
    let output = run(program(&["encode", "--fork", "cancun"]), &request);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
}

#[test]
fn decode_of_a_malformed_body_is_exit_2_with_the_reason() {
    let whole = golden("12-osaka-getPayload.ssz");
    let wrong_offset = [&[0x2c], &whole[1..]].concat();
    for bad in [&wrong_offset[..], &whole[..40], b"x"] {
        let output = run(program(&["decode", "--method", "engine_getPayloadV5"]), bad);
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        assert!(stderr(&output).contains("malformed body: "), "{}", stderr(&output));
    }
}

#[test]
fn decode_knows_what_no_content_means() {
    let hash = format!("\"0x{}\"", "11".repeat(32));
    let run = |arguments: &[&str]| {
        let mut all = vec!["decode", "--method"];
        all.extend(arguments);
        run(program(&all), b"")
    };
    for method in ["engine_getBlobsV2", "engine_getBlobsV3", "engine_getBlobsV4"] {
        assert_eq!(run(&[method]).stdout, b"null\n", "{method}");
    }
    let v1 = run(&["engine_getBlobsV1", "--params", &format!("[[{hash},{hash}]]")]);
    assert_eq!(v1.stdout, b"[null,null]\n");
    assert_eq!(run(&["engine_getBlobsV1"]).status.code(), Some(64));
    assert_eq!(run(&["engine_getPayloadV5"]).status.code(), Some(2));
    assert_eq!(run(&["engine_exchangeCapabilities"]).status.code(), Some(64));
    assert_eq!(run(&["engine_getPayloadV5", "--fork", "paris"]).status.code(), Some(64));
}

#[test]
fn decode_checks_the_number_of_bodies_against_the_request() {
    let bodies = golden("bodies-osaka.ssz");
    let hash = format!("\"0x{}\"", "11".repeat(32));
    let decode = |params: &str| {
        let method = "engine_getPayloadBodiesByHashV1";
        run(
            program(&["decode", "--method", method, "--fork", "osaka", "--params", params]),
            &bodies,
        )
    };
    let printed = decode(&format!("[[{}]]", [hash.as_str(); 3].join(",")));
    let printed: Vec<serde_json::Value> = serde_json::from_slice(&printed.stdout).unwrap();
    assert_eq!(printed.len(), 3);
    let short = decode(&format!("[[{hash}]]"));
    assert_eq!(short.status.code(), Some(2));
    assert!(stderr(&short).contains("3 entries for 1 asked"), "{}", stderr(&short));
}

#[test]
fn the_rest_base_path_of_the_setting_is_the_one_asked() {
    let settings = |base: Option<&str>| Settings {
        execution_endpoint: Some("http://el:1".to_owned()),
        rest_base_path: base.map(str::to_owned),
        ..Settings::default()
    };
    let base = |given| settings(given).check().unwrap().el.rest_base.to_string();
    assert_eq!(base(None), "/engine/v1");
    assert_eq!(base(Some("/engine/v2/")), "/engine/v2");
}

#[test]
fn the_bounds_of_the_settings_are_those_of_the_door() {
    let settings = Settings {
        execution_endpoint: Some("http://el:1".to_owned()),
        body_limit: Some(engine_ssz_proxy::config::Number::Integer(1000)),
        max_connections: Some(engine_ssz_proxy::config::Number::Integer(3)),
        max_calls: Some(engine_ssz_proxy::config::Number::Integer(5)),
        ..Settings::default()
    };
    let bounds = settings.check().unwrap().cl.bounds;
    assert_eq!((bounds.connections, bounds.calls, bounds.bodies), (3, 5, 4000));
}

#[test]
fn a_listen_path_goes_before_the_port_and_is_not_empty() {
    let settings = |path: &str| Settings {
        execution_endpoint: Some("http://el:1".to_owned()),
        listen_port: Some(engine_ssz_proxy::config::Number::Integer(8551)),
        listen_path: Some(path.into()),
        ..Settings::default()
    };
    let listen = settings("/run/cl.sock").check().unwrap().listen;
    assert_eq!(listen.to_string(), "unix:///run/cl.sock");
    assert_eq!(settings("").check().unwrap_err().field, "listen-path");
}

/// A BlobsV4Response of one blob with that many slots; each cell and proof is its place repeated.
fn cells(slots: u8) -> Vec<u8> {
    let list = |size: usize| {
        let table = 4 * usize::from(slots);
        let offsets = (0..usize::from(slots)).map(|slot| table + slot * size);
        let mut list: Vec<u8> =
            offsets.flat_map(|offset| u32::try_from(offset).unwrap().to_le_bytes()).collect();
        list.extend((0..slots).flat_map(|slot| vec![slot; size]));
        list
    };
    let (cells, proofs) = (list(2048), list(48));
    let mut ssz = vec![4, 0, 0, 0, 4, 0, 0, 0, 1, 5, 0, 0, 0, 8, 0, 0, 0];
    ssz.extend(u32::try_from(8 + cells.len()).unwrap().to_le_bytes());
    ssz.extend(cells);
    ssz.extend(proofs);
    ssz
}

#[test]
fn decode_prints_the_cells_that_were_asked_for_and_no_other_slots() {
    let hash = format!("0x{}", "11".repeat(32));
    let decode = |slots: u8, columns: Option<&str>| {
        let params = columns.map(|columns| format!(r#"[["{hash}"],"{columns}"]"#));
        let mut arguments = vec!["decode", "--method", "engine_getBlobsV4"];
        arguments.extend(params.iter().flat_map(|params| ["--params", params.as_str()]));
        run(program(&arguments), &cells(slots))
    };
    let places = |output: Output| {
        assert!(output.status.success(), "{}", stderr(&output));
        let blobs: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        ["blob_cells", "proofs"].map(|list| {
            let texts = blobs[0][list].as_array().unwrap().iter();
            texts.map(|text| text.as_str().unwrap()[2..4].to_owned()).collect::<Vec<_>>()
        })
    };
    // Columns 0, 9 and 127.
    let columns = "0x01020000000000000000000000000080";
    assert_eq!(places(decode(128, Some(columns))), [["00", "09", "7f"]; 2]);
    assert_eq!(places(decode(3, Some(columns))), [["00", "01", "02"]; 2]);
    assert_eq!(places(decode(128, None))[0].len(), 128);
    let other = decode(4, Some(columns));
    assert_eq!(other.status.code(), Some(2));
    assert!(stderr(&other).contains("4 cells where 3 were asked"), "{}", stderr(&other));
    assert_eq!(decode(128, Some("0x01")).status.code(), Some(64));
}
