//! Flags of the requests.

use std::path::PathBuf;

use greenroom_load::plan::Place;

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[command(next_help_heading = "Request")]
pub(crate) struct RequestArgs {
    /// Method
    #[arg(short = 'm', long, value_name = "NAME", value_parser = method, conflicts_with = "head")]
    pub(crate) method: Option<String>,

    /// Send HEAD
    #[arg(short = 'i', long, conflicts_with_all = ["post_file", "put_file"])]
    pub(crate) head: bool,

    /// File whose content is sent with POST, or as the message of a WebSocket
    #[arg(short = 'p', long, value_name = "FILE", conflicts_with = "put_file")]
    pub(crate) post_file: Option<PathBuf>,

    /// File whose content is sent with PUT
    #[arg(short = 'u', long, value_name = "FILE")]
    pub(crate) put_file: Option<PathBuf>,

    /// Content-Type of the body [default: text/plain]
    #[arg(short = 'T', long, value_name = "TYPE", value_parser = field_value)]
    pub(crate) content_type: Option<String>,

    /// Header field, such as 'Accept-Encoding: gzip'; may be repeated, and replaces one sent by
    /// default
    #[arg(short = 'H', long, value_name = "FIELD", value_parser = field)]
    pub(crate) header: Vec<(String, String)>,

    /// Cookie, such as 'session=123'; may be repeated
    #[arg(short = 'C', long, value_name = "NAME=VALUE", value_parser = field_value)]
    pub(crate) cookie: Vec<String>,

    /// User and password for basic authentication
    #[arg(short = 'A', long, value_name = "USER:PASSWORD", value_parser = credentials)]
    pub(crate) auth: Option<String>,

    /// Proxy that the requests are sent through (http only)
    #[arg(short = 'X', long, value_name = "HOST:PORT", value_parser = place)]
    pub(crate) proxy: Option<Place>,

    /// User and password for the proxy
    #[arg(
        short = 'P',
        long,
        value_name = "USER:PASSWORD",
        value_parser = credentials,
        requires = "proxy"
    )]
    pub(crate) proxy_auth: Option<String>,

    /// Speak HTTP/2: by ALPN over https, with prior knowledge over http
    #[arg(long)]
    pub(crate) http2: bool,

    /// Accept any certificate
    #[arg(long)]
    pub(crate) insecure: bool,

    /// Trust the certificate authorities in this PEM file too
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,

    /// Our certificate and its key, one PEM file
    #[arg(short = 'E', long, value_name = "FILE")]
    pub(crate) certificate: Option<PathBuf>,

    /// Send no server name in the TLS handshake
    #[arg(short = 'I', long)]
    pub(crate) no_sni: bool,

    /// Accept responses of different lengths (dynamic pages); else they count as failed
    #[arg(short = 'l', long)]
    pub(crate) variable_length: bool,

    /// Go on after errors of sockets; that is always so, the flag is accepted for ab's sake
    #[arg(short = 'r', long, hide_short_help = true)]
    pub(crate) ignore_errors: bool,
}

/// Header fields whose values are for the server alone.
const SECRET_FIELDS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

impl RequestArgs {
    /// Returns what a report that others read must not tell.
    pub(crate) fn secrets(&self) -> Vec<&str> {
        let is_secret = |name: &String| {
            let mut fields = SECRET_FIELDS.iter();
            fields.any(|field| name.eq_ignore_ascii_case(field))
        };
        let fields = self.header.iter().filter(|(name, _)| is_secret(name));
        let values = fields.map(|(_, value)| value.trim());
        let cookies = self.cookie.iter().map(String::as_str);
        let credentials = [&self.auth, &self.proxy_auth].into_iter().flatten();
        values
            .chain(cookies)
            .chain(credentials.map(String::as_str))
            .collect()
    }
}

pub(super) fn method(text: &str) -> Result<String, String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if text.is_empty() || !text.bytes().all(is_token) {
        return Err("a method is a word such as GET or DELETE".to_owned());
    }
    Ok(text.to_owned())
}

fn field(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("a field is written 'Name: value'")?;
    let name = name.trim().parse::<http::HeaderName>();
    let value = http::HeaderValue::from_str(value.trim());
    match (name, value) {
        (Ok(_), Ok(value)) => {
            let value = value.to_str().map_err(|_| "a value must be ASCII")?;
            let name = text.split(':').next().unwrap_or_default().trim();
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("a field is written 'Name: value', without control characters".to_owned()),
    }
}

/// Checks a value of a field: one that would break its line would be a field of its own.
fn field_value(text: &str) -> Result<String, String> {
    match http::HeaderValue::from_str(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("it may contain no control characters".to_owned()),
    }
}

fn credentials(text: &str) -> Result<String, String> {
    if !text.contains(':') {
        return Err("user and password are written USER:PASSWORD".to_owned());
    }
    Ok(text.to_owned())
}

fn place(text: &str) -> Result<Place, String> {
    let (host, port) = text.rsplit_once(':').unwrap_or((text, "80"));
    let port = port.parse().ok().filter(|port| *port > 0);
    match port {
        Some(port) if !host.is_empty() => Ok(Place::Tcp {
            host: host.trim_matches(['[', ']']).to_owned(),
            port,
        }),
        _ => Err("a proxy is written HOST:PORT".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_keeps_its_spelling() {
        assert_eq!(
            field("X-A:  b: c "),
            Ok(("X-A".to_owned(), "b: c".to_owned()))
        );
        assert!(field("X-A").is_err() && field("X A: b").is_err());
        assert!(field("X-A: b\r\nEvil: c").is_err());
    }

    #[test]
    fn a_proxy_is_a_host_and_a_port() {
        let expected = Place::Tcp {
            host: "::1".to_owned(),
            port: 3128,
        };
        assert_eq!(place("[::1]:3128"), Ok(expected));
        assert!(place(":80").is_err() && place("host:0").is_err());
    }
}
