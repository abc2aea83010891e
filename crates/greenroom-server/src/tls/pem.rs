//! Files in PEM (RFC 7468). What is wrong with one is told with its line.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::{PemObject, SectionKind};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::TlsError;

/// Most bytes of a file: a hundred times those of a chain and its key.
const FILE_BYTES_MAX: u64 = 1_024 * 1_024;
const BEGIN: &str = "-----BEGIN ";

/// A part of a file, and the line at which it begins.
pub(super) struct Part {
    pub(super) line: usize,
    kind: SectionKind,
    der: Vec<u8>,
}

impl Part {
    pub(super) fn der(&self) -> &[u8] {
        &self.der
    }

    pub(super) fn certificate(self) -> CertificateDer<'static> {
        self.der.into()
    }
}

/// Reads the certificates of a file; at least one.
pub(super) fn certificates(file: &Path) -> Result<Vec<Part>, TlsError> {
    let parts = parts(file)?;
    let certificates: Vec<_> = parts
        .into_iter()
        .filter(|part| part.kind == SectionKind::Certificate)
        .collect();
    if certificates.is_empty() {
        let fault = "there is no certificate; expected: `-----BEGIN CERTIFICATE-----` and so on";
        return Err(fault_of(file, 1, fault));
    }
    Ok(certificates)
}

/// Reads the certificates of CAs in a file; at least one.
pub(super) fn roots(file: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for part in certificates(file)? {
        let line = part.line;
        let added = roots.add(part.certificate());
        let fault = |error| format!("this is no certificate of a CA: {error}");
        added.map_err(|error| fault_of(file, line, fault(error)))?;
    }
    Ok(roots)
}

/// Reads the first private key of a file, and its line.
pub(super) fn private_key(file: &Path) -> Result<(PrivateKeyDer<'static>, usize), TlsError> {
    let keys = parts(file)?.into_iter().filter_map(|part| {
        let key = PrivateKeyDer::from_pem(part.kind, part.der)?;
        Some((key, part.line))
    });
    keys.into_iter().next().ok_or_else(|| {
        let fault = "there is no private key; expected: `-----BEGIN PRIVATE KEY-----` and so on, \
            or `RSA PRIVATE KEY`, or `EC PRIVATE KEY`";
        fault_of(file, 1, fault)
    })
}

pub(super) fn fault_of(file: &Path, line: usize, fault: impl Into<String>) -> TlsError {
    TlsError::File {
        file: file.to_owned(),
        line,
        fault: fault.into(),
    }
}

fn parts(file: &Path) -> Result<Vec<Part>, TlsError> {
    let text = read(file).map_err(|source| TlsError::Read {
        file: file.to_owned(),
        source,
    })?;
    let text = String::from_utf8(text).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.split(|byte| *byte == b'\n').count();
        fault_of(
            file,
            line,
            "this is no text, and PEM is; a DER file has to be converted",
        )
    })?;
    let mut parts = Vec::new();
    let mut at = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if line.starts_with(BEGIN) {
            parts.extend(part(file, number + 1, line, &text[at..])?);
        }
        at += line.len();
    }
    Ok(parts)
}

/// Reads the part that begins with this line; `None` if it is of a kind that nobody asks for.
fn part(file: &Path, number: usize, line: &str, text: &str) -> Result<Option<Part>, TlsError> {
    if line.contains("ENCRYPTED") || text.lines().nth(1).is_some_and(is_of_encrypted) {
        let fault = "the private key is encrypted; `openssl pkey -in FILE -out PLAIN` decrypts it";
        return Err(fault_of(file, number, fault));
    }
    // Where it ends, so that a part without an end does not take the next one's.
    let next = text[line.len()..].find(BEGIN);
    let text = next.map_or(text, |next| &text[..line.len() + next]);
    match <(SectionKind, Vec<u8>)>::from_pem_slice(text.as_bytes()) {
        Ok((kind, der)) => Ok(Some(Part {
            line: number,
            kind,
            der,
        })),
        Err(rustls::pki_types::pem::Error::NoItemsFound) => Ok(None),
        Err(rustls::pki_types::pem::Error::MissingSectionEnd { end_marker }) => {
            let marker = String::from_utf8_lossy(&end_marker);
            let marker = marker.trim_matches('-').trim_start_matches("END ");
            let fault = format!("what begins here has no `-----END {marker}-----`");
            Err(fault_of(file, number, fault))
        }
        Err(error) => Err(fault_of(file, number, error.to_string())),
    }
}

/// A header of RFC 1421, 4.6.1.1, as OpenSSL wrote it.
fn is_of_encrypted(line: &str) -> bool {
    line.starts_with("Proc-Type:") && line.contains("ENCRYPTED")
}

fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = File::open(file)?
        .take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)?;
    if read as u64 > FILE_BYTES_MAX {
        return Err(std::io::Error::other("it is longer than 1 MiB"));
    }
    Ok(bytes)
}
