//! Restarts that children keep waiting, and actors without a state.

use std::future::pending;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use greenroom_actor::testing::TestSystem;
use greenroom_actor::{
    Actor, ActorRef, BoxError, Context, Directive, Handler, Mailbox, Reason, Supervision,
};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::puppet::{ActLong, Boom, BoomLater, Hold, Journal, Note, Puppet, act, act_long};
use crate::supervision::{restarts, supervised_by};

const SECOND: Duration = Duration::from_secs(1);
/// Far more than a test has to wait, in its own time.
const LONG: Duration = Duration::from_mins(10);

/// A parent `p` with a mailbox of one, and a child `c` that reports to it: the parent panics in a
/// second, its mailbox is full, and the child waits for room.
async fn stuck(system: &TestSystem, journal: &Journal) -> (ActorRef<Puppet>, ActorRef<Puppet>) {
    let parent = system
        .build(Puppet::make("p", journal))
        .name("p")
        .mailbox(Mailbox::bounded(1))
        .spawn()
        .expect("the default dispatcher is there");
    let child = have_child(&parent, "c", journal).await;
    parent
        .tell(BoomLater(SECOND))
        .expect("the mailbox is empty");
    system.settle().await;
    parent.tell(Note(1)).expect("the mailbox has room");
    child.tell(report(&parent)).expect("the mailbox has room");
    system.settle().await;
    journal.take();
    (parent, child)
}

async fn have_child(
    parent: &ActorRef<Puppet>,
    name: &'static str,
    journal: &Journal,
) -> ActorRef<Puppet> {
    let (sender, child) = oneshot::channel();
    let of = journal.clone();
    let spawn = act(move |_, context| {
        let _ = sender.send(context.spawn(Puppet::make(name, &of)));
    });
    parent.ask(spawn).await.expect("it is handled");
    child.await.expect("it was sent")
}

/// Has an actor send, and note whether that was let in.
fn report(to: &ActorRef<Puppet>) -> ActLong {
    let to = to.clone();
    act_long(move |me, _| {
        async move {
            let is_sent = to.send(Note(2)).await.is_ok();
            me.note(format!("sent: {is_sent}"));
        }
        .boxed()
    })
}

/// The log of a test.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        let written = self.0.lock().expect("no panic within");
        String::from_utf8_lossy(&written).into_owned()
    }
}

impl io::Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic within").extend(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_child_that_waits_for_room_at_its_parent_keeps_it_from_its_restart_for_the_grace() {
    let log = Log::default();
    let written = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || written.clone())
        .finish();
    let _logged = tracing::subscriber::set_default(subscriber);
    supervised_by(restarts()).run(|system| async move {
        let journal = Journal::default();
        let (parent, child) = stuck(&system, &journal).await;
        system.advance(SECOND).await;
        let failed = Instant::now();
        let asked = parent.ask(Note(3)).timeout(LONG).await;
        assert_eq!(asked.expect("it comes back"), 3);
        let grace = failed.elapsed();
        let expected = Supervision::RESTART_GRACE;
        assert!(
            (expected..expected + SECOND).contains(&grace),
            "it came back after {grace:?}"
        );
        assert!(!child.is_alive());
        assert_eq!(journal.take(), ["p restarted", "p 1", "p 3"]);
        assert_eq!(system.dead_letters().count(Reason::Aborted), 1);
    });
    let text = log.text();
    let line = text
        .lines()
        .find(|line| line.contains("killed the children"));
    let line = line.unwrap_or_else(|| panic!("it is logged: {text}"));
    assert!(line.contains("WARN greenroom::actor"), "{line}");
    assert!(line.ends_with("path=\"/p\" killed=1"), "{line}");
}

#[test]
fn the_grace_of_a_restart_does_not_end_that_of_the_next() {
    supervised_by(restarts()).run(|system| async move {
        let journal = Journal::default();
        let parent = system.spawn(Puppet::make("p", &journal));
        have_child(&parent, "c", &journal).await;
        parent.tell(Boom).expect("the mailbox has room");
        system.advance(SECOND * 3).await;
        let late = have_child(&parent, "d", &journal).await;
        late.tell(Hold(SECOND * 4)).expect("the mailbox has room");
        system.settle().await;
        journal.take();
        // The first grace would have ended in two seconds, this one ends in five.
        parent.tell(Boom).expect("the mailbox has room");
        late.terminated().await;
        system.settle().await;
        assert_eq!(journal.take(), ["d held", "d stopped", "p restarted"]);
    });
}

#[test]
fn a_stop_frees_children_that_keep_their_parent_from_its_restart() {
    supervised_by(restarts()).run(|system| async move {
        let journal = Journal::default();
        let (parent, _) = stuck(&system, &journal).await;
        system.advance(SECOND).await;
        let stopped = Instant::now();
        parent.stop();
        let ended = timeout(LONG, parent.terminated()).await;
        ended.expect("it is not kept for ever");
        assert_eq!(stopped.elapsed(), Duration::ZERO);
        assert_eq!(
            journal.take(),
            [
                "c sent: false",
                "c stopped",
                "p restarted",
                "p 1",
                "p stopped"
            ]
        );
        assert_eq!(system.dead_letters().count(Reason::Aborted), 0);
    });
}

fn resumes() -> Supervision {
    Supervision::one_for_one()
        .always(Directive::Resume)
        .intensity(3, LONG)
}

/// Makes an actor whose state cannot be made, for as long as a test looks. Counts the attempts.
fn impossible(attempts: &Arc<AtomicU32>) -> impl Fn() -> Puppet + Send + 'static + use<> {
    let attempts = Arc::clone(attempts);
    move || {
        // In the end it can, or a test of an actor that never rests would not end either.
        let attempt = attempts.fetch_add(1, Ordering::Relaxed);
        assert!(attempt >= 1_000, "no state");
        Puppet {
            name: "impossible",
            journal: Journal::default(),
        }
    }
}

async fn assert_gives_up(actor: &ActorRef<Puppet>, attempts: &AtomicU32) {
    let begun = Instant::now();
    let ended = timeout(LONG, actor.terminated()).await;
    let attempts = attempts.load(Ordering::Relaxed);
    ended.unwrap_or_else(|_| panic!("it is given up; {attempts} attempts"));
    assert_eq!(attempts, 4);
    // 100, 200 and 400 ms, and up to 20 % more.
    let rested = begun.elapsed().as_millis();
    assert!((700..=845).contains(&rested), "{rested} ms");
}

#[test]
fn resume_gives_an_actor_up_whose_state_cannot_be_made() {
    supervised_by(resumes()).run(|system| async move {
        let attempts = Arc::default();
        let actor = system.spawn(impossible(&attempts));
        assert_gives_up(&actor, &attempts).await;
    });
}

#[test]
fn resume_gives_an_actor_up_that_has_a_child_whose_state_cannot_be_made() {
    supervised_by(resumes()).run(|system| async move {
        let journal = Journal::default();
        let parent = system
            .build(Puppet::make("p", &journal))
            .supervision(Supervision::one_for_one().always(Directive::Escalate))
            .spawn()
            .expect("the default dispatcher is there");
        let attempts = Arc::default();
        let make = impossible(&attempts);
        let spawn = act(move |_, context| drop(context.spawn(make)));
        parent.tell(spawn).expect("the mailbox has room");
        assert_gives_up(&parent, &attempts).await;
        // It kept its state, as long as it was resumed.
        assert_eq!(journal.take(), ["p started"]);
    });
}

/// Fails in `started` so many times, and knows whether that has succeeded.
struct Beginner {
    at: &'static str,
    failures: Arc<AtomicU32>,
    is_started: bool,
}

impl Actor for Beginner {
    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), BoxError> {
        let order = Ordering::Relaxed;
        let left = self
            .failures
            .fetch_update(order, order, |left| left.checked_sub(1));
        if left.is_ok() {
            match self.at {
                "an error" => return Err("not yet".into()),
                "a late error" => {
                    tokio::time::sleep(SECOND).await;
                    return Err("not yet".into());
                }
                "a panic" => panic!("not yet"),
                _ => {
                    context.fail("not yet");
                    pending::<()>().await;
                }
            }
        }
        self.is_started = true;
        Ok(())
    }
}

impl Handler<Note> for Beginner {
    type Reply = bool;

    fn handle(&mut self, _: Note, _: &mut Context<Self>) -> bool {
        self.is_started
    }
}

#[test]
fn resume_lets_no_message_reach_an_actor_before_started_has_succeeded() {
    for at in ["an error", "a late error", "a panic", "a report of its own"] {
        supervised_by(resumes()).run(|system| async move {
            let failures = Arc::new(AtomicU32::new(2));
            let beginner = system.spawn(move || Beginner {
                at,
                failures: Arc::clone(&failures),
                is_started: false,
            });
            let begun = Instant::now();
            let asked = beginner.ask(Note(1)).timeout(LONG).await;
            let is_started = asked.unwrap_or_else(|error| panic!("{at}: {error}"));
            assert!(is_started, "{at}");
            // After rests of 100 and 200 ms.
            assert!(begun.elapsed().as_millis() >= 300, "{at}");
        });
    }
}
