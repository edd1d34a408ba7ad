//! Start and graceful stop of the sidecar.

use crate::{
    cl::{self, BindError, Place},
    cli::refuse,
    config::Config,
    el::{El, Reach, Surface},
    proxy::Proxy,
    telemetry,
};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    process::ExitCode,
    sync::Arc,
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
    task::JoinHandle,
};

/// A sidecar that is listening.
#[derive(Debug)]
pub struct Sidecar {
    place: Place,
    proxy: Proxy,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
    surface: JoinHandle<()>,
}

/// Runs the sidecar until SIGTERM or SIGINT, then lets what is in flight finish.
pub fn run(config: Config) -> ExitCode {
    if let Err(error) = telemetry::init(&config.log.filter, config.log.format) {
        return refuse(&format_args!("log-level: {error}"));
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format_args!("cannot start: {error}")),
    };
    let code = runtime.block_on(async {
        let mut signals = match StopSignals::new() {
            Ok(signals) => signals,
            Err(error) => return fail(&format_args!("cannot wait for signals: {error}")),
        };
        let sidecar = match Sidecar::start(config).await {
            Ok(sidecar) => sidecar,
            Err(error) => return fail(&error),
        };
        signals.next().await;
        tracing::info!("stopping: no new calls, finishing those in flight");
        tokio::select! {
            () = sidecar.stop() => ExitCode::SUCCESS,
            () = signals.next() => fail(&"stopped at once by a second signal"),
        }
    });
    // Dropping it would wait for a name that is just being looked up.
    runtime.shutdown_background();
    code
}

impl Sidecar {
    /// Binds the port or socket file and begins to look for the EL, which need not be there yet.
    ///
    /// # Errors
    /// When it cannot be bound.
    pub async fn start(config: Config) -> Result<Self, BindError> {
        let bound = cl::Server::bind(config.listen).await?;
        let place = bound.place().clone();
        let proxy = Proxy::new(El::new(config.el), config.schedule, config.horizon);
        tracing::info!(
            address = %place,
            version = env!("CARGO_PKG_VERSION"),
            schedule = if proxy.knows_schedule() { "given" } else { "learned from traffic" },
            "listening for the consensus client"
        );
        let surface = tokio::spawn(watch_surface(proxy.clone()));
        let (stop, stopped) = oneshot::channel();
        let handler = proxy.clone();
        let server = tokio::spawn(async move {
            // A sender that is gone stops the server as well.
            let ended = bound.serve(config.cl, handler, async { drop(stopped.await) }).await;
            if ended == cl::Stopped::Cut {
                tracing::warn!(
                    "the grace period is over: calls under way are cut (--grace-period)"
                );
            }
        });
        Ok(Self { place, proxy, stop, server, surface })
    }

    /// Where the CL is to be pointed at.
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// The TCP address of [`Self::place`]; `0.0.0.0:0` when that is a socket file, which has none.
    pub const fn address(&self) -> SocketAddr {
        match self.place {
            Place::Tcp(address) => address,
            Place::SocketFile(_) => SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        }
    }

    /// Waits until it is known what the EL offers. Calls need not wait for it: until then they go
    /// over JSON-RPC.
    pub async fn el_found(&self) {
        let mut surfaces = self.proxy.el().surface_changed();
        // The sender lives as long as the proxy.
        let _ = surfaces.wait_for(|surface| surface.reach == Reach::Up).await;
    }

    /// The way of the calls.
    pub const fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// Stops accepting, finishes what is in flight within the grace period, and returns.
    pub async fn stop(self) {
        // A server that has ended by itself has nobody to tell.
        let _ = self.stop.send(());
        let _ = self.server.await;
        self.surface.abort();
    }
}

/// Keeps looking for what the EL offers; a new surface may be a new process, whose payload ids are
/// not the old one's.
async fn watch_surface(proxy: Proxy) {
    let mut surfaces = proxy.el().surface_changed();
    let forget = async {
        let mut old = surfaces.borrow_and_update().clone();
        while surfaces.changed().await.is_ok() {
            let new = surfaces.borrow_and_update().clone();
            proxy.surface_changed(&old, &new);
            old = new;
        }
    };
    tokio::join!(proxy.el().keep_surface(), forget, learn_schedule(&proxy));
}

/// Asks each EL process once for the schedule that nobody gave.
async fn learn_schedule(proxy: &Proxy) {
    let mut surfaces = proxy.el().surface_changed();
    let mut asked = None;
    while !proxy.knows_schedule() {
        let is_new =
            |surface: &Arc<Surface>| surface.reach == Reach::Up && Some(surface.epoch) != asked;
        let Ok(epoch) = surfaces.wait_for(is_new).await.map(|surface| surface.epoch) else {
            return;
        };
        asked = Some(epoch);
        proxy.learn_schedule().await;
    }
}

/// SIGTERM and SIGINT.
pub(crate) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// From here on they do not end the process by themselves.
    pub(crate) fn new() -> io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { terminate, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn fail(error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("engine-ssz-proxy: {error}");
    ExitCode::FAILURE
}
