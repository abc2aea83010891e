//! The threads that actors run on, and that they let each other run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use futures_util::FutureExt;
use greenroom_actor::testing;
use greenroom_actor::{
    ActorRef, ActorSystem, BuildError, Dispatcher, DispatcherError, Mailbox, Overflow, SpawnError,
};
use greenroom_stage::Stage;
use tokio::runtime::{Builder, Runtime};

use crate::puppet::{Act, Hang, Hold, Journal, Note, Puppet, act, act_long};

/// The time that a test on several threads waits for an event, before it fails.
const PATIENCE: Duration = Duration::from_mins(1);

fn runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("the system gives a runtime")
}

pub(crate) fn threads(count: usize) -> Runtime {
    let runtime = Builder::new_multi_thread()
        .worker_threads(count)
        .enable_all()
        .build();
    runtime.expect("the system gives threads")
}

fn system(name: &str, dispatcher: Dispatcher) -> ActorSystem {
    let builder = ActorSystem::builder().dispatcher(name, dispatcher);
    builder.build().expect("the dispatcher starts")
}

fn spawn_on(system: &ActorSystem, dispatcher: &str) -> ActorRef<Puppet> {
    let build = system.build(Puppet::make("a", &Journal::default()));
    build
        .dispatcher(dispatcher)
        .spawn()
        .expect("the dispatcher is there")
}

/// Returns the name of the thread that the actor runs on.
async fn thread_of(puppet: &ActorRef<Puppet>) -> String {
    let (sender, name) = tokio::sync::oneshot::channel();
    let tell = act(move |_, _| {
        let _ = sender.send(thread::current().name().unwrap_or_default().to_owned());
    });
    puppet.tell(tell).expect("the mailbox has room");
    name.await.expect("it was sent")
}

/// Asserts that the actor waits for time as it should, on any dispatcher.
async fn waits(puppet: &ActorRef<Puppet>) {
    puppet
        .ask(Hold(Duration::from_millis(1)))
        .await
        .expect("it is handled");
    let (sender, waited) = tokio::sync::oneshot::channel();
    let deed = act(|_, context| {
        let tell = act(|_, _| sender.send(()).expect("the test waits"));
        context.once(Duration::from_millis(1), tell);
    });
    puppet.tell(deed).expect("the mailbox has room");
    waited.await.expect("the timer goes off");
    let (sender, piped) = tokio::sync::oneshot::channel();
    let deed = act(|_, context| {
        let future = tokio::time::sleep(Duration::from_millis(1));
        let tell = act(|_, _| sender.send(()).expect("the test waits"));
        context.pipe(future, |()| tell).expect("it is the first");
    });
    puppet.tell(deed).expect("the mailbox has room");
    piped.await.expect("the future is piped");
}

#[test]
fn a_pool_runs_actors_on_its_own_threads() {
    runtime().block_on(async {
        let system = system("images", Dispatcher::pool(2));
        let puppet = spawn_on(&system, "images");
        assert!(thread_of(&puppet).await.starts_with("images-"));
        waits(&puppet).await;
        assert!(system.shutdown(PATIENCE).await.is_clean());
    });
}

#[test]
fn a_pinned_actor_has_a_thread_of_its_own_that_ends_with_it() {
    runtime().block_on(async {
        let system = system("own", Dispatcher::pinned());
        let puppets = [(); 2].map(|()| spawn_on(&system, "own"));
        let mut ends = Vec::new();
        for puppet in &puppets {
            waits(puppet).await;
            let (sender, id) = tokio::sync::oneshot::channel();
            let (ended, end) = mpsc::channel::<()>();
            let deed = act(move |_, _| {
                AT_THREAD_END.set(Some(ended));
                let _ = sender.send(thread::current().id());
            });
            puppet.tell(deed).expect("the mailbox has room");
            ends.push((id.await.expect("it was sent"), end));
        }
        assert_ne!(ends[0].0, ends[1].0);
        for (puppet, (_, end)) in puppets.iter().zip(ends) {
            puppet.stop();
            puppet.terminated().await;
            let end = end.recv_timeout(PATIENCE);
            assert_eq!(end, Err(mpsc::RecvTimeoutError::Disconnected));
        }
    });
}

thread_local! {
    static AT_THREAD_END: std::cell::Cell<Option<mpsc::Sender<()>>> =
        const { std::cell::Cell::new(None) };
}

/// Returns a channel that is closed when the thread of the actor ends.
async fn end_of_thread(puppet: &ActorRef<Puppet>) -> mpsc::Receiver<()> {
    let (ended, end) = mpsc::channel::<()>();
    let deed = act(move |_, _| AT_THREAD_END.set(Some(ended)));
    puppet
        .ask(deed)
        .timeout(PATIENCE)
        .await
        .expect("it is handled");
    end
}

fn has_ended(end: &mpsc::Receiver<()>) -> bool {
    end.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Disconnected)
}

#[test]
fn the_threads_of_a_pool_end_with_the_runtime_of_their_system() {
    let on = runtime();
    let end = on.block_on(async {
        let system = system("images", Dispatcher::pool(1));
        end_of_thread(&spawn_on(&system, "images")).await
    });
    drop(on);
    assert!(has_ended(&end));
}

#[test]
fn the_threads_of_a_pool_end_when_neither_a_handle_nor_an_actor_is_left() {
    let system = system("default", Dispatcher::pool(1));
    let puppet = spawn_on(&system, "default");
    let of_handle = runtime().block_on(end_of_thread(&puppet));
    drop(system);
    runtime().block_on(async {
        // It goes on for the actor's sake.
        let asked = puppet.ask(Note(1)).timeout(PATIENCE).await;
        asked.expect("it is handled");
    });
    puppet.stop();
    assert!(has_ended(&of_handle));
}

#[test]
fn an_actor_may_spawn_others_when_no_handle_is_left() {
    let system = system("default", Dispatcher::pool(1));
    let puppet = spawn_on(&system, "default");
    drop(system);
    let (sender, other) = mpsc::channel();
    let spawn = act(move |_, context| {
        let other = context
            .system()
            .spawn(Puppet::make("b", &Journal::default()));
        sender.send(other).expect("the test waits");
        context.stop();
    });
    puppet.tell(spawn).expect("the mailbox has room");
    let other = other.recv_timeout(PATIENCE).expect("it is spawned");
    runtime().block_on(async {
        puppet.terminated().await;
        let asked = other.ask(Note(1)).timeout(PATIENCE).await;
        asked.expect("it is handled");
    });
}

#[test]
fn a_loop_runs_actors_on_the_thread_that_spawns_them() {
    runtime().block_on(async {
        let system = system("loop", Dispatcher::on_loop());
        let puppet = spawn_on(&system, "loop");
        let here = thread::current().name().unwrap_or_default().to_owned();
        assert_eq!(thread_of(&puppet).await, here);
        waits(&puppet).await;
        assert!(system.shutdown(PATIENCE).await.is_clean());
    });
}

#[test]
fn a_stage_runs_actors() {
    runtime().block_on(async {
        let stage = Stage::builder("compute")
            .build()
            .expect("the system gives threads");
        let system = system("stage", Dispatcher::stage(&stage, 2));
        let puppet = spawn_on(&system, "stage");
        let here = thread::current().name().unwrap_or_default().to_owned();
        assert_ne!(thread_of(&puppet).await, here);
        waits(&puppet).await;
        assert!(system.shutdown(PATIENCE).await.is_clean());
    });
}

#[test]
fn a_worker_that_an_overloaded_stage_has_dropped_comes_back() {
    runtime().block_on(async {
        let stage = Stage::builder("full")
            .threads(1..=1)
            .blocking_threads_max(1)
            .queue_wait_max(Duration::ZERO)
            .build()
            .expect("the system gives threads");
        let (release, released) = mpsc::channel::<()>();
        let (sender, begun) = tokio::sync::oneshot::channel();
        let occupied = stage.run(move || {
            sender.send(()).expect("the test waits");
            released.recv()
        });
        begun.await.expect("it runs");
        let system = system("stage", Dispatcher::stage(&stage, 1));
        let puppet = spawn_on(&system, "stage");
        while stage.status().sheds.late == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(release);
        let _ = occupied.await;
        let asked = puppet.ask(Note(1)).timeout(PATIENCE).await;
        assert_eq!(asked.expect("it is handled"), 1);
        assert!(system.shutdown(PATIENCE).await.is_clean());
    });
}

#[test]
fn a_system_outside_of_a_runtime_has_threads_of_its_own() {
    let system = ActorSystem::new().expect("the system gives threads");
    let puppet = system.spawn(Puppet::make("a", &Journal::default()));
    runtime().block_on(async {
        assert!(thread_of(&puppet).await.starts_with("default-"));
        waits(&puppet).await;
        assert!(system.shutdown(PATIENCE).await.is_clean());
    });
}

#[test]
fn a_dispatcher_that_nobody_registered_is_an_error_that_names_the_others() {
    testing::run(|system| async move {
        let build = system.build(Puppet::make("a", &Journal::default()));
        let error = build
            .dispatcher("imges")
            .spawn()
            .expect_err("nobody registered it");
        assert!(matches!(
            error,
            SpawnError::Dispatcher(DispatcherError::Unknown { .. })
        ));
        assert_eq!(
            error.to_string(),
            "there is no dispatcher `imges`; there are: default"
        );
    });
}

#[test]
fn a_loop_needs_a_runtime() {
    let system = system("loop", Dispatcher::on_loop());
    let build = system.build(Puppet::make("a", &Journal::default()));
    let error = build
        .dispatcher("loop")
        .spawn()
        .expect_err("there is no runtime");
    assert!(
        matches!(
            error,
            SpawnError::Dispatcher(DispatcherError::NoRuntime { .. })
        ),
        "{error}"
    );
    runtime().block_on(system.shutdown(PATIENCE));
}

#[test]
fn the_default_dispatcher_must_be_there_for_all() {
    let builder = ActorSystem::builder().dispatcher("default", Dispatcher::pinned());
    let error = builder.build().expect_err("it is made for each actor");
    assert!(matches!(error, BuildError::DefaultIsTemplate));
}

#[test]
fn a_pool_has_at_least_one_thread() {
    let builder = ActorSystem::builder().dispatcher("none", Dispatcher::pool(0));
    let error = runtime()
        .block_on(async { builder.build() })
        .expect_err("it has none");
    assert_eq!(
        error.to_string(),
        "the dispatcher `none` has 0 workers; allowed are 1 to 1024"
    );
}

#[test]
fn a_configuration_that_is_wrong_says_what_is_allowed() {
    for (text, expected) in [
        ("kind = \"pool\"", "a pool needs `threads`"),
        (
            "kind = \"pool\"\nthreads = 0",
            "`threads` is 0; a pool has 1 to 1024 threads",
        ),
        ("kind = \"pool\"\nthreads = 9999", "`threads` is 9999"),
        (
            "kind = \"tokio\"\nthreads = 2",
            "`threads` belongs to kind = \"pool\"",
        ),
        ("kind = \"loop\"\nthroughput = 0", "`throughput` is 0"),
        ("kind = \"stag\"", "unknown variant `stag`"),
        ("kind = \"pinned\"\nthread = 1", "unknown field `thread`"),
        ("threads = 1", "missing field `kind`"),
    ] {
        let error = toml::from_str::<Dispatcher>(text).expect_err(text);
        assert!(error.to_string().contains(expected), "{text}: {error}");
    }
}

#[test]
fn dispatchers_come_from_a_configuration_by_name() {
    let text = "[images]\nkind = \"pool\"\nthreads = 1\n[own]\nkind = \"pinned\"";
    let dispatchers: std::collections::BTreeMap<String, Dispatcher> =
        toml::from_str(text).expect("it is right");
    runtime().block_on(async {
        let builder = ActorSystem::builder().dispatchers(dispatchers);
        let system = builder.build().expect("the dispatchers start");
        for name in ["images", "own"] {
            let puppet = spawn_on(&system, name);
            assert_eq!(thread_of(&puppet).await, format!("{name}-0"));
        }
        system.shutdown(PATIENCE).await;
    });
}

#[test]
fn a_busy_actor_lets_its_neighbours_run_after_its_quota() {
    runtime().block_on(async {
        let system = system("default", Dispatcher::tokio().throughput(4));
        let journal = Journal::default();
        let busy = system.spawn(Puppet::make("busy", &journal));
        let neighbour = system.spawn(Puppet::make("neighbour", &journal));
        for puppet in [&busy, &neighbour] {
            puppet.ask(Note(0)).await.expect("it is handled");
        }
        journal.take();
        for _ in 0..100 {
            let work = act(|me, _| {
                thread::sleep(Duration::from_millis(1));
                me.note("worked");
            });
            busy.tell(work).expect("the mailbox has room");
        }
        neighbour.ask(Note(1)).await.expect("it is handled");
        let entries = journal.take();
        let before = entries.iter().position(|entry| entry == "neighbour 1");
        assert!(before.expect("it is noted") <= 4, "{before:?}");
    });
}

#[test]
fn an_actor_that_sends_itself_messages_for_ever_lets_tasks_run() {
    for overflow in [Overflow::BackPressure, Overflow::DropOldest] {
        runtime().block_on(async {
            let system = ActorSystem::new().expect("there is a runtime");
            let puppet = system
                .build(Puppet::make("a", &Journal::default()))
                .mailbox(Mailbox::bounded(4).overflow(overflow))
                .spawn()
                .expect("the default dispatcher is there");
            let neighbour = system.spawn(Puppet::make("b", &Journal::default()));
            puppet.tell(for_ever()).expect("the mailbox has room");
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            neighbour.ask(Note(1)).await.expect("it is handled");
            puppet.kill();
            puppet.terminated().await;
        });
    }
}

/// More comes from another thread than it handles: each message signals that, too.
#[test]
fn an_actor_that_is_flooded_and_drops_the_oldest_lets_tasks_run() {
    let is_over = Arc::new(AtomicBool::new(false));
    let flooding = runtime().block_on(async {
        let system = ActorSystem::new().expect("there is a runtime");
        let puppet = system
            .build(Puppet::make("a", &Journal::default()))
            .mailbox(Mailbox::bounded(4).overflow(Overflow::DropOldest))
            .spawn()
            .expect("the default dispatcher is there");
        let (to, until) = (puppet.clone(), Arc::clone(&is_over));
        let flooding = thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                let _ = to.tell(Note(1));
            }
        });
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_micros(10)).await;
        }
        is_over.store(true, Ordering::Relaxed);
        flooding
    });
    flooding.join().expect("it ends");
}

fn for_ever() -> Act {
    act(|_, context| drop(context.myself().tell(for_ever())))
}

#[test]
fn an_actor_that_holds_a_worker_does_not_hold_up_others_when_another_worker_is_idle() {
    for _ in 0..5 {
        threads(2).block_on(async {
            let system = ActorSystem::new().expect("there is a runtime");
            let (release, released) = mpsc::channel::<()>();
            let holder = system.spawn(Puppet::make("holder", &Journal::default()));
            let others: Vec<_> = (0..20)
                .map(|_| system.spawn(Puppet::make("other", &Journal::default())))
                .collect();
            let to = others.clone();
            let (begun, has_begun) = tokio::sync::oneshot::channel();
            // The messages it sends to the others before it holds the worker are in that worker's
            // queue.
            let hold = act(move |_, _| {
                for other in &to {
                    other.tell(Note(0)).expect("the mailbox has room");
                }
                let _ = begun.send(());
                let _ = released.recv();
            });
            holder.tell(hold).expect("the mailbox has room");
            has_begun.await.expect("it begins");
            for other in others {
                other
                    .ask(Note(1))
                    .timeout(PATIENCE)
                    .await
                    .expect("it is not held up");
            }
            drop(release);
            assert!(system.shutdown(PATIENCE).await.is_clean());
        });
    }
}

/// Returns when so many workers of the system's only dispatcher rest, of which nobody is told.
async fn rest(system: &ActorSystem, workers: usize) {
    while system.status().dispatchers[0].resting != workers {
        tokio::task::yield_now().await;
    }
}

#[test]
fn an_actor_with_more_to_do_goes_on_elsewhere_when_the_next_on_its_worker_holds_that() {
    threads(2).block_on(async {
        let system = system("default", Dispatcher::tokio().throughput(1));
        let [busy, holder] = [(); 2].map(|()| spawn_on(&system, "default"));
        for puppet in [&busy, &holder] {
            let asked = puppet.ask(Note(0)).timeout(PATIENCE).await;
            asked.expect("it is handled");
        }
        let (go, signal) = mpsc::channel::<()>();
        let (release, released) = mpsc::channel::<()>();
        let (start, started) = tokio::sync::oneshot::channel();
        let to = holder.clone();
        // The holder is the only one in the queue until this turn ends: nobody is woken for it.
        let begin = act(move |_, _| {
            let _ = start.send(());
            let _ = signal.recv();
            let hold = act(move |_, _| {
                let _ = released.recv();
            });
            to.tell(hold).expect("the mailbox has room");
        });
        busy.tell(begin).expect("the mailbox has room");
        busy.tell(Note(1)).expect("the mailbox has room");
        started.await.expect("it begins");
        rest(&system, 1).await;
        go.send(()).expect("it waits");
        let asked = busy.ask(Note(2)).timeout(PATIENCE).await;
        asked.expect("it is not held up");
        drop(release);
        assert!(system.shutdown(PATIENCE).await.is_clean());
    });
}

#[test]
fn an_actor_that_holds_a_worker_does_not_hold_up_others_whose_timers_went_off_with_its_own() {
    threads(2).block_on(async {
        let system = ActorSystem::new().expect("there is a runtime");
        let [holder, others @ ..] = [(); 4].map(|()| spawn_on(&system, "default"));
        let (release, released) = mpsc::channel::<()>();
        let (start, started) = tokio::sync::oneshot::channel();
        let hold = act(move |_, _| {
            let _ = start.send(());
            let _ = released.recv();
        });
        holder.tell(hold).expect("the mailbox has room");
        started.await.expect("it begins");
        // While one worker is held, all timers are set with the other.
        let moment = tokio::time::Instant::now() + Duration::from_millis(200);
        let (arrive, others_seen) = mpsc::channel();
        let (end, until_end) = mpsc::channel::<()>();
        let first = Arc::new(Mutex::new(Some(until_end)));
        for puppet in &others {
            let (arrive, first) = (arrive.clone(), Arc::clone(&first));
            let meet = act(move |_, _| {
                let _ = arrive.send(());
                let until_end = first.lock().expect("no panic within").take();
                let _ = until_end.map(|end| end.recv());
            });
            let set = act(move |_, context| drop(context.at(moment, meet)));
            let asked = puppet.ask(set).timeout(PATIENCE).await;
            asked.expect("it is not held up");
        }
        drop(release);
        for _ in &others {
            // Not by the runtime's clock: the thread that is held may be the one that keeps it.
            let arrival = others_seen.recv_timeout(PATIENCE);
            arrival.expect("it is not held up");
        }
        drop(end);
        assert!(system.shutdown(PATIENCE).await.is_clean());
    });
}

#[test]
fn a_deadline_is_kept_although_the_actor_that_was_asked_holds_its_worker() {
    for dispatcher in [Dispatcher::tokio(), Dispatcher::pool(1)] {
        let on = threads(1);
        let _within = on.enter();
        let system = system("default", dispatcher);
        let puppet = system.spawn(Puppet::make("holder", &Journal::default()));
        let (release, released) = mpsc::channel::<()>();
        let (begun, has_begun) = mpsc::channel();
        let hold = act(move |_, _| {
            begun.send(()).expect("the test waits");
            let _ = released.recv();
        });
        puppet.tell(hold).expect("the mailbox has room");
        has_begun.recv_timeout(PATIENCE).expect("it begins");
        runtime().block_on(async {
            let ask = puppet.ask(Note(1)).timeout(Duration::from_millis(20));
            let asked = tokio::time::timeout(PATIENCE, ask).await;
            let error = asked
                .expect("the deadline is kept")
                .expect_err("nobody replies");
            assert!(error.is_timeout(), "{error}");
        });
        drop(release);
    }
}

#[test]
fn a_runtime_that_is_dropped_ends_its_actors_and_who_waits_for_them_is_told() {
    let on = runtime();
    let (idle, waiting) = on.block_on(async {
        let system = ActorSystem::new().expect("there is a runtime");
        let [idle, waiting] =
            ["idle", "waiting"].map(|name| system.spawn(Puppet::make(name, &Journal::default())));
        idle.ask(Note(1)).await.expect("it is handled");
        waiting.tell(Hang).expect("the mailbox has room");
        waiting.tell(Note(2)).expect("the mailbox has room");
        tokio::task::yield_now().await;
        (idle, waiting)
    });
    drop(on);
    runtime().block_on(async {
        for puppet in [idle, waiting] {
            let asked = tokio::time::timeout(PATIENCE, puppet.ask(Note(3))).await;
            asked.expect("it is told").expect_err("nobody is there");
            let ended = tokio::time::timeout(PATIENCE, puppet.terminated()).await;
            ended.expect("it has ended");
            assert!(puppet.tell(Note(4)).is_err());
        }
    });
}

#[test]
fn actors_of_several_threads_talk_and_lose_nothing() {
    for round in 0..10 {
        threads(2).block_on(async {
            let builder = ActorSystem::builder().dispatcher("pool", Dispatcher::pool(2));
            let system = builder.build().expect("the dispatchers start");
            let journal = Journal::default();
            let puppets = ["default", "pool"].map(|name| {
                let build = system.build(Puppet::make("a", &journal));
                let build = build.mailbox(greenroom_actor::Mailbox::bounded(2));
                build
                    .dispatcher(name)
                    .spawn()
                    .expect("the dispatcher is there")
            });
            let senders = (0..8).map(|sender: usize| {
                let to = puppets[sender % 2].clone();
                let by = puppets[(sender + 1) % 2].clone();
                tokio::spawn(async move {
                    for number in 0..50 {
                        to.send(Note(number)).await.expect("it lives");
                        let whom = to.clone();
                        let ask = act_long(move |_, _| {
                            async move {
                                let _late = whom
                                    .ask(Note(number))
                                    .timeout(Duration::from_millis(1))
                                    .await;
                            }
                            .boxed()
                        });
                        by.send(ask).await.expect("it lives");
                    }
                })
            });
            for sender in senders.collect::<Vec<_>>() {
                let sender = tokio::time::timeout(PATIENCE, sender).await;
                sender
                    .expect("no sender hangs")
                    .expect("the task does not panic");
            }
            assert!(system.shutdown(PATIENCE).await.is_clean(), "round {round}");
            let notes = journal
                .take()
                .into_iter()
                .filter(|entry| entry != "a started")
                .count();
            assert!(notes >= 400, "{notes}");
        });
    }
}
