//! Checks of what no table can say alone, and the making of sites from tables.

use std::collections::HashSet;
use std::fs;
use std::path::{Component, Path};
use std::sync::Arc;

use greenroom::psgi::is_mount;
use http::{HeaderName, HeaderValue, Uri};

use super::headers::{self, HeaderChanges};
use super::host::Host;
use super::kinds::{AuthTable, CompressTable, FilesTable, RedirectTable, RespondTable};
use super::passwords::Passwords;
use super::path::RoutePath;
use super::route::{Auth, Kind, Route, RouteTable};
use super::site::{Site, SiteTable};
use crate::file::{ExistingFile, Located, Reading, Switch};

/// The most bytes of the file of a fixed response, or of a page of 404: 1 MiB.
const RESPOND_BYTES_MAX: u64 = 1 << 20;

const KINDS: &str = "files, psgi, proxy, redirect and respond";

/// Makes sites of their tables; `None` if there is a fault.
pub(crate) fn check(tables: &[Located<SiteTable>], reading: &mut Reading<'_>) -> Option<Vec<Site>> {
    let mut hosts = HashSet::new();
    let mut default = None;
    let mut sites = Some(Vec::new());
    for table in tables {
        if table.value.hosts.is_empty() && default.replace(()).is_some() {
            let message = "a second site without `hosts`; there is one default site at most";
            reading.fault::<()>(&table.span, message);
        }
        let site = site(table, &mut hosts, reading);
        sites = sites.zip(site).map(|(mut sites, site)| {
            sites.push(site);
            sites
        });
    }
    if tables.is_empty() && !reading.has_faults() {
        reading.fault::<()>(&(0..0), "there is no site; a site is a table `[[site]]`");
    }
    sites
}

fn site(
    table: &Located<SiteTable>,
    taken: &mut HashSet<Host>,
    reading: &mut Reading<'_>,
) -> Option<Site> {
    let SiteTable { hosts, route, .. } = &table.value;
    let hosts = hosts.iter().map(|host| match Host::parse(&host.value) {
        Err(message) => reading.fault(&host.span, message),
        Ok(name) if !taken.insert(name.clone()) => {
            reading.fault(&host.span, format!("`{name}` is the name of two sites"))
        }
        Ok(name) => Some(name),
    });
    let hosts: Vec<Option<Host>> = hosts.collect();
    if route.is_empty() && !reading.has_faults() {
        let message = "the site has no route; a route is a table `[[site.route]]`";
        reading.fault::<()>(&table.span, message);
    }
    let of_site = OfSite {
        compress: on(table.value.compress.clone()),
        auth: on(table.value.basic_auth.clone()).map(|table| auth(&table, reading)),
        headers: table
            .value
            .headers
            .as_ref()
            .map(|table| HeaderChanges::of(table, reading)),
    };
    let mut paths = HashSet::new();
    let routes: Vec<Option<Route>> = route
        .iter()
        .map(|table| {
            let route = self::route(table, &of_site, reading);
            let path = route
                .as_ref()
                .map(|route| (route.path.prefix.clone(), route.path.is_exact));
            if path.is_some_and(|path| !paths.insert(path)) {
                let path = &table.value.path;
                let message = format!("`{}` is the path of two routes", path.value);
                reading.fault::<()>(&path.span, message);
            }
            route
        })
        .collect();
    Some(Site {
        hosts: hosts.into_iter().collect::<Option<_>>()?,
        routes: routes.into_iter().collect::<Option<_>>()?,
    })
}

/// The parts that a site's routes have unless they say otherwise.
struct OfSite {
    compress: Option<CompressTable>,
    /// `None` within if there is a fault.
    #[expect(clippy::option_option, reason = "not there, or there with a fault")]
    auth: Option<Option<Auth>>,
    headers: Option<HeaderChanges>,
}

fn on<V>(switch: Option<Switch<V>>) -> Option<V> {
    match switch {
        Some(Switch::On(value)) => Some(value),
        _ => None,
    }
}

fn route(
    table: &Located<RouteTable>,
    of_site: &OfSite,
    reading: &mut Reading<'_>,
) -> Option<Route> {
    let table_span = &table.span;
    let table = &table.value;
    let path = match RoutePath::parse(&table.path.value, table.exact) {
        Ok(path) => Some(path),
        Err(message) => reading.fault(&table.path.span, message),
    };
    let kind = match kinds(table, path.as_ref(), reading) {
        Some(mut kinds) if kinds.len() == 1 => kinds.pop(),
        Some(kinds) => {
            let found = match kinds.len() {
                0 => "the route has none of",
                _ => "the route has more than one of",
            };
            reading.fault(
                table_span,
                format!("{found} {KINDS}; exactly one is needed"),
            )
        }
        None => None,
    };
    let auth = match &table.basic_auth {
        None => of_site.auth.clone(),
        Some(Switch::Off) => None,
        Some(Switch::On(table)) => Some(self::auth(table, reading)),
    };
    let own = table.headers.as_ref();
    let own = own.map(|headers| HeaderChanges::of(headers, reading));
    let client_header = table.client_header.as_ref();
    let client_header = client_header.map(|name| field_name(name, reading));
    Some(Route {
        path: path?,
        kind: kind?,
        compress: match table.compress.clone() {
            None => of_site.compress.clone(),
            own => on(own),
        },
        headers: of_site.headers.clone().into_iter().chain(own).collect(),
        auth: transposed(auth)?,
        body_bytes_max: table.body_bytes_max.map(|size| size.0.get()),
        priority: table
            .priority
            .map_or(greenroom::Priority::Normal, |priority| priority.0),
        client_header: transposed(client_header)?,
    })
}

/// Returns `None` if there is a fault within.
#[expect(clippy::option_option, reason = "not there, or there with a fault")]
fn transposed<T>(value: Option<Option<T>>) -> Option<Option<T>> {
    match value {
        None => Some(None),
        Some(None) => None,
        Some(value) => Some(value),
    }
}

/// Returns all kinds that the table has; `None` if one has a fault.
fn kinds(
    table: &RouteTable,
    path: Option<&RoutePath>,
    reading: &mut Reading<'_>,
) -> Option<Vec<Kind>> {
    let mut kinds = Vec::new();
    if let Some(files) = &table.files {
        check_files(files, reading);
        let cache = files.cache_control.as_ref();
        let cache = cache.map(|value| headers::value(value, reading));
        kinds.push(transposed(cache).map(|cache| Kind::Files(files.clone(), cache)));
    }
    if let Some(psgi) = &table.psgi {
        let is_mounted = path.is_none_or(|path| is_mount(&path.prefix) && !path.is_exact);
        let kind = if is_mounted {
            Some(Kind::Psgi(Box::new(psgi.clone())))
        } else {
            let message = "no path for an application, which has all paths below it: allowed are \
                paths such as /blog, without `exact`";
            reading.fault(&table.path.span, message)
        };
        kinds.push(kind);
    }
    if let Some(proxy) = &table.proxy {
        kinds.push(Some(Kind::Proxy(Box::new(proxy.0.clone()))));
    }
    if let Some(redirect) = &table.redirect {
        kinds.push(self::redirect(redirect, reading).map(Kind::Redirect));
    }
    if let Some(respond) = &table.respond {
        kinds.push(self::respond(respond, reading).map(Kind::Respond));
    }
    kinds.into_iter().collect()
}

fn check_files(table: &FilesTable, reading: &mut Reading<'_>) {
    if let Some(page) = &table.not_found {
        check_size(page, reading);
    }
    if let Some(fallback) = &table.fallback {
        let path = Path::new(&fallback.value);
        let is_within = |part| matches!(part, Component::Normal(_));
        if !path.components().all(is_within) || !table.root.0.join(path).is_file() {
            let root = table.root.0.display();
            let message = format!("`{}` is not a file of {root}", fallback.value);
            reading.fault::<()>(&fallback.span, message);
        }
    }
}

/// Checks a file that is held in memory.
fn check_size(file: &Located<ExistingFile>, reading: &mut Reading<'_>) -> Option<()> {
    let length = fs::metadata(&file.value.0).map_or(0, |found| found.len());
    if length > RESPOND_BYTES_MAX {
        let message = format!("the file has {length} bytes; allowed are {RESPOND_BYTES_MAX}");
        return reading.fault(&file.span, message);
    }
    Some(())
}

fn redirect(table: &RedirectTable, reading: &mut Reading<'_>) -> Option<RedirectTable> {
    let status = &table.status;
    if ![301, 302, 303, 307, 308].contains(&status.value.0) {
        let message = format!("{} is not 301, 302, 303, 307 or 308", status.value.0);
        return reading.fault(&status.span, message);
    }
    let to = &table.to;
    let is_absolute = to.value.parse::<Uri>().is_ok_and(|uri| {
        let scheme = uri.scheme_str();
        ["http", "https"].map(Some).contains(&scheme) && uri.authority().is_some()
    });
    if table.keep_rest && to.value.contains(['?', '#']) {
        let message =
            "with `keep_rest`, the rest of the path follows: no `?` and no `#` are allowed";
        return reading.fault(&to.span, message);
    }
    let is_path = to.value.starts_with('/') && !to.value.starts_with("//");
    if (is_absolute || is_path) && HeaderValue::from_str(&to.value).is_ok() {
        return Some(table.clone());
    }
    let message = "expected a path such as \"/new\", or a URL such as \"https://example.org/new\"";
    reading.fault(&to.span, message)
}

fn respond(table: &RespondTable, reading: &mut Reading<'_>) -> Option<RespondTable> {
    if let (Some(file), Some(_)) = (&table.file, &table.body) {
        return reading.fault(&file.span, "`body` and `file` exclude each other");
    }
    if let Some(file) = &table.file {
        check_size(file, reading)?;
    }
    if let Some(content_type) = &table.content_type {
        headers::value(content_type, reading)?;
    }
    Some(table.clone())
}

fn auth(table: &AuthTable, reading: &mut Reading<'_>) -> Option<Auth> {
    let realm = &table.realm;
    let is_text = realm
        .value
        .bytes()
        .all(|byte| byte == b' ' || byte.is_ascii_graphic());
    let challenge = format!("Basic realm=\"{}\", charset=\"UTF-8\"", realm.value);
    let challenge = HeaderValue::from_str(&challenge).ok();
    let challenge = challenge.filter(|_| is_text && !realm.value.contains(['"', '\\']));
    let Some(challenge) = challenge else {
        return reading.fault(
            &realm.span,
            "allowed is visible ASCII without `\"` and `\\`",
        );
    };
    let file = &table.file.value.0;
    match Passwords::read(file) {
        Ok(passwords) => Some(Auth {
            file: file.clone(),
            passwords: Arc::new(passwords),
            challenge,
        }),
        Err(message) => reading.fault(&table.file.span, message),
    }
}

fn field_name(name: &Located<String>, reading: &mut Reading<'_>) -> Option<HeaderName> {
    let parsed = name.value.parse().ok();
    parsed.or_else(|| {
        let message = format!("`{}` is no name of a header field", name.value);
        reading.fault(&name.span, message)
    })
}
