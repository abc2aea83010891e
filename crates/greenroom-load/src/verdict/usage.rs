//! CPU time of the generator's own threads.

use std::time::Duration;

use nix::sys::resource::{Usage, UsageWho, getrusage};
use procfs::FromRead as _;
use procfs::process::Schedstat;

/// CPU time of a thread that made load.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadUsage {
    /// Number of its stream in the plan.
    pub stream: usize,
    /// CPU time in this program.
    pub user: Duration,
    /// CPU time in the kernel on its behalf.
    pub system: Duration,
    /// Time in which it could have run, but another thread had the core.
    pub waited: Duration,
    /// Time from its begin to its end.
    pub elapsed: Duration,
}

impl ThreadUsage {
    /// Returns the share of its time in which it ran, from 0 to 1.
    #[must_use]
    pub fn busy(&self) -> f64 {
        (self.user + self.system).as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Returns the share of its time in which it waited for a core, from 0 to 1.
    #[must_use]
    pub fn waiting(&self) -> f64 {
        self.waited.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Returns the time that the calling thread has waited for a core; zero where the kernel keeps
    /// no account of it.
    pub(crate) fn waited_by_this_thread() -> Duration {
        let account = Schedstat::from_file("/proc/thread-self/schedstat");
        account.map_or(Duration::ZERO, |times| {
            Duration::from_nanos(times.run_delay)
        })
    }

    /// Returns the user and system time of the calling thread.
    pub(crate) fn of_this_thread() -> (Duration, Duration) {
        let usage = getrusage(UsageWho::RUSAGE_THREAD);
        usage.map_or_else(|_| Default::default(), |usage| times(&usage))
    }
}

fn times(usage: &Usage) -> (Duration, Duration) {
    let duration = |time: nix::sys::time::TimeVal| {
        let micros = time.tv_sec() * 1_000_000 + time.tv_usec();
        Duration::from_micros(micros.try_into().unwrap_or(0))
    };
    (duration(usage.user_time()), duration(usage.system_time()))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::*;

    /// Runs on one core until it has used 50 ms of CPU time; returns the time that it waited.
    fn busy_on(core: &CpuSet, begin: &Barrier) -> Duration {
        sched_setaffinity(None, core).expect("a core of ours");
        begin.wait();
        let used = || {
            let (user, system) = ThreadUsage::of_this_thread();
            user + system
        };
        while used() < Duration::from_millis(50) {
            std::hint::spin_loop();
        }
        ThreadUsage::waited_by_this_thread()
    }

    #[test]
    fn two_threads_on_one_core_wait_for_it() {
        let ours = sched_getaffinity(None).expect("we run somewhere");
        let mut core = CpuSet::new();
        core.set(
            (0..CpuSet::MAX_CPU)
                .find(|core| ours.is_set(*core))
                .expect("a core"),
        );
        let begin = Barrier::new(2);
        let waited = std::thread::scope(|scope| {
            let threads = [(); 2].map(|()| scope.spawn(|| busy_on(&core, &begin)));
            threads.map(|thread| thread.join().expect("it ends"))
        });
        let most = waited.into_iter().max().expect("two");
        assert!(most > Duration::from_millis(10), "{waited:?}");
    }
}
