use std::path::Path;
use std::sync::OnceLock;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get as on_get;
use tempfile::TempDir;
use tower_http::services::{ServeDir, ServeFile};

use crate::harness::{App, Case, Rig, ask, get};

pub(crate) fn cases() -> Vec<Case> {
    [whole(), parts()].into_iter().flatten().collect()
}

/// A folder of files that all servers share, so that their dates are the same.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        };
        std::fs::create_dir(folder.path().join("below")).unwrap();
        write("hello.txt", b"Hello, world!\n");
        write("hello.txt.gz", b"as if it were compressed");
        write("index.html", b"<p>index</p>");
        write("below/index.html", b"<p>below</p>");
        write("empty", b"");
        write("large.bin", &b"0123456789abcdef".repeat(20_000));
        write("with space.css", b"p {}");
        folder
    });
    folder.path()
}

fn app(_: Rig) -> Router {
    let plain = ServeDir::new(folder());
    let compressed = ServeDir::new(folder()).precompressed_gzip();
    let with_own = ServeDir::new(folder())
        .not_found_service(on_get(|| async { (StatusCode::NOT_FOUND, "no such file") }));
    Router::new()
        .nest_service("/plain", plain)
        .nest_service("/compressed", compressed)
        .nest_service("/own", with_own)
        .route_service("/one", ServeFile::new(folder().join("hello.txt")))
        .fallback_service(ServeDir::new(folder()))
}

fn whole() -> Vec<Case> {
    vec![
        Case::asking(
            "files/whole",
            App::Router(app),
            [
                "/plain/hello.txt",
                "/hello.txt",
                "/one",
                "/plain/",
                "/plain",
                "/plain/below",
                "/plain/below/",
                "/plain/empty",
                "/plain/large.bin",
                "/plain/with%20space.css",
                "/plain/nothing",
                "/own/nothing",
                "/plain/../secret",
                "/plain/%2e%2e/secret",
                "/plain/hello.txt/",
            ]
            .map(get),
        ),
        Case::asking(
            "files/methods",
            App::Router(app),
            [
                ask("HEAD /plain/hello.txt", &[], ""),
                ask("HEAD /plain/large.bin", &[], ""),
                ask("POST /plain/hello.txt", &[], ""),
                ask("OPTIONS /plain/hello.txt", &[], ""),
            ],
        ),
        Case::asking(
            "files/precompressed",
            App::Router(app),
            [
                ask("GET /compressed/hello.txt", &["Accept-Encoding: gzip"], ""),
                ask("GET /compressed/hello.txt", &["Accept-Encoding: br"], ""),
                ask(
                    "GET /compressed/hello.txt",
                    &["Accept-Encoding: identity;q=0"],
                    "",
                ),
                ask("GET /compressed/index.html", &["Accept-Encoding: gzip"], ""),
            ],
        ),
    ]
}

fn parts() -> Vec<Case> {
    let range = |range: &str| {
        ask(
            "GET /plain/hello.txt",
            &[&format!("Range: bytes={range}")],
            "",
        )
    };
    let since =
        |name: &str, date: &str| ask("GET /plain/hello.txt", &[&format!("{name}: {date}")], "");
    let (past, future) = (
        "Tue, 15 Nov 1994 08:12:31 GMT",
        "Sun, 15 Nov 2093 08:12:31 GMT",
    );
    vec![
        Case::asking(
            "files/ranges",
            App::Router(app),
            [
                range("0-4"),
                range("5-"),
                range("-3"),
                range("0-0"),
                range("100-200"),
                range("4-2"),
                range("0-1,3-4"),
                range("x"),
                ask("HEAD /plain/hello.txt", &["Range: bytes=0-4"], ""),
                ask("GET /plain/empty", &["Range: bytes=0-4"], ""),
                ask("GET /plain/large.bin", &["Range: bytes=100000-299999"], ""),
            ],
        ),
        Case::asking(
            "files/not-modified-since",
            App::Router(app),
            [
                since("If-Modified-Since", past),
                since("If-Unmodified-Since", future),
            ],
        ),
        Case::asking(
            "files/modified-since",
            App::Router(app),
            [since("If-Modified-Since", future)],
        ),
        Case::asking(
            "files/unmodified-since",
            App::Router(app),
            [since("If-Unmodified-Since", past)],
        ),
    ]
}
