use std::path::PathBuf;

use greenroom_stage::ClientKey;

use crate::settings::{Concurrency, GatewaySettings, Settings};

/// The settings of a [`Gateway`](crate::Gateway), each with a default. [`start`](Self::start)
/// checks the limits.
#[derive(Clone, Debug)]
pub struct Builder {
    pub(crate) settings: Settings,
}

impl Builder {
    pub(crate) fn new(application: PathBuf) -> Self {
        Self {
            settings: Settings::new(application),
        }
    }

    /// Sets all limits at once.
    #[must_use]
    pub fn settings(mut self, settings: GatewaySettings) -> Self {
        self.settings.limits = settings;
        self
    }

    pub(crate) fn settings_mut(&mut self) -> &mut GatewaySettings {
        &mut self.settings.limits
    }

    /// Sets the number of requests that a worker is given at once. Default: [`Concurrency::Auto`].
    #[must_use]
    pub fn concurrency(mut self, concurrency: Concurrency) -> Self {
        self.settings.concurrency = concurrency;
        self
    }

    /// Loads the application once, before the workers are forked, so that they share its memory.
    /// Default: no, each worker loads it, which suits applications that open connections or start
    /// an event loop as they load.
    #[must_use]
    pub fn preload(mut self, preload: bool) -> Self {
        self.settings.preload = preload;
        self
    }

    /// Adds a directory in which Perl looks for modules (`perl -I`). The first that was added is
    /// searched first.
    #[must_use]
    pub fn include(mut self, directory: impl Into<PathBuf>) -> Self {
        self.settings.includes.push(directory.into());
        self
    }

    /// Adds a module that is loaded before the application (`perl -M`).
    #[must_use]
    pub fn module(mut self, module: impl Into<String>) -> Self {
        self.settings.modules.push(module.into());
        self
    }

    /// Sets the deployment's name, which applications read as `PLACK_ENV`: `deployment`,
    /// `development`, `test`. Default: the `PLACK_ENV` of this process, else `deployment`.
    #[must_use]
    pub fn environment(mut self, environment: impl Into<String>) -> Self {
        self.settings.environment = Some(environment.into());
        self
    }

    /// Reloads when a file changes below the application's directory or one that was
    /// [included](Self::include) or is [watched](Self::watch). Default: no. Hidden files, backups
    /// (`~`, `.bak`) and logs (`.log`) do not count.
    #[must_use]
    pub fn reload_on_change(mut self, reload_on_change: bool) -> Self {
        self.settings.reload_on_change = reload_on_change;
        self
    }

    /// Adds a directory below which changes count for [`reload_on_change`](Self::reload_on_change),
    /// such as that of an application which this one loads.
    #[must_use]
    pub fn watch(mut self, directory: impl Into<PathBuf>) -> Self {
        self.settings.watched.push(directory.into());
        self
    }

    /// Sets the key by which requests are attributed to clients: workers are shared out fairly
    /// between clients. Default: the address that the request came from (a /64 of IPv6; 127.0.0.1
    /// if it came by a Unix socket), behind [trusted
    /// proxies](greenroom_server::ServerBuilder::trusted_proxies) the one that they name.
    ///
    /// ```
    /// use greenroom_psgi::{Client, ClientKey, Gateway};
    ///
    /// let by_key = ClientKey::from_fn(|parts| {
    ///     let key = parts.headers.get("x-api-key")?;
    ///     Some(Client::named(key.to_str().ok()?))
    /// });
    /// let gateway = Gateway::builder("app.psgi").client_key(by_key);
    /// ```
    #[must_use]
    pub fn client_key(mut self, key: ClientKey) -> Self {
        self.settings.client_key = Some(key);
        self
    }

    /// Sets the Perl to run, by path or by a name that is looked up in `PATH`. Default: `perl`. It
    /// must be Perl 5.16 or later.
    #[must_use]
    pub fn perl(mut self, perl: impl Into<PathBuf>) -> Self {
        self.settings.perl = perl.into();
        self
    }

    /// Sets the path below which the application is served (`SCRIPT_NAME`): empty for all paths, or
    /// with a slash in front and none at its end, as `/shop`. Default: empty.
    #[must_use]
    pub fn mount(mut self, prefix: impl Into<String>) -> Self {
        self.settings.mount = prefix.into();
        self
    }

    /// Sets the name by which status and metrics tell this gateway from others of the same
    /// application: the label `mount` of metrics. Default: the [mount](Self::mount).
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.settings.label = Some(label.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::settings::WORKERS_MAX;

    type Change = fn(Builder) -> Builder;

    #[test]
    fn settings_that_cannot_work_are_refused_by_name() {
        let cases: [(&str, Change); 10] = [
            ("workers", |builder| builder.workers(0)),
            ("workers", |builder| builder.workers(WORKERS_MAX + 1)),
            ("queue_max", |builder| builder.queue_max(0)),
            ("max_requests", |builder| builder.max_requests(0)),
            ("max_rss", |builder| builder.max_rss(0)),
            ("timeout", |builder| builder.timeout(Duration::ZERO)),
            ("mount", |builder| builder.mount("shop")),
            ("mount", |builder| builder.mount("/shop/")),
            ("module", |builder| builder.module("-Plack")),
            ("environment", |builder| builder.environment("")),
        ];
        for (name, change) in cases {
            let builder = change(Builder::new(PathBuf::from("app.psgi")));
            let error = builder.settings.check().expect_err(name);
            assert!(error.to_string().starts_with(name), "{error}");
        }
    }

    #[test]
    fn the_defaults_and_a_mount_are_fine() {
        let builder = Builder::new(PathBuf::from("app.psgi")).mount("/shop/v1");
        assert!(builder.settings.check().is_ok());
    }
}
