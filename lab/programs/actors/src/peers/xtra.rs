//! xtra 0.6: handlers are async, mailboxes are bounded, there is no supervision.

use std::sync::Arc;

use crate::{
    ASKS, Case, Countdown, FAN_IN, Finish, Game, HOPS, MAILBOX_MESSAGES, Options, Outcome,
    PUBLICATIONS, RING, Rally, SENDER_MESSAGES, SENDERS, SUBSCRIBERS, TELLS, on_tokio,
};
use xtra::{Actor, Address, Context, Handler, Mailbox, spawn_tokio};

const LIVES: &str = "no actor ends before the process";

/// Measures one case.
///
/// # Errors
/// If the measurement fails.
pub(crate) fn run(options: &Options) -> anyhow::Result<Outcome> {
    on_tokio(options, async |options| match options.case {
        Case::Tell | Case::Async => fill(options).await,
        Case::Hop => hop(options).await,
        Case::FanIn | Case::FanInTwo => fan_in(options).await,
        Case::FanInActors | Case::FanInActorsTwo => fan_in_actors(options).await,
        Case::Ask => ask(options).await,
        Case::AskQueued | Case::AskInline => ask_inline(options).await,
        Case::PingPong => options.play(start_game).await,
        Case::Spawn | Case::Idle => crowd(options).await,
        Case::Bus => bus(options).await,
    })
}

fn spawn<A: Actor<Stop = ()>>(actor: A) -> Address<A> {
    spawn_tokio(actor, Mailbox::bounded(MAILBOX_MESSAGES))
}

/// Puts a message into a mailbox; nobody waits for what the handler returns.
async fn tell<A: Handler<M>, M: Send + 'static>(actor: &Address<A>, message: M) {
    drop(actor.send(message).detach().await.expect(LIVES));
}

#[derive(Actor)]
struct Counter {
    sum: u64,
    countdown: Countdown,
}

#[derive(Clone)]
struct Add(u64);

impl Handler<Add> for Counter {
    type Return = ();

    async fn handle(&mut self, message: Add, _: &mut Context<Self>) {
        self.sum += message.0;
        self.countdown.count();
    }
}

fn counter(finish: &Arc<Finish>, batch: u64) -> Address<Counter> {
    let countdown = Countdown::new(finish, batch);
    spawn(Counter { sum: 0, countdown })
}

async fn fill(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let counter = counter(&finish, TELLS);
    let batch = async || {
        for number in 0..TELLS {
            tell(&counter, Add(number)).await;
        }
        finish.wait().await;
    };
    options.batches(TELLS, batch).await
}

#[derive(Actor)]
struct Ring {
    next: Option<Address<Ring>>,
    finish: Arc<Finish>,
}

struct Link(Address<Ring>);

impl Handler<Link> for Ring {
    type Return = ();

    async fn handle(&mut self, message: Link, _: &mut Context<Self>) {
        self.next = Some(message.0);
    }
}

struct Token(u64);

impl Handler<Token> for Ring {
    type Return = ();

    async fn handle(&mut self, token: Token, _: &mut Context<Self>) {
        match &self.next {
            Some(next) if token.0 > 0 => tell(next, Token(token.0 - 1)).await,
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
        tell(member, Link(next)).await;
    }
    let batch = async || {
        tell(&members[0], Token(HOPS)).await;
        finish.wait().await;
    };
    options.batches(HOPS, batch).await
}

async fn send_all(counter: &Address<Counter>, count: u64) {
    for number in 0..count {
        tell(counter, Add(number)).await;
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
    counter: Address<Counter>,
}

struct Flood(u64);

impl Handler<Flood> for Sender {
    type Return = ();

    async fn handle(&mut self, message: Flood, _: &mut Context<Self>) {
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
            tell(sender, Flood(SENDER_MESSAGES)).await;
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

impl Handler<Question> for Responder {
    type Return = u64;

    async fn handle(&mut self, question: Question, _: &mut Context<Self>) -> u64 {
        self.replies += 1;
        question.0 + 1
    }
}

async fn ask_all(responder: &Address<Responder>, count: u64) {
    for number in 0..count {
        let reply = responder.send(Question(number)).await.expect(LIVES);
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
    responder: Address<Responder>,
    finish: Arc<Finish>,
}

struct Ask(u64);

impl Handler<Ask> for Asker {
    type Return = ();

    async fn handle(&mut self, message: Ask, _: &mut Context<Self>) {
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
        tell(&asker, Ask(ASKS)).await;
        finish.wait().await;
    };
    options.batches(ASKS, batch).await
}

#[derive(Actor)]
struct Player {
    partner: Option<Address<Player>>,
    rally: Option<Rally>,
}

struct Partner(Address<Player>);

impl Handler<Partner> for Player {
    type Return = ();

    async fn handle(&mut self, message: Partner, _: &mut Context<Self>) {
        self.partner = Some(message.0);
    }
}

struct Ball;

impl Handler<Ball> for Player {
    type Return = ();

    async fn handle(&mut self, ball: Ball, _: &mut Context<Self>) {
        let Some(partner) = &self.partner else { return };
        if self.rally.as_mut().is_none_or(Rally::again) {
            tell(partner, ball).await;
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
        tell(&partner, Partner(server.clone())).await;
        tell(&server, Ball).await;
    }
}

async fn crowd(options: &Options) -> anyhow::Result<Outcome> {
    let settle = async |last: &Address<Responder>| ask_all(last, 1).await;
    let start = async || spawn(Responder { replies: 0 });
    options.crowd(start, settle).await
}

/// One mailbox, which all subscribers share.
async fn bus(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(SUBSCRIBERS);
    let (topic, mailbox) = Mailbox::bounded(MAILBOX_MESSAGES);
    for _ in 0..SUBSCRIBERS {
        let countdown = Countdown::new(&finish, PUBLICATIONS);
        tokio::spawn(xtra::run(mailbox.clone(), Counter { sum: 0, countdown }));
    }
    let batch = async || {
        for number in 0..PUBLICATIONS {
            topic.broadcast(Add(number)).await.expect(LIVES);
        }
        finish.wait().await;
    };
    let deliveries = PUBLICATIONS * SUBSCRIBERS as u64;
    options.batches(deliveries, batch).await
}
