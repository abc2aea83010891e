//! Messages made by attributes that were imported under other names.

use actors::{Actor, ActorSystem, messages};
use greenroom_renamed::{Echo, EchoMessages};
use nodes::{RemoteActor, RemoteMessage};

struct Counter(u64);

impl Actor for Counter {}

#[messages]
impl Counter {
    #[message]
    fn add(&mut self, amount: u64) -> u64 {
        self.0 += amount;
        self.0
    }
}

#[tokio::test]
async fn messages_are_made_through_greenroom() -> Result<(), Box<dyn std::error::Error>> {
    let echo = ActorSystem::new()?.spawn(|| Echo);
    assert_eq!(echo.now("a".to_owned()).ask().await?, "a");
    assert_eq!(echo.soon("b".to_owned()).ask().await?, "b");
    assert_eq!(echo.later("c".to_owned()).ask().await?, "c");
    Ok(())
}

#[tokio::test]
async fn messages_are_made_with_greenroom_actor() -> Result<(), Box<dyn std::error::Error>> {
    let counter = ActorSystem::new()?.spawn(|| Counter(1));
    assert_eq!(counter.add(2).ask().await?, 3);
    Ok(())
}

struct Mailer(Vec<String>);

impl Actor for Mailer {}

// This package does not depend on serde.
#[messages(remote = "mailer.v1")]
impl Mailer {
    #[message]
    fn post(&mut self, to: String, #[serde(default)] copies: Vec<String>) -> usize {
        self.0.push(to);
        self.0.extend(copies);
        self.0.len()
    }

    #[message]
    fn forget(&mut self) {
        self.0.clear();
    }
}

#[test]
fn remote_messages_are_made_with_greenroom_cluster() {
    assert_eq!(<Mailer as RemoteActor>::NAME, "mailer.v1");
    assert_eq!(<Mailer as RemoteMessage<Post>>::NAME, "post");
    assert_eq!(<Mailer as RemoteMessage<Forget>>::NAME, "forget");
}
