//! Telling, sending, asking, replying, forwarding, piping.

use std::time::Duration;

use futures_util::FutureExt;
use greenroom_actor::testing::{self, Probe};
use greenroom_actor::{
    Actor, ActorRef, AskError, AsyncHandler, Call, Context, PIPES_MAX, Reason, ReplyHandler,
    ReplyTo, SendError, TellError,
};
use tokio::time::Instant;

use crate::puppet::{Boom, BoomLater, Hang, Hold, Journal, Note, Puppet, Question, act, act_long};

#[test]
fn messages_of_one_sender_are_handled_in_order_whatever_the_seed() {
    testing::run_seeded(0..100, |system| async move {
        let mut probe = system.probe::<(u32, u32)>();
        let senders = (0..3).map(|sender| {
            let to = probe.recipient();
            tokio::spawn(async move {
                for number in 0..20 {
                    if number % 2 == 0 {
                        to.tell((sender, number)).expect("the mailbox has room");
                    } else {
                        to.send((sender, number)).await.expect("the probe lives");
                    }
                }
            })
        });
        for sender in senders.collect::<Vec<_>>() {
            sender.await.expect("the task does not panic");
        }
        let mut next = [0; 3];
        for _ in 0..60 {
            let (sender, number) = probe.expect_message().await;
            assert_eq!(number, next[sender as usize], "sender {sender}");
            next[sender as usize] += 1;
        }
    });
}

#[test]
fn what_an_ended_actor_is_told_comes_back() {
    testing::run(|system| async move {
        let puppet = system.spawn(Puppet::make("a", &Journal::default()));
        puppet.kill();
        puppet.terminated().await;
        assert!(!puppet.is_alive());
        let told = puppet.tell(Note(1)).expect_err("it has ended");
        assert!(matches!(told, TellError::Closed(Note(1))));
        let sent = puppet.send(Note(2)).await.expect_err("it has ended");
        assert!(matches!(sent, SendError::Closed(Note(2))));
        let asked = puppet.ask(Note(3)).await.expect_err("it has ended");
        assert_eq!(asked.to_string(), format!("{} has ended", puppet.path()));
        assert_eq!(system.dead_letters().total(), 0);
    });
}

#[test]
fn an_actor_takes_no_messages_from_its_stop_on() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = system.spawn(Puppet::make("a", &journal));
        puppet.tell(Note(1)).expect("the mailbox has room");
        puppet.stop();
        assert!(matches!(
            puppet.tell(Note(2)),
            Err(TellError::Closed(Note(2)))
        ));
        puppet.terminated().await;
        assert_eq!(journal.take(), ["a started", "a 1", "a stopped"]);
    });
}

#[test]
fn an_ask_waits_5_s_and_then_names_the_callee_and_the_message() {
    testing::run(|system| async move {
        let puppet = system
            .build(Puppet::make("a", &Journal::default()))
            .name("slow")
            .spawn()
            .expect("the default dispatcher is there");
        let begin = Instant::now();
        let error = puppet.ask(Hang).await.expect_err("it hangs");
        assert_eq!(begin.elapsed(), Duration::from_secs(5));
        assert!(error.is_timeout());
        let text = error.to_string();
        assert!(
            text.starts_with("the asker got no reply from /slow to "),
            "{text}"
        );
        assert!(text.contains("Hang within 5s"), "{text}");
    });
}

#[test]
fn an_ask_waits_as_long_as_it_says() {
    testing::run(|system| async move {
        let puppet = system.spawn(Puppet::make("a", &Journal::default()));
        let begin = Instant::now();
        let hang = puppet.ask(Hang).timeout(Duration::from_millis(7)).await;
        assert!(hang.expect_err("it hangs").is_timeout());
        assert_eq!(begin.elapsed(), Duration::from_millis(7));
    });
}

#[test]
fn the_longest_timeout_there_is_is_allowed() {
    testing::run(|system| async move {
        let puppet = system.spawn(Puppet::make("a", &Journal::default()));
        let hold = puppet.ask(Hold(Duration::from_mins(1)));
        hold.timeout(Duration::MAX).await.expect("it is handled");
        puppet
            .ask(act(|_, context| {
                context.once(Duration::MAX, Note(1)).cancel();
                context.every(Duration::MAX, Note(1)).cancel();
            }))
            .await
            .expect("it is handled");
    });
}

#[test]
fn who_asks_a_handler_that_panics_is_told_at_once() {
    testing::run(|system| async move {
        let puppet = system.spawn(Puppet::make("a", &Journal::default()));
        let begin = Instant::now();
        let error = puppet.ask(Boom).await.expect_err("it panics");
        assert!(
            matches!(
                error,
                AskError::Unhandled {
                    reason: Reason::Failed,
                    ..
                }
            ),
            "{error}"
        );
        assert_eq!(begin.elapsed(), Duration::ZERO);
        let later = BoomLater(Duration::from_secs(1));
        let error = puppet.ask(later).await.expect_err("it panics");
        assert!(
            matches!(
                error,
                AskError::Unhandled {
                    reason: Reason::Failed,
                    ..
                }
            ),
            "{error}"
        );
        // After a rest of 100 to 120 ms.
        assert!(begin.elapsed() < Duration::from_millis(1_121));
        assert_eq!(system.dead_letters().count(Reason::Failed), 2);
    });
}

#[test]
fn who_asks_a_handler_that_is_given_up_is_told_why_at_once() {
    testing::run(|system| async move {
        let puppet = system.spawn(Puppet::make("a", &Journal::default()));
        let of = puppet.clone();
        let asked = tokio::spawn(async move { of.ask(Hang).await });
        system.settle().await;
        puppet.kill();
        let begin = Instant::now();
        let error = asked.await.expect("no panic").expect_err("it is killed");
        assert!(
            matches!(
                error,
                AskError::Unhandled {
                    reason: Reason::Aborted,
                    ..
                }
            ),
            "{error}"
        );
        assert_eq!(begin.elapsed(), Duration::ZERO);
        assert_eq!(system.dead_letters().count(Reason::Aborted), 1);
    });
}

#[test]
fn who_asked_an_actor_that_ends_before_its_turn_is_told() {
    testing::run(|system| async move {
        let puppet = system.spawn(Puppet::make("a", &Journal::default()));
        puppet.tell(Hang).expect("the mailbox has room");
        let of = puppet.clone();
        let asked = tokio::spawn(async move { of.ask(Note(1)).await });
        system.settle().await;
        puppet.kill();
        let error = asked.await.expect("no panic").expect_err("it ended");
        assert!(matches!(error, AskError::Closed { .. }), "{error}");
        assert_eq!(system.dead_letters().count(Reason::Ended), 1);
    });
}

#[test]
fn an_ask_that_is_never_polled_sends_nothing() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = system.spawn(Puppet::make("a", &journal));
        drop(puppet.ask(Note(1)));
        system.settle().await;
        assert_eq!(journal.take(), ["a started"]);
    });
}

#[test]
fn a_call_is_told_sent_or_asked() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = system.spawn(Puppet::make("a", &journal));
        Call::new(&puppet, Note(1))
            .tell()
            .expect("the mailbox has room");
        Call::new(&puppet, Note(2)).send().await.expect("it lives");
        assert_eq!(
            Call::new(&puppet, Note(3))
                .ask()
                .await
                .expect("it is handled"),
            3
        );
        assert_eq!(journal.take(), ["a started", "a 1", "a 2", "a 3"]);
    });
}

/// Asks another actor while it handles a message itself.
struct Asker;
impl Actor for Asker {}

struct AskFor(ActorRef<Puppet>, u32);
impl AsyncHandler<AskFor> for Asker {
    type Reply = u32;
    async fn handle(&mut self, AskFor(whom, number): AskFor, _: &mut Context<Self>) -> u32 {
        whom.ask(Note(number)).await.expect("it is handled")
    }
}

struct AskForBoom(ActorRef<Puppet>);
impl AsyncHandler<AskForBoom> for Asker {
    type Reply = AskError;
    async fn handle(&mut self, AskForBoom(whom): AskForBoom, _: &mut Context<Self>) -> AskError {
        whom.ask(Boom).await.expect_err("it panics")
    }
}

#[test]
fn an_actor_that_asks_an_idle_one_gets_its_reply_within_the_same_turn() {
    testing::run_seeded(0..20, |system| async move {
        let journal = Journal::default();
        let puppet = system.spawn(Puppet::make("a", &journal));
        let asker = system.spawn(|| Asker);
        system.settle().await;
        asker
            .tell(AskFor(puppet.clone(), 1))
            .expect("the mailbox has room");
        asker.ask(AskFor(puppet, 2)).await.expect("it is handled");
        assert_eq!(journal.take(), ["a started", "a 1", "a 2"]);
    });
}

#[test]
fn an_actor_that_asks_overtakes_none_of_its_own_messages() {
    testing::run_seeded(0..50, |system| async move {
        let journal = Journal::default();
        let puppet = system.spawn(Puppet::make("a", &journal));
        let other = system.spawn(Puppet::make("b", &Journal::default()));
        system.settle().await;
        let deed = act_long(move |_, _| {
            async move {
                puppet.tell(Note(1)).expect("the mailbox has room");
                puppet.ask(Note(2)).await.expect("it is handled");
                puppet.tell(Note(3)).expect("the mailbox has room");
                puppet.ask(Note(4)).await.expect("it is handled");
            }
            .boxed()
        });
        other.ask(deed).await.expect("it is handled");
        assert_eq!(journal.take(), ["a started", "a 1", "a 2", "a 3", "a 4"]);
    });
}

#[test]
fn an_actor_that_fails_when_asked_by_another_is_supervised_as_always() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = system.spawn(Puppet::make("a", &journal));
        let asker = system.spawn(|| Asker);
        system.settle().await;
        let error = asker
            .ask(AskForBoom(puppet.clone()))
            .await
            .expect("it is handled");
        assert!(
            matches!(
                error,
                AskError::Unhandled {
                    reason: Reason::Failed,
                    ..
                }
            ),
            "{error}"
        );
        assert_eq!(puppet.ask(Note(1)).await.expect("it is handled"), 1);
        assert_eq!(journal.take(), ["a started", "a restarted", "a 1"]);
        assert_eq!(system.dead_letters().count(Reason::Failed), 1);
    });
}

/// Asks the other actor, and is asked by it.
struct Duelist(Option<String>);
impl Actor for Duelist {}

struct Duel(ActorRef<Duelist>);
impl AsyncHandler<Duel> for Duelist {
    type Reply = ();
    async fn handle(&mut self, Duel(other): Duel, _: &mut Context<Self>) {
        // The other is to be in its duel as well.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let asked = other.ask(Outcome).await;
        self.0 = asked.err().map(|error| error.to_string());
    }
}

struct Outcome;
impl AsyncHandler<Outcome> for Duelist {
    type Reply = Option<String>;
    async fn handle(&mut self, _: Outcome, _: &mut Context<Self>) -> Option<String> {
        self.0.clone()
    }
}

#[test]
fn two_actors_that_ask_each_other_time_out_and_the_error_names_both() {
    testing::run_seeded(0..20, |system| async move {
        let make = |name| system.build(|| Duelist(None)).name(name).spawn();
        let first = make("first").expect("the default dispatcher is there");
        let second = make("second").expect("the default dispatcher is there");
        first
            .tell(Duel(second.clone()))
            .expect("the mailbox has room");
        second
            .tell(Duel(first.clone()))
            .expect("the mailbox has room");
        system.advance(Duration::from_millis(5_001)).await;
        let mut errors = Vec::new();
        for duelist in [first, second] {
            errors.extend(duelist.ask(Outcome).await.expect("it is handled"));
        }
        // When one has given up, the other may still get its reply.
        let message = "promises::messages::Outcome within 5s";
        let of_first = format!(
            "/first got no reply from /second to {message}; /second itself waits for /first"
        );
        let of_second = format!(
            "/second got no reply from /first to {message}; /first itself waits for /second"
        );
        let is_named = errors.contains(&of_first) || errors.contains(&of_second);
        assert!(is_named, "{errors:?}");
    });
}

/// Keeps its questions, and replies when told to.
#[derive(Default)]
struct Later(Vec<ReplyTo<u32>>);
impl Actor for Later {}
struct Keep;
impl ReplyHandler<Keep> for Later {
    type Reply = u32;
    fn handle(&mut self, _: Keep, reply: ReplyTo<u32>, _: &mut Context<Self>) {
        self.0.push(reply);
    }
}
struct Release(Option<u32>);
impl greenroom_actor::Handler<Release> for Later {
    type Reply = ();
    fn handle(&mut self, Release(number): Release, _: &mut Context<Self>) {
        for reply in self.0.drain(..) {
            match number {
                Some(number) => reply.send(number),
                None => drop(reply),
            }
        }
    }
}

#[test]
fn a_reply_may_come_later() {
    testing::run(|system| async move {
        let later = system.spawn(Later::default);
        let of = later.clone();
        let asked = tokio::spawn(async move { of.ask(Keep).await });
        system.advance(Duration::from_secs(4)).await;
        later.tell(Release(Some(7))).expect("the mailbox has room");
        assert_eq!(asked.await.expect("no panic").expect("there is a reply"), 7);
    });
}

#[test]
fn who_asked_is_told_when_the_reply_is_dropped() {
    testing::run(|system| async move {
        let later = system.spawn(Later::default);
        let of = later.clone();
        let asked = tokio::spawn(async move { of.ask(Keep).await });
        system.settle().await;
        later.tell(Release(None)).expect("the mailbox has room");
        let error = asked.await.expect("no panic").expect_err("nobody replied");
        assert!(matches!(error, AskError::NoReply { .. }), "{error}");
        assert!(
            error.to_string().contains("Keep without a reply"),
            "{error}"
        );
    });
}

#[test]
fn a_reply_knows_whether_it_is_still_wanted() {
    testing::run(|system| async move {
        let mut probe = Probe::<u8, ()>::new(&system);
        probe.reference().tell(1).expect("the mailbox has room");
        assert!(!probe.expect_question().await.1.is_wanted());
        let of = probe.reference().clone();
        let asked = tokio::spawn(async move { of.ask(2).await });
        let (_, reply) = probe.expect_question().await;
        assert!(reply.is_wanted());
        asked.await.expect("no panic").expect_err("nobody replied");
        assert!(!reply.is_wanted());
    });
}

/// Has another actor reply.
struct Relay(ActorRef<Puppet>);
impl Actor for Relay {}
impl ReplyHandler<Question> for Relay {
    type Reply = u32;
    fn handle(&mut self, question: Question, reply: ReplyTo<u32>, _: &mut Context<Self>) {
        self.0.forward(question, reply);
    }
}

#[test]
fn the_reply_to_a_forwarded_question_goes_to_who_asked_first() {
    testing::run(|system| async move {
        let puppet = system.spawn(Puppet::make("a", &Journal::default()));
        let relay = system.spawn(move || Relay(puppet.clone()));
        assert_eq!(relay.ask(Question(7)).await.expect("it is handled"), 7);
    });
}

#[test]
fn who_asked_is_told_when_the_question_is_forwarded_to_an_ended_actor() {
    testing::run(|system| async move {
        let puppet = system.spawn(Puppet::make("a", &Journal::default()));
        let whom = puppet.clone();
        let relay = system.spawn(move || Relay(whom.clone()));
        puppet.kill();
        puppet.terminated().await;
        let error = relay.ask(Question(7)).await.expect_err("nobody is there");
        assert!(matches!(error, AskError::Closed { .. }), "{error}");
        assert_eq!(system.dead_letters().count(Reason::Ended), 1);
    });
}

#[test]
fn a_piped_future_becomes_a_message_while_the_actor_goes_on() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = system.spawn(Puppet::make("a", &journal));
        let pipe = act(|_, context| {
            let future = tokio::time::sleep(Duration::from_secs(1)).map(|()| 2);
            context.pipe(future, Note).expect("it is the first");
        });
        puppet.tell(pipe).expect("the mailbox has room");
        puppet.tell(Note(1)).expect("the mailbox has room");
        system.advance(Duration::from_millis(999)).await;
        assert_eq!(journal.take(), ["a started", "a 1"]);
        system.advance(Duration::from_millis(1)).await;
        assert_eq!(journal.take(), ["a 2"]);
    });
}

#[test]
fn as_many_futures_are_piped_as_allowed() {
    testing::run(|system| async move {
        let puppet = system.spawn(Puppet::make("a", &Journal::default()));
        let pipe = |me: &mut Puppet, context: &mut Context<Puppet>| {
            let sleep = || tokio::time::sleep(Duration::from_secs(1));
            for _ in 0..PIPES_MAX {
                context.pipe(sleep(), |()| Note(0)).expect("it is allowed");
            }
            context
                .pipe(sleep(), |()| Note(0))
                .expect_err("it is one too many");
            me.note("is full");
        };
        puppet.ask(act(pipe)).await.expect("it is handled");
        system.advance(Duration::from_secs(2)).await;
        // There is room again.
        puppet.ask(act(pipe)).await.expect("it is handled");
    });
}

#[test]
fn a_piped_future_ends_with_its_actor() {
    testing::run(|system| async move {
        let puppet = system.spawn(Puppet::make("a", &Journal::default()));
        let (held, mut is_dropped) = tokio::sync::oneshot::channel::<()>();
        let pipe = act(move |_, context| {
            let future = async move {
                std::future::pending::<()>().await;
                drop(held);
            };
            context.pipe(future, |()| Note(0)).expect("it is the first");
        });
        puppet.ask(pipe).await.expect("it is handled");
        assert!((&mut is_dropped).now_or_never().is_none());
        puppet.stop();
        is_dropped.await.expect_err("the future is dropped");
    });
}

#[test]
fn a_piped_message_that_waits_for_room_is_a_dead_letter_when_its_actor_is_killed() {
    testing::run(|system| async move {
        let puppet = system
            .build(Puppet::make("a", &Journal::default()))
            .mailbox(greenroom_actor::Mailbox::bounded(1))
            .spawn()
            .expect("the default dispatcher is there");
        let pipe = act(|_, context| {
            let later = tokio::time::sleep(Duration::from_secs(1));
            context.pipe(later, |()| Note(9)).expect("it is the first");
        });
        puppet.ask(pipe).await.expect("it is handled");
        puppet.tell(Hang).expect("the mailbox has room");
        system.settle().await;
        puppet.tell(Note(1)).expect("the mailbox has room");
        system.advance(Duration::from_secs(1)).await;
        puppet.kill();
        puppet.terminated().await;
        system.settle().await;
        // The handler that hangs, and both messages behind it.
        assert_eq!(system.dead_letters().count(Reason::Aborted), 1);
        assert_eq!(system.dead_letters().count(Reason::Ended), 2);
    });
}
