//! Promises of the shared storage beyond those of every storage.

mod kit;
mod mongo {
    pub(crate) mod crashes;
    pub(crate) mod faults;
    pub(crate) mod replicas;
}
#[path = "store/sample.rs"]
#[allow(dead_code, reason = "the tests of every storage use all of it")]
mod sample;

use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use futures_util::future::join_all;
use mongodb::Database;
use mongodb::bson::{Document, doc};
use social::store::{Store, mongo as adaptor};

use kit::ferretdb::FerretDb;
use url::Url;

/// Longest wait. What is waited for takes seconds; this long it takes only if it never comes.
const LONG: Duration = Duration::from_mins(2);

const POLL: Duration = Duration::from_millis(50);

async fn open(url: &Url) -> Arc<dyn Store> {
    let store = adaptor::open(url).await;
    store.expect("the server responds")
}

/// Returns another program's view of the database.
async fn raw(server: &FerretDb) -> Database {
    let client = mongodb::Client::with_uri_str(server.url("social")).await;
    client.expect("the address is right").database("social")
}

/// Waits until no change that was made is unfinished. Intents of changes that were not made stay
/// longer.
async fn wait_for_the_sweeper(database: &Database) {
    wait_for("the sweeper", async || {
        let intents = database
            .collection::<Document>("intents")
            .find(doc! {})
            .await;
        let intents: Vec<Document> = match intents {
            Ok(cursor) => cursor.try_collect().await.expect("intents"),
            Err(_) => return false,
        };
        let made = intents.iter().map(|intent| was_made(database, intent));
        !join_all(made).await.contains(&true)
    })
    .await;
}

async fn was_made(database: &Database, intent: &Document) -> bool {
    let id = intent.get_str("_id").expect("it has one");
    let primaries = ["comments", "likes", "pictures", "tombstones", "users"].map(async |name| {
        let primary = database
            .collection::<Document>(name)
            .find_one(doc! { "intent": id })
            .await;
        primary.expect("the server responds").is_some()
    });
    join_all(primaries).await.contains(&true)
}

async fn wait_for(what: &str, mut is_there: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is_there().await {
            tokio::time::sleep(POLL).await;
        }
    };
    let waited = tokio::time::timeout(LONG, waiting).await;
    assert!(waited.is_ok(), "{what} never came");
}
