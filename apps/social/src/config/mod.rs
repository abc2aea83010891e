//! The settings: from a TOML file, the environment (`SOCIAL_…`) and flags; the later wins.

mod args;
mod redis;
mod settings;

pub use args::Args;
pub use redis::RedisSettings;
pub use settings::{
    FeedSettings, FilesSettings, LimitSettings, MailSettings, PasswordSettings, PictureSettings,
    PushSettings, Settings, ShareSettings, StoreSettings, WebhookSettings,
};
