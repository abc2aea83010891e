use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header::{HOST, HeaderName, ORIGIN};
use http::{HeaderMap, HeaderValue};
use url::Url;

use crate::{App, Failure};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Middleware that rejects changes requested by pages of other origins.
///
/// # Errors
/// [`Failure::Forbidden`] if [`is_from_elsewhere`] says so.
pub async fn refuse_from_elsewhere(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    if !request.method().is_safe() && is_from_elsewhere(&app, request.headers()) {
        return Err(Failure::Forbidden("pages of other origins may not do this"));
    }
    Ok(next.run(request).await)
}

/// Returns `true` if a browser says that the request is made by a page of another origin. Programs
/// that are not browsers send neither header field.
#[must_use]
pub fn is_from_elsewhere(app: &App, headers: &HeaderMap) -> bool {
    let site = headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes);
    if !matches!(site, None | Some(b"same-origin" | b"none")) {
        return true;
    }
    let Some(origin) = headers.get(ORIGIN) else {
        return false;
    };
    let origin = origin.to_str().ok().and_then(|text| Url::parse(text).ok());
    !origin.is_some_and(|origin| is_ours(&origin, &app.settings.base_url(), headers))
}

/// Returns `true` for the configured origin and for that of the host that the browser asked. A
/// proxy in front may have changed the scheme, so only host and port are compared.
fn is_ours(origin: &Url, base: &Url, headers: &HeaderMap) -> bool {
    if origin.origin() == base.origin() {
        return true;
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let asked = host.and_then(|host| Url::parse(&format!("{}://{host}", origin.scheme())).ok());
    asked.is_some_and(|asked| origin.origin().is_tuple() && asked.origin() == origin.origin())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ours_at(origin: &str, host: &'static str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().expect("a host"));
        let base = Url::parse("https://social.example.org").expect("a URL");
        is_ours(&Url::parse(origin).expect("a URL"), &base, &headers)
    }

    #[test]
    fn the_configured_origin_and_the_asked_host_are_ours() {
        assert!(is_ours_at("https://social.example.org", "10.0.0.7:5001"));
        assert!(is_ours_at("http://localhost:5001", "localhost:5001"));
        assert!(is_ours_at(
            "https://other.example.org",
            "other.example.org:443"
        ));
    }

    #[test]
    fn others_are_not() {
        assert!(!is_ours_at("https://evil.example", "social.example.org"));
        assert!(!is_ours_at("http://social.example.org", "10.0.0.7:5001"));
        assert!(!is_ours_at("http://localhost:5002", "localhost:5001"));
        assert!(!is_ours_at("data:text/html,x", "localhost:5001"));
    }
}
