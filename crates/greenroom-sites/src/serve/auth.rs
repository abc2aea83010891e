//! Names and passwords by HTTP's Basic authentication (RFC 7617).

use std::collections::HashSet;
use std::sync::Arc;

use axum::body::Body;
use axum::response::IntoResponse;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use greenroom::Stage;
use http::{HeaderMap, Response, StatusCode, header};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::text;
use crate::config::Auth;

/// The number of passwords that are remembered to be right, so that not each request of a page
/// costs the tenths of a second that a hash is made to take. Beyond it all are forgotten.
const REMEMBERED_MAX: usize = 1_024;

/// The most bytes of a password; bcrypt counts 72.
const PASSWORD_BYTES_MAX: usize = 1_024;

/// The gate before a route.
#[derive(Clone)]
pub(super) struct Gate {
    auth: Auth,
    /// Digests of names with their right passwords.
    remembered: Arc<Mutex<HashSet<[u8; 32]>>>,
    salt: [u8; 16],
}

impl Gate {
    pub(super) fn new(auth: Auth) -> Self {
        Self {
            auth,
            remembered: Arc::default(),
            salt: rand::random(),
        }
    }

    /// Checks the credentials of a request. The hash is computed on the default stage.
    ///
    /// # Errors
    ///
    /// The response in the route's place: 401, or 503 if the stage has too much to do.
    pub(super) async fn check(&self, headers: &HeaderMap) -> Result<(), Response<Body>> {
        let Some((name, password)) = credentials(headers) else {
            return Err(self.challenge());
        };
        let digest = self.digest(&name, &password);
        if self.remembered.lock().contains(&digest) {
            return Ok(());
        }
        let passwords = Arc::clone(&self.auth.passwords);
        let checked = Stage::global().run(move || {
            let hash = passwords.hash(&name);
            let is_known = hash.is_some();
            // An unknown name takes as long as a known one.
            let is_right = hash
                .or(passwords.any())
                .is_some_and(|hash| hash.is_of(&password));
            is_known && is_right
        });
        match checked.await {
            Ok(true) => {
                let mut remembered = self.remembered.lock();
                if remembered.len() >= REMEMBERED_MAX {
                    remembered.clear();
                }
                remembered.insert(digest);
                Ok(())
            }
            Ok(false) => Err(self.challenge()),
            Err(error) => Err(error.into_response()),
        }
    }

    fn digest(&self, name: &str, password: &str) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.salt);
        hash.update(name);
        // A name has no colon.
        hash.update(":");
        hash.update(password);
        hash.finalize().into()
    }

    fn challenge(&self) -> Response<Body> {
        let mut response = text(
            StatusCode::UNAUTHORIZED,
            "a name and a password are needed\n",
        );
        let challenge = self.auth.challenge.clone();
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, challenge);
        response
    }
}

fn credentials(headers: &HeaderMap) -> Option<(String, String)> {
    let field = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = field.split_once(' ')?;
    let decoded = STANDARD.decode(encoded.trim()).ok();
    let decoded = decoded.filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let text = String::from_utf8(decoded).ok()?;
    let (name, password) = text.split_once(':')?;
    (password.len() <= PASSWORD_BYTES_MAX).then(|| (name.to_owned(), password.to_owned()))
}
