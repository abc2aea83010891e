use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::time::{Instant, timeout_at};

use super::ActorSystem;
use crate::cell::{AnyCell, Signal};
use crate::dispatcher;
use crate::id::ActorId;
use crate::watched::Tie;

/// The number of paths that a report lists.
const LISTED_MAX: usize = 100;
/// The time that killed actors have to end: as long as a handler takes that cannot be interrupted.
const KILLED_WAIT: Duration = Duration::from_secs(1);

/// The result of a shutdown.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ShutdownReport {
    /// Actors that lived when it began.
    pub actors: usize,
    /// Actors that had not drained at the deadline, and were killed.
    pub killed: usize,
    /// Actors that could not be killed within a second, because a handler of theirs does not
    /// return.
    pub stuck: usize,
    /// The paths of the killed, at most 100.
    pub killed_paths: Vec<String>,
    /// The paths of the stuck, at most 100.
    pub stuck_paths: Vec<String>,
    /// Dead letters during the shutdown.
    pub dead_letters: u64,
}

impl ShutdownReport {
    /// Returns `true` if every actor had handled its mailbox and ended in time.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.killed == 0
    }
}

impl ActorSystem {
    /// Ends all actors: each handles what is in its mailbox, then its children end, then it ends.
    /// Actors that are left at the deadline are killed. Then the dispatchers end. From the
    /// beginning on no actor at the top takes messages, and an actor that is spawned ends at once.
    /// A second shutdown reports nothing.
    pub async fn shutdown(&self, deadline: Duration) -> ShutdownReport {
        let root = Arc::clone(&self.1);
        let dead_letters = self.dead_letters().total();
        let actors = self.alive().len();
        let (ended, mut has_ended) = tokio::sync::watch::channel(false);
        root.watch(
            ActorId::OUTSIDE,
            Tie::Watch,
            Box::new(move |_| {
                ended.send_replace(true);
            }),
        );
        root.signal(Signal::Stop);
        let mut report = ShutdownReport {
            actors,
            ..ShutdownReport::default()
        };
        let end = dispatcher::moment_after(deadline);
        let drained = timeout_at(end, has_ended.wait_for(|ended| *ended));
        if drained.await.is_err() {
            (report.killed, report.killed_paths) = list(&self.alive());
            root.signal(Signal::Kill);
            let killed = timeout_at(
                Instant::now() + KILLED_WAIT,
                has_ended.wait_for(|ended| *ended),
            );
            if killed.await.is_err() {
                (report.stuck, report.stuck_paths) = list(&self.alive());
            }
        }
        #[cfg(feature = "web")]
        let _ = timeout_at(
            end,
            self.0.connections.subscribe().wait_for(|open| *open == 0),
        )
        .await;
        self.0.let_go();
        report.dead_letters = self.dead_letters().total() - dead_letters;
        report
    }

    /// Returns all actors but the root.
    pub(super) fn alive(&self) -> Vec<Arc<dyn AnyCell>> {
        self.0.actors().skip(1).collect()
    }
}

fn list(actors: &[Arc<dyn AnyCell>]) -> (usize, Vec<String>) {
    let mut paths: Vec<_> = actors
        .iter()
        .take(LISTED_MAX)
        .map(|actor| actor.path())
        .collect();
    paths.sort();
    (actors.len(), paths)
}
