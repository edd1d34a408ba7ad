//! The shared secret of the Engine API and the tokens made with it (`authentication.md`).
//!
//! ```
//! use engine_ssz_proxy::jwt::Secret;
//!
//! let secret: Secret = format!("0x{}", "2a".repeat(32)).parse().unwrap();
//! let token = secret.mint(1_700_000_000);
//! assert!(secret.verify(&token, 1_700_000_060).is_ok());
//! assert!(secret.verify(&token, 1_700_000_061).is_err());
//! ```

mod secret;
mod token;

pub use secret::{FileError, FileErrorReason, Secret, SecretError};
pub use token::{Claims, Refused, WINDOW, unverified_client_version, unverified_issued_at};
