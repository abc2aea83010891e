//! Flags of TLS.

use std::path::PathBuf;
use std::sync::Arc;

use greenroom::rustls::server::ResolvesServerCert;
use greenroom::{Address, ClientCertificates, Tls, TlsError};

use super::value;

pub(super) const HEADING: &str = "TLS";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = HEADING)]
#[expect(clippy::doc_markdown, reason = "the text is shown on a terminal")]
pub(crate) struct TlsArgs {
    /// File of a certificate in PEM, its own first, then those of the CAs between it and the root;
    /// may be repeated, each with its --key
    ///
    /// All addresses of --listen speak TLS then, 1.2 or 1.3, with HTTP/2 or HTTP/1.1. Of several
    /// certificates a client gets the one for the name that it asks for, else the first. Files are
    /// read before --user is assumed, and at each SIGHUP as that user: who replaces them has to
    /// see to it that it may read them. If they are not in order then, the old ones stay.
    #[arg(
        long = "cert",
        env = "GREENROOM_CERT",
        value_name = "FILE",
        value_delimiter = ','
    )]
    certificates: Vec<PathBuf>,

    /// File of the private key of a --cert, in PEM and not encrypted; in the order of --cert
    #[arg(
        long = "key",
        env = "GREENROOM_KEY",
        value_name = "FILE",
        value_delimiter = ','
    )]
    keys: Vec<PathBuf>,

    /// Speak TLS with a certificate for localhost that is made at the start, and that no client
    /// trusts: for development
    #[arg(long, env = "GREENROOM_TLS_SELF_SIGNED")]
    tls_self_signed: bool,

    /// File of the CAs, in PEM, of which clients have to show a certificate
    ///
    /// A PSGI application finds it as SSL_CLIENT_CERT.
    #[arg(long, env = "GREENROOM_CLIENT_CA", value_name = "FILE")]
    client_ca: Option<PathBuf>,

    /// Serve clients without a certificate of --client-ca, too; what they show must be right
    #[arg(long, env = "GREENROOM_CLIENT_CERT_OPTIONAL")]
    client_cert_optional: bool,

    /// Serve HTTP/3, too, over UDP at the addresses that speak TLS; experimental
    ///
    /// Responses over TLS tell clients of it (Alt-Svc). It is not served with --proxy-protocol, nor
    /// on sockets that were passed on.
    #[cfg(feature = "http3")]
    #[arg(long, env = "GREENROOM_HTTP3")]
    pub(crate) http3: bool,

    #[command(flatten)]
    pub(crate) acme: AcmeArgs,

    /// Address to listen on without TLS, beside those of --listen; may be repeated
    #[arg(
        long,
        env = "GREENROOM_LISTEN_PLAIN",
        value_name = "ADDRESS",
        value_delimiter = ',',
        value_parser = value::address
    )]
    pub(crate) listen_plain: Vec<Address>,

    /// Address to listen on without TLS, to send clients on to https; may be repeated
    ///
    /// All requests get 308, but those by which CAs ask whether a name is ours. Responses over TLS
    /// tell browsers to come by https for a year (Strict-Transport-Security), unless the
    /// application says something else.
    #[arg(
        long,
        env = "GREENROOM_LISTEN_REDIRECTING",
        value_name = "ADDRESS",
        value_delimiter = ',',
        value_parser = value::address
    )]
    pub(crate) listen_redirecting: Vec<Address>,
}

/// Flags of certificates that come by themselves.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = HEADING)]
#[expect(clippy::doc_markdown, reason = "the text is shown on a terminal")]
pub(crate) struct AcmeArgs {
    /// Name of this host, for which a certificate is obtained and renewed by ACME; may be repeated
    ///
    /// All names stand in one certificate. By this flag you agree to the terms of the authority,
    /// which is Let's Encrypt unless --acme-directory says otherwise. It has to reach this program
    /// by these names at port 80 or 443. Without --listen it listens on port 443 of all addresses,
    /// and sends clients on from port 80.
    #[arg(
        long = "domain",
        env = "GREENROOM_DOMAIN",
        value_name = "NAME",
        value_delimiter = ','
    )]
    pub(crate) domains: Vec<String>,

    /// Obtain a certificate for each host of the sites, too
    ///
    /// Each host of a file of sites gets one that is a public name, and that no --cert is for: no
    /// wildcard, no address, no name like localhost or printer.local. A new file adds and removes
    /// names. All that is said of --domain holds.
    #[arg(long)]
    pub(crate) automatic_certificates: bool,

    /// Mail address at which the authority may warn you
    #[arg(
        long = "acme-contact",
        env = "GREENROOM_ACME_CONTACT",
        value_name = "MAIL"
    )]
    pub(crate) contact: Option<String>,

    /// URL of the authority's directory (default: Let's Encrypt's)
    #[arg(
        long = "acme-directory",
        env = "GREENROOM_ACME_DIRECTORY",
        value_name = "URL"
    )]
    pub(crate) directory: Option<String>,

    /// File of roots, in PEM, by which the authority's own server is known, instead of the system's
    #[arg(long = "acme-root", env = "GREENROOM_ACME_ROOT", value_name = "FILE")]
    pub(crate) root: Option<PathBuf>,

    /// Directory of the account's key and the certificates
    ///
    /// By default $STATE_DIRECTORY/certificates, which systemd names by StateDirectory=; else
    /// /var/lib/greenroom/certificates for root and with --user, to whom it belongs then, and
    /// greenroom/certificates in $XDG_DATA_HOME or ~/.local/share for others.
    #[arg(
        long = "acme-storage",
        env = "GREENROOM_ACME_STORAGE",
        value_name = "DIRECTORY"
    )]
    pub(crate) storage: Option<PathBuf>,
}

impl TlsArgs {
    /// Returns the addresses without TLS.
    pub(crate) fn without_tls(&self) -> impl Iterator<Item = &Address> {
        self.listen_plain.iter().chain(&self.listen_redirecting)
    }

    /// Returns true if certificates are to be obtained.
    pub(crate) fn obtains(&self) -> bool {
        self.acme.automatic_certificates || !self.acme.domains.is_empty()
    }

    /// Returns true if TLS is spoken.
    pub(crate) fn is_on(&self) -> bool {
        self.tls_self_signed || self.obtains() || !self.certificates.is_empty()
    }

    /// Returns the fault of flags that do not belong together. They may come from a file, whose
    /// keys are looked at one by one, so clap does not know.
    pub(super) fn fault(&self) -> Option<String> {
        let (certificates, keys) = (self.certificates.len(), self.keys.len());
        if certificates != keys {
            return Some(format!(
                "each --cert needs its --key: there are {certificates} and {keys}"
            ));
        }
        if self.tls_self_signed && certificates > 0 {
            return Some("--tls-self-signed takes the place of --cert: give either".to_owned());
        }
        if self.client_cert_optional && self.client_ca.is_none() {
            return Some("--client-cert-optional is for --client-ca".to_owned());
        }
        let said = [
            ("--client-ca", self.client_ca.is_some()),
            #[cfg(feature = "http3")]
            ("--http3", self.http3),
            ("--listen-plain", !self.listen_plain.is_empty()),
            ("--listen-redirecting", !self.listen_redirecting.is_empty()),
        ];
        let (flag, _) = said.iter().find(|(_, is_said)| *is_said && !self.is_on())?;
        Some(format!(
            "{flag} is for TLS: name a certificate by --cert and --key, or a --domain"
        ))
    }

    /// Reads the files; `None` if no TLS is asked for. Certificates that are obtained come from the
    /// resolver.
    pub(crate) fn tls(
        &self,
        obtained: Option<Arc<dyn ResolvesServerCert>>,
    ) -> anyhow::Result<Option<Tls>> {
        if !self.is_on() {
            return Ok(None);
        }
        let mut builder = Tls::builder();
        for (certificate, key) in self.certificates.iter().zip(&self.keys) {
            builder = builder.certificate(certificate, key);
        }
        if let Some(obtained) = obtained {
            builder = builder.resolver(obtained);
        }
        if self.tls_self_signed {
            let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
            let made = rcgen::generate_simple_self_signed(names)?;
            let key = made.signing_key.serialize_der();
            let key = key
                .try_into()
                .map_err(|error: &str| anyhow::anyhow!(error))?;
            builder = builder.certificate_der(vec![made.cert.der().clone()], key);
        }
        if let Some(roots) = &self.client_ca {
            let required = if self.client_cert_optional {
                ClientCertificates::Optional
            } else {
                ClientCertificates::Required
            };
            builder = builder.client_certificates(roots, required);
        }
        let tls: Result<Tls, TlsError> = builder.build();
        Ok(Some(tls?))
    }
}
