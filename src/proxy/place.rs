//! Places in the line of commands, taken for a body of which only the beginning is there.

use crate::{
    el::{CommandTurn, ElError},
    engine::Order,
};
use memchr::memmem;
use std::{fmt, pin::Pin};

/// A place in the line of commands. Dropping it leaves the line.
pub struct Place(Pin<Box<dyn Future<Output = Result<CommandTurn, ElError>> + Send>>);

impl Place {
    pub(super) fn new(
        turn: impl Future<Output = Result<CommandTurn, ElError>> + Send + 'static,
    ) -> Self {
        Self(Box::pin(turn))
    }

    /// Waits until all earlier commands are over.
    pub(super) async fn turn(self) -> Result<CommandTurn, ElError> {
        self.0.await
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").finish_non_exhaustive()
    }
}

/// Whether a body that begins like this holds a command, as far as can be told: a name with escapes
/// may be anything. A request whose method comes after its parameters, and a batch whose command
/// comes late, show nothing here and take their place when they are whole: were a `[` enough, whoever
/// sends one would hold up the line.
pub(super) fn may_be_command(first: &[u8]) -> bool {
    const MEMBER: &[u8] = br#""method""#;
    memmem::find_iter(first, MEMBER).any(|at| {
        let value = first.get(at + MEMBER.len()..).and_then(after_colon).unwrap_or_default();
        // Its end may still be on its way.
        let Some(end) = memchr::memchr2(b'"', b'\\', value) else { return false };
        let (name, rest) = value.split_at_checked(end).unwrap_or_default();
        rest.first() == Some(&b'\\')
            || std::str::from_utf8(name).is_ok_and(|name| Order::of_name(name) == Order::Command)
    })
}

/// What follows `: "`.
fn after_colon(text: &[u8]) -> Option<&[u8]> {
    let value = text.trim_ascii_start().strip_prefix(b":")?;
    value.trim_ascii_start().strip_prefix(b"\"")
}

#[cfg(test)]
mod tests {
    use super::may_be_command;

    #[test]
    fn the_beginning_of_a_command_is_seen_in_every_writing() {
        for (first, seen) in [
            (r#"{"jsonrpc":"2.0","method":"engine_newPayloadV4","params":[{"par"#, true),
            (r#"{"method" : "engine_forkchoiceUpdatedV3""#, true),
            ("\r\n\t {\"id\":1,\n\"method\"\n:\n\"engine_newPayloadV9\"", true),
            (r#"{"method":"engine_newPayloadWithWitnessV4""#, true),
            // No command, or none that can be told.
            (r#"{"method":"engine_getInclusionListV1""#, false),
            (r#"{"method":"engine_getPayloadV4","params":["0x"#, false),
            (r#"{"method":"eth_call","params":[{"data":"engine_newPayloadV4"#, false),
            (r#"{"id":1,"params":[{"parentHash":"0x"#, false),
            (r#"{"method":"engine_newPayl"#, false),
            (r#"{"method":"#, false),
            (r#"{"method"#, false),
            ("{", false),
            ("", false),
            ("\u{feff}{", false),
            // In doubt.
            (r#"{"method":"engine\u005fnewPayloadV4""#, true),
            (r#"{"params":[{"method":"x"}],"method":"engine_newPayloadV4""#, true),
            (r#" [{"id":1,"method":"eth_chainId"},{"method":"engine_newPayloadV4""#, true),
            (" [", false),
            (r#"[{"method":"eth_chainId""#, false),
        ] {
            assert_eq!(may_be_command(first.as_bytes()), seen, "{first}");
        }
        assert!(!may_be_command(b"{\"method\":\"engine_newPayload\xff\""));
    }
}
