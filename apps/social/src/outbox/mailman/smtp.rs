//! A mail server. lettre's own transport waits for a response without limit, and a connection that
//! is dropped while it waits returns to its pool. So connections are kept here: one that is not at
//! a clean point is closed.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use lettre::Message;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use url::Url;

use crate::outbox::worker::Setback;

/// Most idle connections kept for the next mail.
const IDLE_MAX: usize = 4;
/// Time that an idle connection is kept. Servers may close it after five minutes (RFC 5321, section
/// 4.5.3.2.7).
const IDLE_FOR: Duration = Duration::from_secs(30);
/// Codes with which a server rejects a mail permanently, as long as it rejects this mail and not
/// the sender.
const REJECTED: std::ops::RangeInclusive<u16> = 550..=559;

/// A mail server and the connections to it.
pub(super) struct Smtp {
    host: String,
    port: u16,
    security: Security,
    credentials: Option<Credentials>,
    name: ClientId,
    idle: Mutex<Vec<(Instant, AsyncSmtpConnection)>>,
}

enum Security {
    /// TLS from the first byte on.
    Tls(TlsParameters),
    /// STARTTLS; nothing is sent without it.
    Required(TlsParameters),
    /// STARTTLS if the server offers it, with any certificate: better than none (RFC 7435).
    Opportunistic(TlsParameters),
}

impl Smtp {
    /// Parses the server's URL: `smtps://`, or `smtp://` with STARTTLS if the server offers it;
    /// STARTTLS is required if there is a password to protect.
    pub(super) fn new(url: &Url) -> anyhow::Result<Self> {
        let host = url
            .host_str()
            .context("`smtp` must name a host")?
            .trim_matches(['[', ']'])
            .to_owned();
        let credentials = credentials(url)?;
        let verified = || TlsParameters::new(host.clone());
        let (security, port) = match (url.scheme(), &credentials) {
            ("smtps", _) => (Security::Tls(verified()?), 465),
            ("smtp", Some(_)) => (Security::Required(verified()?), 587),
            ("smtp", None) => (Security::Opportunistic(unverified(&host)?), 25),
            (other, _) => {
                bail!("`smtp` begins with `{other}`; it must begin with smtp:// or smtps://")
            }
        };
        Ok(Self {
            port: url.port().unwrap_or(port),
            host,
            security,
            credentials,
            name: ClientId::default(),
            idle: Mutex::new(Vec::new()),
        })
    }

    /// Sends a mail to its one recipient. May be dropped at any time; then the mail may have been
    /// sent.
    pub(super) async fn send(&self, message: &Message) -> Result<(), Setback> {
        let mut connection = match self.idle_connection().await {
            Some(connection) => connection,
            None => self.connect().await.map_err(Setback::temporary)?,
        };
        connection
            .send(message.envelope(), &message.formatted())
            .await
            .map_err(setback)?;
        self.keep(connection);
        Ok(())
    }

    async fn idle_connection(&self) -> Option<AsyncSmtpConnection> {
        loop {
            let (since, mut connection) = self.idle.lock().pop()?;
            if since.elapsed() < IDLE_FOR && connection.test_connected().await {
                return Some(connection);
            }
        }
    }

    async fn connect(&self) -> Result<AsyncSmtpConnection, Error> {
        let server = (self.host.as_str(), self.port);
        let from_start = match &self.security {
            Security::Tls(parameters) => Some(parameters.clone()),
            Security::Required(_) | Security::Opportunistic(_) => None,
        };
        let mut connection =
            AsyncSmtpConnection::connect_tokio1(server, None, &self.name, from_start, None).await?;
        match &self.security {
            Security::Required(parameters) => {
                connection.starttls(parameters.clone(), &self.name).await?;
            }
            Security::Opportunistic(parameters) if connection.can_starttls() => {
                connection.starttls(parameters.clone(), &self.name).await?;
            }
            Security::Tls(_) | Security::Opportunistic(_) => {}
        }
        if let Some(credentials) = &self.credentials {
            connection.auth(DEFAULT_MECHANISMS, credentials).await?;
        }
        Ok(connection)
    }

    fn keep(&self, connection: AsyncSmtpConnection) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push((Instant::now(), connection));
        }
    }
}

fn credentials(url: &Url) -> anyhow::Result<Option<Credentials>> {
    let decoded = |text| {
        percent_decode_str(text)
            .decode_utf8()
            .context("`smtp`: user and password must be UTF-8")
    };
    let Some(password) = url.password() else {
        return Ok(None);
    };
    let (user, password) = (decoded(url.username())?, decoded(password)?);
    Ok(Some(Credentials::new(
        user.into_owned(),
        password.into_owned(),
    )))
}

fn unverified(host: &str) -> Result<TlsParameters, Error> {
    TlsParameters::builder(host.to_owned())
        .dangerous_accept_invalid_certs(true)
        .dangerous_accept_invalid_hostnames(true)
        .build()
}

fn setback(error: Error) -> Setback {
    let code = error.status().map(u16::from);
    if code.is_some_and(|code| REJECTED.contains(&code)) {
        return Setback::permanent(error);
    }
    Setback::temporary(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn smtp(url: &str) -> anyhow::Result<Smtp> {
        Smtp::new(&url.parse().expect("it is a URL"))
    }

    #[test]
    fn passwords_are_sent_over_tls_only() {
        let open = smtp("smtp://[::1]").expect("it is right");
        assert!(matches!(open.security, Security::Opportunistic(_)));
        assert_eq!((open.host.as_str(), open.port), ("::1", 25));
        let with_password = smtp("smtp://ada:p%40ss@mail.example.org").expect("it is right");
        assert!(matches!(with_password.security, Security::Required(_)));
        assert_eq!(with_password.port, 587);
        let tls = smtp("smtps://ada:pass@mail.example.org:4650").expect("it is right");
        assert!(matches!(tls.security, Security::Tls(_)));
        assert_eq!(tls.port, 4650);
    }

    #[test]
    fn other_addresses_are_refused_with_what_is_allowed() {
        let error = smtp("http://mail.example.org")
            .err()
            .expect("it is refused");
        assert!(error.to_string().contains("smtps://"), "{error}");
    }
}
