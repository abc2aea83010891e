use super::clocks::Clocks;
use crate::stage::scheduler::AtWork;
use crate::thread_state::is_blocked;

/// The result of a look at threads at work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) computing: usize,
    /// `true` if a thread counts as blocked because its clock stood. It may have been preempted.
    pub(super) is_guessed: bool,
}

impl Found {
    /// Returns how many threads may be started because of it. A guess may mistake a thread that was
    /// preempted for one that is blocked, so beside threads that compute it starts one more at
    /// most. If no thread at all had a processor since the last look they are blocked, or so hard
    /// pressed that the next ones are seen to compute.
    pub(super) fn start_max(self) -> usize {
        if self.is_guessed && self.computing > 0 {
            1
        } else {
            usize::MAX
        }
    }
}

/// Looks at threads until `enough` of them are found computing, and marks each one it looked at as
/// blocked or not.
pub(super) fn take(at_work: &mut [&mut AtWork], enough: usize, clocks: &mut Clocks) -> Found {
    let mut found = Found::default();
    for worker in at_work {
        if found.computing == enough {
            break;
        }
        worker.is_blocked = is_blocked(worker.thread).unwrap_or_else(|| {
            let has_stood = clocks.has_stood(worker);
            found.is_guessed |= has_stood;
            has_stood
        });
        found.computing += usize::from(!worker.is_blocked);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::of_tests::without_proc;
    use crate::stage::lanes::Length;
    use rustix::thread::{Pid, gettid};
    use std::sync::mpsc;
    use std::thread;

    fn worker(thread: i32) -> AtWork {
        AtWork {
            worker: 0,
            thread,
            run: 1,
            length: Length::Long,
            is_blocked: false,
        }
    }

    /// Runs `test` with the id of a thread that sleeps.
    fn beside_a_sleeper(test: impl FnOnce(i32)) {
        let (send_id, ids) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let sleeper = thread::spawn(move || {
            send_id
                .send(Pid::as_raw(Some(gettid())))
                .expect("the test waits");
            released.recv()
        });
        let sleeper_id = ids.recv().expect("the thread sends it");
        while is_blocked(sleeper_id) != Some(true) {
            thread::yield_now();
        }
        test(sleeper_id);
        release.send(()).expect("the thread waits");
        sleeper.join().expect("it ends").expect("it was released");
    }

    #[test]
    fn a_thread_that_sleeps_is_blocked_and_this_one_is_not() {
        beside_a_sleeper(|sleeper| {
            let mut at_work = [worker(sleeper), worker(Pid::as_raw(Some(gettid())))];
            let found = take(&mut at_work.each_mut(), 2, &mut Clocks::default());
            assert_eq!((found.computing, found.is_guessed), (1, false));
            assert!(at_work[0].is_blocked);
            assert!(!at_work[1].is_blocked);
        });
    }

    #[test]
    fn without_proc_one_whose_clock_stands_in_the_same_run_counts_as_blocked() {
        beside_a_sleeper(|sleeper| {
            without_proc(|| {
                let mut clocks = Clocks::default();
                let mut at_work = [worker(sleeper), worker(Pid::as_raw(Some(gettid())))];
                let first = take(&mut at_work.each_mut(), 2, &mut clocks);
                assert_eq!((first.computing, first.is_guessed), (2, false));
                let second = take(&mut at_work.each_mut(), 2, &mut clocks);
                assert_eq!((second.computing, second.is_guessed), (1, true));
                assert_eq!((first.start_max(), second.start_max()), (usize::MAX, 1));
                assert!(at_work[0].is_blocked);
                assert!(!at_work[1].is_blocked);
                at_work[0].run += 1;
                assert_eq!(take(&mut at_work.each_mut(), 2, &mut clocks).computing, 2);
            });
        });
    }

    #[test]
    fn who_is_not_looked_at_is_left_as_it_was() {
        let this = Pid::as_raw(Some(gettid()));
        let mut at_work = [
            worker(this),
            AtWork {
                is_blocked: true,
                ..worker(this)
            },
        ];
        let mut looked_at = at_work.each_mut();
        assert_eq!(take(&mut looked_at, 1, &mut Clocks::default()).computing, 1);
        assert!(at_work[1].is_blocked);
    }
}
