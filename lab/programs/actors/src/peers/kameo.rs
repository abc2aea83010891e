//! kameo 0.22: handlers are async, mailboxes are bounded, a panic ends the actor or what its
//! supervisor says.

use std::sync::Arc;

use crate::{
    ASKS, Case, Countdown, FAN_IN, Finish, Game, HOPS, MAILBOX_MESSAGES, Options, Outcome, RING,
    Rally, SENDER_MESSAGES, SENDERS, TELLS, on_tokio,
};
use kameo::Actor;
use kameo::actor::{ActorRef, Spawn as _};
use kameo::mailbox;
use kameo::message::{Context, Message};

const LIVES: &str = "no actor ends before the process";

/// Measures one case.
///
/// # Errors
/// If the measurement fails.
pub(crate) fn run(options: &Options) -> anyhow::Result<Outcome> {
    on_tokio(options, async |options| match options.case {
        Case::Tell | Case::Async => tell(options).await,
        Case::Hop => hop(options).await,
        Case::FanIn | Case::FanInTwo => fan_in(options).await,
        Case::FanInActors | Case::FanInActorsTwo => fan_in_actors(options).await,
        Case::Ask => ask(options).await,
        Case::AskQueued | Case::AskInline => ask_inline(options).await,
        Case::PingPong => options.play(start_game).await,
        Case::Spawn | Case::Idle => crowd(options).await,
        Case::Bus => Ok(Outcome::missing(
            "topics are in another crate, kameo_actors",
        )),
    })
}

fn spawn<A: Actor<Args = A>>(actor: A) -> ActorRef<A> {
    A::spawn_with_mailbox(actor, mailbox::bounded(MAILBOX_MESSAGES))
}

#[derive(Actor)]
struct Counter {
    sum: u64,
    countdown: Countdown,
}

struct Add(u64);

impl Message<Add> for Counter {
    type Reply = ();

    async fn handle(&mut self, message: Add, _: &mut Context<Self, ()>) {
        self.sum += message.0;
        self.countdown.count();
    }
}

fn counter(finish: &Arc<Finish>, batch: u64) -> ActorRef<Counter> {
    let countdown = Countdown::new(finish, batch);
    spawn(Counter { sum: 0, countdown })
}

async fn tell(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let counter = counter(&finish, TELLS);
    let batch = async || {
        for number in 0..TELLS {
            counter.tell(Add(number)).try_send().expect("a batch fits");
        }
        finish.wait().await;
    };
    options.batches(TELLS, batch).await
}

#[derive(Actor)]
struct Ring {
    next: Option<ActorRef<Ring>>,
    finish: Arc<Finish>,
}

struct Link(ActorRef<Ring>);

impl Message<Link> for Ring {
    type Reply = ();

    async fn handle(&mut self, message: Link, _: &mut Context<Self, ()>) {
        self.next = Some(message.0);
    }
}

struct Token(u64);

impl Message<Token> for Ring {
    type Reply = ();

    async fn handle(&mut self, token: Token, _: &mut Context<Self, ()>) {
        match &self.next {
            Some(next) if token.0 > 0 => next.tell(Token(token.0 - 1)).await.expect(LIVES),
            _ => self.finish.arrive(),
        }
    }
}

async fn hop(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let member = || {
        let finish = Arc::clone(&finish);
        spawn(Ring { next: None, finish })
    };
    let members: Vec<_> = (0..RING).map(|_| member()).collect();
    for (index, member) in members.iter().enumerate() {
        let next = members[(index + 1) % RING].clone();
        member.tell(Link(next)).await.expect(LIVES);
    }
    let batch = async || {
        members[0].tell(Token(HOPS)).await.expect(LIVES);
        finish.wait().await;
    };
    options.batches(HOPS, batch).await
}

async fn send_all(counter: &ActorRef<Counter>, count: u64) {
    for number in 0..count {
        counter.tell(Add(number)).await.expect(LIVES);
    }
}

async fn fan_in(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let counter = counter(&finish, FAN_IN);
    let batch = async || {
        for _ in 0..SENDERS {
            let counter = counter.clone();
            tokio::spawn(async move { send_all(&counter, SENDER_MESSAGES).await });
        }
        finish.wait().await;
    };
    options.batches(FAN_IN, batch).await
}

#[derive(Actor)]
struct Sender {
    counter: ActorRef<Counter>,
}

struct Flood(u64);

impl Message<Flood> for Sender {
    type Reply = ();

    async fn handle(&mut self, message: Flood, _: &mut Context<Self, ()>) {
        send_all(&self.counter, message.0).await;
    }
}

async fn fan_in_actors(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let counter = counter(&finish, FAN_IN);
    let start = |_| {
        let counter = counter.clone();
        spawn(Sender { counter })
    };
    let senders: Vec<_> = (0..SENDERS).map(start).collect();
    let batch = async || {
        for sender in &senders {
            sender.tell(Flood(SENDER_MESSAGES)).await.expect(LIVES);
        }
        finish.wait().await;
    };
    options.batches(FAN_IN, batch).await
}

#[derive(Actor)]
struct Responder {
    replies: u64,
}

struct Question(u64);

impl Message<Question> for Responder {
    type Reply = u64;

    async fn handle(&mut self, question: Question, _: &mut Context<Self, u64>) -> u64 {
        self.replies += 1;
        question.0 + 1
    }
}

async fn ask_all(responder: &ActorRef<Responder>, count: u64) {
    for number in 0..count {
        let reply = responder.ask(Question(number)).await.expect(LIVES);
        assert_eq!(reply, number + 1);
    }
}

async fn ask(options: &Options) -> anyhow::Result<Outcome> {
    let responder = spawn(Responder { replies: 0 });
    let finish = Finish::of(1);
    let batch = async || {
        let (responder, asked) = (responder.clone(), Arc::clone(&finish));
        tokio::spawn(async move {
            ask_all(&responder, ASKS).await;
            asked.arrive();
        });
        finish.wait().await;
    };
    options.batches(ASKS, batch).await
}

#[derive(Actor)]
struct Asker {
    responder: ActorRef<Responder>,
    finish: Arc<Finish>,
}

struct Ask(u64);

impl Message<Ask> for Asker {
    type Reply = ();

    async fn handle(&mut self, message: Ask, _: &mut Context<Self, ()>) {
        ask_all(&self.responder, message.0).await;
        self.finish.arrive();
    }
}

async fn ask_inline(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let asker = spawn(Asker {
        responder: spawn(Responder { replies: 0 }),
        finish: Arc::clone(&finish),
    });
    let batch = async || {
        asker.tell(Ask(ASKS)).await.expect(LIVES);
        finish.wait().await;
    };
    options.batches(ASKS, batch).await
}

#[derive(Actor)]
struct Player {
    partner: Option<ActorRef<Player>>,
    rally: Option<Rally>,
}

struct Partner(ActorRef<Player>);

impl Message<Partner> for Player {
    type Reply = ();

    async fn handle(&mut self, message: Partner, _: &mut Context<Self, ()>) {
        self.partner = Some(message.0);
    }
}

struct Ball;

impl Message<Ball> for Player {
    type Reply = ();

    async fn handle(&mut self, ball: Ball, _: &mut Context<Self, ()>) {
        let Some(partner) = &self.partner else { return };
        if self.rally.as_mut().is_none_or(Rally::again) {
            partner.tell(ball).await.expect(LIVES);
        }
    }
}

async fn start_game(game: Arc<Game>) {
    for rally in Game::rallies(&game) {
        let player = |opposite, rally| {
            spawn(Player {
                partner: opposite,
                rally,
            })
        };
        let partner = player(None, None);
        let server = player(Some(partner.clone()), Some(rally));
        partner.tell(Partner(server.clone())).await.expect(LIVES);
        server.tell(Ball).await.expect(LIVES);
    }
}

async fn crowd(options: &Options) -> anyhow::Result<Outcome> {
    let settle = async |last: &ActorRef<Responder>| ask_all(last, 1).await;
    let start = async || spawn(Responder { replies: 0 });
    options.crowd(start, settle).await
}
