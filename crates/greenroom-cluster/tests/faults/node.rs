//! The processes of a run: this test's own program, run once more with a role.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use greenroom_actor::ActorSystem;
use greenroom_cluster::serde::{Deserialize, Serialize};
use greenroom_cluster::{Cluster, ClusterSettings, HostSettings};
use tokio::runtime::Builder;
use tokio::time::sleep;

use crate::actors::{Journal, PEN, Sink, note};
use crate::history::{Event, Pen};
use crate::{client, observer, tell};

/// The variable by which a process is told what it is.
pub(crate) const VARIABLE: &str = "GREENROOM_FAULTS_NODE";
/// The group of [`Sink`]s.
pub(crate) const GROUP: &str = "sinks";
/// The number of entities.
pub(crate) const ENTITIES: u32 = 5;

/// The description of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(crate = "greenroom_cluster::serde")]
pub(crate) struct Node {
    pub(crate) role: Role,
    /// The addresses of the servers.
    pub(crate) servers: String,
    pub(crate) prefix: String,
    pub(crate) lease_ms: u64,
    /// The file of its history.
    pub(crate) log: PathBuf,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(crate = "greenroom_cluster::serde")]
pub(crate) enum Role {
    /// Hosts entities, and is a member of the group, until it is killed.
    Host,
    /// Puts load on the hosts for some time.
    Client {
        seed: u64,
        number: u64,
        load_ms: u64,
    },
    /// Makes the stores that keep their history, before anything else.
    Prepare,
    /// Waits until all is handled, and writes down what entities say.
    Observe { within_ms: u64 },
    /// Writes down what the stores hold.
    Read,
}

/// Runs the process that the variable tells of, if there is one.
pub(crate) fn run() {
    let Ok(text) = std::env::var(VARIABLE) else {
        return;
    };
    let node: Node = serde_json::from_str(&text).expect("JSON");
    PEN.set(Pen::open(&node.log)).expect("it is the first");
    let log = tracing_subscriber::fmt().with_ansi(false);
    log.with_writer(std::io::stderr).init();
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        match node.role {
            Role::Host => host(&node).await,
            Role::Client {
                seed,
                number,
                load_ms,
            } => {
                let load = Duration::from_millis(load_ms);
                client::run(&connect(&node).await, (seed, number), load).await;
            }
            Role::Prepare => observer::prepare(&node).await,
            Role::Observe { within_ms } => {
                let deadline = Instant::now() + Duration::from_millis(within_ms);
                observer::observe(&node, deadline).await;
            }
            Role::Read => observer::read_stores(&node).await,
        }
    });
    runtime.shutdown_background();
}

async fn host(node: &Node) {
    let cluster = connect(node).await;
    let system = ActorSystem::new().expect("a system");
    let sink = system.spawn(|| Sink);
    let _published = cluster.publish(GROUP, &sink).expect("it is new");
    let settings = HostSettings::default()
        // Well below the length of a run: entities come and go also without faults.
        .passivate_after(Duration::from_millis(700))
        .handling_timeout(Duration::from_secs(10))
        .activation_timeout(Duration::from_secs(5));
    let _hosting = cluster
        .host_with(&system, settings, Journal::new)
        .expect("it is new");
    std::future::pending::<()>().await;
}

/// Joins the cluster, however long its servers cannot be reached.
pub(crate) async fn connect(node: &Node) -> Cluster {
    loop {
        let settings = ClusterSettings::new(&node.servers).expect("addresses");
        let lease = Duration::from_millis(node.lease_ms);
        let settings = settings
            .prefix(&node.prefix)
            .lease(lease)
            .redeliver_after(lease);
        match Box::pin(Cluster::connect(settings)).await {
            Ok(cluster) => {
                note(&Event::Joined);
                return cluster;
            }
            Err(error) => tell(&format!("not connected yet: {error}")),
        }
        sleep(Duration::from_millis(50)).await;
    }
}
