use std::sync::Arc;

use greenroom::Stage;
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::time::timeout;

use super::OPERATION_MAX;
use super::database::Database;
use super::error;
use crate::store::{Result, StoreError};

/// Reads at a time; each has a connection of its own.
pub(super) const READERS_MAX: usize = 4;

/// The runner of reads, on the stage.
#[derive(Debug)]
pub(super) struct Readers {
    stage: Stage,
    pool: Arc<Pool>,
}

impl Readers {
    pub(super) fn new(stage: Stage, database: Database) -> Self {
        let idle = Mutex::default();
        Self {
            stage,
            pool: Arc::new(Pool { database, idle }),
        }
    }

    pub(super) async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let pool = Arc::clone(&self.pool);
        let reading = self.stage.run(move || pool.read(query));
        let result = timeout(OPERATION_MAX, reading).await;
        result
            .map_err(|_| StoreError::unavailable("the storage did not respond in time"))?
            .map_err(error::of_stage)?
    }
}

/// The idle connections. There are never more than the stage has threads.
#[derive(Debug)]
struct Pool {
    database: Database,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    /// Runs a read. A connection that failed is closed, not used again.
    fn read<T>(&self, query: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let connection = match self.take() {
            Some(connection) => connection,
            None => self.database.open_reading()?,
        };
        let result = query(&connection)?;
        self.idle.lock().push(connection);
        Ok(result)
    }

    fn take(&self) -> Option<Connection> {
        self.idle.lock().pop()
    }
}
