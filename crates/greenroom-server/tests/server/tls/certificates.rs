use std::path::{Path, PathBuf};
use std::sync::Arc;

use greenroom_server::{ClientCertificates, Tls};
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::handshakes::{ask, connect, start};
use crate::over::{CERTIFICATES, NAME, client_config, tls};
use crate::rig::{Rig, within};

/// A directory of files in PEM.
pub(super) struct Files(TempDir);

impl Files {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// Writes a certificate for these names, and its key.
    fn issue(&self, file: &str, names: &[&str]) -> (PathBuf, PathBuf) {
        let (certificate, key) = issue(names);
        let chain = self.write(&format!("{file}.pem"), &certificate);
        (chain, self.write(&format!("{file}.key"), &key))
    }
}

fn issue(names: &[&str]) -> (String, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let params = rcgen::CertificateParams::new(names).unwrap();
    let certificate = params.signed_by(&key, &CERTIFICATES.issuer).unwrap();
    (certificate.pem(), key.serialize_pem())
}

async fn connect_to(server: &Rig, name: &str) -> TlsStream<UnixStream> {
    let mut config = client_config();
    // All are of the CA that the client trusts, but not for each name.
    config.enable_sni = name != "-";
    config
        .dangerous()
        .set_certificate_verifier(Arc::new(AnyName));
    let stream = UnixStream::connect(&server.path).await.unwrap();
    let name = if name == "-" { NAME } else { name };
    let name = ServerName::try_from(name.to_owned()).unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .unwrap()
}

/// The certificate that the server shows to a client that asks for `name`.
async fn shown(server: &Rig, name: &str) -> CertificateDer<'static> {
    shown_by(&connect_to(server, name).await)
}

fn shown_by(stream: &TlsStream<UnixStream>) -> CertificateDer<'static> {
    stream.get_ref().1.peer_certificates().unwrap()[0].clone()
}

fn first_of(file: &Path) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(file).unwrap()
}

#[tokio::test]
async fn clients_get_the_certificate_for_the_name_that_they_ask_for() {
    within(async {
        let files = Files::new();
        let (one, one_key) = files.issue("one", &["one.test", "www.one.test"]);
        let (wild, wild_key) = files.issue("wild", &["*.wild.test"]);
        let builder = Tls::builder()
            .certificate(&one, one_key)
            .certificate(&wild, wild_key);
        let tls = builder.build().unwrap();
        for (name, expected) in [
            ("WWW.one.test", true),
            ("a.wild.test", true),
            ("*.wild.test", true),
            ("wild.test", false),
            ("other.test", false),
        ] {
            assert_eq!(tls.has_certificate_for(name), expected, "{name}");
        }
        let server = start(tls);
        for (name, expected) in [
            ("one.test", &one),
            ("WWW.one.test", &one),
            ("a.wild.test", &wild),
            ("wild.test", &one),
            ("a.b.wild.test", &one),
            ("other.test", &one),
            ("-", &one),
        ] {
            assert_eq!(shown(&server, name).await, first_of(expected), "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_reload_is_for_new_connections_and_a_broken_one_for_nobody() {
    within(async {
        let files = Files::new();
        let (chain, key) = files.issue("server", &[NAME]);
        let before = first_of(&chain);
        let tls = Tls::builder().certificate(&chain, &key).build().unwrap();
        let server = start(tls.clone());
        let old = connect_to(&server, NAME).await;
        files.issue("server", &[NAME]);
        let after = first_of(&chain);
        assert_eq!(shown(&server, NAME).await, before);
        tls.reload().unwrap();
        assert_eq!(shown(&server, NAME).await, after);
        std::fs::write(&chain, "-----BEGIN CERTIFICATE-----\nAAAA\n").unwrap();
        let error = tls.reload().unwrap_err().to_string();
        assert!(
            error.contains("server.pem:1: what begins here has no"),
            "{error}"
        );
        assert_eq!(shown(&server, NAME).await, after);
        assert_eq!(shown_by(&old), before);
        assert!(ask(old).await.starts_with("TLSv1.3"));
    })
    .await;
}

#[test]
fn a_broken_file_is_told_with_its_line() {
    let files = Files::new();
    let (chain, key) = issue(&[NAME]);
    let (_, other_key) = issue(&[NAME]);
    let good_chain = files.write("good.pem", &chain);
    let good_key = files.write("good.key", &key);
    let spoilt = chain.replacen("MII", "M!I", 1);
    let no_der = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let old_encrypted = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n";
    for (is_key, text, told) in [
        (
            false,
            String::new(),
            ":1: there is no certificate; expected: `-----BEGIN CERTIFICATE-----`",
        ),
        (false, key.clone(), ":1: there is no certificate"),
        (
            false,
            format!("{chain}\n# the CA's\n{no_der}"),
            ": this is no certificate that can be used",
        ),
        (false, spoilt, ":1: base64 decode error"),
        (
            false,
            format!("text\n{}", &chain[..200]),
            ":2: what begins here has no `-----END CERTIFICATE-----`",
        ),
        (
            true,
            chain.clone(),
            ":1: there is no private key; expected: `-----BEGIN PRIVATE KEY-----`",
        ),
        (
            true,
            format!("\n\n{other_key}"),
            ":3: the key is not that of the certificate in ",
        ),
        (
            true,
            encrypted.to_owned(),
            ":1: the private key is encrypted; `openssl pkey",
        ),
        (
            true,
            old_encrypted.to_owned(),
            ":1: the private key is encrypted; `openssl pkey",
        ),
    ] {
        let file = files.write("file", &text);
        let builder = if is_key {
            Tls::builder().certificate(&good_chain, &file)
        } else {
            Tls::builder().certificate(&file, &good_key)
        };
        let error = builder.build().expect_err(told).to_string();
        let line = if told.starts_with(": ") { "" } else { "file" };
        assert!(
            error.contains(&format!("{line}{told}")),
            "{error}\n instead of {told}"
        );
    }
}

#[test]
fn a_file_that_cannot_be_read_is_told() {
    let files = Files::new();
    let (_, good_key) = files.issue("good", &[NAME]);
    let missing = Tls::builder().certificate(files.path("missing"), &good_key);
    let error = missing.build().unwrap_err().to_string();
    assert!(
        error.starts_with("cannot read ") && error.contains("missing: No such file"),
        "{error}"
    );
    std::fs::write(files.path("der"), [0x30, 0x82, 0xff]).unwrap();
    let error = Tls::builder()
        .certificate(files.path("der"), &good_key)
        .build();
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("der:1: this is no text")
    );
}

/// A client's settings with a certificate of the CA.
pub(super) fn with_certificate() -> Arc<ClientConfig> {
    let (chain, key) = issue(&["client.test"]);
    let chain = vec![CertificateDer::from_pem_slice(chain.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CERTIFICATES.root.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .unwrap();
    Arc::new(config)
}

#[tokio::test]
async fn clients_show_who_they_are() {
    within(async {
        let files = Files::new();
        let roots = files.write("roots.pem", &CERTIFICATES.root_pem);
        let required = |required| {
            let tls = tls().client_certificates(&roots, required).build().unwrap();
            start(tls)
        };
        let (known, unknown) = (with_certificate(), Arc::new(client_config()));
        let server = required(ClientCertificates::Optional);
        let told = ask(connect(&server, &known).await.unwrap()).await;
        assert!(told.ends_with("certificates:1"), "{told}");
        let told = ask(connect(&server, &unknown).await.unwrap()).await;
        assert!(told.ends_with("certificates:0"), "{told}");
        let server = required(ClientCertificates::Required);
        let told = ask(connect(&server, &known).await.unwrap()).await;
        assert!(told.ends_with("certificates:1"), "{told}");
        // A client of TLS 1.3 learns of it when it reads.
        let mut stream = connect(&server, &unknown).await.unwrap();
        let _sent = stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let error = stream.read(&mut [0; 64]).await.unwrap_err().to_string();
        assert!(error.contains("CertificateRequired"), "{error}");
    })
    .await;
}

/// Takes any certificate, so that a test sees which one is shown.
#[derive(Debug)]
struct AnyName;

impl rustls::client::danger::ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        vec![rustls::SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}
