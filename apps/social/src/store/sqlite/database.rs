use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use rusqlite_migration::{Error as MigrationError, M, MigrationDefinitionError, Migrations};

use super::error::OpenError;
use crate::store::Result;

/// The steps that make the schema, the oldest first. One that was released never changes.
const STEPS: &[M<'static>] = &[
    M::up(include_str!("../../../migrations/sqlite/1.sql")),
    M::up(include_str!("../../../migrations/sqlite/2-pictures.sql")),
    M::up(include_str!("../../../migrations/sqlite/3-accounts.sql")),
    M::up(include_str!("../../../migrations/sqlite/4-likes.sql")),
    M::up(include_str!("../../../migrations/sqlite/5-bells.sql")),
    M::up(include_str!(
        "../../../migrations/sqlite/6-wanted-emails.sql"
    )),
];

/// The `PRAGMA application_id` of databases of this program; set by the first step.
const APPLICATION: i32 = 0x736f_6369;

/// Mode of the files: only the user of the program may read what is stored.
const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;

/// Longest wait for another process, such as `sqlite3 FILE`, that holds the database.
const BUSY_MAX: Duration = Duration::from_secs(2);

/// Prepared statements kept by each connection: all that there are.
const STATEMENTS_MAX: usize = 128;

/// A file that may be a database of this program.
#[derive(Clone, Debug)]
pub(super) struct Database {
    path: PathBuf,
}

/// A database that nobody else has open.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) database: Database,
    pub(super) connection: Connection,
    pub(super) lock: Lock,
}

/// A lock that keeps other processes from opening the database, until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Database {
    pub(super) fn at(path: &Path) -> Self {
        let path = path.to_owned();
        Self { path }
    }

    /// Creates, locks and migrates the database, and returns the connection that writes.
    pub(super) fn open_first(self) -> Result<Opened> {
        let io_error = |source| OpenError::Io {
            path: self.path.clone(),
            source,
        };
        self.make_directory().map_err(io_error)?;
        let lock = self.lock()?;
        self.make_file().map_err(io_error)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        let mut connection = self.connect(flags).map_err(|error| self.failed(error))?;
        self.check(&connection)?;
        self.migrate(&mut connection)?;
        set_up_writing(&connection).map_err(|error| self.failed(error))?;
        Ok(Opened {
            database: self,
            connection,
            lock,
        })
    }

    /// Opens another connection that writes, in place of one that failed.
    pub(super) fn open_writing(&self) -> rusqlite::Result<Connection> {
        let connection = self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        set_up_writing(&connection)?;
        Ok(connection)
    }

    /// Opens a connection that reads.
    pub(super) fn open_reading(&self) -> rusqlite::Result<Connection> {
        self.connect(OpenFlags::SQLITE_OPEN_READ_ONLY)
    }

    fn make_directory(&self) -> io::Result<()> {
        let Some(directory) = self.path.parent() else {
            return Ok(());
        };
        if directory.as_os_str().is_empty() {
            return Ok(());
        }
        DirBuilder::new()
            .recursive(true)
            .mode(DIRECTORY_MODE)
            .create(directory)
    }

    fn lock(&self) -> Result<Lock, OpenError> {
        let mut path = OsString::from(&self.path);
        path.push(".lock");
        let path = PathBuf::from(path);
        let file = make_file(&path).map_err(|source| OpenError::Io { path, source })?;
        let path = self.path.clone();
        match file.try_lock() {
            Ok(()) => Ok(Lock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse(path)),
            Err(TryLockError::Error(source)) => Err(OpenError::Io { path, source }),
        }
    }

    /// Creates the file. `SQLite` by itself would make it readable for all whom the umask allows.
    fn make_file(&self) -> io::Result<File> {
        make_file(&self.path)
    }

    fn connect(&self, flags: OpenFlags) -> rusqlite::Result<Connection> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(BUSY_MAX)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        Ok(connection)
    }

    /// Rejects a file that is no database of this program, before anything in it is touched.
    fn check(&self, connection: &Connection) -> Result<(), OpenError> {
        let sql = "SELECT application_id, (SELECT count(*) FROM sqlite_schema) FROM \
            pragma_application_id";
        let found = connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)));
        match found.map_err(|error| self.failed(error))? {
            (APPLICATION, _) | (0, 0) => Ok(()),
            _ => Err(OpenError::Foreign(self.path.clone())),
        }
    }

    fn migrate(&self, connection: &mut Connection) -> Result<(), OpenError> {
        let path = self.path.clone();
        let migrated = Migrations::from_slice(STEPS).to_latest(connection);
        migrated.map_err(|error| match error {
            MigrationError::MigrationDefinition(MigrationDefinitionError::DatabaseTooFarAhead) => {
                OpenError::Newer(path)
            }
            MigrationError::RusqliteError { err: source, .. } => OpenError::Sqlite { path, source },
            source => OpenError::Migration { path, source },
        })
    }

    fn failed(&self, source: rusqlite::Error) -> OpenError {
        let path = self.path.clone();
        match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => OpenError::NoDatabase(path),
            _ => OpenError::Sqlite { path, source },
        }
    }
}

fn make_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(FILE_MODE);
    options.open(path)
}

/// Sets up a connection: readers do not wait for the writer (WAL), and what is committed is on the
/// disk (FULL). Nothing is written beside the database and its log.
fn set_up_writing(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "cache_size", CACHE_KIB)?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_PAGES, |_| Ok(()))?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES_MAX, |_| Ok(()))
}

/// Cache of the connection that writes: 32 MiB. (A negative number is one of KiB.)
const CACHE_KIB: i64 = -32 * 1024;

/// Pages of the log at which it is copied into the database: 16 MiB.
const CHECKPOINT_PAGES: i64 = 4_096;

/// Largest size to which the log's file is truncated after it was copied: 64 MiB.
const LOG_BYTES_MAX: i64 = 64 * 1024 * 1024;

/// Reads a page from the database.
pub(super) fn touch(db: &Connection) -> Result<()> {
    let sql = "SELECT count(*) FROM sqlite_schema";
    db.prepare_cached(sql)?.query_row([], |_| Ok(()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_steps_can_be_taken() {
        Migrations::from_slice(STEPS)
            .validate()
            .expect("valid steps");
    }
}
