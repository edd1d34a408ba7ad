//! A socket file from its binding to its removal.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};

/// Whoever may write to the file may connect: the owner alone.
const OWNER_ONLY: u32 = 0o600;

/// Whoever else binds in the same folder takes no longer than it takes to find out that nobody
/// serves a file.
const LOCK_TRIES: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Binds a socket file. It has its name when it is served and for its owner alone; nobody ever sees
/// it otherwise.
pub(super) async fn bind(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let _alone = alone_in(folder).await?;
    check(path).await?;
    let (listener, unnamed) = bind_unnamed(folder)?;
    // From here on it is removed, also if the rest fails.
    let mut file = SocketFile::at(unnamed)?;
    fs::set_permissions(&file.path, Permissions::from_mode(OWNER_ONLY))?;
    fs::rename(&file.path, path)?;
    path.clone_into(&mut file.path);
    Ok((listener, file))
}

/// Keeps others like us from the folder until it is dropped: of two that find the file of a dead
/// process, the second would replace that of the first. A file system without such locks is used
/// without one.
async fn alone_in(folder: &Path) -> io::Result<Option<File>> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let folder = File::open(folder)?;
    for _ in 0..LOCK_TRIES {
        match folder.try_lock() {
            Ok(()) => return Ok(Some(folder)),
            Err(TryLockError::Error(_)) => return Ok(None),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_PAUSE).await,
        }
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "its folder is locked"))
}

/// A short name, as a system takes only about 100 bytes for the whole path.
fn bind_unnamed(folder: &Path) -> io::Result<(UnixListener, PathBuf)> {
    let mut names = (0..u8::MAX).map(|number| folder.join(format!(".{number}.sock")));
    loop {
        let Some(name) = names.next() else { return Err(io::ErrorKind::AddrInUse.into()) };
        match UnixListener::bind(&name) {
            Ok(listener) => return Ok((listener, name)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(error),
        }
    }
}

/// Whether there is room for a socket file. Nothing but a socket that nobody serves is replaced.
async fn check(path: &Path) -> io::Result<()> {
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
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
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
    fn at(path: PathBuf) -> io::Result<Self> {
        let made = fs::symlink_metadata(&path)?;
        Ok(Self { path, device: made.dev(), inode: made.ino() })
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
