//! The entity of these tests, and nodes for it.

use std::time::Duration;

use greenroom_actor::{Actor, ActorSystem, messages};
use greenroom_cluster::{
    Activation, Cluster, ClusterSettings, Entity, HostSettings, Hosting, Remote, StateError, Stored,
};
use greenroom_test_servers::NatsServer;

/// Far longer than anything here takes.
pub(crate) const LONG: Duration = Duration::from_mins(1);

/// An account whose state is the amounts that were added.
pub(crate) struct Account {
    amounts: Stored<Vec<u64>>,
    fence: u64,
}

impl Actor for Account {}

impl Entity for Account {
    type State = Vec<u64>;
}

#[messages(remote = "account.v1")]
impl Account {
    pub(crate) fn new(activation: Activation<Vec<u64>>) -> Self {
        Self {
            amounts: activation.state,
            fence: activation.fence,
        }
    }

    /// Adds an amount.
    #[message]
    pub(crate) async fn add(&mut self, amount: u64) -> Result<(), StateError> {
        self.amounts.update(|amounts| amounts.push(amount)).await
    }

    /// Returns the amounts in the order in which they were added.
    #[message]
    pub(crate) fn amounts(&self) -> Vec<u64> {
        self.amounts.clone()
    }

    /// Never replies.
    #[message]
    pub(crate) async fn hang(&mut self) {
        std::future::pending::<()>().await;
    }

    /// Returns the number of the activation.
    #[message]
    pub(crate) fn fence(&self) -> u64 {
        self.fence
    }
}

/// The account of another program, of whose messages there is a newer version.
pub(crate) struct NewAccount;

impl Actor for NewAccount {}

impl Entity for NewAccount {
    type State = Vec<u64>;
}

#[messages(remote = "account.v2")]
impl NewAccount {
    /// Does nothing.
    #[message]
    pub(crate) fn rest(&self) {}
}

pub(crate) fn server() -> NatsServer {
    NatsServer::settings().jet_stream().start()
}

pub(crate) async fn node(url: &str, lease: Duration) -> Cluster {
    let settings = ClusterSettings::new(url).expect("an address");
    let settings = settings.connect_timeout(LONG).lease(lease);
    Cluster::connect(settings).await.expect("it connects")
}

/// A node that hosts accounts, which the others know of.
pub(crate) struct Host {
    pub(crate) cluster: Cluster,
    pub(crate) hosting: Hosting,
    _system: ActorSystem,
}

pub(crate) async fn host(url: &str, lease: Duration) -> Host {
    let cluster = node(url, lease).await;
    let (hosting, system) = host_at(&cluster);
    hosting.announced().await;
    Host {
        cluster,
        hosting,
        _system: system,
    }
}

pub(crate) fn host_at(cluster: &Cluster) -> (Hosting, ActorSystem) {
    let system = ActorSystem::new().expect("a system");
    let settings = HostSettings::default();
    let hosting = cluster.host_with(&system, settings, Account::new);
    (hosting.expect("it is new"), system)
}

pub(crate) fn account(cluster: &Cluster, id: &str) -> Remote<Account> {
    cluster.entity(id).expect("it is an id")
}
