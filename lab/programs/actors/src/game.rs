//! Ping-pong beside pairs that compute: no batches, all play until a whistle.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::countdown::Finish;
use crate::options::Options;
use crate::outcome::{Outcome, Sample};
use crate::stopwatch::{Stopwatch, per_operation};
use crate::{BUSY_PAIRS, PAIRS};

/// The time that a pair which computes does so for each ball.
const WORK: Duration = Duration::from_micros(1);
/// The most that counts as work: a longer time is a thread that had no core.
const WORK_MAX: Duration = Duration::from_micros(2);

/// The state that all pairs share.
#[derive(Debug)]
pub struct Game {
    over: AtomicBool,
    round_trips: AtomicU64,
    computed_nanoseconds: AtomicU64,
    finish: Arc<Finish>,
}

/// The ball of a pair, as the one who serves counts it.
#[derive(Clone, Debug)]
pub struct Rally {
    game: Arc<Game>,
    computes: bool,
    round_trips: u64,
    computed: Duration,
}

impl Game {
    fn new() -> Self {
        Self {
            over: AtomicBool::new(false),
            round_trips: AtomicU64::new(0),
            computed_nanoseconds: AtomicU64::new(0),
            finish: Finish::of(PAIRS + BUSY_PAIRS),
        }
    }

    /// Creates a rally for each pair; the last ones compute.
    pub fn rallies(game: &Arc<Self>) -> impl Iterator<Item = Rally> {
        (0..PAIRS + BUSY_PAIRS).map(|number| Rally {
            game: Arc::clone(game),
            computes: number >= PAIRS,
            round_trips: 0,
            computed: Duration::ZERO,
        })
    }

    fn computed(&self) -> Duration {
        Duration::from_nanos(self.computed_nanoseconds.load(Ordering::Relaxed))
    }
}

impl Rally {
    /// Takes the ball. Returns `true` if it is to be played once more.
    pub fn again(&mut self) -> bool {
        self.round_trips += 1;
        if self.computes {
            self.computed += compute();
        }
        let goes_on = !self.game.over.load(Ordering::Relaxed);
        if !goes_on {
            self.leave();
        }
        goes_on
    }

    fn leave(&self) {
        let game = &self.game;
        let computed = u64::try_from(self.computed.as_nanos()).unwrap_or(u64::MAX);
        game.round_trips
            .fetch_add(self.round_trips, Ordering::Relaxed);
        game.computed_nanoseconds
            .fetch_add(computed, Ordering::Relaxed);
        game.finish.arrive();
    }
}

/// Computes for 1 us. Returns the time that it took.
fn compute() -> Duration {
    let start = Instant::now();
    loop {
        std::hint::spin_loop();
        let elapsed = start.elapsed();
        if elapsed >= WORK {
            return elapsed.min(WORK_MAX);
        }
    }
}

impl Options {
    /// Starts a game, waits, and ends it; before that, another to warm up. `start` starts all
    /// pairs.
    ///
    /// # Errors
    /// If the kernel does not report the CPU time.
    pub async fn play(&self, mut start: impl AsyncFnMut(Arc<Game>)) -> anyhow::Result<Outcome> {
        self.play_for(self.warm_up(), &mut start).await?;
        let sample = self.play_for(self.time(), &mut start).await?;
        Ok(Outcome::Measured(sample))
    }

    async fn play_for(
        &self,
        time: Duration,
        start: &mut impl AsyncFnMut(Arc<Game>),
    ) -> anyhow::Result<Sample> {
        let game = Arc::new(Game::new());
        let stopwatch = Stopwatch::start()?;
        start(Arc::clone(&game)).await;
        tokio::time::sleep(time).await;
        game.over.store(true, Ordering::Relaxed);
        game.finish.wait().await;
        let round_trips = game.round_trips.load(Ordering::Relaxed).max(1);
        let workers = u32::try_from(self.case.workers())?;
        let at_play = (stopwatch.elapsed() * workers).saturating_sub(game.computed());
        Ok(Sample {
            nanoseconds: per_operation(at_play, round_trips),
            ..stopwatch.stop(round_trips)?
        })
    }
}
