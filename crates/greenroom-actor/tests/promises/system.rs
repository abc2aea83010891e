//! A system as a whole, and its end.

use std::time::Duration;

use futures_util::future::BoxFuture;
use greenroom_actor::testing::{self, TestSystem};
use greenroom_actor::{Actor, ActorRef, ActorSystem, Context, Handler, Reason};
use tokio::time::Instant;

use crate::puppet::{Hang, Hold, Journal, Note, Puppet, act};

const SECOND: Duration = Duration::from_secs(1);

async fn parent_and_child(
    system: &TestSystem,
    journal: &Journal,
) -> (ActorRef<Puppet>, ActorRef<Puppet>) {
    let build = system.build(Puppet::make("p", journal)).name("parent");
    let parent = build.spawn().expect("the default dispatcher is there");
    let (sender, child) = tokio::sync::oneshot::channel();
    let of = journal.clone();
    let spawn = act(move |_, context| {
        let child = context.build(Puppet::make("c", &of)).name("child").spawn();
        let _ = sender.send(child.expect("the default dispatcher is there"));
    });
    parent.ask(spawn).await.expect("it is handled");
    system.settle().await;
    journal.take();
    (parent, child.await.expect("it was sent"))
}

#[test]
fn a_shutdown_drains_the_whole_tree() {
    testing::run_seeded(0..20, |system| async move {
        let journal = Journal::default();
        let (parent, child) = parent_and_child(&system, &journal).await;
        parent.tell(Hold(SECOND)).expect("the mailbox has room");
        parent.tell(Note(1)).expect("the mailbox has room");
        child.tell(Hold(SECOND)).expect("the mailbox has room");
        child.tell(Note(2)).expect("the mailbox has room");
        let begin = Instant::now();
        let report = system.shutdown(SECOND * 60).await;
        assert!(begin.elapsed() <= SECOND * 2);
        assert!(report.is_clean(), "{report:?}");
        assert_eq!((report.actors, report.dead_letters), (2, 0));
        let entries = journal.take();
        assert_eq!(entries.len(), 8, "{entries:?}");
        assert_eq!(entries.last().map(String::as_str), Some("p stopped"));
    });
}

#[test]
fn a_shutdown_kills_at_its_deadline_and_names_whom() {
    testing::run(|system| async move {
        let (_, child) = parent_and_child(&system, &Journal::default()).await;
        child.tell(Hang).expect("the mailbox has room");
        child.tell(Note(1)).expect("the mailbox has room");
        let begin = Instant::now();
        let report = system.shutdown(SECOND * 3).await;
        assert_eq!(begin.elapsed(), SECOND * 3);
        assert!(!report.is_clean());
        assert_eq!((report.killed, report.stuck), (2, 0));
        assert_eq!(report.killed_paths, ["/parent", "/parent/child"]);
        assert_eq!(report.dead_letters, 2);
        assert_eq!(system.dead_letters().count(Reason::Aborted), 1);
        assert_eq!(system.dead_letters().count(Reason::Ended), 1);
    });
}

#[test]
fn a_shutdown_may_wait_for_ever_and_come_twice() {
    testing::run(|system| async move {
        let _puppet = system.spawn(Puppet::make("a", &Journal::default()));
        assert!(system.shutdown(Duration::MAX).await.is_clean());
        let again = system.shutdown(Duration::ZERO).await;
        assert!(again.is_clean());
        assert_eq!(again.actors, 0);
    });
}

#[test]
fn what_is_spawned_after_a_shutdown_ends_before_it_begins() {
    testing::run(|system| async move {
        system.shutdown(SECOND).await;
        let journal = Journal::default();
        let puppet = system.spawn(Puppet::make("a", &journal));
        let told: BoxFuture<'_, _> = Box::pin(puppet.terminated());
        tokio::time::timeout(SECOND, told).await.expect("it ends");
        assert!(puppet.tell(Note(1)).is_err());
        assert!(journal.take().is_empty());
    });
}

#[test]
fn a_shutdown_reports_a_handler_that_does_not_return() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("the system gives a runtime");
    runtime.block_on(async {
        let system = ActorSystem::builder()
            .dispatcher("default", greenroom_actor::Dispatcher::pool(1))
            .build()
            .expect("the system gives a thread");
        let build = system.build(Puppet::make("a", &Journal::default()));
        let puppet = build
            .name("stuck")
            .spawn()
            .expect("the default dispatcher is there");
        let (release, released) = std::sync::mpsc::channel::<()>();
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let deed = act(move |_, _| {
            let _ = begun.send(());
            let _ = released.recv();
        });
        puppet.tell(deed).expect("the mailbox has room");
        has_begun.await.expect("it begins");
        let report = system.shutdown(SECOND).await;
        assert_eq!((report.killed, report.stuck), (1, 1));
        assert_eq!(report.stuck_paths, ["/stuck"]);
        drop(release);
        puppet.terminated().await;
    });
}

struct Twin<const NUMBER: usize>;

impl<const NUMBER: usize> Actor for Twin<NUMBER> {
    fn type_name() -> &'static str {
        "twin"
    }
}

impl<const NUMBER: usize> Handler<Note> for Twin<NUMBER> {
    type Reply = ();

    fn handle(&mut self, _: Note, _: &mut Context<Self>) {}
}

#[test]
fn the_status_has_the_mailboxes_of_each_type_also_of_two_of_one_name() {
    testing::run(|system| async move {
        let [one, other] = [system.spawn(|| Twin::<1>), system.spawn(|| Twin::<1>)];
        let third = system.spawn(|| Twin::<2>);
        // None of them has a turn before this test waits.
        for actor in [&one, &one, &other] {
            actor.tell(Note(1)).expect("the mailbox has room");
        }
        third.tell(Note(1)).expect("the mailbox has room");
        let types = system.status().types;
        let mut twins: Vec<_> = types.iter().filter(|each| each.name == "twin").collect();
        twins.sort_by_key(|each| each.waiting);
        let seen = twins
            .iter()
            .map(|each| (each.alive, each.waiting, each.waiting_max));
        assert_eq!(seen.collect::<Vec<_>>(), [(1, 1, 1), (2, 3, 2)]);
    });
}
