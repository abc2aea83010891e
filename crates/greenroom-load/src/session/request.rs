//! Requests in the form of the plan's protocol.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Request, Uri, Version};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::plan::{Paths, Protocol, RequestTemplate, StreamPlan, Target, USER_AGENT as OUR_NAME};

/// Fields that belong to a connection of HTTP/1.1, and may not stand in HTTP/2 (RFC 9113 section
/// 8.2.2); `Host` becomes the authority.
const NOT_SENT: [&str; 6] = [
    "connection",
    "host",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
];
/// The message of a plan without a body.
const DEFAULT_MESSAGE: &str = "greenroom";

/// The encoded requests of all targets.
#[derive(Debug)]
pub(super) struct Messages {
    requests: Vec<Request<()>>,
    paths: Option<Arc<Paths>>,
    pub(super) body: Bytes,
    pub(super) message: Message,
}

impl Messages {
    /// Creates the requests; fails with a description of the method, field or URL that cannot be
    /// sent.
    pub(super) fn new<'a>(
        plan: &StreamPlan,
        targets: impl IntoIterator<Item = &'a Target>,
    ) -> Result<Self, String> {
        let template = &plan.request;
        let request = |target| match plan.protocol {
            Protocol::WebSocket => upgrade(template, target),
            Protocol::Http1 | Protocol::Http2 => request(template, target),
        };
        Ok(Self {
            requests: targets.into_iter().map(request).collect::<Result<_, _>>()?,
            paths: plan.paths.clone(),
            body: Bytes::from(template.body.clone()),
            message: message(&template.body),
        })
    }

    /// Returns the head of a request to a target, or to the only one with the path of a turn; for a
    /// WebSocket the opening's, without the key, which is new each time.
    pub(super) fn request(&self, number: usize) -> Request<()> {
        match &self.paths {
            None => self.requests[number].clone(),
            Some(paths) => with_path(&self.requests[0], paths.of_turn(number)),
        }
    }
}

fn with_path(request: &Request<()>, path: &str) -> Request<()> {
    let mut request = request.clone();
    let mut parts = request.uri().clone().into_parts();
    let path = path.parse::<PathAndQuery>();
    parts.path_and_query = Some(path.expect("it was read as a part of a URL"));
    *request.uri_mut() = Uri::from_parts(parts).expect("only the path was replaced");
    request
}

fn request(template: &RequestTemplate, target: &Target) -> Result<Request<()>, String> {
    let scheme = if target.scheme.is_tls() {
        "https"
    } else {
        "http"
    };
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(template.method.as_bytes())
        .map_err(|_| format!("{:?} is no method", template.method))?;
    *request.uri_mut() = uri(scheme, template, target)?;
    *request.version_mut() = Version::HTTP_2;
    let mut fields = fields(template)?;
    if !template.is_set("accept") {
        fields.insert(http::header::ACCEPT, HeaderValue::from_static("*/*"));
    }
    if !template.body.is_empty() && !template.is_set("content-length") {
        fields.insert(CONTENT_LENGTH, template.body.len().into());
    }
    *request.headers_mut() = fields;
    Ok(request)
}

fn upgrade(template: &RequestTemplate, target: &Target) -> Result<Request<()>, String> {
    let scheme = if target.scheme.is_tls() { "wss" } else { "ws" };
    let mut request = Request::new(());
    *request.uri_mut() = uri(scheme, template, target)?;
    *request.headers_mut() = fields(template)?;
    Ok(request)
}

/// Returns an opening of a WebSocket, with a key of its own.
pub(super) fn with_key(request: &Request<()>) -> Result<Request<()>, String> {
    let mut opening = request
        .uri()
        .into_client_request()
        .map_err(|error| error.to_string())?;
    opening.headers_mut().extend(request.headers().clone());
    Ok(opening)
}

fn uri(scheme: &str, template: &RequestTemplate, target: &Target) -> Result<Uri, String> {
    let host = template
        .fields
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("host"));
    let authority = host.map_or(target.authority.as_str(), |(_, value)| value.trim());
    Uri::builder()
        .scheme(scheme)
        .authority(authority)
        .path_and_query(target.path.as_str())
        .build()
        .map_err(|error| format!("{authority:?} and {:?}: {error}", target.path))
}

fn fields(template: &RequestTemplate) -> Result<HeaderMap, String> {
    let mut fields = HeaderMap::new();
    if !template.is_set("user-agent") {
        fields.insert(USER_AGENT, HeaderValue::from_static(OUR_NAME));
    }
    let is_sent = |name: &str| {
        !NOT_SENT
            .iter()
            .any(|other| name.eq_ignore_ascii_case(other))
    };
    for (name, value) in template.fields.iter().filter(|(name, _)| is_sent(name)) {
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("{name:?} is no name of a field"))?;
        let value = HeaderValue::from_str(value)
            .map_err(|_| format!("{value:?} is no value of the field {name}"))?;
        fields.append(key, value);
    }
    Ok(fields)
}

fn message(body: &[u8]) -> Message {
    if body.is_empty() {
        return Message::text(DEFAULT_MESSAGE);
    }
    match std::str::from_utf8(body) {
        Ok(text) => Message::text(text),
        Err(_) => Message::binary(body.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(protocol: Protocol, template: RequestTemplate) -> StreamPlan {
        let target = "http://host:81/a?b".parse().expect("a URL");
        StreamPlan {
            protocol,
            request: template,
            ..StreamPlan::new(target)
        }
    }

    fn messages(plan: &StreamPlan) -> Result<Messages, String> {
        Messages::new(plan, &plan.targets)
    }

    #[test]
    fn fields_of_a_connection_are_left_out() {
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let template = RequestTemplate {
            method: "POST".to_owned(),
            fields: vec![
                field("Host", "other"),
                field("Connection", "close"),
                field("X-One", "1"),
                field("x-one", "2"),
            ],
            body: b"x=1".to_vec(),
            ..RequestTemplate::default()
        };
        let request = messages(&plan(Protocol::Http2, template))
            .expect("it can be sent")
            .request(0);
        assert_eq!(request.uri(), "http://other/a?b");
        assert_eq!(request.headers()["content-length"], "3");
        assert_eq!(request.headers().get_all("x-one").iter().count(), 2);
        assert!(!request.headers().contains_key("connection"));
        assert!(request.headers().contains_key("user-agent"));
    }

    #[test]
    fn what_cannot_be_sent_is_reported() {
        let template = RequestTemplate {
            method: "GE T".to_owned(),
            ..RequestTemplate::default()
        };
        let error = messages(&plan(Protocol::Http2, template)).expect_err("no method");
        assert!(error.contains("GE T"), "{error}");
        let template = RequestTemplate {
            fields: vec![("a b".to_owned(), String::new())],
            ..RequestTemplate::default()
        };
        let error = messages(&plan(Protocol::WebSocket, template)).expect_err("no name");
        assert!(error.contains("a b"), "{error}");
    }

    #[test]
    fn a_message_is_text_if_it_can_be() {
        let of = |body: &[u8]| message(body);
        assert_eq!(of(b""), Message::text("greenroom"));
        assert_eq!(of("grün".as_bytes()), Message::text("grün"));
        assert_eq!(of(b"\xff"), Message::binary(vec![0xff]));
    }
}
