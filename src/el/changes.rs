//! How the surface changes: what a round of questions, an exchange or a lost connection does to it.

use std::sync::Arc;

use http::StatusCode;

use super::config::TransportChoice;
use super::round::Known;
use super::surface::{JsonRpc, Reach, Rest, Surface};
use super::{Answer, Inner, denies_json_rpc};

impl Inner {
    /// A round of questions was answered. The epoch grows unless nothing was lost and nothing
    /// changed since the last one.
    pub(super) fn found(&self, rest: Option<Rest>, known: Known, why: String) {
        self.surface.send_if_modified(|surface| {
            let Known { h2c, http1 } = known;
            let json_rpc = JsonRpc::Unknown;
            let epoch = surface.epoch + 1;
            let next = Surface { epoch, reach: Reach::Up, rest, h2c, http1, json_rpc, why };
            if surface.agrees_with(&next) {
                return false;
            }
            self.tell_found(&next);
            *surface = Arc::new(next);
            true
        });
    }

    fn tell_found(&self, surface: &Surface) {
        let Surface { epoch, why, .. } = surface;
        let (endpoint, base) = (&self.endpoint, &self.config.rest_base);
        if surface.rest.is_some() || self.config.transport == TransportChoice::Json {
            tracing::info!(%endpoint, epoch, "surface found: {why}");
        } else {
            // A path that has moved looks the same as an EL without REST, so the path is told.
            tracing::warn!(%endpoint, epoch, %base, "no REST-SSZ here: {why}");
        }
    }

    /// A round of questions was not answered.
    pub(super) fn not_found(&self, reach: Reach, known: Known, why: String) {
        let Known { h2c, http1 } = known;
        self.change(|surface| Surface { reach, rest: None, h2c, http1, why, ..surface });
    }

    pub(super) fn waiting_for_bearer(&self) {
        let why = "waiting for the CL's first call, whose bearer token the probe borrows";
        self.change(|surface| Surface { why: why.to_owned(), ..surface });
    }

    pub(super) fn withdraw_rest(&self, why: &str) {
        self.change(|surface| Surface { rest: None, why: why.to_owned(), ..surface });
    }

    /// REST is there after all, and the EL is the one it was.
    pub(super) fn reinstate(&self, rest: Rest) {
        let why = format!("REST-SSZ over {}", rest.transport);
        self.change(|surface| Surface { rest: Some(rest), why, ..surface });
    }

    /// REST is there as it was, but nothing proves that the EL is the process it was.
    pub(super) fn succeed(&self, rest: Rest) {
        let why = format!("REST-SSZ over {}", rest.transport);
        self.change(|surface| {
            let epoch = surface.epoch + 1;
            let json_rpc = JsonRpc::Unknown;
            tracing::debug!(epoch, "the EL may be another process, which offers the same");
            Surface { epoch, rest: Some(rest), json_rpc, why, ..surface }
        });
    }

    pub(super) fn learn_json_rpc(&self, answer: &Answer) {
        let json_rpc = match answer.status() {
            _ if denies_json_rpc(answer) => JsonRpc::Absent,
            StatusCode::OK => JsonRpc::Present,
            _ => return,
        };
        if self.surface.borrow().json_rpc != json_rpc {
            self.change(|surface| Surface { json_rpc, ..surface });
        }
    }

    pub(super) fn doubt(&self, epoch: u64) {
        let surface = self.surface.borrow().clone();
        if surface.epoch != epoch || surface.reach != Reach::Up {
            return;
        }
        if surface.rest.is_some() {
            self.withdraw_rest("a connection was lost; the EL is asked again");
        }
        self.doubts.notify_one();
    }

    /// An exchange succeeded: if the EL was thought to be gone, it is asked at once.
    pub(super) fn heard_from(&self) {
        if self.surface.borrow().reach == Reach::Down {
            self.doubts.notify_one();
        }
    }

    fn change(&self, change: impl FnOnce(Surface) -> Surface) {
        self.surface.send_if_modified(|surface| {
            let next = change(Surface::clone(surface));
            let changed = **surface != next;
            if changed {
                *surface = Arc::new(next);
            }
            changed
        });
    }
}
