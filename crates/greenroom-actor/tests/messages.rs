//! Messages of every kind.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use greenroom_actor::*;

struct Counter(u64);
impl Actor for Counter {}

struct Add(u64);
impl Handler<Add> for Counter {
    type Reply = u64;
    fn handle(&mut self, Add(amount): Add, _: &mut Context<Self>) -> u64 {
        self.0 += amount;
        self.0
    }
}

struct Slow(Duration);
impl AsyncHandler<Slow> for Counter {
    type Reply = u64;
    async fn handle(&mut self, Slow(time): Slow, _: &mut Context<Self>) -> u64 {
        tokio::time::sleep(time).await;
        self.0 += 1;
        self.0
    }
}

struct Boom;
impl Handler<Boom> for Counter {
    type Reply = ();
    fn handle(&mut self, _: Boom, _: &mut Context<Self>) {
        panic!("boom");
    }
}

#[tokio::test(start_paused = true)]
async fn tells_and_asks() {
    let system = ActorSystem::new().unwrap();
    let counter = system.spawn(|| Counter(0));
    for _ in 0..1000 {
        counter.tell(Add(1)).unwrap();
    }
    assert_eq!(counter.ask(Add(2)).await.unwrap(), 1002);
    assert_eq!(
        counter.ask(Slow(Duration::from_secs(2))).await.unwrap(),
        1003
    );
    let error = counter
        .ask(Slow(Duration::from_secs(20)))
        .await
        .unwrap_err();
    assert!(error.is_timeout(), "{error}");
    counter
        .ask(Boom)
        .timeout(Duration::from_secs(100))
        .await
        .unwrap_err();
    assert_eq!(counter.ask(Add(2)).await.unwrap(), 2);
    let report = system.shutdown(Duration::from_secs(1)).await;
    assert!(report.is_clean());
}
