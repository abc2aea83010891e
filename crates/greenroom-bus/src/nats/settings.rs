use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_nats::ConnectOptions;

use crate::SettingsError;
use crate::remote::{RemoteSettings, remote_settings};

use super::LinkError;
use super::servers::{Login, Servers};
use super::signals::Signals;

/// The longest prefix of subjects, in bytes.
const PREFIX_BYTES_MAX: usize = 128;

/// The size of the client's buffer in which it reads, in bytes. It is read into 128 times at most
/// before the bus delivers what came.
const READ_BUFFER_BYTES: u16 = 8_192;

/// Settings of a connection to NATS: addresses, log-in, subjects, time-outs and queues. The server
/// must be of version 2.9 or later.
///
/// ```
/// use std::time::Duration;
/// use greenroom_bus::{Bus, NatsSettings, ReplaySettings, WhileAway};
///
/// let settings = NatsSettings::new("nats://127.0.0.1:4222")?
///     .prefix("social")?
///     .replay(ReplaySettings::new("SOCIAL")?.max_age(Duration::from_mins(10)))
///     .while_away(WhileAway::Queue);
/// # Ok::<(), greenroom_bus::SettingsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct NatsSettings {
    pub(super) servers: Servers,
    pub(super) prefix: String,
    inbox_prefix: String,
    pending_max: usize,
    pub(super) replay: Option<ReplaySettings>,
    pub(super) remote: RemoteSettings,
}

/// Settings of the stream from which a bus through NATS gets what it missed.
#[derive(Clone, Debug)]
pub struct ReplaySettings {
    pub(super) stream: String,
    pub(super) max_bytes: u64,
    pub(super) max_age: Duration,
    pub(super) replicas: usize,
    pub(super) is_in_memory: bool,
}

impl NatsSettings {
    /// Connects to the server at a URL: `nats://[user:password@]host[:port]`, `nats://token@…`, or
    /// `tls://…` for TLS. If it is one of a cluster, it names the others, and the bus goes to one
    /// of them when it is away.
    ///
    /// With TLS the server's certificate must be for the host of the URL, and be signed by one of
    /// the system's authorities, or of [`tls_roots`](Self::tls_roots).
    ///
    /// # Errors
    /// The fault of the URL. The server is not contacted.
    pub fn new(url: &str) -> Result<Self, SettingsError> {
        Self::cluster([url])
    }

    /// Connects to one of the servers at these URLs, in any order: servers of one cluster. User,
    /// password, token and TLS are those of all servers.
    ///
    /// # Errors
    /// The fault of a URL, or that they do not agree. The servers are not contacted.
    pub fn cluster<T: AsRef<str>>(
        urls: impl IntoIterator<Item = T>,
    ) -> Result<Self, SettingsError> {
        Ok(Self {
            servers: Servers::new(urls)?,
            prefix: "greenroom".to_owned(),
            inbox_prefix: "_INBOX".to_owned(),
            pending_max: 65_536,
            replay: None,
            remote: RemoteSettings::default(),
        })
    }

    /// Logs in with this user and password, instead of those of the URLs. Neither logs, errors nor
    /// `Debug` show the password, or any other secret.
    #[must_use]
    pub fn login(self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.with(Login::User {
            user: user.into(),
            password: password.into(),
        })
    }

    /// Logs in with this token.
    #[must_use]
    pub fn token(self, token: impl Into<String>) -> Self {
        self.with(Login::Token(token.into()))
    }

    /// Logs in with the `NKey` of this seed, which begins with `SU`.
    #[must_use]
    pub fn nkey(self, seed: impl Into<String>) -> Self {
        self.with(Login::NKey(seed.into()))
    }

    /// Logs in with a file of credentials, as `nsc` writes it: a JWT and the seed of an `NKey`. It
    /// is read once, now.
    ///
    /// # Errors
    /// The file cannot be read, or is none of credentials.
    pub fn credentials_file(self, path: impl AsRef<Path>) -> Result<Self, SettingsError> {
        Login::credentials(path.as_ref()).map(|login| self.with(login))
    }

    fn with(mut self, login: Login) -> Self {
        self.servers.login = login;
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
    /// (`verify: true`).
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

    /// Sets the beginning of all subjects: `/picture/42/likes` is `PREFIX.picture.42.likes`.
    /// Default `greenroom`. All clients that share topics must choose the same. At most 128 bytes
    /// of one token or more, such as `social.bus`.
    ///
    /// # Errors
    /// It cannot be the beginning of a subject.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Result<Self, SettingsError> {
        self.prefix = check_subject("the prefix", prefix.into())?;
        Ok(self)
    }

    /// Sets the beginning of the subjects on which this process is replied to, for users who may
    /// only use their own. Default `_INBOX`, under the rules of [`prefix`](Self::prefix).
    ///
    /// # Errors
    /// It cannot be the beginning of a subject.
    pub fn inbox_prefix(mut self, prefix: impl Into<String>) -> Result<Self, SettingsError> {
        self.inbox_prefix = check_subject("the prefix of the inbox", prefix.into())?;
        Ok(self)
    }

    /// Sets the most messages of one topic or pattern that wait for the bus' thread. Beyond that
    /// the connection is given up and made again: all subscriptions get a gap, or what they missed.
    /// Default 65,536, at least 1.
    #[must_use]
    pub fn pending_max(mut self, messages_max: usize) -> Self {
        self.pending_max = messages_max.clamp(1, 1 << 28);
        self
    }

    /// Keeps all messages in a stream (`JetStream`), from which subscriptions get what they missed
    /// while the connection was lost. Publishing waits until the stream has the message. Every bus
    /// then receives all messages below its prefix, whatever it has subscribed to. All clients that
    /// share topics should choose the same.
    #[must_use]
    pub fn replay(mut self, replay: ReplaySettings) -> Self {
        self.replay = Some(replay);
        self
    }

    remote_settings! {
        /// Sets the interval of the pings to the server, and with
        /// [`replay`](Self::replay) that of the stream's signs of life, of which two may be missed.
        /// A server that vanished silently is noticed after this and
        /// [`command_timeout`](Self::command_timeout): 7 s by default. Default 5 s, at least 1 ms;
        /// a stream's at least 100 ms.
    }

    pub(super) fn options(&self, signals: &Arc<Signals>) -> Result<ConnectOptions, LinkError> {
        let (delays, events) = (Arc::clone(signals), Arc::clone(signals));
        let options = ConnectOptions::new()
            .name("greenroom-bus")
            .connection_timeout(self.remote.connect_timeout)
            .request_timeout(Some(self.remote.command_timeout))
            .custom_inbox_prefix(&self.inbox_prefix)
            .subscription_capacity(self.pending_max)
            .read_buffer_capacity(READ_BUFFER_BYTES)
            .reconnect_delay_callback(move |_| delays.delay())
            .event_callback(move |event| {
                events.take(event);
                std::future::ready(())
            });
        self.servers.apply(options)
    }
}

impl ReplaySettings {
    /// Uses the stream of this name, which is made if there is none: of 256 MiB and 1 h, in files,
    /// on one server. One that is there already is used as it is, if it holds the bus' subjects and
    /// nothing else.
    ///
    /// # Errors
    /// It cannot be the name of a stream: 1 to 128 bytes of letters, digits, `-` and `_`.
    pub fn new(stream: impl Into<String>) -> Result<Self, SettingsError> {
        let stream = stream.into();
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let has_length = (1..=PREFIX_BYTES_MAX).contains(&stream.len());
        if !has_length || !stream.bytes().all(is_allowed) {
            return Err(SettingsError::Name {
                what: "the name of the stream",
                name: stream,
                allowed: "1 to 128 bytes of letters, digits, `-` and `_`",
            });
        }
        Ok(Self {
            stream,
            max_bytes: 256 << 20,
            max_age: Duration::from_hours(1),
            replicas: 1,
            is_in_memory: false,
        })
    }

    /// Sets the most bytes that the stream holds; the oldest messages go. Default 256 MiB, at least
    /// 1 MiB.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes.max(1 << 20);
        self
    }

    /// Sets the age at which a message leaves the stream. A connection that is lost for longer
    /// leaves a gap. Default 1 h, at least 1 s.
    #[must_use]
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = age.max(Duration::from_secs(1));
        self
    }

    /// Sets the number of servers that have the stream: 3 survive the loss of one. Default 1, at
    /// most 5, which is NATS' own limit.
    #[must_use]
    pub fn replicas(mut self, replicas: usize) -> Self {
        self.replicas = replicas.clamp(1, 5);
        self
    }

    /// Keeps the stream in the servers' memory instead of in files: what it holds is lost when they
    /// end.
    #[must_use]
    pub fn in_memory(mut self) -> Self {
        self.is_in_memory = true;
        self
    }
}

fn check_subject(what: &'static str, name: String) -> Result<String, SettingsError> {
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'*' | b'>');
    let is_token = |token: &str| !token.is_empty() && token.bytes().all(is_allowed);
    if name.len() > PREFIX_BYTES_MAX || !name.split('.').all(is_token) || name.starts_with('$') {
        return Err(SettingsError::Name {
            what,
            name,
            allowed: "at most 128 bytes of printable ASCII, in tokens with a dot between, without \
                      `*` and `>`, and no `$` at the beginning",
        });
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(settings: Result<NatsSettings, SettingsError>) -> String {
        settings.expect_err("it cannot work").to_string()
    }

    #[test]
    fn a_wrong_address_is_refused_with_an_example_and_without_its_password() {
        for url in [
            "http://user:hidden@127.0.0.1",
            "ws://user:hidden@127.0.0.1",
            "nats://user:hid/den@127.0.0.1",
            "nats://user:hid#den@127.0.0.1",
            "nats://user:hidden@",
            "nats://user:hidden@127.0.0.1/0",
        ] {
            let error = error(NatsSettings::new(url));
            assert!(
                error.contains("`nats://user:password@host:4222`"),
                "{error}"
            );
            assert!(!error.contains("hid"), "{error}");
        }
        for url in [
            "nats://127.0.0.1:4222",
            "127.0.0.1",
            "tls://[::1]",
            "nats://a:b%2Fc@d",
        ] {
            assert!(NatsSettings::new(url).is_ok(), "{url}");
        }
    }

    #[test]
    fn addresses_that_do_not_agree_are_refused_by_their_number() {
        let nothing: [&str; 0] = [];
        assert!(error(NatsSettings::cluster(nothing)).contains("at least one address of NATS"));
        for (other, what) in [
            ("tls://user:hidden@b", "TLS"),
            ("nats://user:other@b", "password"),
            ("nats://b", "password"),
        ] {
            let error = error(NatsSettings::cluster(["nats://user:hidden@a", other]));
            let expected = "address 2 of NATS differs from address 1 in";
            assert!(error.contains(expected) && error.contains(what), "{error}");
            assert!(!error.contains("hidden"), "{error}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let settings = || NatsSettings::new("nats://token-hidden@a").expect("an address");
        for settings in [
            settings(),
            settings().login("user", "hidden"),
            settings().token("hidden"),
            settings().nkey("SUhidden"),
        ] {
            let shown = format!("{settings:?}");
            assert!(!shown.contains("hidden"), "{shown}");
        }
    }

    #[test]
    fn names_that_no_server_takes_are_refused() {
        let settings = || NatsSettings::new("nats://a").expect("an address");
        for prefix in ["", ".", "a.", ".a", "a..b", "a b", "a.*", ">", "$JS", "ä"] {
            let error = error(settings().prefix(prefix));
            assert!(error.contains("the prefix"), "{error}");
        }
        assert!(settings().prefix("social.bus").is_ok());
        assert!(settings().inbox_prefix("_INBOX.social").is_ok());
        for stream in ["", "a.b", "a b", "a*", "a/b"] {
            let error = ReplaySettings::new(stream)
                .expect_err("no name")
                .to_string();
            assert!(error.contains("the name of the stream"), "{error}");
        }
    }

    #[test]
    fn certificates_need_tls_and_must_be_some() {
        let settings = |url| NatsSettings::new(url).expect("an address");
        let error = |result: Result<NatsSettings, SettingsError>| self::error(result);
        let without = error(settings("nats://a").tls_roots("-----BEGIN"));
        assert!(without.contains("must begin with `tls://`"), "{without}");
        let nothing = error(settings("tls://a").tls_roots("nothing"));
        assert!(nothing.contains("the root certificates"), "{nothing}");
    }

    #[test]
    fn a_file_of_no_credentials_is_refused_by_its_name() {
        let settings = NatsSettings::new("nats://a").expect("an address");
        let error = error(settings.credentials_file("/nowhere/app.creds"));
        assert!(error.contains("/nowhere/app.creds"), "{error}");
    }
}
