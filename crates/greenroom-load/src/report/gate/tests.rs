use super::*;
use crate::record::FailureKind;
use crate::report::sample;

fn gate(text: &str) -> Gate {
    text.parse()
        .unwrap_or_else(|error: GateError| panic!("{error}"))
}

/// Returns 990 responses of 10 ms, 9 of 100 ms with 503, and one refused connection.
fn stream() -> StreamMeasurement {
    let mut stream = sample::stream("http://host/");
    for _ in 0..990 {
        sample::response(&mut stream, 200, 9, 10);
    }
    for _ in 0..9 {
        sample::response(&mut stream, 503, 99, 100);
    }
    sample::failure(&mut stream, FailureKind::Refused, 1);
    stream
}

#[test]
fn gates_are_written_as_they_are_read() {
    for (text, written) in [
        ("p99>50ms", "p99>50ms"),
        (" p99.9 >= 1s ", "p99.9>=1s"),
        ("max>2s", "max>2s"),
        ("min<1500us", "min<1ms500us"),
        ("mean>1.5s", "mean>1s500ms"),
        ("errors>0.1%", "errors>0.1%"),
        ("errors > 10", "errors>10"),
        ("rate<1000", "rate<1000"),
        ("missed>0.1%", "missed>0.1%"),
        ("late<=1 %", "late<=1%"),
        ("non2xx>0", "non2xx>0"),
    ] {
        assert_eq!(gate(text).to_string(), written);
        assert_eq!(gate(written), gate(text));
    }
}

#[test]
fn what_is_no_gate_is_reported_with_what_is_allowed() {
    for (text, allowed) in [
        ("", "p99>50ms"),
        ("p99", "p99>50ms"),
        ("p99=50ms", "> >= < <="),
        ("latency>5ms", "p99.9"),
        ("p>5ms", "percentiles"),
        ("p101>5ms", "percentiles"),
        ("pNaN>5ms", "percentiles"),
        ("p99>50", "50ms"),
        ("p99>0.1%", "50ms"),
        ("p99>", "50ms"),
        ("errors>1s", "0.1%"),
        ("errors>-1", "0.1%"),
        ("errors>101%", "0.1%"),
        ("errors>1.5", "0.1%"),
        ("rate<fast", "1000"),
        ("rate<1e9", "1000"),
        ("rate<=>5", "1000"),
        (">5", "allowed are p50"),
    ] {
        let error = text.parse::<Gate>().expect_err(text).to_string();
        assert!(error.contains(allowed), "{error}");
        assert!(error.starts_with(&format!("{text:?}: ")), "{error}");
    }
}

#[test]
fn a_broken_gate_names_itself_and_what_was_measured() {
    let stream = stream();
    for (text, measured) in [
        ("p99.9>50ms", "p99.9>50ms: measured 100.0"),
        ("max>=100ms", "max>=100ms: measured 100.0"),
        ("mean>10.5ms", "mean>10ms500us: measured 10.8"),
        (
            "errors>0.9%",
            "errors>0.9%: measured 10 of 1000 requests that ended (1.0 %)",
        ),
        (
            "errors>=1%",
            "errors>=1%: measured 10 of 1000 requests that ended (1.0 %)",
        ),
        (
            "errors>9",
            "errors>9: measured 10 of 1000 requests that ended (1.0 %)",
        ),
        (
            "non2xx>0",
            "non2xx>0: measured 9 of 999 requests that got a response (0.9 %)",
        ),
        ("rate<1000", "rate<1000: measured 999.00 per second"),
    ] {
        let message = gate(text).broken_by(&stream).expect(text);
        assert!(message.starts_with(measured), "{message}");
    }
}

#[test]
fn a_gate_that_holds_says_nothing() {
    let stream = stream();
    for text in [
        "p50>11ms",
        "p99>11ms",
        "max>101ms",
        "errors>1%",
        "errors>10",
        "rate<=998",
        "late>0",
        "missed>0",
        "non2xx>1%",
    ] {
        assert_eq!(gate(text).broken_by(&stream), None, "{text}");
    }
}

#[test]
fn what_is_late_or_never_sent_breaks_its_gate() {
    let mut stream = sample::open_loop("http://host/", 1000.0, 1);
    stream.tally.counts.due = 1000;
    stream.tally.counts.sent = 998;
    stream.tally.counts.late_by_generator = 4;
    stream.tally.counts.late_for_connection = 6;
    assert!(gate("missed>0.2%").broken_by(&stream).is_none());
    assert_eq!(
        gate("missed>0.1%").broken_by(&stream).expect("broken"),
        "missed>0.1%: measured 2 of 1000 requests that were due (0.2 %)"
    );
    assert_eq!(
        gate("late>1%").broken_by(&stream).expect("broken"),
        "late>1%: measured 10 of 998 requests that were sent (1.0 %)"
    );
}

#[test]
fn a_server_that_never_responded_keeps_no_gate() {
    let nothing = sample::stream("http://host/");
    for text in [
        "p99>50ms",
        "mean>10ms",
        "errors>0.1%",
        "rate<1",
        "non2xx>5%",
    ] {
        assert!(gate(text).broken_by(&nothing).is_some(), "{text}");
    }
    let mut late = sample::stream("http://host/");
    sample::failure(&mut late, FailureKind::Timeout, 5);
    assert_eq!(
        gate("p99>50ms").broken_by(&late).expect("broken"),
        "p99>50ms: no request got a response"
    );
}
