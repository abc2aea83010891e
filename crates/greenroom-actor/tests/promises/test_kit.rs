//! The test kit itself.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use greenroom_actor::testing::{self, Fault, Faults, PROBE_MAX, TestKit, TestSystem};
use greenroom_actor::{Ending, Reason};
use tokio::time::Instant;

use crate::puppet::{Hang, Hold, Journal, Note, Puppet, act};

/// Returns the message of the panic.
fn text_of(scenario: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(scenario)).expect_err("it fails");
    *panic.downcast::<String>().expect("it is formatted")
}

/// Records the course that three actors and three senders take.
async fn course(system: TestSystem, journal: Journal) {
    let puppets = ["a", "b", "c"].map(|name| system.spawn(Puppet::make(name, &journal)));
    for (number, sender) in (0..3).zip(0..3) {
        let puppets = puppets.clone();
        tokio::spawn(async move {
            for puppet in &puppets {
                let _sent = puppet.send(Note(number)).await;
                let _held = puppet.ask(Hold(Duration::from_millis(sender))).await;
            }
        });
    }
    system.advance(Duration::from_secs(1)).await;
}

fn journal_of(seed: u64) -> Vec<String> {
    let journal = Journal::default();
    let kit = TestKit::new().seed(seed);
    let kit = kit.faults(Faults::new().by_chance(0.1, Fault::Panic));
    kit.run(|system| course(system, journal.clone()));
    journal.take()
}

#[test]
fn a_seed_takes_the_same_course_each_time_and_others_take_others() {
    let courses: Vec<_> = (0..50).map(journal_of).collect();
    for (seed, course) in (0..).zip(&courses) {
        assert_eq!(&journal_of(seed), course, "seed {seed}");
    }
    let mut different = courses.clone();
    different.sort();
    different.dedup();
    assert!(different.len() > 40, "{} of 50", different.len());
}

#[test]
fn a_scenario_that_fails_names_its_seed() {
    let text = text_of(|| {
        testing::run_seeded(0..100, |system| async move {
            assert_ne!(system.seed(), 17, "this one");
        });
    });
    assert!(
        text.starts_with("the scenario failed with seed 17: it panicked: "),
        "{text}"
    );
    assert!(text.contains("this one"), "{text}");
    assert!(text.ends_with("replay it with GREENROOM_SEED=17"), "{text}");
}

#[test]
fn to_settle_moves_no_clock_and_leaves_nothing_to_run() {
    testing::run(|system| async move {
        let begin = Instant::now();
        let journal = Journal::default();
        let puppet = system.spawn(Puppet::make("a", &journal));
        for number in 0..100 {
            puppet.tell(Note(number)).expect("the mailbox has room");
        }
        let later = act(|_, context| drop(context.once(Duration::from_millis(1), Note(0))));
        puppet.tell(later).expect("the mailbox has room");
        system.settle().await;
        assert_eq!(journal.take().len(), 101);
        system.settle().await;
        assert_eq!(begin.elapsed(), Duration::ZERO);
        assert!(journal.take().is_empty());
    });
}

#[test]
fn to_advance_stops_at_every_timer_in_between() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = system.spawn(Puppet::make("a", &journal));
        let begin = Instant::now();
        let second = Duration::from_secs(1);
        let first = act(move |_, context| {
            let then = act(move |me, context| {
                me.note(begin.elapsed().as_secs());
                let last = act(move |me, _| me.note(begin.elapsed().as_secs()));
                context.once(second, last);
            });
            context.once(second, then);
        });
        puppet.tell(first).expect("the mailbox has room");
        system.advance(second * 5).await;
        assert_eq!(journal.take(), ["a started", "a 1", "a 2"]);
        assert_eq!(begin.elapsed(), second * 5);
    });
}

#[test]
fn a_probe_that_gets_nothing_says_where_and_what_it_expected() {
    let text = text_of(|| {
        testing::run(|system| async move {
            system.probe::<Note>().expect_message().await;
        });
    });
    assert!(text.contains("test_kit.rs:"), "{text}");
    assert!(
        text.contains("expected a promises::puppet::Note within 3s, and got none"),
        "{text}"
    );
}

#[test]
fn a_probe_fails_when_a_message_comes_that_should_not() {
    let text = text_of(|| {
        testing::run(|system| async move {
            let mut probe = system.probe::<Note>();
            probe
                .recipient()
                .tell(Note(1))
                .expect("the mailbox has room");
            probe.expect_no_message(Duration::from_secs(1)).await;
        });
    });
    assert!(text.contains("expected none within 1s"), "{text}");
}

#[test]
fn a_probe_fails_when_another_message_comes() {
    let text = text_of(|| {
        testing::run(|system| async move {
            let mut probe = system.probe::<Note>();
            for number in [1, 2] {
                probe
                    .recipient()
                    .tell(Note(number))
                    .expect("the mailbox has room");
            }
            assert_eq!(
                probe.expect_message_where(|note| note.0 == 1).await,
                Note(1)
            );
            probe.expect_message_where(|note| note.0 == 1).await;
        });
    });
    assert!(text.contains("Note that was not expected"), "{text}");
}

#[test]
fn a_probe_says_how_an_actor_ended_or_that_it_did_not() {
    testing::run(|system| async move {
        let probe = system.probe::<Note>();
        let puppet = system.spawn(Puppet::make("a", &Journal::default()));
        puppet.stop();
        let terminated = probe.expect_terminated(&puppet).await;
        assert_eq!(terminated.id, puppet.id());
        assert!(matches!(terminated.ending, Ending::Stopped));
        let again = probe.expect_terminated(&puppet).await;
        assert!(matches!(again.ending, Ending::Stopped));
    });
    let text = text_of(|| {
        testing::run(|system| async move {
            let puppet = system.spawn(Puppet::make("a", &Journal::default()));
            puppet.tell(Hang).expect("the mailbox has room");
            let probe = system.probe::<Note>().timeout(Duration::from_secs(1));
            probe.expect_terminated(&puppet).await;
        });
    });
    assert!(text.contains("did not end within 1s"), "{text}");
}

#[test]
fn a_probe_holds_a_bounded_number_of_messages_and_fails_at_one_more() {
    testing::run(|system| async move {
        let mut probe = system.probe::<usize>();
        for number in 0..=PROBE_MAX {
            probe.recipient().send(number).await.expect("it lives");
            system.settle().await;
        }
        assert_eq!(system.dead_letters().count(Reason::Failed), 1);
        for number in 0..PROBE_MAX {
            assert_eq!(probe.expect_message().await, number);
        }
    });
}

#[test]
fn faults_strike_the_chosen_message_of_the_chosen_actor() {
    let faults = Faults::new()
        .panic_at::<Puppet, Note>(2)
        .kill_at::<Puppet, Note>(4);
    TestKit::new().faults(faults).run(|system| async move {
        let journal = Journal::default();
        let puppet = system.spawn(Puppet::make("a", &journal));
        let mut probe = system.probe::<Note>();
        probe
            .recipient()
            .tell(Note(0))
            .expect("the mailbox has room");
        probe.expect_message().await;
        for number in 1..=5 {
            puppet.tell(Note(number)).expect("the mailbox has room");
        }
        assert!(matches!(
            probe.expect_terminated(&puppet).await.ending,
            Ending::Killed
        ));
        assert_eq!(
            journal.take(),
            ["a started", "a 1", "a restarted", "a 3", "a 4"]
        );
        assert_eq!(system.dead_letters().count(Reason::Failed), 1);
        assert_eq!(system.dead_letters().count(Reason::Ended), 1);
    });
}

#[test]
fn faults_strike_at_a_step_whichever_actor_it_is() {
    let faults = Faults::new().at_step(2, Fault::Panic);
    TestKit::new().faults(faults).run(|system| async move {
        let puppets = ["a", "b"].map(|name| system.spawn(Puppet::make(name, &Journal::default())));
        for puppet in &puppets {
            puppet.tell(Note(1)).expect("the mailbox has room");
        }
        system.settle().await;
        assert_eq!(system.dead_letters().count(Reason::Failed), 1);
    });
}

#[test]
fn faults_by_chance_strike_some() {
    let faults = Faults::new().panic_by_chance::<Puppet, Note>(0.5);
    TestKit::new().faults(faults).run(|system| async move {
        let puppet = system.spawn(Puppet::make("a", &Journal::default()));
        let mut failed = 0;
        for _ in 0..100 {
            failed += u32::from(
                puppet
                    .ask(Note(1))
                    .timeout(Duration::from_mins(1))
                    .await
                    .is_err(),
            );
            if !puppet.is_alive() {
                break;
            }
        }
        assert!((1..100).contains(&failed), "{failed}");
    });
}

#[test]
fn faults_end_with_their_test() {
    let faults = Faults::new().by_chance(1.0, Fault::Panic);
    TestKit::new().faults(faults).run(|_| async {});
    testing::run(|system| async move {
        let puppet = system.spawn(Puppet::make("a", &Journal::default()));
        puppet.ask(Note(1)).await.expect("nothing goes wrong");
    });
}
