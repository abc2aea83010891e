use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use futures_util::future::join_all;
use greenroom_stage::{Priority, Stage};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::{Order, begin, builder, one_thread, within};

#[tokio::test]
async fn a_function_runs_on_a_thread_of_the_stage() {
    within(async {
        let stage = one_thread();
        let name = stage
            .run(|| thread::current().name().map(str::to_owned))
            .await;
        assert_eq!(name.unwrap().as_deref(), Some("test-0"));
        let status = stage.status();
        assert_eq!(
            (status.completed, status.service.count, status.wait.count),
            (1, 1, 1)
        );
    })
    .await;
}

#[tokio::test]
async fn an_async_handler_uses_timers_sockets_and_tasks_of_its_runtime() {
    within(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let here = thread::current().id();
        let client = one_thread().spawn(async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"ping").await.unwrap();
            let mut response = [0; 4];
            stream.read_exact(&mut response).await.unwrap();
            let spawned_on = tokio::spawn(async { thread::current().id() })
                .await
                .unwrap();
            (response, thread::current().id(), spawned_on)
        });
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut question = [0; 4];
            stream.read_exact(&mut question).await.unwrap();
            stream.write_all(b"pong").await.unwrap();
        };
        let (client, ()) = tokio::join!(client, server);
        let (response, ran_on, spawned_on) = client.unwrap();
        assert_eq!(&response, b"pong");
        assert_ne!(ran_on, here);
        assert_eq!(spawned_on, here, "tokio::spawn belongs to the loop");
    })
    .await;
}

#[tokio::test]
async fn a_waiting_handler_holds_no_thread() {
    within(async {
        let stage = one_thread();
        let (wake, woken) = oneshot::channel();
        let waiting = stage.spawn(woken);
        let between = stage.run(|| "between").await;
        assert_eq!(between, Ok("between"));
        wake.send("woken").unwrap();
        assert_eq!(waiting.await, Ok(Ok("woken")));
    })
    .await;
}

#[tokio::test]
async fn what_was_begun_takes_turns_with_what_is_new() {
    within(async {
        let stage = one_thread();
        let order = Order::default();
        let (wake, waiting) = begin(&stage, Priority::Normal, order.note("begun")).await;
        let gate = Arc::new(Barrier::new(2));
        let blocker = Arc::clone(&gate);
        let (blocks, is_blocked) = oneshot::channel();
        let blocking = stage.run(move || {
            blocks.send(()).unwrap();
            blocker.wait();
        });
        is_blocked.await.unwrap();
        let new = ["new 1", "new 2", "new 3"].map(|name| stage.run(order.note(name)));
        wake.send(()).unwrap();
        gate.wait();
        blocking.await.unwrap();
        waiting.await.unwrap();
        for new in new {
            new.await.unwrap();
        }
        assert_eq!(order.names(), ["new 1", "begun", "new 2", "new 3"]);
    })
    .await;
}

/// They all wait for each other, so they end only if all run at once.
#[tokio::test]
async fn five_hundred_undeclared_blocking_calls_run_at_once() {
    within(async {
        let stage = builder().threads(1..=2).build().unwrap();
        let barrier = Arc::new(Barrier::new(500));
        let calls: Vec<_> = (0..500)
            .map(|_| {
                let barrier = Arc::clone(&barrier);
                stage.run(move || barrier.wait().is_leader())
            })
            .collect();
        let leaders = join_all(calls).await;
        assert_eq!(
            leaders
                .into_iter()
                .filter(|leads| *leads == Ok(true))
                .count(),
            1
        );
        assert!(stage.status().threads.total >= 500);
    })
    .await;
}

#[tokio::test]
async fn threads_that_are_not_needed_leave() {
    within(async {
        let stage = builder()
            .threads(1..=2)
            .idle_timeout(Duration::from_millis(1))
            .build()
            .unwrap();
        let barrier = Arc::new(Barrier::new(20));
        let calls = (0..20).map(|_| {
            let barrier = Arc::clone(&barrier);
            stage.run(move || barrier.wait().is_leader())
        });
        join_all(calls).await;
        while stage.status().threads.total > 1 {
            tokio::task::yield_now().await;
        }
        assert_eq!(stage.run(|| 1).await, Ok(1));
    })
    .await;
}

#[tokio::test]
async fn a_panic_is_an_error_and_costs_no_thread() {
    within(async {
        let stage = one_thread();
        let panicked: Result<(), _> = stage.run(|| panic!("on purpose")).await;
        let message = panicked.unwrap_err().to_string();
        assert_eq!(message, "the handler panicked: on purpose");
        let later = stage.spawn(async {
            tokio::task::yield_now().await;
            panic!("later");
        });
        assert!(later.await.is_err());
        assert_eq!(stage.run(|| 1).await, Ok(1));
        let status = stage.status();
        assert_eq!(
            (status.panicked, status.completed, status.threads.total),
            (2, 1, 1)
        );
    })
    .await;
}

#[test]
fn settings_with_which_no_stage_can_work_are_refused() {
    for (from, to) in [(0, 2), (3, 2), (1, usize::MAX)] {
        let range = std::ops::RangeInclusive::new(from, to);
        let threads = Stage::builder("x").threads(range).build().unwrap_err();
        assert_eq!(
            threads.to_string(),
            format!(
                "stage `x`: threads are {from}..={to}; at least 1, no more at first than at most, \
                 and at most 65535"
            )
        );
    }
    let queue = Stage::builder("x").queue_max(0).build().unwrap_err();
    assert_eq!(
        queue.to_string(),
        "stage `x`: queue_max: 0 is not allowed; allowed: 1 or more, unlimited"
    );
}

#[tokio::test]
async fn a_program_may_set_its_default_stage_once() {
    let builder = || Stage::builder("default").threads(1..=1);
    builder().build_global().unwrap();
    assert_eq!(Stage::global().name(), "default");
    let second = builder().build_global().unwrap_err().to_string();
    assert!(
        second.contains("`default`: there is a default stage already"),
        "{second}"
    );
}
