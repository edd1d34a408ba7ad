//! The embedded EL: spec-true REST-SSZ and JSON-RPC over one in-memory chain.
//!
//! It shares no code with [`crate::engine`] and [`crate::wire`]: bodies are read and written with
//! `alloy-rpc-types-engine`, `ethereum_ssz` and `serde_json`, so that it is a second opinion on every
//! byte the sidecar makes.
//!
//! What is real: block hashes (headers, transaction, withdrawal and request roots), the genesis state
//! root, versioned hashes, the rules of both protocols. What is made up, but the same on every run:
//! state and receipt roots, signatures, KZG commitments and proofs. There is no EVM.
//!
//! ```text
//! server ─▶ rest ─▶ chain ◀─ rpc ◀─ server      (rest and rpc only translate)
//!                    ├─ block   payload ─▶ header, hash, rules
//!                    ├─ build   attributes ─▶ payload
//!                    └─ blobs   the blob pool
//! ```

mod blobs;
mod block;
mod build;
mod chain;
mod entropy;
mod error;
pub mod faults;
mod fork;
mod genesis;
mod identity;
mod processed;
mod rest;
mod rpc;
mod seen;
mod server;
mod surface;
mod transactions;

use std::{io, net::SocketAddr, sync::Arc};

use alloy_primitives::{B128, B256};
use alloy_rpc_types_engine::JwtSecret;
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use faults::{FaultsHandle, Restart};

pub use fork::Fork;
pub use genesis::{Genesis, GenesisError};
pub use processed::Processed;
pub use rest::Limits;
pub use seen::{Requests, Seen};
pub use surface::{Http, Surface, UnknownChoice};

use server::{El, Order};

/// What kind of EL to be.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The secret every request must be signed with; without one, every request is served.
    pub jwt_secret: Option<JwtSecret>,
    /// The chain.
    pub genesis: Genesis,
    /// Which dialects are served.
    pub surface: Surface,
    /// Which versions of HTTP are spoken.
    pub http: Http,
}

/// A running EL. It stops when it is dropped.
#[derive(Debug)]
pub struct MockEl {
    addr: SocketAddr,
    genesis_hash: B256,
    el: Arc<El>,
    /// Aborted with its connections when dropped.
    server: AbortOnDrop,
}

#[derive(Debug)]
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl MockEl {
    /// Binds the port and starts to serve; the port is open when this returns.
    ///
    /// # Errors
    ///
    /// The port cannot be bound.
    pub async fn start(config: Config) -> io::Result<Self> {
        Self::start_with(config, FaultsHandle::default()).await
    }

    /// The same with a script of faults, in effect from the first connection on.
    ///
    /// # Errors
    ///
    /// The port cannot be bound.
    pub async fn start_with(config: Config, faults: FaultsHandle) -> io::Result<Self> {
        let listener = TcpListener::bind(config.listen).await?;
        let addr = listener.local_addr()?;
        let (orders, obeyed) = mpsc::unbounded_channel();
        let el = Arc::new(El::new(config, faults, orders));
        let genesis_hash = el.chain().genesis_hash();
        let server = AbortOnDrop(tokio::spawn(server::serve(listener, addr, el.clone(), obeyed)));
        Ok(Self { addr, genesis_hash, el, server })
    }

    /// The address it listens on.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The hash of the genesis block, to start a conversation from.
    #[must_use]
    pub fn genesis_hash(&self) -> B256 {
        self.genesis_hash
    }

    /// Closes the port and cuts every connection, then returns.
    pub async fn stop(self) {
        let Self { el, mut server, .. } = self;
        // The receiver is gone only if the server has ended already.
        let _ = el.orders.send(Order::Stop);
        let _ = (&mut server.0).await;
    }

    /// The script of faults; rules may be added and removed at any time.
    #[must_use]
    pub fn faults(&self) -> &FaultsHandle {
        &self.el.faults
    }

    /// Cuts every connection and comes back on the same port as told. Returns when the port is open
    /// again.
    ///
    /// # Errors
    ///
    /// The port was taken by somebody else meanwhile; the EL is down then.
    pub async fn restart(&self, restart: Restart) -> io::Result<()> {
        self.order(|done| Order::Restart(Box::new(restart), Some(done))).await?
    }

    /// Cuts every connection and closes the port, until [`up`](Self::up). Returns when it is closed.
    pub async fn down(&self) {
        // An ended server is down.
        let _ = self.order(Order::Down).await;
    }

    /// Opens the port again; nothing if it is open.
    ///
    /// # Errors
    ///
    /// The port was taken by somebody else meanwhile.
    pub async fn up(&self) -> io::Result<()> {
        self.order(Order::Up).await?
    }

    /// Gives an order and waits until it is done.
    async fn order<T>(&self, order: impl FnOnce(oneshot::Sender<T>) -> Order) -> io::Result<T> {
        let (done, when_done) = oneshot::channel();
        let ended = || io::Error::from(io::ErrorKind::BrokenPipe);
        self.el.orders.send(order(done)).map_err(|_| ended())?;
        when_done.await.map_err(|_| ended())
    }

    /// Tells every command that the chain carries out from now on, in the chain's own order. There is
    /// one listener; a new one takes the place of the one before.
    #[must_use]
    pub fn processed(&self) -> mpsc::UnboundedReceiver<Processed> {
        let (tell, listener) = mpsc::unbounded_channel();
        self.el.chain().journal = processed::Journal::to(tell);
        listener
    }

    /// How many requests have come in so far; probes of the surface are not counted.
    #[must_use]
    pub fn requests(&self) -> Requests {
        self.el.log.requests()
    }

    /// The answer to a JSON-RPC body, without a connection, a token or a fault on the way.
    #[must_use]
    pub fn answer(&self, body: &[u8]) -> Vec<u8> {
        self.el.json_rpc_text(body)
    }

    /// The custody columns of the last forkchoice that had any (amsterdam.md, `custodyColumns`).
    #[must_use]
    pub fn custody_columns(&self) -> Option<B128> {
        self.el.chain().custody()
    }

    /// What it has received so far, in order of arrival; the newest 4096 requests.
    #[must_use]
    pub fn log(&self) -> Vec<Seen> {
        self.el.log.all()
    }
}
