//! The load of one client.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use greenroom_cluster::{Cluster, Remote, RemoteError, StateError};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::actors::{Journal, JournalRemoteMessages, Sink, SinkRemoteMessages, note};
use crate::history::{Event, Outcome, Work};
use crate::node::{ENTITIES, GROUP};

/// The operations of one client that are under way at a time.
const WORKERS: u64 = 4;
/// The tries of a durable message, with the same id.
const TRIES_MAX: u32 = 6;
/// The time-outs of operations, in milliseconds.
const LIMITS_MS: [u64; 3] = [300, 1_000, 3_000];
/// The operations of two clients have different numbers.
const OPS_PER_CLIENT: u64 = 1_000_000;
/// The longest pause between two operations of a worker.
const PAUSE_MAX_MS: u64 = 60;
const TICK: Duration = Duration::from_millis(10);

struct Client {
    journals: Vec<Remote<Journal>>,
    sinks: Remote<Sink>,
    next: AtomicU64,
    /// The lengths of the lists, as far as this client has heard.
    lengths: Mutex<[u64; ENTITIES as usize]>,
}

pub(crate) async fn run(cluster: &Cluster, (seed, number): (u64, u64), load: Duration) {
    let until = Instant::now() + load;
    let lateness = Arc::new(AtomicU64::new(0));
    let watch = tokio::spawn(measure(Arc::clone(&lateness)));
    let journal = |entity: u32| cluster.entity(u64::from(entity)).expect("an id");
    let client = Arc::new(Client {
        journals: (0..ENTITIES).map(journal).collect(),
        sinks: cluster.actor(GROUP).expect("a name"),
        next: AtomicU64::new(number * OPS_PER_CLIENT),
        lengths: Mutex::default(),
    });
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        let client = Arc::clone(&client);
        let rng = Rng::with_seed(seed ^ (number * WORKERS + worker).wrapping_mul(0x9e37_79b9));
        workers.spawn(client.work(rng, until));
    }
    while let Some(worked) = workers.join_next().await {
        worked.expect("a worker does not panic");
    }
    watch.abort();
    let ms = lateness.load(Ordering::Relaxed);
    note(&Event::Lateness { ms });
}

/// Measures by how much this process runs late, as on a machine that has too much to do.
async fn measure(lateness: Arc<AtomicU64>) {
    loop {
        let begin = Instant::now();
        sleep(TICK).await;
        let late = begin.elapsed().saturating_sub(TICK);
        lateness.fetch_max(milliseconds(late), Ordering::Relaxed);
    }
}

impl Client {
    async fn work(self: Arc<Self>, mut rng: Rng, until: Instant) {
        while Instant::now() < until {
            let op = self.next.fetch_add(1, Ordering::Relaxed);
            let limit = Duration::from_millis(LIMITS_MS[rng.usize(..LIMITS_MS.len())]);
            let entity = rng.u32(..ENTITIES);
            let work = match rng.u32(..100) {
                0..30 => Work::Append { entity },
                30..45 => {
                    let expected = self.lengths.lock()[entity as usize];
                    Work::Swap { entity, expected }
                }
                45..80 => Work::DurableAppend { entity },
                _ => Work::DurableGroup,
            };
            let is_durable = matches!(work, Work::DurableAppend { .. } | Work::DurableGroup);
            for _ in 0..if is_durable { TRIES_MAX } else { 1 } {
                let outcome = self.tried(op, work, limit).await;
                if matches!(outcome, Outcome::Done { .. }) {
                    break;
                }
            }
            sleep(Duration::from_millis(rng.u64(..=PAUSE_MAX_MS))).await;
        }
    }

    async fn tried(&self, op: u64, work: Work, limit: Duration) -> Outcome {
        note(&Event::Begun { op, work });
        let begin = Instant::now();
        let outcome = self.outcome(op, work, limit).await;
        note(&Event::Ended {
            op,
            outcome,
            took_ms: milliseconds(begin.elapsed()),
            limit_ms: milliseconds(limit),
        });
        outcome
    }

    async fn outcome(&self, op: u64, work: Work, limit: Duration) -> Outcome {
        match work {
            Work::Append { entity } => {
                let asked = self.journal(entity).append(op).timeout(limit).ask().await;
                self.changed((op, entity), asked.map(|reply| reply.map(Ok)))
            }
            Work::Swap { entity, expected } => {
                let call = self.journal(entity).swap(expected, op);
                self.changed((op, entity), call.timeout(limit).ask().await)
            }
            Work::DurableAppend { entity } => {
                let call = self.journal(entity).post(op).id(op.to_string());
                delivered(op, call.timeout(limit).deliver().await.err())
            }
            Work::DurableGroup => {
                let call = self.sinks.handle(op).id(op.to_string());
                delivered(op, call.timeout(limit).deliver().await.err())
            }
        }
    }

    fn journal(&self, entity: u32) -> &Remote<Journal> {
        &self.journals[entity as usize]
    }

    fn changed(
        &self,
        (op, entity): (u64, u32),
        asked: Result<Result<Result<u64, u64>, StateError>, RemoteError>,
    ) -> Outcome {
        let (length, outcome) = match asked {
            Ok(Ok(Ok(place))) => (place + 1, Outcome::Done { place: Some(place) }),
            Ok(Ok(Err(length))) => (length, Outcome::NotDone),
            Ok(Err(error)) => {
                let error = error.to_string();
                note(&Event::Error { op, error });
                return Outcome::Unknown;
            }
            Err(error) => return failed(op, &error),
        };
        let known = &mut self.lengths.lock()[entity as usize];
        *known = length.max(*known);
        outcome
    }
}

fn delivered(op: u64, error: Option<RemoteError>) -> Outcome {
    let done = Outcome::Done { place: None };
    error.map_or(done, |error| failed(op, &error))
}

fn failed(op: u64, error: &RemoteError) -> Outcome {
    note(&Event::Error {
        op,
        error: error.to_string(),
    });
    if error.is_unhandled() {
        Outcome::NotDone
    } else {
        Outcome::Unknown
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
