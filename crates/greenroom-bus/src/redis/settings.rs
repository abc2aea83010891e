use std::time::Duration;

use redis::{Client, ConnectionInfo, IntoConnectionInfo, ProtocolVersion};

use crate::PAYLOAD_BYTES_MAX;

/// How to reach Redis, and how long to wait for it. Redis 6 is needed (RESP3), 7 for
/// [`sharded`](Self::sharded).
///
/// ```
/// use std::time::Duration;
/// use greenroom_bus::{Bus, RedisSettings, WhileAway};
///
/// let settings = RedisSettings::new("redis://127.0.0.1:6379")?
///     .while_away(WhileAway::Queue)
///     .command_timeout(Duration::from_secs(1));
/// # Ok::<(), greenroom_bus::SettingsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RedisSettings {
    pub(super) client: Client,
    pub(super) is_sharded: bool,
    pub(super) connect_timeout: Duration,
    pub(super) command_timeout: Duration,
    pub(super) ping_interval: Duration,
    pub(super) backoff_min: Duration,
    pub(super) backoff_max: Duration,
    pub(super) while_away: WhileAway,
    pub(super) publish_queue_max: usize,
    pub(super) publish_queue_bytes_max: usize,
}

/// What happens to what is published while Redis is away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhileAway {
    /// Publishing fails at once with [`PublishError::Away`](crate::PublishError::Away). Also what
    /// waited when the connection was lost, and was not sent yet.
    #[default]
    Fail,
    /// It waits in this process, up to the bounds of the publish queue, and is sent in its order
    /// once Redis is back. Beyond them publishing fails at once with
    /// [`PublishError::QueueFull`](crate::PublishError::QueueFull).
    Queue,
}

/// Settings that cannot work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The address is no URL of Redis.
    #[error("no address of Redis, such as `redis://user:password@host:6379`: {0}")]
    Address(#[source] redis::RedisError),
}

impl RedisSettings {
    /// The server at a URL: `redis://[user[:password]@]host[:port]`, or `unix:///path`. There is
    /// no TLS. Pub/sub knows no numbered databases: all that use one server share its topics.
    ///
    /// # Errors
    /// What is wrong with the URL. The server is not asked.
    pub fn new(url: &str) -> Result<Self, SettingsError> {
        let info = connection_info(url).map_err(SettingsError::Address)?;
        Ok(Self {
            client: Client::open(info).map_err(SettingsError::Address)?,
            is_sharded: false,
            connect_timeout: Duration::from_secs(2),
            command_timeout: Duration::from_secs(2),
            ping_interval: Duration::from_secs(5),
            backoff_min: Duration::from_millis(100),
            backoff_max: Duration::from_secs(5),
            while_away: WhileAway::default(),
            publish_queue_max: 1_024,
            publish_queue_bytes_max: 8 * PAYLOAD_BYTES_MAX,
        })
    }

    /// Uses sharded pub/sub (`SPUBLISH`, `SSUBSCRIBE`), in which a node of a cluster does not tell
    /// all others of each message. Default no. All who share topics must choose the same. There
    /// are no patterns then. The bus talks to one node: topics that another one is responsible for
    /// are refused with that node's address in the server's words (`MOVED`).
    #[must_use]
    pub fn sharded(mut self, is_sharded: bool) -> Self {
        self.is_sharded = is_sharded;
        self
    }

    /// The longest wait for a connection, greeting and log-in included. Default 2 s.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// The longest wait for an answer. After it the connection counts as lost. Default 2 s.
    #[must_use]
    pub fn command_timeout(mut self, timeout: Duration) -> Self {
        self.command_timeout = timeout;
        self
    }

    /// How often the server is asked whether it is there. A server that vanished without a word is
    /// noticed after this and [`command_timeout`](Self::command_timeout): 7 s by default. Default
    /// 5 s, at least 1 ms.
    #[must_use]
    pub fn ping_interval(mut self, interval: Duration) -> Self {
        self.ping_interval = interval.max(Duration::from_millis(1));
        self
    }

    /// The waits before the tries to connect again: the first, doubled after each try up to the
    /// longest; each is made longer by a random part of itself, so that not all processes come at
    /// once. Default 100 ms and 5 s: 0.1 to 0.2 s, 0.2 to 0.4, 0.4 to 0.8, 0.8 to 1.6, 1.6 to 3.2,
    /// 3.2 to 6.4, then 5 to 10 s each. After a connection that lasted for the longest wait it
    /// begins again with the first.
    #[must_use]
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.backoff_min = first;
        self.backoff_max = longest.max(first);
        self
    }

    /// What happens to what is published while Redis is away. Default [`WhileAway::Fail`].
    #[must_use]
    pub fn while_away(mut self, while_away: WhileAway) -> Self {
        self.while_away = while_away;
        self
    }

    /// How many messages, and how many bytes of payload, may wait for Redis, those on their way
    /// included. Default 1,024 and 8 MiB; at least 1 and [`PAYLOAD_BYTES_MAX`], at most 2^28 each.
    /// While connected, [`Bus::publish`](crate::Bus::publish) waits for room beyond that.
    #[must_use]
    pub fn publish_queue(mut self, messages_max: usize, bytes_max: usize) -> Self {
        const MOST: usize = 1 << 28;
        self.publish_queue_max = messages_max.clamp(1, MOST);
        self.publish_queue_bytes_max = bytes_max.clamp(PAYLOAD_BYTES_MAX, MOST);
        self
    }
}

fn connection_info(url: &str) -> redis::RedisResult<ConnectionInfo> {
    let info = url.into_connection_info()?;
    let redis = info.redis_settings().clone();
    Ok(info.set_redis_settings(redis.set_protocol(ProtocolVersion::RESP3)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_address_is_refused_with_an_example() {
        let error = RedisSettings::new("http://127.0.0.1").expect_err("no address of Redis");
        assert!(
            error
                .to_string()
                .contains("`redis://user:password@host:6379`")
        );
        assert!(RedisSettings::new("redis://127.0.0.1:6379").is_ok());
    }
}
