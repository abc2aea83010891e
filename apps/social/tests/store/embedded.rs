//! Promises of the embedded storage beyond the common ones: files, locks, crashes, full disks.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use social::model::{Effects, Event, Head, Id, Picture, TaskKind, User, topic};
use social::store::{Store, StoreError, sqlite};

use super::sample::{
    self, NOTHING, claim, event, events, in_seconds, insert_picture, insert_user, like_effects,
    user,
};

async fn open(path: &Path) -> Arc<dyn Store> {
    sqlite::open(path)
        .await
        .expect("a database that can be opened")
}

/// Returns the error at the start of the program.
async fn open_error(path: &Path) -> String {
    let refused = sqlite::open(path).await.expect_err("it must not be opened");
    format!("{:#}", anyhow::Error::new(refused))
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory can be made")
}

#[tokio::test]
async fn what_was_stored_is_there_when_it_is_opened_again() {
    let directory = directory();
    let path = directory.path().join("made/if/need/be/social.db");
    let store = open(&path).await;
    let (owner, _, picture) = insert_picture(&*store).await;
    let like = store
        .set_like(picture.id, owner.id, true, like_effects(&picture, true))
        .await;
    let like = like.expect("liked");
    drop(store);

    let store = open(&path).await;
    assert_eq!(
        store.user_by_name("owner").await.expect("found"),
        Some(owner.clone())
    );
    assert_eq!(
        store.picture(picture.id).await.expect("found"),
        Some(picture.clone())
    );
    assert_eq!(
        store.liked(owner.id, &[picture.id]).await.expect("likes"),
        [picture.id]
    );
    let log = store
        .events(&topic::likes(picture.id), 0, 10)
        .await
        .expect("a log");
    assert_eq!(log, like.events[..1]);
    assert_eq!(claim(&*store, TaskKind::Push, in_seconds(1)).await.len(), 1);
}

#[tokio::test]
async fn only_its_user_can_read_it() {
    let directory = directory();
    let path = directory.path().join("data/social.db");
    let store = open(&path).await;
    insert_user(&*store, "ada").await;
    let mode = |path: &Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().expect("a directory")), 0o700);
    for end in ["", "-wal", "-shm", ".lock"] {
        let path = PathBuf::from(format!("{}{end}", path.display()));
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[tokio::test]
async fn it_is_open_once() {
    let directory = directory();
    let path = directory.path().join("social.db");
    let store = open(&path).await;
    let open_error = open_error(&path).await;
    assert!(
        open_error.contains("is open in another process"),
        "{open_error}"
    );
    insert_user(&*store, "ada").await;
    drop(store);
    let store = open(&path).await;
    assert!(store.user_by_name("ada").await.expect("found").is_some());
}

#[tokio::test]
async fn what_is_no_database_is_refused() {
    let directory = directory();
    let path = directory.path().join("letter.txt");
    let letter = "Dear Ada, ".repeat(1_000);
    std::fs::write(&path, &letter).expect("written");
    let open_error = open_error(&path).await;
    assert!(
        open_error.contains("letter.txt is no SQLite database"),
        "{open_error}"
    );
    let kept = std::fs::read_to_string(&path).expect("read");
    assert_eq!(kept, letter, "it is nobody's to change");
}

#[tokio::test]
async fn other_databases_are_refused() {
    let directory = directory();
    let foreign = directory.path().join("bookmarks.db");
    execute(&foreign, "CREATE TABLE bookmarks (url TEXT)");
    let error_of_foreign = open_error(&foreign).await;
    assert!(
        error_of_foreign.contains("is a database of another program"),
        "{error_of_foreign}"
    );

    let newer = directory.path().join("newer.db");
    drop(open(&newer).await);
    execute(&newer, "PRAGMA user_version = 1000");
    let error_of_newer = open_error(&newer).await;
    assert!(
        error_of_newer.contains("newer version of this program"),
        "{error_of_newer}"
    );
}

#[tokio::test]
async fn a_database_of_the_first_version_is_brought_up_to_date() {
    let directory = directory();
    let path = directory.path().join("social.db");
    execute(&path, include_str!("../../migrations/sqlite/1.sql"));
    execute(
        &path,
        "PRAGMA user_version = 1;
        INSERT INTO users VALUES (x'0198c0ffee007abc8def0123456789ab', 'ada', 'Ada',
            'Ada@Example.org', '', '', NULL, TRUE, 0, 0);
        INSERT INTO sessions VALUES
            ('hash', x'0198c0ffee007abc8def0123456789ab', 'csrf', 9000000000000000);
        INSERT INTO topics (id, name) VALUES (1, '/picture/1/likes'), (2, '/user/1/bell');
        INSERT INTO events (topic, seq, key, total, at, body) VALUES
            (1, 1, 'a', 1, 0, '{\"by\":\"ada\",\"liked\":true}'),
            (1, 2, 'b', 2, 0, '{\"by\":\"gone\",\"liked\":true}'),
            (2, 1, 'a', 1, 0, '{\"by\":\"ada\"}');",
    );
    let store = open(&path).await;
    let ada = store.user_by_name("ada").await.expect("asked");
    let ada = ada.expect("she is there still");
    assert_eq!((ada.email.as_str(), ada.generation), ("ada@example.org", 0));
    let session = store.live_session("hash", sample::now()).await;
    let (session, user) = session.expect("asked").expect("she is logged in still");
    assert_eq!((session.csrf.as_str(), &user), ("csrf", &ada));
    let by = async |topic| {
        let events = store.events(topic, 0, 9).await.expect("a log");
        let by = events.into_iter().map(|event| event.body["by"].clone());
        by.collect::<Vec<_>>()
    };
    assert_eq!(by("/picture/1/likes").await, [json!(ada.id), json!("")]);
    assert_eq!(by("/user/1/bell").await, [json!("ada")]);
}

fn execute(path: &Path, sql: &str) {
    let connection = rusqlite::Connection::open(path).expect("a database");
    connection.execute_batch(sql).expect("good SQL");
}

#[tokio::test]
async fn a_directory_is_no_database() {
    let directory = directory();
    let open_error = open_error(directory.path()).await;
    assert!(open_error.contains("cannot be opened"), "{open_error}");
}

#[tokio::test]
async fn what_fails_half_way_leaves_nothing() {
    let directory = directory();
    let store = open(&directory.path().join("social.db")).await;
    let effects = events(vec![event("/a", "1", i64::MAX), event("/a", "2", 1)]);
    let failing = user("failing");
    let fine: Vec<_> = (0..20)
        .map(|number| user(&format!("fine{number}")))
        .collect();
    let insert = |user| store.insert_user(user, Effects::default());
    let (early, late) = fine.split_at(10);
    let (early, failed, late) = tokio::join!(
        join_all(early.iter().map(insert)),
        store.insert_user(&failing, effects),
        join_all(late.iter().map(insert)),
    );
    assert!(matches!(failed, Err(StoreError::Broken(_))), "{failed:?}");
    assert!(
        early.iter().chain(&late).all(Result::is_ok),
        "{early:?} {late:?}"
    );
    assert_eq!(store.users(None, 100).await.expect("users"), fine);
    assert_eq!(store.events("/a", 0, 10).await.expect("a log"), []);
    assert!(
        store
            .heads(&["/a".to_owned()])
            .await
            .expect("heads")
            .is_empty()
    );
}

#[tokio::test]
async fn another_program_that_holds_the_database_does_not_hold_up_this_one() {
    let directory = directory();
    let path = directory.path().join("social.db");
    let store = open(&path).await;
    let ada = insert_user(&*store, "ada").await;
    let other = rusqlite::Connection::open(&path).expect("a database");
    other
        .execute_batch("BEGIN IMMEDIATE")
        .expect("nobody writes");
    let users = [user("grace"), user("hedy")];
    let inserts = users
        .iter()
        .map(|user| store.insert_user(user, Effects::default()));
    for refused in join_all(inserts).await {
        assert!(
            matches!(refused, Err(StoreError::Unavailable(_))),
            "{refused:?}"
        );
    }
    assert_eq!(
        store.users(None, 10).await.expect("users"),
        std::slice::from_ref(&ada)
    );
    other.execute_batch("ROLLBACK").expect("it has begun");
    let grace = insert_user(&*store, "grace").await;
    assert_eq!(store.users(None, 10).await.expect("users"), [ada, grace]);
}

#[tokio::test]
async fn more_is_pruned_than_goes_in_one_step() {
    const MANY: u32 = 700;
    let directory = directory();
    let store = open(&directory.path().join("social.db")).await;
    for topic in ["/a", "/b"] {
        let new = (0..MANY).map(|number| event(topic, &number.to_string(), 1));
        sample::write(&*store, new.collect()).await;
    }
    let key = Id::new();
    let nonces: Vec<String> = (0..MANY).map(|number| number.to_string()).collect();
    let uses = async || {
        join_all(
            nonces
                .iter()
                .map(|nonce| store.use_nonce(key, nonce, in_seconds(1))),
        )
        .await
    };
    assert!(uses().await.into_iter().all(|first| first.expect("noted")));
    store.prune(in_seconds(10), NOTHING).await.expect("pruned");
    for topic in ["/a", "/b"] {
        assert_eq!(store.events(topic, 0, 10).await.expect("a log"), []);
        let head = store.heads(&[topic.to_owned()]).await.expect("heads")[topic];
        assert_eq!(head.seq, u64::from(MANY));
    }
    assert!(
        uses().await.into_iter().all(|first| first.expect("noted")),
        "they are forgotten"
    );
}

#[tokio::test]
async fn who_prunes_is_told_whether_there_is_more() {
    const MANY: u32 = 10_001;
    let directory = directory();
    let store = open(&directory.path().join("social.db")).await;
    let new = (0..MANY).map(|number| event("/a", &number.to_string(), 1));
    sample::write(&*store, new.collect()).await;
    let left = async || store.events("/a", 0, 10).await.expect("a log").len();
    let prune = async || store.prune(in_seconds(10), NOTHING).await.expect("pruned");
    assert!(prune().await);
    assert_eq!(left().await, 1);
    assert!(!prune().await);
    assert_eq!(left().await, 0);
}

/// The variable with the directory in which a child process is to work.
const CHILD_DIRECTORY: &str = "SOCIAL_STORE_TEST_DIRECTORY";

/// Returns a command that runs one of the functions below in this program.
fn child(function: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args([
            &format!("store::embedded::{function}"),
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env(CHILD_DIRECTORY, directory);
    command
}

fn childs_directory() -> PathBuf {
    std::env::var_os(CHILD_DIRECTORY)
        .expect("set by the parent")
        .into()
}

/// Users who like at the same time …
const FANS_AT_ONCE: u32 = 50;

/// … and likes acknowledged before the process is killed.
const ACKNOWLEDGED_MIN: usize = 1_000;

fn fan(number: u32) -> Id {
    Id::from_bytes(u128::from(number).to_be_bytes())
}

#[tokio::test]
async fn nothing_is_lost_or_halved_when_the_process_is_killed() {
    let directory = directory();
    let path = directory.path().join("social.db");
    let store = open(&path).await;
    let (_, _, picture) = insert_picture(&*store).await;
    drop(store);
    let acknowledged = kill_while_it_likes(directory.path());

    let store = open(&path).await;
    let likes = store
        .events(&topic::likes(picture.id), 0, u32::MAX)
        .await
        .expect("a log");
    let bell = store
        .events(&topic::bell(picture.owner.id), 0, u32::MAX)
        .await
        .expect("a log");
    assert_eq!(
        sample::seqs(&likes),
        (1..=likes.len() as u64).collect::<Vec<_>>()
    );
    assert_eq!(sample::seqs(&bell), sample::seqs(&likes));
    let count = i64::try_from(likes.len()).expect("not so many");
    let head = Head {
        seq: likes.len() as u64,
        total: count,
    };
    for topic in [topic::likes(picture.id), topic::bell(picture.owner.id)] {
        let heads = store
            .heads(std::slice::from_ref(&topic))
            .await
            .expect("heads");
        assert_eq!(heads[&topic], head);
    }
    assert!(acknowledged.len() >= ACKNOWLEDGED_MIN);
    let last = *acknowledged.iter().max().expect("some");
    let fans = fans_of(&*store, &picture, last + 2 * FANS_AT_ONCE).await;
    assert_eq!(fans.len(), likes.len(), "as many likes as events");
    let tasks = store
        .claim_tasks(
            TaskKind::Push,
            in_seconds(60),
            Duration::from_secs(1),
            u32::MAX,
        )
        .await;
    assert_eq!(
        tasks.expect("claimed").len(),
        likes.len(),
        "as many tasks as events"
    );
    for number in &acknowledged {
        assert!(fans.contains(number), "{number} was told that it is stored");
    }
}

/// Runs [`likes_until_it_is_killed`]; returns the users whose likes were acknowledged.
fn kill_while_it_likes(directory: &Path) -> Vec<u32> {
    let mut command = child("likes_until_it_is_killed", directory);
    let mut child: Child = command.stdout(Stdio::piped()).spawn().expect("a child");
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut acknowledged = Vec::new();
    for line in output.lines() {
        let line = line.expect("text");
        let Some(number) = line.strip_prefix("liked ") else {
            continue;
        };
        acknowledged.push(number.parse().expect("a number"));
        if acknowledged.len() == ACKNOWLEDGED_MIN {
            child.kill().expect("killed");
        }
    }
    let status = child.wait().expect("it has ended");
    assert!(!status.success(), "it ended before it was killed: {status}");
    acknowledged
}

async fn fans_of(store: &dyn Store, picture: &Picture, until: u32) -> Vec<u32> {
    let mut fans = Vec::new();
    for number in 0..until {
        let liked = store
            .liked(fan(number), &[picture.id])
            .await
            .expect("likes");
        if !liked.is_empty() {
            fans.push(number);
        }
    }
    fans
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run as a child of a test"]
async fn likes_until_it_is_killed() {
    let store = open(&childs_directory().join("social.db")).await;
    let pictures = store
        .pictures(social::store::PicturesOf::Everybody, None, 1)
        .await;
    let picture = pictures
        .expect("pictures")
        .pop()
        .expect("the parent has added one");
    let next = Arc::new(AtomicU32::new(0));
    let fans = (0..FANS_AT_ONCE).map(|_| {
        let (store, picture, next) = (Arc::clone(&store), picture.clone(), Arc::clone(&next));
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let like = store
                    .set_like(picture.id, fan(number), true, like_effects(&picture, true))
                    .await;
                assert!(like.expect("liked").changed);
                say(&format!("liked {number}"));
            }
        })
    });
    join_all(fans).await;
}

fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}").expect("the parent reads");
}

#[test]
fn a_full_disk_is_an_error_that_passes() {
    let directory = directory();
    let inner = child("fills_its_disk", directory.path());
    let script =
        format!("mount -t tmpfs -o size=4m tmpfs \"${CHILD_DIRECTORY}\" && exec \"$0\" \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
    command
        .arg(inner.get_program())
        .args(inner.get_args())
        .env(CHILD_DIRECTORY, directory.path());
    let output = command
        .output()
        .expect("unshare, of util-linux, is installed");
    let said = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{error}");
    assert!(said.contains("1 passed"), "{said}\n{error}");
}

#[tokio::test]
#[ignore = "run as a child of a test"]
async fn fills_its_disk() {
    let directory = childs_directory();
    let ballast = directory.join("ballast");
    std::fs::write(&ballast, vec![1; 1 << 20]).expect("there is room");
    let store = open(&directory.join("social.db")).await;
    let mut stored = Vec::new();
    let refused = loop {
        let user = large_user(stored.len());
        match insert_counted(&*store, &user).await {
            Ok(_) => stored.push(user),
            Err(error) => break error,
        }
        assert!(stored.len() < 1_000, "the disk is never full");
    };
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused:?}");
    assert_users(&*store, &stored).await;

    let next = large_user(stored.len());
    let refused = insert_counted(&*store, &next).await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    std::fs::remove_file(&ballast).expect("removed");
    insert_counted(&*store, &next)
        .await
        .expect("there is room again");
    stored.push(next);
    assert_users(&*store, &stored).await;
    drop(store);
    assert_users(&*open(&directory.join("social.db")).await, &stored).await;
}

fn large_user(number: usize) -> User {
    User {
        about: "ä".repeat(30_000),
        ..user(&format!("user{number}"))
    }
}

/// Adds a user and an event that counts them.
async fn insert_counted(store: &dyn Store, user: &User) -> Result<Vec<Event>, StoreError> {
    let effects = events(vec![event("/users", &user.name, 1)]);
    store.insert_user(user, effects).await
}

async fn assert_users(store: &dyn Store, stored: &[User]) {
    assert!(!stored.is_empty());
    assert_eq!(store.users(None, 10_000).await.expect("users"), stored);
    let heads = store.heads(&["/users".to_owned()]).await.expect("heads");
    assert_eq!(heads["/users"].seq, stored.len() as u64);
}
