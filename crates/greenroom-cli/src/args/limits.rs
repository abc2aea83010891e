//! One flag for each of the server's limits.

use std::time::Duration;

use bytesize::ByteSize;
use greenroom::Limits;

use super::value;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// Size of a request's head; 431 beyond
    #[arg(
        long,
        env = "GREENROOM_HEAD_BYTES_MAX",
        value_name = "SIZE",
        default_value = "64KiB",
        value_parser = value::size
    )]
    head_bytes_max: ByteSize,

    /// Header fields of a request, from 1 to 256; 431 beyond
    #[arg(
        long,
        env = "GREENROOM_FIELDS_MAX",
        value_name = "NUMBER",
        default_value = "100",
        value_parser = clap::value_parser!(u16).range(1..=256)
    )]
    fields_max: u16,

    /// Size of a request's target (its path and query); 414 beyond
    #[arg(
        long,
        env = "GREENROOM_TARGET_BYTES_MAX",
        value_name = "SIZE",
        default_value = "8KiB",
        value_parser = value::size
    )]
    target_bytes_max: ByteSize,

    /// Size of a request's body; 413 beyond
    #[arg(
        long,
        env = "GREENROOM_BODY_BYTES_MAX",
        value_name = "SIZE",
        default_value = "2MiB",
        value_parser = value::size
    )]
    body_bytes_max: ByteSize,

    /// Time in which a request's head must be complete; 408 beyond
    #[arg(
        long,
        env = "GREENROOM_HEAD_TIMEOUT",
        value_name = "TIME",
        default_value = "10s",
        value_parser = value::positive_time
    )]
    head_timeout: Duration,

    /// Time that a body may take before its rate counts
    #[arg(
        long,
        env = "GREENROOM_BODY_GRACE",
        value_name = "TIME",
        default_value = "10s",
        value_parser = value::time
    )]
    body_grace: Duration,

    /// Size that a body must bring each second after --body-grace; 408 below
    #[arg(
        long,
        env = "GREENROOM_BODY_RATE_MIN",
        value_name = "SIZE",
        default_value = "1kB",
        value_parser = value::size
    )]
    body_rate_min: ByteSize,

    /// Time that a connection may be idle between two requests; closed beyond
    ///
    /// Longer than a proxy in front keeps its idle connections, or some of its requests fail with 502:
    /// 75s outlasts the 60 s of AWS' load balancers and of nginx' upstream.
    #[arg(
        long,
        env = "GREENROOM_KEEP_ALIVE_TIMEOUT",
        value_name = "TIME",
        default_value = "75s",
        value_parser = value::positive_time
    )]
    keep_alive_timeout: Duration,

    /// Time in which a client must read something of what is sent to it; cut off beyond
    ///
    /// Over HTTP/2 it is the stream that is reset, and the connection if nothing else is under way on it.
    #[arg(
        long,
        env = "GREENROOM_WRITE_TIMEOUT",
        value_name = "TIME",
        default_value = "30s",
        value_parser = value::positive_time
    )]
    write_timeout: Duration,

    /// Size that a client must take each second of what is sent to it, 0 for any; cut off below
    ///
    /// Only the time counts in which it is waited for, and it may be behind by --write-timeout. Events and long polls
    /// that send little are not concerned. Over HTTP/2 it holds for each stream.
    #[arg(
        long,
        env = "GREENROOM_RESPONSE_RATE_MIN",
        value_name = "SIZE",
        default_value = "1kB",
        value_parser = value::size
    )]
    response_rate_min: ByteSize,

    /// Connections at once; beyond it new ones wait and the longest idle are closed
    ///
    /// Default: 90 % of the limit on open descriptors, which is first raised as far as it goes.
    #[arg(
        long,
        env = "GREENROOM_CONNECTIONS_MAX",
        value_name = "NUMBER",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    connections_max: Option<u32>,

    /// Streams at once on an HTTP/2 connection; beyond it they are refused
    #[arg(
        long,
        env = "GREENROOM_STREAMS_MAX",
        value_name = "NUMBER",
        default_value = "100",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    streams_max: u32,

    /// Size of responses that an HTTP/2 connection holds while its client does not take them
    ///
    /// Over all its streams: 32 KiB for one, and 1 KiB for each whatever the others hold.
    #[arg(
        long,
        env = "GREENROOM_OUTPUT_BYTES_MAX",
        value_name = "SIZE",
        default_value = "256KiB",
        value_parser = value::size
    )]
    output_bytes_max: ByteSize,

    /// Connections at once of one address (of IPv6: of its /64); 429 beyond (default: off)
    ///
    /// On the open internet, without a proxy in front, 100 is generous. Trusted proxies and Unix sockets have no limit.
    #[arg(
        long,
        env = "GREENROOM_ADDRESS_CONNECTIONS_MAX",
        value_name = "NUMBER",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    address_connections_max: Option<u32>,

    /// Requests a second of one address (of IPv6: of its /64), 0 for any; 429 with Retry-After beyond
    ///
    /// Behind a --trusted-proxy it is the client's address that counts, and the proxy's does not.
    #[arg(
        long,
        env = "GREENROOM_ADDRESS_REQUESTS_RATE_MAX",
        value_name = "NUMBER",
        default_value = "0"
    )]
    address_requests_rate_max: u32,

    /// Requests at once by which an address may be ahead of --address-requests-rate-max
    #[arg(
        long,
        env = "GREENROOM_ADDRESS_REQUESTS_BURST",
        value_name = "NUMBER",
        default_value = "200",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    address_requests_burst: u32,

    /// Memory that all connections may hold for requests and responses under way; 503 for more requests beyond
    ///
    /// Default: a quarter of the memory of this machine, or of its container. What an application makes of a request,
    /// and its processes, are not counted.
    #[arg(
        long,
        env = "GREENROOM_MEMORY_MAX",
        value_name = "SIZE",
        value_parser = value::positive_size
    )]
    memory_max: Option<ByteSize>,

    /// Time that what is ready may wait for its loop; 503 for newcomers beyond
    ///
    /// Of the demo application's routes all but the important ones are refused then, too. See
    /// --loop-lag-standing.
    #[arg(
        long,
        env = "GREENROOM_LOOP_LAG_MAX",
        value_name = "TIME",
        default_value = "20ms",
        value_parser = value::positive_time
    )]
    loop_lag_max: Duration,

    /// Time for which it must have waited longer before anything is refused
    ///
    /// A burst that is over sooner is served whole. 0s sheds after two probes of the lag.
    #[arg(
        long,
        env = "GREENROOM_LOOP_LAG_STANDING",
        value_name = "TIME",
        default_value = "1s",
        value_parser = value::time
    )]
    loop_lag_standing: Duration,
}

impl LimitArgs {
    /// Reads the limit on open descriptors where --connections-max is not given.
    pub(crate) fn to_limits(&self) -> Limits {
        let mut limits = Limits {
            head_bytes_max: bytes(self.head_bytes_max),
            fields_max: self.fields_max.into(),
            target_bytes_max: bytes(self.target_bytes_max),
            body_bytes_max: self.body_bytes_max(),
            head_timeout: self.head_timeout,
            body_grace: self.body_grace,
            body_rate_min: self.body_rate_min.as_u64(),
            keep_alive_timeout: self.keep_alive_timeout,
            write_timeout: self.write_timeout,
            streams_max: self.streams_max,
            output_bytes_max: bytes(self.output_bytes_max),
            response_rate_min: self.response_rate_min.as_u64(),
            address_requests_rate_max: self.address_requests_rate_max,
            address_requests_burst: self.address_requests_burst,
            loop_lag_max: self.loop_lag_max,
            loop_lag_standing: self.loop_lag_standing,
            ..Limits::default()
        };
        if let Some(number) = self.connections_max {
            limits.connections_max = usize::try_from(number).unwrap_or(usize::MAX);
        }
        if let Some(number) = self.address_connections_max {
            limits.address_connections_max = usize::try_from(number).unwrap_or(usize::MAX);
        }
        if let Some(size) = self.memory_max {
            limits.memory_max = bytes(size);
        }
        limits
    }

    pub(crate) fn body_bytes_max(&self) -> u64 {
        self.body_bytes_max.as_u64()
    }
}

fn bytes(size: ByteSize) -> usize {
    usize::try_from(size.as_u64()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
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
        assert_eq!(line.limits.to_limits(), expected);
    }

    #[test]
    fn each_flag_sets_its_limit() {
        let line = Line::parse_from([
            "limits",
            "--head-bytes-max=16KiB",
            "--fields-max=20",
            "--target-bytes-max=1KiB",
            "--body-bytes-max=1GiB",
            "--head-timeout=1s",
            "--body-grace=2s",
            "--body-rate-min=3B",
            "--keep-alive-timeout=4s",
            "--write-timeout=5s",
            "--response-rate-min=9B",
            "--connections-max=6",
            "--streams-max=9",
            "--output-bytes-max=10KiB",
            "--address-connections-max=10",
            "--address-requests-rate-max=11",
            "--address-requests-burst=12",
            "--memory-max=13MiB",
            "--loop-lag-max=7ms",
            "--loop-lag-standing=8s",
        ]);
        let expected = Limits {
            head_bytes_max: 16 * 1024,
            fields_max: 20,
            target_bytes_max: 1024,
            body_bytes_max: 1024 * 1024 * 1024,
            head_timeout: Duration::from_secs(1),
            body_grace: Duration::from_secs(2),
            body_rate_min: 3,
            keep_alive_timeout: Duration::from_secs(4),
            write_timeout: Duration::from_secs(5),
            response_rate_min: 9,
            connections_max: 6,
            streams_max: 9,
            output_bytes_max: 10 * 1024,
            address_connections_max: 10,
            address_requests_rate_max: 11,
            address_requests_burst: 12,
            memory_max: 13 * 1024 * 1024,
            loop_lag_max: Duration::from_millis(7),
            loop_lag_standing: Duration::from_secs(8),
        };
        assert_eq!(line.limits.to_limits(), expected);
    }
}
