//! The insides of JSON strings.

use super::scan::Fault;

/// The text between a string token's quotes.
pub(super) fn inside_quotes(token: &[u8]) -> &[u8] {
    token.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or_default()
}

/// The value of a string token that holds escapes.
pub(super) fn unescape(token: &[u8]) -> Result<String, Fault> {
    // The grammar has been checked: half a surrogate pair is all that can be wrong.
    serde_json::from_slice(token).map_err(|_| Fault::Surrogate)
}

/// The bytes at the head of a string's inside that need no look.
pub(super) struct Run {
    /// How many there are.
    pub length: usize,
    /// All of them or-ed together: beyond ASCII when 0x80 or more.
    pub bits: u8,
}

/// Counts the bytes before the first quote, backslash or control character.
pub(super) fn plain_run(bytes: &[u8]) -> Run {
    const fn stops(byte: u8) -> bool {
        byte == b'"' || byte == b'\\' || byte < 0x20
    }
    let mut length = 0;
    let mut bits = 0;
    // Without a way out of the inner loop the compiler makes vector code of it.
    let (blocks, _) = bytes.as_chunks::<64>();
    for block in blocks {
        let mut stop = false;
        let mut seen = 0;
        for &byte in block {
            stop |= stops(byte);
            seen |= byte;
        }
        if stop {
            break;
        }
        bits |= seen;
        length += block.len();
    }
    for &byte in bytes.get(length..).unwrap_or_default() {
        if stops(byte) {
            break;
        }
        bits |= byte;
        length += 1;
    }
    Run { length, bits }
}
