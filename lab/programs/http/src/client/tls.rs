//! TLS 1.3 as a client speaks it that costs its core less than its server's.

use std::net::SocketAddrV4;
use std::sync::Arc;

use clap::ValueEnum;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider, kx_group};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, IpAddr, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

/// A first message's offer of cipher suites and key exchanges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Offer {
    /// AES-128 alone, and X25519
    Aes128,
    /// AES-128 before `ChaCha20` and AES-256, and X25519MLKEM768 before X25519, as browsers
    Browser,
    /// AES-256 before `ChaCha20` and AES-128, and X25519, as OpenSSL 3.0
    Openssl,
}

impl Offer {
    /// Returns the settings of a client that takes any certificate and signature. It resumes
    /// sessions, and shares them with no other client.
    pub(crate) fn config(self) -> Result<ClientConfig, Error> {
        let (aes_128, aes_256, chacha) = (
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            cipher_suite::TLS13_AES_256_GCM_SHA384,
            cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        );
        let provider = CryptoProvider {
            cipher_suites: match self {
                Self::Aes128 => vec![aes_128],
                Self::Browser => vec![aes_128, chacha, aes_256],
                Self::Openssl => vec![aes_256, chacha, aes_128],
            },
            kx_groups: match self {
                Self::Aes128 | Self::Openssl => vec![kx_group::X25519],
                Self::Browser => vec![kx_group::X25519MLKEM768, kx_group::X25519],
            },
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
pub(crate) fn server_name(address: SocketAddrV4) -> ServerName<'static> {
    ServerName::IpAddress(IpAddr::V4((*address.ip()).into()))
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
