//! One strict pass over JSON text (RFC 8259) that finds where values begin and end.
//!
//! It checks what the envelope must be able to rely on — grammar, UTF-8, nesting — and builds
//! nothing, so that the cost of a block-sized `params` is one read of its bytes. Strings, which
//! are nearly all of such a body, are passed over in blocks the compiler turns into vector code.

use std::borrow::Cow;
use std::ops::Range;

use super::text::{inside_quotes, plain_run, unescape};

/// The deepest nesting of arrays and objects accepted in a body; the outermost one counts.
///
/// No Engine API call nests deeper than ten. The bound keeps a body of brackets from becoming a
/// stack overflow in whatever reads the text next (RFC 8259, section 9, allows such a limit).
pub const MAX_DEPTH: u32 = 128;

/// Why the text is no JSON this crate accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The text ends inside a value.
    End,
    /// A byte that cannot stand where it stands.
    Byte,
    /// A string that is not UTF-8.
    Utf8,
    /// A backslash followed by what is no escape.
    Escape,
    /// An envelope string with half a surrogate pair.
    Surrogate,
    /// Nested deeper than [`MAX_DEPTH`].
    Depth,
    /// Something follows the value.
    Trailing,
}

impl Fault {
    /// What a caller is told.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::End => "Parse error: unexpected end of JSON",
            Self::Byte => "Parse error: invalid JSON",
            Self::Utf8 => "Parse error: invalid UTF-8",
            Self::Escape => "Parse error: invalid escape in a string",
            Self::Surrogate => "Parse error: lone surrogate in a string",
            Self::Depth => "Parse error: nested too deep",
            Self::Trailing => "Parse error: more than one JSON value",
        }
    }
}

/// Where a value stands in the text, and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// The value's kind, told by its first byte.
    pub kind: Kind,
    /// Its bytes, without surrounding white space.
    pub span: Range<usize>,
}

/// The kinds of JSON value the envelope tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

/// A string's bytes with both quotes, and whether it needs unescaping.
struct Text {
    span: Range<usize>,
    escaped: bool,
}

/// A place in a JSON text.
pub(super) struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    depth: u32,
}

impl<'a> Scanner<'a> {
    /// At the first value of `text`.
    pub(super) fn new(text: &'a [u8]) -> Self {
        let mut scanner = Self { text, at: 0, depth: 0 };
        scanner.white_space();
        scanner
    }

    /// The kind of the value that begins here.
    pub(super) fn kind(&self) -> Result<Kind, Fault> {
        match self.peek().ok_or(Fault::End)? {
            b'n' => Ok(Kind::Null),
            b't' | b'f' => Ok(Kind::Bool),
            b'-' | b'0'..=b'9' => Ok(Kind::Number),
            b'"' => Ok(Kind::String),
            b'[' => Ok(Kind::Array),
            b'{' => Ok(Kind::Object),
            _ => Err(Fault::Byte),
        }
    }

    /// Passes over the value that begins here.
    pub(super) fn value(&mut self) -> Result<Token, Fault> {
        let kind = self.kind()?;
        let start = self.at;
        self.skip()?;
        Ok(Token { kind, span: start..self.at })
    }

    /// Enters the object that begins here and gives each member's name to `member`, which must
    /// pass over the member's value.
    ///
    /// Returns the object's place.
    pub(super) fn object<E: From<Fault>>(
        &mut self,
        mut member: impl FnMut(&mut Self, Cow<'a, [u8]>) -> Result<(), E>,
    ) -> Result<Range<usize>, E> {
        let start = self.at;
        let mut more = self.open(b'{', b'}')?;
        while more {
            let name = self.name()?;
            member(self, name)?;
            more = self.next_or(b'}')?;
        }
        Ok(start..self.at)
    }

    /// Enters the array that begins here and calls `element`, which must pass over one element,
    /// for each.
    pub(super) fn array<E: From<Fault>>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut more = self.open(b'[', b']')?;
        while more {
            element(self)?;
            more = self.next_or(b']')?;
        }
        Ok(())
    }

    /// Checks that nothing but white space is left.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        self.white_space();
        if self.at < self.text.len() { Err(Fault::Trailing) } else { Ok(()) }
    }

    /// A member's name and colon, leaving the scanner at the value.
    fn name(&mut self) -> Result<Cow<'a, [u8]>, Fault> {
        let text = self.string()?;
        let name = if text.escaped {
            Cow::Owned(unescape(self.slice(text.span))?.into_bytes())
        } else {
            Cow::Borrowed(inside_quotes(self.slice(text.span)))
        };
        self.colon()?;
        Ok(name)
    }

    /// Takes `opening`; true when the container has something in it.
    fn open(&mut self, opening: u8, closing: u8) -> Result<bool, Fault> {
        self.expect(opening)?;
        if self.depth >= MAX_DEPTH {
            return Err(Fault::Depth);
        }
        self.depth += 1;
        self.white_space();
        if self.peek() == Some(closing) {
            self.at += 1;
            self.depth -= 1;
            return Ok(false);
        }
        Ok(true)
    }

    /// After an element: true at a comma, false at the end of the container.
    fn next_or(&mut self, closing: u8) -> Result<bool, Fault> {
        self.white_space();
        match self.peek().ok_or(Fault::End)? {
            b',' => {
                self.at += 1;
                self.white_space();
                Ok(true)
            }
            byte if byte == closing => {
                self.at += 1;
                self.depth -= 1;
                Ok(false)
            }
            _ => Err(Fault::Byte),
        }
    }

    /// Passes over one value without recursion: the open containers are the bits of a word.
    fn skip(&mut self) -> Result<(), Fault> {
        const { assert!(MAX_DEPTH <= u128::BITS) }
        let bottom = self.depth;
        let mut objects: u128 = 0;
        loop {
            let entered = match self.kind()? {
                Kind::String => {
                    self.string()?;
                    false
                }
                Kind::Number => {
                    self.number()?;
                    false
                }
                Kind::Null => {
                    self.literal(b"null")?;
                    false
                }
                Kind::Bool => {
                    let word: &[u8] = if self.peek() == Some(b't') { b"true" } else { b"false" };
                    self.literal(word)?;
                    false
                }
                Kind::Array => {
                    let entered = self.open(b'[', b']')?;
                    if entered {
                        objects <<= 1;
                    }
                    entered
                }
                Kind::Object => {
                    let entered = self.open(b'{', b'}')?;
                    if entered {
                        objects = objects << 1 | 1;
                        self.string()?;
                        self.colon()?;
                    }
                    entered
                }
            };
            if entered {
                continue;
            }
            loop {
                if self.depth == bottom {
                    return Ok(());
                }
                let in_object = objects & 1 == 1;
                if self.next_or(if in_object { b'}' } else { b']' })? {
                    if in_object {
                        self.string()?;
                        self.colon()?;
                    }
                    break;
                }
                objects >>= 1;
            }
        }
    }

    /// Passes over a string.
    fn string(&mut self) -> Result<Text, Fault> {
        let start = self.at;
        self.expect(b'"')?;
        let mut escaped = false;
        let mut bits = 0u8;
        loop {
            let run = plain_run(self.text.get(self.at..).unwrap_or_default());
            self.at += run.length;
            bits |= run.bits;
            match self.peek().ok_or(Fault::End)? {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return Err(Fault::Byte),
            }
        }
        self.at += 1;
        let span = start..self.at;
        if bits >= 0x80 && std::str::from_utf8(self.slice(span.clone())).is_err() {
            return Err(Fault::Utf8);
        }
        Ok(Text { span, escaped })
    }

    /// Passes over a backslash and what belongs to it.
    fn escape(&mut self) -> Result<(), Fault> {
        self.at += 1;
        let letter = self.peek().ok_or(Fault::End)?;
        self.at += 1;
        match letter {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(()),
            b'u' => {
                for _ in 0..4 {
                    match self.peek().ok_or(Fault::End)? {
                        digit if digit.is_ascii_hexdigit() => self.at += 1,
                        _ => return Err(Fault::Escape),
                    }
                }
                Ok(())
            }
            _ => Err(Fault::Escape),
        }
    }

    /// Passes over a number.
    fn number(&mut self) -> Result<(), Fault> {
        self.at += usize::from(self.peek() == Some(b'-'));
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(())
    }

    /// Passes over one digit or more.
    fn digits(&mut self) -> Result<(), Fault> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        match (count, self.peek()) {
            (0, None) => Err(Fault::End),
            (0, Some(_)) => Err(Fault::Byte),
            _ => Ok(()),
        }
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), Fault> {
        word.iter().try_for_each(|&byte| self.expect(byte))
    }

    fn colon(&mut self) -> Result<(), Fault> {
        self.white_space();
        self.expect(b':')?;
        self.white_space();
        Ok(())
    }

    fn expect(&mut self, byte: u8) -> Result<(), Fault> {
        match self.peek() {
            Some(found) if found == byte => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(Fault::Byte),
            None => Err(Fault::End),
        }
    }

    fn white_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn slice(&self, span: Range<usize>) -> &'a [u8] {
        self.text.get(span).unwrap_or_default()
    }
}
