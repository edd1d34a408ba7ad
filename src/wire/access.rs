//! One field of a body, unparsed.

use super::Fork;
use super::container::{Container, Kind};
use super::decode::{Elements, Regions, present};

/// The raw region of a field of a valid body, by names from the outside in, in JSON or SSZ
/// spelling: `["payload", "timestamp"]` of an envelope is 8 bytes, little-endian.
///
/// A path may lead through containers and optionals, not through lists and entries. The region of
/// an optional is that of a `List[T, 1]`: no bytes if it is absent, and if its value is of variable
/// size, four bytes of offset before the value. An empty path is the whole body.
///
/// `None` if the container has no such field at that fork, or the way to it is not valid SSZ.
pub fn field<'a>(
    container: &Container,
    fork: Fork,
    ssz: &'a [u8],
    path: &[&str],
) -> Option<&'a [u8]> {
    let Some((name, path)) = path.split_first() else { return Some(ssz) };
    let (row, field) =
        container.fields(fork).find(|(_, field)| field.json == *name || field.ssz == *name)?;
    let region = Regions::of(container, fork, ssz).ok()?.get(row)?;
    if path.is_empty() {
        return Some(region);
    }
    match &field.kind {
        Kind::Container(inner) => self::field(inner, fork, region, path),
        Kind::Optional(kind @ Kind::Container(inner)) => {
            self::field(inner, fork, present(kind, fork, region).ok()??, path)
        }
        _ => None,
    }
}

/// The elements of the region of a list of variable-size elements (`transactions`, `entries` of
/// bodies), each as its own region. Stops at anything malformed.
pub fn elements(region: &[u8]) -> impl Iterator<Item = &[u8]> {
    Elements::variable(region).into_iter().flatten().map_while(Result::ok)
}
