use std::sync::Arc;

use greenroom_actor::{
    Actor, ActorRef, ActorSystem, Context, Directive, Handler, Limits, SpawnError, Supervision,
};
use parking_lot::Mutex;

use super::HostSettings;
use crate::entity::key::kind_of;
use crate::entity::{Activation, Entity};
use crate::remote::RemoteActor;

/// The parent of the entities of a host. An entity that fails ends: the next message activates it,
/// of what is stored.
pub(super) struct Guardian<E: Entity> {
    dispatcher: Option<String>,
    make: Make<E>,
}

/// Creates the actor of an activation.
pub(crate) type Make<E> = Arc<dyn Fn(Activation<<E as Entity>::State>) -> E + Send + Sync>;

/// A request for the actor of an activation.
pub(super) struct Spawn<E: Entity>(pub(super) Activation<E::State>);

/// The actor of an activation, which is killed unless somebody takes it: whoever asked for it may
/// not wait any more.
pub(super) struct Spawned<E: Entity>(Option<ActorRef<E>>);

impl<E: Entity> Spawned<E> {
    pub(super) fn take(mut self) -> ActorRef<E> {
        self.0.take().expect("it is taken once, with `self`")
    }
}

impl<E: Entity> Drop for Spawned<E> {
    fn drop(&mut self) {
        if let Some(actor) = &self.0 {
            actor.kill();
        }
    }
}

impl<E: Entity> Guardian<E> {
    pub(super) fn spawn(
        system: &ActorSystem,
        settings: &HostSettings,
        make: Make<E>,
    ) -> Result<ActorRef<Self>, SpawnError> {
        let dispatcher = settings.dispatcher.clone();
        let children_max = settings.active_max.saturating_add(settings.activating_max);
        let guardian = system.build(move || Self {
            dispatcher: dispatcher.clone(),
            make: Arc::clone(&make),
        });
        let kind = kind_of(<E as RemoteActor>::NAME);
        guardian
            .name(format!("entities-{kind}"))
            .limits(Limits::default().children(u32::try_from(children_max).unwrap_or(u32::MAX)))
            .spawn()
    }
}

impl<E: Entity> Actor for Guardian<E> {
    fn type_name() -> &'static str {
        "EntityGuardian"
    }

    fn supervision() -> Supervision {
        Supervision::one_for_one().always(Directive::Stop)
    }
}

impl<E: Entity> Handler<Spawn<E>> for Guardian<E> {
    type Reply = Result<Spawned<E>, SpawnError>;

    fn handle(&mut self, Spawn(activation): Spawn<E>, context: &mut Context<Self>) -> Self::Reply {
        let activation = Mutex::new(Some(Box::new(activation)));
        let make = Arc::clone(&self.make);
        let entity = context.build(move || {
            let activation = activation.lock().take();
            make(*activation.expect("an entity is not restarted, by its supervision"))
        });
        let spawned = match &self.dispatcher {
            Some(dispatcher) => entity.dispatcher(dispatcher.clone()).spawn(),
            None => entity.spawn(),
        };
        spawned.map(|actor| Spawned(Some(actor)))
    }
}
