//! Limits on an actor's children, timers and watchers.

use std::time::Duration;

use greenroom_actor::testing::{self, TestKit, TestSystem};
use greenroom_actor::{
    ActorRef, ActorSystem, Backoff, Cause, Directive, Limits, SpawnError, Supervision,
};

use crate::puppet::{Journal, Note, Puppet, act};

const SECOND: Duration = Duration::from_secs(1);

fn limited(system: &TestSystem, journal: &Journal, limits: Limits) -> ActorRef<Puppet> {
    let build = system.build(Puppet::make("a", journal)).name("a");
    let spawned = build.limits(limits).spawn();
    spawned.expect("the dispatcher is there")
}

/// Returns a kit whose actors at the top are restarted at once, and notes the causes of their
/// failures.
fn noting(journal: &Journal) -> TestKit {
    let journal = journal.clone();
    let supervision = Supervision::one_for_one()
        .backoff(Backoff::NONE)
        .decide(move |failure| {
            if let Cause::Error(error) = &failure.cause {
                journal.note(error.to_string());
            }
            Directive::Restart
        });
    TestKit::new().system(ActorSystem::builder().supervision(supervision))
}

#[test]
fn a_parent_has_so_many_children_and_no_more_until_one_ends() {
    testing::run(|system| async move {
        let parent = limited(&system, &Journal::default(), Limits::default().children(2));
        let deed = act(|_, context| {
            let child = || {
                context
                    .build(Puppet::make("c", &Journal::default()))
                    .spawn()
            };
            let first = child().expect("there is room for two");
            child().expect("there is room for two");
            let error = child().expect_err("there is no room for three");
            assert!(matches!(
                error,
                SpawnError::TooManyChildren {
                    children_max: 2,
                    ..
                }
            ));
            assert_eq!(
                error.to_string(),
                "/a has 2 children, and may have no more (`Limits::children`)"
            );
            let stillborn = context.spawn(Puppet::make("c", &Journal::default()));
            context
                .pipe(async move { stillborn.terminated().await }, move |()| {
                    act(move |_, _| first.stop())
                })
                .expect("it is the first");
        });
        parent.ask(deed).await.expect("it is handled");
        system.settle().await;
        let deed = act(|_, context| {
            let build = context.build(Puppet::make("c", &Journal::default()));
            build.spawn().expect("one has ended");
        });
        parent.ask(deed).await.expect("it is handled");
    });
}

#[test]
fn the_top_of_a_system_has_a_limit_too() {
    let builder = ActorSystem::builder().limits(Limits::default().children(1));
    TestKit::new().system(builder).run(|system| async move {
        let first = system.spawn(Puppet::make("a", &Journal::default()));
        let second = system.build(Puppet::make("a", &Journal::default())).spawn();
        assert_eq!(
            second.expect_err("there is no room").to_string(),
            "the top of the tree has 1 children, and may have no more (`Limits::children`)"
        );
        first.ask(Note(1)).await.expect("it is handled");
    });
}

#[test]
fn an_actor_that_sets_more_timers_than_it_may_fails_and_says_why() {
    let journal = Journal::default();
    noting(&journal).run(|system| async move {
        let actor = limited(&system, &Journal::default(), Limits::default().timers(2));
        let deed = act(|_, context| {
            context.once(SECOND, Note(1)).cancel();
            context.once(SECOND, Note(1));
            assert!(!context.every(SECOND, Note(1)).is_done());
        });
        actor.ask(deed).await.expect("it is handled");
        assert!(journal.take().is_empty());
        let deed = act(|_, context| assert!(context.once(SECOND, Note(1)).is_done()));
        actor.ask(deed).await.expect("it is handled");
        system.settle().await;
        let expected = "it has 2 timers, and may have no more (`Limits::timers`)";
        assert_eq!(journal.take(), [expected]);
    });
}

#[test]
fn who_watches_an_actor_that_has_as_many_watchers_as_it_may_fails_and_says_why() {
    let journal = Journal::default();
    noting(&journal).run(|system| async move {
        let watched = limited(&system, &Journal::default(), Limits::default().watchers(1));
        let [first, second] =
            ["b", "c"].map(|name| system.spawn(Puppet::make(name, &Journal::default())));
        for watcher in [&first, &first, &second] {
            assert!(journal.take().is_empty());
            let whom = watched.clone();
            let deed = act(move |_, context| context.watch(&whom));
            watcher.ask(deed).await.expect("it is handled");
            system.settle().await;
        }
        let expected = "an actor that it was to watch or link has 1 watchers, and may have no \
            more (`Limits::watchers`)";
        assert_eq!(journal.take(), [expected]);
        let whom = watched.clone();
        let unwatch = act(move |_, context| context.unwatch(&whom));
        first.ask(unwatch).await.expect("it is handled");
        let deed = act(move |_, context| context.watch(&watched));
        second.ask(deed).await.expect("it is handled");
        system.settle().await;
        assert!(journal.take().is_empty());
    });
}
