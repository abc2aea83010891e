//! ractor 0.16: handlers are async, mailboxes have no bound, a panic ends the actor.

use std::sync::Arc;

use crate::{
    ASKS, Case, Countdown, FAN_IN, Finish, Game, HOPS, Options, Outcome, PUBLICATIONS, RING, Rally,
    SENDER_MESSAGES, SENDERS, SUBSCRIBERS, TELLS, on_tokio,
};
use ractor::{Actor, ActorProcessingErr, ActorRef, OutputPort, RpcReplyPort, call};

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
        Case::Bus => bus(options).await,
    })
}

async fn spawn<A: Actor<Arguments = S>, S: Send>(actor: A, state: S) -> ActorRef<A::Msg> {
    let (actor, _) = Actor::spawn(None, actor, state).await.expect("it starts");
    actor
}

/// Most actors are all state; it is what they are started with.
macro_rules! actor {
    ($name:ident, $state:ty, $message:ty, |$myself:ident, $value:ident, $own:ident| $body:expr) => {
        struct $name;

        impl Actor for $name {
            type Msg = $message;
            type State = $state;
            type Arguments = $state;

            async fn pre_start(
                &self,
                _: ActorRef<Self::Msg>,
                state: $state,
            ) -> Result<$state, ActorProcessingErr> {
                Ok(state)
            }

            async fn handle(
                &self,
                $myself: ActorRef<Self::Msg>,
                $value: $message,
                $own: &mut $state,
            ) -> Result<(), ActorProcessingErr> {
                $body
                Ok(())
            }
        }
    };
}

struct Sum {
    sum: u64,
    countdown: Countdown,
}

actor!(Counter, Sum, u64, |_myself, number, own| {
    own.sum += number;
    own.countdown.count();
});

async fn counter(finish: &Arc<Finish>, batch: u64) -> ActorRef<u64> {
    let countdown = Countdown::new(finish, batch);
    spawn(Counter, Sum { sum: 0, countdown }).await
}

async fn tell(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let counter = counter(&finish, TELLS).await;
    let batch = async || {
        send_all(&counter, TELLS);
        finish.wait().await;
    };
    options.batches(TELLS, batch).await
}

enum ToRing {
    Link(ActorRef<ToRing>),
    Token(u64),
}

struct Neighbour {
    next: Option<ActorRef<ToRing>>,
    finish: Arc<Finish>,
}

actor!(Ring, Neighbour, ToRing, |_myself, message, own| {
    match (message, &own.next) {
        (ToRing::Link(neighbour), _) => own.next = Some(neighbour),
        (ToRing::Token(0), _) | (_, None) => own.finish.arrive(),
        (ToRing::Token(left), Some(next)) => next.send_message(ToRing::Token(left - 1))?,
    }
});

async fn hop(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let mut members = Vec::new();
    for _ in 0..RING {
        let finish = Arc::clone(&finish);
        members.push(spawn(Ring, Neighbour { next: None, finish }).await);
    }
    for (index, member) in members.iter().enumerate() {
        let next = members[(index + 1) % RING].clone();
        member.send_message(ToRing::Link(next)).expect(LIVES);
    }
    let batch = async || {
        let token = ToRing::Token(HOPS);
        members[0].send_message(token).expect(LIVES);
        finish.wait().await;
    };
    options.batches(HOPS, batch).await
}

fn send_all(counter: &ActorRef<u64>, count: u64) {
    for number in 0..count {
        counter.send_message(number).expect(LIVES);
    }
}

async fn fan_in(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let counter = counter(&finish, FAN_IN).await;
    let batch = async || {
        for _ in 0..SENDERS {
            let counter = counter.clone();
            tokio::spawn(async move { send_all(&counter, SENDER_MESSAGES) });
        }
        finish.wait().await;
    };
    options.batches(FAN_IN, batch).await
}

actor!(Sender, ActorRef<u64>, u64, |_myself, count, own| {
    send_all(own, count);
});

async fn fan_in_actors(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let counter = counter(&finish, FAN_IN).await;
    let mut senders = Vec::new();
    for _ in 0..SENDERS {
        senders.push(spawn(Sender, counter.clone()).await);
    }
    let batch = async || {
        for sender in &senders {
            sender.send_message(SENDER_MESSAGES).expect(LIVES);
        }
        finish.wait().await;
    };
    options.batches(FAN_IN, batch).await
}

struct Question(u64, RpcReplyPort<u64>);

actor!(Responder, u64, Question, |_myself, question, own| {
    *own += 1;
    question.1.send(question.0 + 1)?;
});

async fn ask_all(responder: &ActorRef<Question>, count: u64) {
    for number in 0..count {
        let reply = call!(responder, |reply| Question(number, reply)).expect(LIVES);
        assert_eq!(reply, number + 1);
    }
}

async fn ask(options: &Options) -> anyhow::Result<Outcome> {
    let responder = spawn(Responder, 0).await;
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

struct Asking {
    responder: ActorRef<Question>,
    finish: Arc<Finish>,
}

actor!(Asker, Asking, u64, |_myself, count, own| {
    ask_all(&own.responder, count).await;
    own.finish.arrive();
});

async fn ask_inline(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let asking = Asking {
        responder: spawn(Responder, 0).await,
        finish: Arc::clone(&finish),
    };
    let asker = spawn(Asker, asking).await;
    let batch = async || {
        asker.send_message(ASKS).expect(LIVES);
        finish.wait().await;
    };
    options.batches(ASKS, batch).await
}

enum ToPlayer {
    Partner(ActorRef<ToPlayer>),
    Ball,
}

struct Player {
    partner: Option<ActorRef<ToPlayer>>,
    rally: Option<Rally>,
}

actor!(Team, Player, ToPlayer, |_myself, message, own| {
    match (message, &own.partner) {
        (ToPlayer::Partner(partner), _) => own.partner = Some(partner),
        (ToPlayer::Ball, Some(partner)) => {
            if own.rally.as_mut().is_none_or(Rally::again) {
                partner.send_message(ToPlayer::Ball)?;
            }
        }
        (ToPlayer::Ball, None) => {}
    }
});

async fn start_game(game: Arc<Game>) {
    for rally in Game::rallies(&game) {
        let player = |opposite, rally| Player {
            partner: opposite,
            rally,
        };
        let partner = spawn(Team, player(None, None)).await;
        let server = spawn(Team, player(Some(partner.clone()), Some(rally))).await;
        let link = ToPlayer::Partner(server.clone());
        partner.send_message(link).expect(LIVES);
        server.send_message(ToPlayer::Ball).expect(LIVES);
    }
}

async fn crowd(options: &Options) -> anyhow::Result<Outcome> {
    let settle = async |last: &ActorRef<Question>| ask_all(last, 1).await;
    options
        .crowd(async || spawn(Responder, 0).await, settle)
        .await
}

async fn bus(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(SUBSCRIBERS);
    let topic = OutputPort::default();
    for _ in 0..SUBSCRIBERS {
        topic.subscribe(counter(&finish, PUBLICATIONS).await, Some);
    }
    let batch = async || {
        for number in 0..PUBLICATIONS {
            topic.send(number);
        }
        finish.wait().await;
    };
    let deliveries = PUBLICATIONS * SUBSCRIBERS as u64;
    options.batches(deliveries, batch).await
}
