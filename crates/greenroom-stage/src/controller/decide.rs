/// The controller's view of a stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct StageSample {
    /// Threads at work, or announced for it.
    pub(super) working: usize,
    /// Those of them that compute, as far as the controller looked.
    pub(super) computing: usize,
    /// Runs that wait.
    pub(super) waiting: usize,
    /// Threads that may compute at a time.
    pub(super) compute_max: usize,
    /// Threads that may exist.
    pub(super) threads_max: usize,
}

/// Returns how many more threads are to start now.
///
/// None while as many compute as may. Otherwise as many as would fill the processors if the new
/// threads computed and blocked as those at work do, but at most as many again: the sample is
/// small, and the next look is near. So 500 runs that all block are at work after 8 looks: 2, 4, 8
/// …
pub(super) fn threads_to_start(sample: &StageSample) -> usize {
    let missing = sample.compute_max.saturating_sub(sample.computing);
    if missing == 0 {
        return 0;
    }
    let filling = (sample.working * missing)
        .checked_div(sample.computing)
        .unwrap_or(sample.working);
    filling
        .min(sample.working)
        .max(missing)
        .min(sample.waiting)
        .min(sample.threads_max.saturating_sub(sample.working))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const IDLE: StageSample = StageSample {
        working: 0,
        computing: 0,
        waiting: 0,
        compute_max: 2,
        threads_max: 512,
    };

    #[test]
    fn computing_work_gets_no_more_threads_than_may_compute() {
        let full = StageSample {
            working: 2,
            computing: 2,
            waiting: 1_000,
            ..IDLE
        };
        assert_eq!(threads_to_start(&full), 0);
        let half = StageSample {
            working: 1,
            computing: 1,
            ..full
        };
        assert_eq!(threads_to_start(&half), 1);
    }

    #[test]
    fn blocking_work_doubles_its_threads_up_to_the_limit() {
        let (mut working, mut looks) = (2, 0);
        while working < 500 {
            let sample = StageSample {
                working,
                waiting: 500 - working,
                ..IDLE
            };
            working += threads_to_start(&sample);
            looks += 1;
        }
        assert_eq!((working, looks), (500, 8));
        let at_limit = StageSample {
            working: 512,
            waiting: 100,
            ..IDLE
        };
        assert_eq!(threads_to_start(&at_limit), 0);
    }

    #[test]
    fn mixed_work_gets_as_many_as_fill_the_processors() {
        // One of 10 computes: 10 more make it two.
        let mixed = StageSample {
            working: 10,
            computing: 1,
            waiting: 100,
            ..IDLE
        };
        assert_eq!(threads_to_start(&mixed), 10);
        // 3 of 12 compute where 4 may: 4 more make it four.
        let nearly = StageSample {
            working: 12,
            computing: 3,
            compute_max: 4,
            ..mixed
        };
        assert_eq!(threads_to_start(&nearly), 4);
    }

    proptest! {
        #[test]
        fn bounds_hold(
            working in 0..600_usize,
            computing in 0..600_usize,
            waiting in 0..10_000_usize,
            compute_max in 1..64_usize,
        ) {
            let computing = computing.min(working);
            let sample = StageSample { working, computing, waiting, compute_max, threads_max: 512 };
            let start = threads_to_start(&sample);
            prop_assert!(start <= waiting);
            prop_assert!(start == 0 || working + start <= 512);
            prop_assert!(start <= working.max(compute_max));
            prop_assert!(computing < compute_max || start == 0);
            let must_start = computing < compute_max && waiting > 0 && working < 512;
            prop_assert!(start > 0 || !must_start);
        }
    }
}
