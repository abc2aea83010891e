use serde::Serialize;

/// A dispatcher at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct DispatcherStatus {
    /// Its name.
    pub name: String,
    /// Its kind: `tokio`, `pool`, `pinned`, `loop` or `stage`.
    pub kind: &'static str,
    /// The number of its workers.
    pub workers: usize,
    /// The number of its workers that have nothing to do.
    pub resting: usize,
    /// Actors that wait for their turn.
    pub runnable: usize,
    /// Turns that actors have had.
    pub turns: u64,
    /// Seconds that its workers have run actors, all together.
    pub busy_seconds: f64,
    /// The number of times that an actor held a worker for more than about 10 ms.
    pub stalls: u64,
}
