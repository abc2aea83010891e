//! The delay of a flood of time-outs, and the cost of one. By the clock, so on a quiet machine and
//! by hand (the cost in CPU time can be believed on a busy one, too): `cargo test --release -p
//! greenroom-actor --test flood -- --ignored --nocapture`.
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

/// The delays at which the askers got their errors.
#[derive(Default)]
struct Told {
    latest_micros: AtomicU64,
    asked: AtomicUsize,
    askers: AtomicUsize,
    all: Notify,
}

impl Told {
    fn count(&self, counter: &AtomicUsize) {
        if counter.fetch_add(1, Ordering::Relaxed) + 1 == QUESTIONS {
            self.all.notify_one();
        }
    }
}

struct Asker {
    hung: ActorRef<Hung>,
    told: Arc<Told>,
}

impl Actor for Asker {}

struct Ask;

impl AsyncHandler<Ask> for Asker {
    type Reply = ();

    async fn handle(&mut self, _: Ask, _: &mut Context<Self>) {
        let deadline = Instant::now() + TIMEOUT;
        self.told.count(&self.told.asked);
        let reply = self.hung.ask(Question).timeout(TIMEOUT).await;
        let late = deadline.elapsed();
        assert!(reply.expect_err("it hangs").is_timeout());
        let micros = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
        self.told.latest_micros.fetch_max(micros, Ordering::Relaxed);
        self.told.count(&self.told.askers);
    }
}

/// Time that the threads of this process had a core for.
fn cpu_time() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").expect("Linux shows the threads");
    let nanos = threads.filter_map(|thread| {
        let path = thread.ok()?.path().join("schedstat");
        let text = std::fs::read_to_string(path).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it is by the clock"]
#[expect(clippy::print_stdout, reason = "what it finds is for whoever runs it")]
async fn a_flood_of_time_outs_is_told_in_time() {
    let system = ActorSystem::new().expect("there is a runtime");
    let mailbox = Mailbox::bounded(1 << 17);
    let hung = system.build(|| Hung).mailbox(mailbox).spawn();
    let hung = hung.expect("the dispatcher is there");
    let told = Arc::new(Told::default());
    let askers: Vec<_> = (0..QUESTIONS)
        .map(|_| {
            let (hung, told) = (hung.clone(), Arc::clone(&told));
            system.spawn(move || Asker {
                hung: hung.clone(),
                told: Arc::clone(&told),
            })
        })
        .collect();
    for asker in &askers {
        asker.tell(Ask).expect("the mailbox has room");
    }
    told.all.notified().await;
    let before = cpu_time();
    told.all.notified().await;
    let spent = cpu_time().saturating_sub(before) / u32::try_from(QUESTIONS).expect("it is small");
    println!(
        "a time-out took {spent:?} of CPU time, from wake-up to the end of the asker's handler"
    );
    let late = Duration::from_micros(told.latest_micros.load(Ordering::Relaxed));
    println!("the latest of {QUESTIONS} was told {late:?} after its deadline");
    assert!(late <= LATE_MAX, "{late:?}");
}
