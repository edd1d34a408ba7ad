//! Tokens as they come in: what they claim and when they are refused.

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;

/// How far a token's `iat` may lie from the clock, either way, in seconds (`authentication.md`,
/// "JWT Claims").
pub const WINDOW: u64 = 60;

/// Why a token is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refused {
    /// Not three base64url parts with JSON in them.
    #[error("malformed token")]
    Malformed,
    /// Signed with something other than HS256, or not at all.
    #[error("token algorithm is not HS256")]
    Algorithm,
    /// Not signed with our secret.
    #[error("invalid token signature")]
    Signature,
    /// The required `iat` is missing.
    #[error("token has no iat claim")]
    NoIssuedAt,
    /// `iat` is no finite number.
    #[error("token iat claim is not a number")]
    IssuedAtNotANumber,
    /// `iat` is more than [`WINDOW`] seconds from the clock.
    #[error("token iat claim is not within {WINDOW} seconds of the clock (off by {ahead:+} s)")]
    Stale {
        /// Seconds the token is ahead of our clock; negative when behind.
        ahead: f64,
    },
}

/// What a good token says.
#[derive(Clone, Debug, PartialEq)]
pub struct Claims {
    /// When it was made, in seconds since the Unix epoch. A NumericDate may have a fraction.
    pub iat: f64,
    /// The `clv` claim cut down to printable ASCII, when there is any left.
    pub client_version: Option<String>,
}

/// Checks `token` against `key` at `now`, in seconds since the Unix epoch.
pub(super) fn verify(token: &str, key: &DecodingKey, now: u64) -> Result<Claims, Refused> {
    let malformed = |_| Refused::Malformed;
    let header = jsonwebtoken::decode_header(token).map_err(|error| match error.kind() {
        ErrorKind::InvalidAlgorithm | ErrorKind::InvalidAlgorithmName => Refused::Algorithm,
        _ => Refused::Malformed,
    })?;
    if header.alg != Algorithm::HS256 {
        return Err(Refused::Algorithm);
    }
    let (message, signature) = token.rsplit_once('.').ok_or(Refused::Malformed)?;
    let is_ours =
        jsonwebtoken::crypto::verify(signature, message.as_bytes(), key, Algorithm::HS256)
            .map_err(malformed)?;
    if !is_ours {
        return Err(Refused::Signature);
    }
    // `jsonwebtoken::decode` would also read claims that are ignored here, and refuses a token
    // over their form whatever its rules are.
    let claims = jsonwebtoken::dangerous::insecure_decode::<Claimed>(token).map_err(malformed)?;
    let claims = claims.claims;
    let iat = match claims.iat {
        None => return Err(Refused::NoIssuedAt),
        Some(value) => value.as_f64().filter(|iat| iat.is_finite()),
    };
    let iat = iat.ok_or(Refused::IssuedAtNotANumber)?;
    let ahead = iat - now as f64;
    if ahead.abs() > WINDOW as f64 {
        return Err(Refused::Stale { ahead });
    }
    Ok(Claims { iat, client_version: client_version(claims.clv) })
}

/// Reads the `clv` claim of a token nobody has checked. Good for no more than a label: the EL
/// that gets the token is the judge of it.
pub fn unverified_client_version(token: &str) -> Option<String> {
    let claims = jsonwebtoken::dangerous::insecure_decode::<Claimed>(token).ok()?.claims;
    client_version(claims.clv)
}

/// Reads when a token nobody has checked claims to have been made, in seconds since the Unix epoch:
/// any finite number. Good for no more than a guess at how long the EL will take it.
pub fn unverified_issued_at(token: &str) -> Option<f64> {
    let claims = jsonwebtoken::dangerous::insecure_decode::<Claimed>(token).ok()?.claims;
    claims.iat?.as_f64().filter(|iat| iat.is_finite())
}

/// Claims as they come: any of them may be anything.
#[derive(Deserialize)]
#[serde(remote = "Self")]
struct Claimed {
    iat: Option<Value>,
    clv: Option<Value>,
}

impl<'de> Deserialize<'de> for Claimed {
    /// Of an object only (RFC 7519, section 7.2): what is derived also takes an array.
    fn deserialize<D: Deserializer<'de>>(claims: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Claimed;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of claims")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Claimed, A::Error> {
                Claimed::deserialize(MapAccessDeserializer::new(map))
            }
        }

        claims.deserialize_map(Object)
    }
}

/// Header values are sent as text, so nothing but printable ASCII may get into one.
fn client_version(clv: Option<Value>) -> Option<String> {
    const MAX_LENGTH: usize = 256;
    let Some(Value::String(text)) = clv else { return None };
    let printable = |&c: &char| c == ' ' || c.is_ascii_graphic();
    let text: String = text.chars().filter(printable).take(MAX_LENGTH).collect();
    let text = text.trim();
    if text.is_empty() { None } else { Some(text.to_owned()) }
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::{EncodingKey, Header};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::jwt::Secret;

    const KEY: [u8; 32] = *b"an engine api secret of 32 bytes";
    const NOW: u64 = 1_700_000_000;

    fn signed(header: &Header, claims: &Value, key: &[u8]) -> String {
        jsonwebtoken::encode(header, claims, &EncodingKey::from_secret(key)).unwrap()
    }

    fn verified(claims: &Value) -> Result<Claims, Refused> {
        let token = signed(&Header::new(Algorithm::HS256), claims, &KEY);
        Secret::new(KEY).verify(&token, NOW)
    }

    /// A good signature under claims that are no JSON value of serde's making.
    fn verified_text(claims: &str) -> Result<Claims, Refused> {
        let message =
            format!("{}.{}", base64url(br#"{"alg":"HS256"}"#), base64url(claims.as_bytes()));
        let key = EncodingKey::from_secret(&KEY);
        let signature =
            jsonwebtoken::crypto::sign(message.as_bytes(), &key, Algorithm::HS256).unwrap();
        Secret::new(KEY).verify(&format!("{message}.{signature}"), NOW)
    }

    fn base64url(bytes: &[u8]) -> String {
        const DIGITS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let group = |chunk: &[u8]| {
            let bits = chunk.iter().fold(0u32, |bits, &byte| bits << 8 | u32::from(byte));
            let bits = bits << (8 * (3 - chunk.len()));
            (0..=chunk.len())
                .map(|n| DIGITS[(bits >> (18 - 6 * n) & 63) as usize] as char)
                .collect::<String>()
        };
        bytes.chunks(3).map(group).collect()
    }

    #[test]
    fn auth_01_a_token_without_a_numeric_iat_is_refused() {
        assert_eq!(verified(&json!({})), Err(Refused::NoIssuedAt));
        assert_eq!(verified(&json!({ "iat": null })), Err(Refused::NoIssuedAt));
        for iat in [json!("now"), json!(NOW.to_string()), json!(true), json!([NOW]), json!({})] {
            assert_eq!(verified(&json!({ "iat": iat })), Err(Refused::IssuedAtNotANumber), "{iat}");
        }
        for claims in [r#"{"iat":1e400}"#, r#"{"iat":NaN}"#, r#"{"iat":Infinity}"#, "[]", "1", ""] {
            assert!(verified_text(claims).is_err(), "{claims}");
        }
        let array = format!("[{NOW},null]");
        assert_eq!(verified_text(&array), Err(Refused::Malformed));
        let twice = format!(r#"{{"iat":{NOW},"iat":{NOW}}}"#);
        assert_eq!(verified_text(&twice), Err(Refused::Malformed));
    }

    #[test]
    fn auth_01_a_fractional_iat_is_a_numeric_date() {
        assert_eq!(verified(&json!({ "iat": 1_700_000_000.5 })).unwrap().iat, 1_700_000_000.5);
        assert!(verified_text(r#"{"iat":1.7e9}"#).is_ok());
        assert!(verified(&json!({ "iat": 1_700_000_060.5 })).is_err());
    }

    #[test]
    fn auth_02_the_window_is_sixty_seconds_either_way() {
        for good in [NOW - 60, NOW - 59, NOW, NOW + 59, NOW + 60] {
            assert!(verified(&json!({ "iat": good })).is_ok(), "{good}");
        }
        for (bad, ahead) in [(NOW - 61, -61.0), (NOW + 61, 61.0), (0, -(NOW as f64))] {
            assert_eq!(verified(&json!({ "iat": bad })), Err(Refused::Stale { ahead }), "{bad}");
        }
        for bad in [json!(-1), json!(u64::MAX), json!(f64::MAX)] {
            assert!(
                matches!(verified(&json!({ "iat": bad })), Err(Refused::Stale { .. })),
                "{bad}"
            );
        }
    }

    #[test]
    fn auth_03_only_hs256_with_the_right_secret_is_good() {
        let claims = json!({ "iat": NOW });
        let hs256 = Header::new(Algorithm::HS256);
        let verify = |token: &str| Secret::new(KEY).verify(token, NOW);
        assert!(verify(&signed(&hs256, &claims, &KEY)).is_ok());
        for key in [&KEY[..31], &[&[0], &KEY[..]].concat(), &[0; 32]] {
            assert_eq!(verify(&signed(&hs256, &claims, key)), Err(Refused::Signature));
        }
        for other in [Algorithm::HS384, Algorithm::HS512] {
            let token = signed(&Header::new(other), &claims, &KEY);
            assert_eq!(verify(&token), Err(Refused::Algorithm));
        }
        let (_, tail) = signed(&hs256, &claims, &KEY)
            .split_once('.')
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .unwrap();
        let (payload, signature) = tail.split_once('.').unwrap();
        for header in [r#"{"alg":"none"}"#, r#"{"alg":"RS256"}"#, r#"{"alg":"hs256"}"#, "{}", "[]"]
        {
            for signature in ["", signature] {
                let token = format!("{}.{payload}.{signature}", base64url(header.as_bytes()));
                assert!(verify(&token).is_err(), "{header}");
            }
        }
    }

    #[test]
    fn auth_03_a_token_with_one_bit_changed_is_refused() {
        let token = Secret::new(KEY).mint(NOW);
        for at in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(Secret::new(KEY).verify(&changed, NOW).is_err(), "{changed}");
        }
    }

    #[test]
    fn auth_07_unknown_claims_and_a_past_exp_are_ignored() {
        let claims = json!({
            "iat": NOW, "id": "cl-1", "clv": "LH/v6.2.1", "exp": NOW - 1, "nbf": NOW + 9,
            "aud": "someone", "iss": [1], "sub": null, "foo": [1],
        });
        assert_eq!(verified(&claims).unwrap().client_version.as_deref(), Some("LH/v6.2.1"));
        for odd in [
            r#""sub":[1,2]"#,
            r#""sub":{"a":1}"#,
            r#""exp":1e400"#,
            r#""exp":{},"nbf":[[]]"#,
            r#""aud":[["a"],{}],"iss":[1,{"b":2}]"#,
            r#""aud":1,"aud":2"#,
        ] {
            let claims = format!(r#"{{{odd},"iat":{NOW}}}"#);
            assert!(verified_text(&claims).is_ok(), "{claims}");
        }
        let unset = json!({ "iat": NOW, "id": null, "clv": null });
        assert_eq!(verified(&unset).unwrap().client_version, None);
    }

    #[test]
    fn auth_07_a_client_version_is_cut_down_to_what_a_header_takes() {
        for (clv, version) in [
            (json!("LH/v6\r\nX-Evil: 1\u{e9}\u{0}"), Some("LH/v6X-Evil: 1")),
            (json!("  Teku \t"), Some("Teku")),
            (json!("\r\n"), None),
            (json!(""), None),
            (json!(["LH"]), None),
            (json!("x".repeat(1000)), Some(&*"x".repeat(256))),
        ] {
            let claims = json!({ "iat": NOW, "clv": clv });
            assert_eq!(verified(&claims).unwrap().client_version.as_deref(), version, "{clv}");
            let token = signed(&Header::new(Algorithm::HS256), &claims, b"the EL's own");
            assert_eq!(unverified_client_version(&token).as_deref(), version, "{clv}");
        }
    }

    #[test]
    fn an_unchecked_token_tells_when_it_was_made_if_it_says_so() {
        let told = |claims: &Value| {
            unverified_issued_at(&signed(&Header::default(), claims, b"the EL's own"))
        };
        assert_eq!(told(&json!({ "iat": NOW, "clv": [] })), Some(NOW as f64));
        assert_eq!(told(&json!({ "iat": 1.5 })), Some(1.5));
        for silent in [json!({}), json!({ "iat": null }), json!({ "iat": NOW.to_string() })] {
            assert_eq!(told(&silent), None, "{silent}");
        }
        assert_eq!(unverified_issued_at("not.a.jwt"), None);
    }

    proptest! {
        #[test]
        fn no_text_is_a_token_and_none_panics(text in "\\PC{0,60}(\\.\\PC{0,60}){0,3}") {
            prop_assert!(Secret::new(KEY).verify(&text, NOW).is_err());
            let _ = (unverified_client_version(&text), unverified_issued_at(&text));
        }
    }
}
