//! The routes of all sites, by host and path.

use std::collections::HashMap;
use std::sync::Arc;

use greenroom_stage::placement::{PlacedPath, PlacedService};
use http::{Request, header};

use super::Service;
use super::target::Target;
use crate::config::{Host, RoutePath, normal};

/// The sites of a file.
#[derive(Default)]
pub(super) struct Table {
    hosts: HashMap<String, usize>,
    /// By what follows the asterisk.
    wildcards: HashMap<String, usize>,
    default: Option<usize>,
    sites: Vec<Vec<Entry>>,
}

/// A route.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) path: RoutePath,
    /// Its name in status, log and metrics: host and path.
    pub(super) name: Arc<PlacedPath>,
    pub(super) endpoint: Endpoint,
}

/// The service of a route, by the place where it runs.
#[derive(Clone)]
pub(super) enum Endpoint {
    /// On the loop: it takes microseconds.
    Inline(Service),
    Placed(PlacedService<Service>),
}

/// The outcome of the search for a route.
pub(super) enum Found<'a> {
    /// The route, with the number of bytes of the decoded path that it takes.
    Route(&'a Entry, usize),
    /// The path is that of a directory without the slash at its end.
    Slash(&'a Entry),
    NoRoute,
    NoSite,
}

impl Table {
    /// Adds a site: the default one if it has no hosts.
    pub(super) fn add(&mut self, hosts: &[Host], mut routes: Vec<Entry>) {
        // The longest first, and of two with the same path the exact one.
        routes.sort_by_key(|entry| {
            let length = entry.path.prefix.len();
            std::cmp::Reverse((length, entry.path.is_exact))
        });
        let index = self.sites.len();
        self.sites.push(routes);
        if hosts.is_empty() {
            self.default = Some(index);
        }
        for host in hosts {
            match host {
                Host::Exact(name) => self.hosts.insert(name.clone(), index),
                Host::Wildcard(suffix) => self.wildcards.insert(suffix.clone(), index),
            };
        }
    }

    /// Finds the route of a request for this host.
    pub(super) fn find(&self, host: Option<&str>, target: &Target<'_>) -> Found<'_> {
        let Some(site) = self.site(host) else {
            return Found::NoSite;
        };
        let path = target.normal();
        for entry in &self.sites[site] {
            let RoutePath {
                prefix,
                is_directory,
                is_exact,
            } = &entry.path;
            let Some(rest) = path.strip_prefix(prefix.as_bytes()) else {
                continue;
            };
            match (is_exact, rest) {
                (true, b"/") if *is_directory => return Found::Route(entry, prefix.len()),
                (true, b"") if !is_directory => return Found::Route(entry, prefix.len()),
                (false, []) if *is_directory => return Found::Slash(entry),
                (false, [] | [b'/', ..]) => return Found::Route(entry, prefix.len()),
                _ => {}
            }
        }
        Found::NoRoute
    }

    fn site(&self, host: Option<&str>) -> Option<usize> {
        let found = host.and_then(|host| {
            let is_plain = |byte: u8| !byte.is_ascii_uppercase() && byte != b'[';
            if host.bytes().all(is_plain) && !host.ends_with('.') {
                return self.named(host);
            }
            self.named(&normal(host))
        });
        found.or(self.default)
    }

    fn named(&self, host: &str) -> Option<usize> {
        let by_wildcard = || {
            let dot = host.find('.').filter(|dot| *dot > 0)?;
            self.wildcards.get(&host[dot..])
        };
        self.hosts.get(host).or_else(by_wildcard).copied()
    }
}

/// Returns the host that a request names, without its port: of the target (HTTP/2's `:authority`,
/// or an absolute form, which counts by RFC 9112, section 3.2.2), else of `Host`.
pub(super) fn host_of<B>(request: &Request<B>) -> Option<&str> {
    if let Some(host) = request.uri().host() {
        return Some(host);
    }
    let host = request.headers().get(header::HOST)?.to_str().ok()?;
    Some(match (host.rfind(':'), host.ends_with(']')) {
        (Some(colon), false) => &host[..colon],
        _ => host,
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::body::Body;
    use http::Response;
    use tower::service_fn;

    use super::*;

    fn entry(path: &str, is_exact: bool) -> Entry {
        let endpoint = service_fn(|_| async { Ok::<_, Infallible>(Response::new(Body::empty())) });
        Entry {
            path: RoutePath::parse(path, is_exact).expect(path),
            name: Arc::new(PlacedPath::new(&format!(
                "{path}{}",
                if is_exact { " only" } else { "" }
            ))),
            endpoint: Endpoint::Inline(Service::new(endpoint)),
        }
    }

    fn table() -> Table {
        let mut table = Table::default();
        let hosts = |names: &[&str]| -> Vec<Host> {
            names
                .iter()
                .map(|name| Host::parse(name).expect(name))
                .collect()
        };
        let routes = [
            ("/", false),
            ("/a", false),
            ("/a/b/", false),
            ("/a/b", true),
            ("/c/", true),
        ];
        let routes = routes.map(|(path, is_exact)| entry(path, is_exact));
        table.add(&hosts(&["example.org", "[::1]"]), routes.to_vec());
        table.add(&hosts(&["*.example.org"]), vec![entry("/w/", false)]);
        table
    }

    fn find(table: &Table, host: &str, path: &str) -> String {
        let target = Target::parse(path).expect(path);
        match table.find(Some(host), &target) {
            Found::Route(entry, taken) => format!("{} {taken}", entry.name.as_str()),
            Found::Slash(entry) => format!("slash {}", entry.name.as_str()),
            Found::NoRoute => "no route".to_owned(),
            Found::NoSite => "no site".to_owned(),
        }
    }

    #[test]
    fn the_longest_path_gets_the_request_segment_by_segment() {
        let table = table();
        for (path, expected) in [
            ("/", "/ 0"),
            ("/x", "/ 0"),
            ("/a", "/a 2"),
            ("/a/", "/a 2"),
            ("/ax", "/ 0"),
            ("/a/b", "/a/b only 4"),
            ("/a/b/", "/a/b/ 4"),
            ("/a/b/c", "/a/b/ 4"),
            ("/c/", "/c/ only 2"),
            ("/c", "/ 0"),
            ("/c/d", "/ 0"),
            ("//a//b/c", "/a/b/ 4"),
            ("/%61", "/a 2"),
            ("/a%2Fb%2Fc", "/a/b/ 4"),
        ] {
            assert_eq!(find(&table, "example.org", path), expected, "{path}");
        }
    }

    #[test]
    fn hosts_are_found_whole_before_by_wildcard_and_by_default() {
        let mut table = table();
        for (host, expected) in [
            ("example.org", "/ 0"),
            ("EXAMPLE.org.", "/ 0"),
            ("[::1]", "/ 0"),
            ("[0:0::0001]", "/ 0"),
            ("[::2]", "no site"),
            ("a.example.org", "no route"),
            ("a.b.example.org", "no site"),
            (".example.org", "no site"),
            ("example.com", "no site"),
        ] {
            assert_eq!(find(&table, host, "/"), expected, "{host}");
        }
        assert_eq!(find(&table, "a.example.org", "/w"), "slash /w/");
        table.add(&[], vec![entry("/", false)]);
        assert_eq!(find(&table, "example.com", "/"), "/ 0");
    }

    #[test]
    fn ports_do_not_belong_to_hosts() {
        let host = |field: &str| {
            let request = Request::builder()
                .header("host", field)
                .body(())
                .expect(field);
            host_of(&request).map(str::to_owned)
        };
        assert_eq!(host("a.org:8080").as_deref(), Some("a.org"));
        assert_eq!(host("a.org").as_deref(), Some("a.org"));
        assert_eq!(host("[::1]:80").as_deref(), Some("[::1]"));
        assert_eq!(host("[::1]").as_deref(), Some("[::1]"));
        let absolute = Request::builder()
            .uri("http://b.org:1/x")
            .header("host", "a.org");
        assert_eq!(
            host_of(&absolute.body(()).expect("a request")),
            Some("b.org")
        );
    }
}
