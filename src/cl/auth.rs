//! Who calls, told from the head alone.

use std::sync::atomic::{AtomicBool, Ordering};

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::Instant;

use super::conversation::Age;
use super::{Auth, Caller, Clock, LINE_PAUSE};
use crate::jwt::{Claims, Refused, unverified_client_version, unverified_issued_at};
use crate::telemetry::Seldom;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const CLIENT_VERSION: HeaderName = HeaderName::from_static("x-engine-client-version");

const BEARER: &str = "Bearer ";

/// Lets callers in or not.
#[derive(Debug)]
pub(super) struct Gate {
    auth: Auth,
    clock: Clock,
    /// Whether the last caller was refused.
    refusing: AtomicBool,
    /// Two clocks that disagree refuse every call of a node: that is a line a minute, not one a
    /// call.
    lines: Seldom<Line>,
}

/// What the log is told of callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Line {
    Refused(&'static str),
    AdmittedAgain,
}

/// Why a caller is not let in.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum Denied {
    /// No `Authorization`, or one of another scheme.
    #[error("missing bearer token")]
    Missing,
    /// Two headers, or a list in one.
    #[error("more than one Authorization")]
    Several,
    /// What follows the scheme is no token.
    #[error("malformed Authorization")]
    Malformed,
    /// The token is not good.
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl Denied {
    /// The kind of reason, without figures that differ from call to call.
    const fn kind(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Several => "several",
            Self::Malformed => "malformed",
            Self::Refused(Refused::Malformed) => "token malformed",
            Self::Refused(Refused::Algorithm) => "algorithm",
            Self::Refused(Refused::Signature) => "signature",
            Self::Refused(Refused::NoIssuedAt) => "no iat",
            Self::Refused(Refused::IssuedAtNotANumber) => "iat not a number",
            Self::Refused(Refused::Stale { .. }) => "stale",
        }
    }
}

impl Gate {
    pub(super) fn new(auth: Auth, clock: Clock) -> Self {
        Self { auth, clock, refusing: AtomicBool::new(false), lines: Seldom::every(LINE_PAUSE) }
    }

    /// Tells who calls, or why they may not.
    pub(super) fn admit(&self, headers: &HeaderMap) -> Result<Caller, Denied> {
        let admitted = self.check(headers);
        let now = Instant::now().into_std();
        let refused_before = self.refusing.swap(admitted.is_err(), Ordering::Relaxed);
        match &admitted {
            Err(denied) => match self.lines.is_due(Line::Refused(denied.kind()), now) {
                Some(held_back) => {
                    tracing::warn!(reason = %denied, held_back, "CL refused");
                }
                None => tracing::debug!(reason = %denied, "CL refused"),
            },
            Ok(_) if refused_before && self.lines.is_due(Line::AdmittedAgain, now).is_some() => {
                tracing::info!("CL authenticated again");
            }
            Ok(_) => {}
        }
        admitted
    }

    /// How long the caller's token lets the calls of one WebSocket in at the EL. One that is checked
    /// here does so for good.
    pub(super) fn age(&self, caller: &Caller) -> Age {
        let Auth::Forward = self.auth else { return Age::NONE };
        let bearer = caller.bearer.as_ref().and_then(|bearer| bearer.to_str().ok());
        let token = bearer.and_then(|bearer| bearer.strip_prefix(BEARER));
        let issued_at = token.and_then(unverified_issued_at);
        issued_at.map_or(Age::NONE, |iat| Age::of(iat, (self.clock)()))
    }

    fn check(&self, headers: &HeaderMap) -> Result<Caller, Denied> {
        let token = bearer(headers)?;
        let claimed = match (&self.auth, token) {
            (Auth::Check(_), None) => return Err(Denied::Missing),
            (Auth::Check(secret), Some(token)) => {
                let Claims { client_version, .. } = secret.verify(token, (self.clock)())?;
                client_version
            }
            (Auth::Forward, token) => token.and_then(unverified_client_version),
        };
        let stated = short(headers.get(CLIENT_VERSION)).cloned();
        Ok(Caller {
            bearer: token.map(normalised).transpose()?,
            traceparent: short(headers.get(TRACEPARENT)).cloned(),
            client_version: stated
                .or_else(|| claimed.and_then(|version| HeaderValue::from_str(&version).ok())),
        })
    }
}

/// A header that goes on to the EL with every later request: legal text of a sane length, or one
/// caller could make the EL refuse them all.
fn short(value: Option<&HeaderValue>) -> Option<&HeaderValue> {
    const MAX_LENGTH: usize = 256;
    value.filter(|value| value.len() <= MAX_LENGTH && value.to_str().is_ok())
}

/// The one bearer token among the headers (RFC 9110, section 11.6.2: one header, one credential).
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Denied> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Denied::Several);
    }
    let value = value.to_str().map_err(|_| Denied::Malformed)?.trim_matches([' ', '\t']);
    if value.contains(',') {
        return Err(Denied::Several);
    }
    let (scheme, token) = value.split_once([' ', '\t']).unwrap_or((value, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Ok(None);
    }
    let token = token.trim_matches([' ', '\t']);
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    if token.is_empty() || !token.bytes().all(is_token) {
        return Err(Denied::Malformed);
    }
    Ok(Some(token))
}

fn normalised(token: &str) -> Result<HeaderValue, Denied> {
    let mut value =
        HeaderValue::from_str(&format!("{BEARER}{token}")).map_err(|_| Denied::Malformed)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jwt::Secret;

    const KEY: [u8; 32] = [7; 32];
    const NOW: u64 = 1_700_000_000;

    fn gate(auth: Auth) -> Gate {
        Gate::new(auth, || NOW)
    }

    fn checked(authorization: &[&str]) -> Result<Caller, Denied> {
        gate(Auth::Check(Secret::new(KEY))).admit(&headers(authorization))
    }

    fn forwarded(authorization: &[&str]) -> Result<Caller, Denied> {
        gate(Auth::Forward).admit(&headers(authorization))
    }

    fn headers(authorization: &[&str]) -> HeaderMap {
        authorization
            .iter()
            .map(|value| (AUTHORIZATION, HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    fn token() -> String {
        Secret::new(KEY).mint(NOW)
    }

    #[test]
    fn auth_06_scheme_case_and_spaces_do_not_matter_and_are_normalised() {
        let token = token();
        let normal = format!("Bearer {token}");
        for form in [
            normal.clone(),
            format!("bearer {token}"),
            format!("BEARER  {token}"),
            format!("bEaReR \t {token}  "),
        ] {
            for caller in [checked(&[&form]), forwarded(&[&form])] {
                let bearer = caller.unwrap().bearer.unwrap();
                assert_eq!(bearer, normal, "{form:?}");
                assert!(bearer.is_sensitive());
            }
        }
    }

    #[test]
    fn what_would_go_on_with_every_later_request_is_bounded() {
        let with = |length: usize| {
            let mut headers = headers(&[]);
            let value = HeaderValue::from_str(&"x".repeat(length)).unwrap();
            headers.insert(CLIENT_VERSION, value.clone());
            headers.insert(TRACEPARENT, value);
            let caller = gate(Auth::Forward).admit(&headers).unwrap();
            [caller.client_version, caller.traceparent].map(|value| value.is_some())
        };
        assert_eq!(with(256), [true; 2]);
        assert_eq!(with(257), [false; 2]);
    }

    #[test]
    fn auth_06_two_credentials_are_refused_in_either_mode() {
        let one = format!("Bearer {}", token());
        for two in [&[&*one, &*one][..], &[&format!("{one}, {one}")], &[&format!("{one},{one}")]] {
            assert_eq!(checked(two), Err(Denied::Several), "{two:?}");
            assert_eq!(forwarded(two), Err(Denied::Several), "{two:?}");
        }
    }

    #[test]
    fn auth_06_what_is_no_bearer_token_is_refused() {
        for odd in ["Bearer", "Bearer ", "bearer a b", "Bearer \u{7f}"] {
            let Ok(value) = HeaderValue::from_bytes(odd.as_bytes()) else { continue };
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value)]);
            for auth in [Auth::Check(Secret::new(KEY)), Auth::Forward] {
                assert_eq!(gate(auth).admit(&headers), Err(Denied::Malformed), "{odd:?}");
            }
        }
        let bytes = HeaderValue::from_bytes(b"Bearer \xff").unwrap();
        let headers = HeaderMap::from_iter([(AUTHORIZATION, bytes)]);
        assert_eq!(gate(Auth::Forward).admit(&headers), Err(Denied::Malformed));
    }

    #[test]
    fn without_a_secret_the_el_is_the_judge() {
        assert_eq!(forwarded(&[]).unwrap().bearer, None);
        assert_eq!(forwarded(&["Basic eDp5"]).unwrap().bearer, None);
        assert_eq!(forwarded(&["Bearer not.a.jwt"]).unwrap().bearer.unwrap(), "Bearer not.a.jwt");
    }

    #[test]
    fn with_a_secret_nobody_gets_in_without_a_good_token() {
        assert_eq!(checked(&[]), Err(Denied::Missing));
        assert_eq!(checked(&["Basic eDp5"]), Err(Denied::Missing));
        let other = format!("Bearer {}", Secret::new([8; 32]).mint(NOW));
        assert_eq!(checked(&[&other]), Err(Denied::Refused(Refused::Signature)));
        let old = format!("Bearer {}", Secret::new(KEY).mint(NOW - 61));
        assert_eq!(checked(&[&old]), Err(Denied::Refused(Refused::Stale { ahead: -61.0 })));
    }

    /// A token of the key with a `clv` claim.
    fn labelled() -> String {
        let claims = serde_json::json!({ "iat": NOW, "clv": "LH/v8\r\n" });
        let header = jsonwebtoken::Header::default();
        let key = jsonwebtoken::EncodingKey::from_secret(&KEY);
        format!("Bearer {}", jsonwebtoken::encode(&header, &claims, &key).unwrap())
    }

    #[test]
    fn auth_07_the_clv_claim_stands_in_for_a_missing_header() {
        for auth in [Auth::Check(Secret::new(KEY)), Auth::Forward] {
            let gate = gate(auth);
            let mut headers = headers(&[&labelled()]);
            assert_eq!(gate.admit(&headers).unwrap().client_version.unwrap(), "LH/v8");
            headers.insert(CLIENT_VERSION, HeaderValue::from_static("TK/1"));
            assert_eq!(gate.admit(&headers).unwrap().client_version.unwrap(), "TK/1");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_ages_where_the_el_gets_it_and_by_its_own_word() {
        let age = |auth, authorization: &str| {
            let gate = gate(auth);
            gate.age(&gate.admit(&headers(&[authorization])).unwrap())
        };
        let made = |iat| format!("bearer  {}", Secret::new(KEY).mint(iat));
        assert_eq!(age(Auth::Forward, &made(NOW - 7)), Age::of(NOW as f64 - 7.0, NOW));
        assert_eq!(age(Auth::Check(Secret::new(KEY)), &made(NOW - 7)), Age::NONE);
        assert_eq!(age(Auth::Forward, "Bearer not.a.jwt"), Age::NONE);
        assert_eq!(age(Auth::Forward, "Basic eDp5"), Age::NONE);
    }

    #[test]
    fn the_trace_of_the_caller_is_kept() {
        let mut headers = headers(&[]);
        headers.insert(TRACEPARENT, HeaderValue::from_static("00-ab-cd-01"));
        assert_eq!(
            gate(Auth::Forward).admit(&headers).unwrap().traceparent.unwrap(),
            "00-ab-cd-01"
        );
    }
}
