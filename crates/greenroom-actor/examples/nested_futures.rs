//! Two database operations, one after the other, and nobody between them: user names stay unique.
//!
//! `cargo run -p greenroom-actor --example nested_futures`

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use greenroom_actor::{Actor, ActorRef, ActorSystem, messages};
use thiserror::Error;
use tokio::time::sleep;

/// A database that is asked over the network.
#[derive(Clone, Default)]
struct Database {
    ids: Arc<Mutex<HashMap<String, usize>>>,
}

#[derive(Debug, Error)]
#[error("the database takes no more")]
struct DatabaseError;

impl Database {
    const AN_OPERATION_TAKES: Duration = Duration::from_millis(5);
    const USERS_MAX: usize = 1_000;

    async fn find(&self, name: &str) -> Option<usize> {
        sleep(Self::AN_OPERATION_TAKES).await;
        let ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        ids.get(name).copied()
    }

    /// Does not look whether the name is taken.
    async fn insert(&self, name: String) -> Result<usize, DatabaseError> {
        sleep(Self::AN_OPERATION_TAKES).await;
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        if ids.len() >= Self::USERS_MAX {
            return Err(DatabaseError);
        }
        let id = ids.len() + 1;
        ids.insert(name, id);
        Ok(id)
    }
}

#[derive(Debug, Error)]
enum RegisterError {
    #[error("username exists")]
    Taken,
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

struct Users {
    database: Database,
}

impl Actor for Users {}

#[messages]
impl Users {
    /// Makes a user with a name that no other has. The mailbox waits meanwhile, so no other
    /// registration comes in between.
    #[message]
    async fn register(&mut self, name: String) -> Result<usize, RegisterError> {
        if self.database.find(&name).await.is_some() {
            return Err(RegisterError::Taken);
        }
        Ok(self.database.insert(name).await?)
    }
}

/// The response of a handler of requests: status and body.
async fn insert_unique_user(users: &ActorRef<Users>, name: &str) -> (u16, String) {
    let registered = users.register(name.to_owned()).ask();
    match registered.timeout(Duration::from_secs(2)).await {
        Ok(Ok(id)) => (201, format!("New user created with id {id}")),
        Ok(Err(RegisterError::Taken)) => (409, "Username exists!".to_owned()),
        Ok(Err(error @ RegisterError::Database(_))) => (500, error.to_string()),
        Err(error) => (503, error.to_string()),
    }
}

/// Ten requests for the same name at once.
async fn register_ten_times() -> Result<Vec<(u16, String)>, Box<dyn std::error::Error>> {
    let database = Database::default();
    let users = ActorSystem::new()?.spawn(move || Users {
        database: database.clone(),
    });
    let requests = (0..10).map(|_| insert_unique_user(&users, "ada"));
    Ok(futures_util::future::join_all(requests).await)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    for (status, body) in register_ten_times().await? {
        writeln!(io::stdout(), "{status} {body}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn of_ten_at_once_one_gets_the_name() {
        let replies = register_ten_times().await.expect("they are asked");
        let with = |status| {
            replies
                .iter()
                .filter(move |reply| reply.0 == status)
                .count()
        };
        assert_eq!((with(201), with(409)), (1, 9), "{replies:?}");
    }
}
