//! Texts that are the same JSON to everybody: white space between tokens, and the case of
//! hexadecimal digits.

/// Whether `other` is `text` in another spelling.
pub fn is_another_of(text: &str, other: &[u8]) -> bool {
    let plain = plain(text.as_bytes());
    plain.is_some() && plain == self::plain(other)
}

/// The text without white space between tokens, its hexadecimal digits in lower case. `None` where
/// white space may be inside a token, or a string has no end.
fn plain(text: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {
                let next = rest.iter().find(|byte| !b" \t\r\n".contains(byte));
                let word = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
                if word(plain.last()) && word(next) {
                    return None;
                }
            }
            b'"' => {
                let (content, after) = string(rest)?;
                rest = after;
                plain.push(b'"');
                match content.strip_prefix(b"0x") {
                    Some(digits) if const_hex::check_raw(digits) => {
                        plain.extend(content.to_ascii_lowercase());
                    }
                    _ => plain.extend(content),
                }
                plain.push(b'"');
            }
            _ => plain.push(byte),
        }
    }
    Some(plain)
}

/// What is before the mark that ends a string, and what is behind it.
fn string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut end = 0;
    loop {
        end += memchr::memchr2(b'"', b'\\', text.get(end..)?)?;
        if text[end] == b'"' {
            return Some((&text[..end], &text[end + 1..]));
        }
        end += 2;
    }
}

#[test]
fn only_space_between_tokens_and_the_case_of_digits_do_not_matter() {
    let text = r#"{"a":"0xab","b":[true,null],"c":"A b"}"#;
    let same = |other: &str| is_another_of(text, other.as_bytes());
    assert!(same("\t{ \"a\" :\"0xAb\",\r\n\"b\":[true , null] ,\"c\":\"A b\"} "));
    for (from, to) in [
        ("0xab", "0xac"),
        ("0xab", "0Xab"),
        ("0xab", "0x ab"),
        ("\"a\"", "\"A\""),
        ("A b", "a b"),
        ("A b", "A  b"),
        ("true", "tr ue"),
        ("true", "True"),
        ("}", ""),
        ("}", "\""),
    ] {
        assert!(!same(&text.replacen(from, to, 1)), "{to}");
    }
    assert!(!is_another_of("[true,1]", b"[true,1 2]"));
}
