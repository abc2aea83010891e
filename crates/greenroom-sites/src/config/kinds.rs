//! The kinds of responses of a route, and the parts around them.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::file::{
    At, Count, Directory, ExistingFile, Located, Lookup, Reading, Size, Time, Value, table,
};

table! {
    /// Files of a directory.
    pub(crate) struct FilesTable, short root {
        /// The directory. Nothing outside of it is served, by no symbolic link either.
        root: Directory;
        /// Serves `index.html` for a directory. There are no listings in any case.
        index: bool = true;
        /// Serves `page.html.br`, `.zst` or `.gz` in place of `page.html` to clients that
        /// understand it, if the file is there.
        precompressed: bool = true;
        /// Serves what is in `.well-known` of the directory. All other names that begin with a dot
        /// are hidden.
        well_known: bool = false;
        /// The file of the directory, such as `index.html`, for paths at which there is none: of an
        /// application that has its routes in the browser. A path with a dot in its last segment
        /// gets 404 all the same, since a script or a picture is missing then.
        fallback: Option<Located<String>>;
        /// The file whose content a response of 404 has, at most 1 MiB; read at the start and at
        /// reloads.
        not_found: Option<Located<ExistingFile>>;
        /// The value of `Cache-Control` in responses of 200, 206 and 304.
        cache_control: Option<Located<String>>;
    }
}

table! {
    /// A PSGI application (Perl), in worker processes of its own.
    pub(crate) struct PsgiTable, short app {
        /// The file whose value is the application.
        app: ExistingFile;
        /// Worker processes; by default one for each core.
        workers: Option<Count<1, 1024>>;
        /// Requests that a worker may have at once, or `"auto"` to learn it.
        worker_concurrency: Concurrency = Concurrency(greenroom::psgi::Concurrency::Auto);
        /// Loads the application once, before workers are forked.
        preload: bool = false;
        /// Longest time that a worker may give no sign of life while it works.
        timeout: Time = Time(Duration::from_mins(1));
        /// Requests after which a worker is replaced; by default never.
        max_requests: Option<Count<1, { i64::MAX as u64 }>>;
        /// Memory of a worker beyond which it is replaced; by default any.
        max_rss: Option<Size>;
        /// Directories in which Perl looks for modules first.
        include: Vec<Directory>;
        /// Modules to load before the application.
        module: Vec<String>;
        /// The application's `PLACK_ENV`; by default that of this process, else `deployment`.
        env: Option<String>;
        /// Starts new workers when the application's files change.
        reload: bool = false;
        /// Perl, by path or by a name to be searched.
        perl: Lookup = Lookup(PathBuf::from("perl"));
        /// Longest time that the application may take to load.
        start_timeout: Time = Time(Duration::from_mins(1));
        /// Requests that may wait for a worker; 503 beyond.
        worker_queue_max: Count<1, { u32::MAX as u64 }> =
            Count(greenroom::psgi::GatewaySettings::default().queue_max as u64);
        /// Longest wait of a request for a worker; 503 for those that would wait longer.
        worker_queue_wait_max: Time = Time(Duration::from_secs(10));
        /// Size of a request's body that is kept in memory; in a file beyond.
        body_memory_max: Size = Size(kibibytes(64));
        /// Size of all bodies of requests that have no response yet; 503 beyond.
        uploads_bytes_max: Size = Size(kibibytes(1_048_576));
    }
}

table! {
    /// A redirect.
    pub(crate) struct RedirectTable, short to {
        /// A path, or a URL with `http` or `https`.
        to: Located<String>;
        /// 301, 302, 303, 307 or 308. With the last two a client repeats its method and body.
        status: Located<Count<301, 308>> = Count(308).into();
        /// Puts what follows the path of the route, and the query, behind `to`, which has no query
        /// then.
        keep_rest: bool = false;
    }
}

table! {
    /// A response that is always the same.
    pub(crate) struct RespondTable, short body {
        /// The status.
        status: Count<200, 599> = Count(200);
        /// The text of the body.
        body: Option<Located<String>>;
        /// The file whose content is the body, at most 1 MiB; read at the start and at reloads.
        file: Option<Located<ExistingFile>>;
        /// The `Content-Type`; by default `text/plain; charset=utf-8` of a text, and of a file by
        /// its name.
        content_type: Option<Located<String>>;
    }
}

table! {
    /// Compression of responses by zstd, br or gzip, whatever the client prefers.
    pub(crate) struct CompressTable {
        /// Size from which on responses are compressed; those of unknown size are.
        size_min: Size = Size(kibibytes(1));
        /// Types to compress: whole ones, or `text/*` for all of a kind, or `*+json` by suffix.
        types: Vec<String> = default_types();
    }
}

table! {
    /// A name and a password by HTTP's Basic authentication (RFC 7617), which needs TLS.
    pub(crate) struct AuthTable, short file {
        /// A file of lines `name:hash`, as `htpasswd -B` writes it: hashes of bcrypt or argon2.
        file: Located<ExistingFile>;
        /// The realm, which browsers show.
        realm: Located<String> = String::from("restricted").into();
    }
}

fn default_types() -> Vec<String> {
    let types = [
        "text/*",
        "application/javascript",
        "application/json",
        "application/wasm",
        "application/xml",
        "image/svg+xml",
        "*+json",
        "*+xml",
    ];
    types.map(str::to_owned).to_vec()
}

const fn kibibytes(count: u64) -> NonZeroU64 {
    NonZeroU64::MIN.saturating_add(count * 1_024 - 1)
}

/// The number of requests that a worker may have at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Concurrency(pub(crate) greenroom::psgi::Concurrency);

impl Value for Concurrency {
    fn read(at: &At<'_, '_>, reading: &mut Reading<'_>) -> Option<Self> {
        use greenroom::psgi::{CONCURRENCY_MAX, Concurrency};
        if at.value.as_str() == Some("auto") {
            return Some(Self(Concurrency::Auto));
        }
        let number = at.value.as_integer();
        let number = number.and_then(|number| number.as_str().parse::<std::num::NonZeroU32>().ok());
        match number.filter(|number| number.get() <= CONCURRENCY_MAX) {
            Some(number) => Some(Self(Concurrency::AtMost(number))),
            None => reading.fault(&at.span, format!("expected {}", Self::form())),
        }
    }

    fn text(&self) -> Option<String> {
        Some(match self.0 {
            greenroom::psgi::Concurrency::Auto => "\"auto\"".to_owned(),
            greenroom::psgi::Concurrency::AtMost(number) => number.to_string(),
        })
    }

    fn schema() -> Json {
        json!({ "anyOf": [{ "const": "auto" }, { "type": "integer", "minimum": 1 }] })
    }

    fn form() -> String {
        let most = greenroom::psgi::CONCURRENCY_MAX;
        format!("\"auto\", or a whole number from 1 to {most}")
    }
}

/// The priority of a route's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Priority(pub(crate) greenroom::Priority);

impl Priority {
    const NAMES: [(&str, greenroom::Priority); 3] = [
        ("critical", greenroom::Priority::Critical),
        ("normal", greenroom::Priority::Normal),
        ("bulk", greenroom::Priority::Bulk),
    ];
}

impl Value for Priority {
    fn read(at: &At<'_, '_>, reading: &mut Reading<'_>) -> Option<Self> {
        let text = at.value.as_str();
        let found = Self::NAMES.iter().find(|(name, _)| Some(*name) == text);
        match found {
            Some((_, priority)) => Some(Self(*priority)),
            None => reading.fault(&at.span, format!("expected {}", Self::form())),
        }
    }

    fn text(&self) -> Option<String> {
        let name = Self::NAMES.iter().find(|(_, priority)| *priority == self.0);
        name.map(|(name, _)| format!("\"{name}\""))
    }

    fn schema() -> Json {
        json!({ "enum": Self::NAMES.map(|(name, _)| name) })
    }

    fn form() -> String {
        "\"critical\", \"normal\" or \"bulk\"".to_owned()
    }
}
