//! The JSON API and its `OpenAPI` document.

mod albums;
mod bell;
mod browsers;
mod comments;
mod credentials;
mod description;
mod feed;
mod files;
mod keys;
mod likes;
mod me;
mod paging;
mod pictures;
mod problem;
mod sessions;
pub(crate) mod spool;
mod storage;
mod time;
mod upload;
mod users;

use axum::middleware::from_fn_with_state;
use axum::routing::any;
use axum::{Extension, Router};
use bytesize::ByteSize;
use greenroom::{Placement, TextRejections};
use http::HeaderValue;
use http::header::CACHE_CONTROL;
use tower_http::set_header::SetResponseHeaderLayer;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;
use crate::auth::{SignedUploads, check_signature, limit_requests, refuse_from_elsewhere};
use crate::body_limit::body_limit;

pub(crate) use self::description::{ABOUT, Operation};
pub(crate) use self::me::parse_webhook;

/// The size limit of a JSON body.
const JSON_MAX: ByteSize = ByteSize::kib(64);
/// The bytes that an upload may have beside the pictures: captions and the form's own framing.
const AROUND_PICTURES: ByteSize = ByteSize::kib(256);
/// The signed uploads in memory at a time, of one picture each: a digest must be verified before
/// the content is used.
const SIGNED_UPLOADS_MAX: usize = 8;

/// Builds the routes under `/api`, `/time`, `/feed` and `/files`. An unknown address in the API is
/// a problem too.
pub fn router(app: &App) -> Router<App> {
    let (routes, description) = described(app);
    routes
        .merge(description::router(&description))
        .route("/api/{*rest}", any(problem::unknown))
        .layer(from_fn_with_state(app.clone(), refuse_from_elsewhere))
        .layer(from_fn_with_state(app.clone(), limit_requests))
        .layer(SetResponseHeaderLayer::if_not_present(
            CACHE_CONTROL,
            HeaderValue::from_static("no-store"),
        ))
}

/// Returns `true` if the path is one of the API's, and not of a page.
pub(crate) fn has(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next();
    matches!(first, Some("api" | "time" | "feed" | "files")) && path != "/api"
}

/// Returns the `OpenAPI` document of the API, with all its operations.
#[must_use]
pub fn description(app: &App) -> OpenApi {
    described(app).1
}

/// Returns all operations, for the page that lists them.
pub(crate) fn operations(app: &App) -> Vec<Operation> {
    description::operations(&described(app).1)
}

fn described(app: &App) -> (Router<App>, OpenApi) {
    OpenApiRouter::with_openapi(description::head())
        .merge(json_routes(app))
        .merge(upload_routes(app))
        .merge(streaming_routes(app))
        .split_for_parts()
}

fn json_routes(app: &App) -> OpenApiRouter<App> {
    let routes = OpenApiRouter::new()
        .routes(routes!(time::time))
        .routes(routes!(users::sign_up))
        .routes(routes!(users::user))
        .routes(routes!(users::albums))
        .routes(routes!(users::pictures))
        .routes(routes!(sessions::log_in, credentials::log_out_everywhere))
        .routes(routes!(sessions::log_out))
        .routes(routes!(me::me, me::change, credentials::delete_me))
        .routes(routes!(credentials::change_password))
        .routes(routes!(credentials::change_email))
        .routes(routes!(credentials::confirm_email))
        .routes(routes!(credentials::forgotten))
        .routes(routes!(credentials::reset))
        .routes(routes!(keys::keys, keys::create))
        .routes(routes!(keys::delete))
        .routes(routes!(bell::bell, bell::see))
        .routes(routes!(browsers::push_key))
        .routes(routes!(browsers::list, browsers::add, browsers::remove))
        .routes(routes!(albums::create))
        .routes(routes!(albums::album, albums::delete))
        .routes(routes!(albums::pictures))
        .routes(routes!(pictures::timeline))
        .routes(routes!(
            pictures::picture,
            pictures::describe,
            pictures::delete
        ))
        .routes(routes!(storage::storage))
        .routes(routes!(pictures::share))
        .routes(routes!(likes::like, likes::unlike))
        .routes(routes!(comments::comments, comments::create))
        .routes(routes!(comments::delete));
    guarded(routes, app, JSON_MAX)
}

fn upload_routes(app: &App) -> OpenApiRouter<App> {
    let pictures = &app.settings.pictures;
    let signed_max = pictures.bytes_max + AROUND_PICTURES;
    let signed = SignedUploads::new(SIGNED_UPLOADS_MAX, signed_max);
    let bytes_max = upload::bytes_max(pictures) + AROUND_PICTURES;
    let routes = OpenApiRouter::new().routes(routes!(upload::upload));
    guarded(routes, app, bytes_max)
        .route_layer(Extension(signed))
        // Many short runs, in which nothing computes for long: each part of a body would else be
        // passed on to a thread that competes with the loop for the core.
        .route_layer(Placement::inline())
}

fn streaming_routes(app: &App) -> OpenApiRouter<App> {
    let routes = OpenApiRouter::new()
        .routes(routes!(files::file))
        .routes(routes!(feed::feed));
    guarded(routes, app, JSON_MAX)
}

/// Adds the layers of every route, from the inside out.
fn guarded(routes: OpenApiRouter<App>, app: &App, bytes_max: ByteSize) -> OpenApiRouter<App> {
    routes
        .route_layer(from_fn_with_state(app.clone(), check_signature))
        .route_layer(body_limit(bytes_max))
        .route_layer(from_fn_with_state(bytes_max, problem::explain_limit))
        .route_layer(TextRejections)
}
