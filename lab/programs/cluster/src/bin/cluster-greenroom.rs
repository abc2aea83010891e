//! greenroom-cluster: a node with an actor and with entities, and a client.

use std::time::Duration;

use clap::Parser;
use greenroom_actor::{Actor, ActorSystem, messages};
use greenroom_cluster::{Cluster, ClusterSettings, Entity, HostSettings, Remote};
use lab_cluster::{DEADLINE, Peer, Questions, TEXT};

/// Has an actor and entities, or asks them.
#[derive(Debug, Parser)]
enum Role {
    /// Has an actor and entities
    Node {
        url: String,
        /// Entities that are active at a time
        #[arg(long, default_value_t = 100_000)]
        active_max: usize,
    },
    /// Asks them
    Client {
        url: String,
        #[command(flatten)]
        questions: Questions,
    },
}

/// The actor that is asked, alone or as an entity.
#[derive(Debug, Default)]
struct Answerer {
    told: u64,
}

impl Actor for Answerer {}

impl Entity for Answerer {
    type State = ();
}

#[messages(remote = "answerer.v1")]
impl Answerer {
    #[message]
    fn answer(
        &mut self,
        number: u64,
        #[expect(unused, reason = "its size matters")] text: String,
    ) -> u64 {
        number + 1
    }

    #[message]
    fn note(&mut self, #[expect(unused)] number: u64, #[expect(unused)] text: String) {
        self.told += 1;
    }

    #[message]
    fn told(&mut self) -> u64 {
        self.told
    }

    #[message]
    fn holder(&mut self) -> u64 {
        std::process::id().into()
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Role::parse() {
        Role::Node { url, active_max } => {
            let cluster = connected(&url).await?;
            let system = ActorSystem::new()?;
            let answerer = system.spawn(Answerer::default);
            let _publication = cluster.publish("answerer", &answerer)?;
            let settings = HostSettings::default()
                .active_max(active_max)
                // Those that were asked first are active to the end.
                .passivate_after(Duration::from_hours(1));
            let _hosting = cluster.host_with(&system, settings, |_| Answerer::default())?;
            std::future::pending().await
        }
        Role::Client { url, questions } => {
            let cluster = connected(&url).await?;
            cluster.member_known::<Answerer>("answerer").await;
            cluster.host_known::<Answerer>().await;
            let answerer = cluster.actor("answerer")?;
            lab_cluster::run(Client { cluster, answerer }, &questions).await
        }
    }
}

async fn connected(url: &str) -> anyhow::Result<Cluster> {
    loop {
        match Box::pin(Cluster::connect(ClusterSettings::new(url)?)).await {
            Ok(cluster) => return Ok(cluster),
            // The server has been started just now.
            Err(error) => eprintln!("{error}"),
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[derive(Clone, Debug)]
struct Client {
    cluster: Cluster,
    answerer: Remote<Answerer>,
}

impl Peer for Client {
    const HAS_ENTITIES: bool = true;

    async fn ask(&self, number: u64) -> anyhow::Result<u64> {
        let ask = self.answerer.answer(number, TEXT.to_owned());
        Ok(ask.timeout(DEADLINE).ask().await?)
    }

    async fn tell(&self, number: u64) -> anyhow::Result<()> {
        Ok(self.answerer.note(number, TEXT.to_owned()).tell().await?)
    }

    async fn told(&self) -> anyhow::Result<u64> {
        Ok(self.answerer.told().timeout(DEADLINE).ask().await?)
    }

    async fn ask_entity(&self, id: String, number: u64) -> anyhow::Result<u64> {
        let entity = self.cluster.entity::<Answerer>(id.as_str())?;
        let ask = entity.answer(number, TEXT.to_owned());
        Ok(ask.timeout(DEADLINE).ask().await?)
    }

    async fn holder(&self, id: String) -> anyhow::Result<u64> {
        let entity = self.cluster.entity::<Answerer>(id.as_str())?;
        Ok(entity.holder().timeout(DEADLINE).ask().await?)
    }
}
