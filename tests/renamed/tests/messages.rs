//! Messages made by attributes that were imported under other names.

use actors::{Actor, ActorSystem, messages};
use greenroom_renamed::{Echo, EchoMessages};

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
