//! Limits on what one client may ask of the server, and on its time.

use std::time::Duration;

use greenroom_settings::settings;

use crate::memory::memory_default;

settings! {
    /// Limits and time-outs of a server, and of what one client may ask of it.
    ///
    /// All but `body_bytes_max` are on by default or generous, and safe on the open internet. How
    /// long a body may be is for the application to say, which knows what it keeps of one: the
    /// server keeps 128 KiB at most.
    ///
    /// No time-out comes early. Those of a connection are kept by a clock of 250 ms, so they come
    /// up to 500 ms late: 1 s is 1 to 1.25 s, and 1.1 s is 1.25 to 1.5 s.
    ///
    /// Each has a name, a unit, a default and a range, which [`HasSettings`](crate::HasSettings)
    /// lists; a server that is given others does not [bind](crate::ServerBuilder::bind).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Limits {
        /// Size of a request's head; 431 beyond.
        head_bytes_max: usize as Size = 65_536, 1..=1 << 24;

        /// Header fields of a request; 431 beyond.
        fields_max: usize as Number = 100, 1..=greenroom_http::FIELDS_CEILING;

        /// Size of a request's target (its path and query); 414 beyond.
        target_bytes_max: usize as Size = 8_192, 1..=1 << 24;

        /// Size of a request's body, whatever the application allows; 413 beyond.
        ///
        /// The application responds: its read of the body fails, in axum and tower with
        /// `http_body_util::LengthLimitError`, as extractors expect it, in an `App` with
        /// `BodyError::TooLarge`.
        body_bytes_max: u64 as Size = u64::MAX, 0..=u64::MAX;

        /// Time in which a request's head must be complete; 408 beyond.
        ///
        /// It begins with the head's first byte, on a new connection with its being accepted.
        head_timeout: Duration as Time = Duration::from_secs(10), TICK..=Duration::MAX;

        /// Time in which a handshake of TLS must be complete; closed beyond.
        ///
        /// It begins with the connection's being accepted, and the time in which the handshake
        /// waits for its turn counts.
        handshake_timeout: Duration as Time = Duration::from_secs(10), TICK..=Duration::MAX;

        /// Time that a handshake of TLS may wait for its first step; reset beyond.
        ///
        /// It is reset as soon as the wait is foreseen.
        handshake_wait_max: Duration as Time = Duration::from_secs(1), TICK..=Duration::MAX;

        /// Handshakes of TLS that wait for their first step, on each loop; reset beyond.
        ///
        /// Addresses take turns: one with many does not keep out another with few. For HTTP/3 it is
        /// the number of all that are not complete, an eighth of them of one address; refused
        /// beyond.
        handshakes_max: usize as Number = 1_024, 1..=1 << 20;

        /// Time that a client may take for a body before its rate counts.
        body_grace: Duration as Time = Duration::from_secs(10), Duration::ZERO..=Duration::MAX;

        /// Size that a body must bring each second after `body_grace`, 0 for any; 408 below.
        ///
        /// Only the time in which the application waits for the client counts, and only until the
        /// response begins; a route can lift the limit (`BodyPace`).
        body_rate_min: u64 as Size = 1_000, 0..=u64::MAX;

        /// Time that a connection may be idle between two requests; closed beyond.
        ///
        /// It must be longer than the time for which a proxy in front keeps idle connections: of
        /// two that close at the same time, the proxy may be sending a request on a connection that
        /// the server is closing, and its client gets a 502. The default outlasts the 60 s of AWS'
        /// load balancers and of nginx' upstream. Behind Google's application load balancers, which
        /// keep theirs for 600 s, set 620 s.
        keep_alive_timeout: Duration as Time = Duration::from_secs(75), TICK..=Duration::MAX;

        /// Time in which a client must take at least one byte of what is sent to it; reset beyond.
        ///
        /// It is also the time by which a client may be behind `response_rate_min`. Over HTTP/2 a
        /// stream whose client does not open its window is reset, and the connection is closed if
        /// nothing of any was taken and no other stream is open, or if it is the connection's
        /// window that is not opened.
        ///
        /// On a stream of the application's own, such as TLS, the server sees that a client has
        /// taken something only when the system tells the runtime of room, which it does once about
        /// half of what it holds was taken: of 128 KiB, 64 KiB in 30 s. A client that reads less
        /// than some 2 kB/s may be reset there.
        write_timeout: Duration as Time = Duration::from_secs(30), TICK..=Duration::MAX;

        /// Size that a client must take each second of what is sent to it, 0 for any; reset below.
        ///
        /// Only the time counts in which there is something to send and the system takes no more of
        /// it, so events and long polls that send little are not concerned. Each byte taken makes
        /// up for some of that time; whoever is behind by `write_timeout` is reset.
        ///
        /// A client that takes 1,200 bytes each 1.5 s, 800 a second, loses 0.2 s a second and is
        /// reset after 150 s; one that takes 1,000 a second may take any time. What it has taken
        /// before is no credit: after a gigabyte, too, it may stop for 30 s.
        ///
        /// Over HTTP/2 it holds for each stream while that waits for its own window; while all wait
        /// for the connection's window or the system, it is the connection that must take as much,
        /// over all its streams. Tunnels have no rate.
        response_rate_min: u64 as Size = 1_000, 0..=u64::MAX;

        /// Connections at once; beyond it new ones wait and the longest idle are closed.
        connections_max: usize as Number
            = connections_default() => "90 % of the limit on open descriptors", 1..=usize::MAX;

        /// Connections that wait to be accepted, at each address; new ones beyond are dropped.
        ///
        /// Clients try again by themselves. The system's own limit, `net.core.somaxconn`, may be
        /// lower. A listener that was bound elsewhere has its own.
        backlog: u16 as Number = 4_096, 1..=32_767;

        /// Streams at once on a connection of HTTP/2 or HTTP/3; refused by the protocol beyond.
        ///
        /// The default is the least that RFC 9113, 6.5.2 and RFC 9114, 6.1 recommend. Over HTTP/3
        /// there are 4,096 at most.
        streams_max: u32 as Number = 100, 1..=u32::MAX;

        /// Size of responses that a connection of HTTP/2 or HTTP/3 holds for a slow client.
        ///
        /// Over all its streams; over HTTP/2 32 KiB a stream, and 1 KiB for each even where others
        /// hold the rest, for which up to half of the size is kept. By default that would do for
        /// 128 streams; each one more may hold 64 bytes beyond it. Over HTTP/3 the size is 16 MiB
        /// at most.
        ///
        /// The application is asked for more when the client has taken some. What it has made by
        /// then counts for no more than what was passed on of it: a body that is one piece is in
        /// memory as a whole.
        output_bytes_max: usize as Size = 262_144, 1..=usize::MAX;

        /// Connections at once of one address (of IPv6: of its /64); 429 beyond.
        ///
        /// There is no limit by default, since behind one address there may be a whole office, or a
        /// proxy. On the open internet, without a proxy in front, 100 is generous. Trusted proxies
        /// have no limit, nor have Unix sockets. Where the PROXY protocol announces a client, it is
        /// the client's address that counts.
        address_connections_max: usize as Number = usize::MAX, 1..=usize::MAX;

        /// Requests a second of one address (of IPv6: of its /64), 0 for any; 429 beyond.
        ///
        /// The response has `Retry-After`, and the connection is kept. Of a request that a trusted
        /// proxy sent, the address is that of the client that it names. 65,536 addresses are
        /// remembered at a time, in 2 MiB. With more at once some are limited less.
        address_requests_rate_max: u32 as Number = 0, 0..=u32::MAX;

        /// Requests at once by which an address may be ahead of `address_requests_rate_max`.
        ///
        /// The default is more than a browser asks for when it opens a page. With 50 a second: 200
        /// at once, then one each 20 ms; 4 s without any, and there are 200 again.
        address_requests_burst: u32 as Number = 200, 1..=u32::MAX;

        /// Memory that all connections may hold for what is under way; 503 for new requests beyond.
        ///
        /// Heads and bodies of requests that are not responded to yet, as far as they are in the
        /// server's hands, input that is no whole request yet, and output that clients do not take.
        /// A request beyond it is declined, with `Retry-After`, before the application sees it, and
        /// its connection is closed (over HTTP/2 it goes on); what is under way goes on.
        ///
        /// One connection of HTTP/1 holds up to some 320 KiB: with 1 GiB, 3,300 of them may do
        /// their worst. One of HTTP/2 holds up to 1 MiB of bodies, `output_bytes_max` of responses,
        /// and a head for each stream. What the application makes of a request, such as a body that
        /// it collects, is its own.
        memory_max: usize as Size
            = memory_default() => "a quarter of the memory of the machine, or of its container",
            1..=usize::MAX;

        /// Time that what is ready may wait for its loop; 503 for new connections beyond.
        ///
        /// Beyond half of it, if that lasts for `loop_lag_standing`, the loop accepts new
        /// connections slowly, and placements refuse what is not important; new connections that
        /// wait for twice as long are refused once they have done so for `loop_lag_standing`.
        loop_lag_max: Duration as Time
            = Duration::from_millis(20), Duration::from_millis(1)..=Duration::MAX;

        /// Time for which it must have waited longer before anything is refused.
        ///
        /// A burst that is over sooner is served whole. Overload that comes back within the same
        /// time after it ended is shed at once. With 0s shedding begins after two probes of the lag
        /// in a row, with no limit never.
        loop_lag_standing: Duration as Time
            = Duration::from_secs(1), Duration::ZERO..=Duration::MAX;

        /// Time that a drain waits for requests under way before it aborts them.
        drain_deadline: Duration as Time = Duration::from_secs(30), Duration::ZERO..=Duration::MAX;

        /// Time for which a drain keeps idle connections, for requests that are on their way.
        ///
        /// Such a request is served, and its connection ends with the response. The default is more
        /// than a request takes around the world; 0s closes at once what has sent nothing yet. For
        /// as long, new connections are kept for their header of the PROXY protocol, and for the
        /// first message of their handshake of TLS, whose rest has its `handshake_timeout`.
        drain_grace: Duration as Time = Duration::from_millis(500), Duration::ZERO..=Duration::MAX;

        /// Time in which the next version must be ready at an upgrade; it is ended beyond.
        ///
        /// Then this one goes on serving. Who waits for the outcome must wait for longer: the
        /// `--timeout` of `greenroom upgrade` is 90 s, and so may be systemd's.
        upgrade_timeout: Duration as Time = Duration::from_mins(1), TICK..=Duration::MAX;
    }
}

/// A time-out of no time would end each connection at once.
const TICK: Duration = Duration::from_millis(1);

impl Limits {
    pub(crate) fn http(&self) -> greenroom_http::Limits {
        greenroom_http::Limits {
            head_bytes_max: self.head_bytes_max,
            fields_max: self.fields_max,
            target_bytes_max: self.target_bytes_max,
            ..greenroom_http::Limits::default()
        }
    }

    /// Returns the time for which the system keeps trying to send to a client that takes nothing.
    pub(crate) fn untaken_max(&self) -> Duration {
        self.write_timeout.saturating_mul(2).max(UNTAKEN_MIN)
    }
}

/// The system gives up a client that takes nothing no sooner than this, and no sooner than after
/// twice `write_timeout`: the server, which tells the client by a reset, comes first.
const UNTAKEN_MIN: Duration = Duration::from_mins(1);

/// The rest of the descriptors is for listeners, logs, files and upstream connections.
// The hard limit counts: a server raises the other to it.
fn connections_default() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    let descriptors = limit.and_then(|number| usize::try_from(number).ok());
    descriptors.map_or(usize::MAX, |number| (number / 10 * 9).max(1))
}

#[cfg(test)]
mod tests {
    use greenroom_settings::HasSettings;

    use super::*;

    #[test]
    fn defaults_are_allowed_and_texts_can_be_read_again() {
        let defaults = Limits::default();
        defaults.check().expect("the defaults are allowed");
        for setting in Limits::settings() {
            let mut limits = defaults.clone();
            let text = setting.text_of(&defaults);
            setting.set(&mut limits, &text).expect("its own text");
            assert_eq!(limits, defaults, "{}", setting.name());
        }
    }

    #[test]
    fn a_text_that_is_no_value_is_told_with_what_is_allowed() {
        let mut limits = Limits::default();
        for (name, text, told) in [
            ("head_bytes_max", "64 parsecs", "64KiB (of 1,024)"),
            ("head_bytes_max", "1GiB", "1B to 16MiB"),
            ("fields_max", "257", "257 is not allowed; allowed: 1 to 256"),
            ("head_timeout", "10", "10s or 1m 30s"),
            ("head_timeout", "0s", "0s is not allowed"),
            ("streams_max", "-1", "1 or more, unlimited"),
        ] {
            let setting = Limits::setting(name).expect("it is a limit");
            let error = setting.set(&mut limits, text).expect_err(text).to_string();
            assert!(error.starts_with(name) && error.contains(told), "{error}");
        }
        assert_eq!(limits, Limits::default());
    }
}
