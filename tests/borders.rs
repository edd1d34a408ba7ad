//! Each room imports only what the table of rooms says it may know.

use std::{fs, path::Path};

/// A room, and what its files must not name.
const BORDERS: [(&str, &[&str]); 9] = [
    (
        "src/engine",
        &["tokio", "hyper", "hyper_util", "axum", "crate::cl", "crate::el", "crate::mock_el"],
    ),
    (
        "src/wire",
        &[
            "tokio",
            "hyper",
            "hyper_util",
            "axum",
            "http::",
            "crate::cl",
            "crate::el",
            "crate::engine",
            "crate::jsonrpc",
            "crate::mock_el",
        ],
    ),
    (
        "src/jsonrpc",
        &[
            "hyper",
            "axum",
            "http::",
            "tokio",
            "crate::engine",
            "crate::wire",
            "crate::el",
            "crate::cl",
        ],
    ),
    ("src/cl", &["crate::engine", "crate::wire", "crate::el", "crate::mock_el", "crate::proxy"]),
    (
        "src/el",
        &["crate::engine", "crate::wire", "crate::cl", "crate::mock_el", "crate::proxy", "ssz"],
    ),
    ("src/mock_el", &["crate::engine", "crate::wire", "crate::el", "crate::proxy"]),
    ("src/telemetry", &["crate::engine", "crate::wire", "crate::el", "crate::cl", "crate::proxy"]),
    ("src/proxy", &["tokio", "hyper", "axum", "std::net", "crate::wire", "ssz", "crate::mock_el"]),
    (
        "src/proxy.rs",
        &["tokio", "hyper", "axum", "std::net", "crate::wire", "ssz", "crate::mock_el"],
    ),
];

#[test]
fn no_room_imports_what_it_must_not_know() {
    let mut crossings = Vec::new();
    let mut read = 0;
    for (room, forbidden) in BORDERS {
        for file in rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(room)) {
            read += 1;
            let source = fs::read_to_string(&file).unwrap();
            for path in used_paths(&source) {
                let path = absolute(&path, &file);
                for name in forbidden {
                    if names(&path, name) {
                        crossings.push(format!("{}: `{path}` names {name}", file.display()));
                    }
                }
            }
        }
    }
    assert!(read > 20, "only {read} files were read");
    assert!(crossings.is_empty(), "{}", crossings.join("\n"));
}

#[test]
fn the_reader_of_use_lines_sees_groups_renames_and_inline_paths() {
    let source = "
        use crate::{engine::{self, Call}, jsonrpc};
        use tokio::sync as t;
        pub(crate) use super::x;
        fn f() { let a = crate::el::El::new(); let b = axum::Router::<S>::new(); }
        // use hyper::Comment;
    ";
    let paths = used_paths(source);
    for wanted in [
        "crate::engine::self",
        "crate::engine::Call",
        "crate::jsonrpc",
        "tokio::sync as t",
        "crate::el::El::new",
        "axum::Router",
    ] {
        assert!(paths.iter().any(|path| path == wanted), "{wanted} not in {paths:?}");
    }
    assert!(!paths.iter().any(|path| path.contains("hyper")), "{paths:?}");
    assert!(names("crate::el::El::new", "crate::el"));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine/bodies/merge.rs");
    assert_eq!(absolute("super::super::super::el::El", &file), "crate::el::El");
    assert_eq!(absolute("super::x", &file.with_file_name("mod.rs")), "crate::engine::x");
    assert_eq!(absolute("tokio::sync", &file), "tokio::sync");
    assert!(names("hyper_util::rt", "hyper_util"));
    assert!(!names("hyper_util::rt", "hyper"));
    assert!(!names("crate::else_where", "crate::el"));
}

/// Whether a path begins with that name, segment by segment.
fn names(path: &str, forbidden: &str) -> bool {
    let forbidden = forbidden.trim_end_matches("::");
    path.strip_prefix(forbidden)
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// A path with its leading `super`s replaced by what they stand for in that file.
fn absolute(path: &str, file: &Path) -> String {
    let source = file.strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap();
    let mut module: Vec<_> =
        source.with_extension("").iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    if module.last().is_some_and(|name| name == "mod") {
        module.pop();
    }
    let mut rest = path;
    let mut is_relative = false;
    while let Some(after) = rest.strip_prefix("super::") {
        is_relative = true;
        module.pop();
        rest = after;
    }
    match is_relative {
        true => [&["crate".to_owned()], &module[..], &[rest.to_owned()]].concat().join("::"),
        false => path.to_owned(),
    }
}

/// Every path of the `use` declarations, groups written out, and every inline path.
fn used_paths(source: &str) -> Vec<String> {
    let code: String = source
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n");
    let mut paths = Vec::new();
    for (at, _) in code.match_indices("use ") {
        let before = code[..at].trim_end_matches(' ').chars().next_back();
        if !matches!(before, None | Some('\n' | ')' | 'b' | '}' | '{' | ';')) {
            continue;
        }
        let rest = &code[at + "use ".len()..];
        if let Some(end) = rest.find(';') {
            expand("", &rest[..end], &mut paths);
        }
    }
    // Inline paths: a word before a `::` that nothing stands before.
    for (at, _) in code.match_indices("::") {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let first = code[..at].trim_end_matches(is_word);
        if first.len() == at || first.ends_with(':') {
            continue;
        }
        let path: String =
            code[first.len()..].chars().take_while(|c| is_word(*c) || *c == ':').collect();
        paths.push(path.trim_end_matches(':').to_owned());
    }
    paths
}

/// Writes `a::{b, c::{d, e}}` out as `a::b`, `a::c::d`, `a::c::e`.
fn expand(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let tree = tree.trim();
    match tree.find('{') {
        None => paths.push(format!("{prefix}{tree}")),
        Some(open) => {
            let prefix = format!("{prefix}{}", &tree[..open]);
            let inner = tree[open + 1..].trim_end().trim_end_matches('}');
            // Give back the braces that belong to inner groups.
            let depth = inner.matches('{').count() as i64 - inner.matches('}').count() as i64;
            let inner = format!("{inner}{}", "}".repeat(depth.max(0) as usize));
            let mut level = 0;
            let mut item = String::new();
            for c in inner.chars().chain([',']) {
                match c {
                    '{' => level += 1,
                    '}' => level -= 1,
                    ',' if level == 0 => {
                        if !item.trim().is_empty() {
                            expand(&prefix, &item, paths);
                        }
                        item.clear();
                        continue;
                    }
                    _ => {}
                }
                item.push(c);
            }
        }
    }
}

fn rust_files(path: &Path) -> Vec<std::path::PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).unwrap() {
        files.extend(rust_files(&entry.unwrap().path()));
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    files
}
