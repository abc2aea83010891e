//! Certificates that come by themselves.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::UNIX_EPOCH;

use anyhow::{Context, ensure};
use greenroom::{CertificateStatus, Tls, Upgrades};
use greenroom_acme::{Acme, AcmeHandle, BuildError, GroupStatus, State, Status};
use greenroom_sites::{File, is_public_name};
use tokio::sync::watch;

use super::inherited;
use crate::args::AcmeArgs;

/// Returns the directory of the certificates; `None` if none are to be obtained.
pub(super) fn storage(args: &AcmeArgs, user: Option<&str>) -> anyhow::Result<Option<PathBuf>> {
    if args.domains.is_empty() && !args.automatic_certificates {
        return Ok(None);
    }
    let storage = match &args.storage {
        // A slash or a dot at the end would have the system follow a link of that name.
        Some(storage) => storage.components().collect(),
        // With --user it was root who began, even if the next version no longer is.
        None => default_storage(
            user.is_some() || rustix::process::geteuid().is_root(),
            |variable| std::env::var_os(variable),
        )?,
    };
    Ok(Some(storage))
}

/// Opens the directory of the certificates, which the process may have whose place this one takes:
/// the version before hands its lock over, if it knows how to, and one that `start_server` ends
/// once this one serves is waited for.
pub(super) fn open(args: &AcmeArgs, storage: &Path, upgrades: &Upgrades) -> anyhow::Result<Acme> {
    let mut builder = Acme::builder(storage).agree_to_terms_of_service();
    let storage = std::path::absolute(storage)?;
    let name = format!("acme-lock {}", storage.display());
    if let Some(lock) = upgrades.take_file(&name) {
        builder = builder.lock(lock);
    }
    if inherited::is_by_start_server() || upgrades.is_next_version() {
        builder = builder.wait_for_lock();
    }
    if !args.domains.is_empty() {
        builder = builder.certificate(&args.domains);
    }
    if let Some(contact) = &args.contact {
        builder = builder.contact(contact);
    }
    if let Some(directory) = &args.directory {
        builder = builder.directory_url(directory);
    }
    if let Some(file) = &args.root {
        let pem = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        builder = builder.roots(pem);
    }
    let acme = builder.build()?;
    upgrades.hand_over_file(&name, acme.lock())?;
    Ok(acme)
}

/// Obtains and renews certificates while this process is the one that serves. Before that nothing
/// responds to the authority, and after that it is the next version's work.
pub(super) async fn obtain(acme: Acme, mut on_duty: watch::Receiver<bool>) {
    let mut obtaining = pin!(acme.run());
    while on_duty.wait_for(|is_on_duty| *is_on_duty).await.is_ok() {
        tokio::select! {
            biased;
            _off = on_duty.wait_for(|is_on_duty| !*is_on_duty) => {}
            never = &mut obtaining => match never {},
        }
    }
}

/// Returns the certificates as the operators' page shows them.
pub(super) fn shown(status: &Status) -> Vec<CertificateStatus> {
    status.groups.iter().map(shown_group).collect()
}

fn shown_group(group: &GroupStatus) -> CertificateStatus {
    let served = group.certificate.as_ref();
    let expires = served.and_then(|served| served.not_after.duration_since(UNIX_EPOCH).ok());
    CertificateStatus {
        names: served.map_or(&group.names, |served| &served.names).clone(),
        expires_unix_seconds: expires.and_then(|since| i64::try_from(since.as_secs()).ok()),
        note: Some(match &group.state {
            State::Starting | State::Ordering => "it is being ordered".to_owned(),
            State::Waiting { .. } => "it is renewed by itself".to_owned(),
            State::Failed {
                reason, attempts, ..
            } => format!("{attempts} attempts in a row have failed: {reason}"),
        }),
    }
}

/// The names that certificates are obtained for: those of --domain together, and each host of the
/// sites by itself, so that one that is refused holds up no other.
pub(super) struct Names {
    handle: AcmeHandle,
    tls: Tls,
    /// In lower case.
    domains: Vec<String>,
}

impl Names {
    /// Returns `None` unless the hosts of sites are to get certificates.
    pub(super) fn of(args: &AcmeArgs, acme: Option<&Acme>, tls: Option<&Tls>) -> Option<Self> {
        let (acme, tls) = acme.filter(|_| args.automatic_certificates).zip(tls)?;
        let domains = args.domains.iter().map(|name| name.to_ascii_lowercase());
        Some(Self {
            handle: acme.handle(),
            tls: tls.clone(),
            domains: domains.collect(),
        })
    }

    /// Takes the hosts of the first file, which would be none by a slip.
    pub(super) fn begin(&self, file: &File) -> anyhow::Result<()> {
        let mut hosts = file.hosts().into_iter();
        ensure!(
            hosts.any(|host| is_public_name(&host) || self.is_known(&host)),
            "automatic_certificates: no site has a host that is a public name; name them in \
             `hosts`, such as example.org"
        );
        self.take(file)?;
        Ok(())
    }

    /// Takes the hosts of the sites of a file in place of those that were taken before.
    pub(super) fn take(&self, file: &File) -> Result<(), BuildError> {
        let hosts = file.hosts();
        let unknown = hosts.iter().filter(|host| !self.is_known(host));
        let (obtained, others): (Vec<&str>, Vec<&str>) = unknown
            .map(String::as_str)
            .partition(|host| is_public_name(host));
        let of_domains = [self.domains.iter().map(String::as_str).collect::<Vec<_>>()];
        let of_domains = of_domains.into_iter().filter(|names| !names.is_empty());
        let of_hosts = obtained.into_iter().map(|host| vec![host]);
        self.handle.set_certificates(of_domains.chain(of_hosts))?;
        if !others.is_empty() {
            tracing::warn!(
                hosts = ?others,
                "no certificate is obtained for hosts that are no public names; name one by --cert"
            );
        }
        Ok(())
    }

    /// Returns `true` if a host has a certificate without being obtained one by itself.
    fn is_known(&self, host: &str) -> bool {
        self.domains.iter().any(|name| name == host) || self.tls.has_certificate_for(host)
    }
}

/// The directory of the service manager, of the system, or of the user.
fn default_storage(
    is_of_system: bool,
    environment: impl Fn(&str) -> Option<OsString>,
) -> anyhow::Result<PathBuf> {
    const OF_SYSTEM: &str = "/var/lib/greenroom/certificates";
    let of = |variable| environment(variable).map(PathBuf::from);
    if let Some(directory) = of("STATE_DIRECTORY") {
        return Ok(directory.join("certificates"));
    }
    if is_of_system {
        return Ok(PathBuf::from(OF_SYSTEM));
    }
    let data = of("XDG_DATA_HOME").or_else(|| Some(of("HOME")?.join(".local/share")));
    let data = data.context("nobody says where certificates are kept: use --acme-storage DIR")?;
    Ok(data.join("greenroom/certificates"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_the_service_managers_directory_then_the_systems_then_the_users() {
        let home = |variable: &str| (variable == "HOME").then(|| OsString::from("/home/www"));
        let managed = |variable: &str| {
            let value = OsString::from("/var/lib/private/www");
            (variable == "STATE_DIRECTORY").then_some(value)
        };
        let storage = |is_of_system, environment: &dyn Fn(&str) -> Option<OsString>| {
            default_storage(is_of_system, environment).expect("it is known")
        };
        let own = Path::new("/home/www/.local/share/greenroom/certificates");
        assert_eq!(storage(false, &home), own);
        let of_system = Path::new("/var/lib/greenroom/certificates");
        assert_eq!(storage(true, &home), of_system);
        let of_manager = Path::new("/var/lib/private/www/certificates");
        assert_eq!(storage(true, &managed), of_manager);
        let unknown = default_storage(false, |_| None).expect_err("nobody says");
        assert!(unknown.to_string().contains("--acme-storage"), "{unknown}");
    }
}
