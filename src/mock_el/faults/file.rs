//! A script as a TOML file; `config/mock-el-faults.toml` shows every word of it.

use std::{fmt::Display, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, de::Error as _};
use thiserror::Error;

use super::{
    super::{
        fork::Fork,
        rest::Limits,
        surface::{Http, Surface},
    },
    Accepted, At, ConnectionRule, Damage, Dialect, Encoding, Fault, Faults, HttpVersion,
    JsonDamage, LastStream, Media, Memory, Operation, Pause, Probability, Refusal, ResetReason,
    Restart, Rule, Target, Times, When,
};

/// Why a text is no script.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FaultsError {
    /// It is not TOML of the script's form; what and where.
    #[error("line {line}: {message}")]
    Form {
        /// The line, from 1.
        line: usize,
        /// What is wrong, in one line.
        message: String,
    },
}

impl FromStr for Faults {
    type Err = FaultsError;

    fn from_str(text: &str) -> Result<Self, FaultsError> {
        let script: Script = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let before = text.get(..at).unwrap_or_default();
            let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
            FaultsError::Form { line: before.matches('\n').count() + 1, message }
        })?;
        Ok(Self {
            seed: script.seed,
            rules: script.rule.into_iter().map(Into::into).collect(),
            connections: script.connection.into_iter().map(Into::into).collect(),
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    rule: Vec<RuleForm>,
    #[serde(default)]
    connection: Vec<ConnectionForm>,
}

#[derive(Deserialize)]
#[serde(try_from = "RuleWords")]
struct RuleForm(Rule);

/// A rule as it is written; one that names both an operation and a method is none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleWords {
    operation: Option<Operation>,
    method: Option<String>,
    dialect: Option<Dialect>,
    http: Option<HttpVersion>,
    #[serde(default)]
    nth: Nth,
    #[serde(default)]
    probability: Share,
    times: Option<u64>,
    fault: FaultWords,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConnectionForm {
    #[serde(default)]
    nth: Nth,
    #[serde(default)]
    probability: Share,
    times: Option<u64>,
    fault: AcceptedWords,
}

/// The first match that may be struck, from 1; held as how many pass before.
#[derive(Default, Deserialize)]
#[serde(try_from = "u64")]
struct Nth(u64);

#[derive(Deserialize)]
#[serde(try_from = "f64")]
struct Share(Probability);

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum FaultWords {
    #[serde(rename_all = "kebab-case")]
    Delay {
        when: When,
        pause_ms: u64,
    },
    Silence {
        when: When,
    },
    #[serde(rename_all = "kebab-case")]
    Stall {
        after: usize,
        pause_ms: Option<u64>,
    },
    Cut {
        at: Place,
    },
    Reset {
        at: Place,
    },
    ResetStream {
        at: Place,
        reason: ResetReason,
    },
    Goaway {
        last: LastStream,
    },
    TooLargeEarly,
    Refuse {
        when: When,
        refusal: Refusal,
    },
    Media(Media),
    Encoding(Encoding),
    NoContent,
    EmptyBody,
    Huge {
        bytes: u64,
    },
    Ssz(Damage),
    Json(JsonDamage),
    Restart(RestartWords),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RestartWords {
    when: When,
    #[serde(default)]
    memory: Memory,
    #[serde(default, deserialize_with = "word")]
    surface: Option<Surface>,
    #[serde(default, deserialize_with = "word")]
    http: Option<Http>,
    newest_fork: Option<Fork>,
    limits: Option<Limits>,
    #[serde(default)]
    down_ms: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum AcceptedWords {
    Closed,
    Reset,
    Mute,
    SettingsOnly,
    TinyWindow(u32),
    MaxStreamsOne,
}

/// `"before"`, `"after"`, or bytes of the body.
struct Place(At);

impl TryFrom<RuleWords> for RuleForm {
    type Error = &'static str;

    fn try_from(words: RuleWords) -> Result<Self, Self::Error> {
        let target = match (words.operation, words.method) {
            (Some(_), Some(_)) => return Err("a rule has an operation or a method, not both"),
            (Some(operation), None) => Target::Operation(operation),
            (None, Some(method)) => Target::Method(method),
            (None, None) => Target::Any,
        };
        Ok(Self(Rule {
            target,
            dialect: words.dialect,
            http: words.http,
            skip: words.nth.0,
            probability: words.probability.0,
            times: words.times.map_or(Times::Always, Times::Count),
            fault: words.fault.into(),
        }))
    }
}

impl From<RuleForm> for Rule {
    fn from(RuleForm(rule): RuleForm) -> Self {
        rule
    }
}

impl From<ConnectionForm> for ConnectionRule {
    fn from(form: ConnectionForm) -> Self {
        Self {
            skip: form.nth.0,
            probability: form.probability.0,
            times: form.times.map_or(Times::Always, Times::Count),
            fault: match form.fault {
                AcceptedWords::Closed => Accepted::Closed,
                AcceptedWords::Reset => Accepted::Reset,
                AcceptedWords::Mute => Accepted::Mute,
                AcceptedWords::SettingsOnly => Accepted::SettingsOnly,
                AcceptedWords::TinyWindow(bytes) => Accepted::TinyWindow(bytes),
                AcceptedWords::MaxStreamsOne => Accepted::MaxStreamsOne,
            },
        }
    }
}

impl From<FaultWords> for Fault {
    fn from(words: FaultWords) -> Self {
        match words {
            FaultWords::Delay { when, pause_ms } => {
                Self::Delay { when, pause: Duration::from_millis(pause_ms) }
            }
            FaultWords::Silence { when } => Self::Silence { when },
            FaultWords::Stall { after, pause_ms } => {
                let pause = |ms| Pause::For(Duration::from_millis(ms));
                Self::Stall { after, pause: pause_ms.map_or(Pause::Endless, pause) }
            }
            FaultWords::Cut { at } => Self::Cut { at: at.0 },
            FaultWords::Reset { at } => Self::Reset { at: at.0 },
            FaultWords::ResetStream { at, reason } => Self::ResetStream { at: at.0, reason },
            FaultWords::Goaway { last } => Self::GoAway { last },
            FaultWords::TooLargeEarly => Self::TooLargeEarly,
            FaultWords::Refuse { when, refusal } => Self::Refuse { when, refusal },
            FaultWords::Media(media) => Self::Media(media),
            FaultWords::Encoding(encoding) => Self::Encoding(encoding),
            FaultWords::NoContent => Self::NoContent,
            FaultWords::EmptyBody => Self::EmptyBody,
            FaultWords::Huge { bytes } => Self::Huge { bytes },
            FaultWords::Ssz(damage) => Self::Ssz(damage),
            FaultWords::Json(damage) => Self::Json(damage),
            FaultWords::Restart(words) => Self::Restart {
                when: words.when,
                restart: Restart {
                    memory: words.memory,
                    surface: words.surface,
                    http: words.http,
                    newest_fork: words.newest_fork,
                    limits: words.limits,
                    down: Duration::from_millis(words.down_ms),
                },
            },
        }
    }
}

impl TryFrom<u64> for Nth {
    type Error = &'static str;

    fn try_from(nth: u64) -> Result<Self, Self::Error> {
        nth.checked_sub(1).map(Self).ok_or("nth counts from 1")
    }
}

impl TryFrom<f64> for Share {
    type Error = super::OutOfRange;

    fn try_from(share: f64) -> Result<Self, Self::Error> {
        Probability::new(share).map(Self)
    }
}

impl Default for Share {
    fn default() -> Self {
        Self(Probability::ONE)
    }
}

impl<'de> Deserialize<'de> for Place {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Words {
            Word(String),
            Bytes(usize),
        }
        const EXPECTED: &str = "`at` is \"before\", \"after\" or bytes of the body";
        match Words::deserialize(deserializer).map_err(|_| D::Error::custom(EXPECTED))? {
            Words::Word(word) if word == "before" => Ok(Self(At::Before)),
            Words::Word(word) if word == "after" => Ok(Self(At::After)),
            Words::Word(_) => Err(D::Error::custom(EXPECTED)),
            Words::Bytes(bytes) => Ok(Self(At::InBody(bytes))),
        }
    }
}

/// A choice by its word.
fn word<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    String::deserialize(deserializer)?.parse().map(Some).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_the_example_is_understood() {
        let text = include_str!("../../../config/mock-el-faults.toml");
        let script: Faults = text.parse().unwrap();
        assert_eq!(script.seed, 1);
        assert_eq!((script.rules.len(), script.connections.len()), (1, 0));
        // What is commented out is true too.
        let spoken: String = text
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(code) if !code.starts_with(' ') && !code.is_empty() => code,
                Some(_) => "",
                None => line,
            })
            .flat_map(|line| [line, "\n"])
            .collect();
        let script: Faults = spoken.parse().unwrap();
        let kinds: std::collections::BTreeSet<_> =
            script.rules.iter().map(|rule| rule.fault.kind()).collect();
        assert_eq!(kinds.len(), 17, "{kinds:?}");
        assert_eq!(script.connections.len(), 6);
    }

    #[test]
    fn a_rule_reads_as_it_is_written() {
        let script: Faults = r#"
            seed = 9
            [[rule]]
            operation = "newPayload"
            dialect = "rest"
            http = "h2"
            nth = 3
            probability = 0.25
            times = 2
            fault.cut.at = 100
            [[connection]]
            nth = 2
            fault.tiny-window = 1
        "#
        .parse()
        .unwrap();
        let rule = Rule::on(Operation::NewPayload, Fault::Cut { at: At::InBody(100) })
            .over(Dialect::Rest)
            .by(HttpVersion::Http2)
            .after(2)
            .with_probability(Probability::new(0.25).unwrap())
            .times(2);
        let connection = ConnectionRule::new(Accepted::TinyWindow(1)).after(1);
        assert_eq!(script, Faults::new(9).with(rule).with_connection(connection));
    }

    #[test]
    fn what_is_wrong_is_told_in_one_line_with_its_place() {
        for (text, wanted) in [
            ("seed = 1\n[[rules]]", "line 2: unknown field `rules`"),
            ("[[rule]]\nnth = 1", "line 1: missing field `fault`"),
            ("[[rule]]\nfault = \"explode\"", "line 2: unknown variant `explode`"),
            ("[[rule]]\nfault.cut.at = \"later\"", "line 2: `at` is \"before\", \"after\" or"),
            ("[[rule]]\nnth = 0\nfault = \"no-content\"", "line 2: nth counts from 1"),
            ("[[rule]]\nprobability = 2.0\nfault = \"no-content\"", "a probability is from 0 to 1"),
            ("[[rule]]\nfault.restart = { when = \"after\", http = \"h3\" }", "`h3` is none of"),
            (
                "[[rule]]\noperation = \"getBlobs\"\nmethod = \"x\"\nfault = \"no-content\"",
                "an operation or a method, not both",
            ),
            ("seed = ", "line 1: "),
        ] {
            let error = text.parse::<Faults>().unwrap_err().to_string();
            assert!(error.contains(wanted), "{text:?}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
