//! Any bytes as a bearer token, or as the header and the claims of one with a good signature.
//!
//! The first byte tells which: even, the rest is a token; odd, it is the header and, behind a line
//! feed, the claims. The other opinion is an HMAC-SHA256 of our own (RFC 2104) and serde_json.

use engine_ssz_proxy::jwt::{Claims, Refused, Secret, WINDOW, unverified_client_version};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::json::{members, only};

const KEY: [u8; 32] = [7; 32];
const NOW: u64 = 1_700_000_000;

/// The target.
pub fn jwt(input: &[u8]) {
    let Some((kind, rest)) = input.split_first() else { return };
    if kind % 2 == 0 {
        let Ok(token) = std::str::from_utf8(rest) else { return };
        let _ = judge(token);
    } else {
        let mut parts = rest.splitn(2, |byte| *byte == b'\n');
        let header = parts.next().unwrap_or_default();
        judge_signed(header, parts.next().unwrap_or_default());
    }
}

/// Whatever is taken has our signature and an `iat` of now.
fn judge(token: &str) -> Result<Claims, Refused> {
    let verified = Secret::new(KEY).verify(token, NOW);
    let unverified = unverified_client_version(token);
    if let Some(version) = &unverified {
        assert_printable(version);
    }
    let Ok(claims) = &verified else { return verified };
    let parts: Vec<_> = token.split('.').collect();
    let [header, payload, signature] = parts[..] else { panic!("a token of {}", parts.len()) };
    let message = format!("{header}.{payload}");
    assert_eq!(decode(signature), hmac(message.as_bytes()), "a wrong signature is taken");
    let header = String::from_utf8(decode(header)).expect("a header in UTF-8");
    let header = members(&header).expect("a header that is an object");
    assert_eq!(only(&header, "alg"), Some("\"HS256\""));
    // What is ignored may be anything, UTF-8 or not.
    let payload = decode(payload);
    let payload = String::from_utf8_lossy(&payload);
    let claimed = members(&payload).expect("claims that are an object");
    let iat = only(&claimed, "iat").expect("one iat");
    assert_eq!(serde_json::from_str(iat).ok(), Some(claims.iat));
    assert!((claims.iat - NOW as f64).abs() <= WINDOW as f64);
    assert_eq!(claims.client_version, unverified);
    let has_version = only(&claimed, "clv").is_some_and(|clv| clv.starts_with('"'));
    assert!(claims.client_version.is_none() || has_version);
    verified
}

/// A token with our signature is taken if and only if its claims are good.
fn judge_signed(header: &[u8], claims: &[u8]) {
    let message = format!("{}.{}", encode(header), encode(claims));
    let token = format!("{message}.{}", encode(&hmac(message.as_bytes())));
    let verified = judge(&token);
    if !matches!(header, br#"{"alg":"HS256"}"# | br#"{"typ":"JWT","alg":"HS256"}"#) {
        return;
    }
    let Ok(claims) = std::str::from_utf8(claims) else { return };
    let Some(claimed) = members(claims) else {
        return assert_eq!(verified.err(), Some(Refused::Malformed));
    };
    // Parsers differ in which of two members counts.
    if claimed.iter().any(|(name, _)| only(&claimed, name).is_none()) {
        return;
    }
    let value = |name| only(&claimed, name).map_or(Ok(Value::Null), serde_json::from_str);
    match (value("iat"), value("clv")) {
        (Ok(Value::Null), Ok(_)) => assert_eq!(verified.err(), Some(Refused::NoIssuedAt)),
        (Ok(Value::Number(iat)), Ok(_)) => {
            let ahead = iat.as_f64().map(|iat| iat - NOW as f64);
            let is_now = ahead.is_some_and(|ahead| ahead.abs() <= WINDOW as f64);
            assert_eq!(verified.is_ok(), is_now, "{iat}");
        }
        (Ok(_), Ok(_)) => assert_eq!(verified.err(), Some(Refused::IssuedAtNotANumber)),
        // A number too great for a value, half a surrogate pair.
        _ => assert_eq!(verified.err(), Some(Refused::Malformed)),
    }
}

fn assert_printable(version: &str) {
    assert!(!version.is_empty() && version.len() <= 256);
    assert!(version.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()));
}

fn hmac(message: &[u8]) -> Vec<u8> {
    let pad = |byte: u8| -> Vec<u8> {
        KEY.iter().copied().chain([0; 32]).map(|key| key ^ byte).collect()
    };
    let inner = Sha256::digest([&pad(0x36), message].concat());
    Sha256::digest([&pad(0x5c)[..], &inner].concat()).to_vec()
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Base64url without padding (RFC 4648, section 5).
fn encode(bytes: &[u8]) -> String {
    let group = |chunk: &[u8]| {
        let bits = chunk.iter().fold(0_u32, |bits, &byte| bits << 8 | u32::from(byte));
        let bits = bits << (8 * (3 - chunk.len()));
        let digit = move |place: usize| DIGITS[(bits >> (18 - 6 * place) & 63) as usize] as char;
        (0..=chunk.len()).map(digit).collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

fn decode(text: &str) -> Vec<u8> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for byte in text.bytes() {
        let digit = DIGITS.iter().position(|digit| *digit == byte).expect("a base64url digit");
        bits = bits << 6 | digit as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    bytes
}
