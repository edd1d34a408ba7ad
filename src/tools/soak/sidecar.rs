//! The sidecar as a process of its own, so that its memory can be told from everybody else's.

use super::SoakError;
use std::{
    ffi::OsString,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::Duration,
};

/// How long a start may take.
const START: Duration = Duration::from_secs(20);

/// Lines of its log that are kept.
const LINES: usize = 40;

/// A sidecar that listens. It ends when it is dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    address: SocketAddr,
    log: Arc<Mutex<Vec<String>>>,
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended by itself cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    /// Starts that program in front of an EL, on a port of its own choice, which it tells in its log.
    pub(super) fn start(program: &Path, el: SocketAddr, secret: &str) -> Result<Self, SoakError> {
        let mut command = Command::new(program);
        let is_setting =
            |name: &OsString| name.to_string_lossy().starts_with(crate::config::ENV_PREFIX);
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_setting(name)) {
            command.env_remove(name);
        }
        command
            .env(format!("{}JWT_SECRET", crate::config::ENV_PREFIX), secret)
            .args(["--listen-port", "0", "--log-format", "json", "--log-level", "info"])
            .arg(format!("http://{el}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let stderr = child.stderr.take().ok_or("the sidecar has no standard error")?;
        let log = Arc::new(Mutex::new(Vec::new()));
        let (tell, address) = mpsc::channel();
        let kept = log.clone();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if let Some(address) = address_in(&line) {
                    // Whoever waited may have given up.
                    let _ = tell.send(address);
                }
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() == LINES {
                    kept.remove(0);
                }
                kept.push(line);
            }
        });
        match address.recv_timeout(START) {
            Ok(address) => Ok(Self { child, address, log }),
            Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                let said = log.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
                Err(format!("the sidecar did not start: {said}").into())
            }
        }
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The last lines of its log.
    pub(super) fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }

    /// What it said in the end, if it has ended, or if a call of it panicked.
    pub(super) fn trouble(&mut self) -> Option<String> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let has_panicked = log.iter().any(|line| line.contains("panicked at"));
        match self.child.try_wait() {
            Ok(None) if !has_panicked => None,
            Ok(None) => Some(format!("the sidecar panicked: {}", log.join("\n"))),
            Ok(Some(status)) => Some(format!("the sidecar ended, {status}: {}", log.join("\n"))),
            Err(error) => Some(format!("the sidecar is out of reach: {error}")),
        }
    }
}

/// The address in the log line of a server that listens.
fn address_in(line: &str) -> Option<SocketAddr> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    let find = |value: &serde_json::Value| value.get("address")?.as_str()?.parse().ok();
    find(&line).or_else(|| find(line.get("fields")?))
}
