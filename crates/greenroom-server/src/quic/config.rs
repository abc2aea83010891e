use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::QuicServerConfig;
use quinn::{IdleTimeout, ServerConfig, TransportConfig, VarInt};

use crate::{Limits, Tls, TlsError};

/// Bytes of requests' bodies that a client may send before the application takes them: of all the
/// streams of a connection.
///
/// QUIC's window of a connection is for heads, too: what no handler reads of bodies holds up every
/// new request once it fills the window. This is the window of sixteen such streams, and not of all
/// that there may be: an open body counts against `memory_max` by its window, and one connection is
/// not to take it all. Nor is it opened with each body and closed behind it, since QUIC takes no
/// window back. What is no body yet, as the bytes behind the missing first one of a head, counts
/// nowhere, but is held for `head_timeout` at most, whatever the window.
pub(crate) const INPUT_BYTES_MAX: u32 = 16 * STREAM_BYTES_MAX;
/// The same of one stream: an upload sends as much in each round trip, so with 50 ms 5 MB a second.
pub(crate) const STREAM_BYTES_MAX: u32 = 256 * 1_024;
/// Bytes of responses that a connection holds at most, whatever `output_bytes_max` says: what 1
/// Gbit/s brings in 130 ms. QUIC takes all that the window has room for, so one without a bound
/// would hold a body without end as far as it is made.
pub(crate) const OUTPUT_BYTES_CEILING: usize = 16 * 1_024 * 1_024;
/// Bytes of clients whose handshakes have not begun.
const INCOMING_BYTES_MAX: u64 = 16 * 1_024 * 1_024;
/// Streams of one direction that a client may have open: the three that HTTP/3 has, and some of
/// kinds that are not known.
const UNIDIRECTIONAL_MAX: u32 = 8;
/// Most streams at once, whatever `streams_max` says: each costs something before it is there.
const STREAMS_CEILING: u32 = 4_096;
/// Time after which a client is gone that says nothing, not even that it is there.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// Time after which a client is asked whether it is there.
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// The protocol by ALPN (RFC 9114, 3.1).
pub(crate) const PROTOCOL: &[u8] = b"h3";

/// The limits of clients of QUIC, and the certificates that they get.
#[derive(Debug)]
pub(crate) struct Config {
    tls: Tls,
    /// The settings of TLS that `current` was made of.
    made_of: Arc<rustls::ServerConfig>,
    current: Arc<ServerConfig>,
}

impl Config {
    /// # Errors
    ///
    /// If the provider has nothing for QUIC, which needs AES-128 (RFC 9001, 5.2).
    pub(crate) fn new(tls: &Tls, limits: &Limits) -> Result<Self, TlsError> {
        let made_of = tls.config();
        let mut config = ServerConfig::with_crypto(crypto(&made_of)?);
        config.transport = Arc::new(transport(limits));
        config
            .max_incoming(limits.handshakes_max)
            .incoming_buffer_size(u64::from(STREAM_BYTES_MAX))
            .incoming_buffer_size_total(INCOMING_BYTES_MAX);
        Ok(Self {
            tls: tls.clone(),
            made_of,
            current: Arc::new(config),
        })
    }

    /// Returns what holds for a new connection: certificates may have been read again.
    pub(super) fn current(&mut self) -> Arc<ServerConfig> {
        let now = self.tls.config();
        if !Arc::ptr_eq(&now, &self.made_of) {
            match crypto(&now) {
                Ok(crypto) => Arc::make_mut(&mut self.current).crypto = crypto,
                Err(error) => tracing::error!(%error, "HTTP/3 keeps its certificates"),
            }
            self.made_of = now;
        }
        Arc::clone(&self.current)
    }
}

fn crypto(tls: &rustls::ServerConfig) -> Result<Arc<QuicServerConfig>, TlsError> {
    let mut tls = tls.clone();
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    let crypto = QuicServerConfig::try_from(tls);
    let crypto = crypto.map_err(|error| rustls::Error::General(error.to_string()))?;
    Ok(Arc::new(crypto))
}

/// Returns how many streams a client may have open.
pub(crate) fn streams_max(limits: &Limits) -> u32 {
    limits.streams_max.min(STREAMS_CEILING)
}

fn transport(limits: &Limits) -> TransportConfig {
    let output_bytes_max = limits.output_bytes_max.min(OUTPUT_BYTES_CEILING);
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(streams_max(limits).into())
        .max_concurrent_uni_streams(UNIDIRECTIONAL_MAX.into())
        .stream_receive_window(STREAM_BYTES_MAX.into())
        .receive_window(INPUT_BYTES_MAX.into())
        .send_window(output_bytes_max as u64)
        .max_idle_timeout(Some(idle_timeout()))
        .keep_alive_interval(Some(PING_INTERVAL))
        .datagram_receive_buffer_size(None);
    transport
}

fn idle_timeout() -> IdleTimeout {
    let milliseconds = u32::try_from(SILENCE_MAX.as_millis()).unwrap_or(u32::MAX);
    VarInt::from_u32(milliseconds).into()
}
