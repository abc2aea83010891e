//! Failures and ends of actors, and of those that end with them.

use std::time::Duration;

use futures_util::FutureExt;
use greenroom_actor::testing::{self, TestKit, TestSystem};
use greenroom_actor::{
    Actor, ActorRef, ActorSystem, Backoff, BoxError, Context, Directive, Ending, Failure, Handler,
    Reason, Supervision,
};
use tokio::time::Instant;

use crate::puppet::{Boom, Hang, Hold, Journal, Note, Puppet, act, act_long};

const SECOND: Duration = Duration::from_secs(1);

/// Restarts without rest, as often as needed.
pub(crate) fn restarts() -> Supervision {
    without_rest(Supervision::one_for_one())
}

fn without_rest(supervision: Supervision) -> Supervision {
    supervision.backoff(Backoff::NONE).intensity(100, SECOND)
}

pub(crate) fn supervised_by(supervision: Supervision) -> TestKit {
    TestKit::new().system(ActorSystem::builder().supervision(supervision))
}

/// A parent `p` with children of these names.
async fn family<const N: usize>(
    system: &TestSystem,
    journal: &Journal,
    supervision: Supervision,
    names: [&'static str; N],
) -> (ActorRef<Puppet>, [ActorRef<Puppet>; N]) {
    let parent = system
        .build(Puppet::make("p", journal))
        .name("p")
        .supervision(supervision)
        .spawn()
        .expect("the default dispatcher is there");
    let (sender, children) = tokio::sync::oneshot::channel();
    let of = journal.clone();
    let spawn = act(move |_, context| {
        let _ = sender.send(names.map(|name| {
            let child = context.build(Puppet::make(name, &of)).name(name).spawn();
            child.expect("the default dispatcher is there")
        }));
    });
    parent.ask(spawn).await.expect("it is handled");
    let children = children.await.expect("they were sent");
    system.settle().await;
    journal.take();
    (parent, children)
}

#[test]
fn a_restart_makes_the_state_anew_and_keeps_the_mailbox() {
    supervised_by(restarts()).run(|system| async move {
        let journal = Journal::default();
        let puppet = system.spawn(Puppet::make("a", &journal));
        puppet.tell(Note(1)).expect("the mailbox has room");
        puppet.tell(Boom).expect("the mailbox has room");
        puppet.tell(Note(2)).expect("the mailbox has room");
        puppet.tell(Note(3)).expect("the mailbox has room");
        system.settle().await;
        assert_eq!(
            journal.take(),
            ["a started", "a 1", "a restarted", "a 2", "a 3"]
        );
        assert_eq!(system.dead_letters().count(Reason::Failed), 1);
        assert_eq!(system.dead_letters().total(), 1);
    });
}

#[test]
fn a_restart_unstashes() {
    supervised_by(restarts()).run(|system| async move {
        let journal = Journal::default();
        let puppet = system.spawn(Puppet::make("a", &journal));
        let stash = act(|_, context| context.stash(Note(1)).expect("the stash has room"));
        puppet.tell(stash).expect("the mailbox has room");
        puppet.tell(Boom).expect("the mailbox has room");
        puppet.tell(Note(2)).expect("the mailbox has room");
        system.settle().await;
        assert_eq!(journal.take(), ["a started", "a restarted", "a 1", "a 2"]);
    });
}

#[test]
fn a_restart_ends_the_children_first() {
    supervised_by(restarts()).run(|system| async move {
        let journal = Journal::default();
        let (parent, [child]) = family(&system, &journal, restarts(), ["c"]).await;
        child.tell(Note(1)).expect("the mailbox has room");
        parent.tell(Boom).expect("the mailbox has room");
        system.settle().await;
        assert_eq!(journal.take(), ["c 1", "c stopped", "p restarted"]);
        assert!(!child.is_alive());
    });
}

#[test]
fn resume_keeps_the_state() {
    let resume = Supervision::one_for_one().always(Directive::Resume);
    supervised_by(resume).run(|system| async move {
        let journal = Journal::default();
        let puppet = system.spawn(Puppet::make("a", &journal));
        puppet.tell(Boom).expect("the mailbox has room");
        puppet.tell(Note(1)).expect("the mailbox has room");
        system.settle().await;
        assert_eq!(journal.take(), ["a started", "a 1"]);
        assert_eq!(system.dead_letters().count(Reason::Failed), 1);
    });
}

#[test]
fn stop_ends_the_actor_and_its_mailbox_becomes_dead_letters() {
    let stop = Supervision::one_for_one().always(Directive::Stop);
    supervised_by(stop).run(|system| async move {
        let journal = Journal::default();
        let puppet = system.spawn(Puppet::make("a", &journal));
        let probe = system.probe::<()>();
        puppet.tell(Boom).expect("the mailbox has room");
        puppet.tell(Note(1)).expect("the mailbox has room");
        let terminated = probe.expect_terminated(&puppet).await;
        let Ending::Failed(failure) = terminated.ending else {
            panic!("{terminated:?}");
        };
        assert_eq!(failure.cause.panic(), Some("boom"));
        assert_eq!(journal.take(), ["a started"]);
        assert_eq!(system.dead_letters().count(Reason::Ended), 1);
    });
}

#[test]
fn escalate_fails_the_parent() {
    supervised_by(restarts()).run(|system| async move {
        let journal = Journal::default();
        let escalate = Supervision::one_for_one().always(Directive::Escalate);
        let (_, [child, _]) = family(&system, &journal, escalate, ["c", "d"]).await;
        child.tell(Boom).expect("the mailbox has room");
        system.settle().await;
        assert_eq!(journal.take(), ["d stopped", "p restarted"]);
        assert!(!child.is_alive());
    });
}

#[test]
fn a_parent_that_is_resumed_after_an_escalation_has_its_child_go_on() {
    let resume = Supervision::one_for_one().always(Directive::Resume);
    supervised_by(resume).run(|system| async move {
        let journal = Journal::default();
        let escalate = Supervision::one_for_one().always(Directive::Escalate);
        let (parent, [child]) = family(&system, &journal, escalate, ["c"]).await;
        child.tell(Boom).expect("the mailbox has room");
        child.tell(Note(1)).expect("the mailbox has room");
        parent.tell(Note(2)).expect("the mailbox has room");
        system.settle().await;
        let mut entries = journal.take();
        entries.sort();
        assert_eq!(entries, ["c 1", "p 2"]);
    });
}

#[test]
fn a_parent_that_stops_ends_although_a_child_escalates_meanwhile() {
    testing::run_seeded(0..50, |system| async move {
        let journal = Journal::default();
        let escalate = Supervision::one_for_one().always(Directive::Escalate);
        let (parent, children) = family(&system, &journal, escalate, ["c", "d"]).await;
        for child in &children {
            child.tell(Hold(SECOND)).expect("the mailbox has room");
            child.tell(Boom).expect("the mailbox has room");
        }
        system.settle().await;
        parent.stop();
        system.probe::<()>().expect_terminated(&parent).await;
    });
}

#[test]
fn a_parent_that_restarts_does_so_although_a_child_escalates_meanwhile() {
    supervised_by(restarts()).run_seeded(0..50, |system| async move {
        let journal = Journal::default();
        let escalate = Supervision::one_for_one().always(Directive::Escalate);
        let (parent, [child]) = family(&system, &journal, escalate, ["c"]).await;
        child.tell(Hold(SECOND)).expect("the mailbox has room");
        child.tell(Boom).expect("the mailbox has room");
        system.settle().await;
        parent.tell(Boom).expect("the mailbox has room");
        system.advance(SECOND * 2).await;
        assert_eq!(parent.ask(Note(1)).await.expect("it was restarted"), 1);
    });
}

#[test]
fn both_children_end_or_go_on_when_both_escalate() {
    for directive in [Directive::Resume, Directive::Restart, Directive::Stop] {
        let above = restarts().always(directive);
        supervised_by(above).run_seeded(0..20, |system| async move {
            let journal = Journal::default();
            let escalate = Supervision::one_for_one().always(Directive::Escalate);
            let (_, children) = family(&system, &journal, escalate, ["c", "d"]).await;
            for child in &children {
                child.tell(Boom).expect("the mailbox has room");
            }
            system.settle().await;
            for child in children {
                let reply = child.ask(Note(1)).await;
                assert!(
                    !reply.is_err_and(|error| error.is_timeout()),
                    "{directive:?}"
                );
            }
        });
    }
}

#[test]
fn one_for_one_restarts_the_one_that_failed() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let (_, [_, child, _]) = family(&system, &journal, restarts(), ["b", "c", "d"]).await;
        child.tell(Boom).expect("the mailbox has room");
        system.settle().await;
        assert_eq!(journal.take(), ["c restarted"]);
    });
}

#[test]
fn one_for_all_restarts_all_and_keeps_their_mailboxes() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let all = without_rest(Supervision::one_for_all());
        let (_, [b, c, d]) = family(&system, &journal, all, ["b", "c", "d"]).await;
        b.tell(Hang).expect("the mailbox has room");
        system.settle().await;
        b.tell(Note(1)).expect("the mailbox has room");
        c.tell(Boom).expect("the mailbox has room");
        d.tell(Note(2)).expect("the mailbox has room");
        system.settle().await;
        let mut entries = journal.take();
        entries.sort();
        let expected = [
            "b 1",
            "b hangs",
            "b restarted",
            "c restarted",
            "d 2",
            "d restarted",
        ];
        assert_eq!(entries, expected);
        assert_eq!(system.dead_letters().count(Reason::Aborted), 1);
    });
}

#[test]
fn rest_for_one_restarts_the_one_that_failed_and_those_spawned_after_it() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let rest = without_rest(Supervision::rest_for_one());
        let (_, [_, child, _]) = family(&system, &journal, rest, ["b", "c", "d"]).await;
        child.tell(Boom).expect("the mailbox has room");
        system.settle().await;
        let mut entries = journal.take();
        entries.sort();
        assert_eq!(entries, ["c restarted", "d restarted"]);
    });
}

#[test]
fn a_function_decides_by_the_failure() {
    let decide = restarts().decide(|failure: &Failure| match failure.cause.panic() {
        Some("boom") => Directive::Resume,
        _ => Directive::Stop,
    });
    supervised_by(decide).run(|system| async move {
        let journal = Journal::default();
        let puppet = system.spawn(Puppet::make("a", &journal));
        puppet.tell(Boom).expect("the mailbox has room");
        assert_eq!(puppet.ask(Note(1)).await.expect("it was resumed"), 1);
        puppet
            .tell(act(|_, _| panic!("bang")))
            .expect("the mailbox has room");
        puppet.terminated().await;
        assert_eq!(journal.take(), ["a started", "a 1"]);
    });
}

#[test]
fn one_failure_more_than_the_intensity_is_escalated() {
    supervised_by(restarts()).run(|system| async move {
        let journal = Journal::default();
        let thrice = restarts().intensity(3, SECOND);
        let (_, [child]) = family(&system, &journal, thrice, ["c"]).await;
        for _ in 0..4 {
            child.tell(Boom).expect("the mailbox has room");
        }
        system.settle().await;
        assert_eq!(
            journal.take(),
            ["c restarted", "c restarted", "c restarted", "p restarted"]
        );
    });
}

#[test]
fn failures_are_forgotten_after_the_time_of_the_intensity() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let once = restarts().intensity(1, SECOND);
        let (_, [child]) = family(&system, &journal, once, ["c"]).await;
        for _ in 0..5 {
            child.tell(Boom).expect("the mailbox has room");
            system.advance(SECOND + Duration::from_millis(1)).await;
            assert_eq!(journal.take(), ["c restarted"]);
        }
    });
}

#[test]
fn restarts_rest_as_the_worked_example_says() {
    for seed in 0..20 {
        TestKit::new().seed(seed).run(|system| async move {
            let journal = Journal::default();
            let puppet = system.spawn(Puppet::make("a", &journal));
            let begin = Instant::now();
            for (restart, least) in [100, 200, 400, 800, 1_600].into_iter().enumerate() {
                let failed = Instant::now();
                puppet.tell(Boom).expect("the mailbox has room");
                puppet.ask(Note(0)).await.expect("it was restarted");
                let rest = failed.elapsed().as_millis();
                let most = least + least / 5;
                assert!(
                    (least..=most + 1).contains(&rest),
                    "restart {}: {rest} ms",
                    restart + 1
                );
            }
            puppet.tell(Boom).expect("the mailbox has room");
            puppet.terminated().await;
            let whole = begin.elapsed().as_millis();
            assert!((3_100..=3_725).contains(&whole), "{whole} ms");
        });
    }
}

/// Fails in each place that it is made to fail in, a number of times.
struct Fragile {
    at: &'static str,
    times: std::sync::Arc<std::sync::atomic::AtomicU32>,
}

impl Fragile {
    fn fails(&self, at: &str) -> bool {
        let order = std::sync::atomic::Ordering::Relaxed;
        self.at == at
            && self
                .times
                .fetch_update(order, order, |left| left.checked_sub(1))
                .is_ok()
    }
}

impl Actor for Fragile {
    async fn started(&mut self, _: &mut Context<Self>) -> Result<(), BoxError> {
        assert!(!self.fails("a panic of started"), "started");
        if self.fails("an error of started") {
            return Err("started".into());
        }
        if self.fails("a late error of started") {
            tokio::time::sleep(SECOND).await;
            return Err("started".into());
        }
        Ok(())
    }
}

impl Handler<Note> for Fragile {
    type Reply = u32;
    fn handle(&mut self, Note(number): Note, context: &mut Context<Self>) -> u32 {
        if self.fails("its own report") {
            context.fail("it gives up");
        }
        number
    }
}

#[test]
fn an_actor_may_fail_wherever_it_is_and_is_restarted_without_losing_a_message() {
    for at in [
        "its factory",
        "a panic of started",
        "an error of started",
        "a late error of started",
        "its own report",
    ] {
        testing::run(|system| async move {
            let times = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(2));
            let fragile = system.spawn(move || {
                let times = std::sync::Arc::clone(&times);
                let fragile = Fragile { at, times };
                assert!(!fragile.fails("its factory"), "factory");
                fragile
            });
            for number in 0..5 {
                let asked = fragile.ask(Note(number)).await;
                assert_eq!(
                    asked.unwrap_or_else(|error| panic!("{at}: {error}")),
                    number
                );
            }
            assert_eq!(system.dead_letters().total(), 0, "{at}");
        });
    }
}

#[test]
fn a_watcher_is_told_once_how_the_actor_ended() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let (parent, [b, c]) = family(&system, &journal, restarts(), ["b", "c"]).await;
        let of = [b.clone(), c.clone()];
        let watch = act(move |_, context| of.iter().for_each(|child| context.watch(child)));
        parent.ask(watch).await.expect("it is handled");
        b.stop();
        system.settle().await;
        c.kill();
        system.settle().await;
        assert_eq!(
            journal.take(),
            [
                "b stopped",
                "p saw /p/b end: Stopped",
                "p saw /p/c end: Killed"
            ]
        );
    });
}

#[test]
fn who_watches_an_actor_that_has_ended_is_told_at_once() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let (parent, [child]) = family(&system, &journal, restarts(), ["c"]).await;
        child.kill();
        child.terminated().await;
        parent
            .ask(act(move |_, context| context.watch(&child)))
            .await
            .expect("it is handled");
        system.settle().await;
        assert_eq!(journal.take(), ["p saw /p/c end: Killed"]);
    });
}

#[test]
fn who_watches_no_longer_is_not_told() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let (parent, [child]) = family(&system, &journal, restarts(), ["c"]).await;
        let of = child.clone();
        let deed = act(move |_, context| {
            context.watch(&of);
            context.unwatch(&of);
        });
        parent.ask(deed).await.expect("it is handled");
        child.kill();
        child.terminated().await;
        system.settle().await;
        assert!(journal.take().is_empty());
    });
}

/// Has the parent watch a child that ends before the deed goes on, so that the notice waits.
async fn watch_an_end(
    parent: &ActorRef<Puppet>,
    child: ActorRef<Puppet>,
    then: impl FnOnce(&mut Context<Puppet>, ActorRef<Puppet>) + Send + 'static,
) {
    let deed = act_long(move |_, context| {
        async move {
            context.watch(&child);
            child.kill();
            child.terminated().await;
            then(context, child);
        }
        .boxed()
    });
    parent.ask(deed).await.expect("it is handled");
}

#[test]
fn who_watches_no_longer_is_not_told_of_an_end_that_was_before() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let (parent, [child]) = family(&system, &journal, restarts(), ["c"]).await;
        watch_an_end(&parent, child, |context, child| context.unwatch(&child)).await;
        system.settle().await;
        assert_eq!(journal.take(), Vec::<String>::new());
        assert_eq!(system.dead_letters().total(), 0);
    });
}

#[test]
fn who_watches_again_is_told_once_of_an_end_that_was_before() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let (parent, [child]) = family(&system, &journal, restarts(), ["c"]).await;
        let again = |context: &mut Context<Puppet>, child: ActorRef<Puppet>| {
            context.unwatch(&child);
            context.watch(&child);
        };
        watch_an_end(&parent, child, again).await;
        system.settle().await;
        assert_eq!(journal.take(), ["p saw /p/c end: Killed"]);
    });
}

#[test]
fn who_watches_many_is_told_of_one_whose_memory_is_gone() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let (parent, [c, d, e]) = family(&system, &journal, restarts(), ["c", "d", "e"]).await;
        let others = move |context: &mut Context<Puppet>, child: ActorRef<Puppet>| {
            drop(child);
            context.watch(&d);
            context.watch(&e);
        };
        watch_an_end(&parent, c, others).await;
        system.settle().await;
        assert_eq!(journal.take(), ["p saw /p/c end: Killed"]);
    });
}

#[test]
fn who_watches_twice_is_told_once() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let (parent, [child]) = family(&system, &journal, restarts(), ["c"]).await;
        let of = child.clone();
        let deed = act(move |_, context| {
            context.watch(&of);
            context.watch(&of);
        });
        parent.ask(deed).await.expect("it is handled");
        child.kill();
        child.terminated().await;
        system.settle().await;
        assert_eq!(journal.take(), ["p saw /p/c end: Killed"]);
    });
}

#[test]
fn a_stop_drains_the_mailbox_and_a_kill_does_not() {
    testing::run(|system| async move {
        let journal = Journal::default();
        for end in [ActorRef::<Puppet>::stop, ActorRef::<Puppet>::kill] {
            let puppet = system.spawn(Puppet::make("a", &journal));
            puppet.tell(Hold(SECOND)).expect("the mailbox has room");
            system.settle().await;
            puppet.tell(Note(1)).expect("the mailbox has room");
            end(&puppet);
            puppet.terminated().await;
        }
        let stopped = ["a started", "a holds", "a held", "a 1", "a stopped"];
        let killed = ["a started", "a holds"];
        assert_eq!(journal.take(), [&stopped[..], &killed[..]].concat());
        assert_eq!(system.dead_letters().count(Reason::Aborted), 1);
        assert_eq!(system.dead_letters().count(Reason::Ended), 1);
    });
}

#[test]
fn children_end_before_stopped_of_their_parent() {
    testing::run_seeded(0..20, |system| async move {
        let journal = Journal::default();
        let (parent, [b, _]) = family(&system, &journal, restarts(), ["b", "c"]).await;
        b.tell(Hold(SECOND)).expect("the mailbox has room");
        b.tell(Note(1)).expect("the mailbox has room");
        parent.stop();
        parent.terminated().await;
        let mut entries = journal.take();
        assert_eq!(entries.pop().as_deref(), Some("p stopped"));
        entries.sort();
        assert_eq!(
            entries,
            ["b 1", "b held", "b holds", "b stopped", "c stopped"]
        );
    });
}

#[test]
fn a_kill_takes_the_children_along() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let (parent, [child]) = family(&system, &journal, restarts(), ["c"]).await;
        child.tell(Hang).expect("the mailbox has room");
        system.settle().await;
        parent.kill();
        let terminated = system.probe::<()>().expect_terminated(&child).await;
        assert!(
            matches!(terminated.ending, Ending::Killed),
            "{terminated:?}"
        );
        parent.terminated().await;
        assert_eq!(journal.take(), ["c hangs"]);
    });
}

/// Spawns a child when it stops.
struct Late(Journal);
impl Actor for Late {
    async fn stopped(&mut self, context: &mut Context<Self>) {
        let child = context.spawn(Puppet::make("late", &self.0));
        self.0
            .note(format!("alive: {}", child.tell(Note(1)).is_ok()));
        child.terminated().await;
        self.0.note("ended");
    }
}

#[test]
fn a_child_of_an_actor_that_has_stopped_ends_before_it_begins() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let of = journal.clone();
        let late = system.spawn(move || Late(of.clone()));
        late.stop();
        late.terminated().await;
        let entries = journal.take();
        assert_eq!(entries.last().map(String::as_str), Some("ended"));
        assert!(!entries.contains(&"late started".to_owned()), "{entries:?}");
    });
}

#[test]
fn an_actor_stops_while_it_rests_before_a_restart() {
    testing::run(|system| async move {
        let puppet = system.spawn(Puppet::make("a", &Journal::default()));
        puppet.tell(Boom).expect("the mailbox has room");
        puppet.tell(Note(1)).expect("the mailbox has room");
        system.settle().await;
        puppet.stop();
        assert!(puppet.terminated().now_or_never().is_none());
        system.settle().await;
        assert!(puppet.terminated().now_or_never().is_some());
        assert_eq!(system.dead_letters().count(Reason::Ended), 1);
    });
}
