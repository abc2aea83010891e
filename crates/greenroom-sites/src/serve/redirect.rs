use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, Uri, header};

use super::text;
use crate::config::RedirectTable;

/// A redirect of a route.
#[derive(Clone, Debug)]
pub(super) struct Redirect {
    to: String,
    status: StatusCode,
    keeps_rest: bool,
    prefix_bytes: usize,
}

impl Redirect {
    pub(super) fn new(prefix: &str, table: &RedirectTable) -> Self {
        let status = u16::try_from(table.status.value.0).ok();
        let status = status.and_then(|status| StatusCode::from_u16(status).ok());
        Self {
            to: table.to.value.clone(),
            status: status.unwrap_or(StatusCode::PERMANENT_REDIRECT),
            keeps_rest: table.keep_rest,
            prefix_bytes: prefix.len(),
        }
    }

    pub(super) fn respond(&self, uri: &Uri) -> Response<Body> {
        let Ok(location) = HeaderValue::try_from(self.location(uri)) else {
            return text(
                StatusCode::BAD_REQUEST,
                "the path of the request is no path\n",
            );
        };
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.status;
        response.headers_mut().insert(header::LOCATION, location);
        response
    }

    fn location(&self, uri: &Uri) -> String {
        if !self.keeps_rest {
            return self.to.clone();
        }
        let rest = uri.path().get(self.prefix_bytes..).unwrap_or_default();
        // One slash between the two: two at the front would begin the name of another host.
        let rest = rest.trim_start_matches('/');
        let slash = if rest.is_empty() || self.to.ends_with('/') {
            ""
        } else {
            "/"
        };
        let query = uri.query().map(|query| format!("?{query}"));
        format!("{}{slash}{rest}{}", self.to, query.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_follows_with_one_slash_between() {
        for (to, uri, expected) in [
            ("/new", "/old", "/new"),
            ("/new", "/old/a/b?c=d", "/new/a/b?c=d"),
            ("/new/", "/old/a", "/new/a"),
            ("/", "/old//evil.example/", "/evil.example/"),
            ("https://a.example", "/old/x", "https://a.example/x"),
        ] {
            let redirect = Redirect {
                to: to.to_owned(),
                status: StatusCode::FOUND,
                keeps_rest: true,
                prefix_bytes: "/old".len(),
            };
            let uri = Uri::from_static(uri);
            assert_eq!(redirect.location(&uri), expected);
        }
    }
}
