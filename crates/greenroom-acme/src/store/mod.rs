//! The account's key and the certificates on disk.
//!
//! ```text
//! STORAGE/                                     0700
//!   lock                                       0600, the process that has the directory
//!   acme-v02.api.letsencrypt.org-directory/    0700, one for each authority
//!     account.json                             0600
//!     certificates/example.org/                0700, by the first name of the group
//!       certificate.pem                        0600, the key and the chain in one file
//!       failed-orders.json                     0600, while orders have brought no certificate
//! ```

mod error;
mod file;
mod lock;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use instant_acme::AccountCredentials;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use error::StoreError;
pub use file::FILE_BYTES_MAX;
use lock::Lock;
pub use lock::{LOCK_LOOK, LOCK_WAIT_MAX};
pub(crate) use lock::{Locking, claim};

/// The files of one authority, in a directory that no other process uses.
pub(crate) struct Store {
    directory: PathBuf,
    lock: Lock,
}

impl Store {
    /// Opens the directory, which is made if need be.
    pub(crate) fn open(
        root: &Path,
        directory_url: &str,
        locking: Locking,
    ) -> Result<Self, StoreError> {
        file::create_root(root)?;
        let lock = Lock::open(root, locking)?;
        let directory = root.join(folder(directory_url));
        file::create_directory(&directory)?;
        Ok(Self { directory, lock })
    }

    pub(crate) fn lock_file(&self) -> &File {
        self.lock.file()
    }

    /// Returns the account, if there is one.
    pub(crate) fn account(&self) -> Result<Option<AccountCredentials>, StoreError> {
        read_json(self.account_path())
    }

    pub(crate) fn save_account(&self, account: &AccountCredentials) -> Result<(), StoreError> {
        write_json(self.account_path(), account)
    }

    /// Renames the account's file, so that the next account does not replace it: its key may be
    /// all that can revoke a certificate. Returns its new path, or `None` if there is no file.
    pub(crate) fn set_account_aside(&self) -> Result<Option<PathBuf>, StoreError> {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = seconds.map_or(0, |since| since.as_secs());
        let name = |number: u32| format!("account-{seconds}-{number}.json");
        let free = (0..).map(|number| self.directory.join(name(number)));
        let mut free = free.filter(|path| !path.exists());
        let aside = free.next().unwrap_or_else(|| self.directory.join(name(0)));
        file::rename(&self.account_path(), &aside)
    }

    pub(crate) fn account_path(&self) -> PathBuf {
        self.directory.join("account.json")
    }

    /// Returns the content of the certificate's file, if there is one.
    pub(crate) fn certificate(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        file::read(&self.certificate_path(name))
    }

    /// Saves a certificate. Orders that have failed before are forgotten then.
    pub(crate) fn save_certificate(&self, name: &str, text: &[u8]) -> Result<(), StoreError> {
        file::create_directory(&self.group_folder(name))?;
        file::write(&self.certificate_path(name), text)?;
        file::remove(&self.failed_orders_path(name))
    }

    pub(crate) fn certificate_path(&self, name: &str) -> PathBuf {
        self.group_folder(name).join("certificate.pem")
    }

    /// Returns the times at which orders began that have brought no certificate.
    pub(crate) fn failed_orders(&self, name: &str) -> Result<Vec<SystemTime>, StoreError> {
        let began = read_json(self.failed_orders_path(name))?;
        Ok(began.unwrap_or_default())
    }

    pub(crate) fn save_failed_orders(
        &self,
        name: &str,
        began: &[SystemTime],
    ) -> Result<(), StoreError> {
        file::create_directory(&self.group_folder(name))?;
        write_json(self.failed_orders_path(name), began)
    }

    fn failed_orders_path(&self, name: &str) -> PathBuf {
        self.group_folder(name).join("failed-orders.json")
    }

    /// Returns the folder of a group: one for each, since a name alone can be as long as a file's
    /// name may be.
    fn group_folder(&self, name: &str) -> PathBuf {
        self.directory.join("certificates").join(name)
    }
}

fn read_json<T: DeserializeOwned>(path: PathBuf) -> Result<Option<T>, StoreError> {
    let Some(text) = file::read(&path)? else {
        return Ok(None);
    };
    let parsed = serde_json::from_slice(&text);
    parsed
        .map(Some)
        .map_err(|error| StoreError::damaged(path, &error))
}

fn write_json<T: Serialize + ?Sized>(path: PathBuf, value: &T) -> Result<(), StoreError> {
    match serde_json::to_vec_pretty(value) {
        Ok(text) => file::write(&path, &text),
        Err(error) => Err(StoreError::damaged(path, &error)),
    }
}

/// Returns the name of an authority's folder: its directory's address without the scheme.
fn folder(directory_url: &str) -> String {
    let (_, address) = directory_url
        .split_once("://")
        .unwrap_or(("", directory_url));
    let sign = |sign: char| match sign {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' => sign,
        _ => '-',
    };
    address.chars().map(sign).collect()
}
