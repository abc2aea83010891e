//! What can be set: by a TOML file, by the environment (`SOCIAL_…`), by flags; the later wins.

mod args;
mod settings;

pub use args::Args;
pub use settings::{
    FeedSettings, FilesSettings, LimitSettings, MailSettings, PasswordSettings, PictureSettings,
    PushSettings, Settings, ShareSettings, StoreSettings, WebhookSettings,
};
