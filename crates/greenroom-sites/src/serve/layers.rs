//! The service of a route: what responds, and the parts around it.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use greenroom::proxy::Proxy;
use greenroom::psgi::GatewayService;
use greenroom::{Client, ClientKey, Placement, Priority};
use http::{HeaderName, Request, Response, StatusCode, header};
use http_body::Body as _;
use http_body_util::Limited;
use tower::{ServiceExt, service_fn};
use tower_layer::Layer;

use super::Service;
use super::auth::Gate;
use super::compress;
use super::files::Files;
use super::lease::Lease;
use super::redirect::Redirect;
use super::respond::Respond;
use super::table::Endpoint;
use super::text;
use crate::config::{CompressTable, HeaderChanges, Kind, Route};

/// A process or pool that runs for a route already.
pub(super) enum Running {
    Nothing,
    Application(GatewayService, Lease),
    Proxy(Proxy),
}

/// The placements of all routes, for as long as there are sites: loops keep what they know of a
/// placement until they end, so each new file having new ones would add up. And so a route that has
/// proven short stays inline when a new file is taken over.
#[derive(Default)]
pub(super) struct Placements(Vec<((Priority, Option<HeaderName>), Placement)>);

impl Placements {
    fn of(&mut self, route: &Route) -> Placement {
        let kind = (route.priority, route.client_header.clone());
        let found = self.0.iter().find(|(other, _)| *other == kind);
        if let Some((_, placement)) = found {
            return placement.clone();
        }
        let mut placement = Placement::auto().priority(route.priority);
        if let Some(name) = &route.client_header {
            placement = placement.client_key(client_key(name.clone()));
        }
        self.0.push((kind, placement.clone()));
        placement
    }
}

/// Makes what responds on a route.
pub(super) fn endpoint(
    route: &Route,
    running: Running,
    placements: &mut Placements,
) -> io::Result<Endpoint> {
    let is_short = matches!(route.kind, Kind::Redirect(_) | Kind::Respond(_));
    let mut service = respond(route, running)?;
    // What is short stays so: a check of health must not wait for the stage.
    if let Some(table) = route.compress.as_ref().filter(|_| !is_short) {
        service = compressed(service, table);
    }
    if let Some(bytes) = route.body_bytes_max {
        service = limited(service, bytes);
    }
    if let Some(auth) = &route.auth {
        service = behind(Gate::new(auth.clone()), service);
    }
    if !route.headers.is_empty() {
        service = with_headers(service, route.headers.clone().into());
    }
    if is_short {
        return Ok(Endpoint::Inline(service));
    }
    Ok(Endpoint::Placed(placements.of(route).layer(service)))
}

fn respond(route: &Route, running: Running) -> io::Result<Service> {
    let prefix = &route.path.prefix;
    Ok(match (&route.kind, running) {
        (Kind::Files(table, cache_control), _) => {
            let files = Files::new(prefix, table, cache_control.clone())?;
            Service::new(service_fn(move |request| files.clone().respond(request)))
        }
        (Kind::Redirect(table), _) => {
            let redirect = Redirect::new(prefix, table);
            Service::new(service_fn(move |request: Request<Body>| {
                std::future::ready(Ok(redirect.respond(request.uri())))
            }))
        }
        (Kind::Respond(table), _) => {
            let respond = Respond::new(table)?;
            Service::new(service_fn(move |_| {
                std::future::ready(Ok(respond.respond()))
            }))
        }
        (_, Running::Application(gateway, lease)) => application(gateway, lease),
        (_, Running::Proxy(proxy)) => {
            let proxy = service_fn(move |request: Request<Body>| proxy.clone().oneshot(request));
            Service::new(proxy.map_response(|response| response.map(Body::new)))
        }
        (_, Running::Nothing) => return Err(io::Error::other("it does not run")),
    })
}

/// Returns a service whose requests hold the lease.
fn application(gateway: GatewayService, lease: Lease) -> Service {
    Service::new(service_fn(move |request| {
        let (gateway, lease) = (gateway.clone(), lease.clone());
        async move {
            let response = gateway.oneshot(request).await?;
            // One that is whole has left the application.
            let is_whole = response.body().is_end_stream();
            Ok(response.map(|body| if is_whole { body } else { lease.with(body) }))
        }
    }))
}

/// A response before it is compressed.
#[derive(Clone, Copy, Debug)]
struct Before {
    status: StatusCode,
    /// It was compressed by whoever made it.
    is_encoded: bool,
}

/// Compresses responses for clients that take it. One that takes no encoding that there is gets the
/// response as it is: tower-http would make it a 406, also that of a POST which was executed.
fn compressed(service: Service, table: &CompressTable) -> Service {
    let marked = service.map_response(|mut response| {
        let before = Before {
            status: response.status(),
            is_encoded: response.headers().contains_key(header::CONTENT_ENCODING),
        };
        response.extensions_mut().insert(before);
        response
    });
    let layered = compress::layer(table).layer(marked);
    let whole = layered.map_response(|mut response| {
        if let Some(before) = response.extensions_mut().remove::<Before>() {
            *response.status_mut() = before.status;
            if !before.is_encoded && response.headers().contains_key(header::CONTENT_ENCODING) {
                compress::weaken_tag(response.headers_mut());
            }
        }
        if response.status() == StatusCode::NOT_MODIFIED {
            compress::note_variance(response.headers_mut());
        }
        response.map(Body::new)
    });
    Service::new(service_fn(move |request: Request<Body>| {
        let asked = request.headers().get(header::IF_NONE_MATCH).cloned();
        let responding = whole.clone().oneshot(request);
        async move {
            let mut response = responding.await?;
            if response.status() == StatusCode::NOT_MODIFIED
                && let Some(asked) = asked
            {
                compress::weaken_confirmed(response.headers_mut(), &asked);
            }
            Ok(response)
        }
    }))
}

/// Limits the bodies of requests: 413 at once if the length is known, else the body ends with an
/// error.
fn limited(service: Service, bytes: u64) -> Service {
    let most = usize::try_from(bytes).unwrap_or(usize::MAX);
    Service::new(service_fn(move |request: Request<Body>| {
        let service = service.clone();
        async move {
            if request.body().size_hint().lower() > bytes {
                let line = "the body of the request is too long\n";
                return Ok(text(StatusCode::PAYLOAD_TOO_LARGE, line));
            }
            let request = request.map(|body| Body::new(Limited::new(body, most)));
            service.oneshot(request).await
        }
    }))
}

fn behind(gate: Gate, service: Service) -> Service {
    Service::new(service_fn(move |request: Request<Body>| {
        let (gate, service) = (gate.clone(), service.clone());
        async move {
            match gate.check(request.headers()).await {
                Ok(()) => service.oneshot(request).await,
                Err(response) => Ok(response),
            }
        }
    }))
}

fn with_headers(service: Service, changes: Arc<[HeaderChanges]>) -> Service {
    Service::new(service.map_response(move |mut response: Response<Body>| {
        for changes in changes.iter() {
            changes.apply(response.headers_mut());
        }
        response
    }))
}

fn client_key(name: HeaderName) -> ClientKey {
    ClientKey::from_fn(move |parts| {
        let value = parts.headers.get(&name)?;
        Some(Client::named(value.to_str().ok()?))
    })
}
