//! What harm it does if the EL gets a call twice. What follows from it is decided in one place, the
//! door to the EL's rule of resends.

use crate::{
    el::{Lane, Repeat},
    engine::Replay,
    jsonrpc::{Invalid, Request},
};

/// What a REST exchange says of itself, in the terms of the door to the EL.
pub(super) fn of_replay(replay: Replay, lane: Lane) -> Repeat {
    match (replay, lane) {
        (Replay::OnlyIfNeverSent, _) => Repeat::OnlyIfNeverSent,
        (Replay::Harmless, Lane::Command) => Repeat::OnceMore,
        (Replay::Harmless, _) => Repeat::Harmless,
    }
}

/// A call that is relayed, by the name of its method alone. What is not known to be harmless is
/// not repeated: `engine_forkchoiceUpdated` may start a build, `eth_sendRawTransaction` answers a
/// second time with an error, and `eth_getFilterChanges` loses what it told the first time.
pub(super) fn of_name(method: &str) -> Repeat {
    match method {
        "eth_getFilterChanges" => Repeat::OnlyIfNeverSent,
        "eth_call" | "eth_chainId" | "eth_syncing" | "eth_blockNumber" => Repeat::Harmless,
        _ if method.starts_with("engine_newPayload") => Repeat::OnceMore,
        _ if ["eth_get", "engine_get", "engine_exchange"]
            .iter()
            .any(|start| method.starts_with(start)) =>
        {
            Repeat::Harmless
        }
        _ => Repeat::OnlyIfNeverSent,
    }
}

/// A batch that is relayed whole, in which there is no command: harmless if all of it is.
pub(super) fn of_batch(items: &[Result<Request, Invalid>]) -> Repeat {
    let is_harmless = |item: &Result<Request, Invalid>| {
        item.as_ref().is_ok_and(|request| of_name(request.method.as_str()) == Repeat::Harmless)
    };
    if items.iter().all(is_harmless) { Repeat::Harmless } else { Repeat::OnlyIfNeverSent }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::{Incoming, parse};

    const HARMLESS: [&str; 8] = [
        "eth_call",
        "eth_chainId",
        "eth_syncing",
        "eth_blockNumber",
        "eth_getBlockByHash",
        "engine_getPayloadV5",
        "engine_getBlobsV1",
        "engine_exchangeCapabilities",
    ];
    const HARMFUL: [&str; 6] = [
        "engine_forkchoiceUpdatedV3",
        "eth_sendRawTransaction",
        "eth_getFilterChanges",
        "eth_callMany",
        "admin_addPeer",
        "",
    ];

    #[test]
    fn h1_01_only_what_is_known_to_be_harmless_may_be_repeated() {
        for method in HARMLESS {
            assert_eq!(of_name(method), Repeat::Harmless, "{method}");
        }
        for method in ["engine_newPayloadV4", "engine_newPayloadWithWitnessV4"] {
            assert_eq!(of_name(method), Repeat::OnceMore, "{method}");
        }
        for method in HARMFUL {
            assert_eq!(of_name(method), Repeat::OnlyIfNeverSent, "{method}");
        }
    }

    #[test]
    fn a_harmless_exchange_of_the_command_lane_goes_once_more_at_most() {
        assert_eq!(of_replay(Replay::Harmless, Lane::Command), Repeat::OnceMore);
        assert_eq!(of_replay(Replay::Harmless, Lane::Build), Repeat::Harmless);
        assert_eq!(of_replay(Replay::OnlyIfNeverSent, Lane::Command), Repeat::OnlyIfNeverSent);
    }

    #[test]
    fn a_batch_is_as_harmless_as_the_worst_in_it() {
        let batch = |methods: &[&str]| {
            let calls = methods.iter().map(|method| format!(r#"{{"id":1,"method":"{method}"}}"#));
            let body = format!("[{}]", calls.collect::<Vec<_>>().join(","));
            match parse(&body.into()) {
                Ok(Incoming::Batch(items)) => of_batch(&items),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(batch(&HARMLESS), Repeat::Harmless);
        assert_eq!(batch(&["eth_call", "eth_sendRawTransaction"]), Repeat::OnlyIfNeverSent);
    }
}
