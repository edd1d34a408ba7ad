//! JSON text → a tree of the spans that make up a container, checked and measured in one pass.

use super::Fork;
use super::container::{Container, Field, Form, Kind, List, MAX_ROWS, OFFSET, Order, Rule, Shown};
use super::error::{NotTranscodable, Reason};
use super::json::{Cursor, data_digits, nibble, quantity_digits};

/// Where the JSON of a container is.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// The text of one value: an object, or for a response whose JSON is a bare array, that array.
    Object(&'a [u8]),
    /// The texts of one value per field the container has at the fork, in SSZ order: positional
    /// parameters. Optional ones at the end may be left out.
    Fields(&'a [&'a [u8]]),
}

/// A value, as nodes in pre-order: a node is followed by those of its parts.
pub(super) struct Tree<'a> {
    pub(super) fork: Fork,
    pub(super) nodes: Vec<Node<'a>>,
}

pub(super) struct Node<'a> {
    pub(super) value: Value<'a>,
    /// Bytes of the SSZ.
    pub(super) size: usize,
    /// The index after the node's last part.
    pub(super) next: usize,
}

pub(super) enum Value<'a> {
    /// Hexadecimal digits of as many bytes as the node's size.
    Data(&'a [u8]),
    /// Hexadecimal digits of a number, most significant first.
    Quantity(&'a [u8]),
    /// A boolean or a status.
    Byte(u8),
    Text(Box<str>),
    /// The zero value of its kind: an absent optional, an unavailable entry, no bytes.
    Zero,
    /// An optional or an entry with a value, which follows.
    Present,
    /// That many elements follow one after the other.
    List(usize),
    /// One slot per row follows, then the fields in the order the JSON has them.
    Container,
    /// The index of the row's field, if it exists.
    Slot(Option<usize>),
}

impl<'a> Tree<'a> {
    /// Parses all of `source` as `container`.
    pub(super) fn parse(
        container: &Container,
        fork: Fork,
        source: Source<'a>,
    ) -> Result<Self, NotTranscodable> {
        let mut tree = Tree { fork, nodes: Vec::new() };
        match source {
            Source::Object(text) if container.form() == Form::Object => {
                let mut cursor = Cursor::new(text);
                tree.container(&mut cursor, container)?;
                cursor.end()?;
            }
            Source::Object(text) => tree.parameters(container, &[text])?,
            Source::Fields(texts) => tree.parameters(container, texts)?,
        }
        Ok(tree)
    }

    /// The node at `index`.
    pub(super) fn node(&self, index: usize) -> Option<&Node<'a>> {
        self.nodes.get(index)
    }

    fn parameters(
        &mut self,
        container: &Container,
        texts: &[&'a [u8]],
    ) -> Result<(), NotTranscodable> {
        let at = self.begin_container(container);
        let mut texts = texts.iter();
        for (row, field) in container.fields(self.fork) {
            let within = |error: NotTranscodable| error.inside(field.json);
            // Optional parameters at the end may be left out; others are missed at the end.
            let Some(text) = texts.next() else { break };
            let mut cursor = Cursor::new(text);
            self.field(&mut cursor, at, row, field).map_err(within)?;
            cursor.end().map_err(|reason| within(reason.into()))?;
        }
        if texts.next().is_some() {
            return Err(Reason::UnknownMember.into());
        }
        self.end_container(at, container)
    }

    fn container(
        &mut self,
        cursor: &mut Cursor<'a>,
        container: &Container,
    ) -> Result<(), NotTranscodable> {
        cursor.open(b'{')?;
        let at = self.begin_container(container);
        let mut seen = [false; MAX_ROWS];
        let mut more = !cursor.eat(b'}');
        while more {
            let key = cursor.key()?;
            let (row, field) = container.member(key, self.fork).ok_or_else(|| unknown(key))?;
            let within = |error: NotTranscodable| error.inside(field.json);
            if seen.get_mut(row).is_none_or(|seen| std::mem::replace(seen, true)) {
                return Err(within(Reason::Duplicate.into()));
            }
            if field.exists(self.fork) && field.shown != Shown::Never {
                self.field(cursor, at, row, field).map_err(within)?;
            } else if !cursor.null() {
                // In structures `null` is the same as absent, whatever fork brings the member.
                return Err(within(Reason::UnknownMember.into()));
            }
            more = cursor.more(b'}')?;
        }
        self.end_container(at, container)
    }

    fn begin_container(&mut self, container: &Container) -> usize {
        let at = self.push(Value::Container, 0);
        for _ in container.rows() {
            self.push(Value::Slot(None), 0);
        }
        at
    }

    fn field(
        &mut self,
        cursor: &mut Cursor<'a>,
        container: usize,
        row: usize,
        field: &Field,
    ) -> Result<(), NotTranscodable> {
        self.fill(container, row);
        if field.shown == Shown::NullWhenEmpty && cursor.null() {
            self.push(Value::Zero, 0);
            return Ok(());
        }
        self.value(cursor, &field.kind)
    }

    /// Notes that the next node is the field of that row.
    fn fill(&mut self, container: usize, row: usize) {
        let next = self.nodes.len();
        if let Some(slot) = self.nodes.get_mut(container + 1 + row) {
            slot.value = Value::Slot(Some(next));
        }
    }

    /// The index of the field of that row.
    pub(super) fn slot_index(&self, container: usize, row: usize) -> Option<usize> {
        match self.node(container + 1 + row)?.value {
            Value::Slot(field) => field,
            _ => None,
        }
    }

    fn slot(&self, container: usize, row: usize) -> Option<&Node<'a>> {
        self.node(self.slot_index(container, row)?)
    }

    fn end_container(&mut self, at: usize, container: &Container) -> Result<(), NotTranscodable> {
        let fork = self.fork;
        let mut size = container.fixed_part(fork);
        for (row, field) in container.fields(fork) {
            if self.slot(at, row).is_none() {
                let may_miss =
                    matches!(field.kind, Kind::Optional(_)) || field.shown == Shown::Never;
                if !may_miss {
                    return Err(NotTranscodable::from(Reason::Missing).inside(field.json));
                }
                self.fill(at, row);
                self.push(Value::Zero, 0);
            }
            if field.kind.fixed_size(fork).is_none() {
                size += self.slot(at, row).map_or(0, |node| node.size);
            }
        }
        self.finish(at, size);
        match container.rule() {
            Rule::None => Ok(()),
            Rule::SamePositions => self.same_positions(at, container),
        }
    }

    fn same_positions(&self, at: usize, container: &Container) -> Result<(), NotTranscodable> {
        let mut lists = container
            .fields(self.fork)
            .filter_map(|(row, _)| self.slot_index(at, row))
            .map(|list| self.children(list).map(|node| matches!(node.value, Value::Zero)));
        let Some(first) = lists.next() else { return Ok(()) };
        let first: Vec<bool> = first.collect();
        if lists.all(|list| list.eq(first.iter().copied())) {
            Ok(())
        } else {
            Err(Reason::Mismatch.into())
        }
    }

    /// The parts of the node at `index`.
    fn children(&self, index: usize) -> impl Iterator<Item = &Node<'a>> {
        let end = self.node(index).map_or(0, |node| node.next);
        let mut child = index + 1;
        std::iter::from_fn(move || {
            let node = (child < end).then(|| self.node(child)).flatten()?;
            child = node.next;
            Some(node)
        })
    }

    fn value(&mut self, cursor: &mut Cursor<'a>, kind: &Kind) -> Result<(), NotTranscodable> {
        match kind {
            Kind::Data(size) => {
                let digits = data_digits(cursor.string()?)?;
                if digits.len() / 2 != *size {
                    return Err(Reason::WrongLength.into());
                }
                self.push(Value::Data(digits), *size);
            }
            Kind::Bytes(max) => {
                let digits = data_digits(cursor.string()?)?;
                if digits.len() / 2 > *max {
                    return Err(Reason::OverBound.into());
                }
                self.push(Value::Data(digits), digits.len() / 2);
            }
            Kind::U64 => {
                self.push(Value::Quantity(quantity_digits(cursor.string()?, 64)?), 8);
            }
            Kind::U256 => {
                self.push(Value::Quantity(quantity_digits(cursor.string()?, 256)?), 32);
            }
            Kind::Boolean => {
                self.push(Value::Byte(cursor.boolean()?.into()), 1);
            }
            Kind::Status(names) => {
                let name = cursor.string()?;
                let status = (0..).zip(*names).find(|(_, known)| known.as_bytes() == name);
                let (byte, _) = status.ok_or(Reason::WrongType)?;
                self.push(Value::Byte(byte), 1);
            }
            Kind::Text(max) => {
                let text: Box<str> =
                    serde_json::from_slice(cursor.raw_string()?).map_err(|_| Reason::BadJson)?;
                if text.len() > *max {
                    return Err(Reason::OverBound.into());
                }
                let size = text.len();
                self.push(Value::Text(text), size);
            }
            Kind::List(list) => self.list(cursor, list)?,
            Kind::Container(container) => self.container(cursor, container)?,
            Kind::Optional(_) | Kind::Entry(_) if cursor.null() => {
                let size = kind.zero_size(self.fork);
                self.push(Value::Zero, size);
            }
            Kind::Optional(inner) => {
                let at = self.push(Value::Present, 0);
                self.value(cursor, inner)?;
                self.finish(at, self.placed(at + 1, inner));
            }
            Kind::Entry(container) => {
                let at = self.push(Value::Present, 0);
                self.container(cursor, container)?;
                self.finish(at, 1 + self.placed(at + 1, &Kind::Container(container)));
            }
        }
        Ok(())
    }

    /// Bytes of the node at `index`, with the offset that points at it if it needs one.
    fn placed(&self, index: usize, kind: &Kind) -> usize {
        let offset = if kind.fixed_size(self.fork).is_some() { 0 } else { OFFSET };
        offset + self.node(index).map_or(0, |node| node.size)
    }

    fn list(&mut self, cursor: &mut Cursor<'a>, list: &List) -> Result<(), NotTranscodable> {
        cursor.open(b'[')?;
        let at = self.push(Value::List(0), 0);
        let mut previous = None;
        let (mut count, mut size) = (0, 0);
        let mut more = !cursor.eat(b']');
        while more {
            if count == list.length.max() {
                return Err(Reason::OverBound.into());
            }
            let index = self.nodes.len();
            self.value(cursor, &list.element)
                .and_then(|()| match list.order {
                    Order::Any => Ok(()),
                    Order::AscendingTypes => self.ascends(index, &mut previous),
                })
                .map_err(|error| error.at(count))?;
            size += self.placed(index, &list.element);
            count += 1;
            more = cursor.more(b']')?;
        }
        if !list.length.allows(count) {
            return Err(Reason::WrongLength.into());
        }
        self.finish(at, size);
        if let Some(node) = self.nodes.get_mut(at) {
            node.value = Value::List(count);
        }
        Ok(())
    }

    /// Refuses a request without data, or whose type byte is not above that of the previous one.
    fn ascends(&self, index: usize, previous: &mut Option<u8>) -> Result<(), NotTranscodable> {
        let Some(Value::Data([high, low, _, _, ..])) = self.node(index).map(|node| &node.value)
        else {
            return Err(Reason::WrongLength.into());
        };
        let kind = nibble(*high) << 4 | nibble(*low);
        match previous.replace(kind) {
            Some(previous) if previous >= kind => Err(Reason::NotCanonical.into()),
            _ => Ok(()),
        }
    }

    fn push(&mut self, value: Value<'a>, size: usize) -> usize {
        let at = self.nodes.len();
        self.nodes.push(Node { value, size, next: at + 1 });
        at
    }

    /// Closes a node whose parts are all there.
    fn finish(&mut self, at: usize, size: usize) {
        let next = self.nodes.len();
        if let Some(node) = self.nodes.get_mut(at) {
            node.size = size;
            node.next = next;
        }
    }
}

fn unknown(key: &[u8]) -> NotTranscodable {
    // A foreign name goes into a message for people only: enough of it to recognise.
    let name: String = String::from_utf8_lossy(key).chars().take(40).collect();
    NotTranscodable::from(Reason::UnknownMember).inside(&name)
}
