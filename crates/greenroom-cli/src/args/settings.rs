//! One flag for each setting of the server, of stages and of Perl applications, as these define it.

use clap::builder::ValueParser;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use greenroom::psgi::GatewaySettings;
use greenroom::{HasSettings, Limits, Setting, StageSettings, Unit};

use super::{psgi, stage};

/// A struct of settings with flags.
pub(crate) trait Flags: HasSettings + Clone + Send + Sync {
    /// The heading of its flags in the help.
    const HEADING: &str;
    /// Settings of the program whose default differs from the library's.
    const DEFAULTS: &[(&str, &str)] = &[];
    /// Settings whose flag has another name; an empty one for those without a flag.
    const NAMES: &[(&str, &str)] = &[];

    /// Returns the name of a setting's flag, as an identifier, if it has one.
    fn flag_of(name: &'static str) -> Option<&'static str> {
        let named = Self::NAMES.iter().find(|(setting, _)| *setting == name);
        let flag = named.map_or(name, |(_, flag)| flag);
        (!flag.is_empty()).then_some(flag)
    }
}

impl Flags for Limits {
    const HEADING: &str = "Limits";
    const DEFAULTS: &[(&str, &str)] = &[("body_bytes_max", "2MiB")];
}

impl Flags for StageSettings {
    const HEADING: &str = stage::HEADING;
    const NAMES: &[(&str, &str)] = &[("idle_timeout", "stage_idle_timeout")];
}

impl Flags for GatewaySettings {
    const HEADING: &str = psgi::HEADING;
    // The two without a flag are as the server's are.
    const NAMES: &[(&str, &str)] = &[
        ("body_bytes_max", ""),
        ("drain_deadline", ""),
        ("queue_max", "worker_queue_max"),
        ("queue_wait_max", "worker_queue_wait_max"),
    ];
}

/// The settings `T`, by flags.
#[derive(Clone, Debug)]
pub(crate) struct SettingArgs<T>(pub(crate) T);

impl<T: Flags> Args for SettingArgs<T> {
    fn augment_args(command: Command) -> Command {
        command.args(T::settings().iter().filter_map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<T: Flags> FromArgMatches for SettingArgs<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut settings = Self(T::default());
        settings.update_from_arg_matches(matches)?;
        Ok(settings)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for setting in T::settings() {
            let flag = T::flag_of(setting.name());
            if let Some(text) = flag.and_then(|flag| matches.get_one::<String>(flag)) {
                let set = setting.set(&mut self.0, text);
                set.map_err(|error| {
                    clap::Error::raw(clap::error::ErrorKind::ValueValidation, error)
                })?;
            }
        }
        Ok(())
    }
}

fn flag<T: Flags>(setting: &'static Setting<T>) -> Option<Arg> {
    let name = T::flag_of(setting.name())?;
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
            let set = setting.set(&mut T::default(), text);
            set.map_err(|error| error.fault().to_owned())?;
            Ok::<_, String>(text.to_owned())
        }))
        .help_heading(T::HEADING);
    let (default, summary) = (default(setting), on_a_terminal::<T>(setting.summary()));
    if setting.is_computed() {
        let summary = format!("{summary} [default: {default}]");
        return Some(flag.long_help(long_help(&summary, setting)).help(summary));
    }
    let flag = flag.long_help(long_help(&summary, setting)).help(summary);
    Some(flag.default_value(default))
}

fn default<T: Flags>(setting: &Setting<T>) -> String {
    let mut own = T::DEFAULTS.iter();
    let own = own.find(|(name, _)| *name == setting.name());
    own.map_or_else(|| setting.default_text(), |(_, text)| (*text).to_owned())
}

fn long_help<T: Flags>(summary: &str, setting: &Setting<T>) -> String {
    let mut text = summary.to_owned();
    let mut separator = "\n\n";
    for line in setting.details() {
        if line.is_empty() {
            separator = "\n\n";
        } else {
            text.push_str(separator);
            text.push_str(&on_a_terminal::<T>(line));
            separator = " ";
        }
    }
    format!("{text}\n\nAllowed: {}", setting.allowed())
}

/// Names settings as flags: their texts name them as `fields_of_a_struct`.
fn on_a_terminal<T: Flags>(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(index, part)| {
        let setting = T::setting(part).filter(|_| index % 2 == 1);
        match setting.and_then(|setting| T::flag_of(setting.name())) {
            Some(flag) => format!("--{}", flag.replace('_', "-")),
            None => part.to_owned(),
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
        limits: SettingArgs<Limits>,
        #[command(flatten)]
        stage: SettingArgs<StageSettings>,
        #[command(flatten)]
        gateway: SettingArgs<GatewaySettings>,
    }

    #[test]
    fn defaults_are_the_library_s_with_a_cap_on_bodies() {
        let line = Line::parse_from(["limits"]);
        let expected = Limits {
            body_bytes_max: 2 * 1024 * 1024,
            ..Limits::default()
        };
        assert_eq!(line.limits.0, expected);
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
        assert_eq!(line.limits.0, expected);
    }

    #[test]
    fn stages_and_perl_applications_have_flags_of_their_own() {
        let line = Line::parse_from([
            "limits",
            "--queue-max=7",
            "--stage-idle-timeout=1m",
            "--worker-queue-max=9",
            "--max-requests=unlimited",
            "--max-rss=64MiB",
        ]);
        let stage = StageSettings {
            queue_max: 7,
            idle_timeout: Duration::from_mins(1),
            ..StageSettings::default()
        };
        let gateway = GatewaySettings {
            queue_max: 9,
            max_rss: 64 << 20,
            ..GatewaySettings::default()
        };
        assert_eq!((line.stage.0, line.gateway.0), (stage, gateway));
    }

    #[test]
    fn what_is_not_allowed_is_told_with_what_is() {
        for (flag, told) in [
            ("--fields-max=257", "1 to 256"),
            ("--head-timeout=0s", "0s is not allowed"),
            ("--memory-max=a lot", "64KiB (of 1,024)"),
            ("--workers=0", "1 to 1024"),
            ("--max-rss=0B", "1B or more"),
            ("--queue-max=0", "1 or more"),
        ] {
            let error = Line::try_parse_from(["limits", flag]).expect_err(flag);
            let error = error.to_string();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn texts_name_flags() {
        let text = on_a_terminal::<Limits>("behind `response_rate_min`, and `Retry-After`");
        assert_eq!(text, "behind --response-rate-min, and Retry-After");
        let text = on_a_terminal::<GatewaySettings>("up to `queue_max`");
        assert_eq!(text, "up to --worker-queue-max");
    }
}
