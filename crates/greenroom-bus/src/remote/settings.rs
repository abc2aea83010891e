use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::PAYLOAD_BYTES_MAX;

/// Time-outs and queues of a connection to a server, of any kind.
#[derive(Clone, Debug)]
pub(crate) struct RemoteSettings {
    pub(crate) connect_timeout: Duration,
    pub(crate) command_timeout: Duration,
    pub(crate) ping_interval: Duration,
    pub(crate) backoff_min: Duration,
    pub(crate) backoff_max: Duration,
    pub(crate) while_away: WhileAway,
    pub(crate) publish_queue_max: usize,
    pub(crate) publish_queue_bytes_max: usize,
}

impl Default for RemoteSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(2),
            command_timeout: Duration::from_secs(2),
            ping_interval: Duration::from_secs(5),
            backoff_min: Duration::from_millis(100),
            backoff_max: Duration::from_secs(5),
            while_away: WhileAway::default(),
            publish_queue_max: 1_024,
            publish_queue_bytes_max: 8 * PAYLOAD_BYTES_MAX,
        }
    }
}

impl RemoteSettings {
    /// Returns the waits before the tries to connect again.
    pub(crate) fn delays(&self) -> ExponentialBackoff {
        ExponentialBuilder::new()
            .with_min_delay(self.backoff_min)
            .with_max_delay(self.backoff_max)
            .without_max_times()
            .with_jitter()
            .build()
    }

    pub(crate) fn set_ping_interval(&mut self, interval: Duration) {
        self.ping_interval = interval.max(Duration::from_millis(1));
    }

    pub(crate) fn set_backoff(&mut self, first: Duration, longest: Duration) {
        self.backoff_min = first;
        self.backoff_max = longest.max(first);
    }

    pub(crate) fn set_publish_queue(&mut self, messages_max: usize, bytes_max: usize) {
        const MOST: usize = 1 << 28;
        self.publish_queue_max = messages_max.clamp(1, MOST);
        self.publish_queue_bytes_max = bytes_max.clamp(PAYLOAD_BYTES_MAX, MOST);
    }
}

/// Defines the setters that the settings of all kinds of servers have, for a field `remote`. What a
/// ping does differs.
macro_rules! remote_settings {
    ($(#[$ping:meta])*) => {
        /// Sets the longest wait for a connection, greeting and log-in included. Default 2 s.
        #[must_use]
        pub fn connect_timeout(mut self, timeout: std::time::Duration) -> Self {
            self.remote.connect_timeout = timeout;
            self
        }

        /// Sets the longest wait for a reply. After it the connection counts as lost. Default 2 s.
        #[must_use]
        pub fn command_timeout(mut self, timeout: std::time::Duration) -> Self {
            self.remote.command_timeout = timeout;
            self
        }

        $(#[$ping])*
        #[must_use]
        pub fn ping_interval(mut self, interval: std::time::Duration) -> Self {
            self.remote.set_ping_interval(interval);
            self
        }

        /// Sets the waits before the tries to connect again: the first, doubled after each try up
        /// to the longest; each is made longer by a random fraction of itself, so that not all
        /// processes come at once. Default 100 ms and 5 s: 0.1 to 0.2 s, 0.2 to 0.4, 0.4 to 0.8,
        /// 0.8 to 1.6, 1.6 to 3.2, 3.2 to 6.4, then 5 to 10 s each. After a connection that lasted
        /// for the longest wait it begins again with the first.
        #[must_use]
        pub fn backoff(mut self, first: std::time::Duration, longest: std::time::Duration) -> Self {
            self.remote.set_backoff(first, longest);
            self
        }

        /// Sets the policy for messages that are published while the server is away. Default
        /// [`WhileAway::Fail`](crate::WhileAway::Fail).
        #[must_use]
        pub fn while_away(mut self, while_away: crate::WhileAway) -> Self {
            self.remote.while_away = while_away;
            self
        }

        /// Sets the most messages, and the most bytes of payload, that may wait for the server,
        /// those on their way included. Default 1,024 and 8 MiB; at least 1 and
        /// [`PAYLOAD_BYTES_MAX`](crate::PAYLOAD_BYTES_MAX), at most 2^28 each. While connected,
        /// [`Bus::publish`](crate::Bus::publish) waits for space beyond that.
        #[must_use]
        pub fn publish_queue(mut self, messages_max: usize, bytes_max: usize) -> Self {
            self.remote.set_publish_queue(messages_max, bytes_max);
            self
        }
    };
}
pub(crate) use remote_settings;

/// The policy for messages that are published while the server is away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhileAway {
    /// Publishing fails at once with [`PublishError::Away`](crate::PublishError::Away). So do
    /// messages that waited when the connection was lost, and were not sent yet.
    #[default]
    Fail,
    /// Messages wait in this process, up to the bounds of the publish queue, and are sent in their
    /// order once the server is back. Beyond the bounds publishing fails at once with
    /// [`PublishError::QueueFull`](crate::PublishError::QueueFull).
    Queue,
}

/// Settings that cannot work. No error shows an address, for there may be a password in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// An address is not a URL of such a server.
    #[error(
        "address {number} of {server} cannot be used: {reason}; it must be like {}; in a user and \
         a password, `%`, `/`, `:`, `?`, `#` and `@` are written `%25`, `%2F`, `%3A`, `%3F`, `%23` \
         and `%40`",
        server.examples()
    )]
    Address {
        /// The kind of server.
        server: Server,
        /// The number of the address, from 1.
        number: usize,
        /// The fault of the address.
        reason: String,
    },
    /// No address is given.
    #[error("at least one address of {server} must be given, like {}", server.examples())]
    NoAddress {
        /// The kind of server.
        server: Server,
    },
    /// A file of credentials cannot be used.
    #[error("the credentials in `{}` cannot be used: {reason}", path.display())]
    Credentials {
        /// The file.
        path: PathBuf,
        /// The fault of the file.
        reason: String,
    },
    /// A name is not one that the server allows.
    #[error("{what} is `{name}`, and must be {allowed}")]
    Name {
        /// The setting.
        what: &'static str,
        /// The name.
        name: String,
        /// The names that are allowed.
        allowed: &'static str,
    },
    /// Certificates are given for a connection without TLS.
    #[error(
        "certificates are for TLS: the addresses of {server} must begin with `{}`",
        server.tls_scheme()
    )]
    NoTls {
        /// The kind of server.
        server: Server,
    },
    /// A certificate or a key cannot be used.
    #[error("{what} must be given as PEM (`-----BEGIN …-----`): {reason}")]
    Pem {
        /// The setting: a certificate or a key.
        what: &'static str,
        /// The fault of the certificate or key.
        reason: &'static str,
    },
    /// Addresses of one cluster, or of one master's Sentinels, do not agree.
    #[error("address {number} of {server} differs from address 1 in {what}; all must agree")]
    Unlike {
        /// The kind of server.
        server: Server,
        /// The number of the address, from 1.
        number: usize,
        /// The differing setting: user, password or TLS.
        what: &'static str,
    },
}

/// A kind of server that a bus can be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Server {
    /// NATS.
    Nats,
    /// Redis.
    Redis,
}

impl Server {
    /// Returns its name: `NATS`, `Redis`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nats => "NATS",
            Self::Redis => "Redis",
        }
    }

    fn examples(self) -> &'static str {
        match self {
            Self::Nats => {
                "`nats://user:password@host:4222`, `nats://token@host:4222`, or \
                 `tls://user:password@host:4222` for TLS"
            }
            Self::Redis => {
                "`redis://user:password@host:6379`, `rediss://user:password@host:6379` for TLS, or \
                 `unix:///path` for one server on this machine"
            }
        }
    }

    fn tls_scheme(self) -> &'static str {
        match self {
            Self::Nats => "tls://",
            Self::Redis => "rediss://",
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

pub(crate) fn check_certificates(what: &'static str, pem: &[u8]) -> Result<(), SettingsError> {
    let mut count = 0;
    for certificate in CertificateDer::pem_slice_iter(pem) {
        if certificate.is_err() {
            let reason = "a part of it cannot be read";
            return Err(SettingsError::Pem { what, reason });
        }
        count += 1;
    }
    if count == 0 {
        let reason = "there is no certificate in it";
        return Err(SettingsError::Pem { what, reason });
    }
    Ok(())
}

pub(crate) fn check_key(pem: &[u8]) -> Result<(), SettingsError> {
    if PrivateKeyDer::from_pem_slice(pem).is_err() {
        let what = "the client's key";
        let reason = "there is no private key in it";
        return Err(SettingsError::Pem { what, reason });
    }
    Ok(())
}
