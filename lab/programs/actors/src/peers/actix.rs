//! actix 0.13: actors live on the thread that they were started on, mailboxes are bounded, a panic
//! ends the actor.

use std::sync::Arc;

use crate::{
    ASKS, Case, Countdown, FAN_IN, Finish, Game, HOPS, MAILBOX_MESSAGES, Options, Outcome, RING,
    Rally, SENDER_MESSAGES, SENDERS, TELLS,
};
use actix::{
    Actor, ActorFutureExt as _, Addr, Arbiter, ArbiterHandle, AtomicResponse, Context, Handler,
    Message, ResponseFuture, System, WrapFuture as _,
};
use tokio::runtime;

const LIVES: &str = "no actor ends before the process";
const FITS: &str = "a batch fits";

/// Measures one case.
///
/// # Errors
/// If the measurement fails.
pub(crate) fn run(options: &Options) -> anyhow::Result<Outcome> {
    // One thread for each arbiter: the first is this one.
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    System::with_tokio_rt(|| runtime).block_on(measure(options))
}

async fn measure(options: &Options) -> anyhow::Result<Outcome> {
    match options.case {
        Case::Tell => tell(options).await,
        Case::Async => tell_async(options).await,
        Case::Hop => hop(options).await,
        Case::FanIn | Case::FanInTwo => fan_in(options).await,
        Case::FanInActors | Case::FanInActorsTwo => fan_in_actors(options).await,
        Case::Ask => ask(options).await,
        Case::AskQueued | Case::AskInline => ask_inline(options).await,
        Case::PingPong => ping_pong(options).await,
        Case::Spawn | Case::Idle => crowd(options).await,
        Case::Bus => Ok(Outcome::missing(
            "topics are in another crate, actix-broker",
        )),
    }
}

/// Starts an arbiter for each worker of the case.
fn arbiters(options: &Options) -> Vec<ArbiterHandle> {
    let further = (1..options.case.workers()).map(|_| Arbiter::new().handle());
    std::iter::once(Arbiter::current()).chain(further).collect()
}

/// Starts an actor on the arbiter of this number, around and around.
fn start_on<A>(arbiters: &[ArbiterHandle], number: usize, actor: A) -> Addr<A>
where
    A: Actor<Context = Context<A>> + Send,
{
    A::start_in_arbiter(&arbiters[number % arbiters.len()], |_| actor)
}

struct Counter {
    sum: u64,
    countdown: Countdown,
}

impl Actor for Counter {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        context.set_mailbox_capacity(MAILBOX_MESSAGES);
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct Add(u64);

impl Handler<Add> for Counter {
    type Result = ();

    fn handle(&mut self, message: Add, _: &mut Context<Self>) {
        self.sum += message.0;
        self.countdown.count();
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct AddLater(u64);

impl Handler<AddLater> for Counter {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, message: AddLater, _: &mut Context<Self>) -> Self::Result {
        let future = async {}.into_actor(self).map(move |(), own, _| {
            own.sum += message.0;
            own.countdown.count();
        });
        AtomicResponse::new(Box::pin(future))
    }
}

fn counter(finish: &Arc<Finish>, batch: u64) -> Addr<Counter> {
    let countdown = Countdown::new(finish, batch);
    Counter { sum: 0, countdown }.start()
}

async fn tell(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let counter = counter(&finish, TELLS);
    // It sets its mailbox' capacity when it starts.
    tokio::task::yield_now().await;
    let batch = async || {
        for number in 0..TELLS {
            counter.try_send(Add(number)).expect(FITS);
        }
        finish.wait().await;
    };
    options.batches(TELLS, batch).await
}

async fn tell_async(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let counter = counter(&finish, TELLS);
    tokio::task::yield_now().await;
    let batch = async || {
        for number in 0..TELLS {
            counter.try_send(AddLater(number)).expect(FITS);
        }
        finish.wait().await;
    };
    options.batches(TELLS, batch).await
}

struct Ring {
    next: Option<Addr<Ring>>,
    finish: Arc<Finish>,
}

impl Actor for Ring {
    type Context = Context<Self>;
}

#[derive(Message)]
#[rtype(result = "()")]
struct Link(Addr<Ring>);

impl Handler<Link> for Ring {
    type Result = ();

    fn handle(&mut self, message: Link, _: &mut Context<Self>) {
        self.next = Some(message.0);
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct Token(u64);

impl Handler<Token> for Ring {
    type Result = ();

    fn handle(&mut self, token: Token, _: &mut Context<Self>) {
        match &self.next {
            Some(next) if token.0 > 0 => next.try_send(Token(token.0 - 1)).expect(FITS),
            _ => self.finish.arrive(),
        }
    }
}

async fn hop(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let member = |_| {
        let finish = Arc::clone(&finish);
        Ring { next: None, finish }.start()
    };
    let members: Vec<_> = (0..RING).map(member).collect();
    for (index, member) in members.iter().enumerate() {
        let next = members[(index + 1) % RING].clone();
        member.send(Link(next)).await?;
    }
    let batch = async || {
        members[0].try_send(Token(HOPS)).expect(FITS);
        finish.wait().await;
    };
    options.batches(HOPS, batch).await
}

/// Sends messages, and waits while the mailbox is full. There is nothing between `try_send` and
/// `send`: then the reply is waited for, too.
async fn send_all(counter: &Addr<Counter>, count: u64) {
    for number in 0..count {
        if counter.try_send(Add(number)).is_err() {
            counter.send(Add(number)).await.expect(LIVES);
        }
    }
}

async fn fan_in(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let arbiters = arbiters(options);
    let counter = counter(&finish, FAN_IN);
    let batch = async || {
        for arbiter in arbiters.iter().cycle().take(SENDERS) {
            let counter = counter.clone();
            arbiter.spawn(async move { send_all(&counter, SENDER_MESSAGES).await });
        }
        finish.wait().await;
    };
    options.batches(FAN_IN, batch).await
}

struct Sender {
    counter: Addr<Counter>,
}

impl Actor for Sender {
    type Context = Context<Self>;
}

#[derive(Message)]
#[rtype(result = "()")]
struct Flood(u64);

impl Handler<Flood> for Sender {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, message: Flood, _: &mut Context<Self>) -> Self::Result {
        let counter = self.counter.clone();
        Box::pin(async move { send_all(&counter, message.0).await })
    }
}

async fn fan_in_actors(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let arbiters = arbiters(options);
    let counter = counter(&finish, FAN_IN);
    let start = |number| {
        let counter = counter.clone();
        start_on(&arbiters, number, Sender { counter })
    };
    let senders: Vec<_> = (0..SENDERS).map(start).collect();
    let batch = async || {
        for sender in &senders {
            sender.try_send(Flood(SENDER_MESSAGES)).expect(FITS);
        }
        finish.wait().await;
    };
    options.batches(FAN_IN, batch).await
}

struct Responder {
    replies: u64,
}

impl Actor for Responder {
    type Context = Context<Self>;
}

#[derive(Message)]
#[rtype(result = "u64")]
struct Question(u64);

impl Handler<Question> for Responder {
    type Result = u64;

    fn handle(&mut self, question: Question, _: &mut Context<Self>) -> u64 {
        self.replies += 1;
        question.0 + 1
    }
}

async fn ask_all(responder: &Addr<Responder>, count: u64) {
    for number in 0..count {
        let reply = responder.send(Question(number)).await.expect(LIVES);
        assert_eq!(reply, number + 1);
    }
}

async fn ask(options: &Options) -> anyhow::Result<Outcome> {
    let responder = Responder { replies: 0 }.start();
    let finish = Finish::of(1);
    let batch = async || {
        let (responder, asked) = (responder.clone(), Arc::clone(&finish));
        Arbiter::current().spawn(async move {
            ask_all(&responder, ASKS).await;
            asked.arrive();
        });
        finish.wait().await;
    };
    options.batches(ASKS, batch).await
}

struct Asker {
    responder: Addr<Responder>,
    finish: Arc<Finish>,
}

impl Actor for Asker {
    type Context = Context<Self>;
}

#[derive(Message)]
#[rtype(result = "()")]
struct Ask(u64);

impl Handler<Ask> for Asker {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, message: Ask, _: &mut Context<Self>) -> Self::Result {
        let responder = self.responder.clone();
        let finish = Arc::clone(&self.finish);
        Box::pin(async move {
            ask_all(&responder, message.0).await;
            finish.arrive();
        })
    }
}

async fn ask_inline(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let asker = Asker {
        responder: Responder { replies: 0 }.start(),
        finish: Arc::clone(&finish),
    };
    let asker = asker.start();
    let batch = async || {
        asker.try_send(Ask(ASKS)).expect(FITS);
        finish.wait().await;
    };
    options.batches(ASKS, batch).await
}

struct Player {
    partner: Option<Addr<Player>>,
    rally: Option<Rally>,
}

impl Actor for Player {
    type Context = Context<Self>;
}

#[derive(Message)]
#[rtype(result = "()")]
struct Partner(Addr<Player>);

impl Handler<Partner> for Player {
    type Result = ();

    fn handle(&mut self, message: Partner, _: &mut Context<Self>) {
        self.partner = Some(message.0);
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct Ball;

impl Handler<Ball> for Player {
    type Result = ();

    fn handle(&mut self, ball: Ball, _: &mut Context<Self>) {
        let Some(partner) = &self.partner else { return };
        if self.rally.as_mut().is_none_or(Rally::again) {
            partner.try_send(ball).expect(FITS);
        }
    }
}

async fn ping_pong(options: &Options) -> anyhow::Result<Outcome> {
    let arbiters = arbiters(options);
    options
        .play(async |game| start_game(&arbiters, &game).await)
        .await
}

/// The author decides where actors live: every second pair has a player on each arbiter.
async fn start_game(arbiters: &[ArbiterHandle], game: &Arc<Game>) {
    for (number, rally) in Game::rallies(game).enumerate() {
        let player = |number, opposite, rally| {
            start_on(
                arbiters,
                number,
                Player {
                    partner: opposite,
                    rally,
                },
            )
        };
        let partner = player(number, None, None);
        let server = player(number / 2, Some(partner.clone()), Some(rally));
        partner.send(Partner(server.clone())).await.expect(LIVES);
        server.try_send(Ball).expect(FITS);
    }
}

async fn crowd(options: &Options) -> anyhow::Result<Outcome> {
    let settle = async |last: &Addr<Responder>| ask_all(last, 1).await;
    let start = async || Responder { replies: 0 }.start();
    options.crowd(start, settle).await
}
