//! Greenroom: supervision and bounds are on, each question has its deadline.

use std::sync::Arc;

use crate::{
    ASKS, Case, Countdown, FAN_IN, Finish, Game, HOPS, Options, Outcome, PUBLICATIONS, RING, Rally,
    SENDER_MESSAGES, SENDERS, SUBSCRIBERS, TELLS, on_tokio,
};
use greenroom_actor::{
    Actor, ActorRef, ActorSystem, AsyncHandler, Context, Handler, ReplyHandler, ReplyTo,
};
use greenroom_bus::{Bus, Event, Topic};

const LIVES: &str = "no actor ends before the process";
const FITS: &str = "a batch fits";

/// Measures one case.
///
/// # Errors
/// If the measurement fails.
pub(crate) fn run(options: &Options) -> anyhow::Result<Outcome> {
    on_tokio(options, measure)
}

async fn measure(options: &Options) -> anyhow::Result<Outcome> {
    let system = &ActorSystem::new()?;
    match options.case {
        Case::Tell => tell(options, system).await,
        Case::Async => tell_async(options, system).await,
        Case::Hop => hop(options, system).await,
        Case::FanIn | Case::FanInTwo => fan_in(options, system).await,
        Case::FanInActors | Case::FanInActorsTwo => fan_in_actors(options, system).await,
        Case::Ask => ask(options, system).await,
        Case::AskQueued => ask_queued(options, system).await,
        Case::AskInline => ask_inline(options, system).await,
        Case::PingPong => {
            let start = async |game| start_game(system, &game);
            options.play(start).await
        }
        Case::Spawn | Case::Idle => crowd(options, system).await,
        Case::Bus => bus(options, system).await,
    }
}

struct Counter {
    sum: u64,
    countdown: Countdown,
}

impl Actor for Counter {}

struct Add(u64);

impl Handler<Add> for Counter {
    type Reply = ();

    fn handle(&mut self, message: Add, _: &mut Context<Self>) {
        self.sum += message.0;
        self.countdown.count();
    }
}

struct AddLater(u64);

impl AsyncHandler<AddLater> for Counter {
    type Reply = ();

    async fn handle(&mut self, message: AddLater, _: &mut Context<Self>) {
        self.sum += message.0;
        self.countdown.count();
    }
}

fn counter(system: &ActorSystem, finish: &Arc<Finish>, batch: u64) -> ActorRef<Counter> {
    let finish = Arc::clone(finish);
    system.spawn(move || Counter {
        sum: 0,
        countdown: Countdown::new(&finish, batch),
    })
}

async fn tell(options: &Options, system: &ActorSystem) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let counter = counter(system, &finish, TELLS);
    let batch = async || {
        for number in 0..TELLS {
            counter.tell(Add(number)).expect(FITS);
        }
        finish.wait().await;
    };
    options.batches(TELLS, batch).await
}

async fn tell_async(options: &Options, system: &ActorSystem) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let counter = counter(system, &finish, TELLS);
    let batch = async || {
        for number in 0..TELLS {
            counter.tell(AddLater(number)).expect(FITS);
        }
        finish.wait().await;
    };
    options.batches(TELLS, batch).await
}

struct Ring {
    next: Option<ActorRef<Ring>>,
    finish: Arc<Finish>,
}

impl Actor for Ring {}

struct Link(ActorRef<Ring>);

impl Handler<Link> for Ring {
    type Reply = ();

    fn handle(&mut self, message: Link, _: &mut Context<Self>) {
        self.next = Some(message.0);
    }
}

struct Token(u64);

impl Handler<Token> for Ring {
    type Reply = ();

    fn handle(&mut self, token: Token, _: &mut Context<Self>) {
        match &self.next {
            Some(next) if token.0 > 0 => next.tell(Token(token.0 - 1)).expect(FITS),
            _ => self.finish.arrive(),
        }
    }
}

async fn hop(options: &Options, system: &ActorSystem) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let member = |_| {
        let finish = Arc::clone(&finish);
        system.spawn(move || Ring {
            next: None,
            finish: Arc::clone(&finish),
        })
    };
    let members: Vec<_> = (0..RING).map(member).collect();
    for (index, member) in members.iter().enumerate() {
        let next = members[(index + 1) % RING].clone();
        member.tell(Link(next)).expect(FITS);
    }
    let batch = async || {
        members[0].tell(Token(HOPS)).expect(FITS);
        finish.wait().await;
    };
    options.batches(HOPS, batch).await
}

async fn send_all(counter: &ActorRef<Counter>, count: u64) {
    for number in 0..count {
        counter.send(Add(number)).await.expect(LIVES);
    }
}

async fn fan_in(options: &Options, system: &ActorSystem) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let counter = counter(system, &finish, FAN_IN);
    let batch = async || {
        for _ in 0..SENDERS {
            let counter = counter.clone();
            tokio::spawn(async move { send_all(&counter, SENDER_MESSAGES).await });
        }
        finish.wait().await;
    };
    options.batches(FAN_IN, batch).await
}

struct Sender {
    counter: ActorRef<Counter>,
}

impl Actor for Sender {}

struct Flood(u64);

impl AsyncHandler<Flood> for Sender {
    type Reply = ();

    async fn handle(&mut self, message: Flood, _: &mut Context<Self>) {
        send_all(&self.counter, message.0).await;
    }
}

async fn fan_in_actors(options: &Options, system: &ActorSystem) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let counter = counter(system, &finish, FAN_IN);
    let start = |_| {
        let counter = counter.clone();
        system.spawn(move || Sender {
            counter: counter.clone(),
        })
    };
    let senders: Vec<_> = (0..SENDERS).map(start).collect();
    let batch = async || {
        for sender in &senders {
            sender.tell(Flood(SENDER_MESSAGES)).expect(FITS);
        }
        finish.wait().await;
    };
    options.batches(FAN_IN, batch).await
}

#[derive(Default)]
struct Responder {
    replies: u64,
}

impl Actor for Responder {}

struct Question(u64);

impl Handler<Question> for Responder {
    type Reply = u64;

    fn handle(&mut self, question: Question, _: &mut Context<Self>) -> u64 {
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

async fn ask(options: &Options, system: &ActorSystem) -> anyhow::Result<Outcome> {
    let responder = system.spawn(Responder::default);
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

struct Asker {
    responder: ActorRef<Responder>,
    finish: Arc<Finish>,
}

impl Actor for Asker {}

struct Ask(u64);

impl AsyncHandler<Ask> for Asker {
    type Reply = ();

    async fn handle(&mut self, message: Ask, _: &mut Context<Self>) {
        ask_all(&self.responder, message.0).await;
        self.finish.arrive();
    }
}

async fn ask_inline(options: &Options, system: &ActorSystem) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let host = asker(system, &finish);
    let batch = async || {
        host.tell(Ask(ASKS)).expect(FITS);
        finish.wait().await;
    };
    options.batches(ASKS, batch).await
}

/// A question whose handler replies by `ReplyTo`, so that it is never called on the spot.
struct Queued(u64);

impl ReplyHandler<Queued> for Responder {
    type Reply = u64;

    fn handle(&mut self, question: Queued, reply: ReplyTo<u64>, _: &mut Context<Self>) {
        self.replies += 1;
        reply.send(question.0 + 1);
    }
}

struct AskInQueue(u64);

impl AsyncHandler<AskInQueue> for Asker {
    type Reply = ();

    async fn handle(&mut self, message: AskInQueue, _: &mut Context<Self>) {
        for number in 0..message.0 {
            let reply = self.responder.ask(Queued(number)).await.expect(LIVES);
            assert_eq!(reply, number + 1);
        }
        self.finish.arrive();
    }
}

async fn ask_queued(options: &Options, system: &ActorSystem) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let host = asker(system, &finish);
    let batch = async || {
        host.tell(AskInQueue(ASKS)).expect(FITS);
        finish.wait().await;
    };
    options.batches(ASKS, batch).await
}

fn asker(system: &ActorSystem, finish: &Arc<Finish>) -> ActorRef<Asker> {
    let responder = system.spawn(Responder::default);
    let finish = Arc::clone(finish);
    system.spawn(move || Asker {
        responder: responder.clone(),
        finish: Arc::clone(&finish),
    })
}

struct Subscriber {
    countdown: Countdown,
}

impl Actor for Subscriber {}

impl Handler<Event> for Subscriber {
    type Reply = ();

    fn handle(&mut self, event: Event, _: &mut Context<Self>) {
        assert!(
            event.message().is_some(),
            "nobody is so slow as to miss something"
        );
        self.countdown.count();
    }
}

async fn bus(options: &Options, system: &ActorSystem) -> anyhow::Result<Outcome> {
    let finish = Finish::of(SUBSCRIBERS);
    let bus = Bus::in_process();
    for _ in 0..SUBSCRIBERS {
        let finish = Arc::clone(&finish);
        let subscriber = system.spawn(move || Subscriber {
            countdown: Countdown::new(&finish, PUBLICATIONS),
        });
        bus.subscribe_sink("/picture/7/likes", subscriber.recipient())?
            .detach();
    }
    let topic = Topic::new("/picture/7/likes")?;
    let batch = async || {
        for number in 0..PUBLICATIONS {
            let payload = number.to_le_bytes().to_vec();
            bus.try_publish(topic.clone(), payload).expect(LIVES);
        }
        finish.wait().await;
    };
    let deliveries = PUBLICATIONS * SUBSCRIBERS as u64;
    options.batches(deliveries, batch).await
}

struct Player {
    partner: Option<ActorRef<Player>>,
    rally: Option<Rally>,
}

impl Actor for Player {}

struct Partner(ActorRef<Player>);

impl Handler<Partner> for Player {
    type Reply = ();

    fn handle(&mut self, message: Partner, _: &mut Context<Self>) {
        self.partner = Some(message.0);
    }
}

struct Ball;

impl Handler<Ball> for Player {
    type Reply = ();

    fn handle(&mut self, ball: Ball, _: &mut Context<Self>) {
        let Some(partner) = &self.partner else { return };
        if self.rally.as_mut().is_none_or(Rally::again) {
            partner.tell(ball).expect(FITS);
        }
    }
}

fn start_game(system: &ActorSystem, game: &Arc<Game>) {
    for rally in Game::rallies(game) {
        let player = |partner: Option<ActorRef<Player>>, rally: Option<Rally>| {
            system.spawn(move || Player {
                partner: partner.clone(),
                rally: rally.clone(),
            })
        };
        let partner = player(None, None);
        let server = player(Some(partner.clone()), Some(rally));
        partner.tell(Partner(server.clone())).expect(FITS);
        server.tell(Ball).expect(FITS);
    }
}

async fn crowd(options: &Options, system: &ActorSystem) -> anyhow::Result<Outcome> {
    let settle = async |last: &ActorRef<Responder>| ask_all(last, 1).await;
    let start = async || system.spawn(Responder::default);
    options.crowd(start, settle).await
}
