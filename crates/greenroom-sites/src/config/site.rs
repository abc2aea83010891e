use std::path::PathBuf;

use super::headers::HeadersTable;
use super::host::Host;
use super::kinds::{AuthTable, CompressTable};
use super::route::{Route, RouteTable};
use crate::file::{Located, Switch, table};

table! {
    /// A site: hosts, and the routes of their paths.
    pub(crate) struct SiteTable {
        /// Names of the site: exact ones, or `*.example.org` for all names with one more label.
        /// Without any, the site serves every host that no other site has.
        hosts: Vec<Located<String>>;
        /// The routes, as tables `[[site.route]]`.
        route: Vec<Located<RouteTable>>;
        /// Compresses responses of all routes that do not say otherwise.
        compress: Option<Switch<CompressTable>>;
        /// Changes header fields of the responses of all routes, before the route's own changes.
        headers: Option<HeadersTable>;
        /// Asks for a name and a password on all routes that do not say otherwise.
        basic_auth: Option<Switch<AuthTable>>;
    }
}

/// A site whose parts fit together.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// Without hosts, it is the default site.
    pub(crate) hosts: Vec<Host>,
    pub(crate) routes: Vec<Route>,
}

impl Site {
    pub(crate) fn password_files(&self) -> impl Iterator<Item = PathBuf> {
        let routes = self.routes.iter();
        routes.filter_map(|route| Some(route.auth.as_ref()?.file.clone()))
    }

    /// Returns the name of a route in status, log and metrics: host and path, as no other route has
    /// them.
    pub(crate) fn label(&self, route: &Route) -> String {
        let host = self.hosts.first().map_or_else(String::new, Host::to_string);
        let exact = if route.path.is_exact { " (exact)" } else { "" };
        format!("{host}{}{exact}", route.path)
    }
}
