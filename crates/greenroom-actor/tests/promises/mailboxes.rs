//! Bounds, overflow, the control lane, the stash, dead letters.

use std::time::Duration;

use futures_util::FutureExt;
use greenroom_actor::testing::{self, TestSystem};
use greenroom_actor::{
    ActorRef, AskError, DeadLetter, Mailbox, Overflow, Reason, STASH_MAX, SendError, TellError,
};

use crate::puppet::{Boom, Hang, Hold, Journal, Note, Puppet, Question, act, act_long};

const HOLD: Duration = Duration::from_secs(1);

/// Returns an actor with a mailbox of four, full with 1 to 4 behind a handler that waits for a
/// second.
async fn full(system: &TestSystem, journal: &Journal, overflow: Overflow) -> ActorRef<Puppet> {
    let puppet = system
        .build(Puppet::make("a", journal))
        .mailbox(Mailbox::bounded(4).overflow(overflow))
        .spawn()
        .expect("the default dispatcher is there");
    puppet.tell(Hold(HOLD)).expect("the mailbox has room");
    system.settle().await;
    for number in 1..=4 {
        puppet.tell(Note(number)).expect("the mailbox has room");
    }
    assert_eq!(puppet.waiting(), 4);
    puppet
}

const FIRST_FOUR: [&str; 7] = ["a started", "a holds", "a held", "a 1", "a 2", "a 3", "a 4"];

#[test]
fn back_pressure_returns_what_is_told_and_has_send_and_ask_wait() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = full(&system, &journal, Overflow::BackPressure).await;
        let told = puppet.tell(Note(5)).expect_err("it is full");
        assert!(matches!(told, TellError::Full(Note(5))));
        let to = puppet.clone();
        let sent = tokio::spawn(async move { to.send(Note(6)).await });
        let of = puppet.clone();
        let asked = tokio::spawn(async move { of.ask(Question(7)).await });
        system.settle().await;
        assert!(!sent.is_finished());
        assert!(!asked.is_finished());
        assert_eq!(puppet.waiting(), 4);
        sent.await.expect("no panic").expect("there is room");
        assert_eq!(asked.await.expect("no panic").expect("it is handled"), 7);
        let entries = journal.take();
        assert_eq!(entries[..7], FIRST_FOUR);
        assert!(entries.contains(&"a 6".to_owned()), "{entries:?}");
        assert_eq!(system.dead_letters().total(), 0);
    });
}

#[test]
fn refuse_returns_at_once_whatever_way_the_message_came() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = full(&system, &journal, Overflow::Refuse).await;
        assert!(matches!(
            puppet.tell(Note(5)),
            Err(TellError::Full(Note(5)))
        ));
        let sent = puppet
            .send(Note(6))
            .now_or_never()
            .expect("it does not wait");
        assert!(matches!(sent, Err(SendError::Full(Note(6)))));
        let asked = puppet
            .ask(Note(7))
            .now_or_never()
            .expect("it does not wait");
        assert!(matches!(asked, Err(AskError::Full { .. })));
        system.advance(HOLD).await;
        assert_eq!(journal.take(), FIRST_FOUR);
        assert_eq!(system.dead_letters().total(), 0);
    });
}

#[test]
fn drop_newest_makes_dead_letters_of_what_is_too_much() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = full(&system, &journal, Overflow::DropNewest).await;
        puppet.tell(Note(5)).expect("who tells is not told so");
        puppet
            .send(Note(6))
            .await
            .expect("who sends is not told so");
        let asked = puppet
            .ask(Note(7))
            .now_or_never()
            .expect("it does not wait");
        let error = asked.expect_err("it is dropped");
        assert!(
            matches!(
                error,
                AskError::Unhandled {
                    reason: Reason::DroppedNewest,
                    ..
                }
            ),
            "{error}"
        );
        system.advance(HOLD).await;
        assert_eq!(journal.take(), FIRST_FOUR);
        assert_eq!(system.dead_letters().count(Reason::DroppedNewest), 3);
        assert_eq!(system.dead_letters().total(), 3);
    });
}

#[test]
fn drop_oldest_makes_dead_letters_of_what_waits_longest() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = full(&system, &journal, Overflow::DropOldest).await;
        puppet.tell(Note(5)).expect("it takes the place of 1");
        puppet.send(Note(6)).await.expect("it takes the place of 2");
        assert_eq!(puppet.waiting(), 4);
        system.advance(HOLD).await;
        let expected = ["a started", "a holds", "a held", "a 3", "a 4", "a 5", "a 6"];
        assert_eq!(journal.take(), expected);
        assert_eq!(system.dead_letters().count(Reason::DroppedOldest), 2);
        assert_eq!(system.dead_letters().total(), 2);
    });
}

#[test]
fn who_asked_is_told_when_the_question_is_the_oldest_and_dropped() {
    testing::run(|system| async move {
        let puppet = system
            .build(Puppet::make("a", &Journal::default()))
            .mailbox(Mailbox::bounded(1).overflow(Overflow::DropOldest))
            .spawn()
            .expect("the default dispatcher is there");
        puppet.tell(Hang).expect("the mailbox has room");
        system.settle().await;
        let of = puppet.clone();
        let asked = tokio::spawn(async move { of.ask(Note(1)).await });
        system.settle().await;
        puppet.tell(Note(2)).expect("it takes the place of 1");
        let error = asked.await.expect("no panic").expect_err("it is dropped");
        assert!(
            matches!(
                error,
                AskError::Unhandled {
                    reason: Reason::DroppedOldest,
                    ..
                }
            ),
            "{error}"
        );
    });
}

#[test]
fn a_sender_is_let_in_as_soon_as_there_is_room() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = system
            .build(Puppet::make("a", &journal))
            .mailbox(Mailbox::bounded(1))
            .spawn()
            .expect("the default dispatcher is there");
        puppet.tell(Hold(HOLD)).expect("the mailbox has room");
        system.settle().await;
        puppet.tell(Hang).expect("the mailbox has room");
        let to = puppet.clone();
        let sent = tokio::spawn(async move { to.send(Note(1)).await });
        system.settle().await;
        assert!(!sent.is_finished());
        // The handler that hangs has left the mailbox, and never ends.
        system.advance(HOLD).await;
        assert!(sent.is_finished());
    });
}

#[test]
fn a_sender_is_let_in_while_an_actor_that_failed_rests() {
    testing::run(|system| async move {
        let puppet = system
            .build(Puppet::make("a", &Journal::default()))
            .mailbox(Mailbox::bounded(1))
            .spawn()
            .expect("the default dispatcher is there");
        puppet.tell(Hold(HOLD)).expect("the mailbox has room");
        system.settle().await;
        puppet.tell(Boom).expect("the mailbox has room");
        let to = puppet.clone();
        let sent = tokio::spawn(async move { to.send(Note(1)).await });
        system.advance(HOLD).await;
        assert_eq!(system.dead_letters().count(Reason::Failed), 1);
        assert!(sent.is_finished());
    });
}

#[test]
fn senders_that_wait_are_told_when_the_actor_ends() {
    testing::run(|system| async move {
        let puppet = full(&system, &Journal::default(), Overflow::BackPressure).await;
        let to = puppet.clone();
        let sent = tokio::spawn(async move { to.send(Note(5)).await });
        let of = puppet.clone();
        let asked = tokio::spawn(async move { of.ask(Note(6)).await });
        system.settle().await;
        puppet.kill();
        let sent = sent.await.expect("no panic");
        assert!(matches!(sent, Err(SendError::Closed(Note(5)))));
        let asked = asked.await.expect("no panic");
        assert!(matches!(asked, Err(AskError::Closed { .. })));
        assert_eq!(system.dead_letters().count(Reason::Ended), 4);
        assert_eq!(system.dead_letters().count(Reason::Aborted), 1);
    });
}

#[test]
fn senders_that_wait_are_told_when_the_actor_is_stopped() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = full(&system, &journal, Overflow::BackPressure).await;
        let to = puppet.clone();
        let sent = tokio::spawn(async move { to.send(Note(5)).await });
        let of = puppet.clone();
        let asked = tokio::spawn(async move { of.ask(Note(6)).await });
        system.settle().await;
        puppet.stop();
        // While the handler at hand still waits.
        system.settle().await;
        let sent = sent.now_or_never().expect("it was told").expect("no panic");
        assert!(matches!(sent, Err(SendError::Closed(Note(5)))));
        let asked = asked
            .now_or_never()
            .expect("it was told")
            .expect("no panic");
        assert!(matches!(asked, Err(AskError::Closed { .. })));
        puppet.terminated().await;
        assert_eq!(journal.take(), [&FIRST_FOUR[..], &["a stopped"]].concat());
        assert_eq!(system.dead_letters().total(), 0);
    });
}

#[test]
fn a_mailbox_holds_never_more_than_its_capacity_whatever_the_seed() {
    testing::run_seeded(0..50, |system| async move {
        let puppet = system
            .build(Puppet::make("a", &Journal::default()))
            .mailbox(Mailbox::bounded(3))
            .spawn()
            .expect("the default dispatcher is there");
        let senders: Vec<_> = (0..5)
            .map(|_| {
                let to = puppet.clone();
                tokio::spawn(async move {
                    for number in 0..10 {
                        to.send(Note(number)).await.expect("it lives");
                        assert!(to.waiting() <= 3);
                    }
                })
            })
            .collect();
        for sender in senders {
            sender.await.expect("never more than three wait");
        }
    });
}

#[test]
fn a_kill_overtakes_all_messages() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = system.spawn(Puppet::make("a", &journal));
        system.settle().await;
        let kill = act(|_, context| context.myself().kill());
        puppet.tell(kill).expect("the mailbox has room");
        puppet.tell(Note(1)).expect("the mailbox has room");
        puppet.terminated().await;
        assert_eq!(journal.take(), ["a started"]);
        assert_eq!(system.dead_letters().count(Reason::Ended), 1);
    });
}

#[test]
fn a_notice_of_an_end_overtakes_all_messages() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let watched = system
            .build(Puppet::make("b", &Journal::default()))
            .name("watched")
            .spawn()
            .expect("the default dispatcher is there");
        let puppet = system.spawn(Puppet::make("a", &journal));
        let of = watched.clone();
        let watch = act(move |_, context| context.watch(&of));
        puppet.ask(watch).await.expect("it is handled");
        puppet.tell(Hold(HOLD)).expect("the mailbox has room");
        puppet.tell(Note(1)).expect("the mailbox has room");
        system.settle().await;
        watched.kill();
        system.advance(HOLD).await;
        let expected = [
            "a started",
            "a holds",
            "a held",
            "a saw /watched end: Killed",
            "a 1",
        ];
        assert_eq!(journal.take(), expected);
    });
}

#[test]
fn the_stash_comes_back_in_order_and_before_the_mailbox() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = system.spawn(Puppet::make("a", &journal));
        puppet
            .ask(act(|me, context| {
                for number in 1..=3 {
                    context.stash(Note(number)).expect("the stash has room");
                }
                me.note(format!("stashed {}", context.stashed()));
            }))
            .await
            .expect("it is handled");
        let unstash = act(|_, context| context.unstash_all());
        puppet.tell(unstash).expect("the mailbox has room");
        puppet.tell(Note(4)).expect("the mailbox has room");
        system.settle().await;
        assert_eq!(
            journal.take(),
            ["a started", "a stashed 3", "a 1", "a 2", "a 3", "a 4"]
        );
    });
}

#[test]
fn a_handler_that_unstashes_and_then_waits_gets_the_stash_when_it_is_done() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = system.spawn(Puppet::make("a", &journal));
        let deed = act_long(|_, context| {
            async move {
                context.stash(Note(1)).expect("the stash has room");
                context.unstash_all();
                tokio::time::sleep(HOLD).await;
            }
            .boxed()
        });
        puppet.tell(deed).expect("the mailbox has room");
        puppet.tell(Note(2)).expect("the mailbox has room");
        system.advance(HOLD).await;
        assert_eq!(journal.take(), ["a started", "a 1", "a 2"]);
    });
}

#[test]
fn the_stash_is_bounded_and_returns_what_is_too_much() {
    testing::run(|system| async move {
        let puppet = system.spawn(Puppet::make("a", &Journal::default()));
        let deed = act(|_, context| {
            for _ in 0..STASH_MAX {
                context.stash(Note(0)).expect("the stash has room");
            }
            let full = context.stash(Note(7)).expect_err("it is full");
            assert_eq!(full.0, Note(7));
        });
        puppet.ask(deed).await.expect("it is handled");
        puppet.kill();
        puppet.terminated().await;
        assert_eq!(system.dead_letters().count(Reason::Ended), STASH_MAX as u64);
    });
}

#[test]
fn a_dead_letter_says_for_whom_it_was_and_why_and_gives_its_content_once() {
    testing::run(|system| async move {
        let mut probe = system.probe::<DeadLetter>();
        system.dead_letters().subscribe(probe.recipient());
        let puppet = system
            .build(Puppet::make("a", &Journal::default()))
            .name("late")
            .spawn()
            .expect("the default dispatcher is there");
        puppet.tell(Boom).expect("the mailbox has room");
        puppet.tell(Note(7)).expect("the mailbox has room");
        let failed = probe.expect_message().await;
        assert_eq!(failed.reason, Reason::Failed);
        assert_eq!(failed.panic.as_deref(), Some("boom"));
        puppet.kill();
        let letter = probe.expect_message().await;
        assert_eq!(&*letter.receiver, "/late");
        assert!(letter.message.ends_with("::Note"), "{}", letter.message);
        assert_eq!(letter.reason, Reason::Ended);
        assert!(
            letter.take_content::<Boom>().is_none(),
            "it is another type"
        );
        assert_eq!(letter.clone().take_content::<Note>(), Some(Note(7)));
        assert_eq!(letter.take_content::<Note>(), None, "it was taken");
    });
}

#[test]
fn a_subscriber_of_dead_letters_that_cannot_keep_up_loses_some_and_all_are_counted() {
    for overflow in [
        Overflow::BackPressure,
        Overflow::Refuse,
        Overflow::DropNewest,
        Overflow::DropOldest,
    ] {
        testing::run(|system| async move {
            let subscriber = system
                .build(|| Subscriber)
                .mailbox(Mailbox::bounded(1).overflow(overflow))
                .spawn()
                .expect("the default dispatcher is there");
            system.dead_letters().subscribe(subscriber.recipient());
            let puppet = system.spawn(Puppet::make("a", &Journal::default()));
            for number in 0..10 {
                puppet.tell(Note(number)).expect("the mailbox has room");
            }
            puppet.kill();
            puppet.terminated().await;
            assert!(system.dead_letters().count(Reason::Ended) >= 10);
        });
    }
}

struct Subscriber;
impl greenroom_actor::Actor for Subscriber {}
impl greenroom_actor::AsyncHandler<DeadLetter> for Subscriber {
    type Reply = ();
    async fn handle(&mut self, _: DeadLetter, _: &mut greenroom_actor::Context<Self>) {
        std::future::pending::<()>().await;
    }
}

#[test]
fn an_actor_that_is_stopped_at_once_still_handles_what_it_was_told() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = system.spawn(Puppet::make("a", &journal));
        puppet.tell(Note(1)).expect("the mailbox has room");
        puppet.tell(Note(2)).expect("the mailbox has room");
        puppet.stop();
        puppet.terminated().await;
        assert_eq!(journal.take(), ["a started", "a 1", "a 2", "a stopped"]);
        assert_eq!(system.dead_letters().total(), 0);
    });
}
