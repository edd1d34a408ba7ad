//! The choices of what an EL offers, as words for flags and files.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// Which dialects an EL serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Surface {
    /// REST-SSZ under `/engine/v1` and JSON-RPC everywhere else.
    #[default]
    RestAndJson,
    /// JSON-RPC alone, as an EL without REST-SSZ: every path under `/engine/` is an empty 404.
    JsonOnly,
    /// REST-SSZ alone: every other path is an empty 404.
    RestOnly,
}

/// Which versions of cleartext HTTP an EL speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Http {
    /// HTTP/1.1 alone; an HTTP/2 preface gets a 400 and the connection is closed.
    H1,
    /// HTTP/2 with prior knowledge alone.
    H2,
    /// Whichever the peer starts with.
    #[default]
    Both,
}

/// A word that names none of the choices.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{given}` is none of {known}")]
pub struct UnknownChoice {
    given: String,
    known: &'static str,
}

impl Surface {
    const fn word(self) -> &'static str {
        match self {
            Self::RestAndJson => "rest+json",
            Self::JsonOnly => "json",
            Self::RestOnly => "rest",
        }
    }
}

impl Http {
    const fn word(self) -> &'static str {
        match self {
            Self::H1 => "h1",
            Self::H2 => "h2",
            Self::Both => "both",
        }
    }
}

impl fmt::Display for Surface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl fmt::Display for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Surface {
    type Err = UnknownChoice;

    fn from_str(given: &str) -> Result<Self, Self::Err> {
        [Self::RestAndJson, Self::JsonOnly, Self::RestOnly]
            .into_iter()
            .find(|choice| choice.word() == given)
            .ok_or_else(|| UnknownChoice { given: given.into(), known: "rest+json, json, rest" })
    }
}

impl FromStr for Http {
    type Err = UnknownChoice;

    fn from_str(given: &str) -> Result<Self, Self::Err> {
        [Self::H1, Self::H2, Self::Both]
            .into_iter()
            .find(|choice| choice.word() == given)
            .ok_or_else(|| UnknownChoice { given: given.into(), known: "h1, h2, both" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_reads_back_from_its_word() {
        for word in ["rest+json", "json", "rest"] {
            assert_eq!(word.parse::<Surface>().unwrap().to_string(), word);
        }
        for word in ["h1", "h2", "both"] {
            assert_eq!(word.parse::<Http>().unwrap().to_string(), word);
        }
        let error = "h3".parse::<Http>().unwrap_err();
        assert_eq!(error.to_string(), "`h3` is none of h1, h2, both");
    }
}
