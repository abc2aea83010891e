//! A connection to one server, or to all of a cluster.

use std::collections::HashMap;

use futures_util::future::join_all;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{MultipleNodeRoutingInfo, ResponsePolicy, RoutingInfo, Slot};
use redis::{AsyncConnectionConfig, ErrorKind, Pipeline, RedisError, RedisResult, Value};

use super::RedisSettings;
use super::push::Pushes;
use super::servers::Topology;

/// A connection, closed when dropped.
pub(super) enum Connection {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// A command of pub/sub.
pub(super) struct Command<'a> {
    pub(super) name: &'static str,
    pub(super) channel: &'a str,
    pub(super) payload: Option<&'a [u8]>,
}

/// The outcome of a command.
#[derive(Clone)]
pub(super) enum Outcome {
    Done(Value),
    /// The server refused it for good.
    Refused(RedisError),
    /// The cluster could not do it at this moment, and did not.
    Undone(RedisError),
    /// The command may have been carried out.
    Unknown(RedisError),
}

impl Connection {
    /// Opens a connection. Also returns the address of the server.
    pub(super) async fn open(
        settings: &RedisSettings,
        pushes: Pushes,
    ) -> RedisResult<(Self, String)> {
        let servers = &settings.servers;
        let client = match &servers.topology {
            Topology::One => servers.one()?,
            Topology::Sentinels { master } => servers.sentinels(master)?.async_get_client().await?,
            Topology::Cluster => {
                let client = servers.cluster(|builder| {
                    builder
                        .connection_timeout(settings.remote.connect_timeout)
                        .response_timeout(settings.remote.command_timeout)
                        .push_sender(pushes)
                })?;
                let connection = client.get_async_connection().await?;
                return Ok((Self::Cluster(connection), servers.to_string()));
            }
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(settings.remote.connect_timeout))
            .set_response_timeout(Some(settings.remote.command_timeout))
            .set_push_sender(pushes);
        let connection = client
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        let address = client.get_connection_info().addr().to_string();
        Ok((Self::One(connection), address))
    }

    /// Asks the server, or every server of the cluster, for a sign of life.
    pub(super) async fn ping(&mut self) -> RedisResult<()> {
        let ping = redis::cmd("PING");
        match self {
            Self::One(connection) => ping.query_async::<Value>(connection).await?,
            Self::Cluster(cluster) => {
                let everywhere = (
                    MultipleNodeRoutingInfo::AllNodes,
                    Some(ResponsePolicy::AllSucceeded),
                );
                let routing = RoutingInfo::MultiNode(everywhere);
                cluster.route_command(ping, routing).await?
            }
        };
        Ok(())
    }

    /// Sends commands. Returns the outcome of each, in their order. Those of one slot are carried
    /// out in their order; one server has one slot only.
    pub(super) async fn query(&mut self, commands: &[Command<'_>]) -> Vec<Outcome> {
        let cluster = match self {
            Self::One(connection) => {
                return query_in_order(connection.clone(), commands.iter()).await;
            }
            Self::Cluster(cluster) => cluster,
        };
        let mut slots: HashMap<Slot, Vec<usize>> = HashMap::new();
        for (index, command) in commands.iter().enumerate() {
            let slot = Slot::for_key(command.channel);
            slots.entry(slot).or_default().push(index);
        }
        let queries = slots.into_values().map(|slot| {
            let cluster = cluster.clone();
            async move {
                let in_slot = slot.iter().map(|index| &commands[*index]);
                let outcomes = query_in_order(cluster, in_slot).await;
                slot.into_iter().zip(outcomes)
            }
        });
        let mut outcomes: Vec<_> = join_all(queries).await.into_iter().flatten().collect();
        outcomes.sort_by_key(|(index, _)| *index);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }
}

async fn query_in_order<'c, 'p: 'c>(
    mut connection: impl ConnectionLike,
    commands: impl Iterator<Item = &'c Command<'p>>,
) -> Vec<Outcome> {
    let mut pipeline = Pipeline::new();
    for command in commands {
        pipeline.cmd(command.name).arg(command.channel);
        if let Some(payload) = command.payload {
            pipeline.arg(payload);
        }
    }
    let replies: RedisResult<Vec<RedisResult<Value>>> =
        pipeline.ignore_errors().query_async(&mut connection).await;
    match replies {
        Ok(replies) => replies
            .into_iter()
            .map(|reply| reply.map_or_else(Outcome::Refused, Outcome::Done))
            .collect(),
        Err(error) => vec![failure(error, pipeline.len()); pipeline.len()],
    }
}

/// Returns the outcome of a failed command. A cluster's rejection (`MOVED`, `TRYAGAIN`) is of all
/// commands of the slot: the first of them may have been carried out before it.
fn failure(error: RedisError, commands: usize) -> Outcome {
    match error.kind() {
        ErrorKind::ClusterConnectionNotFound => Outcome::Undone(error),
        ErrorKind::Server(_) if commands == 1 => Outcome::Undone(error),
        _ => Outcome::Unknown(error),
    }
}
