use serde::Serialize;

/// The state of a bus at one moment. Counters count from when the bus was created.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Status {
    /// `in_process` or `redis`.
    pub adaptor: &'static str,
    /// Subscriptions of this process.
    pub subscriptions: usize,
    /// Topics that have subscriptions by name.
    pub topics: usize,
    /// Patterns with wildcards that have subscriptions.
    pub patterns: usize,
    /// Messages published by this process: delivered in-process, or taken by Redis.
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
    pub redis: Option<RedisStatus>,
}

/// The state of a bus' connection to Redis.
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

/// The connection of a bus to Redis.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RedisStatus {
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
