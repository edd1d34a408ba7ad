//! SSZ → regions of fields and elements, and the check of a whole body.
//!
//! All sizes are taken from the bytes at hand: nothing is allocated because a length says so.

use super::Fork;
use super::container::{Container, Kind, Length, List, MAX_ROWS, OFFSET, Rule, Shown};
use super::error::{Defect, Malformed};

/// Checks that `ssz` is the valid SSZ of the container at that fork (simple-serialize.md, with the
/// bounds of refactor-ssz.md).
///
/// Contents of an entry that says `available = false` are to be ignored, and are.
///
/// # Errors
///
/// [`Malformed`] with the defect and the place.
pub fn check(container: &Container, fork: Fork, ssz: &[u8]) -> Result<(), Malformed> {
    measure_container(container, fork, ssz).map(|_| ())
}

/// The region of each field a container has, by row.
pub(super) struct Regions<'s>([Option<&'s [u8]>; MAX_ROWS]);

impl<'s> Regions<'s> {
    /// Splits a container into its regions; looks at nothing but the fixed part.
    pub(super) fn of(container: &Container, fork: Fork, ssz: &'s [u8]) -> Result<Self, Malformed> {
        let fixed_part = container.fixed_part(fork);
        let mut fixed = ssz.get(..fixed_part).ok_or(Defect::Short)?;
        let mut regions = Self([None; MAX_ROWS]);
        // The variable-size field whose end is not known yet: its row and its offset.
        let mut open: Option<(usize, usize)> = None;
        for (row, field) in container.fields(fork) {
            let within = |defect: Defect| Malformed::from(defect).inside(field.json);
            if let Some(size) = field.kind.fixed_size(fork) {
                regions.set(row, take(&mut fixed, size).ok_or_else(|| within(Defect::Short))?);
                continue;
            }
            let offset = take(&mut fixed, OFFSET)
                .and_then(read_offset)
                .ok_or_else(|| within(Defect::Short))?;
            match open {
                None if offset != fixed_part => return Err(within(Defect::BadOffset)),
                None => {}
                Some((row, start)) => {
                    let region = ssz.get(start..offset).ok_or_else(|| within(Defect::BadOffset))?;
                    regions.set(row, region);
                }
            }
            open = Some((row, offset));
        }
        match open {
            Some((row, start)) => regions.set(row, ssz.get(start..).ok_or(Defect::BadOffset)?),
            None if ssz.len() > fixed_part => return Err(Defect::Trailing.into()),
            None => {}
        }
        Ok(regions)
    }

    /// The region of the field in that row.
    pub(super) fn get(&self, row: usize) -> Option<&'s [u8]> {
        self.0.get(row).copied().flatten()
    }

    fn set(&mut self, row: usize, region: &'s [u8]) {
        if let Some(slot) = self.0.get_mut(row) {
            *slot = Some(region);
        }
    }
}

/// The elements of a list, each as its region or what is wrong with its offset.
pub(super) struct Elements<'s> {
    region: &'s [u8],
    layout: Layout,
    index: usize,
    count: usize,
}

#[derive(Clone, Copy)]
enum Layout {
    Fixed {
        size: usize,
    },
    /// The offset of the next element.
    Variable {
        offset: usize,
    },
}

impl<'s> Elements<'s> {
    /// The elements of `list` in `region`; looks at nothing but its length and its first offset.
    pub(super) fn of(list: &List, fork: Fork, region: &'s [u8]) -> Result<Self, Defect> {
        let elements = match list.element.fixed_size(fork) {
            Some(size) => Self::fixed(region, size)?,
            None => Self::variable(region)?,
        };
        match list.length {
            length if length.allows(elements.count) => Ok(elements),
            Length::UpTo(_) => Err(Defect::OverBound),
            Length::Exactly(_) => Err(Defect::BadLength),
        }
    }

    fn fixed(region: &'s [u8], size: usize) -> Result<Self, Defect> {
        if !region.len().is_multiple_of(size) {
            return Err(Defect::BadLength);
        }
        let count = region.len() / size.max(1);
        Ok(Self { region, layout: Layout::Fixed { size }, index: 0, count })
    }

    /// The elements of a list of variable-size elements, whatever they are.
    pub(super) fn variable(region: &'s [u8]) -> Result<Self, Defect> {
        let offset = if region.is_empty() {
            0
        } else {
            let offset = read_offset(region).ok_or(Defect::BadOffset)?;
            if offset == 0 || !offset.is_multiple_of(OFFSET) || offset > region.len() {
                return Err(Defect::BadOffset);
            }
            offset
        };
        Ok(Self { region, layout: Layout::Variable { offset }, index: 0, count: offset / OFFSET })
    }

    fn element(&mut self) -> Option<&'s [u8]> {
        match &mut self.layout {
            Layout::Fixed { size } => {
                let start = self.index.checked_mul(*size)?;
                self.region.get(start..start.checked_add(*size)?)
            }
            Layout::Variable { offset } => {
                let start = *offset;
                let end = if self.index + 1 == self.count {
                    self.region.len()
                } else {
                    read_offset(self.region.get((self.index + 1) * OFFSET..)?)?
                };
                *offset = end;
                self.region.get(start..end)
            }
        }
    }
}

impl<'s> Iterator for Elements<'s> {
    type Item = Result<&'s [u8], Defect>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.index == self.count {
            return None;
        }
        let element = self.element().ok_or(Defect::BadOffset);
        self.index = if element.is_ok() { self.index + 1 } else { self.count };
        Some(element)
    }
}

/// The value of an optional, or `None` if it is absent.
pub(super) fn present<'s>(
    inner: &Kind,
    fork: Fork,
    region: &'s [u8],
) -> Result<Option<&'s [u8]>, Defect> {
    match inner.fixed_size(fork) {
        _ if region.is_empty() => Ok(None),
        Some(size) if region.len() == size => Ok(Some(region)),
        Some(_) => Err(Defect::BadOptional),
        None => {
            let (offset, value) = region.split_at_checked(OFFSET).ok_or(Defect::BadOptional)?;
            if read_offset(offset) == Some(OFFSET) {
                Ok(Some(value))
            } else {
                Err(Defect::BadOptional)
            }
        }
    }
}

/// The contents of an entry, or `None` if it is unavailable, whatever else it then holds.
pub(super) fn available<'s>(
    container: &Container,
    fork: Fork,
    region: &'s [u8],
) -> Result<Option<&'s [u8]>, Defect> {
    let (available, rest) = region.split_first().ok_or(Defect::Short)?;
    match available {
        0 => Ok(None),
        1 if container.fixed_size(fork).is_some() => Ok(Some(rest)),
        1 => {
            let (offset, contents) = rest.split_at_checked(OFFSET).ok_or(Defect::Short)?;
            if read_offset(offset) == Some(1 + OFFSET) {
                Ok(Some(contents))
            } else {
                Err(Defect::BadOffset)
            }
        }
        _ => Err(Defect::BadBoolean),
    }
}

/// Checks a container; gives the most bytes its JSON can have.
pub(super) fn measure_container(
    container: &Container,
    fork: Fork,
    ssz: &[u8],
) -> Result<usize, Malformed> {
    let regions = Regions::of(container, fork, ssz)?;
    let mut size = 2;
    for (row, field) in container.rows() {
        let value = match regions.get(row) {
            Some(region) => measure(&field.kind, fork, region)
                .map_err(|error| error.inside(field.json))?
                .max(NULL),
            None => NULL,
        };
        if field.shown != Shown::Never {
            size += "\"\":,".len() + field.json.len() + value;
        }
    }
    if container.rule() == Rule::SamePositions {
        check_positions(container, fork, &regions)?;
    }
    Ok(size)
}

const NULL: usize = "null".len();

/// Checks a value; gives the most bytes its JSON can have.
pub(super) fn measure(kind: &Kind, fork: Fork, region: &[u8]) -> Result<usize, Malformed> {
    const QUOTES_AND_PREFIX: usize = "\"0x\"".len();
    let size = match kind {
        Kind::Data(_) | Kind::U64 | Kind::U256 => QUOTES_AND_PREFIX + 2 * region.len(),
        Kind::Boolean => match region {
            [0 | 1] => "false".len(),
            _ => return Err(Defect::BadBoolean.into()),
        },
        Kind::Status(names) => QUOTES_AND_PREFIX + status(names, region)?.len(),
        Kind::Bytes(max) if region.len() > *max => return Err(Defect::OverBound.into()),
        Kind::Bytes(_) => QUOTES_AND_PREFIX + 2 * region.len(),
        Kind::Text(max) if region.len() > *max => return Err(Defect::OverBound.into()),
        // At worst each byte is a control character and becomes \u00XX.
        Kind::Text(_) => QUOTES_AND_PREFIX + 6 * region.len(),
        Kind::List(list) => {
            let mut size = "[]".len();
            for (index, element) in Elements::of(list, fork, region)?.enumerate() {
                size += 1 + element
                    .map_err(Malformed::from)
                    .and_then(|element| measure(&list.element, fork, element))
                    .map_err(|error| error.at(index))?;
            }
            size
        }
        Kind::Optional(inner) => match present(inner, fork, region)? {
            Some(value) => measure(inner, fork, value)?,
            None => NULL,
        },
        Kind::Container(container) => measure_container(container, fork, region)?,
        Kind::Entry(container) => match available(container, fork, region)? {
            Some(contents) => measure_container(container, fork, contents)?,
            None => NULL,
        },
    };
    Ok(size)
}

/// The name of a status.
pub(super) fn status(
    names: &'static [&'static str],
    region: &[u8],
) -> Result<&'static str, Defect> {
    match region {
        [status] => names.get(usize::from(*status)).copied().ok_or(Defect::BadStatus),
        _ => Err(Defect::BadStatus),
    }
}

/// Checks that all lists of optionals of a container have one length, and their absent elements in
/// the same places.
fn check_positions(
    container: &Container,
    fork: Fork,
    regions: &Regions<'_>,
) -> Result<(), Malformed> {
    let mut lists = container.fields(fork).filter_map(|(row, _)| {
        let elements = Elements::variable(regions.get(row)?).ok()?;
        Some(elements.map(|element| element.is_ok_and(<[u8]>::is_empty)))
    });
    let Some(first) = lists.next() else { return Ok(()) };
    let first: Vec<bool> = first.collect();
    for list in lists {
        if !list.eq(first.iter().copied()) {
            return Err(Defect::Mismatch.into());
        }
    }
    Ok(())
}

fn take<'s>(from: &mut &'s [u8], size: usize) -> Option<&'s [u8]> {
    let (taken, rest) = from.split_at_checked(size)?;
    *from = rest;
    Some(taken)
}

fn read_offset(bytes: &[u8]) -> Option<usize> {
    let offset = bytes.first_chunk::<OFFSET>()?;
    usize::try_from(u32::from_le_bytes(*offset)).ok()
}
