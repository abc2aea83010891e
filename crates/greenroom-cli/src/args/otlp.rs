//! Flags of traces.

use std::num::NonZeroU32;

use http::Uri;

use super::log::{Sample, sample};

#[derive(Debug, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the text is shown on a terminal")]
#[expect(clippy::struct_field_names, reason = "they are the names of the flags")]
#[command(next_help_heading = "Traces")]
pub(crate) struct OtlpArgs {
    /// Send a span for each request to this collector, by OTLP over HTTP, such as
    /// http://127.0.0.1:4318
    ///
    /// /v1/traces is added to the path. A span tells where a request's time went. The application
    /// has it as parent, in the field Traceparent; a Traceparent that a request brings is its
    /// parent. Fields for the collector, such as a token, are named by OTEL_EXPORTER_OTLP_HEADERS.
    #[arg(
        long,
        env = "OTEL_EXPORTER_OTLP_ENDPOINT",
        value_name = "URL",
        value_parser = endpoint
    )]
    otlp_endpoint: Option<Endpoint>,

    /// Trace one request of so many, drawn by chance, such as 1/100
    ///
    /// A request that brings a Traceparent is traced if that says so, and only then.
    #[arg(
        long,
        env = "GREENROOM_OTLP_SAMPLE",
        value_name = "1/N",
        default_value = "1/1",
        value_parser = sample
    )]
    otlp_sample: Sample,

    /// Name of the service that the spans are of
    #[arg(
        long,
        env = "OTEL_SERVICE_NAME",
        value_name = "NAME",
        default_value = "greenroom"
    )]
    pub(crate) otlp_service_name: String,

    /// Requests whose spans wait to be sent, at most; those of further ones are dropped and
    /// counted
    #[arg(
        long,
        env = "GREENROOM_OTLP_QUEUE_LEN_MAX",
        value_name = "NUMBER",
        default_value = "2048",
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    pub(crate) otlp_queue_len_max: u32,
}

impl OtlpArgs {
    /// Returns the address to which spans are sent, if they are.
    pub(crate) fn endpoint(&self) -> Option<&Uri> {
        self.otlp_endpoint.as_ref().and_then(|url| url.0.as_ref())
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
