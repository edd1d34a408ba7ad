//! SSZ → JSON text, into one buffer of a size known before.

use super::Fork;
use super::container::{Container, Form, Kind, Shown};
use super::decode::{Elements, Regions, available, measure, measure_container, present, status};
use super::error::{Defect, Malformed};
use crate::buffer::Buffer;
use bytes::Bytes;

/// The JSON of a container, from its SSZ: members in the order of the Engine API's structures, no
/// white space, lower-case digits, absent values as `null`.
///
/// A response whose JSON is a bare array (bodies, blobs) gives that array.
///
/// # Errors
///
/// [`Malformed`] if [`check`](super::check) would say so.
pub fn to_json(container: &Container, fork: Fork, ssz: &[u8]) -> Result<Bytes, Malformed> {
    let mut out = Out::new(measure_container(container, fork, ssz)?);
    match container.form() {
        Form::Object => print_container(container, fork, ssz, &mut out)?,
        Form::OnlyField => {
            let regions = Regions::of(container, fork, ssz)?;
            for (row, field) in container.fields(fork) {
                if let Some(region) = regions.get(row) {
                    print(&field.kind, fork, region, &mut out)?;
                }
            }
        }
    }
    Ok(out.finish())
}

/// The JSON of one member of a container, named as in JSON, after the check of the whole body:
/// `executionPayload` of a BuiltPayload is the result of `engine_getPayloadV1`.
///
/// # Errors
///
/// [`Malformed`] if [`check`](super::check) would say so, and with [`Defect::NoSuchMember`] if the
/// container has no such member at that fork.
pub fn member_to_json(
    container: &Container,
    fork: Fork,
    ssz: &[u8],
    member: &str,
) -> Result<Bytes, Malformed> {
    measure_container(container, fork, ssz)?;
    let regions = Regions::of(container, fork, ssz)?;
    let (field, region) = container
        .member(member.as_bytes(), fork)
        .and_then(|(row, field)| Some((field, regions.get(row)?)))
        .ok_or_else(|| Malformed::from(Defect::NoSuchMember).inside(member))?;
    let mut out = Out::new(measure(&field.kind, fork, region)?);
    print(&field.kind, fork, region, &mut out)?;
    Ok(out.finish())
}

fn print_container(
    container: &Container,
    fork: Fork,
    ssz: &[u8],
    out: &mut Out,
) -> Result<(), Malformed> {
    let regions = Regions::of(container, fork, ssz)?;
    let mut separator: &[u8] = b"{";
    for (row, field) in container.printed() {
        let region = match (field.shown, regions.get(row)) {
            (Shown::Never, _) | (Shown::WhereItExists, None) => continue,
            (Shown::NullWhenEmpty, region) => region.filter(|region| !region.is_empty()),
            (_, region) => region,
        };
        out.put(separator);
        separator = b",";
        out.put(b"\"");
        out.put(field.json.as_bytes());
        out.put(b"\":");
        match region {
            Some(region) => print(&field.kind, fork, region, out)?,
            None => out.put(b"null"),
        }
    }
    out.put(if separator == b"{" { b"{}" } else { b"}" });
    Ok(())
}

fn print(kind: &Kind, fork: Fork, region: &[u8], out: &mut Out) -> Result<(), Malformed> {
    match kind {
        Kind::Data(_) | Kind::Bytes(_) => out.put_data(region),
        Kind::U64 | Kind::U256 => out.put_quantity(region),
        Kind::Boolean => out.put(if region == [1] { b"true" } else { b"false" }),
        Kind::Status(names) => {
            out.put(b"\"");
            out.put(status(names, region)?.as_bytes());
            out.put(b"\"");
        }
        Kind::Text(_) => out.put_text(region),
        Kind::List(list) => {
            out.put(b"[");
            for (index, element) in Elements::of(list, fork, region)?.enumerate() {
                if index > 0 {
                    out.put(b",");
                }
                print(&list.element, fork, element?, out)?;
            }
            out.put(b"]");
        }
        Kind::Optional(inner) => match present(inner, fork, region)? {
            Some(value) => print(inner, fork, value, out)?,
            None => out.put(b"null"),
        },
        Kind::Container(container) => print_container(container, fork, region, out)?,
        Kind::Entry(container) => match available(container, fork, region)? {
            Some(contents) => print_container(container, fork, contents, out)?,
            None => out.put(b"null"),
        },
    }
    Ok(())
}

/// JSON text in the making. The buffer has its bound from the start, so that it never moves; pages
/// the text does not reach are never touched.
struct Out {
    buffer: Buffer,
    #[cfg(debug_assertions)]
    bound: usize,
}

impl Out {
    fn new(bound: usize) -> Self {
        let mut buffer = Buffer::of(bound);
        buffer.truncate(0);
        Self {
            buffer,
            #[cfg(debug_assertions)]
            bound,
        }
    }

    fn finish(self) -> Bytes {
        #[cfg(debug_assertions)]
        assert!(self.buffer.len() <= self.bound, "the measure fell short");
        self.buffer.freeze()
    }

    /// The next `size` bytes, to be written.
    fn claim(&mut self, size: usize) -> &mut [u8] {
        self.buffer.extend(size)
    }

    fn put(&mut self, text: &[u8]) {
        self.claim(text.len()).copy_from_slice(text);
    }

    fn put_data(&mut self, bytes: &[u8]) {
        self.put(b"\"0x");
        let digits = self.claim(2 * bytes.len());
        // Twice as many digits as bytes: the only thing the encoder can object to.
        let _ = const_hex::encode_to_slice(bytes, digits);
        self.put(b"\"");
    }

    /// A little-endian number of at most 32 bytes.
    fn put_quantity(&mut self, number: &[u8]) {
        let mut digits = [b'0'; 64];
        let pairs = digits.chunks_exact_mut(2).rev();
        for (pair, &byte) in pairs.zip(number) {
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
        let significant = digits.get(zeros.min(63)..).unwrap_or_default();
        self.put(b"\"0x");
        self.put(significant);
        self.put(b"\"");
    }

    fn put_text(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        // The Display of a JSON string is its text, escaped.
        self.put(serde_json::Value::from(text).to_string().as_bytes());
    }
}

const fn digit(nibble: u8) -> u8 {
    match nibble {
        0..=9 => b'0' + nibble,
        _ => b'a' + (nibble - 10),
    }
}
