//! Places in a lane for answers that somebody else reads.

use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::timeout;

/// How long a place is kept for an answer that has begun. The EL has done its part by then, and a CL
/// that takes longer to read it must not keep others out.
const TERM: Duration = Duration::from_secs(10);

/// A place that is given back when this is dropped, or when its term is over.
pub(super) struct Lease(
    #[expect(dead_code, reason = "its drop tells")] oneshot::Sender<Infallible>,
);

impl Lease {
    /// Must be called in a Tokio runtime.
    pub(super) fn new(place: OwnedSemaphorePermit) -> Self {
        let (lease, over) = oneshot::channel();
        tokio::spawn(async move {
            let _place = place;
            // Nothing is ever sent.
            let _ = timeout(TERM, over).await;
        });
        Self(lease)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tokio::sync::Semaphore;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn a_place_comes_back_with_the_lease_or_at_the_end_of_its_term() {
        let places = Arc::new(Semaphore::new(1));
        let take = async || Arc::clone(&places).acquire_owned().await.unwrap();
        let start = Instant::now();
        drop(Lease::new(take().await));
        let kept = Lease::new(take().await);
        assert_eq!(start.elapsed(), Duration::ZERO);
        drop(take().await);
        assert_eq!(start.elapsed().as_secs(), TERM.as_secs());
        drop(kept);
    }
}
