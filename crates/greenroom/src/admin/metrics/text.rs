//! The text format of Prometheus, 0.0.4.

use std::fmt::{Display, Write};

use super::catalog::METRICS;

const MICROSECONDS: &str = "_microseconds_total";
const SECONDS: &str = "_seconds_total";

/// Metrics as text.
pub(super) struct Text(String);

impl Text {
    /// Begins with what a recorder has, with counters of microseconds in seconds.
    pub(super) fn recorded(recorded: &str) -> Self {
        let mut text = String::with_capacity(recorded.len() + recorded.len() / 4);
        for line in recorded.lines() {
            push_in_seconds(line, &mut text);
            text.push('\n');
        }
        Self(text)
    }

    /// Begins a metric of the catalog.
    ///
    /// # Panics
    ///
    /// If the catalog does not have it: that is a fault of ours, which every test of the metrics
    /// finds.
    pub(super) fn begin(&mut self, name: &str) {
        let metric = METRICS.iter().find(|metric| metric.name == name);
        let metric = metric.expect("the catalog has all metrics");
        let (kind, help) = (metric.kind.name(), metric.help);
        // Writing to a string cannot fail.
        let _written = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// Adds a value with these labels; a label without a value is left out.
    pub(super) fn value(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        let mut separator = '{';
        for (label, value) in labels.iter().filter(|(_, value)| !value.is_empty()) {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            let value = value.replace('\n', "\\n");
            let _written = write!(self.0, "{separator}{label}=\"{value}\"");
            separator = ',';
        }
        if separator == ',' {
            self.0.push('}');
        }
        let _written = writeln!(self.0, " {value}");
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.0
    }
}

fn push_in_seconds(line: &str, text: &mut String) {
    let Some(at) = line.find(MICROSECONDS) else {
        text.push_str(line);
        return;
    };
    text.push_str(&line[..at]);
    text.push_str(SECONDS);
    let rest = &line[at + MICROSECONDS.len()..];
    let value = rest.rsplit_once(' ').filter(|_| !line.starts_with('#'));
    match value.and_then(|(labels, value)| Some((labels, value.parse::<u64>().ok()?))) {
        Some((labels, micros)) => {
            let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
            let _written = write!(text, "{labels} {seconds}.{micros:06}");
        }
        None => text.push_str(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_microseconds_are_shown_in_seconds() {
        let recorded = "# HELP a_microseconds_total time of a\n\
            # TYPE a_microseconds_total counter\n\
            a_microseconds_total{b=\"c d\"} 12000345\n\
            d_total 7\n";
        let shown = String::from(Text::recorded(recorded));
        assert_eq!(
            shown,
            "# HELP a_seconds_total time of a\n\
            # TYPE a_seconds_total counter\n\
            a_seconds_total{b=\"c d\"} 12.000345\n\
            d_total 7\n"
        );
    }

    #[test]
    fn labels_end_neither_their_quotes_nor_their_line() {
        let mut text = Text(String::new());
        text.value("a", &[("b", "\"\\\n"), ("c", ""), ("d", "e")], 1.5);
        text.value("a", &[("c", "")], 2);
        assert_eq!(text.0, "a{b=\"\\\"\\\\\\n\",d=\"e\"} 1.5\na 2\n");
    }
}
