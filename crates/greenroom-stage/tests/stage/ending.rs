use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use greenroom_stage::{Error, Priority};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::{Order, builder, occupy, one_thread, within};

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn what_waits_in_the_queue_is_not_begun_when_its_client_leaves() {
    within(async {
        let stage = one_thread();
        let (release, released) = mpsc::channel::<()>();
        let (begun, has_begun) = oneshot::channel();
        let occupying = stage.run(move || {
            begun.send(()).unwrap();
            released.recv()
        });
        has_begun.await.unwrap();
        let abandoned: Vec<_> = (0..100)
            .map(|_| stage.run(|| panic!("it must not run")))
            .collect();
        let stays = stage.run(|| "stays");
        assert_eq!(stage.status().queue_len, 101);
        drop::<Vec<greenroom_stage::JoinHandle<()>>>(abandoned);
        assert_eq!(stage.status().queue_len, 1);
        release.send(()).unwrap();
        occupying.await.unwrap().unwrap();
        assert_eq!(stays.await, Ok("stays"));
        let status = stage.status();
        assert_eq!(
            (status.cancelled, status.completed, status.panicked),
            (100, 2, 0)
        );
        assert_eq!(status.queue_len, 0);
    })
    .await;
}

#[tokio::test]
async fn what_runs_ends_at_its_next_await_when_its_client_leaves() {
    within(async {
        let stage = one_thread();
        let dropped = Arc::new(AtomicUsize::new(0));
        let counted = Counted(Arc::clone(&dropped));
        let (begun, has_begun) = oneshot::channel();
        let (held, holder) = oneshot::channel::<()>();
        let waiting = stage.spawn(async move {
            let _counted = counted;
            begun.send(()).unwrap();
            holder.await
        });
        has_begun.await.unwrap();
        drop(waiting);
        stage.run(|| ()).await.unwrap();
        while dropped.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        assert!(held.send(()).is_err(), "the handler's half is gone");
        assert_eq!(stage.status().cancelled, 1);
    })
    .await;
}

struct OnDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        self.0.take().unwrap()();
    }
}

/// It waits for something, or was woken and waits for a thread.
#[tokio::test]
async fn what_has_begun_gives_back_what_it_holds_before_others_begin_when_its_client_leaves() {
    within(async {
        for is_woken in [false, true] {
            let stage = builder().threads(1..=1).blocking_threads_max(1);
            let stage = stage.queue_wait_max(Duration::from_millis(50));
            let stage = stage.build().unwrap();
            let order = Order::default();
            let held = OnDrop(Some(order.note("given back")));
            let (wake, woken) = oneshot::channel();
            let (begun, has_begun) = oneshot::channel();
            let left = stage.spawn(async move {
                let _held = held;
                begun.send(()).unwrap();
                woken.await
            });
            has_begun.await.unwrap();
            let release = occupy(&stage).await;
            let mut wake = Some(wake);
            if is_woken {
                wake.take().unwrap().send(()).unwrap();
            }
            drop(left);
            // By then the stage has looked for what is not to wait any longer.
            let late = stage.run(|| ()).await;
            assert!(matches!(late, Err(Error::Rejected(_))));
            let other = || {
                let note = order.note("other");
                stage.spawn_as(Priority::Critical, async { note() })
            };
            let others: Vec<_> = (0..5).map(|_| other()).collect();
            drop(release);
            join_all(others).await;
            let place = order.names().iter().position(|name| *name == "given back");
            assert!(matches!(place, Some(0 | 1)), "{place:?}");
        }
    })
    .await;
}

/// Tells when it is dropped if that is within a runtime, and may panic then.
struct Dropped {
    told: Option<oneshot::Sender<bool>>,
    panics: bool,
}

impl Drop for Dropped {
    fn drop(&mut self) {
        let is_within = Handle::try_current().is_ok();
        self.told.take().unwrap().send(is_within).unwrap();
        assert!(!self.panics, "on purpose");
    }
}

/// Its client leaves while the run computes, in its last poll.
#[tokio::test]
async fn a_result_that_nobody_takes_is_dropped_as_the_run_would_be() {
    within(async {
        for panics in [false, true] {
            let stage = one_thread();
            let (begun, has_begun) = oneshot::channel();
            let (release, released) = mpsc::channel();
            let (tell, told) = oneshot::channel();
            let left = stage.run(move || {
                begun.send(()).unwrap();
                released.recv().unwrap();
                Dropped {
                    told: Some(tell),
                    panics,
                }
            });
            has_begun.await.unwrap();
            drop(left);
            release.send(()).unwrap();
            assert_eq!(told.await, Ok(true));
            assert_eq!(stage.run(|| "still there").await, Ok("still there"));
        }
    })
    .await;
}

#[tokio::test]
async fn a_stage_finishes_what_it_let_in_after_its_last_handle() {
    within(async {
        let stage = builder().threads(2..=2).build().unwrap();
        let (wake, woken) = oneshot::channel();
        let waiting = stage.spawn(woken);
        drop(stage);
        wake.send("woken").unwrap();
        assert_eq!(waiting.await, Ok(Ok("woken")));
    })
    .await;
}

/// Its waker outlives the stage; waking it then must neither hang nor leak the handler.
#[tokio::test]
async fn what_is_given_up_with_the_stage_is_dropped() {
    within(async {
        let stage = one_thread();
        let dropped = Arc::new(AtomicUsize::new(0));
        let counted = Counted(Arc::clone(&dropped));
        let (wake, woken) = oneshot::channel::<()>();
        let (begun, has_begun) = oneshot::channel();
        let mut waiting = stage.spawn(async move {
            let _counted = counted;
            begun.send(()).unwrap();
            woken.await
        });
        has_begun.await.unwrap();
        assert!((&mut waiting).now_or_never().is_none());
        drop((stage, waiting));
        while dropped.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        assert!(wake.send(()).is_err());
    })
    .await;
}

#[tokio::test]
async fn a_destructor_that_panics_costs_no_thread() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("in a destructor, on purpose");
        }
    }
    within(async {
        let stage = one_thread();
        let bomb = Bomb;
        let run = stage.spawn(async move {
            std::future::ready(()).await;
            let bomb = &bomb;
            std::mem::size_of_val(bomb)
        });
        let _either = run.await;
        assert_eq!(stage.run(|| 1).await, Ok(1));
        assert_eq!(stage.status().threads.total, 1);
    })
    .await;
}

/// Light work goes round all threads, so none of them is ever idle for long.
#[tokio::test]
async fn threads_that_are_not_needed_leave_though_there_is_light_work() {
    within(async {
        let stage = builder()
            .threads(1..=1)
            .idle_timeout(Duration::from_millis(50));
        let stage = stage.build().unwrap();
        let gate = Arc::new(Barrier::new(20));
        let blocked = (0..20).map(|_| {
            let gate = Arc::clone(&gate);
            stage.run(move || gate.wait())
        });
        join_all(blocked).await;
        assert!(stage.status().threads.total >= 20);
        while stage.status().threads.total > 2 {
            stage.run(|| ()).await.unwrap();
        }
    })
    .await;
}
