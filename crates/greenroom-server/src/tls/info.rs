use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::server::UnbufferedServerConnection;
use rustls::{CipherSuite, HandshakeKind, ProtocolVersion};

/// Letters of a line (RFC 7468, 2).
const PEM_LINE_LETTERS: usize = 64;

/// The values that a client and the server have agreed upon for a TLS connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsInfo {
    version: ProtocolVersion,
    cipher_suite: Option<CipherSuite>,
    server_name: Option<String>,
    alpn_protocol: Option<Vec<u8>>,
    client_certificates: Vec<CertificateDer<'static>>,
    is_resumed: bool,
}

impl TlsInfo {
    pub(super) fn of(connection: &UnbufferedServerConnection, server_name: Option<String>) -> Self {
        let suite = connection.negotiated_cipher_suite();
        let certificates = connection.peer_certificates().unwrap_or_default();
        Self {
            version: connection
                .protocol_version()
                .unwrap_or(ProtocolVersion::TLSv1_2),
            cipher_suite: suite.map(|suite| suite.suite()),
            server_name,
            alpn_protocol: connection.alpn_protocol().map(<[u8]>::to_vec),
            client_certificates: certificates.to_vec(),
            is_resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }

    /// Of a connection of QUIC, which has TLS 1.3 always.
    #[cfg(feature = "http3")]
    pub(crate) fn of_quic(
        server_name: Option<String>,
        client_certificates: Vec<CertificateDer<'static>>,
    ) -> Self {
        Self {
            version: ProtocolVersion::TLSv1_3,
            cipher_suite: None,
            server_name,
            alpn_protocol: Some(crate::quic::PROTOCOL.to_vec()),
            client_certificates,
            is_resumed: false,
        }
    }

    /// Returns the version of the protocol as OpenSSL names it: `TLSv1.3` or `TLSv1.2`.
    #[must_use]
    pub fn version(&self) -> &'static str {
        match self.version {
            ProtocolVersion::TLSv1_3 => "TLSv1.3",
            _ => "TLSv1.2",
        }
    }

    /// Returns the cipher suite as IANA names it, such as `TLS_AES_128_GCM_SHA256`; nothing over
    /// HTTP/3, where it is not known.
    #[must_use]
    pub fn cipher_suite(&self) -> String {
        let name = self.cipher_suite.map(|suite| format!("{suite:?}"));
        // rustls' names of the suites of TLS 1.3 begin with the version.
        name.unwrap_or_default().replacen("TLS13_", "TLS_", 1)
    }

    /// Returns the name of the host that the client asked for (RFC 6066, 3), if it named one.
    #[must_use]
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// Returns the protocol that was agreed upon (RFC 7301), such as `h2`; `None` if the client
    /// named none.
    #[must_use]
    pub fn alpn_protocol(&self) -> Option<&[u8]> {
        self.alpn_protocol.as_deref()
    }

    /// Returns the client's certificates in DER, its own first, if it was asked for and has sent
    /// any: they are verified.
    #[must_use]
    pub fn client_certificates(&self) -> &[CertificateDer<'static>] {
        &self.client_certificates
    }

    /// Returns the client's own certificate in PEM (RFC 7468), if it has shown one.
    #[must_use]
    pub fn client_certificate_pem(&self) -> Option<String> {
        let base64 = BASE64_STANDARD.encode(self.client_certificates.first()?);
        let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
        for (index, letter) in base64.chars().enumerate() {
            if index > 0 && index.is_multiple_of(PEM_LINE_LETTERS) {
                pem.push('\n');
            }
            pem.push(letter);
        }
        pem.push_str("\n-----END CERTIFICATE-----\n");
        Some(pem)
    }

    /// Returns `true` if the connection resumed an earlier one's session; over HTTP/3 it is not
    /// known, and this is `false`.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }
}
