//! The files of Unix sockets, and whose they are.

use std::fs::symlink_metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use greenroom::Address;

use super::identity::Identity;
use crate::args::ServeArgs;

/// The files at the addresses of a server, as they are before it binds these.
pub(super) struct SocketFiles(Vec<(PathBuf, Option<Stamp>)>);

/// Device, number and last change of a file, by which it is told from another one at its path: the
/// number alone may be used again.
type Stamp = (u64, u64, i64, i64);

impl SocketFiles {
    pub(super) fn before(args: &ServeArgs) -> Self {
        let listen = args.listen.addresses();
        let named = listen.iter().chain(args.tls.without_tls());
        let paths = named.chain(&args.status_listen).filter_map(path);
        Self(paths.map(|path| (path.to_owned(), stamp(path))).collect())
    }

    /// Gives the files of the sockets that were bound to user and group, so that they may connect
    /// as its mode allows. The version before goes on with its own if this one fails, so these stay
    /// as they are.
    pub(super) fn give(&self, owner: &Identity, is_next_version: bool) -> anyhow::Result<()> {
        for (path, before) in &self.0 {
            if !is_next_version || before.is_none() || *before != stamp(path) {
                owner.own_socket(path)?;
            } else if symlink_metadata(path).is_ok_and(|file| !owner.has(&file)) {
                tracing::warn!(
                    path = %path.display(),
                    "the file of this socket keeps its owner, as the version before serves there; \
                     a restart gives it to the user and group to serve as"
                );
            }
        }
        Ok(())
    }
}

fn path(address: &Address) -> Option<&Path> {
    match address {
        Address::Unix(path) => Some(path),
        Address::Tcp(_) => None,
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let file = symlink_metadata(path).ok()?;
    Some((file.dev(), file.ino(), file.ctime(), file.ctime_nsec()))
}
