//! Questions without a reply in time.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use greenroom_actor::testing;
use greenroom_actor::{ActorRef, ActorSystem, Dispatcher};
use tokio::runtime::Builder;

use crate::puppet::{ActLong, Hang, Hold, Journal, Note, Puppet, act_long};

/// The time that a test on the real clock waits for an event, before it fails.
const PATIENCE: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);

/// Asks `whom` to hang, and sends the error to the receiver of `told`.
fn ask_in_vain(whom: &ActorRef<Puppet>, told: mpsc::Sender<String>) -> ActLong {
    let whom = whom.clone();
    act_long(move |_, _| {
        async move {
            let error = whom.ask(Note(1)).timeout(Duration::from_millis(20)).await;
            let _ = told.send(error.expect_err("it hangs").to_string());
        }
        .boxed()
    })
}

#[test]
fn a_time_out_names_actors_however_many_there_are() {
    testing::run(|system| async move {
        let spawn = |name| {
            let build = system.build(Puppet::make(name, &Journal::default()));
            build.name(name).spawn().expect("the dispatcher is there")
        };
        let [asker, hung] = ["asker", "hung"].map(spawn);
        hung.tell(Hang).expect("the mailbox has room");
        for _ in 0..10_100 {
            system.spawn(Puppet::make("other", &Journal::default()));
        }
        let (told, error) = mpsc::channel();
        let vain = asker.ask(ask_in_vain(&hung, told));
        vain.await.expect("it is handled");
        let error = error.recv().expect("it was told");
        assert!(
            error.starts_with("/asker got no reply from /hung to "),
            "{error}"
        );
    });
}

#[test]
fn a_time_out_names_whom_the_other_still_waits_for_of_several() {
    testing::run(|system| async move {
        let spawn = |name| {
            let build = system.build(Puppet::make(name, &Journal::default()));
            build.name(name).spawn().expect("the dispatcher is there")
        };
        let [asker, hung, quick] = ["asker", "hung", "quick"].map(spawn);
        let whom = [hung, quick];
        let ask_both = act_long(move |_, _| {
            async move {
                let [hung, quick] = &whom;
                let hung = hung.ask(Hang).timeout(SECOND * 60);
                let quick = quick.ask(Hold(SECOND)).timeout(SECOND * 60);
                let _ = futures_util::future::join(hung, quick).await;
            }
            .boxed()
        });
        asker.tell(ask_both).expect("the mailbox has room");
        system.advance(SECOND * 2).await;
        let error = asker.ask(Note(1)).timeout(SECOND).await;
        let error = error.expect_err("it waits").to_string();
        assert!(
            error.ends_with("; /asker itself waits for /hung"),
            "{error}"
        );
    });
}

#[test]
fn an_actor_hears_of_its_deadline_although_nothing_runs_where_the_other_is() {
    let [here, nowhere] = [(); 2].map(|()| {
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.expect("the system gives a runtime")
    });
    here.block_on(async {
        let builder = ActorSystem::builder().dispatcher("loop", Dispatcher::on_loop());
        let system = builder.build().expect("there is a runtime");
        let there = {
            let _within = nowhere.enter();
            let build = system.build(Puppet::make("a", &Journal::default()));
            build.dispatcher("loop").spawn().expect("it is there")
        };
        let asker = system.spawn(Puppet::make("asker", &Journal::default()));
        let (told, error) = mpsc::channel();
        let vain = asker.ask(ask_in_vain(&there, told)).timeout(PATIENCE);
        tokio::time::timeout(PATIENCE, vain)
            .await
            .expect("it hears of its deadline")
            .expect("it is handled");
        let error = error.recv().expect("it was told");
        assert!(error.contains("within 20ms"), "{error}");
    });
}

/// Asks one that hangs eight times at once, for 1 to 8 ms. No error may be early.
async fn ask_eight_in_vain(system: &ActorSystem) {
    let hung = system.spawn(Puppet::make("hung", &Journal::default()));
    hung.tell(Hang).expect("the mailbox has room");
    let ask = async |millis| {
        let (timeout, begin) = (Duration::from_millis(millis), Instant::now());
        let ask = hung.ask(Note(1)).timeout(timeout);
        let asked = tokio::time::timeout(PATIENCE, ask).await;
        let error = asked.expect("the deadline is kept").expect_err("it hangs");
        assert!(error.is_timeout(), "{error}");
        assert!(begin.elapsed() >= timeout, "after {:?}", begin.elapsed());
    };
    futures_util::future::join_all((1..=8).map(ask)).await;
    hung.kill();
}

#[test]
fn no_deadline_of_a_task_is_missed_or_early_while_workers_go_to_sleep_and_wake() {
    let runtime = || {
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.expect("the system gives a runtime")
    };
    for dispatcher in [Dispatcher::tokio(), Dispatcher::pool(2)] {
        let on = crate::dispatchers::threads(2);
        let _within = on.enter();
        let builder = ActorSystem::builder().dispatcher("default", dispatcher);
        let system = builder.build().expect("the dispatcher starts");
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    runtime().block_on(async {
                        for _ in 0..40 {
                            ask_eight_in_vain(&system).await;
                        }
                    });
                });
            }
        });
    }
}
