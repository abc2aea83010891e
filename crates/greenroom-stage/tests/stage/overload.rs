use std::time::Duration;

use futures_util::future::join_all;
use greenroom_stage::{Error, Priority, Reason, Stage};
use tokio::sync::oneshot;

use crate::{Order, begin, builder, compute, occupy, one_thread, within};

fn reason<T: std::fmt::Debug>(result: Result<T, Error>) -> Reason {
    match result.unwrap_err() {
        Error::Rejected(rejected) => {
            assert!(rejected.retry_after >= 1);
            rejected.reason
        }
        Error::Panicked(panicked) => panic!("{panicked}"),
    }
}

#[tokio::test]
async fn a_full_queue_refuses_at_once_and_serves_whom_it_let_in() {
    within(async {
        let stage = builder()
            .threads(1..=1)
            .blocking_threads_max(1)
            .queue_max(3);
        let stage = stage.build().unwrap();
        let release = occupy(&stage).await;
        let let_in: Vec<_> = (0..3).map(|number| stage.run(move || number)).collect();
        let refused = stage.run(|| 9);
        assert_eq!(refused.rejected().unwrap().reason, Reason::QueueFull);
        assert_eq!(reason(refused.await), Reason::QueueFull);
        drop(release);
        assert_eq!(join_all(let_in).await, [Ok(0), Ok(1), Ok(2)]);
        assert_eq!(stage.status().sheds.queue_full, 1);
    })
    .await;
}

#[tokio::test]
async fn work_whose_client_has_left_keeps_nobody_out() {
    within(async {
        let stage = builder()
            .threads(1..=1)
            .blocking_threads_max(1)
            .queue_max(3);
        let stage = stage.build().unwrap();
        let release = occupy(&stage).await;
        let let_in: Vec<_> = (0..2).map(|number| stage.run(move || number)).collect();
        drop(stage.run(|| panic!("its client has left")));
        let next = stage.run(|| 9);
        assert_eq!(next.rejected(), None);
        drop(release);
        assert_eq!(join_all(let_in).await, [Ok(0), Ok(1)]);
        assert_eq!(next.await, Ok(9));
        assert_eq!(stage.status().sheds.queue_full, 0);
    })
    .await;
}

/// It is only known that the work holds a thread for 20 ms or more; the limit is a minute, and two
/// in a burst.
#[tokio::test]
async fn a_newcomer_is_refused_by_its_predicted_wait() {
    within(async {
        let stage = Stage::builder("test")
            .threads(1..=1)
            .blocking_threads_max(1)
            .queue_wait_max(Duration::from_mins(1))
            .build()
            .unwrap();
        stage
            .run(|| std::thread::sleep(Duration::from_millis(20)))
            .await
            .unwrap();
        let release = occupy(&stage).await;
        // At 20 ms each, no fewer than 2 and no more than 6,000 fit into two minutes.
        let mut let_in = Vec::new();
        let refused = loop {
            let spawned = stage.run(|| ());
            match spawned.rejected() {
                None => let_in.push(spawned),
                Some(rejected) => break rejected,
            }
            assert!(let_in.len() <= 6_000);
        };
        assert_eq!(refused.reason, Reason::Wait);
        assert!(let_in.len() > 1);
        let bulk = stage.spawn_as(Priority::Bulk, async {});
        assert_eq!(bulk.rejected().unwrap().reason, Reason::Wait);
        let critical = stage.spawn_as(Priority::Critical, async {});
        assert_eq!(critical.rejected(), None);
        drop(release);
        critical.await.unwrap();
        for spawned in let_in {
            spawned.await.unwrap();
        }
    })
    .await;
}

/// They computed for little, or for longer than any before, until their clients left.
#[tokio::test]
async fn runs_that_are_given_up_may_make_predicted_waits_longer_and_never_shorter() {
    const LONG: Duration = Duration::from_millis(20);
    within(async {
        for (ended, given_up) in [(LONG, Duration::ZERO), (Duration::ZERO, LONG)] {
            let stage = one_thread();
            stage.run(move || compute(ended)).await.unwrap();
            for _ in 0..50 {
                let (begun, has_begun) = oneshot::channel();
                let left = stage.spawn(async move {
                    compute(given_up);
                    begun.send(()).unwrap();
                    std::future::pending::<()>().await;
                });
                has_begun.await.unwrap();
                drop(left);
            }
            let release = occupy(&stage).await;
            let waiting = stage.run(|| ());
            assert!(stage.predicted_wait() >= LONG / 2);
            drop(release);
            waiting.await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn critical_work_goes_before_other_new_work() {
    within(async {
        let stage = one_thread();
        let release = occupy(&stage).await;
        let order = Order::default();
        let note = |name| {
            let note = order.note(name);
            async move { note() }
        };
        let normal = stage.spawn(note("normal"));
        let critical = stage.spawn_as(Priority::Critical, note("critical"));
        drop(release);
        normal.await.unwrap();
        critical.await.unwrap();
        assert_eq!(order.names(), ["critical", "normal"]);
    })
    .await;
}

/// Admitted when nothing was known of the work, and then its turn came far too late.
#[tokio::test]
async fn what_comes_far_too_late_is_dropped_unbegun() {
    within(async {
        let stage = Stage::builder("test")
            .threads(1..=1)
            .blocking_threads_max(1)
            .queue_wait_max(Duration::ZERO)
            .build()
            .unwrap();
        let release = occupy(&stage).await;
        let late = stage.run(|| panic!("it must not run"));
        assert_eq!(late.rejected(), None);
        assert_eq!(reason::<()>(late.await), Reason::Late);
        drop(release);
        assert_eq!(stage.status().sheds.late, 1);
    })
    .await;
}

/// The only thread is held for as long as the test likes, and the client gets its rejection all the
/// same.
#[tokio::test]
async fn work_that_waits_too_long_is_refused_though_no_thread_comes_for_it() {
    within(async {
        let stage = builder()
            .threads(1..=1)
            .blocking_threads_max(1)
            .queue_wait_max(Duration::from_millis(50));
        let stage = stage.build().unwrap();
        let release = occupy(&stage).await;
        assert_eq!(reason(stage.run(|| ()).await), Reason::Late);
        assert_eq!(stage.status().queue_len, 0);
        drop(release);
        assert_eq!(stage.run(|| 1).await, Ok(1));
    })
    .await;
}

/// It was let in when there was no overload, and its client waits for the rest of the response.
#[tokio::test]
async fn bulk_work_that_was_begun_gets_its_turn_beside_any_amount_of_other_work() {
    within(async {
        let stage = one_thread();
        let order = Order::default();
        let (wake, bulk) = begin(&stage, Priority::Bulk, order.note("bulk")).await;
        let release = occupy(&stage).await;
        let normal = (0..200).map(|_| stage.run(order.note("normal")));
        let normal: Vec<_> = normal.collect();
        wake.send(()).unwrap();
        drop(release);
        bulk.await.unwrap();
        join_all(normal).await;
        let place = order.names().iter().position(|name| *name == "bulk");
        assert!(place < Some(64), "{place:?}");
    })
    .await;
}

#[tokio::test]
async fn new_work_gets_its_turn_beside_any_amount_of_more_important_work() {
    within(async {
        let stage = one_thread();
        let release = occupy(&stage).await;
        let order = Order::default();
        let note = |name| {
            let note = order.note(name);
            async move { note() }
        };
        let normal = stage.spawn(note("normal"));
        let critical = (0..20).map(|_| stage.spawn_as(Priority::Critical, note("critical")));
        let critical: Vec<_> = critical.collect();
        drop(release);
        normal.await.unwrap();
        for run in critical {
            run.await.unwrap();
        }
        let place = order.names().iter().position(|name| *name == "normal");
        assert!(place < Some(8), "{place:?}");
    })
    .await;
}
