//! The settings: from a TOML file, the environment (`SOCIAL_…`) and flags; the later wins.

mod args;
mod settings;

pub use args::Args;
pub use settings::{
    FeedSettings, FilesSettings, LimitSettings, MailSettings, PasswordSettings, PictureSettings,
    PushSettings, Settings, ShareSettings, StoreSettings, WebhookSettings,
};
