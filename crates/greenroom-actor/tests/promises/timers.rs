//! Messages that an actor sends itself later.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use greenroom_actor::testing::{self, TestSystem};
use greenroom_actor::{ActorRef, Context, Handler, Reason, Timer};
use tokio::time::Instant;

use crate::puppet::{Boom, Hold, Journal, Note, Puppet, act};

const SECOND: Duration = Duration::from_secs(1);

async fn puppet(system: &TestSystem, journal: &Journal) -> ActorRef<Puppet> {
    let puppet = system.spawn(Puppet::make("a", journal));
    system.settle().await;
    journal.take();
    puppet
}

#[test]
fn once_comes_once_and_not_before_its_time() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = puppet(&system, &journal).await;
        let deed = act(|_, context| drop(context.once(SECOND, Note(1))));
        puppet.ask(deed).await.expect("it is handled");
        system.advance(Duration::from_millis(999)).await;
        assert!(journal.take().is_empty());
        system.advance(Duration::from_millis(1)).await;
        assert_eq!(journal.take(), ["a 1"]);
        system.advance(SECOND * 100).await;
        assert!(journal.take().is_empty());
    });
}

#[test]
fn at_comes_at_its_moment_and_at_once_if_that_is_past() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = puppet(&system, &journal).await;
        let begin = Instant::now();
        let deed = act(move |_, context| {
            context.at(begin + SECOND, Note(2));
            context.at(begin, Note(1));
        });
        puppet.ask(deed).await.expect("it is handled");
        system.advance(Duration::from_millis(1)).await;
        assert_eq!(journal.take(), ["a 1"]);
        system.advance(SECOND).await;
        assert_eq!(journal.take(), ["a 2"]);
    });
}

#[test]
fn every_comes_at_every_multiple_of_its_interval() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = puppet(&system, &journal).await;
        let deed = act(|_, context| drop(context.every(SECOND, Note(1))));
        puppet.ask(deed).await.expect("it is handled");
        for _ in 0..5 {
            system.advance(Duration::from_millis(999)).await;
            assert!(journal.take().is_empty());
            system.advance(Duration::from_millis(1)).await;
            assert_eq!(journal.take(), ["a 1"]);
        }
    });
}

#[test]
fn timers_never_pile_up_behind_a_slow_actor() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = puppet(&system, &journal).await;
        let (sender, timer) = tokio::sync::oneshot::channel::<Timer>();
        let deed = act(|_, context| drop(sender.send(context.every(SECOND, Note(1)))));
        puppet.ask(deed).await.expect("it is handled");
        let timer = timer.await.expect("it was sent");
        puppet
            .tell(Hold(SECOND * 10))
            .expect("the mailbox has room");
        system.advance(Duration::from_millis(9_999)).await;
        assert_eq!(puppet.waiting(), 1);
        assert_eq!(timer.skipped(), 8);
        system.advance(Duration::from_millis(500)).await;
        assert_eq!(journal.take()[..3], ["a holds", "a held", "a 1"]);
    });
}

#[test]
fn a_cancelled_timer_sends_no_more_and_what_waits_is_not_handled() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = puppet(&system, &journal).await;
        let (sender, timer) = tokio::sync::oneshot::channel::<Timer>();
        let deed = act(|_, context| drop(sender.send(context.every(SECOND, Note(1)))));
        puppet.ask(deed).await.expect("it is handled");
        let timer = timer.await.expect("it was sent");
        puppet.tell(Hold(SECOND * 2)).expect("the mailbox has room");
        system.advance(SECOND * 3 / 2).await;
        assert!(!timer.is_done());
        timer.cancel();
        assert!(timer.is_done());
        system.advance(SECOND * 10).await;
        assert_eq!(journal.take(), ["a holds", "a held"]);
    });
}

/// Cancels the timer whose message has this in it.
struct CancelsWhenDropped(Arc<OnceLock<Timer>>);

impl Drop for CancelsWhenDropped {
    fn drop(&mut self) {
        self.0.get().expect("the timer is set").cancel();
    }
}

#[test]
fn a_timer_may_be_cancelled_by_the_destructor_of_its_own_message() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = puppet(&system, &journal).await;
        let deed = act(|_, context| {
            let timer = Arc::new(OnceLock::new());
            let message = CancelsWhenDropped(Arc::clone(&timer));
            let set = context.once(SECOND, act(move |_, _| drop(message)));
            timer.get_or_init(|| set).cancel();
        });
        puppet.ask(deed).await.expect("it is handled");
        system.advance(SECOND * 10).await;
        assert_eq!(puppet.waiting(), 0);
    });
}

#[test]
fn timers_end_with_the_actor() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = puppet(&system, &journal).await;
        let (sender, timer) = tokio::sync::oneshot::channel::<Timer>();
        let deed = act(|_, context| {
            let _ = sender.send(context.every(SECOND, Note(1)));
            context.once(SECOND, Note(2));
        });
        puppet.ask(deed).await.expect("it is handled");
        puppet.stop();
        puppet.terminated().await;
        assert!(timer.await.expect("it was sent").is_done());
        system.advance(SECOND * 10).await;
        assert_eq!(journal.take(), ["a stopped"]);
        assert_eq!(system.dead_letters().total(), 0);
    });
}

#[test]
fn timers_end_when_the_actor_is_restarted() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = puppet(&system, &journal).await;
        let deed = act(|_, context| {
            context.every(SECOND, Note(1));
            context.once(SECOND, Note(2));
        });
        puppet.ask(deed).await.expect("it is handled");
        puppet.tell(Boom).expect("the mailbox has room");
        system.advance(SECOND * 10).await;
        assert_eq!(journal.take(), ["a restarted"]);
        assert_eq!(system.dead_letters().count(Reason::Failed), 1);
    });
}

#[test]
fn a_timer_does_not_keep_its_actor_alive_in_memory() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = puppet(&system, &journal).await;
        let deed = act(|_, context| drop(context.once(SECOND * 1_000, Note(1))));
        puppet.ask(deed).await.expect("it is handled");
        puppet.stop();
        puppet.terminated().await;
        let weak = puppet.downgrade();
        drop(puppet);
        system.settle().await;
        assert!(weak.upgrade().is_none());
    });
}

/// A message that panics when it is cloned for the first time.
struct Fragile(Arc<AtomicBool>);

impl Clone for Fragile {
    fn clone(&self) -> Self {
        assert!(self.0.swap(true, Ordering::Relaxed), "it cannot be cloned");
        Self(Arc::clone(&self.0))
    }
}

impl Handler<Fragile> for Puppet {
    type Reply = ();

    fn handle(&mut self, _: Fragile, _: &mut Context<Self>) {
        self.note("fragile");
    }
}

#[test]
fn a_timer_goes_on_after_a_message_that_panicked_as_it_was_cloned() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = puppet(&system, &journal).await;
        let deed = act(|_, context| {
            context.every(SECOND, Fragile(Arc::default()));
        });
        puppet.ask(deed).await.expect("it is handled");
        system.advance(SECOND).await;
        assert!(journal.take().is_empty());
        system.advance(SECOND).await;
        assert_eq!(journal.take(), ["a fragile"]);
    });
}
