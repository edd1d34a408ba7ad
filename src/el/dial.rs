//! Opens TCP connections: the name is resolved anew for each, and all its addresses are tried with
//! a stagger, the first to come up wins (RFC 8305, *Happy Eyeballs*).

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// How long one address has before the next is tried beside it (RFC 8305, section 8).
const STAGGER: Duration = Duration::from_millis(250);
/// The least there is between two (RFC 8305, section 5).
const LEAST_STAGGER: Duration = Duration::from_millis(10);
/// After this much silence TCP asks a peer for a sign of life. A kernel answers for a process that
/// is merely busy, so this finds hosts that are gone.
const TCP_KEEPALIVE: Duration = Duration::from_secs(10);
/// How long bytes may go unacknowledged. This one runs for a busy process too, once its buffers
/// are full, so it is longer than any CL waits.
#[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(30);

type Lookup = dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// What gives a host name its addresses.
#[derive(Clone)]
pub struct Resolver(Option<Arc<Lookup>>);

impl Resolver {
    /// The system's.
    pub fn system() -> Self {
        Self(None)
    }

    /// One of the caller's own, for tests: the addresses of a host at a port, asked before each
    /// connection.
    pub fn from_fn(
        lookup: impl Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(lookup)))
    }

    async fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        match &self.0 {
            Some(lookup) => lookup(host, port),
            None => Ok(tokio::net::lookup_host((host, port)).await?.collect()),
        }
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Resolver(own)" } else { "Resolver(system)" })
    }
}

/// A connection to that host, which may be a bracketed literal. One address has `patience` to come
/// up, the name has as much again to be resolved, and all together have no more than that.
pub(super) async fn dial(
    resolver: &Resolver,
    host: &str,
    port: u16,
    patience: Duration,
) -> io::Result<TcpStream> {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let way = async {
        let addresses = alternating(resolver.addresses(host, port).await?);
        let stagger = stagger(addresses.len(), patience);
        race(addresses, stagger, |address| async move {
            match tokio::time::timeout(patience, TcpStream::connect(address)).await {
                Ok(connected) => connected,
                Err(_) => Err(io::ErrorKind::TimedOut.into()),
            }
        })
        .await
    };
    let stream = match tokio::time::timeout(patience * 2, way).await {
        Ok(connected) => connected?,
        Err(_) => return Err(io::ErrorKind::TimedOut.into()),
    };
    prepare(&stream)?;
    Ok(stream)
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new()
        .with_time(TCP_KEEPALIVE)
        .with_interval(TCP_KEEPALIVE / 2)
        .with_retries(2);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    socket.set_tcp_user_timeout(Some(TCP_USER_TIMEOUT))?;
    Ok(())
}

/// Short enough that the last of many addresses is tried while there is time for it.
fn stagger(addresses: usize, patience: Duration) -> Duration {
    let share = patience / u32::try_from(addresses).unwrap_or(u32::MAX).max(1);
    share.clamp(LEAST_STAGGER, STAGGER)
}

/// The families take turns, that of the resolver's first choice first (RFC 8305, section 4).
fn alternating(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (mut first, mut second): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    let rest = first.split_off(second.len().min(first.len()));
    let left = second.split_off(first.len());
    first.into_iter().zip(second).flat_map(|(a, b)| [a, b]).chain(rest).chain(left).collect()
}

/// Tries one address after the other, the next as soon as one has failed or the stagger is over.
/// The error is the first one: that of the address which the resolver would rather have had.
async fn race<S, F>(
    addresses: Vec<SocketAddr>,
    stagger: Duration,
    connect: impl Fn(SocketAddr) -> F,
) -> io::Result<S>
where
    F: Future<Output = io::Result<S>>,
{
    let mut untried = addresses.into_iter();
    let mut tries = FuturesUnordered::new();
    let mut first_error = None;
    loop {
        if let Some(address) = untried.next() {
            tries.push(connect(address));
        }
        let are_left = untried.len() > 0;
        tokio::select! {
            biased;
            tried = tries.next() => match tried {
                Some(Ok(stream)) => return Ok(stream),
                Some(Err(error)) => {
                    first_error.get_or_insert(error);
                }
                None => {
                    let none = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                    return Err(first_error.unwrap_or_else(none));
                }
            },
            () = tokio::time::sleep(stagger), if are_left => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use tokio::time::Instant;

    fn addresses(list: &[&str]) -> Vec<SocketAddr> {
        list.iter().map(|address| format!("{address}:1").parse().unwrap()).collect()
    }

    #[test]
    fn the_families_take_turns() {
        for (given, wanted) in [
            (vec!["[::1]", "[::2]", "1.0.0.1"], vec!["[::1]", "1.0.0.1", "[::2]"]),
            (vec!["1.0.0.1", "[::1]", "1.0.0.2"], vec!["1.0.0.1", "[::1]", "1.0.0.2"]),
            (vec!["1.0.0.1", "[::1]", "[::2]"], vec!["1.0.0.1", "[::1]", "[::2]"]),
            (vec!["1.0.0.1"], vec!["1.0.0.1"]),
            (vec![], vec![]),
        ] {
            assert_eq!(alternating(addresses(&given)), addresses(&wanted));
        }
    }

    /// Tries addresses of which the first ones never answer and some fail; when each was begun.
    async fn raced(list: &[&str], stagger: Duration) -> (io::Result<SocketAddr>, Vec<Duration>) {
        let (start, begun) = (Instant::now(), Mutex::new(Vec::new()));
        let won = race(addresses(list), stagger, |address| {
            begun.lock().unwrap().push(start.elapsed());
            async move {
                match address.ip().to_string().as_str() {
                    "9.9.9.9" => std::future::pending().await,
                    "8.8.8.8" => Err(io::ErrorKind::ConnectionRefused.into()),
                    _ => Ok(address),
                }
            }
        })
        .await;
        (won, begun.into_inner().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn all_addresses_are_tried_the_next_after_a_stagger_or_a_failure() {
        let ms = Duration::from_millis;
        let black_holes = ["9.9.9.9", "9.9.9.9", "8.8.8.8", "1.0.0.1", "1.0.0.2"];
        let (won, begun) = raced(&black_holes, STAGGER).await;
        assert_eq!(won.unwrap(), addresses(&["1.0.0.1"])[0]);
        assert_eq!(begun, [ms(0), ms(250), ms(500), ms(500)]);

        let (won, _) = raced(&["8.8.8.8", "8.8.8.8"], STAGGER).await;
        assert_eq!(won.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        let (won, _) = raced(&[], STAGGER).await;
        assert_eq!(won.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn of_many_addresses_the_last_is_tried_in_time() {
        let second = Duration::from_secs(1);
        assert_eq!(stagger(2, second), STAGGER);
        assert_eq!(stagger(10, second), second / 10);
        assert_eq!(stagger(usize::MAX, second), LEAST_STAGGER);
        assert_eq!(stagger(0, second), STAGGER);
    }
}
