//! Flags of the load: its schedule and its connections.

use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use greenroom_load::plan::{Ramp, rate};

use super::Stage;
use crate::args::value;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadArgs {
    /// Requests in all [default: 1, or as many as --duration allows]
    #[arg(
        short = 'n',
        long,
        value_name = "NUMBER",
        value_parser = value::positive::<NonZeroU64>,
        conflicts_with_all = ["rate", "ramp", "stage"]
    )]
    pub(crate) requests: Option<NonZeroU64>,

    /// Connections that send at once [default: 1]; of an open loop the most at once [default: all
    /// that the limit on descriptors allows]
    #[arg(
        short = 'c',
        long,
        visible_alias = "concurrency",
        value_name = "NUMBER",
        value_parser = value::positive::<NonZeroU32>
    )]
    pub(crate) connections: Option<NonZeroU32>,

    /// Duration of the sending; requests under way then are waited for
    #[arg(short = 't', long, value_name = "TIME", value_parser = value::positive_time_or_seconds)]
    pub(crate) duration: Option<Duration>,

    /// Open loop at this many requests per second
    #[arg(
        long,
        value_name = "NUMBER",
        value_parser = rate_value,
        requires = "duration",
        conflicts_with_all = ["ramp", "stage"]
    )]
    pub(crate) rate: Option<f64>,

    /// Open loop whose rate changes evenly from one number per second to another, such as 0..5000
    #[arg(
        long,
        value_name = "FROM..TO",
        requires = "duration",
        conflicts_with = "stage"
    )]
    pub(crate) ramp: Option<Ramp>,

    /// Open loop in steps, such as 100@10s,500@10s
    #[arg(
        long,
        value_name = "RATE@TIME",
        value_delimiter = ',',
        conflicts_with = "duration"
    )]
    pub(crate) stage: Vec<Stage>,

    /// Keep connections for further requests; else each request has one of its own
    #[arg(short = 'k', long)]
    pub(crate) keep_alive: bool,

    /// Requests under way on each connection: pipelined in HTTP/1.1, streams in HTTP/2 [default:
    /// 1; in an open loop over HTTP/2: 100]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) pipeline: Option<u32>,

    /// Longest time of a request before it counts as failed
    #[arg(
        short = 's',
        long,
        value_name = "TIME",
        default_value = "30s",
        value_parser = value::positive_time_or_seconds
    )]
    pub(crate) timeout: Duration,

    /// Addresses that connections come from, in turn, such as 127.0.0.2,127.0.0.3
    #[arg(short = 'B', long, value_name = "ADDRESS", value_delimiter = ',')]
    pub(crate) source: Vec<IpAddr>,

    /// Size of the sockets' buffers
    #[arg(short = 'b', long, value_name = "SIZE", value_parser = value::window)]
    pub(crate) window: Option<ByteSize>,

    /// Connect to this Unix socket, whatever the URL's host is
    #[arg(long, value_name = "PATH", conflicts_with_all = ["proxy", "source"])]
    pub(crate) unix_socket: Option<PathBuf>,

    /// Threads that make the load of each stream, from 1 to 256
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=256)
    )]
    pub(crate) threads: u32,

    /// Poll without pause: sends to within microseconds of the intended time, and takes a core for
    /// each thread
    #[arg(long)]
    pub(crate) spin: bool,
}

fn rate_value(text: &str) -> Result<f64, String> {
    rate(text).map_err(|error| error.to_string())
}
