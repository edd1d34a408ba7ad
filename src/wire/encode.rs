//! The tree of a container → its SSZ, into one buffer of the exact size.

use super::Fork;
use super::container::{Container, Kind, OFFSET};
use super::error::NotTranscodable;
use super::json::{decode_digits, nibble, number};
use super::parse::{Node, Source, Tree, Value};
use crate::buffer::Buffer;
use bytes::Bytes;

/// The SSZ of a container, from its JSON.
///
/// Members may come in any order. What is not exactly the container of that fork, each value in
/// its legal form (common.md, "Encoding") and inside its SSZ bound, is refused; a `null` member is
/// the same as none.
///
/// # Errors
///
/// [`NotTranscodable`] with the reason and the place. The text need not be JSON.
pub fn to_ssz(
    container: &Container,
    fork: Fork,
    source: Source<'_>,
) -> Result<Bytes, NotTranscodable> {
    let tree = Tree::parse(container, fork, source)?;
    let mut ssz = Buffer::of(tree.node(0).map_or(0, Node::size));
    tree.write_container(0, container, &mut ssz)?;
    Ok(ssz.freeze())
}

impl Tree<'_> {
    /// Writes the value at `index` into all of `out`, which is of the value's size.
    fn write(&self, index: usize, kind: &Kind, out: &mut [u8]) -> Result<(), NotTranscodable> {
        let Some(node) = self.node(index) else { return Ok(()) };
        match (node.value, kind) {
            (Value::Zero, _) => {
                out.fill(0);
                write_zero(kind, self.fork, out);
            }
            (Value::Data { at }, _) => decode_digits(self.digits(at, 2 * out.len()), out)?,
            (Value::Quantity { at, digits }, Kind::U64) => {
                put(out, &number(self.digits(at, digits.into())).to_le_bytes());
            }
            (Value::Quantity { at, digits }, _) => {
                out.fill(0);
                let pairs = self.digits(at, digits.into()).rchunks(2);
                for (byte, pair) in out.iter_mut().zip(pairs) {
                    *byte = pair.iter().fold(0, |byte, &digit| byte << 4 | nibble(digit));
                }
            }
            (Value::Byte(byte), _) => out.fill(byte),
            (Value::Text(index), _) => put(out, self.string(index).as_bytes()),
            (Value::Present, Kind::Optional(inner)) => {
                let mut parts = Parts::of_list(out, 1, inner, self.fork);
                self.place(index + 1, inner, &mut parts)?;
            }
            (Value::Present, Kind::Entry(container)) => {
                let mut parts = Parts::of_entry(out, container, self.fork);
                parts.fixed(1).fill(1);
                self.place(index + 1, &Kind::Container(container), &mut parts)?;
            }
            (Value::List(count), Kind::List(list)) => {
                let count = count as usize;
                let mut parts = Parts::of_list(out, count, &list.element, self.fork);
                let mut child = index + 1;
                for element in 0..count {
                    self.place(child, &list.element, &mut parts)
                        .map_err(|error| error.at(element))?;
                    child = self.node(child).map_or(node.next(), Node::next);
                }
            }
            (Value::Container, Kind::Container(container)) => {
                self.write_container(index, container, out)?;
            }
            // The parser makes no other pairs.
            _ => out.fill(0),
        }
        Ok(())
    }

    fn write_container(
        &self,
        index: usize,
        container: &Container,
        out: &mut [u8],
    ) -> Result<(), NotTranscodable> {
        let mut parts = Parts::new(out, container.fixed_part(self.fork));
        for (row, field) in container.fields(self.fork) {
            let Some(child) = self.slot_index(index, row) else { continue };
            self.place(child, &field.kind, &mut parts).map_err(|error| error.inside(field.json))?;
        }
        Ok(())
    }

    /// Writes the value at `index` where `parts` has its place for it.
    fn place(
        &self,
        index: usize,
        kind: &Kind,
        parts: &mut Parts<'_>,
    ) -> Result<(), NotTranscodable> {
        let size = self.node(index).map_or(0, Node::size);
        self.write(index, kind, parts.place(kind, size, self.fork))
    }
}

/// Writes the zero value of a kind: nothing but offsets, as `out` is zeroed.
fn write_zero(kind: &Kind, fork: Fork, out: &mut [u8]) {
    match kind {
        Kind::Entry(container) => {
            let mut parts = Parts::of_entry(out, container, fork);
            parts.fixed(1);
            parts.place_zero(&Kind::Container(container), fork);
        }
        Kind::Container(container) => {
            let mut parts = Parts::new(out, container.fixed_part(fork));
            for (_, field) in container.fields(fork) {
                parts.place_zero(&field.kind, fork);
            }
        }
        _ => {}
    }
}

fn put(out: &mut [u8], bytes: &[u8]) {
    for (out, byte) in out.iter_mut().zip(bytes) {
        *out = *byte;
    }
}

/// A buffer laid out as SSZ does: a fixed part of values and offsets, then the variable part.
struct Parts<'o> {
    fixed: &'o mut [u8],
    variable: &'o mut [u8],
    offset: usize,
}

impl<'o> Parts<'o> {
    fn new(out: &'o mut [u8], fixed_part: usize) -> Self {
        let (fixed, variable) = split(out, fixed_part);
        Self { fixed, variable, offset: fixed_part }
    }

    fn of_list(out: &'o mut [u8], count: usize, element: &Kind, fork: Fork) -> Self {
        let each = element.fixed_size(fork).unwrap_or(OFFSET);
        Self::new(out, each * count)
    }

    fn of_entry(out: &'o mut [u8], container: &Container, fork: Fork) -> Self {
        Self::new(out, 1 + container.fixed_size(fork).unwrap_or(OFFSET))
    }

    fn fixed(&mut self, size: usize) -> &'o mut [u8] {
        take(&mut self.fixed, size)
    }

    /// The place of the next value, which has `size` bytes; writes its offset if it needs one.
    fn place(&mut self, kind: &Kind, size: usize, fork: Fork) -> &'o mut [u8] {
        if kind.fixed_size(fork).is_some() {
            return self.fixed(size);
        }
        // The parser has seen that the whole fits 32 bits.
        put(self.fixed(OFFSET), &(self.offset as u32).to_le_bytes());
        self.offset += size;
        take(&mut self.variable, size)
    }

    fn place_zero(&mut self, kind: &Kind, fork: Fork) {
        write_zero(kind, fork, self.place(kind, kind.zero_size(fork), fork));
    }
}

fn take<'o>(from: &mut &'o mut [u8], size: usize) -> &'o mut [u8] {
    let (taken, rest) = split(std::mem::take(from), size);
    *from = rest;
    taken
}

fn split(bytes: &mut [u8], at: usize) -> (&mut [u8], &mut [u8]) {
    bytes.split_at_mut(at.min(bytes.len()))
}
