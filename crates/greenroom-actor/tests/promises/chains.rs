//! Actors below actors below actors.

use std::sync::mpsc;
use std::time::Duration;

use greenroom_actor::testing;
use greenroom_actor::{Actor, ActorRef, ActorSystem, BoxError, Context};

/// More than a stack of 2 MiB has room for, if each took one frame.
const LENGTH: u32 = 20_000;

/// Spawns the rest of the chain below itself; the last one sends its reference.
struct Link {
    below: u32,
    last: mpsc::Sender<ActorRef<Link>>,
}

impl Actor for Link {
    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), BoxError> {
        let last = self.last.clone();
        match self.below.checked_sub(1) {
            Some(below) => {
                let next = move || Self {
                    below,
                    last: last.clone(),
                };
                context.build(next).name("l").spawn()?;
            }
            None => last.send(context.myself().clone())?,
        }
        Ok(())
    }
}

/// Returns the first and the last of a chain.
fn chain(system: &ActorSystem) -> (ActorRef<Link>, mpsc::Receiver<ActorRef<Link>>) {
    let (sender, last) = mpsc::channel();
    let build = system.build(move || Link {
        below: LENGTH - 1,
        last: sender.clone(),
    });
    let first = build.name("l").spawn();
    (first.expect("the dispatcher is there"), last)
}

#[test]
fn a_long_chain_of_actors_has_paths_is_shut_down_and_dropped() {
    testing::run(|system| async move {
        let (_, last) = chain(&system);
        system.settle().await;
        let last = last.recv().expect("the chain has an end");
        assert_eq!(last.path().len(), 2 * LENGTH as usize);
        let report = system.shutdown(Duration::from_mins(1)).await;
        assert!(report.is_clean());
        assert_eq!(report.actors, LENGTH as usize);
        // Those above it have ended, and go with it.
        drop(last);
    });
}

#[test]
fn a_long_chain_of_actors_ends_with_its_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("the system gives a runtime");
    let last = runtime.block_on(async {
        let system = ActorSystem::new().expect("there is a runtime");
        let (first, last) = chain(&system);
        loop {
            match last.try_recv() {
                Ok(last) => break last,
                Err(_) => tokio::task::yield_now().await,
            }
            assert!(first.is_alive());
        }
    });
    drop(runtime);
    assert!(!last.is_alive());
}
