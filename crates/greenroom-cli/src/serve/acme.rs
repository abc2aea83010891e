//! Certificates that come by themselves.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use greenroom_acme::Acme;

use super::identity::Identity;
use crate::args::AcmeArgs;

/// Opens the directory of the certificates; `None` if none are to be obtained. It becomes that of
/// the user to serve as, who obtains them.
pub(super) fn prepare(
    args: &AcmeArgs,
    identity: Option<&Identity>,
) -> anyhow::Result<Option<Acme>> {
    if args.domains.is_empty() {
        return Ok(None);
    }
    let storage = args.storage.clone().map_or_else(default_storage, Ok)?;
    let mut builder = Acme::builder(&storage)
        .agree_to_terms_of_service()
        .certificate(&args.domains);
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
    if let Some(identity) = identity {
        let given = own(identity, &storage);
        given.with_context(|| {
            let storage = storage.display();
            format!("{storage} cannot be given to the user and group to serve as")
        })?;
    }
    Ok(Some(acme))
}

/// The directory of the service manager, of the system, or of the user.
fn default_storage() -> anyhow::Result<PathBuf> {
    const OF_ROOT: &str = "/var/lib/greenroom/certificates";
    let of = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    if let Some(directory) = of("STATE_DIRECTORY") {
        return Ok(directory.join("certificates"));
    }
    if rustix::process::geteuid().is_root() {
        return Ok(PathBuf::from(OF_ROOT));
    }
    let data = of("XDG_DATA_HOME").or_else(|| Some(of("HOME")?.join(".local/share")));
    let data = data.context("nobody says where certificates are kept: use --acme-storage DIR")?;
    Ok(data.join("greenroom/certificates"))
}

/// Gives a directory and all that is in it to the user to serve as.
fn own(identity: &Identity, path: &Path) -> anyhow::Result<()> {
    identity.own(&fs::File::open(path)?)?;
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            own(identity, &entry?.path())?;
        }
    }
    Ok(())
}
