//! The status of routes that a server with stages serves at `/greenroom/status`.

use std::net::SocketAddr;

use anyhow::Context;
use serde::Deserialize;

use crate::http;

/// A route's placement, and how it came to it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Route {
    method: String,
    path: String,
    pub(crate) placed: String,
    pub(crate) moves: u64,
    pub(crate) stalls: u64,
}

#[derive(Debug, Deserialize)]
struct Stage {
    sheds: Sheds,
}

#[derive(Debug, Deserialize)]
struct Sheds {
    late: u64,
}

#[derive(Debug, Deserialize)]
struct Status {
    stages: Vec<Stage>,
    routes: Vec<Route>,
}

/// Returns the number of requests that stages admitted and dropped when their turn came too late;
/// `None` if the server has no status.
pub(crate) fn dropped_late(server: SocketAddr) -> Option<u64> {
    let stages = ask(server).ok()?.stages;
    (!stages.is_empty()).then(|| stages.iter().map(|stage| stage.sheds.late).sum())
}

/// Asks for the route that GET requests to this pattern take.
pub(crate) fn route(server: SocketAddr, path: &str) -> anyhow::Result<Route> {
    let status = ask(server)?;
    let mut routes = status.routes.into_iter();
    routes
        .find(|route| route.method == "GET" && route.path == path)
        .with_context(|| format!("/greenroom/status tells of no GET {path}"))
}

fn ask(server: SocketAddr) -> anyhow::Result<Status> {
    let response = http::get(server, "/greenroom/status")?;
    serde_json::from_str(&response.body)
        .with_context(|| format!("/greenroom/status: {}", response.body))
}
