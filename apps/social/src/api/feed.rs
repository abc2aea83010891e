use axum::extract::{State, WebSocketUpgrade};
use axum::response::Response;
use http::HeaderMap;

use crate::auth::{MaybeWatcher, is_from_elsewhere};
use crate::{App, Failure, Problem};

/// Opens the live feed: a WebSocket, whose messages `apps/social/docs/api.md` describes.
#[utoipa::path(
    get, path = "/feed", tag = "feed", security((), ("session" = []), ("signature" = [])),
    responses(
        (status = 101, description = "The connection is a WebSocket from then on"),
        (status = 403, description = "A page of another origin asks", body = Problem,
            content_type = "application/problem+json"),
    )
)]
pub(super) async fn feed(
    State(app): State<App>,
    MaybeWatcher(watcher): MaybeWatcher,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Failure> {
    // Browsers let any page open a WebSocket, and send the cookie with it.
    if is_from_elsewhere(&app, &headers) {
        return Err(Failure::Forbidden("pages of other origins may not listen"));
    }
    Ok(app.feed.connect(watcher, upgrade))
}
