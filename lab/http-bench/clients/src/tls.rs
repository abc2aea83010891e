//! TLS 1.3 as a client of a benchmark speaks it.

use std::net::IpAddr;
use std::sync::Arc;

use anyhow::ensure;
use clap::ValueEnum;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme,
    SupportedCipherSuite,
};

use crate::Target;

/// A first message's offer of cipher suites and key exchanges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Offer {
    /// AES-128 alone, and X25519
    Aes128,
    /// AES-128 before `ChaCha20` and AES-256, and X25519MLKEM768 before X25519, as browsers
    Browser,
    /// AES-256 before `ChaCha20` and AES-128, and X25519, as OpenSSL 3.0
    Openssl,
}

impl Offer {
    fn cipher_suites(self) -> Vec<SupportedCipherSuite> {
        let (aes_128, aes_256, chacha) = (
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            cipher_suite::TLS13_AES_256_GCM_SHA384,
            cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        );
        match self {
            Self::Aes128 => vec![aes_128],
            Self::Browser => vec![aes_128, chacha, aes_256],
            Self::Openssl => vec![aes_256, chacha, aes_128],
        }
    }

    fn key_exchanges(self) -> Vec<&'static dyn SupportedKxGroup> {
        match self {
            Self::Aes128 | Self::Openssl => vec![kx_group::X25519],
            Self::Browser => vec![kx_group::X25519MLKEM768, kx_group::X25519],
        }
    }

    /// Returns the settings of a client that takes any certificate and signature, and so costs its
    /// core less than its server's. It resumes sessions, and shares them with no other client.
    ///
    /// # Errors
    /// If the cryptography has none of what is offered.
    pub fn config(self) -> anyhow::Result<ClientConfig> {
        let provider = CryptoProvider {
            cipher_suites: self.cipher_suites(),
            kx_groups: self.key_exchanges(),
            ..default_provider()
        };
        let verifier = AnyCertificate(provider.signature_verification_algorithms);
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// Returns the name of a server that has none but its address: no name is sent.
#[must_use]
pub fn server_name(target: &Target) -> ServerName<'static> {
    ServerName::IpAddress(IpAddr::V4(*target.address.ip()).into())
}

/// Returns a client's first message.
///
/// # Errors
/// If the cryptography fails.
pub fn client_hello(config: ClientConfig, target: &Target) -> anyhow::Result<Vec<u8>> {
    let mut hello = Vec::new();
    let mut connection = ClientConnection::new(Arc::new(config), server_name(target))?;
    while connection.wants_write() {
        connection.write_tls(&mut hello)?;
    }
    ensure!(!hello.is_empty(), "no first message");
    Ok(hello)
}

/// Accepts all that a server shows.
#[derive(Debug)]
struct AnyCertificate(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The content type and the type of a first message (RFC 8446, 4 and 5.1).
    const HANDSHAKE: u8 = 22;
    const CLIENT_HELLO: u8 = 1;

    #[test]
    fn a_first_message_is_one_record() {
        let target = "https://127.0.0.1:443/".parse().expect("a valid URL");
        for offer in Offer::value_variants() {
            let config = offer.config().expect("it is supported");
            let hello = client_hello(config, &target).expect("a first message");
            assert_eq!((hello[0], hello[5]), (HANDSHAKE, CLIENT_HELLO), "{offer:?}");
            let length = usize::from(u16::from_be_bytes([hello[3], hello[4]]));
            assert_eq!(hello.len(), 5 + length, "{offer:?}");
        }
    }
}
