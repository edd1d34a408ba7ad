//! Connections that are odd from the start.

use engine_ssz_proxy::mock_el::{
    MockEl,
    faults::{Accepted, ConnectionRule, Faults, Kind},
};

use super::raw::{CAPABILITIES, End, H2, Line, SETTINGS, el_of, get};
use crate::client::{Peer, SSZ};

const SETTINGS_MAX_CONCURRENT_STREAMS: u16 = 3;
const SETTINGS_INITIAL_WINDOW_SIZE: u16 = 4;

/// An EL whose first connection is struck.
async fn first(fault: Accepted) -> MockEl {
    el_of(Faults::new(1).with_connection(ConnectionRule::new(fault).times(1))).await
}

#[tokio::test]
async fn a_connection_is_closed_or_reset_at_once_and_the_next_is_served() {
    for (fault, wanted) in [(Accepted::Closed, End::Fin), (Accepted::Reset, End::Rst)] {
        let el = first(fault).await;
        let (bytes, end) = Line::to(&el).await.rest().await;
        assert_eq!((bytes.len(), end), (0, wanted));
        assert_eq!(Peer::h1(&el).get(CAPABILITIES, "").await.status, 200);
        assert_eq!(el.faults().injected().of(Kind::Connection), 1);
        assert_eq!(el.log().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_mute_connection_stays_open() {
    let el = first(Accepted::Mute).await;
    let mut line = Line::to(&el).await;
    line.send(get(CAPABILITIES)).await;
    line.stays_mute().await;
    assert_eq!(Peer::h1(&el).get(CAPABILITIES, "").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn settings_only_is_an_http_2_server_that_goes_no_further() {
    let el = first(Accepted::SettingsOnly).await;
    let mut h2 = H2::to(&el).await;
    h2.get(CAPABILITIES).await;
    let frame = h2.frame().await.unwrap();
    assert_eq!((frame.kind, frame.flags, frame.payload.len()), (SETTINGS, 0, 0));
    h2.line.stays_mute().await;
}

#[tokio::test]
async fn a_tiny_window_is_announced_and_a_body_still_gets_through() {
    let el = first(Accepted::TinyWindow(7)).await;
    let mut h2 = H2::to(&el).await;
    let settings = h2.frame().await.unwrap();
    assert_eq!(settings.setting(SETTINGS_INITIAL_WINDOW_SIZE), Some(7));
    let el = first(Accepted::TinyWindow(7)).await;
    let answer = Peer::h2(&el).post("/engine/v1/payloads", "paris", vec![1; 3000]).await;
    assert_eq!(answer.problem(), (400, "ssz-decode-error".to_owned()));
    assert_eq!(el.log()[0].body_bytes, 3000);
    assert_eq!(el.log()[0].content_type.as_deref(), Some(SSZ));
}

#[tokio::test]
async fn one_stream_at_a_time_is_announced() {
    let el = first(Accepted::MaxStreamsOne).await;
    let mut h2 = H2::to(&el).await;
    let settings = h2.frame().await.unwrap();
    assert_eq!(settings.setting(SETTINGS_MAX_CONCURRENT_STREAMS), Some(1));
    let mut honest = H2::to(&el).await;
    let settings = honest.frame().await.unwrap();
    assert_eq!(settings.setting(SETTINGS_MAX_CONCURRENT_STREAMS), Some(200));
    assert_eq!(settings.setting(SETTINGS_INITIAL_WINDOW_SIZE), Some(16 << 20));
}
