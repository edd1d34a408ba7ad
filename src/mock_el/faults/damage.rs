//! Honest SSZ, made malformed in one named way.

use super::{
    Damage,
    shape::{Container, OFFSET, Shape, assemble, offset_at},
};

/// Damages that would make a body longer than this, in bytes, are not done.
const GROWTH: usize = 32 << 20;

/// The damaged body; `None` if the container has no place for that damage.
pub(in crate::mock_el) fn damaged(
    damage: Damage,
    container: Container,
    bytes: &[u8],
) -> Option<Vec<u8>> {
    let shape = container.shape();
    let survey = Survey::of(shape, bytes)?;
    match damage {
        Damage::TruncatedFixed => {
            let Shape::Container(fields) = shape else { return None };
            let fixed: usize = fields.iter().map(Shape::head_size).sum();
            bytes.get(..fixed.checked_sub(1)?).map(<[u8]>::to_vec)
        }
        Damage::TruncatedTail => {
            let target = survey.groups.iter().filter_map(|group| group.last_target(bytes)).max()?;
            bytes.get(..target.checked_sub(1)?).map(<[u8]>::to_vec)
        }
        Damage::ExtraTail => {
            if absorbs(shape, bytes)? {
                return None;
            }
            Some([bytes, &[0]].concat())
        }
        Damage::FirstOffset => {
            let at = *survey.groups.first()?.offsets.first()?;
            with_offset(bytes, at, offset_at(bytes, at)?.checked_add(1)?)
        }
        Damage::OffsetsOutOfOrder => {
            let pair = |group: &Group| {
                let mut pairs = group.offsets.iter().zip(group.offsets.iter().skip(1));
                pairs.find_map(|(one, other)| {
                    let values = (offset_at(bytes, *one)?, offset_at(bytes, *other)?);
                    (values.0 < values.1).then_some(((*one, values.1), (*other, values.0)))
                })
            };
            let (one, other) = survey.groups.iter().find_map(pair)?;
            with_offset(&with_offset(bytes, one.0, one.1)?, other.0, other.1)
        }
        Damage::OffsetPastEnd => {
            let group = survey.groups.first()?;
            with_offset(bytes, *group.offsets.last()?, bytes.len().checked_add(1)?)
        }
        Damage::BooleanTwo => {
            let mut bytes = bytes.to_vec();
            *bytes.get_mut(*survey.bools.first()?)? = 2;
            Some(bytes)
        }
        Damage::OptionalTwo => {
            let mut done = false;
            rebuilt(shape, bytes, &mut |shape, value| {
                let Shape::Optional(element) = shape else { return None };
                if std::mem::replace(&mut done, true) {
                    return None;
                }
                longer(shape, element, value, 2)
            })
            .filter(|_| done)
        }
        Damage::OverBound => over_bound(shape, bytes),
    }
}

/// What can be broken in a value.
#[derive(Debug, Default)]
struct Survey {
    /// Containers and lists with offsets, outermost first.
    groups: Vec<Group>,
    /// Where booleans stand.
    bools: Vec<usize>,
}

#[derive(Debug)]
struct Group {
    base: usize,
    /// Where its offsets stand in the whole body.
    offsets: Vec<usize>,
}

impl Group {
    /// Where in the whole body the last offset points.
    fn last_target(&self, bytes: &[u8]) -> Option<usize> {
        self.base.checked_add(offset_at(bytes, *self.offsets.last()?)?)
    }
}

impl Survey {
    fn of(shape: &'static Shape, bytes: &[u8]) -> Option<Self> {
        let mut survey = Self::default();
        survey.visit(shape, bytes, 0)?;
        Some(survey)
    }

    fn visit(&mut self, shape: &'static Shape, value: &[u8], base: usize) -> Option<()> {
        if matches!(shape, Shape::Bool) {
            self.bools.push(base);
        }
        let split = shape.parts(value)?;
        if !split.offsets.is_empty() {
            let offsets = split.offsets.iter().map(|at| base + at).collect();
            self.groups.push(Group { base, offsets });
        }
        for (shape, range) in split.parts {
            let start = range.start;
            self.visit(shape, value.get(range)?, base + start)?;
        }
        Some(())
    }
}

/// Whether one more byte at the end could be taken for a part of the value.
fn absorbs(shape: &'static Shape, value: &[u8]) -> Option<bool> {
    if matches!(shape, Shape::Bytes(_)) {
        return Some(true);
    }
    let split = shape.parts(value)?;
    let last = split.parts.into_iter().rfind(|(shape, _)| shape.fixed_size().is_none());
    match last {
        Some((shape, range)) => absorbs(shape, value.get(range)?),
        None => Some(false),
    }
}

fn with_offset(bytes: &[u8], at: usize, value: usize) -> Option<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    let place = bytes.get_mut(at..at.checked_add(OFFSET)?)?;
    place.copy_from_slice(&u32::try_from(value).ok()?.to_le_bytes());
    Some(bytes)
}

/// A list with elements added up to a count.
fn longer(
    shape: &'static Shape,
    element: &'static Shape,
    value: &[u8],
    count: usize,
) -> Option<Vec<u8>> {
    let mut parts: Vec<(&Shape, Vec<u8>)> = Vec::new();
    for (shape, range) in shape.parts(value)?.parts {
        parts.push((shape, value.get(range)?.to_vec()));
    }
    while parts.len() < count {
        parts.push((element, element.smallest()));
    }
    Some(assemble(parts))
}

/// One list above its bound: the one that takes the fewest bytes.
fn over_bound(shape: &'static Shape, bytes: &[u8]) -> Option<Vec<u8>> {
    let growth = |shape: &'static Shape, value: &[u8]| match shape {
        Shape::Bytes(bound) => (*bound).checked_add(1)?.checked_sub(value.len()),
        Shape::List(element, bound) => {
            let missing = bound.checked_add(1)?.checked_sub(shape.parts(value)?.parts.len())?;
            let each = element.fixed_size().unwrap_or(OFFSET + element.smallest().len());
            missing.checked_mul(each)
        }
        // One that is absent can be there, and too long.
        Shape::Optional(Shape::Bytes(bound)) if value.is_empty() => bound.checked_add(1),
        _ => None,
    };
    let mut cheapest: Option<(usize, usize)> = None;
    let mut number = 0;
    rebuilt(shape, bytes, &mut |shape, value| {
        if let Some(growth) = growth(shape, value)
            && growth <= GROWTH
            && cheapest.is_none_or(|(least, _)| growth < least)
        {
            cheapest = Some((growth, number));
        }
        number += 1;
        None
    })?;
    let (_, chosen) = cheapest?;
    let mut number = 0;
    rebuilt(shape, bytes, &mut |shape, value| {
        number += 1;
        if number - 1 != chosen {
            return None;
        }
        match shape {
            Shape::Bytes(bound) => {
                let mut longer = value.to_vec();
                longer.resize(bound.checked_add(1)?, 0);
                Some(longer)
            }
            Shape::List(element, bound) => longer(shape, element, value, bound.checked_add(1)?),
            Shape::Optional(element @ Shape::Bytes(bound)) => {
                Some(assemble(vec![(*element, vec![0; bound.checked_add(1)?])]))
            }
            _ => None,
        }
    })
}

/// The same value with the parts that `edit` wants replaced, and all offsets right.
pub(super) fn rebuilt(
    shape: &'static Shape,
    value: &[u8],
    edit: &mut impl FnMut(&'static Shape, &[u8]) -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    if let Some(edited) = edit(shape, value) {
        return Some(edited);
    }
    let split = shape.parts(value)?;
    if split.parts.is_empty() {
        return Some(value.to_vec());
    }
    let mut parts: Vec<(&Shape, Vec<u8>)> = Vec::new();
    for (shape, range) in split.parts {
        parts.push((shape, rebuilt(shape, value.get(range)?, edit)?));
    }
    Some(assemble(parts))
}
