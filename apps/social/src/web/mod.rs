//! The pages: rendered here, and usable without scripts. Scripts (in `static/`) make them live.

mod account;
mod albums;
mod api;
mod bell;
mod credentials;
mod error_page;
mod form;
mod pictures;
mod profile;
mod render;
mod settings;
mod shell;
mod statics;
mod timeline;
mod upload;

pub(crate) use error_page::rejection_page;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use axum_extra::extract::cookie::CookieJar;
use bytesize::ByteSize;
use greenroom::Placement;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{Extensions, HeaderMap, HeaderValue, StatusCode, Version};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{Predicate, SizeAbove};
use tower_http::set_header::SetResponseHeaderLayer;

use crate::App;
use crate::auth::{COOKIE, limit_requests, refuse_from_elsewhere};
use crate::body_limit::body_limit;

/// The Content-Security-Policy: what is ours, and previews of files that the reader has chosen.
/// Should escaping ever fail, an injected script does not run.
pub(crate) const POLICY: &str = "default-src 'self'; img-src 'self' blob: data:; connect-src 'self'; \
                      object-src 'none'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";
/// Largest form; that of an upload may carry a picture as well.
const FORM_MAX: ByteSize = ByteSize::kib(64);

/// Smallest body that is compressed, in bytes.
const COMPRESSED_FROM: u64 = 1024;

/// The routes of pages and of what they load.
pub fn router(app: &App) -> Router<App> {
    let limit = from_fn_with_state(app.clone(), limit_requests);
    pages(api::router(app))
        .route_layer(body_limit(FORM_MAX))
        .merge(uploads(app))
        .route_layer(from_fn_with_state(app.clone(), refuse_from_elsewhere))
        .fallback(error_page::nothing_here)
        .layer(limit.clone())
        .layer(from_fn_with_state(app.clone(), error_page::show_errors))
        .layer(header(CONTENT_SECURITY_POLICY, POLICY))
        .layer(header(X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .layer(header(REFERRER_POLICY, "same-origin"))
        .layer(from_fn(keep_private))
        .merge(statics::router().layer(limit))
        .layer(
            CompressionLayer::new()
                .quality(CompressionLevel::Fastest)
                .compress_when(SizeAbove::new(COMPRESSED_FROM).and(is_text)),
        )
}

/// True for pages, style, scripts and icons; not for pictures or the API. The pages' CSRF tokens
/// are masked (see [`mask_csrf`](crate::auth::mask_csrf)), so the length of a compressed page tells
/// nothing about them.
fn is_text(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    let media_type = headers.get(CONTENT_TYPE);
    let media_type = media_type.and_then(|media_type| media_type.to_str().ok());
    media_type.is_some_and(|media_type| {
        media_type.starts_with("text/") || media_type.starts_with("image/svg+xml")
    })
}

fn pages(api: Router<App>) -> Router<App> {
    api.route("/", get(timeline::show))
        .route(
            "/sign-up",
            get(account::show_sign_up).post(account::sign_up),
        )
        .route("/log-in", get(account::show_log_in).post(account::log_in))
        .route("/log-out", post(account::log_out))
        .route("/users/{name}", get(profile::show))
        .route("/albums", post(albums::create))
        .route("/albums/new", get(albums::show_new))
        .route("/albums/{id}", get(albums::show))
        .route("/albums/{id}/delete", post(albums::delete))
        .route("/pictures/{id}", get(pictures::show))
        .route("/pictures/{id}/like", post(pictures::like))
        .route("/pictures/{id}/comments", post(pictures::comment))
        .route("/pictures/{id}/alt", post(pictures::describe))
        .route("/pictures/{id}/share", post(pictures::share))
        .route("/pictures/{id}/delete", post(pictures::delete))
        .route("/comments/{id}/delete", post(pictures::delete_comment))
        .route("/settings", get(settings::show).post(settings::save))
        .route("/settings/account", get(credentials::show))
        .route("/settings/password", post(credentials::change_password))
        .route("/settings/email", post(credentials::change_email))
        .route(
            "/settings/log-out-everywhere",
            post(credentials::log_out_everywhere),
        )
        .route("/settings/delete", post(credentials::delete_account))
        .route("/settings/keys", post(settings::make_key))
        .route("/settings/keys/{id}/delete", post(settings::delete_key))
        .route("/bell", get(bell::show).post(bell::mark_seen))
        .merge(pages_of_mails())
}

/// The pages for visitors who are not logged in.
fn pages_of_mails() -> Router<App> {
    Router::new()
        .route(
            "/forgot-password",
            get(credentials::show_forgot).post(credentials::forgot),
        )
        .route(
            "/reset-password",
            get(credentials::show_reset).post(credentials::reset),
        )
        .route(
            "/confirm-email",
            get(credentials::show_confirm).post(credentials::confirm),
        )
        .layer(header(CACHE_CONTROL, "no-store"))
}

/// Middleware that keeps private pages out of caches, so that after logging out the browser's
/// history shows nothing of them.
async fn keep_private(request: Request, next: Next) -> Response {
    let is_for_somebody = CookieJar::from_headers(request.headers())
        .get(COOKIE)
        .is_some();
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    if is_for_somebody || headers.contains_key(SET_COOKIE) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    } else if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    }
    response
}

fn uploads(app: &App) -> Router<App> {
    let bytes_max = app.settings.pictures.bytes_max + FORM_MAX;
    Router::new()
        .route("/albums/{id}/pictures", post(upload::receive))
        .route_layer(body_limit(bytes_max))
        // As that of the API.
        .route_layer(Placement::inline())
}

fn header(name: HeaderName, value: &'static str) -> SetResponseHeaderLayer<HeaderValue> {
    SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value))
}
