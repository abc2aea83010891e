//! Flags of an application's workers: their number, and limits for each.

use greenroom::HasSettings;
use greenroom::psgi::{Builder, Concurrency, GatewaySettings};

use crate::args::settings::SettingArgs;
use crate::args::value;

/// Keys of a mount, and the settings that they stand for.
const KEYS: [(&str, &str); 4] = [
    ("workers", "workers"),
    ("timeout", "timeout"),
    ("max-requests", "max_requests"),
    ("max-rss", "max_rss"),
];

#[derive(Clone, Debug, clap::Args)]
pub(super) struct PoolArgs {
    #[command(flatten)]
    settings: SettingArgs<GatewaySettings>,

    /// Requests that a worker may have at once: a number, or auto to learn it
    ///
    /// A worker without an event loop runs one at a time, whatever is said here. With auto,
    /// requests are sent ahead of routes only that have proven short, and up to 10,000 wait in an
    /// event loop.
    #[arg(
        long,
        env = "GREENROOM_WORKER_CONCURRENCY",
        value_name = "NUMBER",
        default_value = "auto",
        value_parser = concurrency
    )]
    worker_concurrency: Concurrency,

    /// Load the application once, before workers are forked, so that they share its memory
    #[arg(long, env = "GREENROOM_PRELOAD", alias = "preload-app")]
    preload: bool,
}

/// The settings of one application that differ from the others'.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PoolChanges {
    /// Names of settings, and their texts, which are allowed.
    settings: Vec<(&'static str, String)>,
    concurrency: Option<Concurrency>,
    preload: Option<bool>,
}

impl PoolArgs {
    pub(super) fn changed(&self, changes: &PoolChanges) -> Self {
        let mut settings = self.settings.clone();
        for (name, text) in &changes.settings {
            let setting = GatewaySettings::setting(name).expect("it was found before");
            let set = setting.set(&mut settings.0, text);
            set.expect("it was allowed before");
        }
        Self {
            settings,
            worker_concurrency: changes.concurrency.unwrap_or(self.worker_concurrency),
            preload: changes.preload.unwrap_or(self.preload),
        }
    }

    pub(super) fn apply(&self, builder: Builder) -> Builder {
        builder
            .settings(self.settings.0.clone())
            .concurrency(self.worker_concurrency)
            .preload(self.preload)
    }
}

impl PoolChanges {
    /// Takes one `key=value`. Returns `None` if there is no such key.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Option<Result<(), String>> {
        match key {
            "concurrency" => return Some(assign(&mut self.concurrency, concurrency(value))),
            "preload" => return Some(assign(&mut self.preload, yes_or_no(value))),
            _ => {}
        }
        let setting = KEYS.iter().find(|(known, _)| *known == key);
        let setting = setting.and_then(|(_, name)| GatewaySettings::setting(name))?;
        let set = setting.set(&mut GatewaySettings::default(), value);
        self.settings.push((setting.name(), value.to_owned()));
        Some(set.map_err(|error| error.fault().to_owned()))
    }
}

fn assign<T>(place: &mut Option<T>, value: Result<T, String>) -> Result<(), String> {
    *place = Some(value?);
    Ok(())
}

fn concurrency(text: &str) -> Result<Concurrency, String> {
    if text == "auto" {
        return Ok(Concurrency::Auto);
    }
    let number = value::positive(text).map(Concurrency::AtMost);
    number.map_err(|error| format!("{error}, and auto"))
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("allowed are yes and no".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrency_is_a_number_or_learnt() {
        assert_eq!(concurrency("auto"), Ok(Concurrency::Auto));
        let three = 3.try_into().expect("it is not zero");
        assert_eq!(concurrency("3"), Ok(Concurrency::AtMost(three)));
        for text in ["0", "", "many", "-1"] {
            assert!(concurrency(text).is_err_and(|error| error.contains("auto")));
        }
    }
}
