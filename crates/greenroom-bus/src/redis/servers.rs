//! The addresses of Redis, and the log-in there.

use std::fmt;

use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use redis::{
    Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion,
    RedisResult, TlsCertificates, TlsMode,
};

use crate::SettingsError;
use crate::remote::{Server, check_certificates, check_key};

const SERVER: Server = Server::Redis;

/// The servers of a bus. All addresses agree in user, password and TLS.
#[derive(Clone, Debug)]
pub(super) struct Servers {
    pub(super) topology: Topology,
    /// One address or more.
    addresses: Vec<ConnectionInfo>,
    login: Option<Login>,
    certificates: Option<TlsCertificates>,
}

/// The kind of servers that the addresses are of.
#[derive(Clone, Debug)]
pub(super) enum Topology {
    One,
    Cluster,
    Sentinels { master: String },
}

#[derive(Clone)]
struct Login {
    user: String,
    password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Login")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl Servers {
    pub(super) fn new<T: AsRef<str>>(
        topology: Topology,
        urls: impl IntoIterator<Item = T>,
    ) -> Result<Self, SettingsError> {
        let parse = |(index, url): (usize, T)| parse(index + 1, url.as_ref());
        let addresses = urls.into_iter().enumerate().map(parse);
        let addresses: Vec<_> = addresses.collect::<Result<_, _>>()?;
        let first = addresses
            .first()
            .ok_or(SettingsError::NoAddress { server: SERVER })?;
        for (number, address) in (1..).zip(&addresses) {
            check_alike(number, address, first)?;
            if matches!(address.addr(), ConnectionAddr::Unix(_))
                && !matches!(topology, Topology::One)
            {
                let reason = "a cluster and Sentinels are reached by TCP".to_owned();
                return Err(SettingsError::Address {
                    server: SERVER,
                    number,
                    reason,
                });
            }
        }
        Ok(Self {
            topology,
            addresses,
            login: None,
            certificates: None,
        })
    }

    pub(super) fn log_in(&mut self, user: String, password: String) {
        self.login = Some(Login { user, password });
    }

    pub(super) fn trust(&mut self, pem: Vec<u8>) -> Result<(), SettingsError> {
        check_certificates("the root certificates", &pem)?;
        self.certificates()?.root_cert = Some(pem);
        Ok(())
    }

    pub(super) fn identify(&mut self, pem: Vec<u8>, key: Vec<u8>) -> Result<(), SettingsError> {
        check_certificates("the client's certificate", &pem)?;
        check_key(&key)?;
        self.certificates()?.client_tls = Some(ClientTlsConfig {
            client_cert: pem,
            client_key: key,
        });
        Ok(())
    }

    fn certificates(&mut self) -> Result<&mut TlsCertificates, SettingsError> {
        if !self.has_tls() {
            return Err(SettingsError::NoTls { server: SERVER });
        }
        Ok(self.certificates.get_or_insert(TlsCertificates {
            client_tls: None,
            root_cert: None,
        }))
    }

    pub(super) fn one(&self) -> RedisResult<Client> {
        let mut info = self.addresses[0].clone();
        if let Some(Login { user, password }) = &self.login {
            let redis = info.redis_settings().clone();
            info = info.set_redis_settings(redis.set_username(user).set_password(password));
        }
        match &self.certificates {
            Some(certificates) => Client::build_with_tls(info, certificates.clone()),
            None => Client::open(info),
        }
    }

    /// Sets the options of all connections of a cluster.
    pub(super) fn cluster(
        &self,
        settings: impl FnOnce(ClusterClientBuilder) -> ClusterClientBuilder,
    ) -> RedisResult<ClusterClient> {
        let mut builder = ClusterClientBuilder::new(self.addresses.clone())
            .use_protocol(ProtocolVersion::RESP3)
            // A message that is sent again after its connection broke may arrive twice.
            .retries(0);
        if let Some(Login { user, password }) = &self.login {
            builder = builder.username(user).password(password);
        }
        if let Some(certificates) = &self.certificates {
            builder = builder.certs(certificates.clone());
        }
        settings(builder).build()
    }

    /// Creates a client of the Sentinels, whose user and password are those of the addresses.
    pub(super) fn sentinels(&self, master: &str) -> RedisResult<SentinelClient> {
        let addresses = self.addresses.iter().map(|info| info.addr().clone());
        let mut builder =
            SentinelClientBuilder::new(addresses, master, SentinelServerType::Master)?
                .set_client_to_redis_protocol(ProtocolVersion::RESP3);
        let own = self.addresses[0].redis_settings();
        if let Some(user) = own.username() {
            builder = builder.set_client_to_sentinel_username(user);
        }
        if let Some(password) = own.password() {
            builder = builder.set_client_to_sentinel_password(password);
        }
        if let Some(Login { user, password }) = &self.login {
            builder = builder
                .set_client_to_redis_username(user)
                .set_client_to_redis_password(password);
        }
        if self.has_tls() {
            builder = builder.set_client_to_redis_tls_mode(TlsMode::Secure);
        }
        if let Some(certificates) = &self.certificates {
            builder = builder
                .set_client_to_sentinel_certificates(certificates.clone())
                .set_client_to_redis_certificates(certificates.clone());
        }
        builder.build()
    }

    pub(super) fn has_tls(&self) -> bool {
        is_tls(&self.addresses[0])
    }
}

/// Shows hosts and ports, for logs.
impl fmt::Display for Servers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, info) in self.addresses.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(formatter, "{comma}{}", info.addr())?;
        }
        Ok(())
    }
}

/// Parses a URL. No error shows the URL, for there may be a password in it.
fn parse(number: usize, url: &str) -> Result<ConnectionInfo, SettingsError> {
    let refuse = |reason: &str| SettingsError::Address {
        server: SERVER,
        number,
        reason: reason.to_owned(),
    };
    // The crate `redis` takes `#insecure`, with which anybody could pose as the server.
    if url.contains('#') {
        return Err(refuse("there is a `#` in it"));
    }
    let info = url
        .into_connection_info()
        .map_err(|error| refuse(&error.to_string()))?;
    let redis = info.redis_settings().clone();
    Ok(info.set_redis_settings(redis.set_protocol(ProtocolVersion::RESP3)))
}

fn check_alike(
    number: usize,
    address: &ConnectionInfo,
    first: &ConnectionInfo,
) -> Result<(), SettingsError> {
    let (redis, first_redis) = (address.redis_settings(), first.redis_settings());
    let what = if is_tls(address) != is_tls(first) {
        "TLS"
    } else if redis.username() != first_redis.username() {
        "user"
    } else if redis.password() != first_redis.password() {
        "password"
    } else {
        return Ok(());
    };
    Err(SettingsError::Unlike {
        server: SERVER,
        number,
        what,
    })
}

fn is_tls(info: &ConnectionInfo) -> bool {
    matches!(info.addr(), ConnectionAddr::TcpTls { .. })
}
