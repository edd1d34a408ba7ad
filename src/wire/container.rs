//! What a row of the schema table can say.

use std::fmt;

use super::Fork;

/// Bytes of an SSZ offset.
pub(super) const OFFSET: usize = 4;

/// The most rows a container may have in the table.
pub(super) const MAX_ROWS: usize = 24;

/// One SSZ container of the REST-SSZ Engine API, with its JSON form, over all forks.
///
/// Taken from [`schema`](super::schema); opaque outside.
pub struct Container {
    name: &'static str,
    fields: &'static [Field],
    form: Form,
    rule: Rule,
    printed_last: Option<&'static str>,
}

/// What the JSON of a container is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// An object with a member per field.
    Object,
    /// The JSON of its only field: the Engine API answers with a bare array.
    OnlyField,
}

/// What must hold between the fields of a container.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Nothing.
    None,
    /// All fields are lists of optionals of one length, with the absent ones in the same places.
    SamePositions,
}

impl Container {
    /// A container with these fields, in SSZ order.
    pub(super) const fn new(name: &'static str, fields: &'static [Field]) -> Self {
        assert!(fields.len() <= MAX_ROWS, "raise MAX_ROWS");
        Self { name, fields, form: Form::Object, rule: Rule::None, printed_last: None }
    }

    /// The same, whose JSON is that of its only field.
    pub(super) const fn bare(self) -> Self {
        assert!(self.fields.len() == 1, "only a container of one field has a bare form");
        Self { form: Form::OnlyField, ..self }
    }

    /// The same, whose fields must obey `rule`.
    pub(super) const fn obeying(self, rule: Rule) -> Self {
        Self { rule, ..self }
    }

    /// The same, where JSON puts `member` last although SSZ has it earlier.
    pub(super) const fn printing_last(self, member: &'static str) -> Self {
        Self { printed_last: Some(member), ..self }
    }

    /// The container's name, as refactor-ssz.md writes it.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    pub(super) const fn form(&self) -> Form {
        self.form
    }

    pub(super) const fn rule(&self) -> Rule {
        self.rule
    }

    /// All rows with their numbers, in SSZ order, whatever the fork.
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, &'static Field)> {
        self.fields.iter().enumerate()
    }

    /// The fields at `fork` with their row numbers, in SSZ order.
    pub(super) fn fields(&self, fork: Fork) -> impl Iterator<Item = (usize, &'static Field)> {
        self.rows().filter(move |(_, field)| field.exists(fork))
    }

    /// All rows with their numbers, in the order JSON prints them.
    pub(super) fn printed(&self) -> impl Iterator<Item = (usize, &'static Field)> {
        let last = self.printed_last;
        let is_last = move |field: &Field| last == Some(field.json);
        self.rows()
            .filter(move |(_, field)| !is_last(field))
            .chain(self.rows().filter(move |(_, field)| is_last(field)))
    }

    /// The row of a JSON member: that of a field at `fork` if there is one, else one of another
    /// fork.
    pub(super) fn member(&self, name: &[u8], fork: Fork) -> Option<(usize, &'static Field)> {
        let named = |(_, field): &(usize, &'static Field)| field.json.as_bytes() == name;
        self.fields(fork).find(named).or_else(|| self.rows().find(named))
    }

    /// Bytes of the fixed part at `fork`, offsets included.
    pub(super) fn fixed_part(&self, fork: Fork) -> usize {
        self.fields(fork).map(|(_, field)| field.kind.fixed_size(fork).unwrap_or(OFFSET)).sum()
    }

    /// Bytes of the container if it is of fixed size at `fork`.
    pub(super) fn fixed_size(&self, fork: Fork) -> Option<usize> {
        self.fields(fork).map(|(_, field)| field.kind.fixed_size(fork)).sum()
    }
}

impl fmt::Debug for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Container").field("name", &self.name).finish_non_exhaustive()
    }
}

/// One field of a container.
pub(super) struct Field {
    /// The name in SSZ: refactor-ssz.md.
    pub(super) ssz: &'static str,
    /// The name in JSON: the Engine API's.
    pub(super) json: &'static str,
    /// What it holds.
    pub(super) kind: Kind,
    /// How JSON shows it.
    pub(super) shown: Shown,
    since: Fork,
    before: Option<Fork>,
}

/// How JSON shows a field.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// A member at the forks that have the field.
    WhereItExists,
    /// A member always; `null` at the forks that lack the field.
    Always,
    /// As `Always`, and `null` also for no bytes at all.
    NullWhenEmpty,
    /// Not at all.
    Never,
}

impl Field {
    /// A field that exists from Paris on.
    pub(super) const fn new(ssz: &'static str, json: &'static str, kind: Kind) -> Self {
        Self { ssz, json, kind, shown: Shown::WhereItExists, since: Fork::Paris, before: None }
    }

    /// The same, from `fork` on.
    pub(super) const fn since(self, fork: Fork) -> Self {
        Self { since: fork, ..self }
    }

    /// The same, up to the fork before `fork`.
    pub(super) const fn before(self, fork: Fork) -> Self {
        Self { before: Some(fork), ..self }
    }

    /// The same, shown another way.
    pub(super) const fn shown(self, shown: Shown) -> Self {
        Self { shown, ..self }
    }

    /// Whether the container has the field at `fork`.
    pub(super) fn exists(&self, fork: Fork) -> bool {
        self.since <= fork && self.before.is_none_or(|before| fork < before)
    }
}

/// What a field or an element holds.
pub(super) enum Kind {
    /// `ByteVector[N]`; JSON: DATA of exactly that many bytes.
    Data(usize),
    /// `uint64`; JSON: QUANTITY.
    U64,
    /// `uint256`; JSON: QUANTITY.
    U256,
    /// `boolean`; JSON: `true` or `false`.
    Boolean,
    /// `uint8` of an enumeration; JSON: the name at that index.
    Status(&'static [&'static str]),
    /// `ByteList[N]`; JSON: DATA of at most that many bytes.
    Bytes(usize),
    /// `List[byte, N]` of text; JSON: a string.
    Text(usize),
    /// `List[T, N]`; JSON: an array.
    List(&'static List),
    /// `List[T, 1]`; JSON: the value, or `null`.
    Optional(&'static Kind),
    /// A container; JSON: an object.
    Container(&'static Container),
    /// A pair of `available: boolean` and a container; JSON: the container, or `null`.
    Entry(&'static Container),
}

impl Kind {
    /// Bytes of a value if all values have as many at `fork`; `None` for variable-size kinds.
    pub(super) fn fixed_size(&self, fork: Fork) -> Option<usize> {
        match self {
            Self::Data(size) => Some(*size),
            Self::U64 => Some(8),
            Self::U256 => Some(32),
            Self::Boolean | Self::Status(_) => Some(1),
            Self::Bytes(_) | Self::Text(_) | Self::List(_) | Self::Optional(_) => None,
            Self::Container(container) => container.fixed_size(fork),
            Self::Entry(container) => container.fixed_size(fork).map(|size| 1 + size),
        }
    }

    /// Bytes of the zero value.
    pub(super) fn zero_size(&self, fork: Fork) -> usize {
        match self {
            Self::Container(container) => {
                container.fields(fork).map(|(_, field)| field.kind.placed_zero_size(fork)).sum()
            }
            Self::Entry(container) => 1 + Self::Container(container).placed_zero_size(fork),
            _ => self.fixed_size(fork).unwrap_or(0),
        }
    }

    /// The same, with the offset that points at it if it needs one.
    fn placed_zero_size(&self, fork: Fork) -> usize {
        let offset = if self.fixed_size(fork).is_some() { 0 } else { OFFSET };
        offset + self.zero_size(fork)
    }
}

/// A list.
pub(super) struct List {
    /// What it holds.
    pub(super) element: Kind,
    /// How many.
    pub(super) length: Length,
    /// What JSON must obey to be carried.
    pub(super) order: Order,
}

impl List {
    /// A list of no more than `max` elements.
    pub(super) const fn up_to(max: usize, element: Kind) -> Self {
        Self { element, length: Length::UpTo(max), order: Order::Any }
    }

    /// A list that is of any use only with `count` elements, whatever its SSZ bound says.
    pub(super) const fn of(count: usize, element: Kind) -> Self {
        Self { element, length: Length::Exactly(count), order: Order::Any }
    }

    /// The same, in that order.
    pub(super) const fn ordered(self, order: Order) -> Self {
        Self { order, ..self }
    }
}

/// How many elements a list may have.
#[derive(Clone, Copy)]
pub(super) enum Length {
    /// At most.
    UpTo(usize),
    /// Neither more nor fewer.
    Exactly(usize),
}

impl Length {
    /// The most elements a list may have.
    pub(super) const fn max(self) -> usize {
        match self {
            Self::UpTo(max) | Self::Exactly(max) => max,
        }
    }

    /// Whether a list may have `count` elements.
    pub(super) const fn allows(self, count: usize) -> bool {
        match self {
            Self::UpTo(max) => count <= max,
            Self::Exactly(exact) => count == exact,
        }
    }
}

/// What JSON must obey to be carried.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Nothing.
    Any,
    /// Each element has a type byte and data, and the type bytes ascend strictly (EIP-7685). The
    /// Engine API answers anything else with an error, which the REST API does not have: the EL
    /// must be asked in JSON (prague.md, `engine_newPayloadV4`).
    AscendingTypes,
}
