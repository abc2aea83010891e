use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use greenroom::cluster::ClusterSettings;
use serde::{Deserialize, Serialize};
use url::Url;

use super::any_form::OfAddresses;

/// The NATS servers by which processes with different roles find and ask each other.
///
/// An address, or a list of them, stands for a table with these `servers`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct NatsSettings {
    /// Some servers of a cluster; one is enough, the others are learnt from it. They need
    /// `JetStream`.
    pub servers: Vec<Url>,
    /// User and password for the servers. Default: those of the addresses
    pub login: Option<(String, String)>,
    /// The file of credentials (a JWT and its key) for the servers. Default: none
    pub credentials: Option<PathBuf>,
    /// A file of certificates (PEM), one of which has signed those of the servers; with it
    /// connections are by TLS only. Default: the system's authorities, for `tls://`
    pub tls_roots: Option<PathBuf>,
    /// The files of the client's certificate and key (PEM), for servers that ask for them; with it
    /// connections are by TLS only. Default: none
    pub tls_identity: Option<(PathBuf, PathBuf)>,
    /// The first word of all subjects and buckets, by which several networks share servers; the
    /// same for all processes. Default: `social`
    pub prefix: String,
    /// The name of this process for operators. Default: the host's name
    pub node_name: Option<String>,
    /// The time after which a process that is not heard of counts as dead, at least 1 s; the same
    /// for all processes. Default: 6 s
    #[serde(with = "humantime_serde")]
    pub lease: Duration,
}

impl Default for NatsSettings {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            login: None,
            credentials: None,
            tls_roots: None,
            tls_identity: None,
            prefix: "social".to_owned(),
            node_name: None,
            lease: Duration::from_secs(6),
        }
    }
}

impl NatsSettings {
    /// Returns the settings of the cluster.
    ///
    /// # Errors
    /// Fails if there is no server, if there are two ways to log in, and if the cluster rejects an
    /// address.
    pub fn cluster(&self) -> anyhow::Result<ClusterSettings> {
        ensure!(
            !self.servers.is_empty(),
            "`nats.servers` must name at least one server"
        );
        ensure!(
            self.login.is_none() || self.credentials.is_none(),
            "`nats` has `login` or `credentials`, but not both"
        );
        let servers: Vec<_> = self.servers.iter().map(Url::as_str).collect();
        let settings = ClusterSettings::new(&servers.join(",")).context("`nats`")?;
        let mut settings = settings.prefix(&self.prefix).lease(self.lease);
        if let Some(name) = &self.node_name {
            settings = settings.node_name(name);
        }
        if let Some((user, password)) = &self.login {
            settings = settings.login(user, password);
        }
        if let Some(file) = &self.credentials {
            settings = settings.credentials_file(file);
        }
        if let Some(roots) = &self.tls_roots {
            settings = settings.tls_roots(roots);
        }
        if let Some((certificate, key)) = &self.tls_identity {
            settings = settings.tls_identity(certificate, key);
        }
        Ok(settings)
    }
}

impl OfAddresses for NatsSettings {
    const EXPECTED: &'static str =
        "an address such as `nats://127.0.0.1:4222`, a list of addresses, or a table";

    fn address(text: &str) -> Result<Url, String> {
        address(text)
    }

    fn of_addresses(servers: Vec<Url>) -> Self {
        Self {
            servers,
            ..Self::default()
        }
    }
}

/// Parses the address of a server. Its error shows no address, for there may be a password in it.
pub(super) fn address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok();
    let is_ours = |url: &Url| ["nats", "tls"].contains(&url.scheme()) && url.has_host();
    url.filter(is_ours).ok_or_else(|| {
        "an address of NATS is like `nats://127.0.0.1:4222`, or `tls://HOST:4222` for TLS"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use figment::Figment;
    use figment::providers::{Format, Serialized, Toml};

    use super::*;
    use crate::config::{Args, Settings};

    fn parsed(toml: &str) -> anyhow::Result<NatsSettings> {
        let settings = Figment::from(Serialized::defaults(Settings::default()));
        let settings: Settings = settings.merge(Toml::string(toml)).extract()?;
        Ok(settings.nats.expect("it is set"))
    }

    #[test]
    fn addresses_are_a_text_a_list_a_table_or_flags() {
        for (toml, servers) in [
            ("nats = \"nats://a:4222\"", &["nats://a:4222"][..]),
            (
                "nats = [\"nats://a\", \"tls://b\"]",
                &["nats://a", "tls://b"],
            ),
            ("nats.servers = [\"nats://a\"]", &["nats://a"]),
        ] {
            let nats = parsed(toml).expect(toml);
            let told: Vec<_> = nats.servers.iter().map(Url::as_str).collect();
            assert_eq!(told, servers);
            nats.cluster().expect("it can work");
        }
        let flags = ["social", "--nats", "nats://a,nats://b"];
        let settings = Args::parse_from(flags).settings().expect("settings");
        assert_eq!(settings.nats.map(|nats| nats.servers.len()), Some(2));
    }

    #[test]
    fn what_cannot_work_is_told() {
        for address in ["nowhere", "localhost:4222", "http://a"] {
            let flags = ["social", "--nats", address];
            let of_flag = Args::try_parse_from(flags).expect_err("it is no address");
            let of_file = parsed(&format!("nats = \"{address}\"")).expect_err("it is none");
            for error in [of_flag.to_string(), of_file.to_string()] {
                assert!(error.contains("`nats://127.0.0.1:4222`"), "{error}");
            }
        }
        let none = parsed("[nats]").expect("it is TOML").cluster();
        assert!(none.expect_err("no server").to_string().contains("servers"));
        let toml =
            "nats = { servers = [\"nats://a\"], login = [\"u\", \"p\"], credentials = \"c\" }";
        let both = parsed(toml).expect("it is TOML").cluster();
        let both = both.expect_err("two ways").to_string();
        assert!(both.contains("but not both"), "{both}");
    }
}
