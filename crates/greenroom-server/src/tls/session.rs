//! The calls of rustls' unbuffered connections. They are all here: their successor, which takes its
//! callers' buffers, will have another shape.

use std::sync::Arc;

use rustls::server::{ServerConfig, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};

use super::error::Broken;
use super::{TlsInfo, server_name};

/// The most that is encrypted in one go: four records.
pub(super) const PLAIN_BYTES_MAX: usize = 4 * RECORD_PLAIN_BYTES_MAX;
/// Most bytes of a record's content (RFC 8446, 5.1).
pub(super) const RECORD_PLAIN_BYTES_MAX: usize = 16 * 1_024;
/// The longest that the content of a record may be when it is encrypted (RFC 5246, 6.2.3).
pub(super) const RECORD_BYTES_MAX: usize = RECORD_PLAIN_BYTES_MAX + 2_048;
/// The most that a record adds to its content: its header, and what TLS 1.2 allows a cipher (RFC
/// 5246, 6.2.3).
pub(super) const RECORD_OVERHEAD_BYTES_MAX: usize = 5 + 2_048;

/// One end of a TLS connection, without any bytes of its own.
pub(super) struct Session {
    connection: Box<UnbufferedServerConnection>,
    /// The name that the client asked for.
    server_name: Option<String>,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// There may be more to make of the same input.
    Again,
    /// The handshake goes on with more input.
    Handshaking,
    /// The input is used up, and there may be output.
    Open,
    /// The client has ended its side.
    Ended,
}

impl Session {
    pub(super) fn new(config: Arc<ServerConfig>) -> Result<Self, Broken> {
        let connection = UnbufferedServerConnection::new(config)?;
        Ok(Self {
            connection: Box::new(connection),
            server_name: None,
        })
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Takes one step with what there is of input. Content goes to `received`; what is to be sent
    /// before any other output is appended to `control`. Returns how many bytes of the input are
    /// used up; the rest must be given again, from its beginning.
    pub(super) fn step(
        &mut self,
        input: &mut [u8],
        received: &mut impl FnMut(&[u8]),
        control: &mut Vec<u8>,
    ) -> (usize, Result<Step, Broken>) {
        let was_handshaking = self.is_handshaking();
        let UnbufferedStatus { mut discard, state } = self.connection.process_tls_records(input);
        if was_handshaking && let Some(name) = server_name::take() {
            self.server_name = Some(name);
        }
        let step = match state {
            Ok(ConnectionState::ReadTraffic(mut traffic)) => loop {
                match traffic.next_record() {
                    Some(Ok(record)) => {
                        discard += record.discard;
                        received(record.payload);
                    }
                    Some(Err(error)) => break Err(error.into()),
                    None => break Ok(Step::Again),
                }
            },
            Ok(ConnectionState::EncodeTlsData(mut data)) => {
                append(control, |room| data.encode(room)).map(|()| Step::Again)
            }
            Ok(ConnectionState::TransmitTlsData(data)) => {
                // It goes out with what follows, or when the session waits for more input.
                data.done();
                Ok(Step::Again)
            }
            Ok(ConnectionState::BlockedHandshake) => Ok(Step::Handshaking),
            Ok(ConnectionState::WriteTraffic(_)) => Ok(Step::Open),
            Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => Ok(Step::Ended),
            // Early data are never accepted.
            Ok(_) => Err(Broken::Unexpected),
            Err(error) => Err(error.into()),
        };
        (discard, step)
    }

    /// Appends what is to be sent of a session that broke: the alert that tells the client why (RFC
    /// 8446, 6.2), behind the messages of the same step.
    pub(super) fn alert(&mut self, input: &mut [u8], control: &mut Vec<u8>) {
        while self.connection.wants_write() {
            let state = self.connection.process_tls_records(input).state;
            let Ok(ConnectionState::EncodeTlsData(mut data)) = state else {
                return;
            };
            // Without it the client learns by the end of the connection.
            let _appended = append(control, |room| data.encode(room));
        }
    }

    /// Encrypts content of at most [`PLAIN_BYTES_MAX`] into `room`: how many bytes that makes. The
    /// session must be [open](Step::Open) with this input.
    pub(super) fn encrypt(
        &mut self,
        input: &mut [u8],
        plain: &[u8],
        room: &mut [u8],
    ) -> Result<usize, Broken> {
        match self.connection.process_tls_records(input).state? {
            ConnectionState::WriteTraffic(mut traffic) => Ok(traffic.encrypt(plain, room)?),
            _ => Err(Broken::Unexpected),
        }
    }

    /// Appends the notice that nothing more is sent (RFC 8446, 6.1). Nothing if the handshake is
    /// not over.
    pub(super) fn end(&mut self, input: &mut [u8], control: &mut Vec<u8>) {
        let status = self.connection.process_tls_records(input);
        if let Ok(ConnectionState::WriteTraffic(mut traffic)) = status.state {
            let _appended = append(control, |room| traffic.queue_close_notify(room));
        }
    }

    /// Returns what was agreed upon; the handshake must be over.
    pub(super) fn info(&mut self) -> TlsInfo {
        TlsInfo::of(&self.connection, self.server_name.take())
    }
}

/// Appends what `write` writes, which says how much room it needs if there is too little.
fn append<E: Into<Broken>>(
    out: &mut Vec<u8>,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, E>,
) -> Result<(), Broken> {
    let length = out.len();
    let needed = match write(&mut []).map_err(Into::into) {
        Err(Broken::TooLittleRoom(needed)) => needed,
        other => return other.map(|_nothing| ()),
    };
    out.resize(length + needed, 0);
    let written = write(&mut out[length..]).map_err(Into::into)?;
    out.truncate(length + written);
    Ok(())
}

impl From<EncodeError> for Broken {
    fn from(error: EncodeError) -> Self {
        match error {
            EncodeError::InsufficientSize(needed) => Self::TooLittleRoom(needed.required_size),
            EncodeError::AlreadyEncoded => Self::Unexpected,
        }
    }
}

impl From<EncryptError> for Broken {
    fn from(error: EncryptError) -> Self {
        match error {
            EncryptError::InsufficientSize(needed) => Self::TooLittleRoom(needed.required_size),
            EncryptError::EncryptExhausted => Self::Exhausted,
        }
    }
}
