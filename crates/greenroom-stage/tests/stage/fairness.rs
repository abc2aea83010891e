//! The order of turns among many flows: asserted by the order of the runs, and never by a clock.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use futures_util::future::join_all;
use greenroom_stage::fair::STATED_MAX;
use greenroom_stage::{Client, JoinHandle, Priority, Reason, Stage};
use tokio::sync::{Barrier, oneshot};

use crate::{builder, compute, occupy, one_thread, within};

type Order = Arc<Mutex<Vec<&'static str>>>;

fn note(stage: &Stage, order: &Order, name: &'static str) -> JoinHandle<()> {
    let order = Arc::clone(order);
    let run = move || order.lock().unwrap().push(name);
    Client::named(name).within(|| stage.run(run))
}

#[tokio::test]
async fn a_client_that_floods_delays_itself_and_no_other() {
    within(async {
        let stage = one_thread();
        let release = occupy(&stage).await;
        let order = Order::default();
        let flood: Vec<_> = (0..50).map(|_| note(&stage, &order, "flood")).collect();
        let polite = note(&stage, &order, "polite");
        drop(release);
        join_all(flood).await;
        polite.await.unwrap();
        let order = order.lock().unwrap();
        let place = order.iter().position(|name| *name == "polite");
        assert!(place <= Some(1), "{place:?}");
    })
    .await;
}

/// One client has computed, the other has asked often for little.
#[tokio::test]
async fn what_counts_is_what_was_used_and_not_how_often() {
    within(async {
        let stage = one_thread();
        let large = Client::named("large");
        let ran = large.within(|| stage.run(|| compute(Duration::from_millis(30))));
        ran.await.unwrap();
        for _ in 0..20 {
            let small = Client::named("small").within(|| stage.run(|| ()));
            small.await.unwrap();
        }
        let release = occupy(&stage).await;
        let order = Order::default();
        let first = note(&stage, &order, "large");
        let second = note(&stage, &order, "small");
        drop(release);
        first.await.unwrap();
        second.await.unwrap();
        assert_eq!(*order.lock().unwrap(), ["small", "large"]);
    })
    .await;
}

#[tokio::test]
async fn the_status_tells_who_used_how_much_and_who_was_refused() {
    within(async {
        let stage = builder().threads(1..=1).blocking_threads_max(1);
        let stage = stage.queue_max(2).build().unwrap();
        let large = Client::named("large");
        let ran = large.within(|| stage.run(|| compute(Duration::from_millis(5))));
        ran.await.unwrap();
        let release = occupy(&stage).await;
        let waiting: Vec<_> = (0..3).map(|_| large.within(|| stage.run(|| ()))).collect();
        assert!(waiting[2].rejected().is_some());
        drop(release);
        join_all(waiting).await;
        let status = stage.status();
        let share = status.shares.iter().find(|share| share.client == large);
        let share = share.unwrap();
        assert_eq!(share.rejected, 1);
        assert!(share.runs >= 1 && share.used_micros >= 4_000, "{share:?}");
        let percent: f64 = status.shares.iter().map(|share| share.percent).sum();
        assert!(share.percent > 0.0, "{:?}", status.shares);
        assert!((percent - 100.0).abs() < 1.0, "{:?}", status.shares);
        let json = serde_json::to_value(&status).unwrap();
        assert!(
            json["shares"]
                .as_array()
                .unwrap()
                .iter()
                .any(|share| share["client"] == "large")
        );
    })
    .await;
}

/// Work beyond `queue_max` is rejected, but not that of a client with nothing waiting: a queue that
/// one client has filled has a place left for others.
#[tokio::test]
async fn a_full_queue_has_room_for_who_comes_for_the_first_time() {
    within(async {
        let stage = builder().threads(1..=1).blocking_threads_max(1);
        let stage = stage.queue_max(32).build().unwrap();
        let release = occupy(&stage).await;
        let flood = Client::named("flood");
        let mut let_in = Vec::new();
        loop {
            let spawned = flood.within(|| stage.run(|| ()));
            if spawned.rejected().is_some() {
                break;
            }
            let_in.push(spawned);
        }
        assert_eq!(let_in.len(), 32);
        let polite = Client::named("polite").within(|| stage.run(|| "served"));
        assert_eq!(polite.rejected(), None);
        drop(release);
        assert_eq!(polite.await.unwrap(), "served");
    })
    .await;
}

/// Each of the polite client's runs gives its thread to the flood at its end, if that may take it:
/// to its new work, or to what has waited for something else before.
#[tokio::test]
async fn blocking_calls_of_one_client_leave_threads_to_others() {
    const FLOOD: usize = 40;
    within(async {
        for waits_before in [false, true] {
            let stage = builder().threads(1..=1).blocking_threads_max(16);
            let stage = stage.build().unwrap();
            let (release, released) = mpsc::channel::<()>();
            let released = Arc::new(Mutex::new(released));
            let all_have_begun = Arc::new(Barrier::new(FLOOD + 1));
            let block = || {
                let released = Arc::clone(&released);
                let all_have_begun = Arc::clone(&all_have_begun);
                let run = async move {
                    if waits_before {
                        all_have_begun.wait().await;
                    }
                    released.lock().unwrap().recv().unwrap_err();
                };
                Client::named("flood").within(|| stage.spawn(run))
            };
            let flood: Vec<_> = (0..FLOOD).map(|_| block()).collect();
            if waits_before {
                all_have_begun.wait().await;
            }
            while stage.status().threads.working < 14 {
                tokio::task::yield_now().await;
            }
            for _ in 0..20 {
                let polite = Client::named("polite");
                let served = polite.within(|| stage.run(|| "served")).await;
                assert_eq!(served, Ok("served"));
            }
            assert!(stage.status().threads.working <= 15);
            drop(release);
            for run in flood {
                assert_eq!(run.await, Ok(()));
            }
        }
    })
    .await;
}

/// All clients of a server that does not know them are one.
#[tokio::test]
async fn blocking_calls_of_one_client_leave_a_thread_to_its_critical_work() {
    within(async {
        let stage = builder().threads(1..=1).blocking_threads_max(8);
        let stage = stage.build().unwrap();
        let (release, released) = mpsc::channel::<()>();
        let released = Arc::new(Mutex::new(released));
        let block = || {
            let released = Arc::clone(&released);
            stage.run(move || released.lock().unwrap().recv().is_err())
        };
        let blocked: Vec<_> = (0..10).map(|_| block()).collect();
        while stage.status().threads.working < 7 {
            tokio::task::yield_now().await;
        }
        for _ in 0..10 {
            let served = stage.spawn_as(Priority::Critical, async { "served" }).await;
            assert_eq!(served, Ok("served"));
        }
        drop(release);
        join_all(blocked).await;
    })
    .await;
}

/// Nothing was measured yet, so only the two statements are known.
#[tokio::test]
async fn who_has_stated_much_for_what_runs_goes_behind_who_has_stated_little() {
    within(async {
        let stage = builder().threads(2..=2).blocking_threads_max(2);
        let stage = stage.build().unwrap();
        let (one, other) = (occupy(&stage).await, occupy(&stage).await);
        let (begun, has_begun) = oneshot::channel();
        let (end, is_to_end) = mpsc::channel::<()>();
        let large = Client::named("large");
        let running = large.within(|| {
            stage.run_stating(Duration::from_mins(1), move || {
                begun.send(()).unwrap();
                is_to_end.recv().unwrap_err();
            })
        });
        let order = Order::default();
        let stating = |name, cost| {
            let order = Arc::clone(&order);
            let run = move || order.lock().unwrap().push(name);
            Client::named(name).within(|| stage.run_stating(cost, run))
        };
        let mut waiting = vec![stating("large", Duration::from_mins(1))];
        waiting.extend((0..20).map(|_| stating("small", Duration::from_millis(1))));
        drop(one);
        has_begun.await.unwrap();
        drop(other);
        join_all(waiting).await;
        assert_eq!(order.lock().unwrap().last(), Some(&"large"));
        drop(end);
        running.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn what_is_stated_predicts_the_wait_of_its_own_client() {
    within(async {
        let stage = one_thread();
        let large = Client::named("large");
        let before = large.within(|| stage.run(|| compute(Duration::from_millis(5))));
        before.await.unwrap();
        let release = occupy(&stage).await;
        let hour = || large.within(|| stage.run_stating(STATED_MAX, || ()));
        let first = hour();
        assert_eq!(first.rejected(), None);
        let refused = hour().rejected().map(|rejected| rejected.reason);
        assert_eq!(refused, Some(Reason::Wait));
        let small = Client::named("small");
        let small = small.within(|| stage.run_stating(Duration::from_millis(1), || ()));
        assert_eq!(small.rejected(), None);
        drop(release);
        first.await.unwrap();
        small.await.unwrap();
        // The time it took shows how much to believe the next statement.
        let release = occupy(&stage).await;
        let (next, after) = (hour(), hour());
        assert_eq!((next.rejected(), after.rejected()), (None, None));
        drop(release);
        next.await.unwrap();
        after.await.unwrap();
    })
    .await;
}
