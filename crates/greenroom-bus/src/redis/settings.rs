use crate::SettingsError;
use crate::remote::{RemoteSettings, remote_settings};

use super::servers::{Servers, Topology};

/// Settings of a connection to Redis: addresses, time-outs and queues. Redis 6 is needed (RESP3), 7
/// for [`sharded`](Self::sharded).
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
    pub(super) servers: Servers,
    pub(super) is_sharded: bool,
    pub(super) remote: RemoteSettings,
}

impl RedisSettings {
    /// Connects to the server at a URL: `redis://[user[:password]@]host[:port]`, `rediss://…` for
    /// TLS, or `unix:///path`. Pub/sub has no numbered databases: all clients of one server share
    /// its topics.
    ///
    /// With TLS the server's certificate must be for the host of the URL, and be signed by one of
    /// the system's authorities, or of [`tls_roots`](Self::tls_roots). If the process has not
    /// chosen a provider of cryptography for `rustls`, the bus chooses `ring`.
    ///
    /// # Errors
    /// The fault of the URL. The server is not contacted.
    pub fn new(url: &str) -> Result<Self, SettingsError> {
        Servers::new(Topology::One, [url]).map(Self::of)
    }

    /// Connects to a cluster, by the URLs of some of its servers, through which the others are
    /// found. One is enough; more are for when that one is away. User, password and TLS are those
    /// of all servers. With [`sharded`](Self::sharded) each message goes to the servers of its
    /// topic's slot only.
    ///
    /// # Errors
    /// The fault of a URL, or that they do not agree. The servers are not contacted.
    pub fn cluster<T: AsRef<str>>(
        urls: impl IntoIterator<Item = T>,
    ) -> Result<Self, SettingsError> {
        Servers::new(Topology::Cluster, urls).map(Self::of)
    }

    /// Connects to the current master of this name, by the URLs of its Sentinels, of which the
    /// first that knows it is believed. They are asked before every connection, each for 1.5 s at
    /// most. User and password of the URLs are those of the Sentinels; those of the servers are
    /// given by [`login`](Self::login). TLS is used with all or none.
    ///
    /// # Errors
    /// The fault of a URL, or that they do not agree. The Sentinels are not contacted.
    pub fn sentinels<T: AsRef<str>>(
        urls: impl IntoIterator<Item = T>,
        master: impl Into<String>,
    ) -> Result<Self, SettingsError> {
        let master = master.into();
        Servers::new(Topology::Sentinels { master }, urls).map(Self::of)
    }

    fn of(servers: Servers) -> Self {
        Self {
            servers,
            is_sharded: false,
            remote: RemoteSettings::default(),
        }
    }

    /// Logs in to the servers with this user (`default`, if Redis knows no others) and password,
    /// instead of those of the URLs. Neither logs, errors nor `Debug` show the password.
    #[must_use]
    pub fn login(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.servers.log_in(user.into(), password.into());
        self
    }

    /// Trusts servers whose certificate is signed by one of these (PEM, one or more), instead of
    /// the system's authorities.
    ///
    /// # Errors
    /// There is no certificate in it, or the addresses are without TLS.
    pub fn tls_roots(mut self, pem: impl Into<Vec<u8>>) -> Result<Self, SettingsError> {
        self.servers.trust(pem.into())?;
        Ok(self)
    }

    /// Presents this certificate with its key, both as PEM, to servers that ask for it
    /// (`tls-auth-clients yes`, Redis' default).
    ///
    /// # Errors
    /// There is no certificate or key in it, or the addresses are without TLS.
    pub fn tls_identity(
        mut self,
        certificate: impl Into<Vec<u8>>,
        key: impl Into<Vec<u8>>,
    ) -> Result<Self, SettingsError> {
        self.servers.identify(certificate.into(), key.into())?;
        Ok(self)
    }

    /// Uses sharded pub/sub (`SPUBLISH`, `SSUBSCRIBE`), in which a node of a cluster does not pass
    /// each message to all others. Default no. All clients that share topics must choose the same.
    /// There are no patterns then. In a cluster use it with [`cluster`](Self::cluster): a bus that
    /// knows one server only is refused the topics of others (`MOVED`).
    #[must_use]
    pub fn sharded(mut self, is_sharded: bool) -> Self {
        self.is_sharded = is_sharded;
        self
    }

    remote_settings! {
        /// Sets the interval of the pings to the server. A server that vanished silently is noticed
        /// after this and [`command_timeout`](Self::command_timeout): 7 s by default. Default 5 s,
        /// at least 1 ms.
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(settings: Result<RedisSettings, SettingsError>) -> String {
        settings.expect_err("it cannot work").to_string()
    }

    #[test]
    fn a_wrong_address_is_refused_with_an_example_and_without_its_password() {
        for url in [
            "http://user:hidden@127.0.0.1",
            "redis://user:hid/den@127.0.0.1",
            "redis://user:hid#den@127.0.0.1",
            "redis://user:hidden@",
            "rediss://user:hidden@127.0.0.1/#insecure",
        ] {
            let error = error(RedisSettings::new(url));
            assert!(
                error.contains("`redis://user:password@host:6379`"),
                "{error}"
            );
            assert!(!error.contains("hid"), "{error}");
        }
        for url in [
            "redis://127.0.0.1:6379",
            "rediss://127.0.0.1",
            "unix:///run/redis",
            "redis://user:hid%2Fden@localhost",
        ] {
            assert!(RedisSettings::new(url).is_ok(), "{url}");
        }
    }

    #[test]
    fn addresses_that_do_not_agree_are_refused_by_their_number() {
        let nothing: [&str; 0] = [];
        assert!(error(RedisSettings::cluster(nothing)).contains("at least one address"));
        let cluster = |second| error(RedisSettings::cluster(["redis://u:p@a", second]));
        let unlike = |what| format!("address 2 of Redis differs from address 1 in {what}");
        assert!(cluster("redis://u:other@b").starts_with(&unlike("password")));
        assert!(cluster("redis://other:p@b").starts_with(&unlike("user")));
        assert!(cluster("rediss://u:p@b").starts_with(&unlike("TLS")));
        assert!(cluster("http://u:p@b").starts_with("address 2 of Redis cannot be used"));
        let socket = error(RedisSettings::sentinels(["unix:///run/redis"], "one"));
        assert!(socket.contains("reached by TCP"), "{socket}");
    }

    #[test]
    fn certificates_must_be_some_and_for_tls() {
        let settings = |url| RedisSettings::new(url).expect("an address");
        let pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let error_of = |url, pem: &str| error(settings(url).tls_roots(pem));
        assert!(error_of("redis://a", pem).contains("`rediss://`"));
        assert!(error_of("rediss://a", "/etc/ssl/ca.pem").contains("no certificate in it"));
        let keyless = error(settings("rediss://a").tls_identity(pem, pem));
        assert!(
            keyless.contains("the client's key must be given as PEM"),
            "{keyless}"
        );
    }

    #[test]
    fn debug_shows_no_password() {
        let urls = ["rediss://one:hidden@a:1", "rediss://one:hidden@b:2"];
        let settings = RedisSettings::sentinels(urls, "m").expect("they agree");
        let settings = settings.login("two", "hidden too");
        let text = format!("{settings:?}");
        assert!(!text.contains("hidden"), "{text}");
        assert!(text.contains("one") && text.contains("two"), "{text}");
    }
}
