//! The demo's conversation on every way that the EL can be reached.

use engine_ssz_proxy::{
    mock_el::{Http, Surface},
    tools::demo::{Arguments, Report, play},
};

async fn played(transport: &str, surface: Surface, http: Http) -> Report {
    let arguments =
        Arguments { transport: transport.to_owned(), surface, http, ..Arguments::default() };
    let report = play(&arguments).await.unwrap();
    assert!(report.differences.is_empty(), "{report}");
    assert_eq!(report.calls(), 133, "the whole conversation was played");
    report
}

/// Each fork's hot calls went over REST-SSZ, and over that transport alone.
fn assert_all_over(report: &Report, transport: &str) {
    let forks: Vec<_> = report.forks.iter().map(|row| row.fork).collect();
    assert_eq!(forks, ["paris", "shanghai", "cancun", "prague", "osaka", "amsterdam"]);
    for row in &report.forks {
        assert!(row.hot_calls >= 8);
        assert_eq!(row.over_rest, row.hot_calls, "{}", row.fork);
    }
    let others = ["h2c", "http1"].into_iter().filter(|other| *other != transport);
    for other in others {
        assert!(report.methods.iter().all(|row| !row.transports.contains_key(other)), "{report}");
    }
}

fn assert_nothing_over_rest(report: &Report) {
    assert_eq!(report.over_rest(), 0, "{report}");
}

#[tokio::test]
async fn all_forks_go_over_h2c_with_the_els_own_answers() {
    assert_all_over(&played("auto", Surface::RestAndJson, Http::Both).await, "h2c");
}

#[tokio::test]
async fn an_el_without_h2c_is_reached_over_http1() {
    assert_all_over(&played("auto", Surface::RestAndJson, Http::H1).await, "http1");
}

#[tokio::test]
async fn an_el_with_h2c_alone_is_reached_over_it_for_json_rpc_too() {
    assert_all_over(&played("auto", Surface::RestAndJson, Http::H2).await, "h2c");
}

#[tokio::test]
async fn http1_can_be_demanded() {
    assert_all_over(&played("http1", Surface::RestAndJson, Http::Both).await, "http1");
}

#[tokio::test]
async fn with_transport_json_nothing_goes_over_rest() {
    assert_nothing_over_rest(&played("json", Surface::RestAndJson, Http::Both).await);
}

#[tokio::test]
async fn an_el_without_rest_answers_over_json_rpc() {
    assert_nothing_over_rest(&played("auto", Surface::JsonOnly, Http::Both).await);
}

#[tokio::test]
async fn a_transport_that_the_el_does_not_speak_leaves_json_rpc() {
    assert_nothing_over_rest(&played("h2c", Surface::RestAndJson, Http::H1).await);
    assert_nothing_over_rest(&played("http1", Surface::RestAndJson, Http::H2).await);
}
