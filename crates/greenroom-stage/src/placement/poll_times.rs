use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crossbeam_utils::CachePadded;
use greenroom_quantiles::Quantiles;

use crate::run_delay::nanos;

/// Shards, each written by one thread without contention; more threads than that share them.
const SHARDS: usize = 16;

/// Four buckets for each doubling, up to 2^32 us: a value is off by a quarter at most.
const BUCKETS: usize = 4 * 32;

/// A histogram of the poll times of a route's runs, sharded by thread.
#[derive(Debug, Default)]
pub(crate) struct PollTimes {
    shards: [OnceLock<Box<CachePadded<Shard>>>; SHARDS],
}

#[derive(Debug)]
struct Shard {
    runs: AtomicU64,
    nanos: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
}

impl PollTimes {
    pub(crate) fn record(&self, poll_time: Duration) {
        let shard = self.shards[shard_of_thread()].get_or_init(|| {
            Box::new(CachePadded::new(Shard {
                runs: AtomicU64::new(0),
                nanos: AtomicU64::new(0),
                buckets: std::array::from_fn(|_| AtomicU64::new(0)),
            }))
        });
        let nanos = nanos(poll_time);
        shard.runs.fetch_add(1, Ordering::Relaxed);
        shard.nanos.fetch_add(nanos, Ordering::Relaxed);
        shard.buckets[bucket(nanos)].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of runs that all threads have recorded.
    pub(crate) fn runs(&self) -> u64 {
        let shards = self.shards.iter().filter_map(OnceLock::get);
        shards.map(|shard| shard.runs.load(Ordering::Relaxed)).sum()
    }

    /// Returns the mean of the runs that the calling thread has recorded; zero before the first.
    pub(crate) fn mean_of_this_thread(&self) -> Duration {
        let Some(shard) = self.shards[shard_of_thread()].get() else {
            return Duration::ZERO;
        };
        let nanos = shard.nanos.load(Ordering::Relaxed);
        let mean = nanos.checked_div(shard.runs.load(Ordering::Relaxed));
        Duration::from_nanos(mean.unwrap_or(0))
    }

    pub(crate) fn quantiles(&self) -> Quantiles {
        let mut counts = [0_u64; BUCKETS];
        for shard in self.shards.iter().filter_map(OnceLock::get) {
            for (count, bucket) in counts.iter_mut().zip(&shard.buckets) {
                *count += bucket.load(Ordering::Relaxed);
            }
        }
        let count: u64 = counts.iter().sum();
        let value_at = |percent: u64| value_at(&counts, (count * percent).div_ceil(100));
        Quantiles {
            count,
            p50_micros: value_at(50),
            p90_micros: value_at(90),
            p99_micros: value_at(99),
            max_micros: value_at(100),
        }
    }
}

/// Returns the upper end of the bucket in which the run of this rank lies.
fn value_at(counts: &[u64; BUCKETS], rank: u64) -> u64 {
    let mut seen = 0;
    for (bucket, count) in counts.iter().enumerate() {
        seen += count;
        if rank > 0 && seen >= rank {
            return upper_end(bucket);
        }
    }
    0
}

/// Returns the bucket of a time by its microseconds, rounded up; 0 to 3 have buckets of their own.
fn bucket(nanos: u64) -> usize {
    let micros = usize::try_from(nanos.div_ceil(1_000)).unwrap_or(usize::MAX);
    if micros < 4 {
        return micros;
    }
    let doubling = micros.ilog2() as usize;
    let quarter = (micros >> (doubling - 2)) & 3;
    ((doubling - 1) * 4 + quarter).min(BUCKETS - 1)
}

fn upper_end(bucket: usize) -> u64 {
    let (doubling, quarter) = (bucket / 4 + 1, bucket as u64 % 4);
    if bucket < 4 {
        return bucket as u64;
    }
    ((quarter + 5) << (doubling - 2)) - 1
}

fn shard_of_thread() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARD: Cell<usize> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed) % SHARDS);
    }
    SHARD.get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn threads_are_summed() {
        let times = PollTimes::default();
        std::thread::scope(|scope| {
            for millis in 1..=4 {
                let times = &times;
                scope.spawn(move || times.record(Duration::from_millis(millis)));
            }
        });
        let quantiles = times.quantiles();
        assert_eq!((quantiles.count, times.runs()), (4, 4));
        assert!(
            (2_000..=2_500).contains(&quantiles.p50_micros),
            "{quantiles:?}"
        );
        assert!(
            (4_000..=5_000).contains(&quantiles.max_micros),
            "{quantiles:?}"
        );
        assert_eq!(PollTimes::default().quantiles(), Quantiles::default());
    }

    proptest! {
        #[test]
        fn a_bucket_is_wide_by_a_quarter_at_most(micros in 0..4_000_000_000_u64) {
            let end = upper_end(bucket(micros * 1_000));
            prop_assert!(end >= micros, "{end}");
            prop_assert!(end <= micros + micros / 4, "{end}");
        }
    }
}
