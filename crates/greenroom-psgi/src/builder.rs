use std::path::PathBuf;
use std::time::Duration;

use greenroom_stage::ClientKey;

use crate::settings::{Concurrency, Settings};
use crate::uploads::Uploads;

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

    #[cfg(test)]
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Sets the number of worker processes, 1 to [`WORKERS_MAX`](crate::WORKERS_MAX). Default: the
    /// number of cores. An application that blocks serves one request at a time in each.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.settings.workers = workers;
        self
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
    /// [included](Self::include). Default: no. Hidden files, backups (`~`, `.bak`) and logs
    /// (`.log`) do not count.
    #[must_use]
    pub fn reload_on_change(mut self, reload_on_change: bool) -> Self {
        self.settings.reload_on_change = reload_on_change;
        self
    }

    /// Replaces a worker after this number of requests, at least 1. Each worker's number is up to a
    /// tenth lower, by chance, so that not all are replaced at once. The successor is loaded first,
    /// and the worker goes on serving meanwhile. Default: never.
    #[must_use]
    pub fn max_requests(mut self, requests: u64) -> Self {
        self.settings.max_requests = Some(requests);
        self
    }

    /// Replaces a worker that has more bytes of resident memory than this, at least 1; checked
    /// every second. The successor is loaded first. Default: never.
    ///
    /// If a worker is above it before its first request, another one would be no smaller: the log
    /// warns once, with the size, and one worker is replaced after 10 s, the next after 20 s more,
    /// then 40 s, up to 10 min. If a worker grows above it within a minute, as one before it did,
    /// the log warns once, and each worker is replaced once it has been ready for a minute.
    #[must_use]
    pub fn max_rss(mut self, bytes: u64) -> Self {
        self.settings.max_rss = Some(bytes);
        self
    }

    /// Sets the time that a worker may work on its requests without progress. Then it is killed,
    /// and the request that it was at gets a 504. Waiting for a client to take a streamed body does
    /// not count, nor does a run that has a connection of its own. Default: 60 s, at least 1 ms.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// Sets the time that loading may take, for the first process as for each worker. Default: 60
    /// s, at least 1 ms.
    #[must_use]
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.settings.start_timeout = timeout;
        self
    }

    /// Sets the time in which a worker that is replaced or shut down may finish the requests that
    /// it has begun. Then it is killed. Default: 30 s.
    #[must_use]
    pub fn drain_deadline(mut self, deadline: Duration) -> Self {
        self.settings.drain_deadline = deadline;
        self
    }

    /// Sets the number of requests that may wait for a worker; a new one beyond it is rejected with
    /// 503, however short the wait. Default: [`QUEUE_MAX`](crate::QUEUE_MAX), at least 1.
    ///
    /// The requests that one client sends to one route fill at most as many places as they leave
    /// free, or half of them if no other client waits, so that there is a place for others. A
    /// waiting request holds its head, by the server's limits up to 64 KiB, and its body up to
    /// [`body_memory_max`](Self::body_memory_max): 16,384 of the largest hold 2 GiB.
    #[must_use]
    pub fn queue_max(mut self, requests: usize) -> Self {
        self.settings.queue_max = requests;
        self
    }

    /// Sets the time that a request may wait for a worker; a new request that would wait for longer
    /// than nine tenths of it is rejected with 503. Default: 10 s, at least 1 ms.
    ///
    /// In a burst twice as long is allowed, so by default 20 s: until predicted waits were above 10
    /// s for more than 20 s. Predictions err, so a request that was admitted then is not dropped
    /// before it has waited for 40 s; one that was admitted later is dropped after 10 s.
    #[must_use]
    pub fn queue_wait_max(mut self, wait: Duration) -> Self {
        self.settings.queue_wait_max = wait;
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

    /// Sets the limit of a request's body in bytes; a longer one gets a 413, and never reaches the
    /// application. Default: [`BODY_BYTES_MAX`](crate::BODY_BYTES_MAX); `u64::MAX` for no limit.
    #[must_use]
    pub fn body_bytes_max(mut self, bytes: u64) -> Self {
        self.settings.body_bytes_max = bytes;
        self
    }

    /// Sets the number of bytes up to which a request's body is held in memory; a longer one goes
    /// into a file. Default: 64 KiB, at most [`BODY_MEMORY_MAX`](crate::BODY_MEMORY_MAX).
    #[must_use]
    pub fn body_memory_max(mut self, bytes: usize) -> Self {
        self.settings.body_memory_max = bytes;
        self
    }

    /// Sets the limit of bytes that all bodies take together, in memory and in files, from the
    /// first byte that comes until the response. Beyond it, a request that brings more gets a 503
    /// with `Retry-After`, and the bytes that came of it are dropped; the others go on. Default:
    /// [`UPLOADS_BYTES_MAX`](crate::UPLOADS_BYTES_MAX), 512 bodies of 2 MiB. A longer body than
    /// this is never served. Clones of this builder share the limit.
    ///
    /// Uploads cannot wait for each other instead: each would hold the bytes that the others wait
    /// for. Bytes that a client only announces by `Content-Length` do not count, or it could take
    /// all the space without sending one. This limit is apart from the server's
    /// [`memory_max`](greenroom_server::Limits::memory_max), as most of these bytes are on a disk.
    #[must_use]
    pub fn uploads_bytes_max(mut self, bytes: u64) -> Self {
        self.settings.uploads = Uploads::new(bytes);
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
}

#[cfg(test)]
mod tests {
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
