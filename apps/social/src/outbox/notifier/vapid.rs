//! The application's identity towards push services (VAPID, RFC 8292).

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lettre::message::Mailbox;
use reqwest::header::HeaderValue;
use url::Url;
use web_push_native::jwt_simple::algorithms::{
    ECDSAP256KeyPairLike, ECDSAP256PublicKeyLike, ES256KeyPair,
};
use web_push_native::jwt_simple::claims::Claims;

use crate::config::{Settings, StoreSettings};
use crate::outbox::worker::Setback;

/// The file beside the database with the key that is created if none is configured.
const FILE: &str = "vapid.key";
/// Lifetime of a signature. Services reject more than a day.
const SIGNATURE_FOR: Duration = Duration::from_hours(12);

/// The key that signs messages to push services.
pub(in crate::outbox) struct Vapid {
    pair: ES256KeyPair,
    public_key: String,
    subject: String,
}

impl Vapid {
    /// Opens the key of the settings (an empty one counts as none), or one that is created once and
    /// kept beside the `SQLite` database; `None` if there is neither.
    pub(in crate::outbox) fn open(settings: &Settings) -> anyhow::Result<Option<Self>> {
        let key = settings.push.private_key.as_ref();
        let private = match (key.filter(|key| !key.is_empty()), &settings.store) {
            (Some(key), _) => key.clone(),
            (None, StoreSettings::Sqlite(database)) => {
                let directory = database
                    .parent()
                    .filter(|path| !path.as_os_str().is_empty());
                kept(directory.unwrap_or(Path::new(".")))?
            }
            (None, StoreSettings::Mongo(_)) => return Ok(None),
        };
        let pair = pair(&private)
            .context("the private key of VAPID (`push.private_key`, or the file vapid.key)")?;
        let public_key =
            URL_SAFE_NO_PAD.encode(pair.public_key().public_key().to_bytes_uncompressed());
        let subject = subject(settings)?;
        Ok(Some(Self {
            pair,
            public_key,
            subject,
        }))
    }

    /// The public key, base64url, for browsers that subscribe.
    pub(in crate::outbox) fn public_key(&self) -> &str {
        &self.public_key
    }

    /// Returns the header `Authorization` for a message to this endpoint.
    pub(super) fn authorization(&self, endpoint: &Url) -> Result<HeaderValue, Setback> {
        let claims = Claims::create(SIGNATURE_FOR.into())
            .with_audience(endpoint.origin().ascii_serialization())
            .with_subject(&self.subject);
        let token = self.pair.sign(claims).map_err(Setback::permanent)?;
        let value = format!("vapid t={token}, k={}", self.public_key);
        value.try_into().map_err(Setback::permanent)
    }
}

fn pair(private: &str) -> anyhow::Result<ES256KeyPair> {
    let bytes = URL_SAFE_NO_PAD
        .decode(private.trim().trim_end_matches('='))
        .context("it must be base64url")?;
    let wrong = "it must be the 32 bytes of a key of P-256";
    ensure!(bytes.len() == 32, wrong); // the library panics at other lengths
    ES256KeyPair::from_bytes(&bytes).context(wrong)
}

fn subject(settings: &Settings) -> anyhow::Result<String> {
    if let Some(subject) = &settings.push.subject {
        return Ok(subject.clone());
    }
    let from: Mailbox = settings.mail.from.parse().context("`mail.from`")?;
    Ok(format!("mailto:{}", from.email))
}

/// Reads the key in a directory, and creates it if there is none, readable by this user only.
fn kept(directory: &Path) -> anyhow::Result<String> {
    let path = directory.join(FILE);
    match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        read => return read.with_context(|| format!("{} cannot be read", path.display())),
    }
    make(directory, &path).with_context(|| format!("{} cannot be made", path.display()))
}

/// Creates the key in a temporary file (mode 0600) and renames it, so that no partial key is ever
/// there.
fn make(directory: &Path, path: &Path) -> anyhow::Result<String> {
    fs::create_dir_all(directory)?;
    let key = URL_SAFE_NO_PAD.encode(ES256KeyPair::generate().to_bytes());
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(key.as_bytes())?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(key),
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {
            Ok(fs::read_to_string(path)?)
        }
        Err(error) => Err(error.error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn settings(database: &Path) -> Settings {
        Settings {
            store: StoreSettings::Sqlite(database.to_owned()),
            ..Settings::default()
        }
    }

    #[test]
    fn a_key_is_made_once_and_for_its_owner_only() {
        let directory = tempfile::tempdir().expect("a directory");
        let database = directory.path().join("new/social.db");
        let open = || {
            Vapid::open(&settings(&database))
                .expect("it opens")
                .expect("there is one")
        };
        let first = open();
        assert_eq!(first.public_key(), open().public_key());
        let file = directory.path().join("new").join(FILE);
        let mode = fs::metadata(file)
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_key_that_is_none_is_refused_with_its_place() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut settings = settings(&directory.path().join("social.db"));
        for wrong in ["?", "AAAA"] {
            settings.push.private_key = Some(wrong.to_owned());
            let error = Vapid::open(&settings).err().expect("it is refused");
            assert!(
                error.to_string().contains("push.private_key"),
                "{wrong}: {error}"
            );
        }
    }

    #[test]
    fn several_replicas_on_another_storage_need_a_key() {
        let url = "mongodb://localhost/social".parse().expect("a URL");
        let mut settings = Settings {
            store: StoreSettings::Mongo(url),
            ..Settings::default()
        };
        for none in [None, Some(String::new())] {
            settings.push.private_key = none;
            assert!(Vapid::open(&settings).expect("it opens").is_none());
        }
    }
}
