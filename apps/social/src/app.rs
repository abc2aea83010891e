//! The state that handlers share, and its construction.

use std::sync::Arc;
use std::time::Duration;

use greenroom::actor::{ActorSystem, Dispatcher};
use greenroom::bus::Bus;

use crate::auth::Limits;
use crate::cache::Cache;
use crate::config::{RedisSettings, Settings};
use crate::feed::Feed;
use crate::files::Files;
use crate::images::Images;
use crate::outbox::Outbox;
use crate::passwords::Passwords;
use crate::share::Share;
use crate::store::{self, Store};
use crate::turns::Turns;

/// The application: cheap to clone, and the state of its routes.
#[derive(Clone, Debug)]
pub struct App {
    /// The settings that it was started with.
    pub settings: Arc<Settings>,
    /// The storage of all records and events.
    pub store: Arc<dyn Store>,
    /// The cache of records that are read often.
    pub cache: Cache,
    /// The topics of all replicas.
    pub bus: Bus,
    /// The actors.
    pub system: ActorSystem,
    /// Delivers events to connected browsers.
    pub feed: Feed,
    /// The files of pictures.
    pub files: Files,
    /// The stage that computes on pictures.
    pub images: Images,
    /// The users with an upload being stored: each user stores one at a time.
    pub keeping: Turns,
    /// The stage that computes digests of passwords.
    pub passwords: Passwords,
    /// The queue of mails, notifications and removals.
    pub outbox: Outbox,
    /// The third party, which pictures are shared with; `None` if none is configured.
    pub share: Option<Share>,
    /// The rate limits of each client.
    pub limits: Limits,
}

/// The time that actors have to finish their work: one try of the outbox may take 35 s, and a mail
/// that is aborted may be sent twice.
const SHUTDOWN: Duration = Duration::from_secs(40);

impl App {
    /// Opens the storage, connects to Redis if it is configured, and starts the actors on the
    /// calling runtime.
    ///
    /// # Errors
    /// Fails if the settings contradict each other, or the storage cannot be opened.
    pub async fn start(settings: Settings) -> anyhow::Result<Self> {
        let settings = Arc::new(settings);
        let store = store::open(&settings.store).await?;
        let bus = open_bus(&settings)?;
        let system = ActorSystem::builder()
            .dispatcher("actors", Dispatcher::pool(1))
            .dispatcher("loop", Dispatcher::on_loop())
            .build()?;
        let client = settings.redis.as_ref().map(RedisSettings::client);
        let cache = Cache::start(&bus, client.transpose()?.flatten())?;
        let files = Files::open(&settings.files)?;
        let images = Images::new(&settings.pictures)?;
        let passwords = Passwords::new(&settings.passwords)?;
        let feed = Feed::start(&system, &bus, &store, &settings.feed)?;
        let outbox = Outbox::start(&system, &store, &files, &feed, &settings)?;
        let share = match &settings.share {
            Some(share) => Some(Share::start(&system, share)?),
            None => None,
        };
        let limits = Limits::new(&settings.limits);
        let pictures = &settings.pictures;
        let keeping = Turns::new(pictures.queue_max, pictures.queue_wait_max);
        Ok(Self {
            settings,
            store,
            cache,
            bus,
            system,
            feed,
            files,
            images,
            keeping,
            passwords,
            outbox,
            share,
            limits,
        })
    }

    /// Stops the actors; the work that they have not done stays in the outbox.
    pub async fn shut_down(&self) {
        let report = self.system.shutdown(SHUTDOWN).await;
        if !report.is_clean() {
            tracing::warn!(killed = report.killed, "actors did not end in time");
        }
    }
}

fn open_bus(settings: &Settings) -> anyhow::Result<Bus> {
    Ok(match &settings.redis {
        Some(redis) => Bus::redis(redis.bus()?)?,
        None => Bus::in_process(),
    })
}
