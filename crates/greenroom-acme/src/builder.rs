//! The settings of [`Acme`].

use std::collections::HashSet;
use std::fs::File;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::Uri;
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::sync::{Mutex, Semaphore, watch};

use crate::account::{Accounts, ExternalAccount, Held};
use crate::acme::Acme;
use crate::certificates::Certificates;
use crate::challenges::{ChallengeKind, Challenges};
use crate::client::CaClient;
use crate::clock::{Clock, SystemClock};
use crate::group::Shared;
use crate::handle::AcmeHandle;
use crate::limits::Limits;
use crate::name::{self, NameError};
use crate::order::Orders;
use crate::status::Status;
use crate::store::{Locking, Store, StoreError};

/// Let's Encrypt's directory, the default.
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// Let's Encrypt's directory for trials: with higher limits, and certificates that no browser
/// trusts.
pub const LETS_ENCRYPT_STAGING: &str = "https://acme-staging-v02.api.letsencrypt.org/directory";

/// The most names of a certificate, as at Let's Encrypt.
pub const NAMES_MAX: usize = 100;

/// The most certificates of an [`Acme`]. Each has a task of its own.
pub const GROUPS_MAX: usize = 10_000;

/// The settings of an [`Acme`].
pub struct AcmeBuilder {
    storage: PathBuf,
    locking: Locking,
    directory_url: String,
    is_agreed: bool,
    contacts: Vec<String>,
    external_account: Option<(String, String)>,
    groups: Vec<Vec<String>>,
    kinds: Vec<ChallengeKind>,
    profile: Option<String>,
    roots: Option<Vec<u8>>,
    limits: Limits,
    clock: Arc<dyn Clock>,
    provider: Arc<CryptoProvider>,
}

/// The reason for which an [`Acme`] cannot be built, or its certificates not be set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The authority gives no account to those who do not agree to its terms.
    #[error("the authority's terms of service are not agreed to")]
    TermsNotAgreed,
    /// A name that no certificate can be ordered for.
    #[error("no certificate can be ordered for {name:?}: {error}")]
    Name {
        /// The name.
        name: String,
        /// The fault in it.
        error: NameError,
    },
    /// A name that was given twice.
    #[error("{0} is in two certificates, or twice in one")]
    NameTwice(String),
    /// A certificate without names, or too many of either.
    #[error("{0}")]
    Groups(String),
    /// A contact that is no address of mail.
    #[error("the contact {0:?} is no address of mail")]
    Contact(String),
    /// The authority's directory is no address of HTTPS.
    #[error("the authority's directory {0:?} is no address that begins with https://")]
    DirectoryUrl(String),
    /// The key of the external account is not base64url.
    #[error("the key of the external account is not base64url without line breaks")]
    ExternalAccountKey,
    /// No kind of challenge is enabled.
    #[error("no kind of challenge is enabled")]
    NoChallenge,
    /// The root certificates cannot be read, or there are none.
    #[error("the root certificates, by which the authority is known: {0}")]
    Roots(String),
    /// A limit is out of its range.
    #[error("{0}")]
    Limits(&'static str),
    /// The directory cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AcmeBuilder {
    pub(crate) fn new(storage: &Path) -> Self {
        Self {
            storage: storage.to_owned(),
            locking: Locking::default(),
            directory_url: LETS_ENCRYPT.to_owned(),
            is_agreed: false,
            contacts: Vec::new(),
            external_account: None,
            groups: Vec::new(),
            kinds: vec![ChallengeKind::Http01, ChallengeKind::TlsAlpn01],
            profile: None,
            roots: None,
            limits: Limits::default(),
            clock: Arc::new(SystemClock),
            provider: Arc::new(rustls::crypto::ring::default_provider()),
        }
    }

    /// Sets the authority by the address of its directory. Default [`LETS_ENCRYPT`].
    #[must_use]
    pub fn directory_url(mut self, url: impl Into<String>) -> Self {
        self.directory_url = url.into();
        self
    }

    /// Agrees to the authority's terms of service, without which there is no account.
    #[must_use]
    pub fn agree_to_terms_of_service(mut self) -> Self {
        self.is_agreed = true;
        self
    }

    /// Adds an address of mail, such as `ada@example.org`, that the authority may write to. It is
    /// told when the account is registered, and not changed after that.
    #[must_use]
    pub fn contact(mut self, mail: impl Into<String>) -> Self {
        self.contacts.push(mail.into());
        self
    }

    /// Binds the account to one that the authority knows its customers by (RFC 8555, 7.3.4): the
    /// key's id, and the key in base64url, as the authority shows them.
    #[must_use]
    pub fn external_account(mut self, key_id: impl Into<String>, key: impl Into<String>) -> Self {
        self.external_account = Some((key_id.into(), key.into()));
        self
    }

    /// Adds a certificate for these names, at least one and at most [`NAMES_MAX`]. The names of a
    /// site belong together; of two certificates, one being refused does not hold up the other.
    /// Without any, nothing is ordered until [`AcmeHandle::set_certificates`] names some.
    #[must_use]
    pub fn certificate<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        let names = names.into_iter().map(Into::into);
        self.groups.push(names.collect());
        self
    }

    /// Sets the kinds of challenges that may be used, in the order in which they are tried.
    /// Default HTTP-01, then TLS-ALPN-01.
    #[must_use]
    pub fn challenges(mut self, kinds: impl IntoIterator<Item = ChallengeKind>) -> Self {
        self.kinds = kinds.into_iter().collect();
        self
    }

    /// Orders certificates of this profile of the authority, such as `shortlived`.
    #[must_use]
    pub fn profile(mut self, profile: impl Into<String>) -> Self {
        self.profile = Some(profile.into());
        self
    }

    /// Trusts these roots, as PEM, in place of the system's, for requests to the authority: for a
    /// private one.
    #[must_use]
    pub fn roots(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots = Some(pem.into());
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the wall clock, for tests. Default the system's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets rustls' provider of cryptography. Default ring's; the process' default is not looked
    /// at.
    #[must_use]
    pub fn provider(mut self, provider: Arc<CryptoProvider>) -> Self {
        self.provider = provider;
        self
    }

    /// Takes the lock of the directory from the process that has it: `file` is that one's
    /// [`Acme::lock`], as it was handed over. The two may have the directory open at once then, and
    /// it becomes this one's with [`Acme::run`]; that one must not be running its own any more. A
    /// file that is not this directory's lock is passed over.
    #[must_use]
    pub fn lock(mut self, file: File) -> Self {
        self.locking.passed = Some(file);
        self
    }

    /// Has [`Acme::run`] wait while another process has the directory, in place of an error of
    /// [`build`](Self::build): for a process that takes the place of another one, which is about
    /// to end. The certificates on disk are served meanwhile.
    #[must_use]
    pub fn wait_for_lock(mut self) -> Self {
        self.locking.may_wait = true;
        self
    }

    /// Locks the directory, and reads the certificates that are in it. It waits for the disk, but
    /// not for the authority.
    ///
    /// A certificate whose file is damaged is ordered anew, as if there were none; the log says
    /// which.
    ///
    /// # Errors
    /// If a setting is missing or wrong, or the directory cannot be used: [`BuildError`].
    pub fn build(mut self) -> Result<Acme, BuildError> {
        self.check()?;
        let names = names(&self.groups)?;
        let contacts = contacts(&self.contacts)?;
        let external = self.external_account.as_ref();
        let external = external.map(external_account).transpose()?;
        let roots = match &self.roots {
            Some(pem) => given_roots(pem)?,
            None => system_roots()?,
        };
        let provider = Arc::clone(&self.provider);
        let client = CaClient::new(roots, provider, self.limits.request_timeout)
            .map_err(|error| BuildError::Roots(error.to_string()))?;
        let locking = mem::take(&mut self.locking);
        let store = Arc::new(Store::open(&self.storage, &self.directory_url, locking)?);
        let accounts = Accounts {
            directory_url: self.directory_url.clone(),
            contacts,
            external,
            client,
            store: Arc::clone(&store),
            held: Mutex::new(Held::default()),
        };
        Ok(self.assemble(&names, accounts, store))
    }

    fn check(&self) -> Result<(), BuildError> {
        if !self.is_agreed {
            return Err(BuildError::TermsNotAgreed);
        }
        if self.kinds.is_empty() {
            return Err(BuildError::NoChallenge);
        }
        let url = self.directory_url.parse::<Uri>().ok();
        let is_https = |url: &Uri| url.scheme_str() == Some("https") && url.host().is_some();
        if !url.as_ref().is_some_and(is_https) {
            return Err(BuildError::DirectoryUrl(self.directory_url.clone()));
        }
        self.limits
            .fault()
            .map_or(Ok(()), |fault| Err(BuildError::Limits(fault)))
    }

    fn assemble(self, groups: &[Vec<String>], accounts: Accounts, store: Arc<Store>) -> Acme {
        let challenges = Arc::new(Challenges::default());
        let status = Status {
            directory_url: self.directory_url,
            groups: Vec::new(),
        };
        let orders = Orders {
            challenges: Arc::clone(&challenges),
            kinds: self.kinds,
            profile: self.profile,
            provider: self.provider,
            timeout: self.limits.order_timeout,
        };
        let shared = Arc::new(Shared {
            accounts,
            certificates: Arc::new(Certificates::new(Arc::clone(&challenges))),
            clock: self.clock,
            permits: Semaphore::new(self.limits.orders_max.min(Semaphore::MAX_PERMITS)),
            limits: self.limits,
            orders,
            status: watch::Sender::new(status),
            store,
            is_stale: AtomicBool::new(false),
        });
        let (handle, begun) = AcmeHandle::new(shared);
        handle.keep(groups);
        Acme {
            handle,
            begun,
            challenges,
        }
    }
}

/// Returns the names of groups in lower case.
pub(crate) fn names(groups: &[Vec<String>]) -> Result<Vec<Vec<String>>, BuildError> {
    if groups.len() > GROUPS_MAX {
        let text = format!(
            "at most {GROUPS_MAX} certificates can be asked for, not {}",
            groups.len()
        );
        return Err(BuildError::Groups(text));
    }
    let mut seen = HashSet::new();
    let mut parse = |text: &String| {
        let name = name::parse(text).map_err(|error| BuildError::Name {
            name: text.clone(),
            error,
        })?;
        if seen.insert(name.clone()) {
            Ok(name)
        } else {
            Err(BuildError::NameTwice(name))
        }
    };
    let mut parsed = Vec::with_capacity(groups.len());
    for group in groups {
        if group.is_empty() || group.len() > NAMES_MAX {
            let text = format!(
                "a certificate is for 1 to {NAMES_MAX} names, not {}",
                group.len()
            );
            return Err(BuildError::Groups(text));
        }
        parsed.push(group.iter().map(&mut parse).collect::<Result<_, _>>()?);
    }
    Ok(parsed)
}

fn contacts(mails: &[String]) -> Result<Vec<String>, BuildError> {
    let contact = |mail: &String| {
        let is_plain = |sign: char| sign.is_ascii_graphic() && !"?,%".contains(sign);
        let (user, host) = mail.rsplit_once('@').unwrap_or_default();
        if !user.is_empty() && name::parse(host).is_ok() && mail.chars().all(is_plain) {
            Ok(format!("mailto:{mail}"))
        } else {
            Err(BuildError::Contact(mail.clone()))
        }
    };
    mails.iter().map(contact).collect()
}

fn external_account(given: &(String, String)) -> Result<ExternalAccount, BuildError> {
    let (key_id, key) = given;
    let mac_key = BASE64_URL_SAFE_NO_PAD
        .decode(key.trim_end_matches('='))
        .map_err(|_| BuildError::ExternalAccountKey)?;
    Ok(ExternalAccount {
        key_id: key_id.clone(),
        mac_key,
    })
}

fn given_roots(pem: &[u8]) -> Result<RootCertStore, BuildError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| BuildError::Roots(error.to_string()))?;
        let added = roots.add(certificate);
        added.map_err(|error| BuildError::Roots(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(BuildError::Roots(
            "there is none in what was given".to_owned(),
        ));
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, BuildError> {
    let loaded = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(loaded.certs);
    if roots.is_empty() {
        let faults = loaded.errors.iter().map(ToString::to_string);
        let text = format!(
            "the system has none. {}",
            faults.collect::<Vec<_>>().join("; ")
        );
        return Err(BuildError::Roots(text));
    }
    Ok(roots)
}
