//! Hashing of passwords, on a stage of its own, of two threads by default, so that log-ins take
//! neither the pages' threads nor their slots in the queue. Each digest needs 19 MiB and some ten
//! milliseconds, by design.

use anyhow::Context;
use argon2::Argon2;
use argon2::password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash};
use greenroom::{Stage, StageError};

use crate::Failure;
use crate::config::PasswordSettings;

/// The digest that the password of an unknown name is compared with; no password matches it.
const NOBODY: &str = "$argon2id$v=19$m=19456,t=2,p=1\
    $c29tZXNhbHRzb21lc2FsdA$pWZ0dVlHxKJ6BP0yWS8Ej5MVmg2gCzVZsfc/BMn4TtE";

/// A stage for passwords; cheap to clone.
#[derive(Clone, Debug)]
pub struct Passwords {
    stage: Stage,
}

impl Passwords {
    /// Creates the stage `passwords`.
    ///
    /// # Errors
    /// Fails if the settings ask for no threads.
    pub fn new(settings: &PasswordSettings) -> anyhow::Result<Self> {
        let stage = Stage::builder("passwords")
            .threads(1..=settings.threads)
            .blocking_threads_max(settings.threads)
            .queue_max(settings.queue_max)
            .queue_wait_max(settings.queue_wait_max)
            .build()
            .context("`passwords` cannot be as the settings say")?;
        Ok(Self { stage })
    }

    /// Hashes a password: the result is a PHC string of argon2id, with a salt of its own. Clients
    /// share the stage by the time that they take.
    ///
    /// # Errors
    /// [`Failure::Unavailable`] if too many passwords wait.
    pub async fn hash(&self, password: &str) -> Result<String, Failure> {
        let password = password.to_owned();
        let hashed = self.stage.run(move || hash(&password)).await;
        hashed.map_err(overloaded)?
    }

    /// Returns `true` if `stored` was made from this password.
    ///
    /// `None` takes as long, and no password matches: so names cannot be guessed by the time that
    /// it takes.
    ///
    /// # Errors
    /// [`Failure::Unavailable`] if too many passwords wait.
    pub async fn verify(&self, password: &str, stored: Option<&str>) -> Result<bool, Failure> {
        let password = password.to_owned();
        let stored = stored.unwrap_or(NOBODY).to_owned();
        let verified = self.stage.run(move || verify(&password, &stored)).await;
        verified.map_err(overloaded)?
    }
}

fn hash(password: &str) -> Result<String, Failure> {
    let hashed = Argon2::default().hash_password(password.as_bytes());
    Ok(hashed.map_err(Failure::internal)?.to_string())
}

fn verify(password: &str, stored: &str) -> Result<bool, Failure> {
    let hash = PasswordHash::new(stored).map_err(Failure::internal)?;
    let verified = Argon2::default().verify_password(password.as_bytes(), &hash);
    Ok(verified.is_ok())
}

fn overloaded(error: StageError) -> Failure {
    Failure::of_stage(error, "a place in the queue of log-ins")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn of_one_thread(queue_max: usize) -> Passwords {
        let settings = PasswordSettings {
            threads: 1,
            queue_max,
            ..PasswordSettings::default()
        };
        Passwords::new(&settings).expect("a stage")
    }

    #[tokio::test]
    async fn a_password_fits_what_was_made_of_it() {
        let passwords = of_one_thread(8);
        let stored = passwords.hash("a long password").await.expect("hashed");
        assert!(stored.starts_with("$argon2id$"), "{stored}");
        let fits = async |password: &str, stored| {
            let verified = passwords.verify(password, stored).await;
            verified.expect("verified")
        };
        assert!(fits("a long password", Some(&stored)).await);
        assert!(!fits("a long passworD", Some(&stored)).await);
        assert!(!fits("", None).await);
    }

    #[test]
    fn nobody_costs_as_much_as_somebody() {
        let cost = |stored: &str| {
            let hash = PasswordHash::new(stored).expect("it is a PHC string");
            hash.params.to_string()
        };
        assert_eq!(cost(NOBODY), cost(&hash("x").expect("hashed")));
    }

    #[tokio::test]
    async fn who_finds_the_queue_full_is_told_when_to_come_again() {
        let passwords = of_one_thread(1);
        let (begun, has_begun) = mpsc::channel();
        let (end, is_to_end) = mpsc::channel::<()>();
        let running = passwords.stage.run(move || {
            begun.send(()).expect("the test waits");
            let _ = is_to_end.recv();
        });
        has_begun.recv().expect("the stage has a thread");
        let waiting = passwords.stage.run(|| ());
        let refused = passwords.hash("one too many").await;
        let Err(Failure::Unavailable { what, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert!(what.contains("log-ins"), "{what}");
        drop(end);
        running.await.expect("it ends");
        waiting.await.expect("it had a place");
    }
}
