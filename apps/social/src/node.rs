//! A process of the application, which does what its roles say.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures_util::future::{self, OptionFuture, join_all};
use greenroom::actor::{ActorSystem, Dispatcher};
use greenroom::bus::Bus;
use greenroom::cluster::{Cluster, Hosting, Publication};

use crate::App;
use crate::albums;
use crate::config::{Role, Settings};
use crate::feed::Feed;
use crate::files::{Files, Sweeper};
use crate::images::{self, Images, Resizers, Workplace};
use crate::outbox::{self, Outbox};
use crate::store::{self, Store};

/// The time that actors have to finish their work: one try of the outbox may take 35 s, and a mail
/// that is aborted may be sent twice.
const SHUTDOWN: Duration = Duration::from_secs(40);
/// The time to tell other processes that this one ends.
const GOODBYE: Duration = Duration::from_secs(2);

/// A process: the parts that its roles need.
pub(crate) struct Node {
    common: Common,
    /// The groups that it is a member of, until it shuts down.
    memberships: Vec<Publication>,
    /// The albums in its memory, until it shuts down.
    albums: Option<Hosting>,
    /// There with the role `web`.
    app: Option<App>,
}

/// The parts that every process has.
pub(crate) struct Common {
    pub(crate) settings: Arc<Settings>,
    pub(crate) system: ActorSystem,
    pub(crate) cluster: Cluster,
    pub(crate) files: Files,
}

/// The records, and the news of them: for processes with the roles `web` and `outbox`.
pub(crate) struct Records {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) bus: Bus,
    pub(crate) feed: Feed,
}

impl Node {
    /// Starts what the roles say on the calling runtime: opens the storage, connects to Redis, and
    /// starts the actors.
    pub(crate) async fn start(settings: Settings, cluster: Cluster) -> anyhow::Result<Self> {
        let common = Common::start(settings, cluster)?;
        let settings = &common.settings;
        let mut memberships = Vec::new();
        let workplace = common.images(&mut memberships)?;
        let (web, outbox) = (settings.has(Role::Web), settings.has(Role::Outbox));
        if !outbox {
            common.sweep()?;
        }
        let (mut albums, mut app) = (None, None);
        if web || outbox {
            let records = Records::open(&common).await?;
            let outbox = common.outbox(&records, &mut memberships)?;
            albums = common.albums(&records)?;
            app = web
                .then(|| App::start(&common, records, workplace, outbox))
                .transpose()?;
        }
        Ok(Self {
            common,
            memberships,
            albums,
            app,
        })
    }

    /// Returns the state of the handlers, if this process has any.
    pub(crate) fn app(&self) -> Option<&App> {
        self.app.as_ref()
    }

    /// Leaves the groups and the albums, then stops the actors, which finish what they have begun;
    /// what they have not done stays in the outbox.
    pub(crate) async fn shut_down(self) {
        let leaving = self.memberships.into_iter();
        let leaving = join_all(leaving.map(|membership| membership.leave(Duration::ZERO)));
        let leaving_albums = self.albums.map(|albums| albums.leave(GOODBYE));
        future::join(leaving, OptionFuture::from(leaving_albums)).await;
        let report = self.common.system.shutdown(SHUTDOWN).await;
        if !report.is_clean() {
            tracing::warn!(killed = report.killed, "actors did not end in time");
        }
        leave(&self.common.cluster).await;
    }
}

/// Joins the cluster if one is configured.
pub(crate) async fn join(settings: &Settings) -> anyhow::Result<Cluster> {
    match &settings.nats {
        Some(nats) => Box::pin(Cluster::connect(nats.cluster()?))
            .await
            .context("the NATS cluster cannot be joined"),
        None => Ok(Cluster::local()),
    }
}

/// Tells the other processes that this one ends.
pub(crate) async fn leave(cluster: &Cluster) {
    cluster.drain(GOODBYE).await;
}

impl Common {
    fn start(settings: Settings, cluster: Cluster) -> anyhow::Result<Self> {
        let system = ActorSystem::builder()
            .dispatcher("actors", Dispatcher::pool(1))
            .dispatcher("loop", Dispatcher::on_loop())
            .build()?;
        Ok(Self {
            files: Files::open(&settings.files)?,
            settings: Arc::new(settings),
            system,
            cluster,
        })
    }

    /// Returns the way of pictures. A process that can compute on them does so with its own.
    fn images(&self, memberships: &mut Vec<Publication>) -> anyhow::Result<Workplace> {
        let (cluster, pictures) = (&self.cluster, &self.settings.pictures);
        if !self.settings.has(Role::Images) {
            return Ok(Workplace::Elsewhere(Resizers::new(cluster, pictures)?));
        }
        let images = Images::new(pictures)?;
        let member = images::publish(cluster, &self.system, &images, &self.files, pictures)?;
        memberships.push(member);
        Ok(Workplace::Here(images))
    }

    fn outbox(
        &self,
        records: &Records,
        memberships: &mut Vec<Publication>,
    ) -> anyhow::Result<Outbox> {
        let (system, settings) = (&self.system, &self.settings);
        if !settings.has(Role::Outbox) {
            return Outbox::elsewhere(system, &self.cluster, settings);
        }
        let Records { store, feed, .. } = records;
        let outbox = Outbox::start(system, store, &self.files, feed, settings)?;
        memberships.push(outbox::publish(&self.cluster, system, &outbox)?);
        Ok(outbox)
    }

    /// Takes albums into the memory of this process if it shows them, and hears of all changes.
    fn albums(&self, records: &Records) -> anyhow::Result<Option<Hosting>> {
        let settings = &self.settings;
        if !settings.has(Role::Web) || !settings.tells_of_albums() {
            return Ok(None);
        }
        albums::host(&self.cluster, &self.system, &records.store).map(Some)
    }

    /// Has the files of unfinished uploads deleted here: the janitor of another process does not
    /// see this machine's temporary directory.
    fn sweep(&self) -> anyhow::Result<()> {
        let (files, after) = (self.files.clone(), self.settings.pictures.leftovers_after);
        let make = move || Sweeper::new(&files, after);
        let sweeper = self.system.build(make).name("sweeper");
        sweeper.dispatcher("actors").spawn()?;
        Ok(())
    }
}

impl Records {
    async fn open(common: &Common) -> anyhow::Result<Self> {
        let settings = &common.settings;
        let store = store::open(&settings.store).await?;
        let bus = match &settings.redis {
            Some(redis) => Bus::redis(redis.bus()?)?,
            None => Bus::in_process(),
        };
        let feed = Feed::start(&common.system, &bus, &store, &settings.feed)?;
        Ok(Self { store, bus, feed })
    }
}
