//! Everything that handlers share, and how it is put together.

use std::sync::Arc;
use std::time::Duration;

use greenroom::actor::{ActorSystem, Dispatcher};
use greenroom::bus::{Bus, RedisSettings, WhileAway};

use crate::auth::Limits;
use crate::cache::Cache;
use crate::config::Settings;
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
    /// As it was configured.
    pub settings: Arc<Settings>,
    /// Where everything is kept.
    pub store: Arc<dyn Store>,
    /// What is read often.
    pub cache: Cache,
    /// Topics of all replicas.
    pub bus: Bus,
    /// The actors.
    pub system: ActorSystem,
    /// Events to whoever watches.
    pub feed: Feed,
    /// Pictures' files.
    pub files: Files,
    /// What computes on pictures.
    pub images: Images,
    /// Who stores an upload at the moment: each user one at a time.
    pub keeping: Turns,
    /// What computes digests of passwords.
    pub passwords: Passwords,
    /// Mails, notifications and removals.
    pub outbox: Outbox,
    /// The third party; `None` if none is configured.
    pub share: Option<Share>,
    /// How much each client may.
    pub limits: Limits,
}

/// How long the actors have to finish what they are at: one try of the outbox's may take 35 s, and a mail that is
/// cut off may be sent twice.
const SHUTDOWN: Duration = Duration::from_secs(40);

impl App {
    /// Opens the storage, connects, and starts the actors, on the runtime that calls it.
    ///
    /// # Errors
    /// If the settings contradict each other, or the storage cannot be opened.
    pub async fn start(settings: Settings) -> anyhow::Result<Self> {
        let settings = Arc::new(settings);
        let store = store::open(&settings.store).await?;
        let bus = open_bus(&settings)?;
        let system = ActorSystem::builder()
            .dispatcher("actors", Dispatcher::pool(1))
            .dispatcher("loop", Dispatcher::on_loop())
            .build()?;
        let cache = Cache::start(&bus, settings.redis.as_ref())?;
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

    /// Stops the actors; what they have not done is in the outbox.
    pub async fn shut_down(&self) {
        let report = self.system.shutdown(SHUTDOWN).await;
        if !report.is_clean() {
            tracing::warn!(killed = report.killed, "actors did not end in time");
        }
    }
}

fn open_bus(settings: &Settings) -> anyhow::Result<Bus> {
    Ok(match &settings.redis {
        Some(url) => Bus::redis(RedisSettings::new(url.as_str())?.while_away(WhileAway::Queue))?,
        None => Bus::in_process(),
    })
}
