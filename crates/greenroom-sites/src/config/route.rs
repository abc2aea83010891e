use std::path::PathBuf;
use std::sync::Arc;

use http::{HeaderName, HeaderValue};

use super::headers::{HeaderChanges, HeadersTable};
use super::kinds::{
    AuthTable, CompressTable, FilesTable, Priority, PsgiTable, RedirectTable, RespondTable,
};
use super::passwords::Passwords;
use super::path::RoutePath;
use super::proxy::ProxyTable;
use crate::file::{Located, Size, Switch, table};

table! {
    /// A path, and what responds there: exactly one of files, psgi, proxy, redirect and respond.
    pub(crate) struct RouteTable {
        /// The path, below which everything is the route's. Of several the longest counts.
        path: Located<String>;
        /// Takes requests of this path only, and none of those below it.
        exact: bool = false;
        /// Responds with the files of a directory.
        files: Option<FilesTable>;
        /// Responds by a PSGI application.
        psgi: Option<PsgiTable>;
        /// Responds with what upstreams respond.
        proxy: Option<ProxyTable>;
        /// Responds with a redirect.
        redirect: Option<RedirectTable>;
        /// Responds always the same.
        respond: Option<RespondTable>;
        /// Compresses responses; `false` if the site does and this route is not to.
        compress: Option<Switch<CompressTable>>;
        /// Changes header fields of responses.
        headers: Option<HeadersTable>;
        /// Asks for a name and a password; `false` if the site does and this route is not to.
        basic_auth: Option<Switch<AuthTable>>;
        /// Size of a request's body; 413 beyond. At most the server's limit of that name counts.
        body_bytes_max: Option<Size>;
        /// The order in which requests are rejected when there is too much to do: `"bulk"` first,
        /// `"critical"` last.
        priority: Option<Priority>;
        /// The header field whose value names the client, for queues to be fair between clients.
        /// Without it the client is the address.
        client_header: Option<Located<String>>;
    }
}

/// The kind of a route, with its settings.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Files(FilesTable, Option<HeaderValue>),
    Proxy(Box<greenroom::proxy::CheckedSettings>),
    Psgi(Box<PsgiTable>),
    Redirect(RedirectTable),
    Respond(RespondTable),
}

/// The names and passwords of a route.
#[derive(Clone, Debug)]
pub(crate) struct Auth {
    pub(crate) file: PathBuf,
    pub(crate) passwords: Arc<Passwords>,
    /// The value of `WWW-Authenticate`.
    pub(crate) challenge: HeaderValue,
}

/// A route whose parts fit together.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) path: RoutePath,
    pub(crate) kind: Kind,
    pub(crate) compress: Option<CompressTable>,
    /// Of the site and of the route.
    pub(crate) headers: Vec<HeaderChanges>,
    pub(crate) auth: Option<Auth>,
    pub(crate) body_bytes_max: Option<u64>,
    pub(crate) priority: greenroom::Priority,
    pub(crate) client_header: Option<HeaderName>,
}
