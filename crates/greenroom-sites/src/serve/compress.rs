//! Compression of responses.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body::Body;
use tower_http::CompressionLevel;
use tower_http::compression::{CompressionLayer, Predicate};

use crate::config::CompressTable;

/// Returns the layer. What it does is work of the response's body, and runs where the placement
/// around it lets bodies run that compute: on the stage.
pub(super) fn layer(table: &CompressTable) -> CompressionLayer<Worthwhile> {
    let worthwhile = Worthwhile {
        size_min: table.size_min.0.get(),
        types: table
            .types
            .iter()
            .map(|text| text.to_ascii_lowercase())
            .collect(),
    };
    CompressionLayer::new()
        .quality(CompressionLevel::Default)
        .compress_when(worthwhile)
}

/// The responses to compress: by type and size, and not those that say `no-transform`.
#[derive(Clone, Debug)]
pub(super) struct Worthwhile {
    size_min: u64,
    types: Arc<[String]>,
}

impl Predicate for Worthwhile {
    fn should_compress<B: Body>(&self, response: &Response<B>) -> bool {
        let headers = response.headers();
        let told = headers.get(header::CONTENT_LENGTH);
        let told = told.and_then(|length| length.to_str().ok()?.parse().ok());
        let length = match response.body().size_hint().exact() {
            // The body of a response to HEAD is gone, but its fields are to be those of a GET.
            Some(0) if response.status() == StatusCode::OK => told.unwrap_or(0).into(),
            length => length.or(told),
        };
        length.is_none_or(|length| length >= self.size_min)
            && !forbids_changes(headers)
            && self.is_type(headers.get(header::CONTENT_TYPE))
    }
}

impl Worthwhile {
    fn is_type(&self, content_type: Option<&HeaderValue>) -> bool {
        let Some(content_type) = content_type.and_then(|value| value.to_str().ok()) else {
            return false;
        };
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        let essence = essence.to_ascii_lowercase();
        // Its events must come one by one, not when there are enough to compress.
        essence != "text/event-stream" && self.types.iter().any(|kind| is_kind(&essence, kind))
    }
}

fn is_kind(essence: &str, kind: &str) -> bool {
    match (kind.strip_suffix('*'), kind.strip_prefix('*')) {
        (Some(begin), _) => essence.starts_with(begin),
        (None, Some(end)) => essence.ends_with(end),
        (None, None) => essence == kind,
    }
}

fn forbids_changes(headers: &HeaderMap) -> bool {
    let mut fields = headers.get_all(header::CACHE_CONTROL).iter();
    fields.any(|field| {
        let directives = field.as_bytes().split(|&byte| byte == b',');
        let mut directives = directives.map(<[u8]>::trim_ascii);
        directives.any(|directive| directive.eq_ignore_ascii_case(b"no-transform"))
    })
}

/// Makes the entity tag of a response that was compressed a weak one: its bytes are not those that
/// the tag was made for (RFC 9110, section 8.8.1).
pub(super) fn weaken_tag(headers: &mut HeaderMap) {
    let tag = headers.get(header::ETAG);
    let tag = tag.filter(|tag| !tag.as_bytes().starts_with(b"W/"));
    let weak = tag.and_then(|tag| HeaderValue::from_str(&format!("W/{}", tag.to_str().ok()?)).ok());
    if let Some(weak) = weak {
        headers.insert(header::ETAG, weak);
    }
}

/// Gives a 304 the weak entity tag of the compressed response that the client has, by the
/// `If-None-Match` of its request (RFC 9110, section 15.4.5).
pub(super) fn weaken_confirmed(headers: &mut HeaderMap, asked: &HeaderValue) {
    let tags = asked.as_bytes().split(|&byte| byte == b',');
    let tags: Vec<_> = tags.map(<[u8]>::trim_ascii).collect();
    let Some(tag) = headers.get(header::ETAG).map(HeaderValue::as_bytes) else {
        return;
    };
    let weak = [b"W/", tag].concat();
    if tags.contains(&weak.as_slice()) && !tags.contains(&tag) {
        weaken_tag(headers);
    }
}

/// Says of a 304, as of the 200 that it confirms, that another encoding could have been chosen (RFC
/// 9110, section 15.4.5).
pub(super) fn note_variance(headers: &mut HeaderMap) {
    let is_noted = headers.get_all(header::VARY).iter().any(|value| {
        let value = value.as_bytes().to_ascii_lowercase();
        value == b"*" || value.windows(15).any(|part| part == b"accept-encoding")
    });
    if !is_noted {
        headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_whole_or_by_kind_or_suffix() {
        for (essence, kind, expected) in [
            ("text/html", "text/*", true),
            ("application/ld+json", "*+json", true),
            ("application/json", "application/json", true),
            ("application/json", "*+json", false),
            ("image/png", "text/*", false),
        ] {
            assert_eq!(is_kind(essence, kind), expected, "{essence} {kind}");
        }
    }
}
