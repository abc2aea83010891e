//! A gate's text, in the form of the command line.

use std::fmt;

use super::{Amount, Comparison, Condition, Counter, Gate, Statistic};

impl fmt::Display for Gate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let comparison = match self.comparison {
            Comparison::Above => ">",
            Comparison::AtLeast => ">=",
            Comparison::Below => "<",
            Comparison::AtMost => "<=",
        };
        match self.condition {
            Condition::Latency(statistic, bound) => {
                // Without the blanks, a time of several units is one word.
                let bound = humantime::format_duration(bound).to_string();
                write!(out, "{statistic}{comparison}{}", bound.replace(' ', ""))
            }
            Condition::Count(counter, amount) => write!(out, "{counter}{comparison}{amount}"),
            Condition::Rate(bound) => write!(out, "rate{comparison}{bound}"),
        }
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percentile(percentile) => write!(out, "p{percentile}"),
            Self::Mean => out.write_str("mean"),
            Self::Min => out.write_str("min"),
            Self::Max => out.write_str("max"),
        }
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Errors => "errors",
            Self::Non2xx => "non2xx",
            Self::Late => "late",
            Self::Missed => "missed",
        })
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absolute(number) => write!(out, "{number}"),
            Self::Percent(percent) => write!(out, "{percent}%"),
        }
    }
}
