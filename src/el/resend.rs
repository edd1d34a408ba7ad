//! The one rule of resends: whether a request that failed goes again, and over what.
//!
//! Three things decide: how far the request got ([`Resend`]), what harm a second copy does
//! ([`Repeat`]), and what was tried so far ([`Tries`]). Everybody else obeys [`next`].

/// How far a request that failed got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resend {
    /// The EL provably never saw the request: no connection, not yet written, a refused stream, or
    /// a stream above the last one a GOAWAY owns up to (RFC 9113, section 8.7).
    NeverSent,
    /// It went out on a connection on which others were answered before, which ended without a
    /// byte of an answer. An EL closes a connection that was idle for long just as well at the
    /// moment in which a request goes out on it (RFC 9112, section 9.3.1), so this is no sign of
    /// trouble; still the EL may have acted on it.
    Stale,
    /// It went out, and nothing tells whether the EL acted on it.
    MaybeProcessed,
    /// An answer began, which is not fit for use.
    Answered,
    /// The EL answered in a form that it was not asked for: encoded, or larger than the limit. It
    /// is done with the request, and would say the same each time.
    Unfit,
}

/// What harm it does if the EL gets a request twice (`refactor.md`, *Message ordering &
/// idempotency*).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// It reads: none.
    Harmless,
    /// A command that a second time changes nothing, but is carried out in full once more: the EL
    /// gets two copies of it at most.
    OnceMore,
    /// It must not be carried out twice: it goes again only if the EL provably never saw it, or is
    /// done with it and has given an answer that can be used as little as the next one. Then
    /// without a second copy nobody would ever learn what a build is called.
    OnlyIfNeverSent,
}

/// What a request was tried over when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tries {
    /// In which of the EL's two languages.
    pub path: Path,
    /// Over what kind of connection. A new one is the last there is on its path.
    pub connection: Freshness,
    /// Whether the EL may have had an earlier copy.
    pub earlier: Earlier,
    /// Whether the call's deadline has passed.
    pub time: Time,
}

/// In which of the EL's two languages a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// REST-SSZ.
    Rest,
    /// REST-SSZ, to an EL that has shown that it has no JSON-RPC.
    RestAlone,
    /// JSON-RPC, the last rung of the ladder.
    JsonRpc,
}

/// Whether a connection has carried an answer before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// It has.
    Reused,
    /// It has not, or there was none.
    New,
}

/// Whether the EL may have had a copy of a request before the one that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Earlier {
    /// No.
    #[default]
    None,
    /// Yes.
    Some,
}

/// Whether the deadline of a call has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// No.
    Left,
    /// Yes. A call that timed out is not a call that was aborted: the EL may be at it still, so
    /// this is no reason to ask again, nor over another transport.
    Up,
}

/// What comes after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The same request over a new connection.
    NewConnection,
    /// The same call over JSON-RPC.
    JsonRpc,
    /// The caller is told.
    GiveUp,
}

/// Decides what comes after a failure.
///
/// By construction a request goes twice at most on each path: after a reused connection comes a
/// new one, and nothing after that. Of a command the EL gets two copies at most over both paths.
pub const fn next(resend: Resend, repeat: Repeat, tries: Tries) -> Next {
    let is_unseen = matches!(resend, Resend::NeverSent);
    let is_first = matches!(tries.earlier, Earlier::None);
    let may_go_again = match repeat {
        Repeat::Harmless => true,
        // One more copy is the second, unless both this one and an earlier one may have arrived.
        Repeat::OnceMore => is_unseen || is_first,
        Repeat::OnlyIfNeverSent => (is_unseen || matches!(resend, Resend::Unfit)) && is_first,
    };
    match (may_go_again, tries.time) {
        (false, _) | (_, Time::Up) => return Next::GiveUp,
        (true, Time::Left) => {}
    }
    match (tries.connection, resend, tries.path) {
        // Most likely the connection was closed while it was idle. But an EL whose handler dies of
        // this very request looks the same, slot after slot, and would let a second copy over REST
        // die too. So the one copy that is left of a command goes the way that fails least.
        (Freshness::Reused, Resend::Stale, Path::Rest) if matches!(repeat, Repeat::OnceMore) => {
            Next::JsonRpc
        }
        (Freshness::Reused, Resend::NeverSent | Resend::Stale, _) => Next::NewConnection,
        // Asking finds out whether JSON-RPC is still missing.
        (_, _, Path::Rest | Path::RestAlone) => Next::JsonRpc,
        (_, _, Path::JsonRpc) => Next::GiveUp,
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Earlier::{self, None, Some},
        Freshness::{New, Reused},
        Next::{self, GiveUp, JsonRpc, NewConnection},
        Path,
        Repeat::{self, Harmless, OnceMore, OnlyIfNeverSent},
        Resend::{self, Answered, MaybeProcessed, NeverSent, Stale, Unfit},
        Time, Tries, next,
    };

    /// What comes after a failure over REST on a reused and on a new connection, and over JSON-RPC
    /// on a reused and on a new one.
    type Row = (Resend, Repeat, Earlier, [Next; 4]);

    #[rustfmt::skip]
    const TABLE: [Row; 30] = [
        //                                            REST, reused   new      JSON-RPC, reused  new
        (NeverSent,      Harmless,        None, [NewConnection, JsonRpc, NewConnection, GiveUp]),
        (NeverSent,      Harmless,        Some, [NewConnection, JsonRpc, NewConnection, GiveUp]),
        (NeverSent,      OnceMore,        None, [NewConnection, JsonRpc, NewConnection, GiveUp]),
        (NeverSent,      OnceMore,        Some, [NewConnection, JsonRpc, NewConnection, GiveUp]),
        (NeverSent,      OnlyIfNeverSent, None, [NewConnection, JsonRpc, NewConnection, GiveUp]),
        (NeverSent,      OnlyIfNeverSent, Some, [GiveUp,        GiveUp,  GiveUp,        GiveUp]),
        (Stale,          Harmless,        None, [NewConnection, JsonRpc, NewConnection, GiveUp]),
        (Stale,          Harmless,        Some, [NewConnection, JsonRpc, NewConnection, GiveUp]),
        (Stale,          OnceMore,        None, [JsonRpc,       JsonRpc, NewConnection, GiveUp]),
        (Stale,          OnceMore,        Some, [GiveUp,        GiveUp,  GiveUp,        GiveUp]),
        (Stale,          OnlyIfNeverSent, None, [GiveUp,        GiveUp,  GiveUp,        GiveUp]),
        (Stale,          OnlyIfNeverSent, Some, [GiveUp,        GiveUp,  GiveUp,        GiveUp]),
        (MaybeProcessed, Harmless,        None, [JsonRpc,       JsonRpc, GiveUp,        GiveUp]),
        (MaybeProcessed, Harmless,        Some, [JsonRpc,       JsonRpc, GiveUp,        GiveUp]),
        (MaybeProcessed, OnceMore,        None, [JsonRpc,       JsonRpc, GiveUp,        GiveUp]),
        (MaybeProcessed, OnceMore,        Some, [GiveUp,        GiveUp,  GiveUp,        GiveUp]),
        (MaybeProcessed, OnlyIfNeverSent, None, [GiveUp,        GiveUp,  GiveUp,        GiveUp]),
        (MaybeProcessed, OnlyIfNeverSent, Some, [GiveUp,        GiveUp,  GiveUp,        GiveUp]),
        (Answered,       Harmless,        None, [JsonRpc,       JsonRpc, GiveUp,        GiveUp]),
        (Answered,       Harmless,        Some, [JsonRpc,       JsonRpc, GiveUp,        GiveUp]),
        (Answered,       OnceMore,        None, [JsonRpc,       JsonRpc, GiveUp,        GiveUp]),
        (Answered,       OnceMore,        Some, [GiveUp,        GiveUp,  GiveUp,        GiveUp]),
        (Answered,       OnlyIfNeverSent, None, [GiveUp,        GiveUp,  GiveUp,        GiveUp]),
        (Answered,       OnlyIfNeverSent, Some, [GiveUp,        GiveUp,  GiveUp,        GiveUp]),
        (Unfit,          Harmless,        None, [JsonRpc,       JsonRpc, GiveUp,        GiveUp]),
        (Unfit,          Harmless,        Some, [JsonRpc,       JsonRpc, GiveUp,        GiveUp]),
        (Unfit,          OnceMore,        None, [JsonRpc,       JsonRpc, GiveUp,        GiveUp]),
        (Unfit,          OnceMore,        Some, [GiveUp,        GiveUp,  GiveUp,        GiveUp]),
        (Unfit,          OnlyIfNeverSent, None, [JsonRpc,       JsonRpc, GiveUp,        GiveUp]),
        (Unfit,          OnlyIfNeverSent, Some, [GiveUp,        GiveUp,  GiveUp,        GiveUp]),
    ];

    const COLUMNS: [(Path, super::Freshness); 4] =
        [(Path::Rest, Reused), (Path::Rest, New), (Path::JsonRpc, Reused), (Path::JsonRpc, New)];

    #[test]
    fn every_row_of_the_rule() {
        for (resend, repeat, earlier, wanted) in TABLE {
            for ((path, connection), wanted) in COLUMNS.into_iter().zip(wanted) {
                let tries = Tries { path, connection, earlier, time: Time::Left };
                let said = next(resend, repeat, tries);
                assert_eq!(said, wanted, "{resend:?} {repeat:?} {tries:?}");
                let late = Tries { time: Time::Up, ..tries };
                assert_eq!(next(resend, repeat, late), GiveUp, "{resend:?} {repeat:?} {late:?}");
            }
        }
    }

    #[test]
    fn without_json_rpc_the_second_copy_of_a_command_goes_over_a_new_connection() {
        let tries = |path, connection| Tries { path, connection, earlier: None, time: Time::Left };
        let alone = tries(Path::RestAlone, Reused);
        assert_eq!(next(Stale, OnceMore, alone), NewConnection);
        for (resend, repeat, ..) in
            TABLE.into_iter().filter(|row| (row.0, row.1) != (Stale, OnceMore))
        {
            for connection in [Reused, New] {
                let alone = next(resend, repeat, tries(Path::RestAlone, connection));
                let both = next(resend, repeat, tries(Path::Rest, connection));
                assert_eq!(alone, both, "{resend:?} {repeat:?} {connection:?}");
            }
        }
    }

    #[test]
    fn the_table_has_each_case_once() {
        for (place, (resend, repeat, earlier, _)) in TABLE.iter().enumerate() {
            let same = |row: &&Row| (&row.0, &row.1, &row.2) == (resend, repeat, earlier);
            assert_eq!(TABLE.iter().filter(same).count(), 1, "row {place}");
        }
        // Five classes, three harms, an earlier copy or none: with no row twice, all are there.
        assert_eq!(TABLE.len(), 5 * 3 * 2);
    }

    /// Whatever an EL does with each attempt: the worst it can get of a call.
    fn most_copies(classes: &[Resend], repeat: Repeat, tries: Tries) -> usize {
        let most = classes.iter().map(|&resend| {
            let arrived = usize::from(resend != NeverSent);
            let earlier = if arrived == 1 { Some } else { tries.earlier };
            let after = match next(resend, repeat, tries) {
                NewConnection => Tries { connection: New, earlier, ..tries },
                JsonRpc => Tries { path: Path::JsonRpc, connection: Reused, earlier, ..tries },
                GiveUp => return arrived,
            };
            arrived + most_copies(classes, repeat, after)
        });
        most.max().unwrap_or(0)
    }

    #[test]
    fn a_command_arrives_twice_at_most_and_a_build_once_unless_its_answer_is_unfit() {
        let first = Tries { path: Path::Rest, connection: Reused, earlier: None, time: Time::Left };
        let lost = [NeverSent, Stale, MaybeProcessed, Answered];
        let all = [NeverSent, Stale, MaybeProcessed, Answered, Unfit];
        assert_eq!(most_copies(&lost, OnlyIfNeverSent, first), 1);
        assert_eq!(most_copies(&all, OnlyIfNeverSent, first), 2);
        assert_eq!(most_copies(&all, OnceMore, first), 2);
        assert_eq!(most_copies(&all, Harmless, first), 4);
    }
}
