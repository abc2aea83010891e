use std::time::Duration;

use serde_json::Value;

use super::*;
use crate::record::FailureKind;
use crate::report::sample;

fn read_back(measurement: &Measurement) -> Value {
    let text = sample::text_of(|out| write(out, measurement));
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn a_run_reads_back() {
    let mut stream = sample::open_loop("http://host/", 2000.0, 1);
    stream.tally.counts.due = 2000;
    for _ in 0..999 {
        sample::response(&mut stream, 200, 3, 4);
    }
    sample::response(&mut stream, 503, 30, 40);
    sample::failure(&mut stream, FailureKind::Timeout, 2000);
    sample::point(&mut stream, Duration::ZERO, Duration::from_millis(500));
    let mut run = sample::measurement(vec![stream]);
    run.server = Some(ServerUsage {
        processes: 2,
        user: Duration::from_millis(1001),
        ..ServerUsage::default()
    });

    let json = read_back(&run);
    assert_eq!(json["format"], 1);
    let started: f64 = json["started_unix_seconds"].as_f64().expect("a number");
    assert!((started - number(sample::STARTED_SECONDS)).abs() < 1e-3);
    let stream = &json["streams"][0];
    assert_eq!(stream["plan"]["loop"], "open");
    assert_eq!(stream["plan"]["phases"][0]["to_per_second"], 2000.0);
    assert_eq!(stream["requests"]["answered"], 1000);
    assert_eq!(stream["requests"]["missed_share"], 0.4995);
    assert_eq!(
        stream["statuses"],
        serde_json::json!({"200": 999, "503": 1})
    );
    assert_eq!(stream["failures"]["timeout"]["count"], 1);
    assert_eq!(
        stream["failures"]["timeout"]["first"],
        "what the first timeout said"
    );
    assert_near(&stream["latency_ns"]["p50"], 4e6);
    assert_near(&stream["latency_ns"]["max"], 2e9);
    assert_near(&stream["bad_latency_ns"]["p99.99"], 40e6);
    assert_near(&stream["waiting_ns"]["p50"], 3e6);
    let point = &stream["timeline"][0];
    assert_eq!(point["asked_per_second"], 4000.0);
    assert_eq!(point["answered_per_second"], 2000.0);
    assert_near(&point["latency_ns"]["p90"], 4e6);
    assert_near(&json["server"]["user_ns_per_request"], 1e6);
    assert_near(&json["generator"]["busiest_share"], 0.008);
}

#[test]
fn a_run_without_responses_has_no_numbers_to_divide() {
    let json = read_back(&sample::measurement(vec![sample::stream("http://host/")]));
    assert_eq!(json["server"], Value::Null);
    assert_eq!(json["generator"]["user_ns_per_request"], Value::Null);
    assert_eq!(json["streams"][0]["latency_ns"]["count"], 0);
    assert_eq!(json["streams"][0]["answers_per_second"], 0.0);
}

#[test]
fn a_point_without_a_response_has_no_latency() {
    let mut stream = sample::stream("http://host/");
    sample::failure(&mut stream, FailureKind::Refused, 1);
    sample::point(&mut stream, Duration::ZERO, Duration::from_secs(1));
    let json = read_back(&sample::measurement(vec![stream]));
    assert_eq!(
        json["streams"][0]["timeline"][0]["latency_ns"],
        serde_json::json!({"p50": null, "p90": null, "p99": null, "max": null})
    );
}

/// Asserts that a value is within the histograms' 1 %.
fn assert_near(value: &Value, expected: f64) {
    let value = value.as_f64().expect("a number");
    assert!(
        (value / expected - 1.0).abs() < 0.01,
        "{value}, not {expected}"
    );
}
