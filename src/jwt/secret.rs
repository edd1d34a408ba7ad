//! The secret: where it comes from and the tokens it makes.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header};
use serde::Serialize;

use super::token::{self, Claims, Refused};

/// A secret file holds 64 digits; whatever is larger than this is another file.
const MAX_FILE_LENGTH: u64 = 4096;

/// The 256-bit secret a CL and an EL share. Never printed.
#[derive(Clone)]
pub struct Secret {
    encoding: EncodingKey,
    decoding: DecodingKey,
}

impl Secret {
    /// A secret of these bytes.
    pub fn new(key: [u8; 32]) -> Self {
        Self { encoding: EncodingKey::from_secret(&key), decoding: DecodingKey::from_secret(&key) }
    }

    /// Reads the file that holds the secret in hex, in the form [`FromStr`] takes.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is larger than 4 KiB, or holds no secret. No error shows any
    /// of the content, and no secret is ever made up in the place of a missing one.
    pub fn from_file(path: &Path) -> Result<Self, FileError> {
        let fail = |reason| FileError { path: path.to_owned(), reason };
        let mut content = Vec::new();
        std::fs::File::open(path)
            .and_then(|file| file.take(MAX_FILE_LENGTH + 1).read_to_end(&mut content))
            .map_err(|error| fail(FileErrorReason::Io(error)))?;
        if content.len() as u64 > MAX_FILE_LENGTH {
            return Err(fail(FileErrorReason::TooLarge));
        }
        Self::from_hex(&content).map_err(|error| fail(FileErrorReason::Secret(error)))
    }

    fn from_hex(text: &[u8]) -> Result<Self, SecretError> {
        if text.starts_with(b"\xef\xbb\xbf") {
            return Err(SecretError::ByteOrderMark);
        }
        let trimmed = text.trim_ascii();
        let digits =
            trimmed.strip_prefix(b"0x").or_else(|| trimmed.strip_prefix(b"0X")).unwrap_or(trimmed);
        if digits.len() != 64 {
            return Err(SecretError::Length(digits.len()));
        }
        let mut key = [0; 32];
        const_hex::decode_to_slice(digits, &mut key).map_err(|_| SecretError::NotHex)?;
        Ok(Self::new(key))
    }

    /// Makes a token: HS256, header `{"typ":"JWT","alg":"HS256"}`, claims `{"iat":…}`.
    ///
    /// `iat` is in seconds since the Unix epoch.
    pub fn mint(&self, iat: u64) -> String {
        // Signing cannot fail: the key is of the algorithm's family and both parts are plain JSON.
        // Were it to, an empty token is one the EL refuses.
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &Issued { iat }, &self.encoding)
            .unwrap_or_default()
    }

    /// Checks a token's signature and age.
    ///
    /// `now` is in seconds since the Unix epoch. `exp`, `nbf` and whatever else is claimed are
    /// ignored: `authentication.md` asks for `iat` alone and says unknown claims MUST be ignored.
    ///
    /// # Errors
    ///
    /// [`Refused`] says why; its text is fit to be shown to the caller.
    pub fn verify(&self, token: &str, now: u64) -> Result<Claims, Refused> {
        token::verify(token, &self.decoding, now)
    }
}

impl FromStr for Secret {
    type Err = SecretError;

    /// Reads 64 hex digits of any case, with or without one `0x`, white space around them.
    ///
    /// # Errors
    ///
    /// When it is anything else. The error tells the length, never the content.
    fn from_str(text: &str) -> Result<Self, SecretError> {
        Self::from_hex(text.as_bytes())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Why a text is no secret. Shows nothing of the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The number of digits is not 64.
    #[error("the JWT secret must be 64 hex digits (32 bytes), found {0} characters")]
    Length(usize),
    /// Of the right length, but not all hex digits.
    #[error("the JWT secret holds a character that is no hex digit")]
    NotHex,
    /// The text begins with a UTF-8 byte order mark.
    #[error("the JWT secret begins with a byte order mark; save it as plain ASCII")]
    ByteOrderMark,
}

/// Why a file gives no secret.
#[derive(Debug, thiserror::Error)]
#[error("JWT secret file {}: {reason}", path.display())]
pub struct FileError {
    /// The file asked for.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: FileErrorReason,
}

/// What is wrong with a secret file.
#[derive(Debug, thiserror::Error)]
pub enum FileErrorReason {
    /// It cannot be read.
    #[error("{0}")]
    Io(std::io::Error),
    /// It is larger than 4 KiB.
    #[error("larger than {MAX_FILE_LENGTH} bytes")]
    TooLarge,
    /// It holds no secret.
    #[error("{0}")]
    Secret(SecretError),
}

#[derive(Serialize)]
struct Issued {
    iat: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGITS: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    const NOW: u64 = 1_700_000_000;

    /// A file of this content, read.
    fn read(content: &[u8]) -> Result<Secret, FileError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jwt.hex");
        std::fs::write(&path, content).unwrap();
        Secret::from_file(&path)
    }

    #[test]
    fn auth_04_every_usual_form_is_the_same_secret() {
        let token = DIGITS.parse::<Secret>().unwrap().mint(NOW);
        for form in [
            DIGITS.to_owned(),
            format!("0x{DIGITS}"),
            format!("0X{DIGITS}"),
            format!("{DIGITS}\n"),
            format!("0x{DIGITS}\r\n"),
            format!("  {DIGITS}\t"),
            DIGITS.to_uppercase(),
            format!("0x{}", DIGITS.to_uppercase()),
        ] {
            assert!(read(form.as_bytes()).unwrap().verify(&token, NOW).is_ok(), "{form:?}");
        }
    }

    #[test]
    fn auth_04_any_other_form_is_refused_by_its_length() {
        for (text, length) in [
            (String::new(), 0),
            ("0x".to_owned(), 0),
            (DIGITS[1..].to_owned(), 63),
            (format!("{DIGITS}0"), 65),
            (DIGITS.repeat(2), 128),
            (format!("0x0x{DIGITS}"), 66),
            (format!("{} {}", &DIGITS[..32], &DIGITS[32..]), 65),
        ] {
            let Err(error) = text.parse::<Secret>() else { panic!("{text:?}") };
            assert_eq!(error, SecretError::Length(length), "{text:?}");
            assert!(error.to_string().contains(&length.to_string()));
        }
    }

    #[test]
    fn auth_04_no_error_shows_the_content() {
        let odd = format!("{}zz", &DIGITS[2..]);
        let marked = format!("\u{feff}{DIGITS}");
        for text in [&odd, &marked, &format!("{DIGITS}ff")] {
            let error = read(text.as_bytes()).unwrap_err();
            for shown in [error.to_string(), format!("{error:?}")] {
                assert!(!shown.contains(&DIGITS[2..20]), "{shown}");
            }
        }
        assert_eq!(odd.parse::<Secret>().unwrap_err(), SecretError::NotHex);
        assert_eq!(marked.parse::<Secret>().unwrap_err(), SecretError::ByteOrderMark);
    }

    #[test]
    fn auth_04_what_is_no_secret_file_is_refused_unread() {
        let padded = [DIGITS.as_bytes(), &b" ".repeat(5000)].concat();
        assert!(matches!(read(&padded).unwrap_err().reason, FileErrorReason::TooLarge));
        let directory = tempfile::tempdir().unwrap();
        for path in [directory.path(), &directory.path().join("missing")] {
            let error = Secret::from_file(path).unwrap_err();
            assert!(matches!(error.reason, FileErrorReason::Io(_)));
            assert!(error.to_string().contains(&path.display().to_string()));
        }
        assert!(!directory.path().join("missing").exists(), "no secret is made up");
    }

    #[test]
    fn a_secret_is_not_printed() {
        let secret: Secret = DIGITS.parse().unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }

    #[test]
    fn a_minted_token_is_what_other_implementations_make() {
        // Made with an independent HMAC-SHA256 over the two base64url parts.
        assert_eq!(DIGITS.parse::<Secret>().unwrap().mint(NOW), MINTED);
    }

    const MINTED: &str = concat!(
        "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9.",
        "eyJpYXQiOjE3MDAwMDAwMDB9.",
        "zbTm8XC7Pp4mafkFaoi_4bGVwl71iN6s5EEGIK6er0o"
    );
}
