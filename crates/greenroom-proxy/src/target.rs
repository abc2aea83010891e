//! The target that an upstream is asked for.

use axum::extract::OriginalUri;
use http::Uri;
use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Scheme};

use crate::settings::Settings;

/// Returns the URI as the client sent it: routers take off what they have matched. One that
/// somebody has rewritten is kept.
pub(crate) fn original(parts: &Parts) -> &Uri {
    let Some(OriginalUri(original)) = parts.extensions.get() else {
        return &parts.uri;
    };
    let (path, left) = (original.path(), parts.uri.path());
    // Where nothing is left axum puts a slash, which the client has not sent.
    if path.ends_with(left) || left == "/" {
        original
    } else {
        &parts.uri
    }
}

/// Returns path and query for the upstream; `None` for a path outside `strip_prefix`.
pub(crate) fn path(uri: &Uri, settings: &Settings) -> Option<PathAndQuery> {
    let whole = uri.path_and_query().cloned();
    let whole = whole.unwrap_or_else(|| PathAndQuery::from_static("/"));
    let (strip, add) = (&settings.strip_prefix, &settings.add_prefix);
    if (strip.is_none() && add.is_none()) || whole == "*" {
        return Some(whole);
    }
    let strip = strip.as_deref().unwrap_or_default();
    let rest = whole.as_str().strip_prefix(strip)?;
    if !matches!(rest.bytes().next(), None | Some(b'/' | b'?')) {
        return None;
    }
    let slash = if rest.starts_with('/') { "" } else { "/" };
    let add = add.as_deref().unwrap_or_default();
    // A part of a path that was parsed, behind a prefix that was checked.
    PathAndQuery::try_from(format!("{add}{slash}{rest}")).ok()
}

/// Returns the URI by which the client finds the upstream; `None` if there is none such.
pub(crate) fn uri(scheme: &Scheme, authority: &Authority, path: &PathAndQuery) -> Option<Uri> {
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(scheme.clone());
    parts.authority = Some(authority.clone());
    parts.path_and_query = Some(path.clone());
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_whole_segments_and_the_rest_stays_byte_by_byte() {
        let of = |strip: &str, add: &str, path: &str| {
            let given = |prefix: &str| (!prefix.is_empty()).then(|| prefix.to_owned());
            let settings = Settings {
                strip_prefix: given(strip),
                add_prefix: given(add),
                ..Settings::default()
            };
            let uri = path.parse().expect("a target");
            let path = super::path(&uri, &settings);
            path.map(|path| path.as_str().to_owned())
        };
        for (strip, add, path, expected) in [
            (
                "",
                "",
                "/a//b/../%2e%2F?c=%20&d",
                Some("/a//b/../%2e%2F?c=%20&d"),
            ),
            ("/api", "", "/api/a%2Fb?c", Some("/a%2Fb?c")),
            ("/api", "", "/api", Some("/")),
            ("/api", "", "/api?c", Some("/?c")),
            ("/api", "", "/api//", Some("//")),
            ("/api", "", "/apis", None),
            ("/api", "", "/", None),
            ("/api", "/v1", "/api/a", Some("/v1/a")),
            ("", "/v1", "/", Some("/v1/")),
            ("/api", "", "http://example.org/api/a", Some("/a")),
            ("", "", "http://example.org", Some("/")),
            ("/api", "/v1", "*", Some("*")),
        ] {
            assert_eq!(of(strip, add, path).as_deref(), expected, "{path}");
        }
    }
}
