//! Where the CL comes in: a TCP port, or a socket file.

use std::fmt;
use std::fs::{self, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// Out of descriptors, say: nothing gets better by asking again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(250);

/// Whoever may write to the file may connect: the owner alone.
const OWNER_ONLY: u32 = 0o600;

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
            Place::SocketFile(path) => bind_file(path).await,
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

async fn bind_file(path: &Path) -> io::Result<(Listener, Place)> {
    remove_stale(path).await?;
    let listener = UnixListener::bind(path)?;
    // From here on it is removed, also if the rest fails.
    let _file = SocketFile::at(path)?;
    fs::set_permissions(path, Permissions::from_mode(OWNER_ONLY))?;
    Ok((Listener::Unix { listener, _file }, Place::SocketFile(path.to_owned())))
}

/// Makes room for a socket file. Nothing but a socket that nobody serves is ever removed.
async fn remove_stale(path: &Path) -> io::Result<()> {
    let there = match fs::symlink_metadata(path) {
        Ok(there) => there,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !there.file_type().is_socket() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file that is no socket"));
    }
    match UnixStream::connect(path).await {
        Ok(_) => Err(io::Error::new(io::ErrorKind::AddrInUse, "another process serves it")),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
    }
}

/// A socket file of our own, removed with its listener.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    fn at(path: &Path) -> io::Result<Self> {
        let made = fs::symlink_metadata(path)?;
        Ok(Self { path: path.to_owned(), device: made.dev(), inode: made.ino() })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // By now it may be that of a process that took over.
        let is_ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|there| (there.dev(), there.ino()) == (self.device, self.inode));
        if is_ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the socket file");
        }
    }
}
