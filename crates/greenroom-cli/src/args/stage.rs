//! Flags of the default stage, one for each setting.

use greenroom::{BuildError, Stage, StageSettings};

use super::settings::SettingArgs;

pub(super) const HEADING: &str =
    "Stage: where that runs of the demo application and of sites which is not known to be short";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct StageArgs {
    /// Handlers that may compute at a time (default: one for each core)
    #[arg(
        long,
        env = "GREENROOM_STAGE_THREADS",
        value_name = "NUMBER",
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    stage_threads: Option<u16>,

    #[command(flatten)]
    settings: SettingArgs<StageSettings>,
}

impl StageArgs {
    /// Builds the default stage, before anything uses it.
    pub(crate) fn build(&self) -> Result<(), BuildError> {
        let mut builder = Stage::builder("stage").settings(self.settings.0.clone());
        if let Some(threads) = self.stage_threads {
            builder = builder.threads(threads.into()..=threads.into());
        }
        builder.build_global()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        stage: StageArgs,
    }

    #[test]
    fn each_flag_sets_what_the_status_shows() {
        let flags = "stage --stage-threads 3 --queue-wait-max 250ms --queue-max 7";
        Line::parse_from(flags.split(' '))
            .stage
            .build()
            .expect("a stage can be built");
        let status = Stage::global().status();
        assert_eq!(status.threads.total, 3);
        assert_eq!(status.queue_wait_max_micros, 250_000);
        assert_eq!(status.queue_max, 7);
    }

    #[test]
    fn nothing_is_no_number_of_threads() {
        for flag in ["--stage-threads", "--blocking-threads-max", "--queue-max"] {
            assert!(
                Line::try_parse_from(["stage", flag, "0"]).is_err(),
                "{flag}"
            );
        }
    }
}
