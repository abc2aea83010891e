//! The sites of a file, served.

mod app;
mod apps;
mod auth;
mod beneath;
mod compress;
mod defaults;
mod error;
mod files;
mod layers;
mod lease;
mod opened;
mod redirect;
mod respond;
mod sites;
mod table;
mod target;

use std::convert::Infallible;

use axum::body::Body;
use http::{Request, Response, StatusCode};
use tower::util::BoxCloneSyncService;

pub use app::SitesApp;
pub use apps::Change;
pub use defaults::Defaults;
pub use error::SitesError;
pub use sites::Sites;

/// The service of a route.
type Service = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// Returns a response of one line.
fn text(status: StatusCode, line: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(line));
    *response.status_mut() = status;
    let plain = http::HeaderValue::from_static("text/plain; charset=utf-8");
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, plain);
    response
}
