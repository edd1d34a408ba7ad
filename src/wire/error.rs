//! Why a value did not pass: one type per direction, each with a label for metrics and a path for
//! people.

use std::error::Error;
use std::fmt;

/// Where in a value something is, from the outside in: `transactions[3]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Path(String);

impl Path {
    /// This path, seen from the container that holds it as `name`.
    fn inside(self, name: &str) -> Self {
        let joint = if self.0.is_empty() || self.0.starts_with('[') { "" } else { "." };
        Self(format!("{name}{joint}{}", self.0))
    }

    /// This path, seen from the list that holds it at `index`.
    fn at(self, index: usize) -> Self {
        self.inside(&format!("[{index}]"))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "{}: ", self.0) }
    }
}

/// Why JSON has no faithful SSZ form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// A member or parameter the container has at this fork is not there.
    Missing,
    /// A member or parameter the container does not have at this fork.
    UnknownMember,
    /// A member twice in one object.
    Duplicate,
    /// `null` where a value must be.
    Null,
    /// A value of another JSON type, or an unknown enumeration text.
    WrongType,
    /// A QUANTITY that is not in its only legal form, or execution requests out of order.
    NotCanonical,
    /// Not whole bytes of hexadecimal digits after `0x`.
    BadHex,
    /// DATA of another length than the field has.
    WrongLength,
    /// Longer than the SSZ bound, or a QUANTITY of more bits than the field has.
    OverBound,
    /// Cells and proofs of a blob that do not belong together.
    Mismatch,
    /// Not JSON.
    BadJson,
    /// An escape sequence in a member name or in a hexadecimal string.
    Escaped,
}

impl Reason {
    /// Every reason, for tables of metrics.
    pub const ALL: [Self; 12] = [
        Self::Missing,
        Self::UnknownMember,
        Self::Duplicate,
        Self::Null,
        Self::WrongType,
        Self::NotCanonical,
        Self::BadHex,
        Self::WrongLength,
        Self::OverBound,
        Self::Mismatch,
        Self::BadJson,
        Self::Escaped,
    ];

    /// A metric label, one of a fixed set.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::UnknownMember => "unknown_member",
            Self::Duplicate => "duplicate",
            Self::Null => "null",
            Self::WrongType => "wrong_type",
            Self::NotCanonical => "not_canonical",
            Self::BadHex => "bad_hex",
            Self::WrongLength => "wrong_length",
            Self::OverBound => "over_bound",
            Self::Mismatch => "mismatch",
            Self::BadJson => "bad_json",
            Self::Escaped => "escaped",
        }
    }

    const fn sentence(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::UnknownMember => "not a member at this fork",
            Self::Duplicate => "given twice",
            Self::Null => "null where a value must be",
            Self::WrongType => "of another type",
            Self::NotCanonical => "not in canonical form",
            Self::BadHex => "not whole bytes of hexadecimal digits after 0x",
            Self::WrongLength => "of another length than the field has",
            Self::OverBound => "larger than the field allows",
            Self::Mismatch => "cells and proofs that do not match",
            Self::BadJson => "not JSON",
            Self::Escaped => "holds an escape sequence",
        }
    }
}

/// JSON that has no faithful SSZ form. No error of the sender's: the call is to be relayed as it
/// came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotTranscodable {
    reason: Reason,
    path: Path,
}

impl NotTranscodable {
    /// What kind of obstacle it is.
    pub const fn reason(&self) -> Reason {
        self.reason
    }

    /// Where it is, by JSON names: `transactions[3]`. Empty for the value as a whole.
    pub fn path(&self) -> &str {
        &self.path.0
    }

    pub(super) fn inside(self, name: &str) -> Self {
        Self { path: self.path.inside(name), ..self }
    }

    pub(super) fn at(self, index: usize) -> Self {
        Self { path: self.path.at(index), ..self }
    }
}

impl From<Reason> for NotTranscodable {
    fn from(reason: Reason) -> Self {
        Self { reason, path: Path::default() }
    }
}

impl fmt::Display for NotTranscodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not transcodable: {}{}", self.path, self.reason.sentence())
    }
}

impl Error for NotTranscodable {}

/// What is wrong with an SSZ body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Defect {
    /// Fewer bytes than the fixed part.
    Short,
    /// Bytes after the end.
    Trailing,
    /// An offset into the fixed part, backwards, with a gap, or out of bounds.
    BadOffset,
    /// A boolean other than 00 and 01.
    BadBoolean,
    /// A status byte with no meaning here, `ACCEPTED` from forkchoice included.
    BadStatus,
    /// An `Optional` that is not `List[T, 1]` of no or one element.
    BadOptional,
    /// A length that is no multiple of the element's, or not the one the list must have.
    BadLength,
    /// More elements or bytes than the SSZ bound.
    OverBound,
    /// Cells and proofs of a blob that do not belong together.
    Mismatch,
    /// The asked member is not one the container prints at this fork. An error of the caller's.
    NoSuchMember,
}

impl Defect {
    /// Every defect, for tables of metrics.
    pub const ALL: [Self; 10] = [
        Self::Short,
        Self::Trailing,
        Self::BadOffset,
        Self::BadBoolean,
        Self::BadStatus,
        Self::BadOptional,
        Self::BadLength,
        Self::OverBound,
        Self::Mismatch,
        Self::NoSuchMember,
    ];

    /// A metric label, one of a fixed set.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Trailing => "trailing",
            Self::BadOffset => "bad_offset",
            Self::BadBoolean => "bad_boolean",
            Self::BadStatus => "bad_status",
            Self::BadOptional => "bad_optional",
            Self::BadLength => "bad_length",
            Self::OverBound => "over_bound",
            Self::Mismatch => "mismatch",
            Self::NoSuchMember => "no_such_member",
        }
    }

    const fn sentence(self) -> &'static str {
        match self {
            Self::Short => "shorter than its fixed part",
            Self::Trailing => "bytes after the end",
            Self::BadOffset => "offset out of place",
            Self::BadBoolean => "boolean other than 00 and 01",
            Self::BadStatus => "status with no meaning here",
            Self::BadOptional => "optional of neither no nor one element",
            Self::BadLength => "length that does not fit its elements",
            Self::OverBound => "larger than the field allows",
            Self::Mismatch => "cells and proofs that do not match",
            Self::NoSuchMember => "no such member at this fork",
        }
    }
}

/// A body that is not the valid SSZ of its container: a bad answer of the EL's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    defect: Defect,
    path: Path,
}

impl Malformed {
    /// What kind of defect it is.
    pub const fn defect(&self) -> Defect {
        self.defect
    }

    /// Where it is, by JSON names: `executionPayload.transactions[3]`. Empty for the body as a
    /// whole.
    pub fn path(&self) -> &str {
        &self.path.0
    }

    pub(super) fn inside(self, name: &str) -> Self {
        Self { path: self.path.inside(name), ..self }
    }

    pub(super) fn at(self, index: usize) -> Self {
        Self { path: self.path.at(index), ..self }
    }
}

impl From<Defect> for Malformed {
    fn from(defect: Defect) -> Self {
        Self { defect, path: Path::default() }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed SSZ: {}{}", self.path, self.defect.sentence())
    }
}

impl Error for Malformed {}
