use serde::Serialize;

use crate::ConnectionState;

/// A bus at one moment. Counters count from when the bus was made.
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
    /// Messages that were published by this process: delivered in-process, or taken by Redis.
    pub published: u64,
    /// Messages that were put into a queue or taken by a sink. One message to 1,000 subscriptions
    /// counts 1,000.
    pub delivered: u64,
    /// Messages that subscriptions dropped because they were full, each told of in a gap.
    pub dropped: u64,
    /// Subscriptions that ended because they were full.
    pub overflow_closed: u64,
    /// Gaps after a reconnection, one for each subscription.
    pub reconnect_gaps: u64,
    /// The connection to Redis, if there is to be one.
    pub redis: Option<RedisStatus>,
}

/// The connection of a bus to Redis.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RedisStatus {
    /// Whether there is one.
    pub state: ConnectionState,
    /// How many connections were lost.
    pub connections_lost: u64,
    /// What the last failure to connect, or the last loss, was. Stays after a reconnection.
    pub last_error: Option<String>,
    /// Topics and patterns that the server has confirmed on this connection.
    pub subscribed: usize,
    /// Messages that wait to be published, those on their way included.
    pub publish_queue: usize,
    /// The same, in bytes of payload.
    pub publish_queue_bytes: usize,
    /// Messages that were taken for publishing and then refused, lost on their way, or given up.
    pub publish_failed: u64,
}
