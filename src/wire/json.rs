//! A cursor over JSON text that knows where a value ends, and the few values the Engine API is
//! made of.
//!
//! The text is normally known to be JSON, but nothing here trusts that: whatever the bytes, the
//! cursor only moves forward and never past the end. No string it reads may hold an escape, so a
//! string always ends at the first quotation mark.

use memchr::{memchr, memchr2};

use super::error::{NotTranscodable, Reason};

/// A position in JSON text.
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(text: &'a [u8]) -> Self {
        Self { rest: text }
    }

    /// Bytes of the text that are not consumed.
    pub(super) const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The next byte that is no white space, not consumed.
    pub(super) fn peek(&mut self) -> Option<u8> {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        while self.rest.first().is_some_and(blank) {
            self.advance(1);
        }
        self.rest.first().copied()
    }

    /// Consumes `token` if it is next.
    pub(super) fn eat(&mut self, token: u8) -> bool {
        let next = self.peek() == Some(token);
        if next {
            self.advance(1);
        }
        next
    }

    /// Consumes `token`, which must be next.
    pub(super) fn expect(&mut self, token: u8) -> Result<(), Reason> {
        if self.eat(token) { Ok(()) } else { Err(Reason::BadJson) }
    }

    /// Consumes the opening bracket of an array or object, else says what is there instead.
    pub(super) fn open(&mut self, bracket: u8) -> Result<(), Reason> {
        if self.eat(bracket) { Ok(()) } else { Err(self.blame()) }
    }

    /// Consumes what separates two elements (`true`) or closes the array or object (`false`).
    pub(super) fn more(&mut self, close: u8) -> Result<bool, Reason> {
        if self.eat(b',') { Ok(true) } else { self.expect(close).map(|()| false) }
    }

    /// Consumes `null` if it is next.
    pub(super) fn null(&mut self) -> bool {
        self.peek() == Some(b'n') && self.word(b"null")
    }

    /// Consumes `true` or `false`.
    pub(super) fn boolean(&mut self) -> Result<bool, Reason> {
        if self.peek().is_some() && self.word(b"true") {
            Ok(true)
        } else if self.word(b"false") {
            Ok(false)
        } else {
            Err(self.blame())
        }
    }

    /// Consumes a string without escapes; gives what is between the quotation marks.
    pub(super) fn string(&mut self) -> Result<&'a [u8], Reason> {
        self.open(b'"')?;
        let end = memchr(b'"', self.rest).ok_or(Reason::BadJson)?;
        let content = self.advance(end);
        self.advance(1);
        // The mark was itself escaped: the string goes on.
        if content.last() == Some(&b'\\') { Err(Reason::Escaped) } else { Ok(content) }
    }

    /// Consumes a string, escapes and all; gives it with its quotation marks.
    pub(super) fn raw_string(&mut self) -> Result<&'a [u8], Reason> {
        if self.peek() != Some(b'"') {
            return Err(self.blame());
        }
        let mut end = 1;
        while let Some(found) = self.rest.get(end..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
            end += found;
            if self.rest.get(end) == Some(&b'"') {
                return Ok(self.advance(end + 1));
            }
            end += 2;
        }
        Err(Reason::BadJson)
    }

    /// Consumes a member name and the colon after it.
    pub(super) fn key(&mut self) -> Result<&'a [u8], Reason> {
        if self.peek() != Some(b'"') {
            return Err(Reason::BadJson);
        }
        let key = self.string()?;
        if memchr(b'\\', key).is_some() {
            return Err(Reason::Escaped);
        }
        self.expect(b':')?;
        Ok(key)
    }

    /// Consumes any value; gives its text.
    pub(super) fn value(&mut self) -> Result<&'a [u8], Reason> {
        match self.peek().ok_or(Reason::BadJson)? {
            b'"' => self.raw_string(),
            b'{' | b'[' => self.brackets(),
            _ => {
                let delimiter = |byte: &u8| b",:]} \t\n\r\"[{".contains(byte);
                let end = self.rest.iter().position(delimiter).unwrap_or(self.rest.len());
                if end == 0 { Err(Reason::BadJson) } else { Ok(self.advance(end)) }
            }
        }
    }

    /// Refuses anything but white space.
    pub(super) fn end(&mut self) -> Result<(), Reason> {
        if self.peek().is_none() { Ok(()) } else { Err(Reason::BadJson) }
    }

    /// Why the next value is not the one that was to be here.
    pub(super) fn blame(&mut self) -> Reason {
        match self.peek() {
            Some(b'n') if self.rest.starts_with(b"null") => Reason::Null,
            Some(b'"' | b'{' | b'[' | b't' | b'f' | b'-' | b'0'..=b'9') => Reason::WrongType,
            _ => Reason::BadJson,
        }
    }

    /// Consumes an array or object by counting brackets outside strings. Depth costs nothing.
    fn brackets(&mut self) -> Result<&'a [u8], Reason> {
        let whole = self.rest;
        let mut depth = 0_usize;
        while let Some(&byte) = self.rest.first() {
            match byte {
                b'"' => {
                    self.raw_string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.advance(1);
            if depth == 0 {
                let length = whole.len() - self.rest.len();
                return Ok(whole.split_at_checked(length).map_or(whole, |(value, _)| value));
            }
        }
        Err(Reason::BadJson)
    }

    /// Consumes a literal word. What is glued to it is no token that may follow.
    fn word(&mut self, word: &[u8]) -> bool {
        let after = self.rest.strip_prefix(word);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn advance(&mut self, count: usize) -> &'a [u8] {
        let (passed, rest) = self.rest.split_at_checked(count).unwrap_or((self.rest, &[]));
        self.rest = rest;
        passed
    }
}

/// The digits of DATA, given what is between the quotation marks. Whether they are digits is seen
/// when they are decoded.
pub(super) fn data_digits(content: &[u8]) -> Result<&[u8], Reason> {
    match content.strip_prefix(b"0x") {
        Some(digits) if digits.len().is_multiple_of(2) => Ok(digits),
        _ => Err(bad_hex(content)),
    }
}

/// The digits of a QUANTITY of at most `bits`, given what is between the quotation marks
/// (common.md, "Encoding"): at least one, no leading zero.
pub(super) fn quantity_digits(content: &[u8], bits: usize) -> Result<&[u8], Reason> {
    let digits = content.strip_prefix(b"0x").ok_or(Reason::NotCanonical)?;
    match digits {
        [] | [b'0', _, ..] => Err(Reason::NotCanonical),
        _ if !digits.iter().all(u8::is_ascii_hexdigit) => Err(bad_hex(digits)),
        _ if digits.len() > bits / 4 => Err(Reason::OverBound),
        _ => Ok(digits),
    }
}

/// The number that at most 16 hexadecimal digits stand for.
pub(super) fn number(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |number, &digit| number << 4 | u64::from(nibble(digit)))
}

/// The value of a hexadecimal digit.
pub(super) fn nibble(digit: u8) -> u8 {
    char::from(digit).to_digit(16).map_or(0, |value| value as u8)
}

/// Decodes the digits of DATA into `bytes`, of which there must be half as many.
pub(super) fn decode_digits(digits: &[u8], bytes: &mut [u8]) -> Result<(), Reason> {
    // The decoder would take a second `0x`, but then misses the bytes it stands for.
    const_hex::decode_to_slice(digits, bytes).map_err(|_| bad_hex(digits))
}

fn bad_hex(content: &[u8]) -> Reason {
    if memchr(b'\\', content).is_some() { Reason::Escaped } else { Reason::BadHex }
}

/// The text of the member `name` of a JSON object, or `None` if it has no such member.
///
/// # Errors
///
/// If the text is no object, has `name` twice, or has a member name with an escape in it, which
/// might be `name`. Values are passed over, not checked.
pub fn json_member<'a>(object: &'a [u8], name: &str) -> Result<Option<&'a [u8]>, NotTranscodable> {
    let mut cursor = Cursor::new(object);
    let mut found = None;
    cursor.open(b'{')?;
    let mut more = !cursor.eat(b'}');
    while more {
        let key = cursor.key()?;
        let value = cursor.value()?;
        if key == name.as_bytes() && found.replace(value).is_some() {
            return Err(NotTranscodable::from(Reason::Duplicate).inside(name));
        }
        more = cursor.more(b'}')?;
    }
    cursor.end()?;
    Ok(found)
}

/// The text of the first member `name` of a JSON object, or `None` if it has no such member. Nothing
/// behind it is looked at: it is for an object that goes through [`to_ssz`](super::to_ssz) later,
/// which refuses a second member of that name.
///
/// # Errors
///
/// If the text is no object up to there, or has a member name with an escape in it before, which
/// might be `name`. Values are passed over, not checked.
pub fn json_first_member<'a>(
    object: &'a [u8],
    name: &str,
) -> Result<Option<&'a [u8]>, NotTranscodable> {
    let mut cursor = Cursor::new(object);
    cursor.open(b'{')?;
    let mut more = !cursor.eat(b'}');
    while more {
        let key = cursor.key()?;
        let value = cursor.value()?;
        if key == name.as_bytes() {
            return Ok(Some(value));
        }
        more = cursor.more(b'}')?;
    }
    cursor.end()?;
    Ok(None)
}

/// The texts of the elements of a JSON array of at most `max`, without white space around them.
///
/// # Errors
///
/// If the text is no array, or has more elements: a slice takes more memory than the shortest
/// element. Elements are passed over, not checked.
pub fn json_array(array: &[u8], max: usize) -> Result<Vec<&[u8]>, NotTranscodable> {
    let mut cursor = Cursor::new(array);
    let mut elements = Vec::new();
    cursor.open(b'[')?;
    let mut more = !cursor.eat(b']');
    while more {
        if elements.len() == max {
            return Err(Reason::OverBound.into());
        }
        elements.push(cursor.value()?);
        more = cursor.more(b']')?;
    }
    cursor.end()?;
    Ok(elements)
}

/// The number a QUANTITY of at most 64 bits stands for; `value` is its text, quotation marks
/// included (common.md, "Encoding").
///
/// # Errors
///
/// If it is anything but a canonical QUANTITY.
pub fn json_u64(value: &[u8]) -> Result<u64, NotTranscodable> {
    Ok(number(quantity_digits(only_string(value)?, 64)?))
}

/// The bytes DATA of exactly `N` bytes stands for; `value` is its text, quotation marks included
/// (common.md, "Encoding").
///
/// # Errors
///
/// If it is anything but DATA of that length.
pub fn json_data<const N: usize>(value: &[u8]) -> Result<[u8; N], NotTranscodable> {
    let digits = data_digits(only_string(value)?)?;
    if digits.len() / 2 != N {
        return Err(Reason::WrongLength.into());
    }
    let mut bytes = [0; N];
    decode_digits(digits, &mut bytes)?;
    Ok(bytes)
}

/// Whether the text is `null`.
pub fn is_null(value: &[u8]) -> bool {
    let mut cursor = Cursor::new(value);
    cursor.null() && cursor.end().is_ok()
}

fn only_string(value: &[u8]) -> Result<&[u8], Reason> {
    let mut cursor = Cursor::new(value);
    let content = cursor.string()?;
    cursor.end()?;
    Ok(content)
}
