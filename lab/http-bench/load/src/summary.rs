//! Latencies, and how they are told to the driver.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::Context;
use hdrhistogram::Histogram;
use serde_json::{Value, json};

const SIGNIFICANT_DIGITS: u8 = 3;
/// Longer ones are recorded as this.
const MICROS_MAX: u64 = 120_000_000;

/// A histogram in microseconds.
pub struct Latencies(Histogram<u64>);

impl Latencies {
    /// Nothing recorded yet.
    ///
    /// # Errors
    /// Never with the precision used here.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self(
            Histogram::new_with_bounds(1, MICROS_MAX, SIGNIFICANT_DIGITS).context("histogram")?,
        ))
    }

    /// Adds one latency.
    pub fn record(&mut self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.0.saturating_record(micros);
    }

    /// How many were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Least, quantiles and most, in milliseconds.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "min_ms": millis(self.0.min()),
            "p50_ms": millis(self.0.value_at_quantile(0.50)),
            "p90_ms": millis(self.0.value_at_quantile(0.90)),
            "p99_ms": millis(self.0.value_at_quantile(0.99)),
            "max_ms": millis(self.0.max()),
        })
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "latencies are far below 2^52 us"
)]
fn millis(micros: u64) -> f64 {
    micros as f64 / 1000.0
}

/// Prints one line to standard output at once.
///
/// # Errors
/// When standard output is closed.
pub fn print_line(value: &Value) -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "{value}")?;
    out.flush()
}
