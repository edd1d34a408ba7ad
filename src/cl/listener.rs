//! Where the CL comes in: a TCP port, or a socket file.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::socket_file::{self, SocketFile};

/// Out of descriptors, say: nothing gets better by asking again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(250);

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A TCP port.
    Tcp(SocketAddr),
    /// A socket file. One that a dead process left there is replaced, one that is served is not;
    /// it is made for its owner alone (mode 0600) and removed at the end.
    SocketFile(PathBuf),
}

impl From<SocketAddr> for Place {
    fn from(addr: SocketAddr) -> Self {
        Self::Tcp(addr)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(addr) => addr.fmt(f),
            Self::SocketFile(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

/// The port or the file cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {place}: {error}")]
pub struct BindError {
    /// The place asked for.
    pub place: Place,
    /// What the system says.
    pub error: io::Error,
}

/// A place that is bound.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix {
        listener: UnixListener,
        /// Removed when this is dropped.
        _file: SocketFile,
    },
}

/// A connection of a CL.
pub(super) enum Accepted {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Listener {
    /// Binds, and tells what was bound: the port the system chose when asked for port 0.
    pub(super) async fn bind(place: Place) -> Result<(Self, Place), BindError> {
        let bound = match &place {
            Place::Tcp(addr) => bind_port(*addr).await,
            Place::SocketFile(path) => socket_file::bind(path).await.map(|(listener, _file)| {
                (Self::Unix { listener, _file }, Place::SocketFile(path.clone()))
            }),
        };
        bound.map_err(|error| BindError { place, error })
    }

    /// Waits for the next connection. A failure to take one is not the end of the server.
    pub(super) async fn accept(&self) -> Accepted {
        loop {
            let accepted = match self {
                Self::Tcp(listener) => {
                    listener.accept().await.map(|(stream, _)| Accepted::Tcp(stream))
                }
                Self::Unix { listener, .. } => {
                    listener.accept().await.map(|(stream, _)| Accepted::Unix(stream))
                }
            };
            match accepted {
                Ok(stream) => return stream,
                // The CL was gone before its turn came.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

async fn bind_port(addr: SocketAddr) -> io::Result<(Listener, Place)> {
    let listener = TcpListener::bind(addr).await?;
    let place = Place::Tcp(listener.local_addr()?);
    Ok((Listener::Tcp(listener), place))
}
