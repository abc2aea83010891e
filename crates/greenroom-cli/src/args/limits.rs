//! One flag for each of the server's limits, as the server defines them.

use clap::builder::ValueParser;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use greenroom::{Limits, Setting, Unit};

pub(super) const HEADING: &str = "Limits";

/// Limits of the program whose default differs from the library's.
const DEFAULTS: [(&str, &str); 1] = [("body_bytes_max", "2MiB")];

#[derive(Debug)]
pub(crate) struct LimitArgs(Limits);

impl LimitArgs {
    pub(crate) fn limits(&self) -> &Limits {
        &self.0
    }
}

impl Args for LimitArgs {
    fn augment_args(command: Command) -> Command {
        command.args(Limits::settings().iter().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for LimitArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut limits = Self(Limits::default());
        limits.update_from_arg_matches(matches)?;
        Ok(limits)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for setting in Limits::settings() {
            if let Some(text) = matches.get_one::<String>(setting.name()) {
                let set = setting.set(&mut self.0, text);
                set.map_err(|error| {
                    clap::Error::raw(clap::error::ErrorKind::ValueValidation, error)
                })?;
            }
        }
        Ok(())
    }
}

fn flag(setting: &'static Setting) -> Arg {
    let name = setting.name();
    let value_name = match setting.unit() {
        Unit::Number => "NUMBER",
        Unit::Size => "SIZE",
        Unit::Time => "TIME",
    };
    let flag = Arg::new(name)
        .long(name.replace('_', "-"))
        .env(format!("GREENROOM_{}", name.to_uppercase()))
        .value_name(value_name)
        .value_parser(ValueParser::from(move |text: &str| {
            let mut scratch = Limits::default();
            match setting.set(&mut scratch, text) {
                Ok(()) => Ok(text.to_owned()),
                Err(error) => Err(error.fault().to_owned()),
            }
        }))
        .help_heading(HEADING);
    let (default, summary) = (default(setting), on_a_terminal(setting.summary()));
    if setting.is_computed() {
        let summary = format!("{summary} [default: {default}]");
        return flag.long_help(long_help(&summary, setting)).help(summary);
    }
    flag.long_help(long_help(&summary, setting))
        .help(summary)
        .default_value(default)
}

fn default(setting: &Setting) -> String {
    let own = DEFAULTS.iter().find(|(name, _)| *name == setting.name());
    own.map_or_else(|| setting.default_text(), |(_, text)| (*text).to_owned())
}

fn long_help(summary: &str, setting: &Setting) -> String {
    let mut text = summary.to_owned();
    let mut separator = "\n\n";
    for line in setting.details() {
        if line.is_empty() {
            separator = "\n\n";
        } else {
            text.push_str(separator);
            text.push_str(&on_a_terminal(line));
            separator = " ";
        }
    }
    format!("{text}\n\nAllowed: {}", setting.allowed())
}

/// Names the limits as flags: their texts name them as `fields_of_a_struct`.
fn on_a_terminal(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(index, part)| {
        let is_limit = index % 2 == 1 && Limits::setting(part).is_some();
        if is_limit {
            format!("--{}", part.replace('_', "-"))
        } else {
            part.to_owned()
        }
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        limits: LimitArgs,
    }

    #[test]
    fn defaults_are_the_library_s_with_a_cap_on_bodies() {
        let line = Line::parse_from(["limits"]);
        let expected = Limits {
            body_bytes_max: 2 * 1024 * 1024,
            ..Limits::default()
        };
        assert_eq!(*line.limits.limits(), expected);
    }

    #[test]
    fn a_flag_sets_its_limit() {
        let line = Line::parse_from([
            "limits",
            "--head-bytes-max=16KiB",
            "--body-bytes-max=unlimited",
            "--keep-alive-timeout=4s",
            "--connections-max=6",
            "--drain-grace=0s",
        ]);
        let expected = Limits {
            head_bytes_max: 16 * 1024,
            body_bytes_max: u64::MAX,
            keep_alive_timeout: Duration::from_secs(4),
            connections_max: 6,
            drain_grace: Duration::ZERO,
            ..Limits::default()
        };
        assert_eq!(*line.limits.limits(), expected);
    }

    #[test]
    fn what_is_not_allowed_is_told_with_what_is() {
        for (flag, told) in [
            ("--fields-max=257", "1 to 256"),
            ("--head-timeout=0s", "0s is not allowed"),
            ("--memory-max=a lot", "64KiB (of 1,024)"),
        ] {
            let error = Line::try_parse_from(["limits", flag]).expect_err(flag);
            let error = error.to_string();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn texts_name_flags() {
        let text = on_a_terminal("behind `response_rate_min`, and `Retry-After`");
        assert_eq!(text, "behind --response-rate-min, and Retry-After");
    }
}
