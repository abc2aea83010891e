use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use social::model::{Event, Head, Id, NewEvent, topic};
use social::store::{Retention, Store};

use super::sample::{event, events, in_seconds, insert_user, is_conflict, seqs, user, write};

pub(crate) async fn numbers_have_no_gaps_and_totals_are_sums(store: Arc<dyn Store>) {
    let batch = vec![
        event("/a", "1", 1),
        event("/b", "1", 10),
        event("/a", "2", 2),
    ];
    let mut written = write(&*store, batch).await;
    written.extend(write(&*store, vec![event("/a", "3", -5)]).await);
    let places: Vec<_> = written
        .iter()
        .map(|event| (event.topic.as_str(), event.seq, event.total))
        .collect();
    assert_eq!(
        places,
        [("/a", 1, 1), ("/b", 1, 10), ("/a", 2, 3), ("/a", 3, -2)]
    );
    let kept = |topic| {
        let of_topic = written.iter().filter(move |event| event.topic == topic);
        of_topic.cloned().collect::<Vec<Event>>()
    };
    for topic in ["/a", "/b"] {
        let log = store.events(topic, 0, 10).await.expect("a log");
        assert_eq!(log, kept(topic), "what is returned is what is kept");
    }
    let heads = store
        .heads(&["/a".to_owned(), "/b".to_owned()])
        .await
        .expect("heads");
    assert_eq!(heads["/a"], Head { seq: 3, total: -2 });
    assert_eq!(heads["/b"], Head { seq: 1, total: 10 });
}

pub(crate) async fn an_event_is_written_once(store: Arc<dyn Store>) {
    write(&*store, vec![event("/a", "1", 1)]).await;
    let again = vec![
        event("/a", "1", 1),
        event("/b", "1", 1),
        event("/a", "2", 1),
        event("/a", "2", 1),
    ];
    let written = write(&*store, again).await;
    let places: Vec<_> = written
        .iter()
        .map(|event| (event.topic.as_str(), event.seq, event.total))
        .collect();
    assert_eq!(places, [("/b", 1, 1), ("/a", 2, 2)]);
    let log = store.events("/a", 0, 10).await.expect("a log");
    assert_eq!(seqs(&log), [1, 2]);
}

pub(crate) async fn events_are_read_in_pages(store: Arc<dyn Store>) {
    write_numbered(&*store, "/a", 7).await;
    let page = async |after, limit| seqs(&store.events("/a", after, limit).await.expect("a log"));
    assert_eq!(page(0, 3).await, [1, 2, 3]);
    assert_eq!(page(3, 3).await, [4, 5, 6]);
    assert_eq!(page(6, 3).await, [7]);
    assert_eq!(page(7, 3).await, [0_u64; 0]);
    assert_eq!(page(u64::MAX, 3).await, [0_u64; 0], "behind the end");
    assert_eq!(page(0, 0).await, [0_u64; 0]);
}

pub(crate) async fn the_last_events_are_in_their_order(store: Arc<dyn Store>) {
    write_numbered(&*store, "/a", 7).await;
    let last = async |limit| seqs(&store.last_events("/a", limit).await.expect("a log"));
    assert_eq!(last(3).await, [5, 6, 7]);
    assert_eq!(last(100).await, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(store.last_events("/b", 3).await.expect("a log"), []);
}

pub(crate) async fn topics_without_events_have_no_head(store: Arc<dyn Store>) {
    write_numbered(&*store, "/a", 2).await;
    let topics = ["/a".to_owned(), "/b".to_owned()];
    let heads = store.heads(&topics).await.expect("heads");
    assert_eq!(heads.len(), 1);
    assert_eq!(heads["/a"], Head { seq: 2, total: 2 });
    assert!(store.heads(&[]).await.expect("heads").is_empty());
    assert_eq!(store.events("/b", 0, 10).await.expect("a log"), []);
}

pub(crate) async fn a_refused_change_writes_no_events(store: Arc<dyn Store>) {
    write_numbered(&*store, "/a", 2).await;
    insert_user(&*store, "ada").await;
    let refused = store
        .insert_user(&user("ada"), events(vec![event("/a", "refused", 1)]))
        .await;
    assert!(is_conflict(&refused), "{refused:?}");
    let next = write(&*store, vec![event("/a", "next", 1)]).await;
    assert_eq!(
        seqs(&next),
        [3],
        "no number is lost to a change that was refused"
    );
    let log = store.events("/a", 0, 10).await.expect("a log");
    assert_eq!(seqs(&log), [1, 2, 3]);
}

pub(crate) async fn a_hundred_changes_at_once_share_one_log(store: Arc<dyn Store>) {
    let changes = (0..100).map(|number| {
        let key = number.to_string();
        let new = vec![event("/a", &key, 1), event("/b", &key, -1)];
        write(&*store, new)
    });
    let mut written: Vec<Event> = join_all(changes).await.into_iter().flatten().collect();
    written.sort_by_key(|event| (event.topic.clone(), event.seq));
    let (first, second) = written.split_at(100);
    for (topic, written, sign) in [("/a", first, 1), ("/b", second, -1)] {
        assert_eq!(seqs(written), (1..=100).collect::<Vec<u64>>());
        let log = store.events(topic, 0, 200).await.expect("a log");
        assert_eq!(log, written);
        let totals: Vec<i64> = log.iter().map(|event| event.total).collect();
        assert_eq!(
            totals,
            (1..=100).map(|total| total * sign).collect::<Vec<i64>>()
        );
    }
}

/// Retention of events in these tests.
const EVENTS_FOR: Duration = Duration::from_secs(100);

fn keeping(events_max: u64) -> Retention {
    Retention {
        events_max,
        events_for: EVENTS_FOR,
        tasks_for: Duration::ZERO,
    }
}

pub(crate) async fn old_events_are_pruned(store: Arc<dyn Store>) {
    write_numbered(&*store, "/long", 7).await;
    write_numbered(&*store, "/short", 2).await;
    let has_more = store
        .prune(in_seconds(200), keeping(3))
        .await
        .expect("pruned");
    assert!(!has_more);

    let after = async |after| seqs(&store.events("/long", after, 10).await.expect("a log"));
    assert_eq!(
        after(0).await,
        [5, 6, 7],
        "a reader who has seen none sees the gap"
    );
    assert_eq!(after(5).await, [6, 7]);
    let last = store.last_events("/long", 10).await.expect("a log");
    assert_eq!(seqs(&last), [5, 6, 7]);
    let short = store.events("/short", 0, 10).await.expect("a log");
    assert_eq!(seqs(&short), [1, 2], "there are not too many");

    store
        .prune(in_seconds(200), keeping(0))
        .await
        .expect("pruned");
    assert_eq!(after(0).await, [0_u64; 0]);
    let topic = "/long".to_owned();
    let heads = store
        .heads(std::slice::from_ref(&topic))
        .await
        .expect("heads");
    assert_eq!(
        heads[&topic],
        Head { seq: 7, total: 7 },
        "the count outlives its events"
    );
    let next = write(&*store, vec![event("/long", "next", 1)]).await;
    assert_eq!((next[0].seq, next[0].total), (8, 8));
    assert_eq!(after(0).await, [8]);
}

pub(crate) async fn young_events_are_not_pruned(store: Arc<dyn Store>) {
    write_numbered(&*store, topic::TIMELINE, 7).await;
    store
        .prune(in_seconds(50), keeping(3))
        .await
        .expect("pruned");
    let log = store.events(topic::TIMELINE, 0, 10).await.expect("a log");
    assert_eq!(log.len(), 7);
}

async fn write_numbered(store: &dyn Store, topic: &str, count: u32) {
    let new = (1..=count).map(|number| event(topic, &number.to_string(), 1));
    let written = write(store, new.collect()).await;
    assert_eq!(seqs(&written), (1..=u64::from(count)).collect::<Vec<u64>>());
}

pub(crate) async fn an_event_is_blanked_alone(store: Arc<dyn Store>) {
    write(&*store, vec![event("/a", "1", 1), event("/a", "2", 1)]).await;
    for (key, is_there) in [("1", true), ("2", true), ("3", false)] {
        let known = store.has_event("/a", key).await;
        assert_eq!(known.expect("asked"), is_there, "{key}");
    }
    assert!(!store.has_event("/b", "1").await.expect("asked"));
    store.blank_event("/a", "1").await.expect("blanked");
    store
        .blank_event("/a", "3")
        .await
        .expect("nothing to blank");
    let log = store.events("/a", 0, 10).await.expect("a log");
    let bodies: Vec<_> = log.iter().map(|event| event.body.to_string()).collect();
    assert_eq!(bodies, [r#"{"gone":true}"#, r#"{"key":"2"}"#]);
    assert!(store.has_event("/a", "1").await.expect("asked"));
}

pub(crate) async fn rings_are_found_by_who_has_rung(store: Arc<dyn Store>) {
    let (ada, grace) = (
        insert_user(&*store, "ada").await,
        insert_user(&*store, "grace").await,
    );
    let ring = |topic: String, key: &str, body| NewEvent {
        topic,
        key: key.to_owned(),
        delta: 1,
        body,
    };
    let (hers, another) = (topic::bell(grace.id), topic::bell(Id::new()));
    let rings = vec![
        ring(hers.clone(), "one", json!({"kind": "like", "by": "ada"})),
        ring(hers.clone(), "two", json!({"kind": "like", "by": "adam"})),
        ring(
            hers.clone(),
            "three",
            json!({"kind": "like", "text": "\"by\":\"ada\""}),
        ),
        ring(
            another.clone(),
            "four",
            json!({"by": "ada", "kind": "comment"}),
        ),
        ring(topic::likes(Id::new()), "five", json!({"by": "ada"})),
    ];
    write(&*store, rings).await;
    let found = async |limit| {
        let mut found = store.rings_by(ada.id, limit).await.expect("rings");
        found.sort_by(|one, other| one.1.cmp(&other.1));
        found
    };
    let both = [
        (another, "four".to_owned()),
        (hers.clone(), "one".to_owned()),
    ];
    assert_eq!(found(10).await, both);
    assert_eq!(found(1).await.len(), 1);
    store.blank_event(&hers, "one").await.expect("blanked");
    assert_eq!(found(10).await, both[..1]);
    assert!(store.delete_user(ada.id).await.expect("deleted"));
    assert_eq!(
        found(10).await,
        both[..1],
        "its name is known until it is purged"
    );
}
