//! Files of names and hashes of passwords, as `htpasswd` writes them.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use argon2::password_hash::phc::PasswordHash;

/// The most bytes of such a file that are read: 4 MiB.
const BYTES_MAX: u64 = 4 << 20;

/// The names of a file, each with its hash.
#[derive(Debug, Default)]
pub(crate) struct Passwords(HashMap<String, Hash>);

/// A hash of a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    /// `$2y$…`, as of `htpasswd -B`.
    Bcrypt(String),
    /// `$argon2id$…`
    Argon2(String),
}

impl Passwords {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be read; of a line that is at fault, with its number.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        if fs::metadata(path).map_err(failed)?.len() > BYTES_MAX {
            return Err(format!("{}: more than {BYTES_MAX} bytes", path.display()));
        }
        let text = fs::read_to_string(path).map_err(failed)?;
        let mut passwords = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fault = |what: &str| format!("{}:{}: {what}", path.display(), index + 1);
            let (name, hash) = line
                .split_once(':')
                .ok_or_else(|| fault("expected `name:hash`, as htpasswd -B writes it"))?;
            let hash = Hash::parse(hash).map_err(fault)?;
            if passwords.0.insert(name.to_owned(), hash).is_some() {
                return Err(fault("the name stands there twice"));
            }
        }
        if passwords.0.is_empty() {
            return Err(format!("{}: there is no name in it", path.display()));
        }
        Ok(passwords)
    }

    pub(crate) fn hash(&self, name: &str) -> Option<&Hash> {
        self.0.get(name)
    }

    /// Returns some hash, to be checked in place of that of a name that is not known.
    pub(crate) fn any(&self) -> Option<&Hash> {
        self.0.values().next()
    }
}

impl Hash {
    fn parse(text: &str) -> Result<Self, &'static str> {
        if text.parse::<bcrypt::HashParts>().is_ok() {
            return Ok(Self::Bcrypt(text.to_owned()));
        }
        let hash = PasswordHash::new(text);
        if hash.is_ok_and(|hash| hash.algorithm.as_str().starts_with("argon2")) {
            return Ok(Self::Argon2(text.to_owned()));
        }
        Err(
            "not a hash of bcrypt or argon2; use `htpasswd -B` (plain text, MD5 and crypt are \
            refused)",
        )
    }

    /// Returns true if the password has this hash. Takes some tenths of a second of computing.
    pub(crate) fn is_of(&self, password: &str) -> bool {
        match self {
            Self::Bcrypt(hash) => bcrypt::verify(password, hash).unwrap_or(false),
            Self::Argon2(hash) => {
                use argon2::PasswordVerifier;
                let hash = PasswordHash::new(hash);
                hash.is_ok_and(|hash| {
                    let argon2 = argon2::Argon2::default();
                    argon2.verify_password(password.as_bytes(), &hash).is_ok()
                })
            }
        }
    }
}
