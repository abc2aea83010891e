use std::borrow::Cow;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arc_swap::ArcSwap;
use axum::body::Body;
use greenroom::{App, ConnectionInfo, IntoApp, LoopWatch, OnLoops, Pressure};
use greenroom_timing::tell_route;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, StatusCode, Uri, header};

use super::table::{Endpoint, Entry, Found, Table, host_of};
use super::target::Target;
use super::text;

/// The application of a server: the sites that are in force when a request comes. Made by
/// [`Sites::app`](crate::Sites::app).
#[derive(Clone, Debug)]
pub struct SitesApp<A>(A);

impl SitesApp<()> {
    pub(super) fn of(table: Arc<ArcSwap<Table>>) -> SitesApp<impl App> {
        fn app<Kind, S: IntoApp<Kind>>(service: S) -> SitesApp<S::App> {
            SitesApp(service.into_app(None))
        }
        app(OnLoops(BySite { table }))
    }
}

impl<A: App> App for SitesApp<A> {
    type Body = A::Body;
    type Service = A::Service;

    fn connect(&self, info: &ConnectionInfo) -> A::Service {
        self.0.connect(info)
    }

    fn pressure(&self, pressure: Pressure) {
        self.0.pressure(pressure);
    }

    fn watch_loop(&self, name: &str) -> Option<Arc<dyn LoopWatch>> {
        self.0.watch_loop(name)
    }

    /// Always `true`: every route that takes longer than microseconds has a placement.
    fn places_itself(&self) -> bool {
        true
    }
}

/// The service that finds the route of each request.
#[derive(Clone)]
struct BySite {
    table: Arc<ArcSwap<Table>>,
}

type Responding = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>>>>;

impl tower_service::Service<Request<Body>> for BySite {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Responding;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Responding {
        let table = self.table.load();
        let path = request.uri().path();
        let Some(target) = Target::parse(path) else {
            return ready(text(
                StatusCode::BAD_REQUEST,
                "the path of the request is no path\n",
            ));
        };
        let (entry, taken) = match table.find(host_of(&request), &target) {
            Found::Route(entry, taken) => (entry, taken),
            Found::Slash(entry) => return ready(with_slash(entry, request.uri())),
            Found::NoRoute => return ready(text(StatusCode::NOT_FOUND, "not found\n")),
            Found::NoSite => {
                let line = "there is no site of this host here\n";
                return ready(text(StatusCode::MISDIRECTED_REQUEST, line));
            }
        };
        let rest = with_separator(target.rest(taken));
        if path.strip_suffix(&*rest) != Some(&entry.path.prefix) {
            let path = format!("{}{rest}", entry.path.prefix);
            let Some(uri) = with_path(request.uri(), &path) else {
                return ready(text(StatusCode::BAD_REQUEST, "the path is too long\n"));
            };
            *request.uri_mut() = uri;
        }
        match entry.endpoint.clone() {
            Endpoint::Inline(mut service) => {
                tell_route(entry.name.as_str());
                Box::pin(service.call(request))
            }
            Endpoint::Placed(mut service) => Box::pin(service.call_at(&entry.name, request)),
        }
    }
}

/// Spells the separator behind the path of a route as routes do: it belongs to what was matched.
fn with_separator(rest: &str) -> Cow<'_, str> {
    let encoded = ["%2F", "%2f"]
        .iter()
        .find_map(|&slash| rest.strip_prefix(slash));
    encoded.map_or(Cow::Borrowed(rest), |behind| {
        Cow::Owned(format!("/{behind}"))
    })
}

fn ready(response: Response<Body>) -> Responding {
    Box::pin(std::future::ready(Ok(response)))
}

/// Redirects to the path of a route that is a directory.
fn with_slash(entry: &Entry, uri: &Uri) -> Response<Body> {
    let query = uri.query().map(|query| format!("?{query}"));
    let location = format!("{}{}", entry.path, query.unwrap_or_default());
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    if let Ok(location) = HeaderValue::try_from(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// Returns the URI with another path; `None` if it would be none.
pub(super) fn with_path(uri: &Uri, path: &str) -> Option<Uri> {
    let path = if path.is_empty() { "/" } else { path };
    let whole = match uri.query() {
        Some(query) => PathAndQuery::try_from(format!("{path}?{query}")),
        None => PathAndQuery::try_from(path),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(whole.ok()?);
    Uri::from_parts(parts).ok()
}
