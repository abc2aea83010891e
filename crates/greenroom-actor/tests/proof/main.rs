//! The proof that no message is lost: trees of actors that fail, restart, stop and are killed in
//! every order that a seed can make up, with the account of every message that was ever sent.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "tests fail by a panic, and count small numbers"
)]

mod node;
mod table;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use greenroom_actor::testing::{self, TestSystem};
use greenroom_actor::{
    Actor, ActorRef, AskError, Context, DeadLetter, Handler, Mailbox, Overflow, Reason,
};

use node::{Node, Question, Quick, Reminder, Slow, World};
use table::{Deed, MessageTable};

/// Seeds of each of the four parts, which run side by side.
const SEEDS: u64 = 2_500;
const SENDERS: u32 = 3;
const MESSAGES: u32 = 20;

/// Records the dead letters of the run.
struct DeadLetters(Arc<MessageTable>);

impl Actor for DeadLetters {}

impl Handler<DeadLetter> for DeadLetters {
    type Reply = ();

    fn handle(&mut self, letter: DeadLetter, _: &mut Context<Self>) {
        let parcel = letter
            .take_content()
            .map(|Quick(parcel)| parcel)
            .or_else(|| letter.take_content().map(|Slow(parcel)| parcel))
            .or_else(|| letter.take_content().map(|Question(parcel)| parcel))
            .or_else(|| {
                let Reminder(parcel) = letter.take_content()?;
                self.0.take_back(parcel.number);
                Some(parcel)
            });
        if let Some(parcel) = parcel {
            self.0.dead_letter(parcel.number);
        }
    }
}

async fn send(world: Arc<World>, sender: u32, mut random: Rng) {
    for _ in 0..MESSAGES {
        let whom = world.anybody();
        match random.u32(..40) {
            0 => whom.stop(),
            1 => whom.kill(),
            2..=8 => tokio::time::sleep(Duration::from_millis(random.u64(..8))).await,
            9..=14 => ask_slow(&world, &whom, sender, &mut random).await,
            15..=20 => question(&world, &whom, sender, &mut random).await,
            21..=30 => tell(&world, &whom, sender, &mut random),
            _ => send_one(&world, &whom, sender, &mut random).await,
        }
    }
}

fn quick_deed(random: &mut Rng) -> Deed {
    use Deed::{GiveUp, Link, Nothing, Panic, Pipe, Remind, Stash, Stop, Tell, Unstash, Watch};
    let deeds = [
        Nothing, Nothing, Tell, Tell, Tell, Panic, Panic, GiveUp, Stop, Stash, Stash, Unstash,
        Pipe, Remind, Watch, Link,
    ];
    deeds[random.usize(..deeds.len())]
}

fn tell(world: &World, whom: &ActorRef<Node>, sender: u32, random: &mut Rng) {
    let parcel = world.table.parcel(Some(sender), false, quick_deed(random));
    let number = parcel.number;
    if whom.tell(Quick(parcel)).is_err() {
        world.table.give_back(number);
    }
}

async fn send_one(world: &World, whom: &ActorRef<Node>, sender: u32, random: &mut Rng) {
    let parcel = world.table.parcel(Some(sender), false, quick_deed(random));
    let number = parcel.number;
    if whom.send(Quick(parcel)).await.is_err() {
        world.table.give_back(number);
    }
}

async fn ask_slow(world: &World, whom: &ActorRef<Node>, sender: u32, random: &mut Rng) {
    use Deed::{Ask, Send, Unstash, Wait, WaitAndPanic};
    let deeds = [Wait, Wait, WaitAndPanic, Unstash, Send, Send, Ask, Ask];
    let deed = deeds[random.usize(..deeds.len())];
    let parcel = world.table.parcel(Some(sender), true, deed);
    let number = parcel.number;
    let ask = whom.ask(Slow(parcel));
    let asked = ask.timeout(Duration::from_millis(random.u64(1..10))).await;
    note(world, number, &asked);
}

async fn question(world: &World, whom: &ActorRef<Node>, sender: u32, random: &mut Rng) {
    use Deed::{Forward, Keep, Nothing, Panic};
    let deeds = [Nothing, Nothing, Panic, Keep, Keep, Forward];
    let deed = deeds[random.usize(..deeds.len())];
    let parcel = world.table.parcel(Some(sender), true, deed);
    let number = parcel.number;
    let ask = whom.ask(Question(parcel));
    let asked = ask.timeout(Duration::from_millis(random.u64(1..10))).await;
    note(world, number, &asked);
}

fn note(world: &World, number: u64, asked: &Result<u64, AskError>) {
    match asked {
        Ok(reply) => assert_eq!(*reply, number, "the reply to another question"),
        Err(_) => world.table.give_back(number),
    }
}

async fn run(system: TestSystem) {
    let mut random = Rng::with_seed(system.seed());
    let table = Arc::new(MessageTable::default());
    let of = Arc::clone(&table);
    let registrar = system
        .build(move || DeadLetters(Arc::clone(&of)))
        .mailbox(Mailbox::bounded(1 << 16).overflow(Overflow::Refuse))
        .spawn()
        .expect("the default dispatcher is there");
    system.dead_letters().subscribe(registrar.recipient());
    let world = Arc::new(World {
        table: Arc::clone(&table),
        random: Mutex::new(random.fork()),
        nodes: Mutex::default(),
    });
    let top = system
        .build(Node::make(&world, 0))
        .mailbox(world.mailbox())
        .supervision(world.supervision())
        .spawn()
        .expect("the default dispatcher is there");
    world.nodes.lock().expect("no panic").push(top.clone());
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| tokio::spawn(send(Arc::clone(&world), sender, random.fork())))
        .collect();
    system
        .advance(Duration::from_millis(random.u64(..60)))
        .await;
    end(&system, &world, &top, random.bool()).await;
    for sender in senders {
        let sender = tokio::time::timeout(Duration::from_mins(1), sender).await;
        sender
            .expect("a sender is never stuck")
            .expect("a sender does not panic");
    }
    world.nodes.lock().expect("no panic").clear();
    drop((top, world));
    system.settle().await;
    check(&system, &table);
}

/// Ends the tree; from then on none of its actors handles a message.
async fn end(system: &TestSystem, world: &World, top: &ActorRef<Node>, is_killed: bool) {
    if is_killed {
        top.kill();
    } else {
        top.stop();
    }
    let ended = tokio::time::timeout(Duration::from_mins(1), top.terminated()).await;
    ended.unwrap_or_else(|_| panic!("the tree does not end; killed: {is_killed}"));
    for node in world.nodes.lock().expect("no panic").iter() {
        assert!(!node.is_alive(), "{} outlives the tree", node.path());
        world.table.terminate(node.id());
    }
    system.settle().await;
}

fn check(system: &TestSystem, table: &MessageTable) {
    let entries = table.entries();
    for (number, entry) in entries.iter().enumerate() {
        entry
            .check()
            .unwrap_or_else(|problem| panic!("message {number} is {problem}"));
    }
    let failed = entries.iter().filter(|entry| entry.has_failed()).count() as u64;
    let letters = system.dead_letters();
    assert_eq!(
        letters.count(Reason::Failed) + letters.count(Reason::Aborted),
        failed,
        "letters of handlers that failed"
    );
}

/// Runs a part of the seeds, which must have come across every fate of a message.
fn prove(seeds: std::ops::Range<u64>) {
    let reached = Arc::new(Mutex::new(BTreeMap::<_, u64>::new()));
    testing::run_seeded(seeds, |system| {
        let reached = Arc::clone(&reached);
        async move {
            let letters = system.clone();
            run(system).await;
            let mut reached = reached.lock().expect("no panic");
            for reason in Reason::ALL {
                *reached.entry(reason).or_default() += letters.dead_letters().count(reason);
            }
        }
    });
    if std::env::var_os(testing::SEED_VARIABLE).is_none() {
        let reached = reached.lock().expect("no panic");
        let is_reached = |reason| reached.get(&reason).is_some_and(|count| *count > 10);
        assert!(Reason::ALL.into_iter().all(is_reached), "{reached:?}");
    }
}

#[test]
fn no_message_is_lost_first_quarter() {
    prove(0..SEEDS);
}

#[test]
fn no_message_is_lost_second_quarter() {
    prove(SEEDS..2 * SEEDS);
}

#[test]
fn no_message_is_lost_third_quarter() {
    prove(2 * SEEDS..3 * SEEDS);
}

#[test]
fn no_message_is_lost_last_quarter() {
    prove(3 * SEEDS..4 * SEEDS);
}
