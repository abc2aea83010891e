//! The programs that send messages.

use std::time::Instant;

use anyhow::ensure;
use greenroom_actor::{
    Actor, ActorRef, ActorSystem, BoxError, Context, Handler, Mailbox, messages,
};
use serde_json::{Value, json};

const MAILBOX: u32 = 1_024;

#[derive(Default)]
struct Mailer {
    sent: u64,
}

impl Actor for Mailer {
    fn mailbox() -> Mailbox {
        Mailbox::bounded(MAILBOX)
    }
}

#[messages]
impl Mailer {
    /// A letter of text.
    #[message]
    fn default_mail(&mut self, _email: &'static str, _content: &'static str) {
        self.sent += 1;
    }

    /// A letter with a picture.
    #[message]
    fn image_mail(&mut self, _email: &'static str, _image: &'static str) {
        self.sent += 1;
    }

    /// Returns how many letters were sent.
    #[message]
    fn sent(&mut self) -> u64 {
        self.sent
    }
}

/// Measures letters, for which nobody waits but where the mailbox is full, and questions.
pub(crate) async fn mailer(letters: u32, questions: u32) -> anyhow::Result<Value> {
    let system = ActorSystem::new()?;
    let mailer = system.spawn(Mailer::default);
    send(&mailer, letters).await?;
    let begun = Instant::now();
    send(&mailer, letters).await?;
    let message = nanos_each(begun, letters);
    let begun = Instant::now();
    for _ in 0..questions {
        mailer.sent().ask().await?;
    }
    let question = nanos_each(begun, questions);
    let sent = mailer.sent().ask().await?;
    ensure!(sent == u64::from(letters / 2 * 4), "{sent} letters");
    Ok(json!({ "message_ns": message, "question_ns": question }))
}

async fn send(mailer: &ActorRef<Mailer>, letters: u32) -> anyhow::Result<()> {
    for _ in 0..letters / 2 {
        mailer
            .default_mail("john@doe.com", "Hello John")
            .send()
            .await?;
        mailer.image_mail("john@doe.com", "cat.png").send().await?;
    }
    mailer.sent().ask().await?; // comes after the letters
    Ok(())
}

/// Rings when it is told that the door has opened.
#[derive(Default)]
struct Bell {
    rings: u64,
}

impl Actor for Bell {
    fn mailbox() -> Mailbox {
        Mailbox::bounded(MAILBOX)
    }

    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), BoxError> {
        let me = context.myself().recipient();
        context.system().events().subscribe::<DoorOpen>(me);
        Ok(())
    }
}

#[derive(Clone)]
struct DoorOpen;

impl Handler<DoorOpen> for Bell {
    type Reply = ();

    fn handle(&mut self, _event: DoorOpen, _context: &mut Context<Self>) {
        self.rings += 1;
    }
}

#[messages]
impl Bell {
    /// Returns how often it rang.
    #[message]
    fn rings(&mut self) -> u64 {
        self.rings
    }
}

/// Measures events, half a mailbox of them at a time: publishers never wait for subscribers.
pub(crate) async fn events(events: u32) -> anyhow::Result<Value> {
    let system = ActorSystem::new()?;
    let bell = system.spawn(Bell::default);
    bell.rings().ask().await?; // has started
    let begun = Instant::now();
    let batch = MAILBOX / 2;
    let batches = events / batch;
    for _ in 0..batches {
        for _ in 0..batch {
            system.events().publish(DoorOpen);
        }
        bell.rings().ask().await?;
    }
    let message = nanos_each(begun, batches * batch);
    let rings = bell.rings().ask().await?;
    ensure!(rings == u64::from(batches * batch), "{rings} rings");
    Ok(json!({ "message_ns": message }))
}

fn nanos_each(begun: Instant, number: u32) -> f64 {
    begun.elapsed().as_secs_f64() * 1e9 / f64::from(number)
}
