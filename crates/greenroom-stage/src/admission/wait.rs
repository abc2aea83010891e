use std::time::Duration;

/// The load of a stage, as the prediction of a new run's wait needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Runs that wait in the queue.
    pub waiting: usize,
    /// Threads that run something now, computing or blocked.
    pub running: usize,
    /// Threads that may compute at a time; at least 1.
    pub compute_threads: usize,
    /// Threads that may exist, those that block included; at least 1.
    pub threads_max: usize,
    /// Processor time that all waiting runs will want together: their CPU time, and the time that
    /// they stand ready while others have the processors.
    pub backlog: Duration,
    /// Mean time for which a run holds a thread, computing or blocked.
    pub held: Duration,
    /// Lateness of the head of the queue: the time it has waited, less the wait that was predicted
    /// for it. Zero if it is on time.
    pub head_late: Duration,
}

/// Predicts the wait of a new run before a thread takes it.
///
/// Two things can be short, processors or threads; the scarcer decides:
///
/// - processors: `backlog / compute_threads`;
/// - threads: `(waiting + running + 1 - threads_max) * held / threads_max`, and nothing as long as
///   a thread may be started for each run.
///
/// The head of the queue shows the error of the model: if it is late, the new run will be at least
/// as late, and that is added.
///
/// # Worked numbers
///
/// Two compute threads, runs that want a processor for 30 ms, 12 of them waiting: 12 * 30 / 2 = 180
/// ms.
///
/// ```
/// use std::time::Duration;
/// use greenroom_stage::admission::{Load, predicted_wait};
///
/// let ms = Duration::from_millis;
/// let computing = Load {
///     waiting: 12,
///     running: 2,
///     compute_threads: 2,
///     threads_max: 512,
///     backlog: 12 * ms(30),
///     held: ms(30),
///     head_late: ms(0),
/// };
/// assert_eq!(predicted_wait(&computing), ms(180));
///
/// // 100 ms were predicted for the head, and it has waited 160 ms: what came before it was
/// // longer than the mean. 180 + 60 = 240 ms.
/// let starved = Load { head_late: ms(60), ..computing };
/// assert_eq!(predicted_wait(&starved), ms(240));
///
/// // 400 threads sleep 2 s each, 100 more runs wait for threads that may still be added. Only the
/// // processors count: 100 * 0.04 / 2 = 2 ms.
/// let blocked = Load {
///     waiting: 100,
///     running: 400,
///     backlog: 100 * Duration::from_micros(40),
///     held: ms(2_000),
///     ..computing
/// };
/// assert_eq!(predicted_wait(&blocked), ms(2));
///
/// // 512 sleep already, 127 wait: (127 + 512 + 1 - 512) * 2,000 / 512 = 500 ms.
/// let full = Load { waiting: 127, running: 512, ..blocked };
/// assert_eq!(predicted_wait(&full), ms(500));
/// ```
#[must_use]
pub fn predicted_wait(load: &Load) -> Duration {
    let processors = share(load.backlog, 1, load.compute_threads);
    let wanted = load.waiting.saturating_add(load.running).saturating_add(1);
    let excess = wanted.saturating_sub(load.threads_max);
    let threads = share(load.held, excess, load.threads_max);
    processors.max(threads).saturating_add(load.head_late)
}

fn share(each: Duration, runs: usize, threads: usize) -> Duration {
    let total = each.as_nanos().saturating_mul(runs as u128);
    let wait = total / threads.max(1) as u128;
    Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn loads() -> impl Strategy<Value = Load> {
        let counts = (0..10_000_usize, 0..600_usize, 1..64_usize, 0..512_usize);
        let times = (0..10_000_000_u64, 0..10_000_000_u64, 0..10_000_000_u64);
        (counts, times).prop_map(
            |((waiting, running, compute, blocking), (wanted, more, late))| Load {
                waiting,
                running,
                compute_threads: compute,
                threads_max: compute + blocking,
                backlog: Duration::from_micros(wanted),
                held: Duration::from_micros(wanted + more),
                head_late: Duration::from_micros(late),
            },
        )
    }

    #[test]
    fn an_empty_stage_keeps_nobody_waiting() {
        let idle = Load {
            waiting: 0,
            running: 0,
            compute_threads: 1,
            threads_max: 1,
            backlog: Duration::ZERO,
            held: Duration::from_secs(9),
            head_late: Duration::ZERO,
        };
        assert_eq!(predicted_wait(&idle), Duration::ZERO);
        let taken = Load { running: 1, ..idle };
        assert_eq!(predicted_wait(&taken), Duration::from_secs(9));
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let most = Load {
            waiting: usize::MAX,
            running: usize::MAX,
            compute_threads: 0,
            threads_max: 0,
            backlog: Duration::MAX,
            held: Duration::MAX,
            head_late: Duration::MAX,
        };
        assert_eq!(predicted_wait(&most), Duration::MAX);
    }

    proptest! {
        #[test]
        fn more_of_anything_but_threads_waits_no_shorter(load in loads(), more in 1..1_000_usize) {
            let wait = predicted_wait(&load);
            let time = Duration::from_micros(more as u64);
            for worse in [
                Load { waiting: load.waiting + more, ..load },
                Load { running: load.running + more, ..load },
                Load { backlog: load.backlog + time, ..load },
                Load { held: load.held + time, ..load },
                Load { head_late: load.head_late + time, ..load },
            ] {
                prop_assert!(predicted_wait(&worse) >= wait, "{worse:?}");
            }
        }

        #[test]
        fn more_threads_wait_no_longer(load in loads(), more in 1..1_000_usize) {
            let wait = predicted_wait(&load);
            for better in [
                Load { compute_threads: load.compute_threads + more, ..load },
                Load { threads_max: load.threads_max + more, ..load },
            ] {
                prop_assert!(predicted_wait(&better) <= wait, "{better:?}");
            }
        }
    }
}
