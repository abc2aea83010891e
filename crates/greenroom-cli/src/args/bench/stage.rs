//! `500@10s`: a step of a schedule.

use std::str::FromStr;
use std::time::Duration;

use greenroom_load::plan::rate;

use crate::args::value;

/// A rate that is held for a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stage {
    pub(crate) rate: f64,
    pub(crate) duration: Duration,
}

impl FromStr for Stage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (requests, duration) = text
            .split_once('@')
            .ok_or("a stage is written RATE@TIME, such as 500@10s")?;
        Ok(Self {
            rate: rate(requests).map_err(|error| error.to_string())?,
            duration: value::positive_time(duration)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_a_rate_and_a_time() {
        let expected = Stage {
            rate: 0.5,
            duration: Duration::from_millis(1500),
        };
        assert_eq!("0.5@1500ms".parse(), Ok(expected));
        for text in ["5", "5@", "@5s", "-1@5s", "5@0s"] {
            assert!(text.parse::<Stage>().is_err(), "{text}");
        }
    }
}
