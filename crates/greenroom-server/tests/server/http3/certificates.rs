use std::fs;

use greenroom_server::{ClientCertificates, Tls};
use quinn::TransportConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::handler;
use super::rig::{Client, Rig, client, client_with};
use crate::over::{CERTIFICATES, NAME, client_config, tls};
use crate::rig::{app, within};

/// Issues a certificate for `name`.
fn issue(name: &str) -> (rcgen::Certificate, rcgen::KeyPair) {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &CERTIFICATES.issuer).unwrap();
    (certificate, key)
}

fn shown(client: &Client) -> Vec<CertificateDer<'static>> {
    let shown = client.connection.peer_identity().unwrap();
    *shown.downcast::<Vec<CertificateDer<'static>>>().unwrap()
}

#[tokio::test]
async fn a_reload_changes_the_certificate_of_new_connections() {
    within(async {
        let directory = tempfile::tempdir().unwrap();
        let [chain, key] = ["chain.pem", "key.pem"].map(|name| directory.path().join(name));
        let write = || {
            let (certificate, private) = issue(NAME);
            fs::write(&chain, certificate.pem()).unwrap();
            fs::write(&key, private.serialize_pem()).unwrap();
            vec![certificate.der().clone()]
        };
        let first = write();
        let tls = Tls::builder().certificate(&chain, &key).build().unwrap();
        let server = Rig::with(app(handler), |builder| builder.tls(tls.clone()));
        let before = server.connect().await;
        assert_eq!(shown(&before), first);
        let second = write();
        tls.reload().unwrap();
        let after = server.connect().await;
        assert_eq!(shown(&after), second);
        assert_eq!(before.get("/before").await.1, "/before");
        assert_eq!(after.get("/after").await.1, "/after");
    })
    .await;
}

#[tokio::test]
async fn who_has_no_certificate_where_one_is_required_is_not_served() {
    within(async {
        let directory = tempfile::tempdir().unwrap();
        let roots = directory.path().join("roots.pem");
        fs::write(&roots, &CERTIFICATES.root_pem).unwrap();
        let tls = tls().client_certificates(&roots, ClientCertificates::Required);
        let tls = tls.build().unwrap();
        let server = Rig::with(super::connections::Telling, |builder| builder.tls(tls));
        let (certificate, key) = issue("client.test");
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let mut config = client_config();
        let chain = vec![certificate.der().clone()];
        config.client_auth_cert_resolver = known(chain, &key);
        let known = Client::connect(
            server.address,
            client_with(config, TransportConfig::default()),
        );
        let told = known.await.unwrap().get("/").await.1;
        assert!(told.ends_with("certificates:1"), "{told}");
        let endpoint = super::rig::endpoint();
        let connecting = endpoint.connect_with(client(), server.address, NAME);
        // A client of TLS 1.3 believes that it is connected until the server has seen that it has
        // none.
        if let Ok(connection) = connecting.unwrap().await {
            let closed = connection.closed().await.to_string();
            assert!(closed.contains("certificate"), "{closed}");
        }
    })
    .await;
}

fn known(
    chain: Vec<CertificateDer<'static>>,
    key: &PrivateKeyDer<'static>,
) -> std::sync::Arc<dyn rustls::client::ResolvesClientCert> {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let certified = rustls::sign::CertifiedKey::from_der(chain, key.clone_key(), &provider);
    std::sync::Arc::new(rustls::sign::SingleCertAndKey::from(certified.unwrap()))
}
