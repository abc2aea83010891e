//! An entity for tests, and hosts of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use greenroom_actor::{Actor, ActorSystem, AsyncHandler, Context, Handler, marker};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::codec;
use crate::entity::host::{Host, HostParts};
use crate::entity::lease::Leases;
use crate::entity::{Activation, Entity, HostSettings, StateError, Storage, Stored};
use crate::meters::Meters;
use crate::names::EntityId;
use crate::remote::{Handlers, RemoteActor, RemoteMessage};
use crate::wire::{Inbound, Rejection, Request, Target};

pub(super) const LEASE: Duration = Duration::from_secs(6);

/// The amounts that were added, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Amounts(pub(super) Vec<u64>);

pub(super) struct Account {
    state: Stored<Amounts>,
    id: EntityId,
    fence: u64,
    peeks: u64,
}

/// A message that can be asked with.
pub(super) trait Asked: Serialize {
    type Reply: DeserializeOwned;
}

/// Returns the permits that [`Wait`] waits for at the account of this id.
pub(super) fn gate(id: &str) -> Arc<Semaphore> {
    static GATES: Mutex<BTreeMap<String, Arc<Semaphore>>> = Mutex::new(BTreeMap::new());
    let mut gates = GATES.lock();
    let gate = gates.entry(id.to_owned());
    Arc::clone(gate.or_insert_with(|| Arc::new(Semaphore::new(0))))
}

impl Actor for Account {}

impl Entity for Account {
    type State = Amounts;
}

impl Account {
    fn new(activation: Activation<Amounts>) -> Self {
        Self {
            state: activation.state,
            id: activation.id,
            fence: activation.fence,
            peeks: 0,
        }
    }
}

/// Adds an amount, and returns all.
#[derive(Serialize, Deserialize)]
pub(super) struct Add(pub(super) u64);

impl AsyncHandler<Add> for Account {
    type Reply = Result<Vec<u64>, StateError>;

    async fn handle(&mut self, Add(amount): Add, _: &mut Context<Self>) -> Self::Reply {
        let update = |amounts: &mut Amounts| {
            amounts.0.push(amount);
            amounts.0.clone()
        };
        self.state.update(update).await
    }
}

/// Returns all amounts, and the fence.
#[derive(Serialize, Deserialize)]
pub(super) struct Read;

impl Handler<Read> for Account {
    type Reply = (Vec<u64>, u64);

    fn handle(&mut self, _: Read, _: &mut Context<Self>) -> (Vec<u64>, u64) {
        (self.state.0.clone(), self.fence)
    }
}

/// Adds an amount when the test lets it go on.
#[derive(Serialize, Deserialize)]
pub(super) struct Wait(pub(super) u64);

impl AsyncHandler<Wait> for Account {
    type Reply = Result<Vec<u64>, StateError>;

    async fn handle(&mut self, Wait(amount): Wait, context: &mut Context<Self>) -> Self::Reply {
        let gate = gate(self.id.as_str());
        gate.acquire().await.expect("it is open").forget();
        AsyncHandler::handle(self, Add(amount), context).await
    }
}

/// Returns how often it was handled, when the test lets it go on. Saves nothing.
#[derive(Serialize, Deserialize)]
pub(super) struct Peek;

impl AsyncHandler<Peek> for Account {
    type Reply = u64;

    async fn handle(&mut self, _: Peek, _: &mut Context<Self>) -> u64 {
        let gate = gate(self.id.as_str());
        gate.acquire().await.expect("it is open").forget();
        self.peeks += 1;
        self.peeks
    }
}

/// Adds an amount, and panics.
#[derive(Serialize, Deserialize)]
pub(super) struct Fail(pub(super) u64);

impl AsyncHandler<Fail> for Account {
    type Reply = ();

    async fn handle(&mut self, Fail(amount): Fail, context: &mut Context<Self>) {
        let added = AsyncHandler::handle(self, Add(amount), context).await;
        panic!("as it was asked to, after {added:?}");
    }
}

/// Begins to add an amount, and leaves it at that.
#[derive(Serialize, Deserialize)]
pub(super) struct Begin(pub(super) u64);

impl AsyncHandler<Begin> for Account {
    type Reply = Result<(), StateError>;

    async fn handle(&mut self, Begin(amount): Begin, _: &mut Context<Self>) -> Self::Reply {
        let updating = self.state.update(|amounts| amounts.0.push(amount));
        let _ = futures_util::poll!(std::pin::pin!(updating));
        self.state.update(|_| ()).await
    }
}

/// A message whose type panics when it is decoded.
#[derive(Serialize)]
pub(super) struct Explode;

impl<'de> Deserialize<'de> for Explode {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("as such types do");
    }
}

impl Handler<Explode> for Account {
    type Reply = ();

    fn handle(&mut self, _: Explode, _: &mut Context<Self>) {}
}

macro_rules! messages {
    ($($message:ident $name:literal $kind:ident $reply:ty,)*) => {
        $(
            impl RemoteMessage<$message> for Account {
                const NAME: &'static str = $name;
            }

            impl Asked for $message {
                type Reply = $reply;
            }
        )*

        impl RemoteActor for Account {
            const NAME: &'static str = "account.v1";

            fn register(handlers: &mut Handlers<Self>) {
                $(handlers.add::<$message, marker::$kind>();)*
            }
        }
    };
}

messages! {
    Add "add" Async Result<Vec<u64>, StateError>,
    Begin "begin" Async Result<(), StateError>,
    Explode "explode" Sync (),
    Fail "fail" Async (),
    Peek "peek" Async u64,
    Read "read" Sync (Vec<u64>, u64),
    Wait "wait" Async Result<Vec<u64>, StateError>,
}

/// A host of accounts, as a node would have it.
pub(super) struct Node {
    pub(super) host: Arc<Host<Account>>,
    pub(super) held_until: watch::Sender<Option<Instant>>,
    _tasks: JoinSet<()>,
    _system: ActorSystem,
}

impl Node {
    pub(super) fn new(leases: impl Leases, storage: impl Storage, settings: HostSettings) -> Self {
        let system = ActorSystem::new().expect("there is a runtime");
        let held_until = watch::Sender::new(None);
        let parts = HostParts {
            leases: Arc::new(leases),
            storage: Arc::new(storage),
            held_until: held_until.subscribe(),
            lease: LEASE,
            repeated_within: Duration::from_mins(4),
            meters: Arc::new(Meters::new()),
        };
        let started = Host::start(&system, settings, Arc::new(Account::new), parts);
        let (host, tasks) = started.expect("it is spawned");
        Self {
            host,
            held_until,
            _tasks: tasks,
            _system: system,
        }
    }

    /// Asks an account.
    pub(super) async fn ask<M: Asked>(&self, id: &str, message: M) -> Result<M::Reply, Rejection>
    where
        Account: RemoteMessage<M>,
    {
        let request = request(id, &message, None);
        let response = Arc::clone(&self.host).handle(request).await;
        let reply = response.outcome?;
        Ok(codec::decode(&reply).expect("it is the reply to this message"))
    }

    /// Delivers a durable message to an account.
    pub(super) async fn deliver<M: Asked>(
        &self,
        id: &str,
        durable: &str,
        message: M,
    ) -> Result<(), Rejection>
    where
        Account: RemoteMessage<M>,
    {
        let request = request(id, &message, Some(durable));
        let response = Arc::clone(&self.host).handle(request).await;
        response.outcome.map(|_| ())
    }
}

pub(super) fn request<M: Serialize>(id: &str, message: &M, durable: Option<&str>) -> Request
where
    Account: RemoteMessage<M>,
{
    Request {
        target: Target::Entity(EntityId::new(id).expect("it is short")),
        actor: <Account as RemoteActor>::NAME.into(),
        message: <Account as RemoteMessage<M>>::NAME.into(),
        timeout: Some(Duration::from_mins(5)),
        id: durable.map(Into::into),
        payload: codec::encode(message).expect("it can be encoded"),
    }
}
