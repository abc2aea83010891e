//! Flags of `greenroom bench`.

mod also;
mod compare;
mod load;
mod output;
mod request;
mod stage;

use std::num::NonZeroU32;
use std::path::PathBuf;

use greenroom_load::plan::Target;

pub(crate) use also::Also;
pub(crate) use compare::CompareArgs;
pub(crate) use load::LoadArgs;
pub(crate) use output::OutputArgs;
pub(crate) use request::RequestArgs;
pub(crate) use stage::Stage;

use super::value;

const HELP: &str = "\
Loops:
  closed (ab's, the default): each of -c connections sends when it has its response
  open (--rate, --ramp, --stage): requests are sent at their time, whatever became of those
  before; latency counts from that intended time, so a server that stalls cannot hide it

Units:
  times are written 250ms, 10s, 1m 30s or 2h; -t and -s also take plain seconds, as ab does

Examples:
  greenroom bench -n 200 -c 200 'http://127.0.0.1:5000/?field=hello'
  greenroom bench -k -c 64 -t 10 http://127.0.0.1:5000/hello
  greenroom bench -k --rate 1000 --duration 30s http://127.0.0.1:5000/hello
  greenroom bench -k --ramp 0..5000 --duration 30s --plot ramp.svg http://127.0.0.1:5000/hello
  greenroom bench -k --stage 100@10s,500@10s --html steps.html http://127.0.0.1:5000/hello
  greenroom bench -k --rate 20 --duration 30s --also 'rate=100 http://127.0.0.1:5000/hello' \\
      http://127.0.0.1:5000/fib/50000
  greenroom bench -k -c 64 -n 50000 -m PUT --url-file likes.txt
  greenroom bench -k --rate 1000 --duration 30s --fail-if 'p99>50ms' --fail-if 'errors>0.1%' \\
      http://127.0.0.1:5000/hello

Exit statuses:
  0    the run is over, and no gate was broken
  1    nothing answered, a part of the load could not connect, or a report could not be written
  2    nothing was sent: the command line is wrong, or a name has no address
  3    the asked rate was missed by more than 0.1 %, or a --fail-if came true
  130  it was interrupted; what there was is reported";

/// Measure a server with load: ab's flags and report, and an honest open loop
///
/// Speaks HTTP/1.1, HTTP/2 (--http2) and WebSocket (ws://), with TLS or without.
#[derive(Debug, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the text is shown on a terminal")]
#[command(
    after_help = HELP,
    args_conflicts_with_subcommands = true,
    args_override_self = true,
    subcommand_negates_reqs = true,
    version
)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) command: Option<BenchCommand>,

    /// URL to send requests to; several take turns, by weight if written 'weight=3
    /// http://host/path'
    #[arg(value_name = "URL", required_unless_present = "url_file")]
    pub(crate) urls: Vec<Target>,

    /// File of URLs, one a line, that take turns in its order, each once before any again; at most
    /// 1,000,000
    ///
    /// All have the same scheme, host and port. Empty lines and lines that begin with # are left
    /// out; a line 'weight=3 http://host/path' has three turns, one after the other. The turns go
    /// across all connections and threads.
    #[arg(long, value_name = "FILE", conflicts_with = "urls")]
    pub(crate) url_file: Option<PathBuf>,

    /// A further stream with statistics of its own: 'rate=100 http://host/path'; may be repeated
    ///
    /// Before its URL stand any of rate=N, ramp=FROM..TO, connections=N, method=NAME, name=TEXT
    /// and keep-alive=yes|no; everything else is as for the main stream. Without rate or ramp
    /// it is a closed loop. It needs --duration.
    #[arg(long, value_name = "STREAM")]
    pub(crate) also: Vec<Also>,

    #[command(flatten)]
    pub(crate) load: LoadArgs,

    #[command(flatten)]
    pub(crate) request: RequestArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Process of the server, whose CPU time and memory are shown
    ///
    /// Default: the process that listens on the URL's port, if that is on this machine.
    #[arg(long, value_name = "PID", value_parser = value::positive::<NonZeroU32>)]
    pub(crate) server_pid: Option<NonZeroU32>,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum BenchCommand {
    Compare(Box<CompareArgs>),
}
