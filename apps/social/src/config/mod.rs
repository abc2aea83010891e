//! The settings: from a TOML file, the environment (`SOCIAL_…`) and flags; the later wins.

mod any_form;
mod args;
mod nats;
mod redis;
mod roles;
mod settings;

pub use args::Args;
pub use nats::NatsSettings;
pub use redis::RedisSettings;
pub use roles::Role;
pub use settings::{
    FeedSettings, FilesSettings, LimitSettings, MailSettings, PasswordSettings, PictureSettings,
    PushSettings, Settings, ShareSettings, StoreSettings, WebhookSettings,
};
