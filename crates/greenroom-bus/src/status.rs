use serde::Serialize;

use crate::Server;

/// The state of a bus at one moment. Counters count from when the bus was created.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Status {
    /// `in_process`, `nats` or `redis`.
    pub adaptor: &'static str,
    /// Subscriptions of this process.
    pub subscriptions: usize,
    /// Topics that have subscriptions by name.
    pub topics: usize,
    /// Patterns with wildcards that have subscriptions.
    pub patterns: usize,
    /// Messages published by this process: delivered in-process, or taken by the server.
    pub published: u64,
    /// Messages put into a queue or taken by a sink. One message to 1,000 subscriptions counts
    /// 1,000.
    pub delivered: u64,
    /// Messages that subscriptions dropped because they were full, each reported in a gap.
    pub dropped: u64,
    /// Subscriptions that ended because they were full.
    pub overflow_closed: u64,
    /// Gaps after a reconnection, one for each subscription.
    pub reconnect_gaps: u64,
    /// The connection to Redis, if there is to be one.
    pub redis: Option<RemoteStatus>,
    /// The connection to NATS, if there is to be one.
    pub nats: Option<NatsStatus>,
}

impl Status {
    /// Returns the connection to the server, and the kind of server, if there is to be one.
    #[must_use]
    pub fn remote(&self) -> Option<(Server, &RemoteStatus)> {
        let nats = self.nats.as_ref().map(|nats| (Server::Nats, &nats.remote));
        let redis = self.redis.as_ref().map(|redis| (Server::Redis, redis));
        nats.or(redis)
    }
}

/// The state of a bus' connection to its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionState {
    /// The first connection is being tried.
    Connecting,
    /// The connection is up.
    Connected,
    /// The connection is lost; it is being tried again.
    Away,
    /// The bus has ended.
    Ended,
}

/// The connection of a bus to NATS.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct NatsStatus {
    /// The part that all servers have.
    #[serde(flatten)]
    pub remote: RemoteStatus,
    /// The server that the bus is connected to, or was last: its host and port.
    pub server: Option<String>,
    /// The replay from the stream, if there is to be one.
    pub replay: Option<ReplayStatus>,
}

/// The replay of a bus from a stream of NATS.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ReplayStatus {
    /// The name of the stream.
    pub stream: String,
    /// The sequence number of the last message that was received from the stream, or of the last in
    /// it when the bus first connected; `None` before that.
    pub sequence: Option<u64>,
    /// The number of messages that were received after a gap, from what the stream held.
    pub replayed: u64,
}

/// The connection of a bus to its server.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RemoteStatus {
    /// The state of the connection.
    pub state: ConnectionState,
    /// The number of connections that were lost.
    pub connections_lost: u64,
    /// The last failure to connect, or the last loss. Stays after a reconnection.
    pub last_error: Option<String>,
    /// Topics and patterns that the server has confirmed on this connection.
    pub subscribed: usize,
    /// Messages that wait to be published, those on their way included.
    pub publish_queue: usize,
    /// The same, in bytes of payload.
    pub publish_queue_bytes: usize,
    /// Messages that were taken for publishing and then refused, lost on their way, or abandoned.
    pub publish_failed: u64,
}
