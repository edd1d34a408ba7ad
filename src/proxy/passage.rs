//! The way of a request of a CL that speaks REST-SSZ itself.

use super::{COMMAND_TIMEOUT, Place, Proxy, lane_of};
use crate::{
    cl,
    el::{self, Lane, StreamedBody},
    engine::Order,
};
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use std::time::Instant;

impl Proxy {
    /// Passes a request on to the EL and its answer back. One that changes the EL's state stands in
    /// the same line as the calls that do, from its head to the end of its answer, but does not have
    /// its turn before its body is whole. By its deadline it is answered whole or cancelled, so that
    /// an EL which has forgotten it does not keep the line; any other has a deadline for the head.
    pub(super) async fn pass_on(&self, passage: cl::Passage<Place>) -> Response<StreamedBody> {
        let cl::Passage { request, caller, place } = passage;
        let caller = self.note(caller);
        let el = &self.0.el;
        let lane = lane_of(Order::of_rest(request.method(), request.uri().path()));
        let turn = match lane {
            Lane::Command => match place.unwrap_or_else(|| self.place()).turn().await {
                Ok(turn) => Some(turn),
                Err(error) => return not_passed(&error),
            },
            _ => None,
        };
        let (verb, path) = (request.method().clone(), request.uri().path().to_owned());
        let started = Instant::now();
        let deadline = match turn {
            Some(_) => el.deadline(COMMAND_TIMEOUT),
            None => el.relay_deadline(),
        };
        let passed = el.pass(lane, &caller, request, deadline).await;
        let response = match (passed, turn) {
            (Ok(response), Some(turn)) => response.map(|body| turn.until_end_of(body, deadline)),
            (Ok(response), None) => response,
            (Err(error), _) => not_passed(&error),
        };
        tracing::debug!(
            %verb,
            path,
            status = response.status().as_u16(),
            ms = started.elapsed().as_secs_f64() * 1e3,
            "passed on"
        );
        response
    }
}

/// What the CL gets when the EL gave no answer. The problem has no type of the API's own: none of
/// those is about a peer that is not there.
fn not_passed(error: &el::ElError) -> Response<StreamedBody> {
    let status = match error.kind() {
        el::ErrorKind::BadRequest { .. } => StatusCode::BAD_REQUEST,
        el::ErrorKind::TimedOut { .. } => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::BAD_GATEWAY,
    };
    let problem = serde_json::json!({ "type": "about:blank", "detail": error.to_string() });
    let body = Full::new(Bytes::from(problem.to_string())).map_err(|never| match never {});
    let mut response = Response::new(StreamedBody::new(body));
    *response.status_mut() = status;
    let media_type = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}
