//! `rate=100 http://host/path`: a further stream.

use std::str::FromStr;

use greenroom_load::plan::{Ramp, Target, rate};

use super::request;

/// A further stream of requests, as far as it differs from the main one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Also {
    pub(crate) rate: Option<f64>,
    pub(crate) ramp: Option<Ramp>,
    pub(crate) connections: Option<u32>,
    pub(crate) method: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) keep_alive: Option<bool>,
    pub(crate) targets: Vec<Target>,
}

const FORM: &str = "a stream is written 'rate=100 http://host/path'; before the URL may stand \
    rate=N, ramp=FROM..TO, connections=N, method=NAME, name=TEXT and keep-alive=yes|no";

impl FromStr for Also {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut also = Self::default();
        for word in text.split_whitespace() {
            match word.split_once('=') {
                Some((key, value)) if !word.contains("://") => also.set(key, value)?,
                _ => also
                    .targets
                    .push(word.parse().map_err(|error| format!("{error}; {FORM}"))?),
            }
        }
        if also.targets.is_empty() {
            return Err(format!("the URL is missing; {FORM}"));
        }
        if also.rate.is_some() && also.ramp.is_some() {
            return Err("either rate or ramp, not both".to_owned());
        }
        Ok(also)
    }
}

impl Also {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let fail = || format!("{key}={value}: {FORM}");
        match key {
            "rate" => self.rate = Some(rate(value).map_err(|error| error.to_string())?),
            "ramp" => self.ramp = Some(value.parse::<Ramp>().map_err(|error| error.to_string())?),
            "connections" => {
                let connections = value.parse().ok().filter(|number| *number > 0);
                self.connections = Some(connections.ok_or_else(fail)?);
            }
            "method" => self.method = Some(request::method(value)?),
            "name" => self.name = Some(value.to_owned()),
            "keep-alive" => {
                self.keep_alive = match value {
                    "yes" => Some(true),
                    "no" => Some(false),
                    _ => return Err(fail()),
                }
            }
            _ => return Err(fail()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_says_how_it_differs() {
        let also: Also = "rate=100 name=light keep-alive=no http://h/a?b=c"
            .parse()
            .expect("valid");
        assert_eq!((also.rate, also.keep_alive), (Some(100.0), Some(false)));
        assert_eq!(also.name.as_deref(), Some("light"));
        assert_eq!(also.targets[0].path, "/a?b=c");
    }

    #[test]
    fn what_is_no_stream_is_told() {
        for text in [
            "",
            "rate=100",
            "rate=x http://h/",
            "rate=1 ramp=0..2 http://h/",
            "speed=1 http://h/",
            "connections=0 http://h/",
            "method= http://h/",
            "h:80",
        ] {
            let error = text.parse::<Also>().expect_err(text);
            assert!(!error.is_empty());
        }
    }
}
