//! The request of a stream.

use super::Target;

/// The common content of a stream's requests; the target gives the rest.
#[derive(Clone, Debug)]
pub struct RequestTemplate {
    /// The method. Default: `GET`.
    pub method: String,
    /// Header fields as given, in their order; one replaces the field that would be sent by
    /// default.
    pub fields: Vec<(String, String)>,
    /// The body; for a WebSocket the message.
    pub body: Vec<u8>,
    /// True if requests name the whole URL, for a proxy (RFC 9112 section 3.2.2). Default: no.
    pub absolute_form: bool,
}

impl Default for RequestTemplate {
    fn default() -> Self {
        Self {
            method: "GET".to_owned(),
            fields: Vec::new(),
            body: Vec::new(),
            absolute_form: false,
        }
    }
}

impl RequestTemplate {
    /// Returns true if a field of this name was given.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.fields
            .iter()
            .any(|(field, _)| field.eq_ignore_ascii_case(name))
    }

    /// Encodes the request in HTTP/1.1's form (RFC 9112 section 3).
    #[must_use]
    pub fn encode(&self, target: &Target, keep_alive: bool) -> Vec<u8> {
        let (before, after) = self.around_path(target, keep_alive);
        [before.as_bytes(), target.path.as_bytes(), &after].concat()
    }

    /// Returns the bytes before a target's path and behind it, in HTTP/1.1's form.
    pub(crate) fn around_path(&self, target: &Target, keep_alive: bool) -> (String, Vec<u8>) {
        let mut before = format!("{} ", self.method);
        if self.absolute_form {
            before.push_str(&target.origin());
        }
        let mut head = " HTTP/1.1\r\n".to_owned();
        let mut field = |name: &str, value: &str| {
            head.push_str(name);
            head.push_str(": ");
            head.push_str(value);
            head.push_str("\r\n");
        };
        if !self.is_set("host") {
            field("Host", &target.authority);
        }
        if !self.is_set("user-agent") {
            field("User-Agent", USER_AGENT);
        }
        if !self.is_set("accept") {
            field("Accept", "*/*");
        }
        if !keep_alive && !self.is_set("connection") {
            field("Connection", "close");
        }
        if (!self.body.is_empty() || matches!(self.method.as_str(), "POST" | "PUT" | "PATCH"))
            && !self.is_set("content-length")
        {
            field("Content-Length", &self.body.len().to_string());
        }
        for (name, value) in &self.fields {
            field(name, value);
        }
        head.push_str("\r\n");
        (before, [head.as_bytes(), &self.body].concat())
    }
}

/// The value of the `User-Agent` field.
pub(crate) const USER_AGENT: &str = concat!("greenroom-bench/", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_is_given_replaces_the_default() {
        let target: Target = "http://host:81/a?b".parse().expect("valid");
        let mut request = RequestTemplate::default();
        let plain = String::from_utf8(request.encode(&target, false)).expect("text");
        assert!(plain.starts_with("GET /a?b HTTP/1.1\r\nHost: host:81\r\n"));
        assert!(plain.contains("\r\nConnection: close\r\n"));
        assert!(plain.ends_with("\r\n\r\n"));
        request.fields.push(("host".into(), "other".into()));
        request.method = "POST".into();
        request.body = b"x=1".to_vec();
        let text = String::from_utf8(request.encode(&target, true)).expect("text");
        assert!(text.contains("host: other\r\n") && !text.contains("Host: host"));
        assert!(text.contains("Content-Length: 3\r\n") && text.ends_with("\r\n\r\nx=1"));
        assert!(!text.contains("Connection"));
    }

    #[test]
    fn a_proxy_is_reported_the_whole_url() {
        let target: Target = "http://host:81/a".parse().expect("valid");
        let request = RequestTemplate {
            absolute_form: true,
            ..RequestTemplate::default()
        };
        assert!(
            request
                .encode(&target, true)
                .starts_with(b"GET http://host:81/a HTTP/1.1\r\n")
        );
    }
}
