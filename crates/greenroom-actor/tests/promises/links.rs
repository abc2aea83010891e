//! Actors that end with others, and what is known of an end while it happens.

use greenroom_actor::testing::{TestKit, TestSystem};
use greenroom_actor::{
    ActorRef, ActorSystem, Cause, Directive, Failure, Limits, Mailbox, Overflow,
};

use crate::dispatchers::threads;
use crate::puppet::{Journal, Note, Puppet, act};
use crate::supervision::{restarts, supervised_by};

/// Has an actor link another.
async fn link(one: &ActorRef<Puppet>, other: &ActorRef<Puppet>) {
    let of = other.clone();
    one.ask(act(move |_, context| context.link(&of)))
        .await
        .expect("it is handled");
}

async fn linked(system: &TestSystem, journal: &Journal) -> [ActorRef<Puppet>; 2] {
    let a = system.spawn(Puppet::make("a", journal));
    let b = system.spawn(Puppet::make("b", journal));
    link(&a, &b).await;
    system.settle().await;
    journal.take();
    [a, b]
}

#[test]
fn a_linked_actor_fails_when_the_other_is_killed_either_way() {
    supervised_by(restarts()).run(|system| async move {
        let journal = Journal::default();
        let [a, _] = linked(&system, &journal).await;
        a.kill();
        system.settle().await;
        assert_eq!(journal.take(), ["b restarted"]);
        let [_, b] = linked(&system, &journal).await;
        b.kill();
        system.settle().await;
        assert_eq!(journal.take(), ["a restarted"]);
    });
}

#[test]
fn a_linked_actor_goes_on_when_the_other_is_stopped() {
    supervised_by(restarts()).run(|system| async move {
        let journal = Journal::default();
        let [a, _] = linked(&system, &journal).await;
        a.stop();
        system.settle().await;
        assert_eq!(journal.take(), ["a stopped"]);
    });
}

#[test]
fn an_actor_that_links_one_that_was_stopped_goes_on() {
    supervised_by(restarts()).run(|system| async move {
        let journal = Journal::default();
        let [a, b] = linked(&system, &journal).await;
        b.stop();
        b.terminated().await;
        // As it does again when it is restarted.
        link(&a, &b).await;
        system.settle().await;
        assert_eq!(journal.take(), ["b stopped"]);
    });
}

#[test]
fn a_link_that_is_undone_is_undone_both_ways_and_leaves_nothing() {
    let limits = Limits::default().watchers(2);
    let limited = ActorSystem::builder().limits(limits);
    TestKit::new().system(limited).run(|system| async move {
        let journal = Journal::default();
        let [a, b] = linked(&system, &journal).await;
        for _ in 0..5 {
            let of = b.clone();
            let deed = act(move |_, context| {
                context.unwatch(&of);
                context.link(&of);
                context.unwatch(&of);
            });
            a.ask(deed).await.expect("it is handled");
        }
        a.kill();
        system.settle().await;
        assert_eq!(journal.take(), Vec::<String>::new());
        b.ask(Note(1)).await.expect("it is not linked any more");
    });
}

/// Each leaves nothing in the list of the one that lives on, which is watched by two at most.
#[test]
fn an_actor_may_link_any_number_of_others_that_have_stopped() {
    let limits = Limits::default().watchers(2);
    let limited = ActorSystem::builder().limits(limits);
    TestKit::new().system(limited).run(|system| async move {
        let journal = Journal::default();
        let a = system.spawn(Puppet::make("a", &journal));
        for _ in 0..5 {
            let b = system.spawn(Puppet::make("b", &journal));
            b.stop();
            b.terminated().await;
            link(&a, &b).await;
        }
        a.ask(Note(1)).await.expect("it lives on");
        let entries = journal.take();
        assert!(!entries.iter().any(|entry| entry == "a restarted"));
    });
}

#[test]
fn a_link_that_the_other_has_undone_is_made_anew() {
    supervised_by(restarts()).run(|system| async move {
        let journal = Journal::default();
        let [a, b] = linked(&system, &journal).await;
        let of = a.clone();
        b.ask(act(move |_, context| context.unwatch(&of)))
            .await
            .expect("it is handled");
        link(&a, &b).await;
        b.kill();
        system.settle().await;
        assert_eq!(journal.take(), ["a restarted"]);
    });
}

/// On two threads: who comes in the midst of its end must not tell the others what it knows.
#[test]
fn who_watches_an_actor_as_it_ends_takes_no_notice_from_others() {
    threads(2).block_on(async {
        let system = ActorSystem::new().expect("there is a runtime");
        for _ in 0..300 {
            let journal = Journal::default();
            let [a, b, c] = ["a", "b", "c"].map(|name| system.spawn(Puppet::make(name, &journal)));
            link(&a, &b).await;
            let of = b.clone();
            b.stop();
            c.ask(act(move |_, context| context.watch(&of)))
                .await
                .expect("it is handled");
            b.terminated().await;
            a.ask(Note(1)).await.expect("it has not failed");
            let entries = journal.take();
            assert!(
                !entries.iter().any(|entry| entry == "a restarted"),
                "{entries:?}"
            );
            a.kill();
            c.kill();
        }
    });
}

/// On two threads: the last message comes as the actor finds its mailbox empty.
#[test]
fn what_was_told_before_a_stop_is_handled() {
    threads(2).block_on(async {
        let system = ActorSystem::new().expect("there is a runtime");
        for overflow in [Overflow::BackPressure, Overflow::DropOldest] {
            for _ in 0..2_000 {
                let journal = Journal::default();
                let puppet = system
                    .build(Puppet::make("a", &journal))
                    .mailbox(Mailbox::bounded(4).overflow(overflow))
                    .spawn()
                    .expect("the default dispatcher is there");
                puppet.tell(Note(1)).expect("the mailbox has room");
                std::thread::yield_now();
                puppet.tell(Note(2)).expect("the mailbox has room");
                puppet.stop();
                puppet.terminated().await;
                assert_eq!(journal.take(), ["a started", "a 1", "a 2", "a stopped"]);
            }
        }
        assert_eq!(system.dead_letters().total(), 0);
    });
}

/// Links and is killed in one turn, so that the other has had none.
#[test]
fn an_actor_that_has_not_begun_fails_with_the_one_that_links_it() {
    supervised_by(restarts()).run(|system| async move {
        let journal = Journal::default();
        let [a, b] = ["a", "b"].map(|name| Puppet::make(name, &journal));
        let a = system.spawn(a);
        system.settle().await;
        let deed = act(move |_, context| {
            let b = context.system().spawn(b);
            context.link(&b);
            context.myself().kill();
        });
        a.tell(deed).expect("the mailbox has room");
        system.settle().await;
        assert_eq!(journal.take(), ["a started", "b restarted"]);
    });
}

#[test]
fn an_actor_is_not_resumed_after_one_that_it_was_linked_to() {
    let decide = restarts().decide(|failure: &Failure| match failure.cause {
        Cause::Linked(_) => Directive::Restart,
        _ => Directive::Resume,
    });
    supervised_by(decide).run_seeded(0..20, |system| async move {
        let journal = Journal::default();
        let [a, b] = linked(&system, &journal).await;
        let deed = act(move |_, _| {
            b.kill();
            panic!("a, which then waits for its supervisor");
        });
        a.tell(deed).expect("the mailbox has room");
        system.settle().await;
        assert_eq!(journal.take(), ["a restarted"]);
    });
}
