//! The one definition of all metrics: their names, kinds, labels and texts.

use metrics::{describe_counter, describe_gauge, describe_histogram};

/// The kind of a [`Metric`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only rises, until the process ends.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Counts of values up to some bounds, with their sum and number.
    Histogram,
}

impl MetricKind {
    /// Returns its name in Prometheus' text format.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A metric, as `/greenroom/metrics` shows it.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name, with its unit, by the conventions of Prometheus.
    pub name: &'static str,
    /// Its kind.
    pub kind: MetricKind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// Its description, one sentence without an end.
    pub help: &'static str,
}

const fn counter(name: &'static str, labels: &'static [&str], help: &'static str) -> Metric {
    Metric {
        name,
        kind: MetricKind::Counter,
        labels,
        help,
    }
}

const fn gauge(name: &'static str, labels: &'static [&str], help: &'static str) -> Metric {
    Metric {
        name,
        kind: MetricKind::Gauge,
        labels,
        help,
    }
}

const fn histogram(name: &'static str, labels: &'static [&str], help: &'static str) -> Metric {
    Metric {
        name,
        kind: MetricKind::Histogram,
        labels,
        help,
    }
}

const LOOP: &[&str] = &["loop"];
const STAGE: &[&str] = &["stage"];
const ROUTE: &[&str] = &["http_request_method", "http_route"];
const STAGE_ROUTE: &[&str] = &["stage", "http_request_method", "http_route"];
const PSGI: &[&str] = &["application", "mount"];
const UPSTREAM: &[&str] = &["upstream"];
const BUS: &[&str] = &["adaptor"];
const KIND: &[&str] = &["kind"];

/// All metrics of Greenroom, in the order of the page that shows them.
#[rustfmt::skip]
pub const METRICS: &[Metric] = &[
    histogram(
        "http_server_request_duration_seconds",
        &[
            "http_request_method", "http_response_status_code", "http_route",
            "network_protocol_version", "url_scheme",
        ],
        "Time from a request's head to the last byte of its response",
    ),
    gauge(
        "http_server_active_requests", &["http_request_method", "url_scheme"],
        "Requests that are under way",
    ),
    gauge("greenroom_loop_connections", LOOP, "Connections of the loop"),
    counter("greenroom_loop_requests_total", LOOP, "Requests given to the application"),
    histogram(
        "greenroom_loop_lag_seconds", LOOP,
        "Time for which what is ready waits to be served, by probes",
    ),
    counter(
        "greenroom_loop_pressure_changes_total", &["loop", "to"],
        "Changes to this pressure: none, raised, over",
    ),
    counter(
        "greenroom_loop_stalls_total", LOOP,
        "Times that a task other than a placed route held up the loop",
    ),
    counter(
        "greenroom_loop_connections_rejected_total", LOOP,
        "New connections rejected with 503, as the loop was behind",
    ),
    counter(
        "greenroom_loop_declined_total", &["loop", "reason"],
        "Connections and requests declined before any handler, for a limit: address_connections, \
         address_requests, memory, handshakes, connections, loop_lag",
    ),
    counter(
        "greenroom_quic_forwarded_total", &["outcome"],
        "Datagrams of HTTP/3 for a version that drains: sent to it, or dropped for want of room",
    ),
    counter("greenroom_route_moves_total", ROUTE, "Moves of the route between loop and stage"),
    counter("greenroom_route_stalls_total", ROUTE, "Times that the route held up a loop"),
    counter(
        "greenroom_route_rejected_total", ROUTE,
        "Requests of the route that were rejected, by its stage or its loop",
    ),
    gauge("greenroom_stage_queue_length", STAGE, "Runs that wait for a thread"),
    gauge(
        "greenroom_stage_predicted_wait_seconds", STAGE,
        "Time for which a run that came last would wait",
    ),
    gauge(
        "greenroom_stage_threads", &["stage", "state"],
        "Threads by their state: computing, blocked, idle",
    ),
    histogram("greenroom_stage_wait_seconds", STAGE, "Waits of runs for their first thread"),
    histogram("greenroom_stage_service_seconds", STAGE, "Times for which runs held a thread"),
    counter(
        "greenroom_stage_runs_total", &["stage", "outcome"],
        "Runs that are over: completed, panicked, cancelled",
    ),
    counter(
        "greenroom_stage_rejected_total", &["stage", "reason"],
        "Runs that were rejected (wait, queue_full), or dropped as their turn came too late (late)",
    ),
    counter(
        "greenroom_stage_route_rejected_total", STAGE_ROUTE,
        "The same by route",
    ),
    counter(
        "greenroom_stage_route_used_seconds_total", STAGE_ROUTE,
        "Time for which runs of the route have held threads",
    ),
    gauge(
        "greenroom_psgi_workers", &["application", "mount", "state"],
        "Perl workers by their state: starting, ready, retiring, draining, ending",
    ),
    gauge("greenroom_psgi_workers_wanted", PSGI, "Perl workers that there are to be"),
    gauge(
        "greenroom_psgi_requests", &["application", "mount", "state"],
        "Requests in Perl workers: running, or waiting for an event",
    ),
    gauge("greenroom_psgi_queue_length", PSGI, "Requests that wait for a Perl worker"),
    gauge(
        "greenroom_psgi_predicted_wait_seconds", PSGI,
        "Time for which a request that came last would wait for a Perl worker",
    ),
    gauge(
        "greenroom_psgi_stuck_seconds", PSGI,
        "Time without progress of the Perl worker that has made none for longest",
    ),
    gauge(
        "greenroom_psgi_resident_memory_bytes", PSGI,
        "Memory of all Perl workers; what they share counts for each",
    ),
    counter(
        "greenroom_psgi_rejected_total", &["application", "mount", "reason"],
        "Requests that were rejected: wait, queue_full, late",
    ),
    counter(
        "greenroom_psgi_worker_restarts_total", PSGI,
        "Perl workers that ended and were replaced",
    ),
    counter("greenroom_psgi_workers_hung_total", PSGI, "Perl workers that hung and were killed"),
    counter(
        "greenroom_psgi_workers_retired_total", PSGI,
        "Perl workers that were replaced in turn",
    ),
    counter("greenroom_psgi_reloads_total", PSGI, "Reloads of the application"),
    counter(
        "greenroom_psgi_reloads_failed_total", PSGI,
        "Reloads that failed, so that the old code serves on",
    ),
    counter(
        "greenroom_proxy_requests_total", UPSTREAM,
        "Requests given to the upstream, retries included",
    ),
    counter("greenroom_proxy_retries_total", UPSTREAM, "Of those, the ones that had failed before"),
    gauge(
        "greenroom_proxy_active_requests", UPSTREAM,
        "Requests that the upstream has now, tunnels included",
    ),
    counter(
        "greenroom_proxy_failures_total", &["upstream", "reason"],
        "Failures: connect, connect_timeout, local, response_head_timeout, response_head, \
         response_body, status",
    ),
    gauge("greenroom_proxy_resting", UPSTREAM, "Proxies for which the upstream rests"),
    counter(
        "greenroom_proxy_rejected_total", &["reason"],
        "Requests that no upstream was given: in_flight (503), loop (508)",
    ),
    gauge("greenroom_actor_alive", &["system", "type"], "Actors that are alive, once a second"),
    gauge(
        "greenroom_actor_runnable", &["system", "dispatcher"],
        "Actors that wait for a worker, once a second",
    ),
    counter(
        "greenroom_actor_busy_seconds_total", &["system", "dispatcher"],
        "Time for which workers have run actors, once a second",
    ),
    counter("greenroom_actor_failures_total", &["type"], "Failures of actors"),
    counter("greenroom_actor_restarts_total", &["type"], "Restarts of actors"),
    counter(
        "greenroom_actor_dead_letters_total", &["reason"],
        "Messages that no actor handled: failed, aborted, dropped_newest, dropped_oldest, \
         mailbox_full, ended",
    ),
    counter(
        "greenroom_actor_stalls_total", &["dispatcher"],
        "Warnings of the dispatcher's watchdog",
    ),
    counter(
        "greenroom_actor_outbox_dropped_total", &["connection"],
        "Frames dropped, as their reader was slow: websocket, sse",
    ),
    counter(
        "greenroom_actor_slow_readers_closed_total", &["connection"],
        "Connections closed, as their reader was slow: websocket, sse",
    ),
    counter("greenroom_bus_published_total", BUS, "Messages that this process published"),
    counter("greenroom_bus_publish_failed_total", BUS, "Messages that could not be published"),
    counter("greenroom_bus_delivered_total", BUS, "Messages put into a queue, or taken by a sink"),
    counter("greenroom_bus_dropped_total", BUS, "Messages that full subscriptions dropped"),
    counter(
        "greenroom_bus_overflow_closed_total", BUS,
        "Subscriptions that ended, as they were full",
    ),
    counter(
        "greenroom_bus_reconnect_gaps_total", BUS,
        "Gaps after a reconnection, one for each subscription",
    ),
    counter(
        "greenroom_bus_connections_lost_total", BUS,
        "Connections to the server that were lost",
    ),
    counter("greenroom_bus_replayed_total", BUS, "Messages received from a stream after a gap"),
    gauge(
        "greenroom_cluster_disconnected", &[],
        "Clusters of the process' servers that have no connection to NATS",
    ),
    gauge(
        "greenroom_cluster_nodes", &[],
        "Nodes that this one has heard of within a lease, itself included",
    ),
    gauge(
        "greenroom_cluster_durable_messages", &[],
        "Durable messages of all nodes that wait or are being handled, as known every 5 s",
    ),
    counter("greenroom_cluster_asks_total", &[], "Asks of actors that may be at other nodes"),
    counter(
        "greenroom_cluster_ask_errors_total", &["error"],
        "Asks without a reply: no_such, no_such_message, late, lost, refused, failed, codec",
    ),
    counter(
        "greenroom_cluster_asked_elsewhere_total", &[],
        "Asks that one member of a group rejected, and that went to another",
    ),
    counter("greenroom_cluster_tells_total", &[], "Messages told to actors at other nodes"),
    counter("greenroom_cluster_delivered_total", &[], "Durable messages that were handled here"),
    counter(
        "greenroom_cluster_dead_letters_total", &["reason"],
        "Messages that came here and were not handled, and whose senders do not hear of it",
    ),
    gauge(
        "greenroom_cluster_entities", KIND,
        "Entities of this node that are active, or on their way to be or not to be",
    ),
    gauge(
        "greenroom_cluster_entity_messages", KIND,
        "Messages for entities of this node that wait or are handled",
    ),
    counter("greenroom_cluster_activations_total", KIND, "Activations of entities at this node"),
    counter("greenroom_cluster_activation_failures_total", KIND, "Activations that failed"),
    counter(
        "greenroom_cluster_passivations_total", KIND,
        "Activations that ended because the entity was idle, or the node drained",
    ),
    counter(
        "greenroom_cluster_fenced_total", KIND,
        "Activations that ended because a later one had written",
    ),
    counter("greenroom_trace_spans_sent_total", &[], "Spans that the collector has taken"),
    counter(
        "greenroom_trace_spans_dropped_total", &["reason"],
        "Spans that were lost: the queue was full (queue_full), the collector did not take them \
         (export), or a request had as many below it as it may (trace_full)",
    ),
    counter(
        "greenroom_log_lines_dropped_total", &["log", "reason"],
        "Lines of the access log's file or of the error log that were lost: they could not be \
         written (unwritten), or too many waited for it (queue_full)",
    ),
    gauge(
        "greenroom_tls_certificate_not_after_timestamp_seconds", &["host"],
        "End of the host's certificate, in seconds since 1970; of several, the earliest",
    ),
    counter(
        "greenroom_upgrades_total", &["outcome"],
        "Upgrades by outcome (serves, failed, refused), those of the versions before included",
    ),
    counter("process_cpu_seconds_total", &[], "Processor time, of user and system"),
    gauge("process_threads", &[], "Threads of the process"),
    gauge("process_virtual_memory_bytes", &[], "Virtual memory"),
    gauge("process_resident_memory_bytes", &[], "Resident memory, without that of Perl workers"),
    gauge("process_start_time_seconds", &[], "Start of the process, in seconds since 1970"),
    gauge("process_open_fds", &[], "Open file descriptors"),
    gauge("process_max_fds", &[], "The limit on open file descriptors"),
];

/// Gives the recorder the descriptions, under the names that the recorder knows.
pub(super) fn describe() {
    for metric in METRICS {
        let (name, help) = (recorded_name(metric.name), metric.help);
        match metric.kind {
            MetricKind::Counter => describe_counter!(name, help),
            MetricKind::Gauge => describe_gauge!(name, help),
            MetricKind::Histogram => describe_histogram!(name, help),
        }
    }
}

/// Returns the name under which a metric is recorded: counters of seconds count microseconds.
fn recorded_name(name: &'static str) -> String {
    match name.strip_suffix("_seconds_total") {
        Some(stem) => format!("{stem}_microseconds_total"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_kinds_keep_the_conventions_of_prometheus() {
        for (index, metric) in METRICS.iter().enumerate() {
            let name = metric.name;
            let is_counter = metric.kind == MetricKind::Counter;
            assert_eq!(name.ends_with("_total"), is_counter, "{name}");
            assert!(!name.contains("micro") && !name.contains("milli"), "{name}");
            assert!(!metric.help.ends_with('.'), "{name}");
            let twice = METRICS[..index].iter().any(|other| other.name == name);
            assert!(!twice, "{name} is defined twice");
        }
    }
}
