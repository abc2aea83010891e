//! The lateness of notifications in a flood of time-outs. By the clock, so on a quiet machine and
//! by hand: `cargo test --release -p greenroom-actor --test flood -- --ignored --nocapture`.
#![allow(clippy::expect_used, reason = "tests fail by a panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use greenroom_actor::{Actor, ActorRef, ActorSystem, AsyncHandler, Context, Mailbox};
use tokio::sync::Notify;

const QUESTIONS: usize = 100_000;
/// Longer than it takes to ask them all.
const TIMEOUT: Duration = Duration::from_secs(3);
const LATE_MAX: Duration = Duration::from_millis(20);

struct Hung;

impl Actor for Hung {}

struct Question;

impl AsyncHandler<Question> for Hung {
    type Reply = ();

    async fn handle(&mut self, _: Question, _: &mut Context<Self>) {
        std::future::pending::<()>().await;
    }
}

/// The lateness of the askers' time-outs.
#[derive(Default)]
struct TimeOuts {
    latest_micros: AtomicU64,
    askers: AtomicUsize,
    all: Notify,
}

struct Asker {
    hung: ActorRef<Hung>,
    time_outs: Arc<TimeOuts>,
}

impl Actor for Asker {}

struct Ask;

impl AsyncHandler<Ask> for Asker {
    type Reply = ();

    async fn handle(&mut self, _: Ask, _: &mut Context<Self>) {
        let deadline = Instant::now() + TIMEOUT;
        let answer = self.hung.ask(Question).timeout(TIMEOUT).await;
        let late = deadline.elapsed();
        assert!(answer.expect_err("it hangs").is_timeout());
        let micros = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
        self.time_outs
            .latest_micros
            .fetch_max(micros, Ordering::Relaxed);
        if self.time_outs.askers.fetch_add(1, Ordering::Relaxed) + 1 == QUESTIONS {
            self.time_outs.all.notify_one();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it is by the clock"]
#[expect(clippy::print_stdout, reason = "what it finds is for whoever runs it")]
async fn a_flood_of_time_outs_is_told_in_time() {
    let system = ActorSystem::new().expect("there is a runtime");
    let mailbox = Mailbox::bounded(1 << 17);
    let hung = system.build(|| Hung).mailbox(mailbox).spawn();
    let hung = hung.expect("the dispatcher is there");
    let time_outs = Arc::new(TimeOuts::default());
    let askers: Vec<_> = (0..QUESTIONS)
        .map(|_| {
            let (hung, time_outs) = (hung.clone(), Arc::clone(&time_outs));
            system.spawn(move || Asker {
                hung: hung.clone(),
                time_outs: Arc::clone(&time_outs),
            })
        })
        .collect();
    for asker in &askers {
        asker.tell(Ask).expect("the mailbox has room");
    }
    time_outs.all.notified().await;
    let late = Duration::from_micros(time_outs.latest_micros.load(Ordering::Relaxed));
    println!("the latest of {QUESTIONS} was told {late:?} after its deadline");
    assert!(late <= LATE_MAX, "{late:?}");
}
