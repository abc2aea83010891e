use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use greenroom_actor::ActorRef;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Member;
use crate::core::Core;
use crate::deliver;
use crate::directory::PublishError;
use crate::names::{check_kind, check_token};
use crate::nats::Nats;
use crate::remote::RemoteActor;
use crate::wire::Inbound;

/// The default number of requests that a member handles at a time.
const IN_FLIGHT_MAX: usize = 1_024;
/// The default number of durable messages that a member handles at a time.
const DURABLE_IN_FLIGHT_MAX: usize = 32;
/// The longest wait until the others know that a member leaves.
const ANNOUNCED_WITHIN: Duration = Duration::from_secs(2);

/// Settings of the publication of an actor.
#[derive(Clone)]
pub struct PublishSettings {
    pub(crate) in_flight_max: usize,
    pub(crate) durable_in_flight_max: usize,
    pub(crate) reported_wait: Option<Arc<dyn Fn() -> Duration + Send + Sync>>,
}

/// An actor's membership in a group. Dropped, the member leaves at once; [`leave`](Self::leave)
/// lets it finish what it has.
#[must_use = "the actor leaves the group when this is dropped"]
pub struct Publication {
    core: Arc<Core>,
    group: Box<str>,
    actor: &'static str,
    member: Arc<dyn Drain>,
    /// Its subscription, its consumer of durable messages, and the watch of the actor's end.
    tasks: JoinSet<()>,
    stop_durable: watch::Sender<bool>,
}

trait Drain: Inbound {
    fn drain(&self);
    fn idle(&self) -> BoxFuture<'_, ()>;
}

impl<A: RemoteActor> Drain for Member<A> {
    fn drain(&self) {
        Member::drain(self);
    }

    fn idle(&self) -> BoxFuture<'_, ()> {
        Member::idle(self).boxed()
    }
}

impl Default for PublishSettings {
    fn default() -> Self {
        Self {
            in_flight_max: IN_FLIGHT_MAX,
            durable_in_flight_max: DURABLE_IN_FLIGHT_MAX,
            reported_wait: None,
        }
    }
}

impl PublishSettings {
    /// Sets the number of requests that the member handles at a time, at least 1. Default 1,024;
    /// further ones are rejected, and go to another member.
    #[must_use]
    pub fn in_flight_max(mut self, requests: usize) -> Self {
        self.in_flight_max = requests.clamp(1, u32::MAX as usize);
        self
    }

    /// Sets the number of durable messages that the member handles at a time, at least 1.
    /// Default 32; the others wait at the servers.
    #[must_use]
    pub fn durable_in_flight_max(mut self, messages: usize) -> Self {
        self.durable_in_flight_max = messages.clamp(1, u32::MAX as usize);
        self
    }

    /// Sets the wait that is reported to other nodes, by which they choose between members: for
    /// instance that of the stage which the actor uses. Default: as long as something is under
    /// way, the mean time that requests took of late.
    #[must_use]
    pub fn reported_wait(mut self, wait: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.reported_wait = Some(Arc::new(wait));
        self
    }
}

impl fmt::Debug for PublishSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublishSettings")
            .field("in_flight_max", &self.in_flight_max)
            .field("durable_in_flight_max", &self.durable_in_flight_max)
            .finish_non_exhaustive()
    }
}

impl Publication {
    pub(crate) fn new<A: RemoteActor>(
        core: &Arc<Core>,
        group: &str,
        actor: &ActorRef<A>,
        settings: PublishSettings,
    ) -> Result<Self, PublishError> {
        check_token("the group", group)?;
        check_kind(A::NAME)?;
        let durable_max = settings.durable_in_flight_max;
        let member = Arc::new(Member::new(actor.clone(), settings));
        core.directory
            .add_member(group, A::NAME, Arc::clone(&member) as _)?;
        let mut publication = Self {
            core: Arc::clone(core),
            group: group.into(),
            actor: A::NAME,
            member,
            tasks: JoinSet::new(),
            stop_durable: watch::Sender::new(false),
        };
        publication.begin(durable_max);
        let (ended, core) = (actor.clone(), Arc::downgrade(core));
        let stop_durable = publication.stop_durable.clone();
        publication.tasks.spawn(async move {
            ended.terminated().await;
            stop_durable.send_replace(true);
            if let Some(core) = core.upgrade() {
                core.note_change();
            }
        });
        publication.core.note_change();
        Ok(publication)
    }

    /// Subscribes to what comes for the group.
    fn begin(&mut self, durable_max: usize) {
        let Some(nats) = self.core.nats() else { return };
        let subject = nats.subjects.all_of_group(&self.group, self.actor);
        let (client, queue) = (nats.client.clone(), self.group.to_string());
        let core = Arc::downgrade(&self.core);
        self.tasks.spawn(async move {
            match client.queue_subscribe(subject, queue).await {
                Ok(subscriber) => Nats::serve(core, subscriber).await,
                Err(error) => {
                    tracing::error!(target: "greenroom::cluster", %error, "no subscription");
                }
            }
        });
        let filter = nats.subjects.durable_of_group(&self.group, self.actor);
        let name = deliver::consumer_name(&["group", &self.group, self.actor]);
        let member: Arc<dyn Inbound> = Arc::clone(&self.member) as _;
        let consumer = deliver::Consumer {
            core: Arc::downgrade(&self.core),
            filter,
            name,
            in_flight_max: durable_max,
            // An actor may handle them one after the other.
            give_up: deliver::GiveUp::All,
            handle: Arc::new(move |request| Arc::clone(&member).handle(request)),
            stop: self.stop_durable.subscribe(),
        };
        self.tasks.spawn(consumer.run());
    }

    /// Waits until the other nodes have been told of the member. Before that it is found by nodes
    /// that ask for the group without knowing who is in it.
    pub async fn announced(&self) {
        self.core.announced().await;
    }

    /// Leaves the group: other nodes are told, then the member finishes what it has, for at most
    /// `within`. What comes in between is rejected, and goes to another member. Returns `false` if
    /// it did not finish.
    pub async fn leave(self, within: Duration) -> bool {
        self.member.drain();
        self.stop_durable.send_replace(true);
        self.core.note_change();
        let _ = timeout(ANNOUNCED_WITHIN, self.core.announced()).await;
        timeout(within, self.member.idle()).await.is_ok()
    }
}

impl Drop for Publication {
    fn drop(&mut self) {
        self.member.drain();
        self.core.directory.remove_member(&self.group, self.actor);
        self.core.note_change();
    }
}

impl fmt::Debug for Publication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publication")
            .field("group", &self.group)
            .field("actor", &self.actor)
            .finish_non_exhaustive()
    }
}
