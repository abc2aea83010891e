//! The group `outbox`: processes that do the tasks, which others tell of new ones.

use greenroom::actor::{Actor, ActorRef, ActorSystem, Mailbox, Overflow, messages};
use greenroom::actor::{AsyncHandler, Context};
use greenroom::cluster::{Cluster, Publication, Remote};

use super::{DISPATCHER, Outbox};
use crate::model::TaskKind;

/// The name of the group.
const GROUP: &str = "outbox";

/// The member of the group: an actor that wakes those which do the tasks.
pub(crate) struct Waker {
    outbox: Outbox,
}

impl Actor for Waker {
    fn mailbox() -> Mailbox {
        Mailbox::bounded(1_024).overflow(Overflow::Refuse)
    }
}

#[messages(remote = "outbox.v1")]
impl Waker {
    /// Has the actor of this kind look for tasks at once.
    #[message(derive(Debug))]
    pub(super) fn wake(&mut self, kind: TaskKind) {
        self.outbox.wake(kind);
    }
}

/// Makes this process a member of the group.
///
/// # Errors
/// Fails if there is no dispatcher `actors`, and as [`Cluster::publish`] does.
pub(crate) fn publish(
    cluster: &Cluster,
    system: &ActorSystem,
    outbox: &Outbox,
) -> anyhow::Result<Publication> {
    let outbox = outbox.clone();
    let make = move || Waker {
        outbox: outbox.clone(),
    };
    let actor = system.build(make).name("outbox-waker");
    let actor = actor.dispatcher(DISPATCHER).spawn()?;
    Ok(cluster.publish(GROUP, &actor)?)
}

/// An actor of a process without an outbox, which tells a member of the group of new tasks.
pub(super) struct Forwarder {
    group: Remote<Waker>,
}

impl Forwarder {
    pub(super) fn start(system: &ActorSystem, cluster: &Cluster) -> anyhow::Result<ActorRef<Self>> {
        let group: Remote<Waker> = cluster.actor(GROUP)?;
        let make = move || Self {
            group: group.clone(),
        };
        let actor = system.build(make).name("outbox-forwarder");
        Ok(actor.dispatcher(DISPATCHER).spawn()?)
    }
}

impl Actor for Forwarder {
    fn mailbox() -> Mailbox {
        Mailbox::bounded(256).overflow(Overflow::Refuse)
    }
}

impl AsyncHandler<Wake> for Forwarder {
    type Reply = ();

    async fn handle(&mut self, wake: Wake, _: &mut Context<Self>) {
        if let Err(error) = self.group.wake(wake.kind).tell().await {
            tracing::debug!(%error, "nobody was told of a task; it is found at the next look");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use greenroom::actor::{Dispatcher, Handler};
    use tokio::sync::mpsc;

    use super::*;
    use crate::outbox::{Actors, Look, Workers};

    /// Stands for the actor that does tasks of a kind.
    struct Probe(TaskKind, mpsc::UnboundedSender<TaskKind>);

    impl Actor for Probe {}

    impl Handler<Look> for Probe {
        type Reply = ();

        fn handle(&mut self, _: Look, _: &mut Context<Self>) {
            let _ = self.1.send(self.0);
        }
    }

    #[tokio::test]
    async fn who_writes_a_task_wakes_those_elsewhere_who_do_it() {
        let system = ActorSystem::builder().dispatcher(DISPATCHER, Dispatcher::pool(1));
        let system = system.build().expect("a system");
        let (told, mut hears) = mpsc::unbounded_channel();
        let probe = |kind| {
            let told = told.clone();
            system.spawn(move || Probe(kind, told.clone())).recipient()
        };
        let does_tasks = Outbox {
            workers: Workers::Here(Arc::new(Actors {
                mailman: probe(TaskKind::Mail),
                pusher: probe(TaskKind::Push),
                janitor: probe(TaskKind::Remove),
                webhooks: probe(TaskKind::Webhook),
            })),
            push_key: None,
        };
        let cluster = Cluster::local();
        let forwarder = Forwarder::start(&system, &cluster).expect("the name is allowed");
        let writes_tasks = Outbox {
            workers: Workers::Elsewhere(forwarder.recipient()),
            push_key: None,
        };
        let _member = publish(&cluster, &system, &does_tasks).expect("it is the first");
        for kind in TaskKind::ALL {
            writes_tasks.wake(kind);
            assert_eq!(hears.recv().await, Some(kind));
        }
    }
}
