use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use sha2::{Digest, Sha256};

use crate::App;

/// A file that is part of the program.
struct Asset {
    name: &'static str,
    content: &'static str,
}

macro_rules! assets {
    ($($name:literal),* $(,)?) => {
        [$(Asset { name: $name, content: include_str!(concat!("../../static/", $name)) }),*]
    };
}

static ASSETS: [Asset; 21] = assets![
    "album.js",
    "api.js",
    "app.css",
    "bell.js",
    "comments.js",
    "connection.js",
    "counts.js",
    "feed.js",
    "icon.svg",
    "likes.js",
    "main.js",
    "menus.js",
    "notice.js",
    "people.js",
    "pictures.js",
    "push.js",
    "share.js",
    "sw.js",
    "times.js",
    "timeline.js",
    "upload.js",
];

/// A digest of all files: a new version has new addresses, so browsers never mix cached files of
/// two versions.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut digest = Sha256::new();
    for asset in &ASSETS {
        digest.update(asset.content);
    }
    hex::encode(&digest.finalize()[..6])
});
static BASE: LazyLock<String> = LazyLock::new(|| format!("/static/{}", *VERSION));

/// Returns the prefix of the files' addresses.
pub(super) fn base() -> &'static str {
    &BASE
}

pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/static/{version}/{name}", get(versioned))
        .route("/favicon.svg", get(|| async { unversioned("icon.svg") }))
        .route("/favicon.ico", get(|| async { unversioned("icon.svg") }))
        .route("/sw.js", get(|| async { unversioned("sw.js") }))
}

async fn versioned(Path((version, name)): Path<(String, String)>) -> Response {
    // While replicas are replaced one by one, an old one may be asked for new files.
    let keep = if version == *VERSION {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    serve(&name, keep)
}

fn unversioned(name: &str) -> Response {
    serve(name, "no-cache")
}

fn serve(name: &str, keep: &'static str) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let headers = [(CONTENT_TYPE, media_type(name)), (CACHE_CONTROL, keep)];
    (headers, asset.content).into_response()
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.') {
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "js")) => "text/javascript; charset=utf-8",
        _ => "image/svg+xml",
    }
}
