use std::path::PathBuf;
use std::time::Duration;

use async_nats::ConnectOptions;
use percent_encoding::percent_decode_str;
use thiserror::Error;

use crate::names::{NameError, check_token};

/// The least lease, and the least wait before a redelivery: below it a pause of a virtual machine
/// would cost every lease.
const WAIT_MIN: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_hours(1);
/// The most replicas of what the servers keep.
const REPLICAS_MAX: usize = 5;

/// Settings of a node's connection to its cluster.
///
/// ```
/// use std::time::Duration;
/// use greenroom_cluster::ClusterSettings;
///
/// let settings = ClusterSettings::new("nats://10.0.0.1:4222,nats://10.0.0.2:4222")?
///     .node_name("images-1")
///     .lease(Duration::from_secs(10));
/// # Ok::<(), greenroom_cluster::SettingsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    pub(crate) servers: Vec<async_nats::ServerAddr>,
    pub(crate) login: Login,
    pub(crate) tls: Tls,
    pub(crate) limits: Limits,
}

/// The limits and names of a cluster, with or without servers.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) node_name: String,
    pub(crate) prefix: String,
    pub(crate) lease: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) message_bytes_max: usize,
    pub(crate) asks_per_node_max: u32,
    pub(crate) replicas: Option<usize>,
    pub(crate) durable_bytes_max: i64,
    pub(crate) durable_age_max: Duration,
    pub(crate) failures_max: u32,
    pub(crate) redeliver_after: Duration,
}

#[derive(Clone, Default)]
pub(crate) enum Login {
    #[default]
    OfAddress,
    Password {
        user: String,
        password: String,
    },
    Token(String),
    Credentials(PathBuf),
    Nkey(String),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Tls {
    pub(crate) is_required: bool,
    pub(crate) roots: Option<PathBuf>,
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
}

/// Settings that cannot work.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// An address is not one of a NATS server. It is not shown, for there may be a password in it.
    #[error(
        "address {number} of NATS cannot be used: it must be like `nats://host:4222`, \
         `nats://user:password@host:4222`, or `tls://host:4222`"
    )]
    Address {
        /// The number of the address, from 1.
        number: usize,
    },
    /// A name cannot be part of a subject.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A number is out of its range.
    #[error("{setting} is {value}, but must be {allowed}")]
    Range {
        /// The name of the setting.
        setting: &'static str,
        /// The value that was given.
        value: String,
        /// The values that are allowed.
        allowed: &'static str,
    },
}

impl ClusterSettings {
    /// Connects to the servers at these addresses, separated by commas: one is enough, the others
    /// of a cluster are learnt from it.
    ///
    /// # Errors
    /// The number of the address that cannot be used. No server is contacted.
    pub fn new(servers: &str) -> Result<Self, SettingsError> {
        let parse = |(place, address): (usize, &str)| {
            let number = place + 1;
            let error = |_| SettingsError::Address { number };
            address.trim().parse().map_err(error)
        };
        let servers = servers.split(',').enumerate().map(parse);
        Ok(Self {
            servers: servers.collect::<Result<_, _>>()?,
            login: Login::default(),
            tls: Tls::default(),
            limits: Limits::default(),
        })
    }

    /// Sets the name of this node in status and logs. Default: the host's name.
    #[must_use]
    pub fn node_name(mut self, name: impl Into<String>) -> Self {
        self.limits.node_name = name.into();
        self
    }

    /// Sets the first word of all subjects, buckets and streams, by which several clusters share
    /// servers. Default `greenroom`.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.limits.prefix = prefix.into();
        self
    }

    /// Sets the time after which a node that is not heard of has lost its entities. It says so
    /// three times within it. Default 6 s, 1 s to 1 h; all nodes of a cluster must have the same.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.limits.lease = lease;
        self
    }

    /// Sets the longest wait for a first connection. Default 5 s.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.limits.connect_timeout = timeout;
        self
    }

    /// Sets the largest message and the largest reply, in bytes when encoded. Default 512 KiB; the
    /// servers' own limit (`max_payload`, 1 MiB by default) holds besides.
    #[must_use]
    pub fn message_bytes_max(mut self, bytes: usize) -> Self {
        self.limits.message_bytes_max = bytes;
        self
    }

    /// Sets the number of asks of this node that may be under way at one other. Default 4,096;
    /// further ones are rejected here.
    #[must_use]
    pub fn asks_per_node_max(mut self, asks: u32) -> Self {
        self.limits.asks_per_node_max = asks;
        self
    }

    /// Sets the number of servers that keep each durable message, lease and state: 1 to 5. Default:
    /// 3 if the server is one of a cluster, else 1. Taken when the first node makes them.
    #[must_use]
    pub fn replicas(mut self, replicas: usize) -> Self {
        self.limits.replicas = Some(replicas);
        self
    }

    /// Sets the bytes and the age up to which durable messages that are not handled are kept.
    /// Default 256 MiB and 7 days. Beyond the bytes `deliver` is rejected. Taken when the first
    /// node makes the stream.
    #[must_use]
    pub fn durable_max(mut self, bytes: i64, age: Duration) -> Self {
        self.limits.durable_bytes_max = bytes;
        self.limits.durable_age_max = age;
        self
    }

    /// Sets how often a durable message may fail at one node, until it is a dead letter there.
    /// Default 20, with growing pauses of 1 s to 1 min. A node that is busy or drains, or an entity
    /// that cannot be activated, is no failure of the message.
    #[must_use]
    pub fn failures_max(mut self, failures: u32) -> Self {
        self.limits.failures_max = failures;
        self
    }

    /// Sets the time after which a durable message goes to another node, if nothing is heard of it;
    /// a node that handles one says so three times within it. Default 30 s, 1 s to 1 h. It is
    /// how long messages wait that a node had when it died.
    #[must_use]
    pub fn redeliver_after(mut self, after: Duration) -> Self {
        self.limits.redeliver_after = after;
        self
    }

    /// Logs in with a user and a password.
    #[must_use]
    pub fn login(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.login = Login::Password {
            user: user.into(),
            password: password.into(),
        };
        self
    }

    /// Logs in with a token.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.login = Login::Token(token.into());
        self
    }

    /// Logs in with a file of credentials (`nsc generate creds`): a JWT and its key.
    #[must_use]
    pub fn credentials_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.login = Login::Credentials(path.into());
        self
    }

    /// Logs in with the seed of an `NKey`.
    #[must_use]
    pub fn nkey(mut self, seed: impl Into<String>) -> Self {
        self.login = Login::Nkey(seed.into());
        self
    }

    /// Connects by TLS only. Addresses that begin with `tls://` say so too. If the process has not
    /// chosen a provider of cryptography for `rustls`, this chooses `ring`.
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.tls.is_required = true;
        self
    }

    /// Trusts servers by the certificates of this file (PEM), and connects by TLS only.
    #[must_use]
    pub fn tls_roots(mut self, path: impl Into<PathBuf>) -> Self {
        self.tls.roots = Some(path.into());
        self.tls()
    }

    /// Presents this certificate with its key (files, PEM) to servers that ask for it.
    #[must_use]
    pub fn tls_identity(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        self.tls.identity = Some((certificate.into(), key.into()));
        self.tls()
    }

    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        let Limits {
            prefix,
            lease,
            redeliver_after,
            replicas,
            ..
        } = &self.limits;
        check_token("the prefix", prefix)?;
        let waits = [
            ("the lease", lease),
            ("the wait before a redelivery", redeliver_after),
        ];
        let allowed = WAIT_MIN..=WAIT_MAX;
        let wrong = |(_, wait): &(_, &Duration)| !allowed.contains(*wait);
        if let Some((setting, wait)) = waits.into_iter().find(wrong) {
            return Err(SettingsError::Range {
                setting,
                value: format!("{wait:?}"),
                allowed: "1 s to 1 h",
            });
        }
        match replicas {
            Some(replicas) if !(1..=REPLICAS_MAX).contains(replicas) => Err(SettingsError::Range {
                setting: "the number of replicas",
                value: replicas.to_string(),
                allowed: "1 to 5",
            }),
            _ => Ok(()),
        }
    }

    pub(crate) fn uses_tls(&self) -> bool {
        self.tls.is_required
            || self
                .servers
                .iter()
                .any(async_nats::ServerAddr::tls_required)
    }

    /// Returns the options of a connection, but for its name and its callbacks.
    pub(crate) async fn options(&self) -> std::io::Result<ConnectOptions> {
        let options = ConnectOptions::new()
            .name(&self.limits.node_name)
            .connection_timeout(self.limits.connect_timeout)
            .require_tls(self.tls.is_required);
        let options = match &self.tls.roots {
            Some(roots) => options.add_root_certificates(roots.clone()),
            None => options,
        };
        let options = match &self.tls.identity {
            Some((certificate, key)) => {
                options.add_client_certificate(certificate.clone(), key.clone())
            }
            None => options,
        };
        match &self.login {
            Login::OfAddress => Ok(match self.servers.iter().find_map(of_address) {
                Some((user, Some(password))) => options.user_and_password(user, password),
                Some((token, None)) => options.token(token),
                None => options,
            }),
            Login::Password { user, password } => {
                Ok(options.user_and_password(user.clone(), password.clone()))
            }
            Login::Token(token) => Ok(options.token(token.clone())),
            Login::Credentials(path) => options.credentials_file(path).await,
            Login::Nkey(seed) => Ok(options.nkey(seed.clone())),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            node_name: host_name(),
            prefix: "greenroom".to_owned(),
            lease: Duration::from_secs(6),
            connect_timeout: Duration::from_secs(5),
            message_bytes_max: 512 * 1024,
            asks_per_node_max: 4_096,
            replicas: None,
            durable_bytes_max: 256 << 20,
            durable_age_max: Duration::from_hours(7 * 24),
            failures_max: 20,
            redeliver_after: Duration::from_secs(30),
        }
    }
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::OfAddress => "OfAddress",
            Self::Password { .. } => "Password(..)",
            Self::Token(_) => "Token(..)",
            Self::Credentials(_) => "Credentials(..)",
            Self::Nkey(_) => "Nkey(..)",
        })
    }
}

/// Returns the user and the password of an address, which the client itself passes over; or only
/// one word, which is a token.
fn of_address(address: &async_nats::ServerAddr) -> Option<(String, Option<String>)> {
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let user = address.username()?;
    Some((decode(user), address.password().map(decode)))
}

fn host_name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}
