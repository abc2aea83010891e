use std::io::Write as _;

use tempfile::NamedTempFile;

use super::*;

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_bytes()).expect("it is writable");
    file
}

fn self_signed() -> (String, String) {
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    (pair.cert.pem(), pair.signing_key.serialize_pem())
}

fn with_authorities(path: &Path) -> TlsOptions {
    TlsOptions {
        authorities: Some(path.to_owned()),
        ..TlsOptions::default()
    }
}

#[test]
fn certificate_and_key_are_read_from_one_file() {
    let (certificate, key) = self_signed();
    let identity = file(&format!("{key}{certificate}"));
    let options = TlsOptions {
        identity: Some(identity.path().to_owned()),
        without_sni: true,
        insecure: true,
        ..TlsOptions::default()
    };
    let config = client_config(&options, &[b"h2", b"http/1.1"]).expect("a usable file");
    assert!(config.client_auth_cert_resolver.has_certs());
    assert!(!config.enable_sni);
    assert_eq!(
        config.alpn_protocols,
        [b"h2".to_vec(), b"http/1.1".to_vec()]
    );
}

#[test]
fn an_authority_is_trusted() {
    let (certificate, _) = self_signed();
    let authorities = file(&certificate);
    assert!(client_config(&with_authorities(authorities.path()), &[]).is_ok());
}

#[test]
fn a_file_that_cannot_be_used_is_named() {
    let empty = file("nothing of this is PEM");
    let missing = empty.path().with_extension("missing");
    for path in [empty.path(), &missing] {
        let error = client_config(&with_authorities(path), &[]).expect_err("not usable");
        let name = path.display().to_string();
        assert!(error.to_string().contains(&name), "{error}");
    }
    let (certificate, _) = self_signed();
    let keyless = file(&certificate);
    let options = TlsOptions {
        identity: Some(keyless.path().to_owned()),
        insecure: true,
        ..TlsOptions::default()
    };
    assert!(client_config(&options, &[]).is_err());
}

#[test]
fn names_and_addresses_may_stand_in_a_certificate() {
    let name = |url: &str| server_name(&url.parse().expect("a URL"));
    assert!(matches!(name("https://host/"), Ok(ServerName::DnsName(_))));
    assert!(matches!(
        name("https://[::1]/"),
        Ok(ServerName::IpAddress(_))
    ));
    assert!(name("https://a..b/").is_err());
}
