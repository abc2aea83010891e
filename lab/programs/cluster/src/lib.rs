//! Questions to an actor of another node, as many as a case wants.

mod load;
mod recovery;
mod window;

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::{Args, ValueEnum};

/// The deadline of a question.
pub const DEADLINE: Duration = Duration::from_secs(5);
/// The text of each message.
pub const TEXT: &str = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
/// The entities among which questions are divided.
const ENTITIES: u64 = 1_000;
/// The time that a node has to be there.
const START: Duration = Duration::from_secs(30);
/// The pause after which something is tried again, or measured when all is quiet.
const PAUSE: Duration = Duration::from_millis(200);

/// A case, and the rate, the time and the number of its questions.
#[derive(Clone, Debug, Args)]
pub struct Questions {
    #[arg(value_enum)]
    case: Case,
    /// Asks per second; from 1,000 on, its thousandth is asked each millisecond
    rate: u64,
    seconds: u64,
    /// Seconds of as many asks as go, before the measurement
    warm_up: u64,
    /// Entities to activate
    entities: u64,
}

/// A case of the experiment.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Case {
    /// Asks at a rate
    Ask,
    /// As many asks and tells as go
    Flood,
    /// Entities are activated
    Entities,
    /// The node of an entity is killed
    Recover,
}

/// The client's side of a contestant. Questions have [`DEADLINE`].
pub trait Peer: Clone + Send + Sync + 'static {
    /// True if it has entities.
    const HAS_ENTITIES: bool;

    /// Asks for the number after this one.
    fn ask(&self, number: u64) -> impl Future<Output = anyhow::Result<u64>> + Send;

    /// Sends a message without a reply.
    fn tell(&self, number: u64) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// Asks for the number of messages that were told.
    fn told(&self) -> impl Future<Output = anyhow::Result<u64>> + Send;

    /// Asks an entity for the number after this one.
    fn ask_entity(
        &self,
        id: String,
        number: u64,
    ) -> impl Future<Output = anyhow::Result<u64>> + Send;

    /// Asks an entity for the process that it lives in.
    fn holder(&self, id: String) -> impl Future<Output = anyhow::Result<u64>> + Send;
}

/// Asks what is to be asked, and prints the figures.
///
/// # Errors
/// If the node does not come up, or what must not fail does.
pub async fn run<P: Peer>(peer: P, questions: &Questions) -> anyhow::Result<()> {
    let begin = Instant::now();
    while let Err(error) = peer.ask(0).await {
        if begin.elapsed() > START {
            return Err(error.context("no node answers"));
        }
        tokio::time::sleep(PAUSE).await;
    }
    let figures = match questions.case {
        Case::Ask => load::at_a_rate(&peer, questions).await?,
        Case::Flood => load::flood(&peer, questions).await?,
        Case::Entities | Case::Recover if !P::HAS_ENTITIES => bail!("it has no entities"),
        Case::Entities => load::entities(&peer, questions).await?,
        Case::Recover => recovery::recover(&peer).await?,
    };
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}
