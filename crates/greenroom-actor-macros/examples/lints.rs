//! An actor in a crate with strict lints: the generated code must pass them too. (No test: the
//! compiler does not ask tests for documentation.)

#![deny(
    clippy::all,
    clippy::pedantic,
    missing_docs,
    private_interfaces,
    unnameable_types,
    unreachable_pub,
    unused,
    unused_qualifications
)]

use std::time::Duration;

use greenroom_actor::{Actor, ActorSystem, Context, ReplyTo, messages};

/// Counts in steps.
#[derive(Default)]
pub struct Counter {
    value: u64,
    step: u64,
    notes: Vec<String>,
}

impl Actor for Counter {}

#[messages]
impl Counter {
    /// Adds to the value.
    #[message]
    pub fn add(&mut self, amount: u64) -> u64 {
        self.value += amount + self.step;
        self.value
    }

    /// Adds what a task counts.
    ///
    /// # Errors
    ///
    /// If the task panicked.
    #[message]
    pub async fn add_counted(
        &mut self,
        /// Counts.
        task: tokio::task::JoinHandle<u64>,
    ) -> Result<u64, tokio::task::JoinError> {
        let amount = task.await?;
        Ok(self.add(amount))
    }

    /// Replies with the number of notes.
    #[message]
    pub fn note(&mut self, note: String, reply: ReplyTo<usize>) {
        self.notes.push(note);
        reply.send(self.notes.len());
    }

    #[message]
    pub(crate) fn set_step(&mut self, step: u64) {
        self.step = step;
    }

    #[message]
    fn finish(&mut self, context: &mut Context<Self>) {
        context.stop();
    }

    // Without the mark, clippy would complain of this method.
    #[message]
    fn is_named(&self, name: String) -> bool {
        name == "counter"
    }

    // Never sent, as the messages of a library may be.
    #[message]
    fn reset(&mut self) {
        self.value = 0;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let counter = ActorSystem::new()?.spawn(Counter::default);
    counter.set_step(1).tell()?;
    counter.add(1).send().await?;
    let sum = counter.add_counted(tokio::spawn(async { 2 }));
    assert_eq!(sum.ask().timeout(Duration::from_secs(1)).await??, 5);
    assert_eq!(counter.note("counted".to_owned()).ask().await?, 1);
    assert!(counter.is_named("counter".to_owned()).ask().await?);
    counter.finish().tell()?;
    Ok(())
}
