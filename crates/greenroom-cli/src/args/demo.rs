//! Flags of the demo application.

use std::time::Duration;

use super::value;
use crate::demo::Upstream;

pub(super) const HEADING: &str = "Demo application";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct DemoArgs {
    /// The one URL (http only) that /proxy relays
    ///
    /// Without it, /proxy responds with 404.
    #[arg(long, env = "GREENROOM_UPSTREAM", value_name = "URL")]
    upstream: Option<Upstream>,

    /// Longest wait of /proxy for the upstream's response, and for each chunk of it
    ///
    /// Beyond it the client gets 504, or a response that is aborted. Connecting must in any case
    /// succeed within 3 s.
    #[arg(
        long,
        env = "GREENROOM_UPSTREAM_TIMEOUT",
        value_name = "TIME",
        default_value = "10s",
        value_parser = value::positive_time
    )]
    upstream_timeout: Duration,
}

impl DemoArgs {
    /// Returns the upstream with its time-out.
    pub(crate) fn upstream(&self) -> Option<Upstream> {
        let upstream = self.upstream.clone()?;
        Some(upstream.with_timeout(self.upstream_timeout))
    }
}
