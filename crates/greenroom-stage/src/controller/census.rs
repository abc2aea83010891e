use crate::stage::hand_off::AtWork;
use crate::thread_state::is_blocked;

/// Looks at threads until `enough` of them are found computing, notes for each it looked at whether
/// it is blocked, and returns how many compute.
pub(super) fn take(at_work: &mut [&mut AtWork], enough: usize) -> usize {
    let mut computing = 0;
    for worker in at_work {
        if computing == enough {
            break;
        }
        worker.is_blocked = is_blocked(worker.thread);
        computing += usize::from(!worker.is_blocked);
    }
    computing
}

#[cfg(test)]
mod tests {
    use super::*;
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

    #[test]
    fn a_thread_that_sleeps_is_blocked_and_this_one_is_not() {
        let (send_id, ids) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let sleeper = thread::spawn(move || {
            send_id
                .send(Pid::as_raw(Some(gettid())))
                .expect("the test waits");
            released.recv()
        });
        let sleeper_id = ids.recv().expect("the thread sends it");
        while !is_blocked(sleeper_id) {
            thread::yield_now();
        }
        let mut at_work = [worker(sleeper_id), worker(Pid::as_raw(Some(gettid())))];
        assert_eq!(take(&mut at_work.each_mut(), 2), 1);
        assert!(at_work[0].is_blocked);
        assert!(!at_work[1].is_blocked);
        release.send(()).expect("the thread waits");
        sleeper.join().expect("it ends").expect("it was released");
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
        assert_eq!(take(&mut at_work.each_mut(), 1), 1);
        assert!(at_work[1].is_blocked);
    }
}
