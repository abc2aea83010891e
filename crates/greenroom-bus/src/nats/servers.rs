//! The addresses of NATS, the log-in there, and TLS.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use async_nats::{ConnectOptions, ServerAddr};
use percent_encoding::percent_decode_str;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::SettingsError;
use crate::remote::{Server, check_certificates, check_key};

use super::LinkError;

const SERVER: Server = Server::Nats;

/// The servers of a bus, and the way to be let in. All addresses agree in user, password and TLS.
#[derive(Clone, Debug)]
pub(super) struct Servers {
    /// One address or more, without user and password.
    pub(super) addresses: Vec<ServerAddr>,
    pub(super) login: Login,
    is_tls: bool,
    roots: Option<Vec<u8>>,
    identity: Option<Identity>,
}

/// The proof of who this process is. `Debug` shows no secret.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Login {
    Nobody,
    User { user: String, password: String },
    Token(String),
    NKey(String),
    Credentials(String),
}

#[derive(Clone)]
struct Identity {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl fmt::Debug for Login {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody => formatter.write_str("Nobody"),
            Self::User { user, .. } => formatter
                .debug_struct("User")
                .field("user", user)
                .finish_non_exhaustive(),
            Self::Token(_) => formatter.write_str("Token(..)"),
            Self::NKey(_) => formatter.write_str("NKey(..)"),
            Self::Credentials(_) => formatter.write_str("Credentials(..)"),
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl Servers {
    pub(super) fn new<T: AsRef<str>>(
        urls: impl IntoIterator<Item = T>,
    ) -> Result<Self, SettingsError> {
        let parse = |(number, url): (usize, T)| parse(number, url.as_ref());
        let parsed = (1..).zip(urls).map(parse);
        let parsed: Vec<_> = parsed.collect::<Result<_, _>>()?;
        let (first, login) = parsed
            .first()
            .cloned()
            .ok_or(SettingsError::NoAddress { server: SERVER })?;
        for (number, (address, other)) in (1..).zip(&parsed) {
            check_alike(number, (address, other), (&first, &login))?;
        }
        Ok(Self {
            is_tls: first.tls_required(),
            addresses: parsed.into_iter().map(|(address, _)| address).collect(),
            login,
            roots: None,
            identity: None,
        })
    }

    pub(super) fn trust(&mut self, pem: Vec<u8>) -> Result<(), SettingsError> {
        self.check_tls()?;
        check_certificates("the root certificates", &pem)?;
        self.roots = Some(pem);
        Ok(())
    }

    pub(super) fn identify(
        &mut self,
        certificate: Vec<u8>,
        key: Vec<u8>,
    ) -> Result<(), SettingsError> {
        self.check_tls()?;
        check_certificates("the client's certificate", &certificate)?;
        check_key(&key)?;
        self.identity = Some(Identity { certificate, key });
        Ok(())
    }

    fn check_tls(&self) -> Result<(), SettingsError> {
        if self.is_tls {
            return Ok(());
        }
        Err(SettingsError::NoTls { server: SERVER })
    }

    /// Adds the log-in and TLS to the options of a connection.
    pub(super) fn apply(&self, options: ConnectOptions) -> Result<ConnectOptions, LinkError> {
        let options = self.login.apply(options);
        if !self.is_tls {
            return Ok(options);
        }
        Ok(options.require_tls(true).tls_client_config(self.tls()?))
    }

    fn tls(&self) -> Result<ClientConfig, LinkError> {
        let fault = |error: rustls::Error| LinkError::Tls(error.to_string());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(fault)?
            .with_root_certificates(self.roots());
        match &self.identity {
            None => Ok(builder.with_no_client_auth()),
            Some(identity) => {
                let key = PrivateKeyDer::from_pem_slice(&identity.key);
                let key = key.map_err(|error| LinkError::Tls(error.to_string()))?;
                let chain = certificates(&identity.certificate);
                builder.with_client_auth_cert(chain, key).map_err(fault)
            }
        }
    }

    /// Returns the authorities that are trusted: those of the settings, or the system's.
    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(match &self.roots {
            Some(pem) => certificates(pem),
            None => rustls_native_certs::load_native_certs().certs,
        });
        roots
    }
}

impl Login {
    /// Reads the text of a file of credentials, which must be one.
    pub(super) fn credentials(path: &Path) -> Result<Self, SettingsError> {
        let fault = |error: std::io::Error| SettingsError::Credentials {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        let text = std::fs::read_to_string(path).map_err(fault)?;
        ConnectOptions::with_credentials(&text).map_err(fault)?;
        Ok(Self::Credentials(text))
    }

    fn apply(&self, options: ConnectOptions) -> ConnectOptions {
        match self.clone() {
            Self::Nobody => options,
            Self::User { user, password } => options.user_and_password(user, password),
            Self::Token(token) => options.token(token),
            Self::NKey(seed) => options.nkey(seed),
            Self::Credentials(text) => options
                .credentials(&text)
                .expect("it was read as credentials when it was set"),
        }
    }
}

/// Parses a URL into an address without a log-in, and the log-in. No error shows the URL, for there
/// may be a password in it.
fn parse(number: usize, url: &str) -> Result<(ServerAddr, Login), SettingsError> {
    let refuse = |reason: &str| SettingsError::Address {
        server: SERVER,
        number,
        reason: reason.to_owned(),
    };
    let address: ServerAddr = url.parse().map_err(|_| refuse("it is no URL"))?;
    if !matches!(address.scheme(), "nats" | "tls") {
        return Err(refuse("it begins with neither `nats://` nor `tls://`"));
    }
    let mut url = address.clone().into_inner();
    if address.host().is_empty() || !matches!(url.path(), "" | "/") || url.query().is_some() {
        return Err(refuse("it has no host, or something after the port"));
    }
    if url.fragment().is_some() {
        return Err(refuse("there is a `#` in it"));
    }
    let decode = |text: &str| {
        let decoded = percent_decode_str(text).decode_utf8();
        decoded
            .map(String::from)
            .map_err(|_| refuse("it is not UTF-8"))
    };
    let login = match (address.username(), address.password()) {
        (None, _) => Login::Nobody,
        (Some(token), None) => Login::Token(decode(token)?),
        (Some(user), Some(password)) => Login::User {
            user: decode(user)?,
            password: decode(password)?,
        },
    };
    // A URL with a host can have both.
    let _ = (url.set_username(""), url.set_password(None));
    let address = ServerAddr::from_url(url).map_err(|error| refuse(&error.to_string()))?;
    Ok((address, login))
}

fn check_alike(
    number: usize,
    (address, login): (&ServerAddr, &Login),
    (first, first_login): (&ServerAddr, &Login),
) -> Result<(), SettingsError> {
    let what = if address.tls_required() != first.tls_required() {
        "TLS"
    } else if login != first_login {
        "user, password or token"
    } else {
        return Ok(());
    };
    Err(SettingsError::Unlike {
        server: SERVER,
        number,
        what,
    })
}

/// Returns the certificates of a text that was checked.
fn certificates(pem: &[u8]) -> Vec<CertificateDer<'static>> {
    let certificates = CertificateDer::pem_slice_iter(pem);
    certificates.filter_map(Result::ok).collect()
}
