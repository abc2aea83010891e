use std::time::{Duration, Instant};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use super::rule::SHORT_RUN;

/// Takes the busy time of a poll on a stage, where its thread often has to share a processor.
///
/// A poll that never slept was busy for as long as it had a processor. For one that slept all time
/// counts: on a loop it would have slept as well.
pub(super) struct Stopwatch {
    began: Instant,
    usage: Option<Usage>,
}

impl Stopwatch {
    pub(super) fn start() -> Self {
        let usage = getrusage(UsageWho::RUSAGE_THREAD).ok();
        let began = Instant::now();
        Self { began, usage }
    }

    pub(super) fn busy(&self) -> Duration {
        let taken = self.began.elapsed();
        if taken <= SHORT_RUN {
            return taken;
        }
        let now = getrusage(UsageWho::RUSAGE_THREAD).ok();
        match self.usage.zip(now) {
            Some((before, now)) if has_not_slept(&before, &now) => {
                cpu_time(&now).saturating_sub(cpu_time(&before)).min(taken)
            }
            _ => taken,
        }
    }
}

/// To sleep is to give the processor up of one's own accord.
fn has_not_slept(before: &Usage, now: &Usage) -> bool {
    now.voluntary_context_switches() == before.voluntary_context_switches()
}

fn cpu_time(usage: &Usage) -> Duration {
    let micros = (usage.user_time() + usage.system_time()).num_microseconds();
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;
    use std::thread;

    #[test]
    fn a_poll_that_sleeps_is_busy_meanwhile() {
        let stopwatch = Stopwatch::start();
        thread::sleep(Duration::from_millis(3));
        assert!(stopwatch.busy() >= Duration::from_millis(3));
    }

    /// However long others had the processor.
    #[test]
    fn one_that_computes_is_busy_for_its_share_of_the_processor() {
        let stopwatch = Stopwatch::start();
        let cpu = || cpu_time(&getrusage(UsageWho::RUSAGE_THREAD).expect("Linux tells"));
        let until = cpu() + Duration::from_millis(5);
        while cpu() < until {
            black_box(0);
        }
        let taken = stopwatch.began.elapsed();
        let busy = stopwatch.busy();
        assert!(busy >= Duration::from_millis(5), "{busy:?}");
        assert!(
            busy <= taken + Duration::from_millis(1),
            "{busy:?} of {taken:?}"
        );
    }
}
