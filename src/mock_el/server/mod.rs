//! Sockets and HTTP: from a connection to the one place where a request is answered.
//!
//! ```text
//! life ─▶ connection ─▶ exchange ─▶ call ─▶ rest, rpc
//! port    h1, h2, Line  faults      chain
//! ```

mod body;
mod call;
mod connection;
mod exchange;
mod life;
mod line;
mod mangle;

use std::sync::{Mutex, MutexGuard, PoisonError};

use alloy_rpc_types_engine::JwtSecret;
use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Full;
use tokio::sync::mpsc;

use super::{
    Config,
    chain::Chain,
    faults::{FaultsHandle, Memory, Restart},
    fork::Fork,
    rest::{Limits, Offer},
    rpc,
    seen::Log,
    surface::{Http, Surface},
};

pub(super) use life::{Order, serve};

/// The answer to a request, whole.
pub(super) type Answer = Response<Full<Bytes>>;

/// What all connections share.
#[derive(Debug)]
pub(super) struct El {
    chain: Mutex<Chain>,
    jwt_secret: Option<JwtSecret>,
    standing: Mutex<Standing>,
    /// Held while a request is run, so that the log has the order of the chain.
    running: Mutex<()>,
    pub(super) log: Log,
    pub(super) faults: FaultsHandle,
    pub(super) orders: mpsc::UnboundedSender<Order>,
}

/// What a restart may change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    surface: Surface,
    http: Http,
    offer: Offer,
}

impl El {
    pub(super) fn new(
        config: Config,
        faults: FaultsHandle,
        orders: mpsc::UnboundedSender<Order>,
    ) -> Self {
        let offer = Offer { limits: Limits::default(), newest_fork: Fork::Amsterdam };
        Self {
            chain: Mutex::new(Chain::new(config.genesis)),
            jwt_secret: config.jwt_secret,
            standing: Mutex::new(Standing { surface: config.surface, http: config.http, offer }),
            running: Mutex::default(),
            log: Log::default(),
            faults,
            orders,
        }
    }

    pub(super) fn chain(&self) -> MutexGuard<'_, Chain> {
        self.chain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn json_rpc_text(&self, body: &[u8]) -> Vec<u8> {
        rpc::Message::parse(body).answer(&self.chain)
    }

    fn standing(&self) -> Standing {
        *self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Becomes what it is after a restart; no connection may be left.
    fn reborn(&self, restart: &Restart) {
        match restart.memory {
            Memory::Kept => {}
            Memory::ChainOnly => self.chain().forget_builds(),
            Memory::Lost => self.chain().forget(),
        }
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        standing.surface = restart.surface.unwrap_or(standing.surface);
        standing.http = restart.http.unwrap_or(standing.http);
        standing.offer.limits = restart.limits.unwrap_or(standing.offer.limits);
        standing.offer.newest_fork = restart.newest_fork.unwrap_or(standing.offer.newest_fork);
    }
}

/// An answer without body and content type.
pub(super) fn empty(status: StatusCode) -> Answer {
    let mut answer = Answer::default();
    *answer.status_mut() = status;
    answer
}
