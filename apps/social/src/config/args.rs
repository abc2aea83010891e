use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Parser;
use figment::Figment;
use figment::providers::{Env, Format, Serialized, Toml};
use serde::Serialize;
use url::Url;

use super::{FilesSettings, Role, Settings, StoreSettings, nats, redis};

/// A small social network: albums, pictures, likes, comments, and a feed that moves by itself
///
/// Without flags everything is embedded: SQLite, topics and cache within the process, mails in the
/// log, and a few sample users (ada, grace and linus; their password is "greenroom!").
///
/// Everything else is a key of the TOML file, or of the environment: SOCIAL_LIMITS__CHANGES=1000.
#[derive(Debug, Default, Parser, Serialize)]
#[command(name = "social", version)]
#[expect(
    clippy::doc_markdown,
    reason = "these texts are shown on a terminal, as they stand"
)]
pub struct Args {
    /// TOML file of settings
    #[arg(long, env = "SOCIAL_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// Roles of this process: web, images and outbox, with commas between them; several processes
    /// with different roles need --nats [default: all]
    #[arg(long, value_name = "ROLE", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub role: Vec<Role>,

    /// Address to listen on; may be repeated [default: 127.0.0.1:5001]
    #[arg(long, value_name = "ADDRESS:PORT")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listen: Vec<SocketAddr>,

    /// Address of /greenroom/status and /greenroom/metrics, for operators [default: none]
    #[arg(long, value_name = "ADDRESS:PORT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_listen: Option<SocketAddr>,

    /// Beginning of links in mails, such as <https://social.example.org> [default: the first
    /// address]
    #[arg(long, value_name = "URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<Url>,

    /// sqlite:PATH, or mongodb://HOST/DATABASE [default: sqlite:social-data/social.db]
    #[arg(long, value_name = "STORAGE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreSettings>,

    /// Directory of pictures' files, or s3://BUCKET/PREFIX [default: social-data/files]
    #[arg(long, value_name = "DIRECTORY")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<FilesSettings>,

    /// Redis for topics and cache, which several replicas need; several addresses, with commas
    /// between them, are those of a cluster [default: within the process]
    #[arg(long, value_name = "URL", value_delimiter = ',', value_parser = redis::address)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub redis: Vec<Url>,

    /// NATS servers, by which processes with different roles find each other; some of a cluster,
    /// with commas between them [default: this process alone]
    #[arg(long, value_name = "URL", value_delimiter = ',', value_parser = nats::address)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nats: Vec<Url>,

    /// Server that takes mails: smtp://HOST:PORT, or smtps://USER:PASSWORD@HOST [default: mails go
    /// to the log]
    #[arg(long, value_name = "URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smtp: Option<Url>,

    /// Fill an empty storage with sample data, whose passwords are known [default: true with SQLite
    /// on loopback]
    #[arg(long, value_name = "true|false")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<bool>,
}

impl Args {
    /// Returns all settings: defaults, then the file, then the environment, then the flags.
    ///
    /// # Errors
    /// Names the key that is wrong, its fault, and where it comes from.
    pub fn settings(&self) -> anyhow::Result<Settings> {
        let mut figment = Figment::from(Serialized::defaults(Settings::default()));
        if let Some(file) = &self.config {
            ensure!(file.is_file(), "there is no file {}", file.display());
            figment = figment.merge(Toml::file_exact(file));
        }
        let environment = Env::prefixed("SOCIAL_").ignore(&["config"]).split("__");
        let settings: Settings = figment
            .merge(environment)
            .merge(Serialized::defaults(self))
            .extract()
            .context("the settings are not as they must be")?;
        settings.check()?;
        Ok(settings)
    }
}
