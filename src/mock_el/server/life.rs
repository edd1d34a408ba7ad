//! The port: open, closed, open again.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::Instant,
};

use super::{
    super::faults::{Accepted, Restart},
    El,
    connection::converse,
    line::Line,
};

/// How long to wait when no connection can be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// What the port is told to do.
#[derive(Debug)]
pub(in crate::mock_el) enum Order {
    /// Close the port and cut every connection for good.
    Stop,
    /// Close the port and cut every connection.
    Down(oneshot::Sender<()>),
    /// Open the port.
    Up(oneshot::Sender<io::Result<()>>),
    /// Cut every connection, change, and open the port after a while.
    Restart(Box<Restart>, Option<oneshot::Sender<io::Result<()>>>),
}

struct Port {
    addr: SocketAddr,
    listener: Option<TcpListener>,
    connections: JoinSet<()>,
    accepted: u64,
    /// When to open again, and who wants to know.
    opening: Option<(Instant, Option<oneshot::Sender<io::Result<()>>>)>,
}

/// Accepts until told to stop, or aborted; then no connection outlives it.
pub(in crate::mock_el) async fn serve(
    listener: TcpListener,
    addr: SocketAddr,
    el: Arc<El>,
    mut orders: mpsc::UnboundedReceiver<Order>,
) {
    let connections = JoinSet::new();
    let mut port = Port { addr, listener: Some(listener), connections, accepted: 0, opening: None };
    loop {
        tokio::select! {
            biased;
            order = orders.recv() => match order {
                Some(Order::Stop) | None => break,
                Some(order) => port.obey(order, &el).await,
            },
            () = due(port.opening.as_ref().map(|(at, _)| *at)) => port.reopen().await,
            stream = accept(port.listener.as_ref()) => match stream {
                Ok(stream) => port.take(stream, &el),
                // Out of descriptors, mostly: asking again at once would only burn the CPU.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = port.connections.join_next(), if !port.connections.is_empty() => {}
        }
    }
    port.close().await;
}

impl Port {
    async fn obey(&mut self, order: Order, el: &El) {
        match order {
            Order::Stop => {}
            Order::Down(done) => {
                self.close().await;
                let _ = done.send(());
            }
            Order::Up(done) => {
                let _ = done.send(self.open().await);
            }
            Order::Restart(restart, done) => {
                self.close().await;
                el.reborn(&restart);
                self.opening = Some((Instant::now() + restart.down, done));
            }
        }
    }

    async fn close(&mut self) {
        self.listener = None;
        self.opening = None;
        self.connections.shutdown().await;
    }

    async fn open(&mut self) -> io::Result<()> {
        if self.listener.is_none() {
            self.listener = Some(TcpListener::bind(self.addr).await?);
        }
        Ok(())
    }

    async fn reopen(&mut self) {
        let Some((_, done)) = self.opening.take() else { return };
        let opened = self.open().await;
        if let Err(error) = &opened {
            tracing::warn!(%error, address = %self.addr, "the port cannot be opened again");
        }
        if let Some(done) = done {
            let _ = done.send(opened);
        }
    }

    fn take(&mut self, stream: TcpStream, el: &Arc<El>) {
        let number = self.accepted;
        self.accepted += 1;
        let (line, hand) = Line::new(stream);
        let fault = el.faults.accept();
        match fault {
            Some(Accepted::Closed) => drop(line),
            Some(Accepted::Reset) => line.reset(),
            other => {
                self.connections.spawn(converse(line, hand, el.clone(), number, other));
            }
        }
    }
}

async fn due(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

async fn accept(listener: Option<&TcpListener>) -> io::Result<TcpStream> {
    match listener {
        Some(listener) => listener.accept().await.map(|(stream, _)| stream),
        None => std::future::pending().await,
    }
}
