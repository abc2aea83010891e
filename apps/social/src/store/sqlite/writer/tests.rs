use std::sync::mpsc::channel;

use futures_util::future::join_all;
use rusqlite::params;
use tempfile::TempDir;

use super::*;
use crate::store::sqlite::database::Opened;

struct Fixture {
    writer: Writer,
    database: Database,
    _directory: TempDir,
}

fn open() -> Fixture {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let database = Database::at(&directory.path().join("test.db"));
    let opened = database.open_first().expect("an empty directory has room");
    let Opened {
        database,
        connection,
        ..
    } = opened;
    let made = connection.execute_batch("CREATE TABLE numbers (number INTEGER)");
    made.expect("good SQL");
    let stage = Stage::builder("test").build().expect("threads");
    Fixture {
        writer: Writer::start(&stage, database.clone(), connection),
        database,
        _directory: directory,
    }
}

impl Fixture {
    /// Holds writes back until all are in the queue. Returns the result of the operation that
    /// blocked the writer, which is the first of their batch, and theirs.
    async fn together<T>(&self, writes: impl Future<Output = T>) -> (Result<()>, T) {
        let (release, released) = channel::<()>();
        let (tell, holds) = oneshot::channel();
        let wait = move |_: &Connection| {
            let _ = tell.send(());
            let _ = released.recv();
            Ok(())
        };
        let queue_up = async {
            holds.await.expect("the writer runs");
            let mut writes = Box::pin(writes);
            assert!(futures_util::poll!(&mut writes).is_pending());
            drop(release);
            writes.await
        };
        tokio::join!(self.writer.write(wait), queue_up)
    }

    fn stored(&self) -> Vec<u32> {
        let connection = self.database.open_reading().expect("a reader");
        let query = connection.prepare("SELECT number FROM numbers ORDER BY number");
        let mut query = query.expect("good SQL");
        let rows = query.query_map([], |row| row.get(0)).expect("rows");
        rows.collect::<rusqlite::Result<_>>().expect("numbers")
    }
}

fn add(db: &Connection, number: u32) -> Result<()> {
    db.execute("INSERT INTO numbers VALUES (?1)", params![number])?;
    Ok(())
}

#[tokio::test]
async fn what_fails_undoes_only_itself() {
    let fixture = open();
    let write = |number, then: fn() -> Result<()>| {
        fixture
            .writer
            .write(move |db| add(db, number).and_then(|()| then()))
    };
    let writes = async {
        tokio::join!(
            write(1, || Ok(())),
            write(2, || Err(StoreError::Conflict("no"))),
            write(3, || panic!("a mistake")),
            write(4, || Ok(())),
        )
    };
    let (_, (first, refused, mistaken, last)) = fixture.together(writes).await;
    assert!(
        matches!(refused, Err(StoreError::Conflict("no"))),
        "{refused:?}"
    );
    assert!(
        matches!(mistaken, Err(StoreError::Broken(_))),
        "{mistaken:?}"
    );
    assert!(first.is_ok() && last.is_ok(), "{first:?} {last:?}");
    assert_eq!(fixture.stored(), [1, 4]);
}

#[tokio::test]
async fn a_batch_that_is_not_committed_is_undone_for_all() {
    let fixture = open();
    let roll_back = |db: &Connection| {
        db.execute_batch("ROLLBACK")?;
        Err::<(), _>(StoreError::unavailable("the disk is full"))
    };
    let writes = async {
        tokio::join!(
            fixture.writer.write(|db| add(db, 1)),
            fixture.writer.write(roll_back),
            fixture.writer.write(|db| add(db, 3)),
        )
    };
    let (_, (first, second, third)) = fixture.together(writes).await;
    assert!(
        matches!(second, Err(StoreError::Unavailable(_))),
        "{second:?}"
    );
    // On an overloaded machine they need not be one batch.
    let mut stored = Vec::new();
    for (number, result) in [(1, first), (3, third)] {
        match result {
            Ok(()) => stored.push(number),
            Err(error) => assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}"),
        }
    }
    assert_eq!(fixture.stored(), stored);
    let next = fixture.writer.write(|db| add(db, 4)).await;
    next.expect("the next batch is stored");
    stored.push(4);
    assert_eq!(fixture.stored(), stored);
}

#[tokio::test]
async fn who_finds_the_queue_full_is_refused_at_once() {
    let fixture = open();
    let writes = (0..=QUEUE_MAX).map(|_| fixture.writer.write(|db| add(db, 1)));
    let (_, results) = fixture.together(join_all(writes)).await;
    let refused: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    assert!(
        matches!(refused[..], [StoreError::Unavailable(_)]),
        "{refused:?}"
    );
    assert_eq!(fixture.stored().len(), QUEUE_MAX);
}

#[tokio::test]
async fn what_nobody_waits_for_any_more_is_not_done() {
    let fixture = open();
    let leave = async {
        let mut write = Box::pin(fixture.writer.write(|db| add(db, 1)));
        assert!(futures_util::poll!(&mut write).is_pending());
        drop(write);
        fixture.writer.write(|db| add(db, 2)).await
    };
    let (_, last) = fixture.together(leave).await;
    last.expect("stored");
    assert_eq!(fixture.stored(), [2]);
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_stalls_is_not_waited_for() {
    let fixture = open();
    let (release, released) = channel::<()>();
    let stall = move |_: &Connection| {
        let _ = released.recv();
        Ok(())
    };
    let result = fixture.writer.write(stall).await;
    drop(release);
    let Err(StoreError::Unavailable(source)) = result else {
        panic!("{result:?}");
    };
    assert!(
        source
            .to_string()
            .contains("unknown if it was stored: the disk"),
        "{source}"
    );
}
