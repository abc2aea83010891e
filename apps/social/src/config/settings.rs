use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::ensure;
use bytesize::ByteSize;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use url::Url;

use super::any_form::from_any_form;
use super::roles::from_text_or_list;
use super::{NatsSettings, RedisSettings, Role};

/// All settings. Keys of the TOML file are the names of the fields; times are texts such as `30s`,
/// sizes such as `16 MiB`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The roles of this process: a text such as `web,outbox`, or a list. Default: everything
    #[serde(deserialize_with = "from_text_or_list")]
    pub role: Vec<Role>,
    /// The addresses that people and programs connect to. Default: 127.0.0.1:5001
    pub listen: Vec<SocketAddr>,
    /// The address of `/greenroom/status` and `/greenroom/metrics`, for operators. Default: none
    pub status_listen: Option<SocketAddr>,
    /// The address that links in mails and notifications begin with. Default: `http://` and the
    /// first of `listen`
    pub base_url: Option<Url>,
    /// The storage. Default: `sqlite:social-data/social.db`
    pub store: StoreSettings,
    /// The storage of pictures' files. Default: `social-data/files`
    pub files: FilesSettings,
    /// Topics and cache that replicas share: an address such as `redis://127.0.0.1:6379`, a list of
    /// the addresses of a cluster, or a table. Default: none, for one process
    #[serde(deserialize_with = "from_any_form")]
    pub redis: Option<RedisSettings>,
    /// The servers by which processes with different roles find and ask each other: an address such
    /// as `nats://127.0.0.1:4222`, a list of addresses, or a table. Default: none, for one process,
    /// or several that all do everything
    #[serde(deserialize_with = "from_any_form")]
    pub nats: Option<NatsSettings>,
    /// The server that takes mails, such as `smtp://127.0.0.1:25` or
    /// `smtps://user:password@mail.example.org`. Default: the log
    pub smtp: Option<Url>,
    /// True if a few users, whose password everybody knows, and pictures are made in an empty
    /// storage. Default: true with `SQLite`, if only this machine can connect: `listen` is of
    /// loopback, and no `base_url` is set
    pub sample: Option<bool>,
    /// Networks of trusted proxies, whose `X-Forwarded-For` is used, as
    /// [`TrustedProxies`](greenroom::TrustedProxies). Default: none
    pub trusted_proxies: Vec<IpNet>,
    /// The live feed.
    pub feed: FeedSettings,
    /// The rate limits.
    pub limits: LimitSettings,
    /// The mails.
    pub mail: MailSettings,
    /// The hashing of passwords.
    pub passwords: PasswordSettings,
    /// The limits and the processing of pictures.
    pub pictures: PictureSettings,
    /// The notifications of browsers.
    pub push: PushSettings,
    /// The limits and timeouts of the server, by their names. Default: those of
    /// [`greenroom::Limits`]
    pub server: greenroom::Limits,
    /// The webhooks.
    pub webhook: WebhookSettings,
    /// The third party that pictures are shared with. Default: none, and nothing can be shared
    pub share: Option<ShareSettings>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            role: Role::ALL.to_vec(),
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 5001))],
            status_listen: None,
            base_url: None,
            store: StoreSettings::default(),
            files: FilesSettings::default(),
            redis: None,
            nats: None,
            smtp: None,
            sample: None,
            trusted_proxies: Vec::new(),
            feed: FeedSettings::default(),
            limits: LimitSettings::default(),
            mail: MailSettings::default(),
            passwords: PasswordSettings::default(),
            pictures: PictureSettings::default(),
            push: PushSettings::default(),
            server: greenroom::Limits::default(),
            webhook: WebhookSettings::default(),
            share: None,
        }
    }
}

impl Settings {
    /// Returns `true` if this process has the role.
    #[must_use]
    pub fn has(&self, role: Role) -> bool {
        self.role.contains(&role)
    }

    /// Checks that nothing is missing for the roles.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let is_alone = self.nats.is_none();
        let (web, images) = (self.has(Role::Web), self.has(Role::Images));
        ensure!(!self.role.is_empty(), "`role` must name at least one role");
        ensure!(
            !web || !self.listen.is_empty(),
            "`listen` must name at least one address"
        );
        ensure!(
            !(web && !images && is_alone),
            "the role web without images needs `nats`, by which others do the pictures"
        );
        ensure!(
            !(images && !web && is_alone),
            "the role images without web needs `nats`, by which pictures come from others"
        );
        ensure!(
            web || !self.has(Role::Outbox) || self.base_url.is_some(),
            "the role outbox without web needs `base_url`, which links in mails begin with"
        );
        ensure!(
            web == self.has(Role::Outbox) || !matches!(self.store, StoreSettings::Sqlite(_)),
            "the roles web and outbox go together with SQLite, which no other process opens; give \
             both, or a MongoDB as `store`"
        );
        Ok(())
    }

    /// Returns `true` if every process that changes albums can tell the others: there is no other
    /// one, or they have a cluster.
    #[must_use]
    pub fn tells_of_albums(&self) -> bool {
        self.nats.is_some() || matches!(self.store, StoreSettings::Sqlite(_))
    }

    /// Returns the address that links in mails and notifications begin with.
    ///
    /// # Panics
    /// Panics if there is neither an address to listen on nor a `base_url`:
    /// [`Args::settings`](super::Args::settings) rejects that.
    #[must_use]
    pub fn base_url(&self) -> Url {
        self.base_url.clone().unwrap_or_else(|| {
            let first = self
                .listen
                .first()
                .expect("settings without an address are refused");
            Url::parse(&format!("http://{first}")).expect("an address makes a URL")
        })
    }

    /// Returns `true` if cookies are for HTTPS only: if `base_url` is of that scheme.
    #[must_use]
    pub fn secure_cookies(&self) -> bool {
        self.base_url().scheme() == "https"
    }

    /// Returns `true` if an empty storage is filled with a sample: by default, if nothing says that
    /// others than this machine can reach it, by themselves or through a proxy.
    #[must_use]
    pub fn wants_sample(&self) -> bool {
        self.sample.unwrap_or_else(|| {
            let is_embedded = matches!(self.store, StoreSettings::Sqlite(_));
            let is_here = self.listen.iter().all(|address| address.ip().is_loopback());
            let is_public =
                self.base_url.is_some() || !self.trusted_proxies.is_empty() || self.smtp.is_some();
            is_embedded && is_here && !is_public
        })
    }
}

/// The kind of storage and its address.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(into = "String", try_from = "String")]
pub enum StoreSettings {
    /// `sqlite:PATH`: a file of this process alone.
    Sqlite(PathBuf),
    /// `mongodb://HOST…/DATABASE`; the database's default name is `social`.
    Mongo(Url),
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self::Sqlite(PathBuf::from("social-data/social.db"))
    }
}

impl FromStr for StoreSettings {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("sqlite:").filter(|path| !path.is_empty()) {
            return Ok(Self::Sqlite(PathBuf::from(path)));
        }
        match Url::parse(text) {
            Ok(url) if ["mongodb", "mongodb+srv"].contains(&url.scheme()) => Ok(Self::Mongo(url)),
            _ => Err(format!(
                "`{text}` is no storage: give sqlite:PATH or mongodb://HOST/DATABASE"
            )),
        }
    }
}

impl TryFrom<String> for StoreSettings {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<StoreSettings> for String {
    fn from(settings: StoreSettings) -> Self {
        match settings {
            StoreSettings::Sqlite(path) => format!("sqlite:{}", path.display()),
            StoreSettings::Mongo(url) => url.into(),
        }
    }
}

/// The kind of storage of files and its address.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(into = "String", try_from = "String")]
pub enum FilesSettings {
    /// A directory; several replicas must share it.
    Directory(PathBuf),
    /// `s3://BUCKET/PREFIX`, with the credentials and the endpoint of the usual `AWS_…` variables.
    S3(Url),
}

impl Default for FilesSettings {
    fn default() -> Self {
        Self::Directory(PathBuf::from("social-data/files"))
    }
}

impl FromStr for FilesSettings {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("give a directory, or s3://BUCKET".to_owned());
        }
        match Url::parse(text) {
            Ok(url) if url.scheme() == "s3" && url.has_host() => Ok(Self::S3(url)),
            Ok(url) => Err(format!(
                "files cannot be kept at `{url}`: give a directory, or s3://BUCKET"
            )),
            Err(_) => Ok(Self::Directory(PathBuf::from(text))),
        }
    }
}

impl TryFrom<String> for FilesSettings {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<FilesSettings> for String {
    fn from(settings: FilesSettings) -> Self {
        match settings {
            FilesSettings::Directory(path) => path.display().to_string(),
            FilesSettings::S3(url) => url.into(),
        }
    }
}

/// Settings of the live feed.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct FeedSettings {
    /// The shortest time between two frames to a client: events meanwhile come in one frame.
    /// Default: 40 ms
    #[serde(with = "humantime_serde")]
    pub pace: Duration,
    /// Topics that one client may watch. Default: 200
    pub topics_max: usize,
    /// Events of a topic that are kept in memory, for clients that are a little behind. Default:
    /// 256
    pub recent_max: usize,
    /// The interval at which the ends of watched topics are looked up, should the bus have lost a
    /// message. Default: 5 s
    #[serde(with = "humantime_serde")]
    pub check_every: Duration,
    /// The interval at which the sessions and keys of all connections are looked up, should the
    /// bus have lost the message of an end. Default: 5 min
    #[serde(with = "humantime_serde")]
    pub sessions_check_every: Duration,
}

impl Default for FeedSettings {
    fn default() -> Self {
        Self {
            pace: Duration::from_millis(40),
            topics_max: 200,
            recent_max: 256,
            check_every: Duration::from_secs(5),
            sessions_check_every: Duration::from_mins(5),
        }
    }
}

/// Rate limits of one client, in requests a minute; a fifth of it may come at once. 0 switches a
/// limit off.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSettings {
    /// Log-ins by address; failed ones by name, ten times as many. Default: 20
    pub log_ins: u32,
    /// Mails asked for, to set a new password or to confirm an address, by address. Default: 10
    pub mails: u32,
    /// Sign-ups by address. Default: 10
    pub sign_ups: u32,
    /// Changes (likes, comments, albums …) by user. Default: 300
    pub changes: u32,
    /// Uploads of pictures by user. Default: 60
    pub uploads: u32,
    /// Requests of any kind by address. Default: 6,000
    pub requests: u32,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            log_ins: 20,
            mails: 10,
            sign_ups: 10,
            changes: 300,
            uploads: 60,
            requests: 6_000,
        }
    }
}

/// Settings of mails.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct MailSettings {
    /// The sender. Default: Greenroom social <social@localhost>
    pub from: String,
    /// The hour, in UTC, at which the digest of the day is made. Default: 17
    pub digest_hour: i8,
    /// The longest that one mail may take, at most 35 s. Default: 20 s
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
    /// The time after which a mail is given up. Default: 3 days
    #[serde(with = "humantime_serde")]
    pub give_up_after: Duration,
}

impl Default for MailSettings {
    fn default() -> Self {
        Self {
            from: "Greenroom social <social@localhost>".to_owned(),
            digest_hour: 17,
            timeout: Duration::from_secs(20),
            give_up_after: Duration::from_hours(72),
        }
    }
}

/// Settings of passwords, whose digests are computed on a stage of their own.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct PasswordSettings {
    /// Threads that compute digests, each of which takes 19 MiB. Default: 2
    pub threads: usize,
    /// Log-ins and sign-ups that may wait for a thread. Default: 256
    pub queue_max: usize,
    /// The longest that one may wait for a thread. Default: 5 s
    #[serde(with = "humantime_serde")]
    pub queue_wait_max: Duration,
}

impl Default for PasswordSettings {
    fn default() -> Self {
        Self {
            threads: 2,
            queue_max: 256,
            queue_wait_max: Duration::from_secs(5),
        }
    }
}

/// Settings of pictures.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct PictureSettings {
    /// The largest file. Default: 16 MiB
    pub bytes_max: ByteSize,
    /// The most pixels. Default: 50 million
    pub pixels_max: u64,
    /// The most pictures in one request. Default: 10
    pub per_request_max: usize,
    /// The most pictures of a user. Default: 20,000
    pub per_user_max: u64,
    /// The largest total size of the files that a user has uploaded; the smaller sizes are not
    /// counted. Default: 20 GiB
    pub bytes_per_user_max: ByteSize,
    /// Threads that compute on pictures. Default: 2
    pub threads: usize,
    /// Pictures that may wait for a thread. Default: 256
    pub queue_max: usize,
    /// The longest that a picture may wait for a thread. Default: 60 s
    #[serde(with = "humantime_serde")]
    pub queue_wait_max: Duration,
    /// The age at which files of an unfinished upload are deleted; it must be longer than it takes
    /// to store an upload that is complete, and than some minutes. Default: 1 h
    #[serde(with = "humantime_serde")]
    pub leftovers_after: Duration,
}

impl Default for PictureSettings {
    fn default() -> Self {
        Self {
            bytes_max: ByteSize::mib(16),
            pixels_max: 50_000_000,
            per_request_max: 10,
            per_user_max: 20_000,
            bytes_per_user_max: ByteSize::gib(20),
            threads: 2,
            queue_max: 256,
            queue_wait_max: Duration::from_mins(1),
            leftovers_after: Duration::from_hours(1),
        }
    }
}

/// Settings of Web Push.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct PushSettings {
    /// The private key of VAPID (RFC 8292), base64url; all replicas need the same. Default: one
    /// that is made and kept in `vapid.key` beside the `SQLite` database; with `MongoDB` there is
    /// no Web Push without it
    pub private_key: Option<String>,
    /// The contact for push services, such as `mailto:admin@example.org`. Default: `mailto:` and
    /// the address in `mail.from`
    pub subject: Option<String>,
    /// True if push services at private addresses, and without TLS, are used too. Default: false
    pub allow_private: bool,
}

/// Settings of webhooks.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebhookSettings {
    /// True if webhooks at private addresses, and without TLS, are called too. Default: false
    pub allow_private: bool,
    /// The longest that one call may take, at most 35 s. Default: 5 s
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            allow_private: false,
            timeout: Duration::from_secs(5),
        }
    }
}

/// The third party that pictures are shared with.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ShareSettings {
    /// The address that shares are posted to.
    pub url: Url,
    /// The address of the token endpoint (RFC 6749, section 4.4).
    pub token_url: Url,
    /// The identifier of this client there.
    pub client_id: String,
    /// The secret of this client.
    pub client_secret: String,
    /// The longest that one try may take. Default: 3 s
    #[serde(default = "ShareSettings::default_timeout", with = "humantime_serde")]
    pub timeout: Duration,
    /// Shares under way at a time; more are rejected. Default: 512
    #[serde(default = "ShareSettings::default_concurrency_max")]
    pub concurrency_max: usize,
}

impl ShareSettings {
    fn default_timeout() -> Duration {
        Duration::from_secs(3)
    }

    fn default_concurrency_max() -> usize {
        512
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUIDE: &str = include_str!("../../docs/settings.md");

    /// The block of the guide, with or without what is commented out.
    fn block(is_commented_in: bool) -> toml::Table {
        let begin = GUIDE.find("```toml\n").expect("the guide has a block") + "```toml\n".len();
        let length = GUIDE[begin..].find("```").expect("the block ends");
        let lines =
            GUIDE[begin..begin + length]
                .lines()
                .map(|line| match line.strip_prefix("# ") {
                    Some(setting) if is_commented_in => setting,
                    _ => line,
                });
        let text: Vec<&str> = lines.collect();
        text.join("\n").parse().expect("the block is TOML")
    }

    #[test]
    fn the_guide_tells_the_defaults() {
        let defaults = toml::Table::try_from(Settings::default()).expect("the defaults are TOML");
        let told: Settings = block(false)
            .try_into()
            .expect("the block is made of settings");
        let told = toml::Table::try_from(told).expect("settings are TOML");
        assert_eq!(told, defaults);
        for key in defaults.keys() {
            assert!(
                block(false).contains_key(key),
                "the guide does not tell `{key}`"
            );
        }
    }

    #[test]
    fn what_is_commented_out_in_the_guide_is_a_setting_too() {
        let told: Settings = block(true)
            .try_into()
            .expect("the block is made of settings");
        assert!(told.share.is_some() && told.redis.is_some() && told.push.private_key.is_some());
    }

    #[test]
    fn known_passwords_are_for_this_machine_only() {
        assert!(Settings::default().wants_sample());
        let open = Settings {
            listen: vec![SocketAddr::from(([0, 0, 0, 0], 5001))],
            ..Settings::default()
        };
        assert!(!open.wants_sample());
        let published = Settings {
            base_url: Url::parse("https://social.example.org").ok(),
            ..Settings::default()
        };
        assert!(!published.wants_sample());
        let proxied = Settings {
            trusted_proxies: vec!["127.0.0.0/8".parse().expect("a network")],
            ..Settings::default()
        };
        assert!(!proxied.wants_sample());
    }

    #[test]
    fn a_storage_is_named_by_its_scheme() {
        assert_eq!(
            "sqlite:a/b.db".parse(),
            Ok(StoreSettings::Sqlite("a/b.db".into()))
        );
        assert!(matches!(
            "mongodb://a,b/social?w=1".parse(),
            Ok(StoreSettings::Mongo(_))
        ));
        let error = "mysql://x"
            .parse::<StoreSettings>()
            .expect_err("there is no such storage");
        assert!(error.contains("sqlite:PATH or mongodb://"), "{error}");
    }
}
