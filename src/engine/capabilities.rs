//! `engine_exchangeCapabilities`: method names only, whatever the EL lists beside them.

use super::{Answer, Method, Offer, RelayReason, Version};
use crate::wire::Fork;
use bytes::Bytes;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Takes what is no method name out of the EL's own answer; an answer without any is left as it
/// came, byte for byte.
pub(super) fn of_json_rpc(result: Bytes) -> Answer {
    Answer::Result(filtered(&result).unwrap_or(result))
}

/// The methods that can be carried over REST alone, for an EL that has no JSON-RPC.
///
/// # Errors
/// When it is not known yet what the EL offers: a CL may keep to an empty list for good.
pub(super) fn of_offer(offer: Option<&Offer>) -> Result<Answer, RelayReason> {
    let offer = offer.ok_or(RelayReason::NoRest)?;
    let can = |method: &Method| match method {
        Method::ExchangeCapabilities => false,
        Method::ClientVersion => true,
        // Its containers have no form after Osaka, when it is refused.
        Method::Blobs(Version::V1) => offer.forks().iter().any(|fork| *fork < Fork::Osaka),
        Method::BodiesByHash(_) | Method::BodiesByRange(_) | Method::Blobs(_) => true,
        method => method.forks().iter().any(|fork| offer.has(*fork)),
    };
    let can = |method: &Method| offer.serves(*method) && can(method);
    let names: Vec<_> = Method::ALL
        .iter()
        .filter(|(_, method)| can(method))
        .map(|(name, _)| format!("\"{name}\""))
        .collect();
    Ok(Answer::Result(format!("[{}]", names.join(",")).into()))
}

/// `None`: nothing to take out, or not a list of strings.
fn filtered(result: &[u8]) -> Option<Bytes> {
    let items: Vec<&RawValue> = serde_json::from_slice(result).ok()?;
    let names: Vec<&str> =
        items.iter().map(|item| item.get()).filter(|item| is_name(item)).collect();
    if names.len() == items.len() {
        return None;
    }
    Some(format!("[{}]", names.join(",")).into())
}

/// REST strings such as `POST /engine/v1/payloads` are none, nor is the method itself
/// (common.md, `engine_exchangeCapabilities`).
fn is_name(raw: &str) -> bool {
    serde_json::from_str::<Cow<'_, str>>(raw).is_ok_and(|name| {
        name != "engine_exchangeCapabilities"
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ListedEndpoint;

    fn names(answer: Answer) -> String {
        match answer {
            Answer::Result(result) => String::from_utf8(result.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn rest_strings_are_not_shown_to_the_cl() {
        let listed = br#"["engine_newPayloadV4", "POST /engine/v1/payloads","engine_hasBlobs",7,"engine_exchangeCapabilities"]"#;
        assert_eq!(
            names(of_json_rpc(Bytes::from_static(listed))),
            r#"["engine_newPayloadV4","engine_hasBlobs"]"#
        );
    }

    #[test]
    fn a_list_of_names_only_is_left_byte_for_byte() {
        for listed in [r#"[ "engine_newPayloadV4" ,"engine_getBlobsV2"]"#, "[]", "{}", "null"] {
            assert_eq!(names(of_json_rpc(Bytes::from_static(listed.as_bytes()))), listed);
        }
    }

    #[test]
    fn an_el_without_json_rpc_lists_what_its_forks_allow() {
        let said = names(of_offer(Some(&Offer::of_forks(&[Fork::Prague]))).unwrap());
        let said: Vec<String> = serde_json::from_str(&said).unwrap();
        let of_a_fork = |name: &&String| {
            ["newPayload", "forkchoiceUpdated", "getPayloadV"]
                .iter()
                .any(|part| name.contains(part))
        };
        let forked: Vec<_> = said.iter().filter(of_a_fork).collect();
        assert_eq!(
            forked,
            ["engine_newPayloadV4", "engine_forkchoiceUpdatedV3", "engine_getPayloadV4"]
        );
        assert!(said.contains(&"engine_getBlobsV1".to_owned()));
        assert!(!said.contains(&"engine_exchangeCapabilities".to_owned()));
        assert!(of_offer(None).is_err());
    }

    #[test]
    fn an_el_without_json_rpc_is_not_said_to_have_an_endpoint_it_does_not_list() {
        use ListedEndpoint::{Blobs, ForkScoped};
        let listed = [ForkScoped("payloads"), ForkScoped("forkchoice"), Blobs("v2"), Blobs("v3")];
        let offer = Offer::of_forks(&[Fork::Osaka]).listing(|endpoint| listed.contains(&endpoint));
        let said: Vec<String> =
            serde_json::from_str(&names(of_offer(Some(&offer)).unwrap())).unwrap();
        assert_eq!(
            said,
            [
                "engine_newPayloadV4",
                "engine_forkchoiceUpdatedV3",
                "engine_getPayloadV5",
                "engine_getBlobsV2",
                "engine_getBlobsV3",
                "engine_getClientVersionV1"
            ]
        );
    }

    #[test]
    fn get_blobs_v1_is_not_listed_by_an_el_that_begins_with_osaka() {
        let lists = |forks: &[Fork]| {
            names(of_offer(Some(&Offer::of_forks(forks))).unwrap()).contains("engine_getBlobsV1")
        };
        assert!(lists(&[Fork::Prague, Fork::Osaka]));
        assert!(!lists(&[Fork::Osaka, Fork::Amsterdam]));
    }
}
