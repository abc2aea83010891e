//! The state that handlers share, and its construction.

use std::ops::Deref;
use std::sync::Arc;

use greenroom::actor::ActorSystem;
use greenroom::bus::Bus;

use crate::albums::HotAlbums;
use crate::auth::Limits;
use crate::cache::Cache;
use crate::config::{RedisSettings, Settings};
use crate::feed::Feed;
use crate::files::Files;
use crate::images::Workplace;
use crate::node::{Common, Records};
use crate::outbox::Outbox;
use crate::passwords::Passwords;
use crate::share::Share;
use crate::store::Store;
use crate::turns::Turns;

/// The application: cheap to clone, as each layer and each extractor of a request does, and the
/// state of its routes.
#[derive(Clone, Debug)]
pub struct App(Arc<AppState>);

/// The state that all clones of an [`App`] share.
#[derive(Debug)]
pub struct AppState {
    /// The settings that it was started with.
    pub settings: Arc<Settings>,
    /// The storage of all records and events.
    pub store: Arc<dyn Store>,
    /// The cache of records that are read often.
    pub cache: Cache,
    /// The albums in memory; `None` if another process could change one without telling.
    pub albums: Option<HotAlbums>,
    /// The topics of all replicas.
    pub bus: Bus,
    /// The actors.
    pub system: ActorSystem,
    /// Delivers events to connected browsers.
    pub feed: Feed,
    /// The files of pictures.
    pub files: Files,
    /// The way of pictures that are uploaded here.
    pub images: Workplace,
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

impl App {
    /// Puts the application together, and starts its actors.
    ///
    /// # Errors
    /// Fails if the settings contradict each other.
    pub(crate) fn start(
        common: &Common,
        records: Records,
        images: Workplace,
        outbox: Outbox,
    ) -> anyhow::Result<Self> {
        let settings = Arc::clone(&common.settings);
        let Records { store, bus, feed } = records;
        let client = settings.redis.as_ref().map(RedisSettings::client);
        let cache = Cache::start(&bus, client.transpose()?.flatten())?;
        let passwords = Passwords::new(&settings.passwords)?;
        let share = match &settings.share {
            Some(share) => Some(Share::start(&common.system, share)?),
            None => None,
        };
        let limits = Limits::new(&settings.limits);
        let has_albums = settings.tells_of_albums();
        let albums = has_albums.then(|| HotAlbums::new(&common.cluster));
        let pictures = &settings.pictures;
        let keeping = Turns::new(pictures.queue_max, pictures.queue_wait_max);
        Ok(Self(Arc::new(AppState {
            settings,
            store,
            cache,
            albums,
            bus,
            system: common.system.clone(),
            feed,
            files: common.files.clone(),
            images,
            keeping,
            passwords,
            outbox,
            share,
            limits,
        })))
    }
}

impl Deref for App {
    type Target = AppState;

    fn deref(&self) -> &AppState {
        &self.0
    }
}
