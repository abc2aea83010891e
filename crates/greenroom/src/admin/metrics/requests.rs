//! Requests, by the semantic conventions of OpenTelemetry.

use greenroom_server::{REQUEST_SECONDS, RequestMetrics, RequestSeries};

use super::text::Text;

const DURATION: &str = "http_server_request_duration_seconds";
const ACTIVE: &str = "http_server_active_requests";

pub(super) fn add(text: &mut Text) {
    let RequestMetrics { series, active } = RequestMetrics::now();
    text.begin(DURATION);
    for series in &series {
        add_series(series, text);
    }
    text.begin(ACTIVE);
    for active in &active {
        let labels = [
            ("http_request_method", active.method),
            ("url_scheme", active.scheme),
        ];
        text.value(ACTIVE, &labels, active.count);
    }
}

fn add_series(series: &RequestSeries, text: &mut Text) {
    let status = series.status.map(|status| status.to_string());
    let labels = [
        ("http_request_method", series.method),
        (
            "http_response_status_code",
            status.as_deref().unwrap_or_default(),
        ),
        ("http_route", series.route.unwrap_or_default()),
        ("network_protocol_version", series.version),
        ("url_scheme", series.scheme),
    ];
    let mut count = 0;
    let bounds = REQUEST_SECONDS.iter().map(ToString::to_string);
    for (bound, bucket) in bounds.chain(["+Inf".to_owned()]).zip(series.buckets) {
        count += bucket;
        let labels = [labels.as_slice(), &[("le", &bound)]].concat();
        text.value(&format!("{DURATION}_bucket"), &labels, count);
    }
    text.value(
        &format!("{DURATION}_sum"),
        &labels,
        series.sum.as_secs_f64(),
    );
    text.value(&format!("{DURATION}_count"), &labels, count);
}
