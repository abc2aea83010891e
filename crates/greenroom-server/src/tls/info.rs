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
    cipher_suite: CipherSuite,
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
            cipher_suite: suite.map_or(CipherSuite::Unknown(0), |suite| suite.suite()),
            server_name,
            alpn_protocol: connection.alpn_protocol().map(<[u8]>::to_vec),
            client_certificates: certificates.to_vec(),
            is_resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
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

    /// Returns the cipher suite as IANA names it, such as `TLS_AES_128_GCM_SHA256`.
    #[must_use]
    pub fn cipher_suite(&self) -> String {
        let name = format!("{:?}", self.cipher_suite);
        // rustls' names of the suites of TLS 1.3 begin with the version.
        name.replacen("TLS13_", "TLS_", 1)
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

    /// Returns `true` if the connection resumed an earlier one's session.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }
}
