//! Damage.

use crate::draw::Draw;

/// SSZ with one or two things wrong with it, or different.
pub fn ssz(body: &[u8], draw: &mut Draw<'_>) -> Vec<u8> {
    let mut body = body.to_vec();
    for _ in 0..=draw.byte() % 2 {
        mutate_ssz(&mut body, draw);
    }
    body
}

fn mutate_ssz(body: &mut Vec<u8>, draw: &mut Draw<'_>) {
    let len = body.len();
    // Fixed parts are in front, and bulk is dull.
    let near = len.min(700);
    match draw.byte() % 12 {
        0 => {
            let at = draw.below(near);
            if let Some(byte) = body.get_mut(at) {
                *byte ^= 1 << draw.below(8);
            }
        }
        1 => {
            let at = draw.below(len);
            if let Some(byte) = body.get_mut(at) {
                *byte = [0, 1, 2, 3, 4, 0xff][draw.below(6)];
            }
        }
        2 => body.truncate(len - draw.below(len.min(40) + 1)),
        3 => body.truncate(draw.below(near + 1)),
        4 => {
            let size = 1 + usize::from(draw.byte() % 48);
            body.extend(draw.fill(size));
        }
        5 => {
            let (from, to) = (draw.below(near + 1), draw.below(near + 1));
            body.drain(from.min(to)..from.max(to));
        }
        6 => {
            let (from, to) = (draw.below(near + 1), draw.below(near + 1));
            let piece = body[from.min(to)..from.max(to)].to_vec();
            let at = draw.below(len + 1);
            body.splice(at..at, piece);
        }
        _ => {
            // A word that may be an offset becomes another that may be one.
            let offsets: Vec<usize> = (0..near.saturating_sub(3))
                .filter(|&at| (1..=len).contains(&word(body, at)))
                .collect();
            let Some(&at) = offsets.get(draw.below(offsets.len())) else { return };
            let old = word(body, at);
            let new = match draw.byte() % 6 {
                0 => old + 4,
                1 => old.saturating_sub(4),
                2 => old + 1,
                3 => old.saturating_sub(1),
                4 => draw.below(len + 2),
                _ => [0, 4, len, len + 1, usize::MAX >> 33][draw.below(5)],
            };
            let new = u32::try_from(new).unwrap_or(u32::MAX);
            body[at..at + 4].copy_from_slice(&new.to_le_bytes());
        }
    }
}

fn word(body: &[u8], at: usize) -> usize {
    body[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word) as usize)
}

/// JSON text with one or two things wrong with it, or different. May be no JSON and no UTF-8.
pub fn json(text: &[u8], draw: &mut Draw<'_>) -> Vec<u8> {
    let mut text = text.to_vec();
    for _ in 0..=draw.byte() % 2 {
        mutate_json(&mut text, draw);
    }
    text
}

fn mutate_json(text: &mut Vec<u8>, draw: &mut Draw<'_>) {
    const PIECES: [&[u8]; 24] = [
        b"null",
        b"\"",
        b"\\",
        b"\\u0030",
        b",",
        b":",
        b"{",
        b"}",
        b"[",
        b"]",
        b"0",
        b"0x",
        b"0X",
        b"00",
        b"f",
        b"F",
        b"-",
        b"1",
        b" ",
        b"\n",
        b"\"0x\"",
        b"\"a\":1,",
        b"true",
        b"\xff",
    ];
    // Structure is more interesting than digits, and near the ends there is enough of it.
    const NEAR: usize = 1500;
    let near =
        (0..text.len().min(NEAR)).chain(text.len().saturating_sub(NEAR).max(NEAR)..text.len());
    let marks: Vec<usize> = near.filter(|&at| b"\"{}[]:,x".contains(&text[at])).collect();
    let mark = marks.get(draw.below(marks.len())).copied().unwrap_or(0);
    let at = (mark + draw.below(3)).min(text.len());
    match draw.byte() % 9 {
        0 => drop(text.splice(at..at, PIECES[draw.below(24)].iter().copied())),
        1 => drop(text.splice(at..(at + 1).min(text.len()), PIECES[draw.below(24)].to_vec())),
        2 => drop(text.drain(at..(at + 1 + draw.below(2)).min(text.len()))),
        3 => text.truncate(at),
        4 => {
            // Digits of another case, and perhaps names.
            for byte in text.iter_mut().skip(at).take(draw.below(80)) {
                if matches!(byte, b'a'..=b'f') {
                    byte.make_ascii_uppercase();
                }
            }
        }
        8 => {
            // Digits of another case in one value, or another value.
            let from = text[at..].iter().position(|byte| b":[,".contains(byte));
            let from = at + from.map_or(0, |from| from + 1);
            let end = text[from..].iter().position(|byte| b",:]}".contains(byte));
            let value = from..from + end.unwrap_or(0);
            if draw.one_in(2) {
                let digits = text[value].iter_mut().skip(b"\"0x".len());
                digits.for_each(u8::make_ascii_uppercase);
            } else {
                const VALUES: [&[u8]; 4] = [b"null", b"true", b"\"0x\"", b"\"0xA\""];
                text.splice(value, VALUES[draw.below(4)].iter().copied());
            }
        }
        5 => {
            // A value or member twice.
            let end = marks.get(draw.below(marks.len())).copied().unwrap_or(0);
            let piece = text[mark.min(end)..mark.max(end)].to_vec();
            text.splice(at..at, piece);
        }
        6 => {
            // White space where it may be, or not.
            text.splice(at..at, [b" ", b"\t", b"\r", b"\n"][draw.below(4)].iter().copied());
        }
        _ => {
            let (a, b) = (draw.below(text.len()), draw.below(text.len()));
            if a.max(b) < text.len() {
                text.swap(a, b);
            }
        }
    }
}
