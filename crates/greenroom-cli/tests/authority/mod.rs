//! A CA for tests.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use tempfile::TempDir;

/// A CA, and certificates of it in files.
pub(crate) struct Authority {
    directory: TempDir,
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut params = rcgen::CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name = named("the CA");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let root = params.self_signed(&key).expect("a root");
        fs::write(directory.path().join("root.pem"), root.pem()).expect("it is written");
        Self {
            directory,
            issuer: rcgen::Issuer::new(params, key),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name)
            .to_str()
            .expect("a path in UTF-8")
            .to_owned()
    }

    /// Writes a certificate for `name`, and its key.
    pub(crate) fn issue(&self, file: &str, name: &str) {
        self.issue_until(file, name, None);
    }

    /// Writes one that ends at this time, if one is given.
    pub(crate) fn issue_until(&self, file: &str, name: &str, end: Option<SystemTime>) {
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut params = rcgen::CertificateParams::new(vec![name.to_owned()]).expect("a name");
        params.distinguished_name = named(name);
        if let Some(end) = end {
            params.not_after = end.into();
        }
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let write = |end: &str, text: String| {
            fs::write(self.path(&format!("{file}.{end}")), text).expect("it is written");
        };
        write("pem", certificate.pem());
        write("key", key.serialize_pem());
    }

    /// The flags of a server with the certificate in `file`.
    pub(crate) fn flags(&self, file: &str) -> Vec<String> {
        let (certificate, key) = (
            self.text(&format!("{file}.pem")),
            self.text(&format!("{file}.key")),
        );
        vec!["--cert".into(), certificate, "--key".into(), key]
    }
}

fn named(name: &str) -> rcgen::DistinguishedName {
    let mut named = rcgen::DistinguishedName::new();
    named.push(rcgen::DnType::CommonName, name);
    named
}
