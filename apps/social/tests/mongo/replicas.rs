//! Several storages that use the same database at once.

use std::sync::Arc;

use futures_util::future::join_all;
use mongodb::bson::Document;
use social::model::{Effects, Head, Id, TaskKind, topic};
use social::store::Store;

use crate::kit::ferretdb::FerretDb;
use crate::sample::{claim, in_seconds, insert_picture, like_effects, now, seqs, task};
use crate::{open, raw};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn likes_of_two_replicas_share_one_log() {
    let server = FerretDb::start().await;
    let replicas = [
        open(&server.patient_url("social")).await,
        open(&server.patient_url("social")).await,
    ];
    let (_, _, picture) = insert_picture(&*replicas[0]).await;
    let fans: Vec<Id> = (0..30).map(|_| Id::new()).collect();
    let likes = fans
        .iter()
        .flat_map(|fan| replicas.iter().map(|store| (*fan, store)));
    let likes = likes.map(async |(fan, store)| {
        store
            .set_like(picture.id, fan, true, like_effects(&picture, true))
            .await
    });
    let changes = join_all(likes).await.into_iter();
    let done = changes
        .filter(|change| change.as_ref().expect("liked").changed)
        .count();
    assert_eq!(done, 30, "each fan asked both replicas");

    let ends = replicas.iter().map(async |store| {
        let fan = fans[0];
        store
            .set_like(picture.id, fan, false, like_effects(&picture, false))
            .await
    });
    let ended = join_all(ends).await.into_iter();
    assert_eq!(
        ended
            .filter(|change| change.as_ref().expect("it ends").changed)
            .count(),
        1
    );

    let log = replicas[1]
        .events(&topic::likes(picture.id), 0, 100)
        .await
        .expect("a log");
    assert_eq!(seqs(&log), (1..=31).collect::<Vec<u64>>());
    let totals: Vec<i64> = log.iter().map(|event| event.total).collect();
    assert_eq!(totals, (1..=30).chain([29]).collect::<Vec<i64>>());
    let heads = replicas[0]
        .heads(&[topic::likes(picture.id), topic::bell(picture.owner.id)])
        .await;
    let heads = heads.expect("heads");
    assert_eq!(
        heads[&topic::likes(picture.id)],
        Head { seq: 31, total: 29 }
    );
    assert_eq!(heads[&topic::bell(picture.owner.id)].seq, 31);
    let tasks = claim(&*replicas[0], TaskKind::Push, in_seconds(1)).await;
    assert_eq!(tasks.len(), 31, "one for each change");
}

/// Else each deletion of an account would read all that all bells have ever rung.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bells_that_somebody_rang_are_in_an_index() {
    let server = FerretDb::start().await;
    let _store = open(&server.url("social")).await;
    let events = raw(&server).await.collection::<Document>("events");
    let indexes = events.list_index_names().await.expect("indexes");
    assert!(indexes.contains(&"body_1".to_owned()), "{indexes:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_claimed_by_one_replica() {
    let server = FerretDb::start().await;
    let replicas = [
        open(&server.patient_url("social")).await,
        open(&server.patient_url("social")).await,
    ];
    let new = (0..20).map(|number| task(&number.to_string(), TaskKind::Mail, now()));
    replicas[0].add_tasks(new.collect()).await.expect("added");
    let claims = replicas.iter().cycle().take(6);
    let claims = claims.map(|store| claim(&**store, TaskKind::Mail, in_seconds(1)));
    let claimed: Vec<_> = join_all(claims).await.into_iter().flatten().collect();
    let rest = claim(&*replicas[0], TaskKind::Mail, in_seconds(1)).await;
    let mut keys: Vec<&str> = claimed
        .iter()
        .chain(&rest)
        .map(|task| task.key.as_str())
        .collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!((claimed.len() + rest.len(), keys.len()), (20, 20));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_storage_works_on_other_loops_also_after_one_has_ended() {
    let server = FerretDb::start().await;
    let store = open(&server.patient_url("social")).await;
    let (_, _, picture) = insert_picture(&*store).await;
    for number in 1..=3 {
        let on_a_loop = {
            let store = Arc::clone(&store);
            move || like_five_times_on_a_loop_of_its_own(&*store, picture.id)
        };
        let loops = [
            tokio::task::spawn_blocking(on_a_loop.clone()),
            tokio::task::spawn_blocking(on_a_loop),
        ];
        for ended in join_all(loops).await {
            ended.expect("the loop ended well");
        }
        let likes = store.liked(Id::new(), &[picture.id]).await;
        assert_eq!(likes.expect("it responds here too"), [], "round {number}");
    }
}

fn like_five_times_on_a_loop_of_its_own(store: &dyn Store, picture: Id) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let likes = (0..5).map(|_| store.set_like(picture, Id::new(), true, Effects::default()));
    let results = runtime
        .expect("a loop can be made")
        .block_on(join_all(likes));
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}
