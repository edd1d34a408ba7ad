//! How slowly a body may come in all.

use std::time::Duration;

/// What every body has, however little of it comes.
const TIME: Duration = Duration::from_secs(120);

/// With each of so many bytes it has a second more. No link between a CL and its EL is as slow.
const BYTES_A_SECOND: u64 = 64 * 1024;

/// The time that was spent waiting for a body, against what has come of it.
///
/// A limit on the pauses alone would let a byte now and then keep what the body holds for ever.
#[derive(Debug, Default)]
pub(super) struct Pace {
    waited: Duration,
    come: u64,
}

impl Pace {
    /// How long the next bytes may take, if that is no more than `pause`.
    pub(super) fn patience(&self, pause: Duration) -> Duration {
        let time = TIME + Duration::from_secs(self.come / BYTES_A_SECOND);
        pause.min(time.saturating_sub(self.waited))
    }

    /// So much has come, after so long.
    pub(super) fn came(&mut self, bytes: usize, waited: Duration) {
        self.come = self.come.saturating_add(bytes as u64);
        self.waited = self.waited.saturating_add(waited);
    }
}

#[cfg(test)]
mod tests {
    use super::super::body::{Unread, Whole, read};
    use super::super::bounds::{Bounds, Budget};
    use super::super::claim::{Claim, Patience};
    use super::super::metered::Metered;
    use super::*;
    use bytes::Bytes;
    use futures_util::stream::unfold;
    use http_body::{Body, Frame};
    use http_body_util::{BodyExt, StreamBody};
    use std::convert::Infallible;
    use tokio::time::{Instant, sleep};

    const LIMIT: usize = 64 * 1024 * 1024;
    const PAUSE: Duration = Duration::from_secs(30);

    /// Pieces of that length, and the pause before each.
    fn pieces(
        number: usize,
        length: usize,
        pause: Duration,
    ) -> impl Body<Data = Bytes, Error = Infallible> + Unpin {
        let stream = unfold(number, move |left| async move {
            let left = left.checked_sub(1)?;
            sleep(pause).await;
            Some((Ok(Frame::data(Bytes::from(vec![b' '; length]))), left))
        });
        StreamBody::new(Box::pin(stream))
    }

    async fn whole(body: impl Body<Data = Bytes> + Unpin) -> Result<usize, Unread> {
        let budget = Budget::new(Bounds::new(LIMIT), LIMIT);
        let claim = Claim::taken(Patience::of(0, PAUSE), None::<()>);
        let Whole { body, .. } = read(body, LIMIT, PAUSE, budget.body(), claim).await?;
        Ok(body.len())
    }

    async fn through(body: impl Body<Data = Bytes> + Unpin) -> Result<usize, Unread> {
        let (body, fault) = Metered::new(body, LIMIT, PAUSE)?;
        match body.collect().await {
            Ok(collected) => Ok(collected.to_bytes().len()),
            Err(_) => Err(fault.get().unwrap()),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_trickle_does_not_go_on_for_ever() {
        let begun = Instant::now();
        let trickle = || pieces(1000, 1, PAUSE - Duration::from_secs(1));
        assert_eq!(whole(trickle()).await, Err(Unread::Stalled));
        assert_eq!(begun.elapsed().as_secs(), TIME.as_secs());
        assert_eq!(through(trickle()).await, Err(Unread::Stalled));
        assert_eq!(begun.elapsed().as_secs(), 2 * TIME.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_link_is_no_trickle() {
        let length = 65_536;
        let slow = || pieces(600, length, Duration::from_secs(1));
        assert_eq!(whole(slow()).await, Ok(600 * length));
        assert_eq!(through(slow()).await, Ok(600 * length));
    }

    /// Not the CL's time: it is the EL that does not take more.
    #[tokio::test(start_paused = true)]
    async fn a_reader_that_is_slow_costs_the_body_nothing() {
        let (mut body, _) =
            Metered::new(pieces(10, 1, Duration::from_secs(1)), LIMIT, PAUSE).unwrap();
        while let Some(frame) = body.frame().await {
            frame.unwrap();
            sleep(TIME).await;
        }
    }
}
