//! The insides of JSON strings.

use memchr::memchr2;

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
    let end = memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
    let run = bytes.get(..end).unwrap_or_default();
    let extremes = Extremes::of(run);
    if extremes.least >= b' ' {
        return Run { length: run.len(), bits: extremes.bits };
    }
    // Such a text is refused: that it is read once more does not matter.
    let length = run.iter().position(|&byte| byte < b' ').unwrap_or(run.len());
    let bits = run.iter().take(length).fold(0, |bits, byte| bits | byte);
    Run { length, bits }
}

/// What there is to know of bytes, whatever their order: it may be gathered from overlapping parts.
struct Extremes {
    least: u8,
    bits: u8,
}

impl Extremes {
    /// Wide enough for vector code.
    const BLOCK: usize = 32;

    fn of(bytes: &[u8]) -> Self {
        let mut extremes = Self { least: u8::MAX, bits: 0 };
        let Some(last) = bytes.last_chunk::<{ Self::BLOCK }>() else {
            extremes.add(bytes);
            return extremes;
        };
        let (mut least, mut bits) = (*last, *last);
        let (blocks, _) = bytes.as_chunks::<{ Self::BLOCK }>();
        for block in blocks {
            for ((least, bits), &byte) in least.iter_mut().zip(&mut bits).zip(block) {
                *least = byte.min(*least);
                *bits |= byte;
            }
        }
        extremes.least = least.into_iter().min().unwrap_or(u8::MAX);
        extremes.bits = bits.into_iter().fold(0, |all, bits| all | bits);
        extremes
    }

    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.least = self.least.min(byte);
            self.bits |= byte;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_at_the_first_byte_that_needs_a_look_wherever_it_is() {
        for length in 0..140 {
            for place in 0..length {
                for (stop, high) in
                    [(b'"', b'a'), (b'\\', 0xc3), (0x1f, b'a'), (0, 0xc3), (b'\n', b'~')]
                {
                    let mut text = vec![b'a'; length];
                    text[place / 2] = high;
                    text[place] = stop;
                    // What is behind does not count.
                    text[length - 1] = if place < length - 1 { 0xff } else { stop };
                    let run = plain_run(&text);
                    let before = &text[..place];
                    assert_eq!(run.length, place, "{text:?}");
                    assert_eq!(run.bits, before.iter().fold(0, |all, byte| all | byte), "{text:?}");
                }
            }
            let run = plain_run(&vec![b'a'; length]);
            assert_eq!((run.length, run.bits >= 0x80), (length, false));
        }
    }
}
