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
    source: Source<'a>,
    nodes: Vec<Node>,
    strings: Vec<Box<str>>,
    /// Bytes of the texts up to the end of the one that is being parsed.
    end: usize,
}

/// Texts of less than 4 GiB have no value that does not fit.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) value: Value,
    size: u32,
    next: u32,
}

// A list of empty elements takes five bytes of text for each, and a node.
const _: () = assert!(size_of::<Node>() <= 16, "a node for each element");

impl Node {
    /// Bytes of the SSZ.
    pub(super) const fn size(self) -> usize {
        self.size as usize
    }

    /// The index after the node's last part.
    pub(super) const fn next(self) -> usize {
        self.next as usize
    }
}

/// Digits are given by where they are in the texts, one behind the other.
#[derive(Clone, Copy)]
pub(super) enum Value {
    /// Hexadecimal digits of as many bytes as the node's size.
    Data { at: u32 },
    /// Hexadecimal digits of a number, most significant first.
    Quantity { at: u32, digits: u8 },
    /// A boolean or a status.
    Byte(u8),
    /// The index of a string.
    Text(u32),
    /// The zero value of its kind: an absent optional, an unavailable entry, no bytes.
    Zero,
    /// An optional or an entry with a value, which follows.
    Present,
    /// That many elements follow one after the other.
    List(u32),
    /// One slot per row follows, then the fields in the order the JSON has them.
    Container,
    /// A row whose field does not exist.
    Empty,
    /// The index of the row's field.
    Slot(u32),
}

impl<'a> Tree<'a> {
    /// Parses all of `source` as `container`.
    pub(super) fn parse(
        container: &Container,
        fork: Fork,
        source: Source<'a>,
    ) -> Result<Self, NotTranscodable> {
        let mut tree = Tree { fork, source, nodes: Vec::new(), strings: Vec::new(), end: 0 };
        fits(tree.texts().iter().map(|text| text.len()).sum())?;
        match source {
            Source::Object(text) if container.form() == Form::Object => {
                tree.end = text.len();
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
    pub(super) fn node(&self, index: usize) -> Option<Node> {
        self.nodes.get(index).copied()
    }

    /// `count` digits of the texts from `at` on.
    pub(super) fn digits(&self, at: u32, count: usize) -> &'a [u8] {
        let mut at = at as usize;
        for text in self.texts() {
            match at.checked_sub(text.len()) {
                Some(beyond) => at = beyond,
                None => return text.get(at..at + count).unwrap_or_default(),
            }
        }
        &[]
    }

    /// The string of that index.
    pub(super) fn string(&self, index: u32) -> &str {
        self.strings.get(index as usize).map_or("", |string| string)
    }

    fn texts(&self) -> &[&'a [u8]] {
        match &self.source {
            Source::Object(text) => std::slice::from_ref(text),
            Source::Fields(texts) => texts,
        }
    }

    /// Where the digits are that end the string which `cursor` has just passed.
    fn position(&self, cursor: &Cursor<'_>, digits: &[u8]) -> Result<u32, Reason> {
        let behind = cursor.remaining() + "\"".len() + digits.len();
        fits(self.end.saturating_sub(behind))
    }

    fn parameters(
        &mut self,
        container: &Container,
        texts: &[&'a [u8]],
    ) -> Result<(), NotTranscodable> {
        let at = self.begin_container(container)?;
        let mut texts = texts.iter();
        for (row, field) in container.fields(self.fork) {
            let within = |error: NotTranscodable| error.inside(field.json);
            // Optional parameters at the end may be left out; others are missed at the end.
            let Some(text) = texts.next() else { break };
            self.end += text.len();
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
        let at = self.begin_container(container)?;
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

    fn begin_container(&mut self, container: &Container) -> Result<usize, Reason> {
        let at = self.push(Value::Container, 0)?;
        for _ in container.rows() {
            self.push(Value::Empty, 0)?;
        }
        Ok(at)
    }

    fn field(
        &mut self,
        cursor: &mut Cursor<'a>,
        container: usize,
        row: usize,
        field: &Field,
    ) -> Result<(), NotTranscodable> {
        self.fill(container, row)?;
        if field.shown == Shown::NullWhenEmpty && cursor.null() {
            self.push(Value::Zero, 0)?;
            return Ok(());
        }
        self.value(cursor, &field.kind)
    }

    /// Notes that the next node is the field of that row.
    fn fill(&mut self, container: usize, row: usize) -> Result<(), Reason> {
        let next = fits(self.nodes.len())?;
        if let Some(slot) = self.nodes.get_mut(container + 1 + row) {
            slot.value = Value::Slot(next);
        }
        Ok(())
    }

    /// The index of the field of that row.
    pub(super) fn slot_index(&self, container: usize, row: usize) -> Option<usize> {
        match self.node(container + 1 + row)?.value {
            Value::Slot(field) => Some(field as usize),
            _ => None,
        }
    }

    fn slot(&self, container: usize, row: usize) -> Option<Node> {
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
                self.fill(at, row)?;
                self.push(Value::Zero, 0)?;
            }
            if field.kind.fixed_size(fork).is_none() {
                size += self.slot(at, row).map_or(0, Node::size);
            }
        }
        self.finish(at, size)?;
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
    fn children(&self, index: usize) -> impl Iterator<Item = Node> {
        let end = self.node(index).map_or(0, Node::next);
        let mut child = index + 1;
        std::iter::from_fn(move || {
            let node = (child < end).then(|| self.node(child)).flatten()?;
            child = node.next();
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
                let at = self.position(cursor, digits)?;
                self.push(Value::Data { at }, *size)?;
            }
            Kind::Bytes(max) => {
                let digits = data_digits(cursor.string()?)?;
                if digits.len() / 2 > *max {
                    return Err(Reason::OverBound.into());
                }
                let at = self.position(cursor, digits)?;
                self.push(Value::Data { at }, digits.len() / 2)?;
            }
            Kind::U64 => self.quantity(cursor, 64)?,
            Kind::U256 => self.quantity(cursor, 256)?,
            Kind::Boolean => {
                self.push(Value::Byte(cursor.boolean()?.into()), 1)?;
            }
            Kind::Status(names) => {
                let name = cursor.string()?;
                let status = (0..).zip(*names).find(|(_, known)| known.as_bytes() == name);
                let (byte, _) = status.ok_or(Reason::WrongType)?;
                self.push(Value::Byte(byte), 1)?;
            }
            Kind::Text(max) => {
                let text: Box<str> =
                    serde_json::from_slice(cursor.raw_string()?).map_err(|_| Reason::BadJson)?;
                if text.len() > *max {
                    return Err(Reason::OverBound.into());
                }
                let size = text.len();
                let index = fits(self.strings.len())?;
                self.strings.push(text);
                self.push(Value::Text(index), size)?;
            }
            Kind::List(list) => self.list(cursor, list)?,
            Kind::Container(container) => self.container(cursor, container)?,
            Kind::Optional(_) | Kind::Entry(_) if cursor.null() => {
                let size = kind.zero_size(self.fork);
                self.push(Value::Zero, size)?;
            }
            Kind::Optional(inner) => {
                let at = self.push(Value::Present, 0)?;
                self.value(cursor, inner)?;
                self.finish(at, self.placed(at + 1, inner))?;
            }
            Kind::Entry(container) => {
                let at = self.push(Value::Present, 0)?;
                self.container(cursor, container)?;
                self.finish(at, 1 + self.placed(at + 1, &Kind::Container(container)))?;
            }
        }
        Ok(())
    }

    fn quantity(&mut self, cursor: &mut Cursor<'a>, bits: usize) -> Result<(), Reason> {
        let digits = quantity_digits(cursor.string()?, bits)?;
        let at = self.position(cursor, digits)?;
        let count = u8::try_from(digits.len()).map_err(|_| Reason::OverBound)?;
        self.push(Value::Quantity { at, digits: count }, bits / 8)?;
        Ok(())
    }

    /// Bytes of the node at `index`, with the offset that points at it if it needs one.
    fn placed(&self, index: usize, kind: &Kind) -> usize {
        let offset = if kind.fixed_size(self.fork).is_some() { 0 } else { OFFSET };
        offset + self.node(index).map_or(0, Node::size)
    }

    fn list(&mut self, cursor: &mut Cursor<'a>, list: &List) -> Result<(), NotTranscodable> {
        cursor.open(b'[')?;
        let at = self.push(Value::List(0), 0)?;
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
        self.finish(at, size)?;
        let count = fits(count)?;
        if let Some(node) = self.nodes.get_mut(at) {
            node.value = Value::List(count);
        }
        Ok(())
    }

    /// Refuses a request without data, or whose type byte is not above that of the previous one.
    fn ascends(&self, index: usize, previous: &mut Option<u8>) -> Result<(), NotTranscodable> {
        let digits = match self.node(index) {
            Some(Node { value: Value::Data { at }, size: 2.., .. }) => self.digits(at, 2),
            _ => &[],
        };
        let [high, low] = digits else { return Err(Reason::WrongLength.into()) };
        let kind = nibble(*high) << 4 | nibble(*low);
        match previous.replace(kind) {
            Some(previous) if previous >= kind => Err(Reason::NotCanonical.into()),
            _ => Ok(()),
        }
    }

    fn push(&mut self, value: Value, size: usize) -> Result<usize, Reason> {
        let at = self.nodes.len();
        self.nodes.push(Node { value, size: fits(size)?, next: fits(at + 1)? });
        Ok(at)
    }

    /// Closes a node whose parts are all there.
    fn finish(&mut self, at: usize, size: usize) -> Result<(), Reason> {
        let (size, next) = (fits(size)?, fits(self.nodes.len())?);
        if let Some(node) = self.nodes.get_mut(at) {
            node.size = size;
            node.next = next;
        }
        Ok(())
    }
}

/// Refuses what 32 bits cannot say; offsets of SSZ have no more either.
fn fits(number: usize) -> Result<u32, Reason> {
    u32::try_from(number).map_err(|_| Reason::OverBound)
}

fn unknown(key: &[u8]) -> NotTranscodable {
    // A foreign name goes into a message for people only: enough of it to recognise.
    let name: String = String::from_utf8_lossy(key).chars().take(40).collect();
    NotTranscodable::from(Reason::UnknownMember).inside(&name)
}
