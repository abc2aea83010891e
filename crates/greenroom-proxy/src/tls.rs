//! TLS to upstreams, by rustls.

use std::io;
use std::sync::Arc;

use greenroom_server::client_tls;
use greenroom_server::rustls::ClientConfig;
use greenroom_server::rustls::pki_types::ServerName;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::address::UpstreamAddress;
use crate::settings::{Settings, SettingsError};

/// The protocol that upstreams are asked for (RFC 7301).
const PROTOCOL: &[u8] = b"http/1.1";

/// Reads the files of the settings; `None` if no upstream has TLS.
pub(crate) fn read(settings: &Settings) -> Result<Option<Arc<ClientConfig>>, SettingsError> {
    let hosts = settings.to.iter().filter_map(UpstreamAddress::tls_host);
    let hosts: Vec<_> = hosts.collect();
    if hosts.is_empty() {
        return without(settings);
    }
    match &settings.tls_server_name {
        Some(name) => _ = server_name("tls_server_name", name)?,
        None => {
            for host in hosts {
                server_name("to", host)?;
            }
        }
    }
    let alone = match (&settings.tls_certificate, &settings.tls_key) {
        (Some(_), None) => Some(("tls_certificate", "set without tls_key")),
        (None, Some(_)) => Some(("tls_key", "set without tls_certificate")),
        _ => None,
    };
    if let Some((setting, problem)) = alone {
        return Err(SettingsError::new(setting, problem));
    }
    let config = client_tls(settings.tls_ca.as_deref(), settings.client_certificate());
    let mut config = config.map_err(|error| {
        let is = |file: &Option<_>| error.file().is_some() && file.as_deref() == error.file();
        let setting = if is(&settings.tls_key) {
            "tls_key"
        } else if is(&settings.tls_certificate) {
            "tls_certificate"
        } else {
            "tls_ca"
        };
        SettingsError::new(setting, format!("not usable: {error}"))
    })?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(Some(Arc::new(config)))
}

/// Checks that no setting of TLS is there where no upstream has it: it would go without, unnoticed.
fn without(settings: &Settings) -> Result<Option<Arc<ClientConfig>>, SettingsError> {
    let named = [
        ("tls_ca", settings.tls_ca.is_some()),
        ("tls_certificate", settings.tls_certificate.is_some()),
        ("tls_key", settings.tls_key.is_some()),
        ("tls_server_name", settings.tls_server_name.is_some()),
    ];
    let named = named.iter().find(|(_, is_named)| *is_named);
    named.map_or(Ok(None), |(setting, _)| {
        let problem = "set, but no upstream is https://host, and all go without TLS";
        Err(SettingsError::new(setting, problem))
    })
}

fn server_name(setting: &'static str, name: &str) -> Result<ServerName<'static>, SettingsError> {
    ServerName::try_from(name.to_owned()).map_err(|_| {
        let problem = format!("`{name}`, which no certificate is for; a name or an IP address is");
        SettingsError::new(setting, problem)
    })
}

/// A connection with TLS, whose state takes much more than that of one without.
pub(crate) type TlsIo = Box<TokioIo<TlsStream<TcpStream>>>;

/// TLS to one upstream.
#[derive(Clone)]
pub(crate) struct Secured {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Secured {
    /// Returns that of an upstream; `None` if it has none.
    pub(crate) fn of(
        address: &UpstreamAddress,
        settings: &Settings,
        config: Option<&Arc<ClientConfig>>,
    ) -> Option<Self> {
        let host = address.tls_host()?;
        let name = settings.tls_server_name.as_deref().unwrap_or(host);
        Some(Self {
            connector: Arc::clone(config?).into(),
            name: server_name("to", name).ok()?,
        })
    }

    /// Agrees with the upstream on TLS, after it has shown who it is.
    pub(crate) async fn handshake(self, tcp: TokioIo<TcpStream>) -> io::Result<TlsIo> {
        let stream = self.connector.connect(self.name, tcp.into_inner()).await?;
        Ok(Box::new(TokioIo::new(stream)))
    }
}
