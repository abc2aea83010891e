use greenroom_stage::Stage;
use serde::{Deserialize, Serialize};

/// The default of [`Dispatcher::throughput`], in messages.
pub const THROUGHPUT_DEFAULT: u32 = 32;

/// The workers that actors run on. Registered under a name with
/// [`ActorSystemBuilder::dispatcher`](crate::ActorSystemBuilder::dispatcher), and chosen by that
/// name when an actor is spawned.
///
/// From a configuration file, such as TOML, with `serde`:
///
/// ```
/// # use greenroom_actor::Dispatcher;
/// let images: Dispatcher = toml::from_str(r#"
///     kind = "pool"
///     threads = 2
///     throughput = 1
/// "#)?;
/// # Ok::<_, toml::de::Error>(())
/// ```
///
/// `kind` is `tokio`, `pool`, `pinned` or `loop`; `threads` belongs to `pool` and is required
/// there.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Configured")]
pub struct Dispatcher {
    pub(super) place: Place,
    pub(super) throughput: u32,
}

#[derive(Clone, Debug)]
pub(super) enum Place {
    Tokio,
    Pool { threads: usize },
    Pinned,
    Loop,
    Stage { stage: Stage, workers: usize },
    Seeded { seed: u64 },
}

impl Dispatcher {
    /// The most threads or workers of one dispatcher.
    pub const WORKERS_MAX: usize = 1_024;

    /// Runs actors on the tokio runtime in which the actor system is built: as many tasks as it has
    /// workers. Outside of a runtime, on a pool with a thread for each core.
    #[must_use]
    pub fn tokio() -> Self {
        Self::at(Place::Tokio)
    }

    /// Runs actors on threads of its own, from 1 to [`WORKERS_MAX`](Self::WORKERS_MAX). Each has a
    /// tokio runtime, so actors may use timers and sockets.
    #[must_use]
    pub fn pool(threads: usize) -> Self {
        Self::at(Place::Pool { threads })
    }

    /// Runs each actor on a thread of its own, with a tokio runtime.
    #[must_use]
    pub fn pinned() -> Self {
        Self::at(Place::Pinned)
    }

    /// Runs an actor on the thread that spawns it, between the other tasks of its tokio runtime,
    /// and never on another: for actors that belong to a connection or a request that one of the
    /// server's loops serves. Meant for runtimes of one thread.
    #[must_use]
    pub fn on_loop() -> Self {
        Self::at(Place::Loop)
    }

    /// Runs actors that compute or block on a stage: up to `workers` of them at a time, from 1 to
    /// [`WORKERS_MAX`](Self::WORKERS_MAX). The stage sees to it that no more compute than there are
    /// cores; actors that block get more threads. A worker that the stage drops before it has
    /// begun, because the stage is overloaded, is submitted again every 100 ms.
    #[must_use]
    pub fn stage(stage: &Stage, workers: usize) -> Self {
        Self::at(Place::Stage {
            stage: stage.clone(),
            workers,
        })
    }

    /// Runs actors on one worker, one message at a time, of an actor picked at random among those
    /// that could run. The same seed picks the same again, as long as nothing else is random: for
    /// tests, on a runtime of one thread whose clock is paused.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self {
            place: Place::Seeded { seed },
            throughput: 1,
        }
    }

    /// Sets the number of messages that an actor handles before others on its worker have their
    /// turn; at least 1. Default: [`THROUGHPUT_DEFAULT`]. A worker also yields to its runtime after
    /// half a millisecond.
    #[must_use]
    pub fn throughput(self, messages: u32) -> Self {
        Self {
            throughput: messages.max(1),
            ..self
        }
    }

    /// Returns `true` if it is started again for each actor or each runtime.
    pub(crate) fn is_template(&self) -> bool {
        matches!(self.place, Place::Pinned | Place::Loop)
    }

    /// Returns `true` if it is started once for each runtime.
    pub(crate) fn is_by_runtime(&self) -> bool {
        matches!(self.place, Place::Loop)
    }

    fn at(place: Place) -> Self {
        Self {
            place,
            throughput: THROUGHPUT_DEFAULT,
        }
    }
}

/// A dispatcher as a configuration names it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Configured {
    kind: Kind,
    threads: Option<usize>,
    throughput: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Tokio,
    Pool,
    Pinned,
    Loop,
}

impl TryFrom<Configured> for Dispatcher {
    type Error = String;

    fn try_from(configured: Configured) -> Result<Self, String> {
        let dispatcher = match (configured.kind, configured.threads) {
            (Kind::Pool, Some(threads)) if (1..=Self::WORKERS_MAX).contains(&threads) => {
                Self::pool(threads)
            }
            (Kind::Pool, Some(threads)) => {
                return Err(format!(
                    "`threads` is {threads}; a pool has 1 to {} threads",
                    Self::WORKERS_MAX
                ));
            }
            (Kind::Pool, None) => {
                return Err("a pool needs `threads`, its number of threads".to_owned());
            }
            (_, Some(_)) => return Err("`threads` belongs to kind = \"pool\"".to_owned()),
            (Kind::Tokio, None) => Self::tokio(),
            (Kind::Pinned, None) => Self::pinned(),
            (Kind::Loop, None) => Self::on_loop(),
        };
        match configured.throughput {
            Some(0) => {
                Err("`throughput` is 0; an actor handles at least 1 message in a turn".to_owned())
            }
            Some(messages) => Ok(dispatcher.throughput(messages)),
            None => Ok(dispatcher),
        }
    }
}
