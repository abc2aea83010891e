use std::future;
use std::time::Duration;

use greenroom_actor::{Actor, ActorRef, ActorSystem, ReplyTo, messages};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Handlers, Rejection};
use crate::codec;

const TIMEOUT: Duration = Duration::from_mins(1);

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Sums up, and keeps who waits for the next sum.
#[derive(Default)]
struct Counter {
    value: u64,
    waiting: Vec<ReplyTo<u64>>,
}

impl Actor for Counter {}

#[messages(remote = "counter.v1", cluster = crate)]
impl Counter {
    #[message]
    fn add(&mut self, amount: u64) -> Result<u64, String> {
        let sum = self.value.checked_add(amount);
        self.value = sum.ok_or_else(|| "too much".to_owned())?;
        let waiting = self.waiting.drain(..);
        waiting.for_each(|reply| reply.send(self.value));
        Ok(self.value)
    }

    #[message]
    async fn value(&self) -> u64 {
        future::ready(self.value).await
    }

    #[message]
    fn next(&mut self, reply: ReplyTo<u64>) {
        self.waiting.push(reply);
    }

    #[message]
    #[cfg(any())]
    fn left_out(&mut self, what: ThereIsNoSuchType) {}
}

fn counter() -> Result<(ActorSystem, ActorRef<Counter>), Box<dyn std::error::Error>> {
    let system = ActorSystem::new()?;
    let counter = system.spawn(Counter::default);
    Ok((system, counter))
}

async fn ask<R: DeserializeOwned>(
    counter: &ActorRef<Counter>,
    name: &str,
    message: &impl Serialize,
) -> Result<R, Box<dyn std::error::Error>> {
    let handlers = Handlers::of_actor();
    let payload = codec::encode(message)?;
    let reply = handlers.handle(counter.clone(), name, payload, Some(TIMEOUT));
    let reply = reply.await.map_err(|rejection| format!("{rejection:?}"))?;
    Ok(codec::decode(&reply)?)
}

#[test]
fn the_marked_methods_are_registered_by_their_names() {
    let handlers = Handlers::<Counter>::of_actor();
    assert_eq!(format!("{handlers:?}"), r#"{"add", "next", "value"}"#);
}

#[tokio::test]
async fn each_kind_of_method_replies_to_a_decoded_message() -> Outcome {
    let (_system, counter) = counter()?;
    let sum: Result<u64, String> = ask(&counter, "add", &Add { amount: 2 }).await?;
    assert_eq!(sum, Ok(2));
    let failed: Result<u64, String> = ask(&counter, "add", &Add { amount: u64::MAX }).await?;
    assert_eq!(failed, Err("too much".to_owned()));
    assert_eq!(ask::<u64>(&counter, "value", &Value).await?, 2);
    let next = ask::<u64>(&counter, "next", &Next);
    let add = ask::<Result<u64, String>>(&counter, "add", &Add { amount: 3 });
    let (next, sum) = tokio::join!(next, add);
    assert_eq!((next?, sum?), (5, Ok(5)));
    Ok(())
}

#[tokio::test]
async fn a_message_that_is_told_is_handled_without_a_reply() -> Outcome {
    let (_system, counter) = counter()?;
    let payload = codec::encode(&Add { amount: 4 })?;
    let handlers = Handlers::of_actor();
    let told = handlers.handle(counter.clone(), "add", payload, None).await;
    assert_eq!(told, Ok(bytes::Bytes::new()));
    assert_eq!(counter.value().ask().await?, 4);
    Ok(())
}

#[tokio::test]
async fn what_is_unknown_or_does_not_fit_is_rejected() -> Outcome {
    let (_system, counter) = counter()?;
    let handlers = Handlers::of_actor();
    let payload = codec::encode(&Value)?;
    let unknown = handlers.handle(counter.clone(), "left_out", payload.clone(), None);
    let known = ["add", "next", "value"].map(str::to_owned).into();
    assert_eq!(unknown.await, Err(Rejection::NoSuchMessage { known }));
    let without_amount = handlers.handle(counter.clone(), "add", payload, None);
    let error = "missing field `amount`".to_owned();
    assert_eq!(without_amount.await, Err(Rejection::NotDecoded { error }));
    Ok(())
}
