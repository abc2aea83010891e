//! ab's report, up to its table of connection times.

use std::io::{self, Write};
use std::net::IpAddr;

use super::section::printable;
use crate::plan::Protocol;
use crate::record::{FailureKind, FirstResponse};
use crate::report::quantity::{milliseconds, number};
use crate::run::StreamMeasurement;

/// Bytes of ab's "Kbytes" and "kb".
const KILOBYTE: f64 = 1024.0;

pub(super) fn write(out: &mut dyn Write, stream: &StreamMeasurement) -> io::Result<()> {
    server(out, stream)?;
    document(out, stream)?;
    requests(out, stream)?;
    bytes(out, stream)?;
    rates(out, stream)
}

fn server(out: &mut dyn Write, stream: &StreamMeasurement) -> io::Result<()> {
    let target = &stream.plan.targets[0];
    let first = stream.first.as_ref();
    let software = first.and_then(|first| first.field("server"));
    field(
        out,
        "Server Software:",
        printable(&software.unwrap_or_default()),
    )?;
    field(out, "Server Hostname:", target.host())?;
    field(out, "Server Port:", target.port())?;
    if let Some(tls) = first.and_then(|first| first.tls.as_deref()) {
        field(out, "SSL/TLS Protocol:", tls)?;
        // An IP address is never sent as server name (RFC 6066 section 3).
        if !stream.plan.tls.without_sni && target.host().parse::<IpAddr>().is_err() {
            field(out, "TLS Server Name:", target.host())?;
        }
    }
    writeln!(out)
}

fn document(out: &mut dyn Write, stream: &StreamMeasurement) -> io::Result<()> {
    field(out, "Document Path:", &stream.plan.targets[0].path)?;
    if stream.plan.variable_length {
        field(out, "Document Length:", "Variable")?;
    } else {
        let length = stream.first.as_ref().map_or(0, |first| first.body_bytes);
        field(out, "Document Length:", format_args!("{length} bytes"))?;
    }
    writeln!(out)
}

fn requests(out: &mut dyn Write, stream: &StreamMeasurement) -> io::Result<()> {
    let tally = &stream.tally;
    let seconds = stream.elapsed.as_secs_f64();
    field(out, "Concurrency Level:", concurrency(stream))?;
    field(
        out,
        "Time taken for tests:",
        format_args!("{seconds:.3} seconds"),
    )?;
    field(out, "Complete requests:", tally.responses())?;
    field(out, "Failed requests:", stream.failed())?;
    if stream.failed() > 0 {
        let [connect, receive, exceptions] = failures(stream);
        let length = tally.counts.other_length;
        writeln!(
            out,
            "   (Connect: {connect}, Receive: {receive}, Length: {length}, Exceptions: \
            {exceptions})"
        )?;
    }
    if tally.not_2xx() > 0 {
        field(out, "Non-2xx responses:", tally.not_2xx())?;
    }
    if stream.plan.keep_alive {
        field(out, "Keep-Alive requests:", kept_alive(stream))?;
    }
    Ok(())
}

fn bytes(out: &mut dyn Write, stream: &StreamMeasurement) -> io::Result<()> {
    let counts = &stream.tally.counts;
    let received = counts.received_bytes;
    field(out, "Total transferred:", format_args!("{received} bytes"))?;
    if sends_bodies(stream) {
        field(out, "Total body sent:", counts.sent_bytes)?;
    }
    let body = counts.body_bytes;
    field(out, "HTML transferred:", format_args!("{body} bytes"))
}

fn rates(out: &mut dyn Write, stream: &StreamMeasurement) -> io::Result<()> {
    let responses = number(stream.tally.responses());
    let seconds = stream.elapsed.as_secs_f64();
    if responses == 0.0 || seconds == 0.0 {
        return Ok(());
    }
    let received = number(stream.tally.counts.received_bytes) / KILOBYTE / seconds;
    let rate = stream.requests_per_second();
    let across = seconds * 1000.0 / responses;
    let time = time_per_request(stream);
    field(
        out,
        "Requests per second:",
        format_args!("{rate:.2} [#/sec] (mean)"),
    )?;
    field(
        out,
        "Time per request:",
        format_args!("{time:.3} [ms] (mean)"),
    )?;
    field(
        out,
        "Time per request:",
        format_args!("{across:.3} [ms] (mean, across all concurrent requests)"),
    )?;
    field(
        out,
        "Transfer rate:",
        format_args!("{received:.2} [Kbytes/sec] received"),
    )?;
    if sends_bodies(stream) {
        let sent = number(stream.tally.counts.sent_bytes) / KILOBYTE / seconds;
        field(out, "", format_args!("{sent:.2} kb/s sent"))?;
        field(out, "", format_args!("{:.2} kb/s total", received + sent))?;
    }
    Ok(())
}

fn field(out: &mut dyn Write, name: &str, value: impl std::fmt::Display) -> io::Result<()> {
    writeln!(out, "{name:<24}{value}")
}

/// Returns the most requests that were in flight at once. An open loop's bound may be far above its
/// actual need.
fn concurrency(stream: &StreamMeasurement) -> u64 {
    let plan = &stream.plan;
    if plan.is_open_loop() {
        return stream.in_flight_most;
    }
    let on_each = match plan.protocol {
        Protocol::WebSocket => 1,
        _ if !plan.keep_alive => 1,
        Protocol::Http1 | Protocol::Http2 => plan.in_flight_max,
    };
    (u64::from(plan.connections) * u64::from(on_each)).min(plan.end.requests.unwrap_or(u64::MAX))
}

/// Returns the mean time per request in milliseconds. In a closed loop it follows from the number
/// in flight (Little's law), as in ab; an open loop has no such number.
fn time_per_request(stream: &StreamMeasurement) -> f64 {
    if stream.plan.is_open_loop() {
        milliseconds(stream.tally.latency().mean())
    } else {
        let seconds = number(concurrency(stream)) * stream.elapsed.as_secs_f64();
        seconds * 1000.0 / number(stream.tally.responses())
    }
}

fn sends_bodies(stream: &StreamMeasurement) -> bool {
    !stream.plan.request.body.is_empty()
}

/// Returns the requests without a response, by ab's kinds: connecting, receiving, and other.
fn failures(stream: &StreamMeasurement) -> [u64; 3] {
    let mut sums = [0; 3];
    for (kind, count) in stream.tally.failures.iter() {
        let column = match kind {
            FailureKind::Tls | FailureKind::Handshake => 0,
            kind if kind.is_connect() => 0,
            FailureKind::Malformed => 2,
            _ => 1,
        };
        sums[column] += count;
    }
    sums
}

/// Returns the responses after which the connection was kept, as ab counts them: those that another
/// request followed on the same connection, and one for each connection still open at the end.
fn kept_alive(stream: &StreamMeasurement) -> u64 {
    let counts = &stream.tally.counts;
    let open = if stream.first.as_ref().is_some_and(keeps_alive) {
        counts.connections.min(most_open(stream))
    } else {
        0
    };
    stream.tally.responses().min(counts.reused + open)
}

/// Returns the most connections that can be open at the end. An open loop makes one only where all
/// others have requests in flight.
fn most_open(stream: &StreamMeasurement) -> u64 {
    let allowed = stream.plan.connections.into();
    if stream.plan.is_open_loop() {
        stream.in_flight_most.min(allowed)
    } else {
        allowed
    }
}

/// Returns true if the server keeps the connection open (RFC 9112 section 9.3).
fn keeps_alive(first: &FirstResponse) -> bool {
    let connection = first.field("connection").unwrap_or_default();
    let has = |option: &str| {
        connection
            .split(',')
            .any(|word| word.trim().eq_ignore_ascii_case(option))
    };
    if first.head.starts_with(b"HTTP/1.0") {
        has("keep-alive")
    } else {
        !has("close")
    }
}
