use std::convert::Infallible;
use std::fs;
use std::io;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use tower_http::services::ServeDir;
use tower_http::services::fs::DefaultServeDirFallback;
use tower_service::Service as _;

use super::app::with_path;
use super::beneath::Beneath;
use super::compress;
use super::target::Target;
use super::text;
use crate::config::FilesTable;

/// The bytes of a file that are read at a time.
const CHUNK_BYTES: usize = 128 << 10;

/// All but the bytes that stand for themselves in a path (RFC 3986, section 3.3).
const IN_PATHS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The directory whose names begin with a dot and may be shown.
const WELL_KNOWN: &[u8] = b".well-known";

/// The files of a directory. Clones share what is in them.
#[derive(Clone)]
pub(super) struct Files {
    directory: ServeDir<DefaultServeDirFallback, Beneath>,
    shared: Arc<Shared>,
}

struct Shared {
    /// The length of the path that the route takes.
    prefix_bytes: usize,
    shows_well_known: bool,
    /// A file may be there once more, compressed.
    is_precompressed: bool,
    cache_control: Option<HeaderValue>,
    /// The path of the file for paths without one.
    fallback: Option<String>,
    /// The page of 404, with its type.
    not_found: Option<(Bytes, HeaderValue)>,
}

impl Files {
    /// Opens the directory.
    pub(super) fn new(
        prefix: &str,
        table: &FilesTable,
        cache_control: Option<HeaderValue>,
    ) -> io::Result<Self> {
        let root = Beneath::new(&table.root.0)?;
        let mut directory = ServeDir::with_backend("", root)
            .append_index_html_on_directories(table.index)
            .redirect_path_prefix(prefix)
            .ignore_multi_range_requests(true)
            .with_buf_chunk_size(CHUNK_BYTES);
        if table.precompressed {
            directory = directory
                .precompressed_br()
                .precompressed_zstd()
                .precompressed_gzip();
        }
        let page = table.not_found.as_ref();
        let not_found = page.map(|page| {
            let path = &page.value.0;
            fs::read(path).map(|text| (text.into(), type_of(path)))
        });
        Ok(Self {
            directory,
            shared: Arc::new(Shared {
                prefix_bytes: prefix.len(),
                shows_well_known: table.well_known,
                is_precompressed: table.precompressed,
                cache_control,
                not_found: not_found.transpose()?,
                fallback: table.fallback.as_ref().map(|file| {
                    let path = format!("/{}", file.value);
                    percent_encode(path.as_bytes(), IN_PATHS).to_string()
                }),
            }),
        })
    }

    pub(super) async fn respond(
        mut self,
        mut request: Request<Body>,
    ) -> Result<Response<Body>, Infallible> {
        let path = &request.uri().path()[self.shared.prefix_bytes..];
        let path = if path.is_empty() { "/" } else { path };
        let Some(path) = self.shared.shown(path) else {
            return Ok(self.shared.not_found());
        };
        let uri = with_path(request.uri(), &path);
        let Some(path) = uri.and_then(|uri| uri.into_parts().path_and_query) else {
            return Ok(self.shared.not_found());
        };
        // Without scheme and host, which would stand in redirects, and may be a proxy's.
        let uri = Uri::from(path);
        *request.uri_mut() = uri;
        let fallback = self.shared.of_fallback(&request);
        let mut response = self.with_range(request).await;
        if let (StatusCode::NOT_FOUND, Some(request)) = (response.status(), fallback) {
            response = self.with_range(request).await;
        }
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(self.shared.not_found());
        }
        if self.shared.is_precompressed && response.status() == StatusCode::NOT_MODIFIED {
            compress::note_variance(response.headers_mut());
        }
        if let Some(cache_control) = &self.shared.cache_control
            && matches!(response.status().as_u16(), 200 | 206 | 304)
        {
            let headers = response.headers_mut();
            headers.insert(header::CACHE_CONTROL, cache_control.clone());
        }
        Ok(response)
    }

    /// Responds with a range only to GET (RFC 9110, section 14.2), only if its condition holds
    /// (section 13.1.5), and if there is one.
    async fn with_range(&mut self, mut request: Request<Body>) -> Response<Body> {
        let condition = request.headers_mut().remove(header::IF_RANGE);
        let range = take_range(request.headers_mut());
        let Some(range) = range.filter(|_| request.method() == Method::GET) else {
            return self.of_directory(request).await;
        };
        let whole = like(&request);
        request.headers_mut().insert(header::RANGE, range.clone());
        let response = self.of_directory(request).await;
        let is_range = response.status() == StatusCode::PARTIAL_CONTENT
            || response.status() == StatusCode::RANGE_NOT_SATISFIABLE;
        let holds = condition.is_none_or(|condition| is_same(response.headers(), &condition));
        if is_range && (!holds || is_of_whole(&range, &response)) {
            return self.of_directory(whole).await;
        }
        response
    }

    async fn of_directory(&mut self, request: Request<Body>) -> Response<Body> {
        let Ok(response) = self.directory.call(request).await;
        response.map(Body::new)
    }
}

/// Returns the request once more, without its body.
fn like(request: &Request<Body>) -> Request<Body> {
    let mut again = Request::new(Body::empty());
    again.method_mut().clone_from(request.method());
    again.uri_mut().clone_from(request.uri());
    again.headers_mut().clone_from(request.headers());
    again
}

/// Takes the range out of a request, as the directory knows it. One of another unit than bytes does
/// not count (RFC 9110, section 14.2).
fn take_range(headers: &mut HeaderMap) -> Option<HeaderValue> {
    let range = headers.remove(header::RANGE)?;
    let (unit, set) = range.to_str().ok()?.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    HeaderValue::try_from(format!("bytes={set}")).ok()
}

/// Returns true where the directory is wrong: more bytes from the end than there are mean the whole
/// file (RFC 9110, section 14.1.2), and of an empty one there is no part.
fn is_of_whole(range: &HeaderValue, response: &Response<Body>) -> bool {
    if response.status() == StatusCode::PARTIAL_CONTENT {
        let part = response.headers().get(header::CONTENT_RANGE);
        return part.is_some_and(|part| part.as_bytes().ends_with(b"/0"));
    }
    let suffix = range.as_bytes().strip_prefix(b"bytes=-");
    let digits = suffix.filter(|digits| digits.iter().all(u8::is_ascii_digit));
    digits.is_some_and(|digits| digits.iter().any(|digit| *digit != b'0'))
}

/// Returns true if this is the validator of the file, whole: a strong entity tag, or a date.
fn is_same(headers: &HeaderMap, validator: &HeaderValue) -> bool {
    let is_weak = validator.as_bytes().starts_with(b"W/");
    let of_file = [header::ETAG, header::LAST_MODIFIED];
    !is_weak
        && of_file
            .iter()
            .any(|name| headers.get(name) == Some(validator))
}

impl Shared {
    /// Returns the path below the directory, for `ServeDir`, which decodes it again; `None` if it
    /// is hidden.
    fn shown(&self, path: &str) -> Option<String> {
        let target = Target::parse(path)?;
        let path = target.normal();
        let mut segments = path.split(|byte| *byte == b'/').skip(1);
        let is_hidden = |(index, segment): (usize, &[u8])| {
            let is_shown = self.shows_well_known && index == 0 && segment == WELL_KNOWN;
            segment.starts_with(b".") && !is_shown
        };
        if segments.by_ref().enumerate().any(is_hidden) {
            return None;
        }
        Some(percent_encode(path, IN_PATHS).to_string())
    }

    /// Returns the request for the file that takes the place of one that is missing.
    fn of_fallback(&self, request: &Request<Body>) -> Option<Request<Body>> {
        let path = self.fallback.as_ref()?;
        let last = request.uri().path().rsplit('/').next();
        if last.is_some_and(|segment| segment.contains('.')) {
            return None;
        }
        let mut again = like(request);
        *again.uri_mut() = path.parse().ok()?;
        Some(again)
    }

    fn not_found(&self) -> Response<Body> {
        let Some((page, content_type)) = &self.not_found else {
            return text(StatusCode::NOT_FOUND, "not found\n");
        };
        let mut response = Response::new(Body::from(page.clone()));
        *response.status_mut() = StatusCode::NOT_FOUND;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, content_type.clone());
        response
    }
}

/// Guesses the type of a file by its name.
pub(super) fn type_of(path: &std::path::Path) -> HeaderValue {
    let guessed = mime_guess::from_path(path).first_raw();
    HeaderValue::from_static(guessed.unwrap_or("application/octet-stream"))
}
