//! The actor of these tests, and nodes for it.

use std::time::Duration;

use greenroom_actor::{Actor, ActorRef, ActorSystem, Mailbox, Overflow, messages};
use greenroom_cluster::{Cluster, ClusterSettings, Publication, Remote};
use greenroom_test_servers::NatsServer;
use tokio::sync::Semaphore;

/// Far longer than anything here takes.
pub(crate) const LONG: Duration = Duration::from_mins(1);

/// Counts, and says where.
#[derive(Debug)]
pub(crate) struct Counter {
    value: u64,
    name: &'static str,
}

impl Actor for Counter {
    fn mailbox() -> Mailbox {
        Mailbox::bounded(64).overflow(Overflow::Refuse)
    }
}

/// The permits that [`Counter::wait`] waits for, of tests that know nothing of each other.
pub(crate) static GATES: [Semaphore; 4] = [const { Semaphore::const_new(0) }; 4];
/// A permit for each [`Counter::wait`] that has begun.
pub(crate) static BEGUN: [Semaphore; 4] = [const { Semaphore::const_new(0) }; 4];

#[messages(remote = "counter.v1")]
impl Counter {
    /// Adds to the value.
    #[message]
    pub(crate) fn add(&mut self, amount: u64) -> u64 {
        self.value += amount;
        self.value
    }

    /// Returns the name of the counter.
    #[message]
    pub(crate) fn name(&self) -> String {
        self.name.to_owned()
    }

    /// Waits until the test lets it go on.
    #[message]
    pub(crate) async fn wait(&mut self, gate: usize) -> String {
        BEGUN[gate].add_permits(1);
        GATES[gate].acquire().await.expect("it is open").forget();
        self.name.to_owned()
    }

    /// Panics.
    #[message]
    pub(crate) fn fail(&mut self) {
        panic!("as it was asked to");
    }

    /// Fails, until it was called so often.
    #[message]
    pub(crate) fn succeed_at(&mut self, call: u64) -> u64 {
        self.value += 1;
        assert!(self.value >= call, "not yet");
        self.value
    }

    /// Returns as much text as it was given.
    #[message]
    pub(crate) fn echo(&mut self, text: String) -> String {
        text
    }

    /// Returns as many bytes as it is asked for.
    #[message]
    pub(crate) fn large(&mut self, bytes: usize) -> String {
        "x".repeat(bytes)
    }
}

pub(crate) fn server() -> NatsServer {
    NatsServer::settings().jet_stream().start()
}

pub(crate) async fn node(server: &NatsServer) -> Cluster {
    let settings = ClusterSettings::new(&server.url()).expect("an address");
    let settings = settings
        .connect_timeout(LONG)
        .redeliver_after(Duration::from_secs(2));
    Cluster::connect(settings).await.expect("it connects")
}

pub(crate) fn spawn(system: &ActorSystem, name: &'static str) -> ActorRef<Counter> {
    system.spawn(move || Counter { value: 0, name })
}

/// A node with a member of the group `counters`, which others know of.
pub(crate) struct Host {
    pub(crate) cluster: Cluster,
    pub(crate) publication: Publication,
    pub(crate) actor: ActorRef<Counter>,
    _system: ActorSystem,
}

pub(crate) async fn host(server: &NatsServer, name: &'static str) -> Host {
    let cluster = node(server).await;
    let system = ActorSystem::new().expect("a system");
    let actor = spawn(&system, name);
    let publication = cluster.publish("counters", &actor).expect("it is new");
    publication.announced().await;
    Host {
        cluster,
        publication,
        actor,
        _system: system,
    }
}

/// A node without a member, which knows of one, and its reference to the group.
pub(crate) async fn caller(server: &NatsServer) -> (Cluster, Remote<Counter>) {
    let cluster = node(server).await;
    cluster.member_known::<Counter>("counters").await;
    let counters = cluster.actor("counters").expect("a name");
    (cluster, counters)
}
