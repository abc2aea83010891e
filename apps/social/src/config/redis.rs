use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use greenroom::bus::{self, WhileAway};
use redis::{Client, ClientTlsConfig, IntoConnectionInfo, TlsCertificates};
use serde::{Deserialize, Serialize};
use url::Url;

use super::any_form::OfAddresses;

/// The Redis that replicas share: exactly one of `url`, `cluster` and `sentinels`. The names are
/// those of [`greenroom::bus::RedisSettings`].
///
/// A text stands for a table with that `url`. A list of one address does too; one of several stands
/// for a `cluster`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct RedisSettings {
    /// The one server, for topics and cache.
    pub url: Option<Url>,
    /// Some servers of a cluster, for topics only: each replica has a cache of its own.
    pub cluster: Vec<Url>,
    /// The Sentinels of `master`, for topics only: each replica has a cache of its own.
    pub sentinels: Vec<Url>,
    /// The name by which the Sentinels know the master.
    pub master: Option<String>,
    /// User (`default`, if Redis knows no others) and password for the servers. Default: those of
    /// the addresses
    pub login: Option<(String, String)>,
    /// A file of certificates (PEM), one of which has signed those of the servers; for `rediss://`.
    /// Default: the system's authorities
    pub tls_roots: Option<PathBuf>,
    /// The files of the client's certificate and key (PEM), for servers that ask for them; for
    /// `rediss://`. Default: none
    pub tls_identity: Option<(PathBuf, PathBuf)>,
    /// True if a server of a cluster tells the others of its own topics only; the same on all
    /// replicas. Default: false
    pub sharded: bool,
}

impl RedisSettings {
    /// Returns the settings of the bus. Messages that are published while Redis is away wait.
    ///
    /// # Errors
    /// Fails if it is not exactly one of the three, if a file cannot be read, and if the bus
    /// rejects the settings.
    pub fn bus(&self) -> anyhow::Result<bus::RedisSettings> {
        let (cluster, sentinels) = (texts(&self.cluster), texts(&self.sentinels));
        let settings = match (&self.url, &cluster[..], &sentinels[..], &self.master) {
            (Some(url), [], [], None) => bus::RedisSettings::new(url.as_str())?,
            (None, [_, ..], [], None) => bus::RedisSettings::cluster(&cluster)?,
            (None, [], [_, ..], Some(master)) => bus::RedisSettings::sentinels(&sentinels, master)?,
            _ => bail!(
                "`redis` is one of `url`, `cluster` (a list), and `sentinels` (a list) with \
                 `master`"
            ),
        };
        let mut settings = settings.while_away(WhileAway::Queue).sharded(self.sharded);
        if let Some((user, password)) = &self.login {
            settings = settings.login(user, password);
        }
        if let Some(roots) = &self.tls_roots {
            settings = settings.tls_roots(read(roots)?)?;
        }
        if let Some((certificate, key)) = &self.tls_identity {
            settings = settings.tls_identity(read(certificate)?, read(key)?)?;
        }
        Ok(settings)
    }

    /// Returns the client of the cache; `None` with a cluster and with Sentinels.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or the address is not one of a Redis.
    pub fn client(&self) -> anyhow::Result<Option<Client>> {
        let Some(url) = &self.url else {
            return Ok(None);
        };
        let mut info = url.as_str().into_connection_info()?;
        if let Some((user, password)) = &self.login {
            let login = info.redis_settings().clone();
            info = info.set_redis_settings(login.set_username(user).set_password(password));
        }
        if self.tls_roots.is_none() && self.tls_identity.is_none() {
            return Ok(Some(Client::open(info)?));
        }
        let identity = |(certificate, key): &(PathBuf, PathBuf)| {
            anyhow::Ok(ClientTlsConfig {
                client_cert: read(certificate)?,
                client_key: read(key)?,
            })
        };
        let certificates = TlsCertificates {
            client_tls: self.tls_identity.as_ref().map(identity).transpose()?,
            root_cert: self.tls_roots.as_deref().map(read).transpose()?,
        };
        Ok(Some(Client::build_with_tls(info, certificates)?))
    }
}

impl OfAddresses for RedisSettings {
    const EXPECTED: &'static str = "an address such as `redis://127.0.0.1:6379`, a list of the \
                                    addresses of a cluster, or a table";

    fn address(text: &str) -> Result<Url, String> {
        address(text)
    }

    /// Returns the settings of one server, or of a cluster if there are several addresses.
    fn of_addresses(mut addresses: Vec<Url>) -> Self {
        if addresses.len() == 1 {
            Self {
                url: addresses.pop(),
                ..Self::default()
            }
        } else {
            Self {
                cluster: addresses,
                ..Self::default()
            }
        }
    }
}

/// Parses the address of a server. Its error shows no address, for there may be a password in it.
pub(super) fn address(text: &str) -> Result<Url, String> {
    redis::parse_redis_url(text).ok_or_else(|| {
        "an address of Redis is like `redis://127.0.0.1:6379`, `rediss://HOST:PORT` for TLS, or \
         `unix:///path`"
            .to_owned()
    })
}

fn texts(urls: &[Url]) -> Vec<&str> {
    urls.iter().map(Url::as_str).collect()
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("`redis`: {} cannot be read", file.display()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use figment::Figment;
    use figment::providers::{Format, Serialized, Toml};

    use super::*;
    use crate::config::{Args, Settings};

    fn parsed(toml: &str) -> anyhow::Result<RedisSettings> {
        let settings = Figment::from(Serialized::defaults(Settings::default()));
        let settings: Settings = settings.merge(Toml::string(toml)).extract()?;
        Ok(settings.redis.expect("it is set"))
    }

    fn error_of(toml: &str) -> String {
        let settings = parsed(toml).expect("it is TOML").bus();
        format!("{:#}", settings.expect_err("it cannot work"))
    }

    fn hosts(urls: &[Url]) -> Vec<&str> {
        urls.iter().filter_map(Url::host_str).collect()
    }

    #[test]
    fn one_address_is_one_server() {
        for toml in [
            "redis = \"redis://a\"",
            "redis = [\"redis://a\"]",
            "redis.url = \"redis://a\"",
        ] {
            let redis = parsed(toml).expect(toml);
            assert_eq!(redis.url.as_ref().and_then(Url::host_str), Some("a"));
            redis.bus().expect("one server");
            assert!(redis.client().expect("one server").is_some());
        }
    }

    #[test]
    fn a_cluster_and_sentinels_are_for_topics() {
        for toml in [
            "redis = [\"redis://a\", \"redis://b\"]",
            "redis = { cluster = [\"redis://a\", \"redis://b\"], sharded = true }",
            "redis = { sentinels = [\"redis://a\"], master = \"m\", login = [\"u\", \"p\"] }",
        ] {
            let redis = parsed(toml).expect(toml);
            redis.bus().expect("it can work");
            assert!(redis.client().expect("no files").is_none());
        }
    }

    #[test]
    fn the_flag_takes_the_addresses_of_a_cluster() {
        for (flags, expected) in [
            (&["social", "--redis", "redis://a"][..], &[][..]),
            (&["social", "--redis", "redis://a,redis://b"], &["a", "b"]),
            (
                &["social", "--redis", "redis://a", "--redis", "redis://b"],
                &["a", "b"],
            ),
        ] {
            let settings = Args::parse_from(flags).settings().expect("settings");
            let redis = settings.redis.expect("it is set");
            assert_eq!(hosts(&redis.cluster), expected, "{flags:?}");
            assert_eq!(redis.url.is_some(), expected.is_empty(), "{flags:?}");
        }
        let settings = Args::parse_from(["social"]).settings().expect("settings");
        assert_eq!(settings.redis, None);
    }

    #[test]
    fn what_is_no_address_is_told_with_what_is_one() {
        for address in ["nowhere", "localhost:6379", "http://a"] {
            let flags = ["social", "--redis", address];
            let of_flag = Args::try_parse_from(flags).expect_err("it is no address");
            let of_file = parsed(&format!("redis = \"{address}\"")).expect_err("it is none");
            for error in [of_flag.to_string(), of_file.to_string()] {
                assert!(error.contains("`redis://127.0.0.1:6379`"), "{error}");
                assert!(error.contains("`unix:///path`"), "{error}");
            }
        }
    }

    #[test]
    fn settings_that_cannot_work_are_rejected() {
        for toml in [
            "[redis]",
            "redis = []",
            "redis = { url = \"redis://a\", cluster = [\"redis://b\"] }",
            "redis = { sentinels = [\"redis://a\"] }",
            "redis = { url = \"redis://a\", master = \"m\" }",
        ] {
            let error = error_of(toml);
            assert!(error.contains("is one of `url`"), "{error}");
        }
        let error = error_of("redis = { url = \"rediss://a\", tls_roots = \"/no/such/file\" }");
        assert!(error.contains("/no/such/file cannot be read"), "{error}");
        let unknown = parsed("redis.uri = \"redis://a\"").expect_err("there is no such key");
        assert!(unknown.to_string().contains("uri"), "{unknown}");
    }
}
