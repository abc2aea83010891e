//! No library: a task behind a bounded channel, which is what an actor would be written by hand.

use std::sync::Arc;

use crate::{
    ASKS, Case, Countdown, FAN_IN, Finish, Game, HOPS, MAILBOX_MESSAGES, Options, Outcome,
    PUBLICATIONS, RING, Rally, SENDER_MESSAGES, SENDERS, SUBSCRIBERS, TELLS, on_tokio,
};
use tokio::sync::broadcast;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::oneshot;

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

/// Starts the task of an actor. Returns its mailbox.
fn spawn<M: Send + 'static, F: Future<Output = ()> + Send + 'static>(
    run: impl FnOnce(Receiver<M>) -> F,
) -> Sender<M> {
    let (mailbox, messages) = mpsc::channel(MAILBOX_MESSAGES);
    tokio::spawn(run(messages));
    mailbox
}

async fn counter(mut messages: Receiver<u64>, mut countdown: Countdown) {
    let mut sum = 0_u64;
    while let Some(number) = messages.recv().await {
        sum = std::hint::black_box(sum.wrapping_add(number));
        countdown.count();
    }
}

async fn tell(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let countdown = Countdown::new(&finish, TELLS);
    let counter = spawn(|messages| counter(messages, countdown));
    let batch = async || {
        for number in 0..TELLS {
            counter.try_send(number).expect("a batch fits");
        }
        finish.wait().await;
    };
    options.batches(TELLS, batch).await
}

enum ToRing {
    Link(Sender<ToRing>),
    Token(u64),
}

async fn ring(mut messages: Receiver<ToRing>, finish: Arc<Finish>) {
    let mut next = None;
    while let Some(message) = messages.recv().await {
        match (message, &next) {
            (ToRing::Link(neighbour), _) => next = Some(neighbour),
            (ToRing::Token(0), _) | (_, None) => finish.arrive(),
            (ToRing::Token(left), Some(next)) => {
                next.send(ToRing::Token(left - 1)).await.expect(LIVES);
            }
        }
    }
}

async fn hop(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let member = || {
        let finish = Arc::clone(&finish);
        spawn(|messages| ring(messages, finish))
    };
    let members: Vec<_> = (0..RING).map(|_| member()).collect();
    for (index, member) in members.iter().enumerate() {
        let next = members[(index + 1) % RING].clone();
        member.send(ToRing::Link(next)).await?;
    }
    let batch = async || {
        members[0].send(ToRing::Token(HOPS)).await.expect(LIVES);
        finish.wait().await;
    };
    options.batches(HOPS, batch).await
}

async fn send_all(counter: &Sender<u64>, count: u64) {
    for number in 0..count {
        counter.send(number).await.expect(LIVES);
    }
}

async fn fan_in(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let countdown = Countdown::new(&finish, FAN_IN);
    let counter = spawn(|messages| counter(messages, countdown));
    let batch = async || {
        for _ in 0..SENDERS {
            let counter = counter.clone();
            tokio::spawn(async move { send_all(&counter, SENDER_MESSAGES).await });
        }
        finish.wait().await;
    };
    options.batches(FAN_IN, batch).await
}

async fn sender(mut messages: Receiver<u64>, counter: Sender<u64>) {
    while let Some(count) = messages.recv().await {
        send_all(&counter, count).await;
    }
}

async fn fan_in_actors(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let countdown = Countdown::new(&finish, FAN_IN);
    let counter = spawn(|messages| counter(messages, countdown));
    let start = |_| spawn(|messages| sender(messages, counter.clone()));
    let senders: Vec<_> = (0..SENDERS).map(start).collect();
    let batch = async || {
        for sender in &senders {
            sender.send(SENDER_MESSAGES).await.expect(LIVES);
        }
        finish.wait().await;
    };
    options.batches(FAN_IN, batch).await
}

struct Question {
    number: u64,
    reply: oneshot::Sender<u64>,
}

async fn responder(mut questions: Receiver<Question>) {
    while let Some(question) = questions.recv().await {
        // Who does not wait for the reply does not get it.
        let _ = question.reply.send(question.number + 1);
    }
}

async fn ask_all(responder: &Sender<Question>, count: u64) {
    for number in 0..count {
        let (reply, received) = oneshot::channel();
        responder
            .send(Question { number, reply })
            .await
            .expect(LIVES);
        assert_eq!(received.await.expect(LIVES), number + 1);
    }
}

async fn ask(options: &Options) -> anyhow::Result<Outcome> {
    let responder = spawn(responder);
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

async fn asker(mut messages: Receiver<u64>, responder: Sender<Question>, finish: Arc<Finish>) {
    while let Some(count) = messages.recv().await {
        ask_all(&responder, count).await;
        finish.arrive();
    }
}

async fn ask_inline(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(1);
    let responder = spawn(responder);
    let asker = spawn(|messages| asker(messages, responder, Arc::clone(&finish)));
    let batch = async || {
        asker.send(ASKS).await.expect(LIVES);
        finish.wait().await;
    };
    options.batches(ASKS, batch).await
}

struct Ball;

async fn pong(mut balls: Receiver<Ball>, partner: Sender<Ball>) {
    while let Some(ball) = balls.recv().await {
        partner.send(ball).await.expect(LIVES);
    }
}

async fn ping(mut balls: Receiver<Ball>, partner: Sender<Ball>, mut rally: Rally) {
    while let Some(ball) = balls.recv().await {
        if rally.again() {
            partner.send(ball).await.expect(LIVES);
        }
    }
}

async fn start_game(game: Arc<Game>) {
    for rally in Game::rallies(&game) {
        let (mailbox, balls) = mpsc::channel(MAILBOX_MESSAGES);
        let partner = spawn(|balls| pong(balls, mailbox.clone()));
        tokio::spawn(ping(balls, partner, rally));
        mailbox.send(Ball).await.expect(LIVES);
    }
}

async fn crowd(options: &Options) -> anyhow::Result<Outcome> {
    let settle = async |last: &Sender<Question>| ask_all(last, 1).await;
    options.crowd(async || spawn(idle), settle).await
}

async fn idle(mut questions: Receiver<Question>) {
    let mut sum = 0;
    while let Some(question) = questions.recv().await {
        sum += question.number + 1;
        // Who does not wait for the reply does not get it.
        let _ = question.reply.send(sum);
    }
}

async fn subscriber(mut messages: broadcast::Receiver<u64>, mut countdown: Countdown) {
    while let Ok(number) = messages.recv().await {
        std::hint::black_box(number);
        countdown.count();
    }
}

async fn bus(options: &Options) -> anyhow::Result<Outcome> {
    let finish = Finish::of(SUBSCRIBERS);
    let (topic, _) = broadcast::channel(MAILBOX_MESSAGES);
    for _ in 0..SUBSCRIBERS {
        let countdown = Countdown::new(&finish, PUBLICATIONS);
        tokio::spawn(subscriber(topic.subscribe(), countdown));
    }
    let batch = async || {
        for number in 0..PUBLICATIONS {
            topic.send(number).expect(LIVES);
        }
        finish.wait().await;
    };
    let deliveries = PUBLICATIONS * SUBSCRIBERS as u64;
    options.batches(deliveries, batch).await
}
