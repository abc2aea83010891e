//! Parsers of values with units.

use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use bytesize::ByteSize;
use greenroom::Address;

/// The largest buffer that a socket may be given.
const WINDOW_BYTES_MAX: u64 = 1 << 30;

/// Parses an address to listen on, also in the forms of plackup: `:5000` and `/run/app.sock`.
pub(super) fn address(text: &str) -> Result<Address, String> {
    if text.starts_with('/') {
        return Ok(Address::Unix(text.into()));
    }
    let whole = match text.strip_prefix(':') {
        Some(port) => format!("0.0.0.0:{port}"),
        None => text.to_owned(),
    };
    whole.parse().map_err(|_| {
        "allowed are 127.0.0.1:5000, [::1]:5000, :5000, unix:/path/to.sock and /path/to.sock"
            .to_owned()
    })
}

/// A place to listen, which may have several addresses.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    Address(Address),
    /// This port of this machine, in both families.
    Localhost(u16),
}

/// Parses an address to listen on, or `localhost:5000`.
pub(super) fn place(text: &str) -> Result<Place, String> {
    let port = text.strip_prefix("localhost:").map(str::parse);
    match port {
        Some(Ok(port)) => Ok(Place::Localhost(port)),
        _ => address(text)
            .map(Place::Address)
            .map_err(|allowed| format!("{allowed}, and localhost:5000")),
    }
}

/// The part of a [`Place`] before the port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Host {
    Ip(IpAddr),
    Localhost,
}

/// Parses an IP address, or `localhost`.
pub(super) fn host(text: &str) -> Result<Host, String> {
    if text == "localhost" {
        return Ok(Host::Localhost);
    }
    text.parse().map(Host::Ip).map_err(|_| {
        "allowed are localhost and IP addresses, such as 127.0.0.1, 0.0.0.0 or ::".to_owned()
    })
}

/// Parses a time such as `1m 30s`.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|error| format!("{error}; allowed are times such as 250ms, 10s or 1m 30s"))
}

/// Parses a time that is not zero.
pub(super) fn positive_time(text: &str) -> Result<Duration, String> {
    match time(text)? {
        Duration::ZERO => Err("the time must be longer than 0".to_owned()),
        time => Ok(time),
    }
}

/// Parses a time, or plain seconds as ab takes them.
pub(super) fn positive_time_or_seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<u32>() {
        Ok(0) => Err("the time must be longer than 0".to_owned()),
        Ok(seconds) => Ok(Duration::from_secs(seconds.into())),
        Err(_) => positive_time(text),
    }
}

/// Parses a time from 100 ms to 1 h.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    let allowed = Duration::from_millis(100)..=Duration::from_hours(1);
    match time(text)? {
        time if allowed.contains(&time) => Ok(time),
        _ => Err("allowed are times from 100ms to 1h".to_owned()),
    }
}

/// Parses a number that is not zero, of a type for such numbers.
pub(super) fn positive<T: FromStr>(text: &str) -> Result<T, String> {
    let bits = 8 * size_of::<T>();
    text.parse()
        .map_err(|_| format!("allowed are whole numbers from 1 to 2^{bits} - 1"))
}

/// Parses the size of a socket's buffer.
pub(super) fn window(text: &str) -> Result<ByteSize, String> {
    match size(text)? {
        window if (1..=WINDOW_BYTES_MAX).contains(&window.as_u64()) => Ok(window),
        _ => Err("allowed are sizes from 1B to 1GiB".to_owned()),
    }
}

/// Parses a number of bytes such as `64KiB`.
pub(super) fn size(text: &str) -> Result<ByteSize, String> {
    text.parse().map_err(|_| {
        "allowed are sizes such as 512B, 64KiB (of 1,024) or 64kB (of 1,000)".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_hosts_are_ip_addresses() {
        assert_eq!(
            address(":0").map(|address| address.to_string()),
            Ok("0.0.0.0:0".to_owned())
        );
        for text in ["localhost:5000", ":", ":http", "unix:", "5000", ""] {
            assert!(address(text).is_err_and(|error| error.contains("[::1]:5000")));
        }
        assert_eq!(place("localhost:80"), Ok(Place::Localhost(80)));
        assert_eq!(host("localhost"), Ok(Host::Localhost));
        for text in [
            "localhost",
            "localhost:",
            "localhost:65536",
            "example.org:80",
        ] {
            assert!(place(text).is_err_and(|error| error.contains("localhost:5000")));
        }
        assert!(host("example.org").is_err_and(|error| error.contains("127.0.0.1")));
    }

    #[test]
    fn times_need_a_unit() {
        assert_eq!(time("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("0s"), Ok(Duration::ZERO));
        assert!(time("10").is_err_and(|error| error.contains("10s")));
        assert!(positive_time("0s").is_err_and(|error| error.contains("longer than 0")));
    }

    #[test]
    fn plain_seconds_are_taken_where_ab_takes_them() {
        assert_eq!(positive_time_or_seconds("10"), Ok(Duration::from_secs(10)));
        assert_eq!(positive_time_or_seconds("1m"), Ok(Duration::from_mins(1)));
        assert!(positive_time_or_seconds("0").is_err());
        assert!(interval("1ms").is_err_and(|error| error.contains("100ms")));
    }

    #[test]
    fn sizes_tell_binary_from_decimal_units() {
        assert_eq!(size("64KiB"), Ok(ByteSize::b(65_536)));
        assert_eq!(size("64kB"), Ok(ByteSize::b(64_000)));
        assert_eq!(size("0"), Ok(ByteSize::b(0)));
        assert!(size("64 parsecs").is_err_and(|error| error.contains("64KiB")));
        assert!(size("-1").is_err());
    }
}
