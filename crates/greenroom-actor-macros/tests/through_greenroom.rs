//! `#[messages]` imported from `greenroom::actor`.

// Stands in for the crate `greenroom`, which this one may not depend on.
extern crate self as greenroom;

/// A stand-in for the module of `greenroom`.
pub mod actor {
    pub use greenroom_actor::*;
    pub use greenroom_actor_macros::messages_of_greenroom as messages;
}

use greenroom::actor::{Actor, ActorSystem, ReplyTo, messages};

struct Echo;

impl Actor for Echo {}

#[messages]
impl Echo {
    #[message]
    fn now(&mut self, text: String) -> String {
        text
    }

    #[message]
    async fn soon(&mut self, text: String) -> String {
        std::future::ready(text).await
    }

    #[message]
    fn later(&mut self, text: String, reply: ReplyTo<String>) {
        reply.send(text);
    }
}

#[tokio::test]
async fn all_kinds_of_messages_are_found() -> Result<(), Box<dyn std::error::Error>> {
    let system = ActorSystem::new()?;
    let echo = system.spawn(|| Echo);
    assert_eq!(echo.now("a".to_owned()).ask().await?, "a");
    assert_eq!(echo.soon("b".to_owned()).ask().await?, "b");
    assert_eq!(echo.later("c".to_owned()).ask().await?, "c");
    Ok(())
}
