//! The activation of an entity: its lease is claimed, its state loaded, its actor spawned.

use std::fmt::Display;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use greenroom_actor::{ActorRef, AskError};
use tokio::time::{Instant, timeout};

use super::Host;
use super::guardian::Spawn;
use crate::codec;
use crate::entity::cell::Cell;
use crate::entity::content::{self, Applied};
use crate::entity::lease::Claim;
use crate::entity::state::is_kept;
use crate::entity::{Activation, Entity, Key, Stored};
use crate::names::EntityId;
use crate::wire::Rejection;

/// An activation of an entity.
pub(super) struct Active<E: Entity> {
    pub(super) actor: ActorRef<E>,
    pub(super) cell: Arc<Cell>,
    /// The number of times that the node had lost its lease before.
    pub(super) term: u64,
}

impl<E: Entity> Clone for Active<E> {
    fn clone(&self) -> Self {
        Self {
            actor: self.actor.clone(),
            cell: Arc::clone(&self.cell),
            term: self.term,
        }
    }
}

impl<E: Entity> Active<E> {
    /// Returns `true` if it takes no more messages, or must not.
    pub(super) fn has_ended(&self) -> bool {
        !self.actor.is_alive() || self.cell.has_ended()
    }
}

impl<E: Entity> Host<E> {
    /// Activates an entity, in its turn and within its time.
    pub(super) async fn activate(&self, id: &EntityId) -> Result<Active<E>, Rejection> {
        let within = self.settings.activation_timeout;
        let (key, claimed) = (Key::new(E::NAME, id.clone()), OnceLock::new());
        let activating = async {
            // Closed only with the host, which waits here.
            let _turn = self.activating.acquire().await;
            self.activate_now(&key, &claimed).await
        };
        let activated = timeout(within, activating).await;
        let activated = activated.unwrap_or_else(|_| {
            let within = humantime::format_duration(within);
            Err(not_active(format!("it took longer than {within}")))
        });
        if activated.is_err()
            && let Some(fence) = claimed.get()
        {
            self.release(&key, *fence).await;
        }
        match &activated {
            Ok(_) => self.counts.activated(),
            Err(Rejection::Moved { .. }) => {}
            Err(rejection) => {
                self.counts.not_activated();
                let (kind, id) = (Self::kind(), id.as_str());
                tracing::warn!(target: super::TARGET, kind, id, %rejection, "not activated");
            }
        }
        activated
    }

    /// Activates an entity; the fence of its lease is left in `claimed`, whatever comes of it.
    async fn activate_now(
        &self,
        key: &Key,
        claimed: &OnceLock<u64>,
    ) -> Result<Active<E>, Rejection> {
        let term = self.term()?;
        let claim = self.leases.claim(key).await;
        let claim = claim.map_err(|error| not_active(format!("its lease: {error}")))?;
        match claim {
            Claim::Owned { fence } => {
                let fence = *claimed.get_or_init(|| fence);
                self.last_fence.fetch_max(fence, Ordering::Relaxed);
                self.spawn(key, fence, term).await
            }
            Claim::HeldBy { node } => Err(Rejection::Moved { node }),
        }
    }

    async fn spawn(&self, key: &Key, fence: u64, term: u64) -> Result<Active<E>, Rejection> {
        let (state, cell) = self.load(key, fence).await?;
        let activation = Activation {
            id: key.id().clone(),
            fence,
            state: Stored::new(state, Arc::clone(&cell)),
        };
        let spawned = self.guardian.ask(Spawn(activation)).await;
        let spawned = spawned
            .map_err(|error: AskError| not_active(error))?
            .map_err(not_active)?;
        let actor = spawned.take();
        Ok(Active { actor, cell, term })
    }

    async fn load(&self, key: &Key, fence: u64) -> Result<(E::State, Arc<Cell>), Rejection> {
        let cell = |version, applied| {
            let keeper = Arc::clone(&self.keeper);
            Arc::new(Cell::new(key.clone(), fence, keeper, version, applied))
        };
        if !is_kept::<E::State>() {
            return Ok((E::State::default(), cell(0, Applied::default())));
        }
        let loaded = self.keeper.storage.load(key, fence).await;
        let loaded = loaded.map_err(|error| not_active(format!("its state: {error}")))?;
        let Some(content) = loaded.content else {
            return Ok((
                E::State::default(),
                cell(loaded.version, Applied::default()),
            ));
        };
        let (applied, state) = content::decode(content, Instant::now())
            .ok_or_else(|| not_active("its record is of a format that is not known here"))?;
        let state = codec::decode(&state)
            .map_err(|error| not_active(format!("its state cannot be read: {error}")))?;
        Ok((state, cell(loaded.version, applied)))
    }

    /// Gives a lease back. If that fails, the node has it as long as it hosts the kind, and claims
    /// it again with the next message.
    pub(super) async fn release(&self, key: &Key, fence: u64) {
        let releasing = self.leases.release(key, fence);
        match timeout(self.settings.activation_timeout, releasing).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(target: super::TARGET, %key, %error, "not released"),
            Err(_) => tracing::debug!(target: super::TARGET, %key, "not released in time"),
        }
    }
}

pub(super) fn not_active(error: impl Display) -> Rejection {
    let error = error.to_string();
    Rejection::NotActive { error }.cut()
}
