//! AUTH-01 to AUTH-08: who is let in, and what the EL is shown.

use crate::{
    log::Log,
    raw::Connection,
    scene::{Scene, by_json_rpc, forkchoice, golden, scripted, syncing},
    support::{
        Answer, mock_config, post_with,
        scripted_el::{ScriptedEl, Seen, answer, json as json_answer},
        settings,
    },
};
use engine_ssz_proxy::{
    config::Settings,
    el::Clock,
    jwt::Secret,
    mock_el::{Http, MockEl, Surface},
    serve::Sidecar,
};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use jsonwebtoken::{Algorithm, EncodingKey};
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::sync::Notify;

const KEY: [u8; 32] = *b"an engine api secret of 32 bytes";
/// The time of day in tests whose clock stands still.
const NOW: u64 = 1_700_000_000;
const ETH: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#;

fn secret() -> Secret {
    Secret::new(KEY)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A sidecar that checks tokens, by a clock that stands still.
async fn guarded(el: SocketAddr, clock: Clock) -> Sidecar {
    let mut settings = settings(el);
    settings.jwt_secret = Some(const_hex::encode(KEY).into());
    let mut config = settings.check().unwrap();
    config.cl.clock = || NOW;
    config.el.clock = clock;
    let sidecar = Sidecar::start(config).await.unwrap();
    sidecar.el_found().await;
    sidecar
}

async fn syncing_el() -> ScriptedEl {
    ScriptedEl::start(scripted(syncing, by_json_rpc)).await
}

/// A token of these header and claim texts, signed with HMAC whatever they say.
fn token(header: &str, claims: &str, algorithm: Algorithm, key: &[u8]) -> String {
    let message = format!("{}.{}", base64url(header.as_bytes()), base64url(claims.as_bytes()));
    let key = EncodingKey::from_secret(key);
    let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &key, algorithm).unwrap();
    format!("{message}.{signature}")
}

fn claiming(claims: &str) -> String {
    token(r#"{"alg":"HS256","typ":"JWT"}"#, claims, Algorithm::HS256, &KEY)
}

/// RFC 4648, section 5, without padding.
fn base64url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let group = |chunk: &[u8]| {
        let bits = chunk.iter().fold(0u32, |bits, &byte| bits << 8 | u32::from(byte));
        let bits = bits << (8 * (3 - chunk.len()));
        (0..=chunk.len())
            .map(|n| DIGITS[(bits >> (18 - 6 * n) & 63) as usize] as char)
            .collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

async fn post(sidecar: &Sidecar, token: &str, body: impl ToString) -> Answer {
    post_with(sidecar.address(), format!("Bearer {token}"), body.to_string()).await
}

/// The token is refused from the head alone: of the body nothing ever comes.
async fn assert_refused_at_the_head(sidecar: &Sidecar, authorization: &str) {
    let mut connection = Connection::to(sidecar.address()).await;
    let head =
        format!("POST / HTTP/1.1\r\nhost: x\r\n{authorization}content-length: 100000000\r\n\r\n");
    connection.write(head.as_bytes()).await;
    let (head, _) = connection.response().await;
    assert!(head.starts_with("HTTP/1.1 401 "), "{authorization}: {head}");
    assert!(head.contains("connection: close"), "{head}");
    connection.assert_closed().await;
}

#[tokio::test]
async fn auth_01_a_token_without_a_numeric_iat_is_refused_before_the_body_is_read() {
    let el = syncing_el().await;
    let sidecar = guarded(el.address, Clock::from_fn(|| NOW)).await;
    for claims in [
        "{}",
        r#"{"iat":"now"}"#,
        r#"{"iat":null}"#,
        r#"{"iat":true}"#,
        r#"{"iat":1e400}"#,
        r#"{"iat":"1700000000"}"#,
        r#"{"iat":[1700000000]}"#,
    ] {
        let header = format!("authorization: Bearer {}\r\n", claiming(claims));
        assert_refused_at_the_head(&sidecar, &header).await;
    }
    assert!(el.seen().is_empty());
    for claims in [r#"{"iat":1700000000.5}"#, r#"{"iat":1.7e9}"#, r#"{"iat":1700000000}"#] {
        let answer = post(&sidecar, &claiming(claims), ETH).await;
        assert_eq!(answer.status, StatusCode::OK, "{claims}");
    }
    assert_eq!(el.seen().len(), 3);
}

#[tokio::test]
async fn auth_02_the_window_is_a_minute_either_way_and_a_call_that_waited_gets_a_new_token() {
    let log = Log::of_this_thread();
    let el = syncing_el().await;
    let sidecar = guarded(el.address, Clock::from_fn(|| NOW)).await;
    for (iat, status) in [
        (NOW - 59, StatusCode::OK),
        (NOW + 59, StatusCode::OK),
        (NOW - 61, StatusCode::UNAUTHORIZED),
        (NOW + 61, StatusCode::UNAUTHORIZED),
    ] {
        assert_eq!(post(&sidecar, &secret().mint(iat), ETH).await.status, status, "{iat}");
    }
    assert_eq!(el.seen().len(), 2);
    // Clocks apart are told of once, with how far, and when it is over.
    for _ in 0..3 {
        post(&sidecar, &secret().mint(NOW + 61), ETH).await;
    }
    let warnings = log.lines("WARN");
    let [line] = &warnings[..] else { panic!("{warnings:?}") };
    assert!(line.contains("CL refused") && line.contains("61"), "{line}");
    post(&sidecar, &secret().mint(NOW), ETH).await;
    assert!(log.lines("INFO").iter().any(|line| line.contains("authenticated again")));

    let release = Arc::new(Notify::new());
    let gate = release.clone();
    let mut el = ScriptedEl::start(move |seen: Seen| {
        let gate = gate.clone();
        async move {
            if seen.path == "/engine/v1/payloads" {
                gate.notified().await;
            }
            syncing(&seen)
        }
    })
    .await;
    let time = Arc::new(AtomicU64::new(NOW));
    let clock = time.clone();
    let sidecar =
        Arc::new(guarded(el.address, Clock::from_fn(move || clock.load(Ordering::SeqCst))).await);
    let call = |body: Value| {
        let sidecar = sidecar.clone();
        // The oldest that is let in.
        tokio::spawn(async move { post(&sidecar, &secret().mint(NOW - 59), body).await })
    };
    let first = call(golden("12-osaka-newPayload"));
    let seen = el.arrival().await;
    assert_eq!(iat_of(&seen, NOW), NOW as f64);
    let second = call(forkchoice("V3", &[]));
    time.store(NOW + 100, Ordering::SeqCst);
    release.notify_one();
    assert_eq!(first.await.unwrap().status, StatusCode::OK);
    assert_eq!(second.await.unwrap().status, StatusCode::OK);
    let seen = el.arrival().await;
    assert_eq!(seen.path, "/engine/v1/forkchoice");
    assert_eq!(iat_of(&seen, NOW + 100), (NOW + 100) as f64, "minted when it was sent");
}

fn iat_of(seen: &Seen, now: u64) -> f64 {
    let bearer = seen.headers["authorization"].to_str().unwrap();
    secret().verify(bearer.strip_prefix("Bearer ").unwrap(), now).unwrap().iat
}

#[tokio::test]
async fn auth_03_only_hs256_with_the_whole_secret_gets_in() {
    let el = syncing_el().await;
    let sidecar = guarded(el.address, Clock::from_fn(|| NOW)).await;
    let claims = format!(r#"{{"iat":{NOW}}}"#);
    let hs256 = r#"{"alg":"HS256","typ":"JWT"}"#;
    let sign = |header, algorithm, key: &[u8]| token(header, &claims, algorithm, key);
    let good = sign(hs256, Algorithm::HS256, &KEY);
    let unsigned = |alg: &str| {
        let header = format!(r#"{{"alg":"{alg}"}}"#);
        format!("{}.{}.", base64url(header.as_bytes()), base64url(claims.as_bytes()))
    };
    let zero_first = [&[0][..], &KEY].concat();
    let mut tampered = good.clone();
    let last = if tampered.pop() == Some('A') { 'Q' } else { 'A' };
    tampered.push(last);
    for (what, token) in [
        ("none", unsigned("none")),
        ("None", unsigned("None")),
        ("HS256 without a signature", unsigned("HS256")),
        ("HS512", sign(r#"{"alg":"HS512"}"#, Algorithm::HS512, &KEY)),
        ("HS256 said to be HS384", sign(r#"{"alg":"HS384"}"#, Algorithm::HS256, &KEY)),
        ("31 bytes", sign(hs256, Algorithm::HS256, &KEY[..31])),
        ("a zero before it", sign(hs256, Algorithm::HS256, &zero_first)),
        ("the hex digits", sign(hs256, Algorithm::HS256, const_hex::encode(KEY).as_bytes())),
        ("RS256 with the secret as the key", sign(r#"{"alg":"RS256"}"#, Algorithm::HS256, &KEY)),
        ("no algorithm", sign("{}", Algorithm::HS256, &KEY)),
        ("one digit changed", tampered),
    ] {
        let answer = post(&sidecar, &token, ETH).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{what}");
    }
    assert!(el.seen().is_empty());
    assert_eq!(post(&sidecar, &good, ETH).await.status, StatusCode::OK);
}

#[tokio::test]
async fn auth_04_a_secret_file_is_32_bytes_in_any_usual_form_or_the_program_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jwt.hex");
    let digits = const_hex::encode(KEY);
    let el = syncing_el().await;
    for form in [
        digits.clone(),
        format!("0x{digits}"),
        format!("{digits}\n"),
        format!("{digits}\r\n"),
        format!(" {digits} "),
        format!("\t0x{digits}\n\n"),
        digits.to_ascii_uppercase(),
    ] {
        std::fs::write(&file, &form).unwrap();
        let from_file = Settings {
            jwt_secret: Some(file.display().to_string().into()),
            ..settings(el.address)
        };
        let sidecar = Sidecar::start(from_file.check().unwrap()).await.unwrap();
        sidecar.el_found().await;
        let answer = post(&sidecar, &secret().mint(now()), ETH).await;
        assert_eq!(answer.status, StatusCode::OK, "{form:?}");
    }
    let missing = folder.path().join("missing.hex");
    let start = |path: &std::path::Path| {
        let output = Command::new(env!("CARGO_BIN_EXE_engine-ssz-proxy"))
            .args(["http://127.0.0.1:1", "--listen-port", "0", "--jwt-secret"])
            .arg(path)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(64), "{said}");
        assert!(!said.contains(&digits[..16]), "{said}");
        said
    };
    for (content, why) in [
        (String::new(), "found 0"),
        (digits[1..].to_owned(), "found 63"),
        (format!("{digits}a"), "found 65"),
        (digits.repeat(2), "found 128"),
        (format!("\u{feff}{digits}"), "byte order mark"),
        (format!("{}zz", &digits[2..]), "no hex digit"),
        (format!("0x0x{digits}"), "found 66"),
        (digits.repeat(160_000), "larger"),
    ] {
        std::fs::write(&file, content).unwrap();
        let said = start(&file);
        assert!(said.contains(why), "{said:?} lacks {why:?}");
    }
    assert!(start(folder.path()).contains("jwt-secret"), "a folder");
    assert!(start(&missing).contains("missing.hex"));
    assert!(!missing.exists(), "no secret is made up");
}

#[tokio::test]
async fn auth_05_a_refused_token_is_no_reason_to_change_lanes() {
    let log = Log::of_this_thread();
    let told = |kind: &str| {
        let lines = log.lines("WARN").into_iter();
        lines.filter(|line| line.contains("refused the token") && line.contains(kind)).count()
    };
    // The EL's JSON-RPC says it with 200 and without the call's id.
    let refusal =
        r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Authentication error"},"id":null}"#;
    let scene = Scene::with(syncing, move |_: &Seen| json_answer(refusal), |_| {}).await;
    for _ in 0..3 {
        let said = scene.json(ETH).await;
        assert_eq!(said["id"], 1);
        assert_eq!(said["error"], json!({"code": -32700, "message": "Authentication error"}));
    }
    assert_eq!(told("HTTP 200 with a JSON-RPC error"), 1);
    scene.carried(golden("12-osaka-newPayload")).await;
    scene.carried(forkchoice("V3", &[])).await;

    for status in [401, 403] {
        for content_type in ["text/plain", "application/json", "application/problem+json"] {
            let rest = move |_: &Seen| answer(status, content_type, "{}");
            let scene = Scene::learned(rest).await;
            for _ in 0..2 {
                for call in [golden("12-osaka-newPayload"), forkchoice("V3", &[])] {
                    assert_eq!(scene.call(call).await.status.as_u16(), status);
                }
            }
            let (payloads, forkchoice) = ("/engine/v1/payloads", "/engine/v1/forkchoice");
            assert_eq!(scene.paths(), [payloads, forkchoice, payloads, forkchoice]);
        }
        // Once for each of the three sidecars.
        assert_eq!(told(&format!("HTTP {status}")), 3);
    }
    // Over JSON-RPC alike.
    let scene = Scene::with(syncing, |_: &Seen| answer(401, "text/plain", ""), |_| {}).await;
    for _ in 0..2 {
        assert_eq!(scene.call(ETH).await.status, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(told("HTTP 401"), 4);
}

#[tokio::test]
async fn auth_06_scheme_and_spaces_are_normalised_and_two_credentials_refused() {
    let el = syncing_el().await;
    let open = crate::support::sidecar(settings(el.address)).await;
    let checking = guarded(el.address, Clock::from_fn(|| NOW)).await;
    let bearer = secret().mint(NOW);
    for form in [
        format!("bearer {bearer}"),
        format!("BEARER  {bearer}"),
        format!("bEARER \t {bearer}  "),
        format!("Bearer {bearer}"),
    ] {
        for sidecar in [&open, &checking] {
            let answer = post_with(sidecar.address(), form.clone(), ETH).await;
            assert_eq!(answer.status, StatusCode::OK, "{form:?}");
            let seen = el.seen().pop().unwrap();
            // The same token in both modes: the clock stands still.
            assert_eq!(seen.headers["authorization"], format!("Bearer {bearer}"), "{form:?}");
            assert_eq!(seen.headers.get_all("authorization").iter().count(), 1);
        }
    }
    let before = el.seen().len();
    let other = secret().mint(NOW - 1);
    for headers in [
        format!("Authorization: Bearer {bearer}\r\nAuthorization: Bearer {other}\r\n"),
        format!("Authorization: Bearer {bearer}, Bearer {other}\r\n"),
        format!("Authorization: Bearer {bearer},Bearer {bearer}\r\n"),
    ] {
        for sidecar in [&open, &checking] {
            assert_refused_at_the_head(sidecar, &headers).await;
        }
    }
    assert_eq!(el.seen().len(), before);
}

#[tokio::test]
async fn auth_07_unknown_claims_are_ignored_and_clv_becomes_the_client_version_header() {
    let claims = |clv: &str| {
        json!({"iat": NOW, "id": "cl-1", "clv": clv, "exp": NOW - 1, "foo": [1]}).to_string()
    };
    for is_checked in ["checked", "forwarded"] {
        for (clv, stated, wanted) in [
            ("LH/v6.2.1", None, "LH/v6.2.1"),
            ("LH/v6\r\nX-Evil: 1\u{e9}\u{0}", None, "LH/v6X-Evil: 1"),
            ("LH/v6.2.1", Some("TK/v25"), "TK/v25"),
        ] {
            let el = syncing_el().await;
            let sidecar = match is_checked {
                "checked" => guarded(el.address, Clock::from_fn(|| NOW)).await,
                _ => crate::support::sidecar(settings(el.address)).await,
            };
            let mut request = Request::post(format!("http://{}/", sidecar.address()))
                .header("authorization", format!("Bearer {}", claiming(&claims(clv))));
            if let Some(stated) = stated {
                request = request.header("x-engine-client-version", stated);
            }
            let body = Full::new(bytes::Bytes::from(forkchoice("V3", &[]).to_string()));
            let client = Client::builder(TokioExecutor::new()).build_http();
            let response = client.request(request.body(body).unwrap()).await.unwrap();
            assert_eq!(response.status(), StatusCode::OK, "{is_checked}");
            response.into_body().collect().await.unwrap();
            let seen = el.seen().pop().unwrap();
            assert_eq!(seen.path, "/engine/v1/forkchoice");
            assert_eq!(seen.headers["x-engine-client-version"], wanted, "{is_checked}");
            assert!(!seen.headers.contains_key("x-evil"));
        }
    }
}

#[tokio::test]
async fn auth_08_no_body_is_waited_for_and_probes_bear_a_token_of_their_own() {
    let el = syncing_el().await;
    let sidecar = guarded(el.address, Clock::from_fn(|| NOW)).await;
    assert_refused_at_the_head(&sidecar, "").await;
    let expired = format!("authorization: Bearer {}\r\n", secret().mint(NOW - 3600));
    assert_refused_at_the_head(&sidecar, &expired).await;
    assert!(el.seen().is_empty());

    // With the secret the EL is found without any call.
    let mut config = mock_config(Surface::RestAndJson, Http::Both);
    config.jwt_secret = Some(const_hex::encode(KEY).parse().unwrap());
    let mock = MockEl::start(config.clone()).await.unwrap();
    let secret_hex = const_hex::encode(KEY);
    let _found = crate::support::sidecar_of_secret(settings(mock.addr()), &secret_hex).await;
    let probe = probes(&mock);
    assert!(!probe.is_empty());
    for bearer in probe {
        secret().verify(bearer.strip_prefix("Bearer ").unwrap(), now()).unwrap();
    }

    // Without it the first call lends its token, and nothing was asked before with none.
    let mock = MockEl::start(config).await.unwrap();
    let sidecar = Sidecar::start(settings(mock.addr()).check().unwrap()).await.unwrap();
    // A second that no clock here makes: the token is the CL's and no other.
    let bearer = secret().mint(now() - 7);
    assert_eq!(post(&sidecar, &bearer, ETH).await.status, StatusCode::OK);
    sidecar.el_found().await;
    let probe = probes(&mock);
    assert!(!probe.is_empty());
    assert!(probe.iter().all(|lent| *lent == format!("Bearer {bearer}")), "{probe:?}");
}

/// The tokens of the questions about capabilities.
fn probes(mock: &MockEl) -> Vec<String> {
    let probes = mock.log().into_iter().filter(|seen| seen.path.ends_with("/capabilities"));
    probes.map(|seen| seen.authorization.unwrap_or_default()).collect()
}
