use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use sha2::Sha256;

use super::parse::Signature;
use super::{Error, Signer};
use crate::model::{Author, Id};
use crate::service;
use crate::{App, Failure};

/// The allowed difference of the clocks together with the time in transit, in seconds.
pub const WINDOW_SECONDS: i64 = 30;
/// The time that a nonce is remembered, from `created` on: longer than its signature is valid.
const NONCE_SECONDS: i64 = 2 * WINDOW_SECONDS;
/// The longest time that a user's name is read from the cache. It never changes.
const AUTHOR_TTL: Duration = Duration::from_mins(1);

/// Verifies the signature and returns its signer. From then on the nonce is used, even if the
/// request fails.
pub(super) async fn verify(app: &App, signature: &Signature) -> Result<Signer, Failure> {
    check_window(signature.created, Timestamp::now().as_second())?;
    let key = app.store.key(signature.key).await?.ok_or(Error::Wrong)?;
    check_tag(&key.secret, signature)?;
    let expires = signature.created + NONCE_SECONDS;
    let expires = Timestamp::from_second(expires).map_err(Failure::internal)?;
    // Only after the tag is verified: else anybody could use up the nonces of a key.
    if !app
        .store
        .use_nonce(key.id, &signature.nonce, expires)
        .await?
    {
        return Err(Error::Replayed.into());
    }
    Ok(Signer {
        author: author(app, key.user).await?,
        key: key.id,
    })
}

fn check_window(created: i64, now: i64) -> Result<(), Error> {
    if now.abs_diff(created) > WINDOW_SECONDS.unsigned_abs() {
        return Err(Error::Window { created, now });
    }
    Ok(())
}

fn check_tag(secret: &[u8], signature: &Signature) -> Result<(), Error> {
    let mut hmac = Hmac::<Sha256>::new_from_slice(secret).map_err(|_| Error::Wrong)?;
    hmac.update(signature.base.as_bytes());
    hmac.verify_slice(&signature.tag).map_err(|_| Error::Wrong)
}

async fn author(app: &App, id: Id) -> Result<Author, Failure> {
    let load = async {
        let user = app.store.user(id).await?;
        Ok::<_, Failure>(user.ok_or(Error::Wrong)?.author())
    };
    let key = service::author_key(id);
    app.cache.get_or_load(&key, AUTHOR_TTL, load).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_minute_in_both_directions() {
        let now = 1_700_000_000;
        for created in [now - 30, now, now + 30] {
            assert_eq!(check_window(created, now), Ok(()), "{created}");
        }
        for created in [now - 31, now + 31, i64::MIN, i64::MAX] {
            let error = check_window(created, now).expect_err("it is too far away");
            assert_eq!(error, Error::Window { created, now });
        }
    }

    #[test]
    fn a_rejection_tells_both_times_and_where_to_ask() {
        let error = check_window(1_700_000_000, 1_700_000_031).expect_err("it is too old");
        let text = error.to_string();
        for part in ["1700000000", "1700000031", "30 s", "GET /time"] {
            assert!(text.contains(part), "{text}");
        }
    }

    fn signature(tag: &str) -> Signature {
        Signature {
            base: "what do ya want for nothing?".to_owned(),
            tag: hex::decode(tag).expect("digits"),
            key: Id::new(),
            created: 0,
            nonce: "12345678".to_owned(),
        }
    }

    /// RFC 4231, section 4.3.
    #[test]
    fn the_tag_is_hmac_sha256() {
        let tag = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(check_tag(b"Jefe", &signature(tag)), Ok(()));
        assert_eq!(check_tag(b"Jeff", &signature(tag)), Err(Error::Wrong));
        assert_eq!(
            check_tag(b"Jefe", &signature(&tag[..32])),
            Err(Error::Wrong)
        );
        assert_eq!(check_tag(b"Jefe", &signature("")), Err(Error::Wrong));
    }
}
