//! The flags of `greenroom serve`.

use std::num::NonZeroUsize;
use std::time::Duration;

use greenroom::Address;

use super::limits::LimitArgs;
use super::log::LogArgs;
use super::stage::StageArgs;
use super::{EXIT_STATUSES, value};
use crate::demo::Upstream;

const EXAMPLES: &str = "\
Units:
  times are written 250ms, 10s, 1m 30s or 2h; sizes 512B, 64KiB (of 1,024) or 64kB (of 1,000)

Signals:
  SIGTERM or SIGINT drains: no new connections, what is under way is finished
  a second one cuts off what is still under way

Examples:
  greenroom serve
  greenroom serve --listen 0.0.0.0:8080 --listen '[::]:8080' --listen unix:/run/greenroom.sock
  greenroom serve --upstream http://127.0.0.1:9000/status --no-access-log
  greenroom serve --body-bytes-max 1GiB --log-format json
  GREENROOM_LISTEN=127.0.0.1:8080,127.0.0.2:8080 greenroom serve";

/// Serve the demo application
///
/// Its page, on port 5000 of this machine unless --listen says otherwise, lists what it can do.
/// Every flag can also be given by the environment variable that stands beside it; a flag wins.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{EXIT_STATUSES}"))]
pub(crate) struct ServeArgs {
    /// Where to listen: IP:PORT, [IPV6]:PORT or unix:PATH; may be repeated
    ///
    /// Port 0 is a free port, which the log names. In the environment, addresses are separated by
    /// commas.
    #[arg(
        long,
        env = "GREENROOM_LISTEN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:5000",
        value_delimiter = ','
    )]
    pub(crate) listen: Vec<Address>,

    /// Threads that serve connections (default: one for each core)
    #[arg(long, env = "GREENROOM_LOOPS", value_name = "NUMBER")]
    pub(crate) loops: Option<NonZeroUsize>,

    /// The one URL (http only) that /proxy relays
    ///
    /// Without it, /proxy answers 404.
    #[arg(long, env = "GREENROOM_UPSTREAM", value_name = "URL")]
    upstream: Option<Upstream>,

    /// How long the upstream may keep /proxy waiting for its answer, and for each piece of it
    ///
    /// Beyond it the client gets 504, or an answer that breaks off. Connecting must in any case
    /// succeed within 3 s.
    #[arg(
        long,
        env = "GREENROOM_UPSTREAM_TIMEOUT",
        value_name = "TIME",
        default_value = "10s",
        value_parser = value::positive_time
    )]
    upstream_timeout: Duration,

    /// How long a drain waits for requests under way before it cuts them off
    #[arg(
        long,
        env = "GREENROOM_DRAIN_DEADLINE",
        value_name = "TIME",
        default_value = "30s",
        value_parser = value::time
    )]
    pub(crate) drain_deadline: Duration,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    #[command(flatten)]
    pub(crate) stage: StageArgs,

    #[command(flatten)]
    pub(crate) log: LogArgs,
}

impl ServeArgs {
    /// The upstream with its time-out.
    pub(crate) fn upstream(&self) -> Option<Upstream> {
        let upstream = self.upstream.clone()?;
        Some(upstream.with_timeout(self.upstream_timeout))
    }
}
