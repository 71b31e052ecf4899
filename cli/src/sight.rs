//! Whether what a command asks about is still in sight, if its coordinator can be lost in the middle.

use std::time::{Duration, Instant};

use anyhow::bail;
use tonic::Status;

use crate::remote::{Refused, is_lost, refused};

/// How long something may be out of sight after it was seen. Meanwhile a standby takes over, or the coordinator starts again.
const AWAY_MAX: Duration = Duration::from_secs(60);
/// How often it is looked for during that time.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Whether a run is in sight.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// The run was never seen. If the first attempt gets no answer, later ones will not either.
    Never,
    Seen,
    /// The coordinator has been gone since this time.
    LostAt(Instant),
}

/// The result of a conversation, or the reason why the coordinator was lost during it.
pub(crate) type OrLost<T> = Result<T, anyhow::Error>;

/// Distinguishes a lost coordinator from a request that the coordinator refused, which is the error.
pub(crate) fn or_lost<T>(answer: Result<T, Status>) -> anyhow::Result<OrLost<T>> {
    match answer {
        Ok(answer) => Ok(Ok(answer)),
        Err(status) if is_lost(&status) => Ok(Err(refused(status))),
        Err(status) => Err(refused(status)),
    }
}

impl Sight {
    /// Called when the coordinator of the run `name` was lost. Waits a moment before the next attempt, or returns the reason
    /// why there is no further attempt. A coordinator that refuses the certificate is not a lost one.
    pub(crate) async fn look_again(
        &mut self,
        name: &str,
        why: anyhow::Error,
        say: impl FnOnce(&str),
    ) -> anyhow::Result<()> {
        if why.is::<Refused>() {
            return Err(why);
        }
        match self.lose(Instant::now()) {
            (true, true) => say(&format!("{why:#}; trying to reach {name} again, for up to a minute")),
            (true, false) => {}
            (false, _) if *self == Self::Never => return Err(why),
            (false, _) => {
                bail!("{name} could not be reached for a minute, but may still be running: try again later ({why:#})")
            }
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
        Ok(())
    }

    /// Notes that the coordinator is gone. Returns whether to look for it, and whether the loss is new.
    fn lose(&mut self, now: Instant) -> (bool, bool) {
        match *self {
            Self::Never => (false, false),
            Self::Seen => {
                *self = Self::LostAt(now);
                (true, true)
            }
            Self::LostAt(since) => (now.saturating_duration_since(since) < AWAY_MAX, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_rejected_client_stops_looking() {
        let why = anyhow::Error::new(Refused("it was revoked".into()));
        let ended = Sight::Seen.look_again("run", why, |note| panic!("{note}")).await;
        assert_eq!(ended.unwrap_err().to_string(), "it was revoked");
    }

    #[test]
    fn a_known_run_is_searched_for_a_minute_whenever_it_disappears() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(Sight::Never.lose(start), (false, false));
        let mut sight = Sight::Seen;
        // Nothing had changed for a long time before.
        assert_eq!(
            [1000, 1001, 1059].map(|second| sight.lose(at(second))),
            [(true, true), (true, false), (true, false)]
        );
        assert_eq!(sight.lose(at(1060)), (false, false));
        sight = Sight::Seen;
        assert_eq!([1061, 1120].map(|second| sight.lose(at(second))), [(true, true), (true, false)]);
    }
}
