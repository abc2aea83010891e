//! The bodies of rejections, which are made before a handler runs or in its place.

use greenroom::{Rejection, RejectionBody};
use http::HeaderValue;
use http::header::CONTENT_SECURITY_POLICY;

use crate::server::SECURITY_HEADERS;
use crate::{Problem, api, web};

/// Returns a page for paths of pages, and a problem (RFC 9457) for those of the API and for
/// messages that are no requests.
pub(crate) fn body(rejection: &Rejection<'_>) -> Option<RejectionBody> {
    let page = rejection.path.filter(|path| !api::has(path));
    let (media_type, text) = if let Some(path) = page {
        let text = web::rejection_page(rejection, path)?;
        ("text/html; charset=utf-8", text)
    } else {
        let problem = Problem::new(rejection.status, rejection.detail);
        let text = serde_json::to_string(&problem).ok()?;
        ("application/problem+json", text)
    };
    let mut body = RejectionBody::new(media_type, text);
    for (name, value) in SECURITY_HEADERS {
        body = body.header(name, HeaderValue::from_static(value));
    }
    if page.is_some() {
        let policy = HeaderValue::from_static(web::POLICY);
        body = body.header(CONTENT_SECURITY_POLICY, policy);
    }
    Some(body)
}
