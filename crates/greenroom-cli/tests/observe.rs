//! The sight that operators have of a server: logs, traces, and metrics with the dashboard and the
//! alerts of `packaging/observability` on a real Prometheus.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "these tests use a part of it")]
mod authority;
#[path = "observe/metrics.rs"]
mod metrics;
#[path = "observe/names.rs"]
mod names;
mod outside;
#[path = "../../greenroom-acme/tests/with_pebble/ports.rs"]
mod ports;
#[allow(dead_code, reason = "these tests use a part of it")]
mod program;
#[path = "observe/prometheus.rs"]
mod prometheus;
#[allow(dead_code, reason = "these tests use a part of it")]
mod site;
#[path = "observe/telling.rs"]
mod telling;
#[path = "observe/traces.rs"]
mod traces;
