//! Failures that are escalated from level to level, until somebody gives up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use greenroom_actor::{Actor, ActorRef, ActorSystem, BoxError, Context, Handler};
use tokio::time::{Instant, sleep, timeout};

/// Far more than a test has to wait, in its own time.
const LONG: Duration = Duration::from_mins(10);

/// An actor of a tree that has one in each level. The lowest fails, time and again.
struct Level {
    below: u32,
    lowest: Lowest,
}

/// The lowest actor: how often it was made, and the times that it has until it fails.
#[derive(Clone)]
struct Lowest {
    made: Arc<AtomicU32>,
    lives: fn(u32) -> Duration,
}

impl Level {
    fn make(below: u32, lowest: &Lowest) -> impl Fn() -> Self + Send + 'static + use<> {
        let lowest = lowest.clone();
        move || Self {
            below,
            lowest: lowest.clone(),
        }
    }
}

impl Actor for Level {
    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), BoxError> {
        if self.below > 0 {
            context.spawn(Self::make(self.below - 1, &self.lowest));
            return Ok(());
        }
        let number = self.lowest.made.fetch_add(1, Ordering::Relaxed);
        let life = (self.lowest.lives)(number);
        if life.is_zero() {
            return Err("it fails at once".into());
        }
        context.once(life, Fail);
        Ok(())
    }
}

struct Fail;

impl Handler<Fail> for Level {
    type Reply = ();

    fn handle(&mut self, _: Fail, context: &mut Context<Self>) {
        context.fail("it fails after a while");
    }
}

/// Spawns a tree with the default supervision.
fn tree(levels: u32, lives: fn(u32) -> Duration) -> (ActorRef<Level>, Arc<AtomicU32>) {
    let system = ActorSystem::new().expect("there is a runtime");
    let lowest = Lowest {
        made: Arc::default(),
        lives,
    };
    let top = system.spawn(Level::make(levels - 1, &lowest));
    (top, lowest.made)
}

#[tokio::test(start_paused = true)]
async fn a_tree_is_given_up_whose_lowest_actor_always_fails_however_deep_it_is() {
    // As the guide says, and a millisecond for each rest, to which a timer is exact.
    for (levels, failures, shortest, longest) in [
        (1, 6, 3_100, 3_720 + 5),
        (2, 36, 21_700, 26_040 + 35),
        (3, 216, 133_300, 159_960 + 215),
    ] {
        let (top, made) = tree(levels, |_| Duration::ZERO);
        let begun = Instant::now();
        let ended = timeout(LONG, top.terminated()).await;
        ended.unwrap_or_else(|_| panic!("{levels} levels: it goes on for ever"));
        let took = begun.elapsed().as_millis();
        assert_eq!(made.load(Ordering::Relaxed), failures, "{levels} levels");
        assert!(
            (shortest..=longest).contains(&took),
            "{levels} levels: {took} ms"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_tree_that_recovers_for_a_while_after_each_escalation_goes_on() {
    // One failure after ten seconds, and five more at once: the parent is restarted.
    let (top, made) = tree(2, |number| match number % 6 {
        0 => Duration::from_secs(10),
        _ => Duration::ZERO,
    });
    sleep(LONG).await;
    assert!(top.is_alive());
    let escalations = made.load(Ordering::Relaxed) / 6;
    assert!(escalations > 20, "{escalations} escalations");
}
