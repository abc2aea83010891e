//! Flags of traces.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use clap::ValueEnum;
use greenroom::TraceParents;
use http::Uri;

use super::log::{Sample, sample};

#[derive(Debug, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the text is shown on a terminal")]
#[command(next_help_heading = "Traces")]
pub(crate) struct OtlpArgs {
    /// Send a span for each request to this collector, by OTLP over HTTP, such as
    /// http://127.0.0.1:4318
    ///
    /// /v1/traces is added to the path. A span tells where a request's time went. The application
    /// has it as parent, in the field Traceparent. Fields for the collector, such as a token, are
    /// named by OTEL_EXPORTER_OTLP_HEADERS.
    #[arg(
        long,
        env = "OTEL_EXPORTER_OTLP_ENDPOINT",
        value_name = "URL",
        value_parser = endpoint
    )]
    otlp_endpoint: Option<Endpoint>,

    /// Trace one request of so many, drawn by chance, such as 1/100
    ///
    /// A request whose Traceparent is taken (--otlp-parents) is traced if that says so, and only
    /// then.
    #[arg(
        long,
        env = "GREENROOM_OTLP_SAMPLE",
        value_name = "1/N",
        default_value = "1/1",
        value_parser = sample
    )]
    otlp_sample: Sample,

    /// Requests whose Traceparent is taken: they belong to its trace, and are traced if it says so
    ///
    /// A request of others begins a trace, with a link to the one that it names.
    #[arg(
        long,
        env = "GREENROOM_OTLP_PARENTS",
        value_name = "WHOSE",
        default_value = "trusted"
    )]
    pub(crate) otlp_parents: ParentsOf,

    /// Name of the service that the spans are of
    #[arg(
        long,
        env = "OTEL_SERVICE_NAME",
        value_name = "NAME",
        default_value = "greenroom"
    )]
    pub(crate) otlp_service_name: String,

    /// Requests, and spans below them, that wait to be sent, at most; further ones are dropped and
    /// counted
    #[arg(
        long,
        env = "GREENROOM_OTLP_QUEUE_LEN_MAX",
        value_name = "NUMBER",
        default_value = "2048",
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    pub(crate) otlp_queue_len_max: u32,

    #[command(flatten)]
    pub(crate) tls: OtlpTlsArgs,
}

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_field_names, reason = "they are the names of the flags")]
#[command(next_help_heading = "Traces")]
pub(crate) struct OtlpTlsArgs {
    /// Certificates of the authorities to trust for an https:// collector (PEM), instead of the
    /// system's
    ///
    /// Read once, at the start.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_CERTIFICATE", value_name = "FILE")]
    otlp_ca_file: Option<PathBuf>,

    /// Certificate, with those in between, by which the collector knows this client (PEM)
    #[arg(
        long,
        env = "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
        value_name = "FILE",
        requires = "otlp_client_key"
    )]
    otlp_client_certificate: Option<PathBuf>,

    /// Its key (PEM)
    #[arg(
        long,
        env = "OTEL_EXPORTER_OTLP_CLIENT_KEY",
        value_name = "FILE",
        requires = "otlp_client_certificate"
    )]
    otlp_client_key: Option<PathBuf>,
}

impl OtlpTlsArgs {
    /// Returns the file of authorities, if one is named.
    pub(crate) fn ca_file(&self) -> Option<&Path> {
        named(self.otlp_ca_file.as_deref())
    }

    /// Returns the files of the client's certificate and key, if they are named.
    pub(crate) fn client(&self) -> Option<(&Path, &Path)> {
        let certificate = named(self.otlp_client_certificate.as_deref())?;
        Some((certificate, named(self.otlp_client_key.as_deref())?))
    }

    /// Returns the flag that names this file.
    pub(crate) fn flag_of(&self, file: &Path) -> Option<&'static str> {
        let flags = [
            ("--otlp-client-key", &self.otlp_client_key),
            ("--otlp-client-certificate", &self.otlp_client_certificate),
            ("--otlp-ca-file", &self.otlp_ca_file),
        ];
        let found = flags
            .iter()
            .find(|(_, named)| named.as_deref() == Some(file));
        found.map(|(flag, _)| *flag)
    }
}

/// Returns a file unless its name is empty, which OpenTelemetry's variables have for what is not
/// set.
fn named(file: Option<&Path>) -> Option<&Path> {
    file.filter(|file| !file.as_os_str().is_empty())
}

/// The requests whose `traceparent` is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ParentsOf {
    /// None
    Off,
    /// Those that a trusted proxy sends: it passes on what its clients say, unless it removes it
    Trusted,
    /// All: any client can have its requests traced, and in a trace that it names
    All,
}

impl From<ParentsOf> for TraceParents {
    fn from(of: ParentsOf) -> Self {
        match of {
            ParentsOf::Off => Self::Off,
            ParentsOf::Trusted => Self::Trusted,
            ParentsOf::All => Self::All,
        }
    }
}

/// The only protocol that spans are sent by.
const PROTOCOL: &str = "http/protobuf";
/// Those of OpenTelemetry's variables that name another one, which is then refused.
const PROTOCOL_VARIABLES: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
];

impl OtlpArgs {
    /// Returns the address to which spans are sent, if they are.
    ///
    /// # Errors
    ///
    /// If OpenTelemetry's variables ask for a protocol that it does not speak.
    pub(crate) fn endpoint(&self) -> anyhow::Result<Option<&Uri>> {
        let endpoint = self.otlp_endpoint.as_ref().and_then(|url| url.0.as_ref());
        if endpoint.is_some() {
            for variable in PROTOCOL_VARIABLES {
                let protocol = std::env::var(variable).unwrap_or_default();
                ensure!(
                    protocol.is_empty() || protocol.eq_ignore_ascii_case(PROTOCOL),
                    "{variable} is `{protocol}`, but spans are sent by {PROTOCOL} only: clear the \
                     variable, and name the collector's port for OTLP over HTTP (4318, not 4317)"
                );
            }
        }
        Ok(endpoint)
    }

    /// Returns the number of requests of which one is traced.
    pub(crate) fn one_of(&self) -> NonZeroU32 {
        self.otlp_sample.0
    }
}

/// The address to which spans are sent; `None` for an empty text, which OpenTelemetry's variables
/// have for what is not set.
#[derive(Clone, Debug)]
struct Endpoint(Option<Uri>);

/// Parses the base of a collector's URL.
fn endpoint(text: &str) -> Result<Endpoint, String> {
    if text.is_empty() {
        return Ok(Endpoint(None));
    }
    let base: Option<Uri> = text.parse().ok();
    let is_fit = |base: &Uri| {
        let scheme = base.scheme_str();
        let has_host = base.host().is_some_and(|host| !host.is_empty());
        matches!(scheme, Some("http" | "https")) && has_host && base.query().is_none()
    };
    let base = base.filter(is_fit).map(|base| base.to_string());
    let url = base.map(|base| format!("{}/v1/traces", base.trim_end_matches('/')));
    let url = url.and_then(|url| url.parse().ok());
    url.map(|url| Endpoint(Some(url))).ok_or_else(|| {
        "expected http://HOST:PORT or https://HOST:PORT, with a path if the collector has one"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_the_base_of_a_url() {
        for (text, expected) in [
            (
                "http://localhost:4318",
                Some("http://localhost:4318/v1/traces"),
            ),
            ("https://[::1]/", Some("https://[::1]/v1/traces")),
            (
                "http://a.example/otlp",
                Some("http://a.example/otlp/v1/traces"),
            ),
            ("localhost:4318", None),
            ("grpc://localhost:4317", None),
            ("http://", None),
            ("http://a.example/?token=1", None),
            ("http://a b", None),
        ] {
            let parsed = endpoint(text).ok().and_then(|endpoint| endpoint.0);
            let parsed = parsed.map(|url| url.to_string());
            assert_eq!(parsed.as_deref(), expected, "{text}");
        }
        assert!(endpoint("").is_ok_and(|endpoint| endpoint.0.is_none()));
    }
}
