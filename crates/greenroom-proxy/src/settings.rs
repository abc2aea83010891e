use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use greenroom_server::rustls::ClientConfig;
use http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::address::UpstreamAddress;
use crate::tls;

/// Most upstreams of one proxy: 256.
pub const UPSTREAMS_MAX: usize = 256;

/// Most requests that an upstream can be given at once: a million.
pub const IN_FLIGHT_MAX: u32 = 1_000_000;

/// Most bytes of a request's body that can be kept for a retry: 16 MiB.
pub const RETRY_BODY_BYTES_MAX: usize = 16 * 1_024 * 1_024;

/// The longest that any of the times can be: a year.
pub const TIME_MAX: Duration = Duration::from_hours(365 * 24);

/// The settings of a [`Proxy`](crate::Proxy). In a configuration all have defaults but `to`, times
/// are written as `"500ms"` or `"1m"`, and a name that is none of these is an error.
///
/// ```
/// use greenroom_proxy::Settings;
///
/// let settings: Settings = toml::from_str(
///     r#"
///     to = ["http://127.0.0.1:9000", "unix:/run/api.sock"]
///     strip_prefix = "/api"
///     response_head_timeout = "10s"
///     "#,
/// )?;
/// assert_eq!(settings.to.len(), 2);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The upstreams: 1 to [`UPSTREAMS_MAX`]. A request goes to the healthy one that has the fewest
    /// under way, and in turn to those that have equally few.
    pub to: Vec<UpstreamAddress>,
    /// A prefix that is taken off the path: with `/api`, `/api/users` becomes `/users` and `/api`
    /// becomes `/`. It is compared segment by segment; a request outside it gets 404. Default:
    /// none; the path goes on as it came, also below `nest_service`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strip_prefix: Option<String>,
    /// A prefix that is put before the path, behind which `strip_prefix` was taken off. Default:
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add_prefix: Option<String>,
    /// The value of `Host` that upstreams get. Default: the client's.
    pub host: HostHeader,
    /// The fields that tell upstreams of the client. Default: `x-forwarded`.
    pub forwarded: ForwardedFields,
    /// The file, in PEM, of the authorities that vouch for upstreams with `https`. Their
    /// certificates must be for the host of the address, or for `tls_server_name`. Default: the
    /// authorities that the system trusts. As the others of `tls_…`, it is an error without such an
    /// upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_ca: Option<PathBuf>,
    /// The file, in PEM, of the certificate, and those between it and its authority, by which
    /// upstreams know the proxy. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_certificate: Option<PathBuf>,
    /// The file, in PEM, of its private key, which must not be encrypted. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_key: Option<PathBuf>,
    /// The name that upstreams with `https` are asked for (SNI, RFC 6066, 3), and that their
    /// certificates must be for. Default: the host of each address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_server_name: Option<String>,
    /// The time to resolve an upstream's name and connect to it, TLS included. Default: 5 s; 1 ms
    /// to [`TIME_MAX`], as for all times here. Beyond it: 504, or another upstream.
    #[serde(with = "humantime_serde")]
    pub connect_timeout: Duration,
    /// The time without progress, once there is a connection, until the head of the response: an
    /// upstream neither takes a part of the request nor responds, be it by an informational
    /// response such as `102 (Processing)`. Waiting for the client's body does not count. Default:
    /// 1 min. Beyond it: 504, or another upstream.
    #[serde(with = "humantime_serde")]
    pub response_head_timeout: Duration,
    /// The time between two parts of a response's body, which includes two events of an event
    /// stream. Waiting for the client to read does not count. Default: 5 min. Beyond it the
    /// client's response is aborted.
    #[serde(with = "humantime_serde")]
    pub body_idle_timeout: Duration,
    /// The time without a byte in either direction after which a WebSocket, or another connection
    /// that has left HTTP, is closed. Default: 1 h.
    #[serde(with = "humantime_serde")]
    pub tunnel_idle_timeout: Duration,
    /// The time for which an idle connection to an upstream is kept. It should be shorter than the
    /// upstream keeps it, or now and then a request meets a connection that is being closed.
    /// Default: 4 s, as Node.js, Apache and uvicorn close after 5 s.
    #[serde(with = "humantime_serde")]
    pub idle_timeout: Duration,
    /// The age of a connection to an upstream from which on it gets no further request: it is
    /// closed behind the response to the one that it has then. So requests follow a name that gets
    /// other addresses, however busy connections are. Default: 5 min.
    #[serde(with = "humantime_serde")]
    pub connection_age_max: Duration,
    /// Most idle connections that each event loop keeps to each upstream; 0 closes each after its
    /// request. Default: 64.
    pub idle_max: usize,
    /// Most requests that an upstream has at once, from the choice of it to the end of the
    /// response's body, or of the tunnel. Default: 10,000; 1 to [`IN_FLIGHT_MAX`]. Beyond it, at
    /// all that are healthy: 503 with `Retry-After: 1`.
    pub in_flight_max: u32,
    /// Most times that a request is sent, the first included. Default: 2; 1 to 16. Once an upstream
    /// may have begun with it, only a request of an idempotent method (RFC 9110, 9.2.2) is sent
    /// again, and only one whose body was kept.
    pub tries_max: u32,
    /// Most bytes of the body of an idempotent request that are kept, so that it can be sent again.
    /// Longer ones are streamed, and so is one of unknown length, and one for which there is no
    /// room: the proxy keeps 64 MiB in all. Default: 65,536; at most [`RETRY_BODY_BYTES_MAX`].
    pub retry_body_bytes_max: usize,
    /// The number of failures in a row (no connection, no response in time, a broken one) after
    /// which an upstream rests. Default: 3; at least 1.
    pub failures_max: u32,
    /// Statuses of responses that count as failures too, such as `[502, 503, 504]`. The client gets
    /// such a response all the same. Default: none; 400 to 599.
    pub failure_statuses: Vec<u16>,
    /// The time that an upstream rests first. Then one request is its trial: if that fails too, it
    /// rests twice as long. Default: 1 s.
    #[serde(with = "humantime_serde")]
    pub rest_first: Duration,
    /// The longest time that an upstream rests. Default: 30 s; at least `rest_first`.
    #[serde(with = "humantime_serde")]
    pub rest_longest: Duration,
}

/// The value of `Host` that upstreams get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostHeader {
    /// As the client sent it, for HTTP/2 its `:authority`. An upstream on a Unix socket gets
    /// `localhost` if the client sent none.
    #[default]
    Client,
    /// Host and port of the upstream's address; `localhost` for a Unix socket.
    Upstream,
}

/// The fields that tell upstreams of the client.
///
/// Those that the client itself has sent are always dropped (`Forwarded`, `X-Forwarded-For`,
/// `-Proto`, `-Host`, `-Port`, `-Prefix`, `-Server`, `-Ssl` and `X-Real-IP`), unless it is a
/// [trusted proxy](greenroom_server::TrustedProxies): then what it says of scheme and host is
/// passed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForwardedFields {
    /// `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`.
    #[default]
    XForwarded,
    /// `Forwarded` (RFC 7239), with `for`, `host` and `proto`.
    Forwarded,
    /// All four.
    Both,
    /// None.
    None,
}

/// A setting with a value that is not allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting} is {problem}")]
pub struct SettingsError {
    setting: &'static str,
    problem: String,
}

impl SettingsError {
    pub(crate) fn new(setting: &'static str, problem: impl Into<String>) -> Self {
        let problem = problem.into();
        Self { setting, problem }
    }

    /// Returns the name of the setting.
    #[must_use]
    pub fn setting(&self) -> &'static str {
        self.setting
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            to: Vec::new(),
            strip_prefix: None,
            add_prefix: None,
            host: HostHeader::default(),
            forwarded: ForwardedFields::default(),
            tls_ca: None,
            tls_certificate: None,
            tls_key: None,
            tls_server_name: None,
            connect_timeout: Duration::from_secs(5),
            response_head_timeout: Duration::from_mins(1),
            body_idle_timeout: Duration::from_mins(5),
            tunnel_idle_timeout: Duration::from_hours(1),
            idle_timeout: Duration::from_secs(4),
            connection_age_max: Duration::from_mins(5),
            idle_max: 64,
            in_flight_max: 10_000,
            tries_max: 2,
            retry_body_bytes_max: 65_536,
            failures_max: 3,
            failure_statuses: Vec::new(),
            rest_first: Duration::from_secs(1),
            rest_longest: Duration::from_secs(30),
        }
    }
}

impl Settings {
    /// Creates settings for these upstreams, with the defaults for all else.
    #[must_use]
    pub fn new(to: impl IntoIterator<Item = UpstreamAddress>) -> Self {
        Self {
            to: to.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Checks all values, and reads the files of `tls_ca`, `tls_certificate` and `tls_key`.
    ///
    /// # Errors
    ///
    /// The first setting whose value is not allowed, with what is.
    pub fn check(&self) -> Result<(), SettingsError> {
        self.checked().map(drop)
    }

    /// Checks all values, and returns the TLS of upstreams that have it.
    pub(crate) fn checked(&self) -> Result<Option<Arc<ClientConfig>>, SettingsError> {
        self.check_values()?;
        tls::read(self)
    }

    fn check_values(&self) -> Result<(), SettingsError> {
        let upstreams = self.to.len();
        require((1..=UPSTREAMS_MAX).contains(&upstreams), "to", || {
            format!("a list of {upstreams} upstreams; 1 to {UPSTREAMS_MAX} are allowed")
        })?;
        check_prefix("strip_prefix", self.strip_prefix.as_deref())?;
        check_prefix("add_prefix", self.add_prefix.as_deref())?;
        self.check_times()?;
        let most = IN_FLIGHT_MAX;
        require(
            (1..=most).contains(&self.in_flight_max),
            "in_flight_max",
            || format!("{}; 1 to {most} are allowed", self.in_flight_max),
        )?;
        require((1..=16).contains(&self.tries_max), "tries_max", || {
            format!("{}; 1 to 16 are allowed", self.tries_max)
        })?;
        let kept = self.retry_body_bytes_max;
        require(kept <= RETRY_BODY_BYTES_MAX, "retry_body_bytes_max", || {
            format!("{kept} bytes; at most {RETRY_BODY_BYTES_MAX}")
        })?;
        require(self.failures_max > 0, "failures_max", || {
            String::from("0; at least 1")
        })?;
        let is_failure = |status: &u16| (400..600).contains(status);
        let mut statuses = self.failure_statuses.iter();
        match statuses.find(|status| !is_failure(status)) {
            Some(status) => {
                let problem = format!("a list with {status}; 400 to 599 are allowed");
                Err(SettingsError::new("failure_statuses", problem))
            }
            None => Ok(()),
        }
    }

    fn check_times(&self) -> Result<(), SettingsError> {
        let least = Duration::from_millis(1);
        for (setting, time) in [
            ("connect_timeout", self.connect_timeout),
            ("response_head_timeout", self.response_head_timeout),
            ("body_idle_timeout", self.body_idle_timeout),
            ("tunnel_idle_timeout", self.tunnel_idle_timeout),
            ("idle_timeout", self.idle_timeout),
            ("connection_age_max", self.connection_age_max),
            ("rest_first", self.rest_first),
            ("rest_longest", self.rest_longest),
        ] {
            require((least..=TIME_MAX).contains(&time), setting, || {
                format!("{time:?}; 1 ms to {TIME_MAX:?} are allowed")
            })?;
        }
        let (first, longest) = (self.rest_first, self.rest_longest);
        require(first <= longest, "rest_longest", || {
            format!("{longest:?}; at least rest_first, which is {first:?}")
        })
    }

    /// Returns `true` if the settings name files, which a new [`Proxy`](crate::Proxy) reads again.
    #[must_use]
    pub fn has_files(&self) -> bool {
        let files = [&self.tls_ca, &self.tls_certificate, &self.tls_key];
        files.into_iter().any(Option::is_some)
    }

    /// Returns the files of the certificate and its key, if they are named.
    pub(crate) fn client_certificate(&self) -> Option<(&Path, &Path)> {
        self.tls_certificate.as_deref().zip(self.tls_key.as_deref())
    }

    /// Returns `true` if a response with this status counts as a failure of its upstream.
    pub(crate) fn is_failure(&self, status: StatusCode) -> bool {
        self.failure_statuses.contains(&status.as_u16())
    }
}

fn check_prefix(setting: &'static str, prefix: Option<&str>) -> Result<(), SettingsError> {
    let Some(prefix) = prefix else {
        return Ok(());
    };
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '?' | '#');
    let is_segment =
        |segment: &str| !matches!(segment, "" | "." | "..") && segment.chars().all(is_plain);
    let segments = prefix.strip_prefix('/').map(|rest| rest.split('/'));
    let is_prefix = segments.is_some_and(|mut segments| segments.all(is_segment));
    require(is_prefix, setting, || {
        format!(
            "`{}`; one like `/api` is allowed: a slash in front, none at the end, ASCII without \
             blanks, `?`, `#`, `.` and `..`",
            prefix.escape_debug()
        )
    })
}

fn require(
    holds: bool,
    setting: &'static str,
    problem: impl FnOnce() -> String,
) -> Result<(), SettingsError> {
    if holds {
        return Ok(());
    }
    Err(SettingsError::new(setting, problem()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Settings, String> {
        let text = format!("to = [\"http://127.0.0.1:9000\"]\n{text}");
        let settings: Settings = toml::from_str(&text).map_err(|error| error.to_string())?;
        settings.check().map_err(|error| error.to_string())?;
        Ok(settings)
    }

    #[test]
    fn values_that_are_not_allowed_are_named_with_those_that_are() {
        for (text, expected) in [
            ("connect_timeout = '0s'", "connect_timeout is 0ns; 1 ms"),
            ("connection_age_max = '0s'", "connection_age_max is 0ns"),
            ("strip_prefix = 'api'", "strip_prefix is `api`"),
            ("strip_prefix = '/api/'", "strip_prefix is `/api/`"),
            ("add_prefix = '/a/../b'", "add_prefix is `/a/../b`"),
            ("in_flight_max = 0", "in_flight_max is 0; 1 to"),
            ("tries_max = 17", "1 to 16"),
            ("retry_body_bytes_max = 99999999", "at most 16777216"),
            ("failures_max = 0", "failures_max is 0"),
            ("failure_statuses = [502, 200]", "a list with 200"),
            ("rest_first = '1m'", "rest_longest is 30s; at least"),
            ("tries = 1", "unknown field `tries`"),
            ("host = 'mine'", "unknown variant `mine`"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(expected), "{error}");
        }
        assert!(
            Settings::default()
                .check()
                .is_err_and(|e| e.setting() == "to")
        );
        let error = toml::from_str::<Settings>("to = ['ftp://a']").expect_err("FTP");
        assert!(error.to_string().contains("`ftp://a`"), "{error}");
    }

    #[test]
    fn settings_are_read_and_written_alike() {
        let settings = read(
            "forwarded = 'both'\nhost = 'upstream'\nrest_longest = '1h'\nstrip_prefix = '/a/b'",
        );
        let settings = settings.expect("settings");
        let written = toml::to_string(&settings).expect("a table");
        assert_eq!(toml::from_str::<Settings>(&written), Ok(settings));
    }
}
