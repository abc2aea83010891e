//! Work that is done later, but certainly: mails, notifications, removals.
//!
//! Tasks are stored in one step with the change that they follow from. For each kind of task an
//! actor claims those that are due, does them, and records the outcome. If a worker dies, its task
//! is claimed again, by any replica, when the lease is over.

mod backoff;
mod group;
mod janitor;
mod links;
mod mailman;
mod notifier;
mod outside;
mod worker;

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use anyhow::ensure;
use greenroom::actor::{ActorRef, ActorSystem, Recipient};
use greenroom::cluster::Cluster;
use jiff::Timestamp;

use crate::config::Settings;
use crate::feed::Feed;
use crate::files::Files;
use crate::model::TaskKind;
use crate::store::Store;
pub(crate) use group::publish;
use group::{Forwarder, Wake};
use janitor::Janitor;
use mailman::Mailman;
use notifier::{PushNotifier, Vapid, WebhookNotifier};
pub(crate) use outside::client;
use worker::{Doer, Look, Shared, TRY_MAX, Worker};

/// A clock by which tasks become due and leases end.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The dispatcher of the actors.
const DISPATCHER: &str = "actors";

/// A handle to the actors of the outbox; cheap to clone.
#[derive(Clone)]
pub struct Outbox {
    workers: Workers,
    push_key: Option<Arc<str>>,
}

#[derive(Clone)]
enum Workers {
    Here(Arc<Actors>),
    /// In processes that this actor tells.
    Elsewhere(Recipient<Wake>),
}

struct Actors {
    mailman: Recipient<Look>,
    pusher: Recipient<Look>,
    janitor: Recipient<Look>,
    webhooks: Recipient<Look>,
}

impl Outbox {
    /// Starts the actors Mailman, Notifier (one for browsers, one for webhooks) and Janitor on the
    /// system's dispatcher `actors`.
    ///
    /// # Errors
    /// If a setting cannot be understood, `mail.timeout` or `webhook.timeout` is longer than a try
    /// may take, the VAPID key can be neither read nor created, or there is no such dispatcher.
    pub fn start(
        system: &ActorSystem,
        store: &Arc<dyn Store>,
        files: &Files,
        feed: &Feed,
        settings: &Settings,
    ) -> anyhow::Result<Self> {
        Self::start_with(
            system,
            store,
            files,
            feed,
            settings,
            &(Arc::new(Timestamp::now) as Clock),
        )
    }

    /// Like [`start`](Self::start), by another clock than the system's.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_with(
        system: &ActorSystem,
        store: &Arc<dyn Store>,
        files: &Files,
        feed: &Feed,
        settings: &Settings,
        clock: &Clock,
    ) -> anyhow::Result<Self> {
        check_timeouts(settings)?;
        let vapid = Vapid::open(settings)?.map(Arc::new);
        let push_key = push_key(vapid.as_deref());
        let starter = Starter {
            system,
            store,
            clock,
        };
        let mailman = Mailman::new(store, settings, clock)?;
        let pusher = PushNotifier::new(store, settings, vapid, clock)?;
        let webhooks = WebhookNotifier::new(store, settings)?;
        let leftovers_after = settings.pictures.leftovers_after;
        let janitor = Janitor::new(store, files, feed, leftovers_after, clock);
        let actors = Actors {
            mailman: starter.start("mailman", mailman)?.recipient(),
            pusher: starter.start("notifier-push", pusher)?.recipient(),
            janitor: starter.start("janitor", janitor)?.recipient(),
            webhooks: starter.start("notifier-webhook", webhooks)?.recipient(),
        };
        Ok(Self {
            workers: Workers::Here(Arc::new(actors)),
            push_key,
        })
    }

    /// Returns the outbox of a process without the actors: others do the tasks, and are told of new
    /// ones through the cluster.
    ///
    /// # Errors
    /// If the VAPID key can be neither read nor created, or there is no dispatcher `actors`.
    pub fn elsewhere(
        system: &ActorSystem,
        cluster: &Cluster,
        settings: &Settings,
    ) -> anyhow::Result<Self> {
        let vapid = Vapid::open(settings)?;
        let forwarder = Forwarder::start(system, cluster)?;
        Ok(Self {
            workers: Workers::Elsewhere(forwarder.recipient()),
            push_key: push_key(vapid.as_ref()),
        })
    }

    /// Notifies the actor of this kind of a new task, so that it looks at once. It looks every few
    /// seconds in any case.
    pub fn wake(&self, kind: TaskKind) {
        let actors = match &self.workers {
            Workers::Here(actors) => actors,
            Workers::Elsewhere(forwarder) => {
                // A full mailbox has told of others just now; the actors look by themselves too.
                let _ = forwarder.tell(Wake { kind });
                return;
            }
        };
        let actor = match kind {
            TaskKind::Mail => &actors.mailman,
            TaskKind::Push => &actors.pusher,
            TaskKind::Remove => &actors.janitor,
            TaskKind::Webhook => &actors.webhooks,
        };
        // A full mailbox already holds a message that will find the task.
        let _ = actor.tell(Look);
    }

    /// The public key of VAPID, base64url, for browsers that subscribe; `None` if there is no Web
    /// Push.
    #[must_use]
    pub fn push_key(&self) -> Option<&str> {
        self.push_key.as_deref()
    }
}

impl Debug for Outbox {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Outbox")
            .field("push_key", &self.push_key())
            .finish_non_exhaustive()
    }
}

fn push_key(vapid: Option<&Vapid>) -> Option<Arc<str>> {
    vapid.map(|vapid| vapid.public_key().into())
}

/// Rejects time-outs longer than a try may take: such a mail or call would fail each time.
fn check_timeouts(settings: &Settings) -> anyhow::Result<()> {
    let timeouts = [
        ("mail.timeout", settings.mail.timeout),
        ("webhook.timeout", settings.webhook.timeout),
    ];
    for (key, timeout) in timeouts {
        ensure!(
            timeout <= TRY_MAX,
            "`{key}` is {timeout:?}; it must be at most {TRY_MAX:?}"
        );
    }
    Ok(())
}

struct Starter<'a> {
    system: &'a ActorSystem,
    store: &'a Arc<dyn Store>,
    clock: &'a Clock,
}

impl Starter<'_> {
    fn start<D: Doer>(&self, name: &str, doer: D) -> anyhow::Result<ActorRef<Worker<D>>> {
        let shared = Arc::new(Shared::new(doer, self.store, self.clock));
        let make = move || Worker::new(&shared);
        Ok(self
            .system
            .build(make)
            .name(name)
            .dispatcher(DISPATCHER)
            .spawn()?)
    }
}
