use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use social::model::{Effects, Outcome, TaskKind};
use social::store::Store;

use super::sample::{NOTHING, claim, in_seconds, keys, now, task, user};

const LEASE: Duration = Duration::from_mins(1);

pub(crate) async fn a_task_is_kept_as_it_was_added(store: Arc<dyn Store>) {
    let new = task("1", TaskKind::Webhook, now());
    let effects = Effects {
        events: Vec::new(),
        tasks: vec![new.clone()],
    };
    let before = now();
    store
        .insert_user(&user("ada"), effects)
        .await
        .expect("added");
    let tasks = claim(&*store, TaskKind::Webhook, in_seconds(1)).await;
    assert_eq!(keys(&tasks), ["1"]);
    assert_eq!(tasks[0].kind, TaskKind::Webhook);
    assert_eq!(tasks[0].payload, new.payload);
    assert_eq!(tasks[0].attempts, 1);
    assert!(tasks[0].added_at >= before && tasks[0].added_at <= in_seconds(1));
}

pub(crate) async fn a_key_is_used_once_for_ever(store: Arc<dyn Store>) {
    let new = || {
        vec![
            task("1", TaskKind::Mail, now()),
            task("1", TaskKind::Mail, now()),
        ]
    };
    let adds = join_all((0..10).map(|_| store.add_tasks(new()))).await;
    assert!(adds.iter().all(Result::is_ok), "{adds:?}");
    let tasks = claim(&*store, TaskKind::Mail, in_seconds(1)).await;
    assert_eq!(keys(&tasks), ["1"]);
    store.add_tasks(new()).await.expect("added already");
    assert_eq!(
        claim(&*store, TaskKind::Mail, in_seconds(1)).await,
        [],
        "it is claimed"
    );

    store
        .settle_task(&tasks[0], Outcome::Done)
        .await
        .expect("settled");
    store.add_tasks(new()).await.expect("done already");
    store
        .add_tasks(vec![task("1", TaskKind::Push, now())])
        .await
        .expect("done already");
    for kind in [TaskKind::Mail, TaskKind::Push] {
        assert_eq!(store.next_task(kind).await.expect("an outbox"), None);
        assert_eq!(claim(&*store, kind, in_seconds(1_000)).await, []);
    }
}

pub(crate) async fn the_longest_due_is_claimed_first(store: Arc<dyn Store>) {
    let due = [("c", -10), ("a", -30), ("d", 0), ("b", -20)];
    let tasks = due.map(|(key, seconds)| task(key, TaskKind::Mail, in_seconds(seconds)));
    store.add_tasks(tasks.into()).await.expect("added");
    let claim = |limit| store.claim_tasks(TaskKind::Mail, in_seconds(1), LEASE, limit);
    let first = claim(3).await.expect("claimed");
    assert_eq!(keys(&first), ["a", "b", "c"]);
    assert_eq!(keys(&claim(3).await.expect("claimed")), ["d"]);
    assert_eq!(claim(3).await.expect("claimed"), []);
}

pub(crate) async fn what_is_not_due_is_not_claimed(store: Arc<dyn Store>) {
    let due = in_seconds(100);
    store
        .add_tasks(vec![task("1", TaskKind::Mail, due)])
        .await
        .expect("added");
    assert_eq!(claim(&*store, TaskKind::Mail, in_seconds(99)).await, []);
    assert_eq!(keys(&claim(&*store, TaskKind::Mail, due).await), ["1"]);
}

pub(crate) async fn a_claimed_task_comes_back_when_its_lease_is_over(store: Arc<dyn Store>) {
    let start = now();
    store
        .add_tasks(vec![task("1", TaskKind::Mail, start)])
        .await
        .expect("added");
    let claim = |now| store.claim_tasks(TaskKind::Mail, now, LEASE, 10);
    assert_eq!(claim(start).await.expect("claimed").len(), 1);
    let shortly_before = start + LEASE - Duration::from_millis(1);
    assert_eq!(claim(shortly_before).await.expect("nothing to claim"), []);
    let again = claim(start + LEASE).await.expect("claimed");
    assert_eq!(keys(&again), ["1"]);
    assert_eq!(again[0].attempts, 2);
}

pub(crate) async fn ten_claims_at_once_share_the_tasks(store: Arc<dyn Store>) {
    let new = (0..50).map(|number| task(&number.to_string(), TaskKind::Mail, now()));
    store.add_tasks(new.collect()).await.expect("added");
    let claims = (0..10).map(|_| store.claim_tasks(TaskKind::Mail, in_seconds(1), LEASE, 20));
    let mut claimed = Vec::new();
    for tasks in join_all(claims).await {
        let tasks = tasks.expect("claimed");
        assert!(tasks.len() <= 20);
        claimed.extend(tasks);
    }
    claimed.extend(claim(&*store, TaskKind::Mail, in_seconds(1)).await);
    assert!(claimed.iter().all(|task| task.attempts == 1));
    let distinct: HashSet<&str> = keys(&claimed).into_iter().collect();
    assert_eq!(
        (claimed.len(), distinct.len()),
        (50, 50),
        "each by one, none by two"
    );
}

pub(crate) async fn who_was_too_late_settles_nothing(store: Arc<dyn Store>) {
    let start = now();
    store
        .add_tasks(vec![task("1", TaskKind::Mail, start)])
        .await
        .expect("added");
    let claim = async |now| {
        let claimed = store.claim_tasks(TaskKind::Mail, now, LEASE, 10).await;
        claimed.expect("claimed").pop().expect("one is due")
    };
    let late = claim(start).await;
    let fresh = claim(start + LEASE).await;
    let outcomes = [
        Outcome::Done,
        Outcome::GaveUp("late".to_owned()),
        Outcome::Retry {
            due: start,
            error: "late".to_owned(),
        },
    ];
    let lease_ends = Some(start + LEASE + LEASE);
    for outcome in outcomes {
        store.settle_task(&late, outcome).await.expect("ignored");
        let next = store.next_task(TaskKind::Mail).await.expect("an outbox");
        assert_eq!(next, lease_ends, "somebody else has it");
    }
    store
        .settle_task(&fresh, Outcome::Done)
        .await
        .expect("settled");
    assert_eq!(
        store.next_task(TaskKind::Mail).await.expect("an outbox"),
        None
    );
    let late = Outcome::Retry {
        due: start,
        error: "late".to_owned(),
    };
    store.settle_task(&fresh, late).await.expect("ignored");
    assert_eq!(
        store.next_task(TaskKind::Mail).await.expect("an outbox"),
        None,
        "done is done"
    );
}

pub(crate) async fn a_task_is_tried_again(store: Arc<dyn Store>) {
    store
        .add_tasks(vec![task("1", TaskKind::Mail, now())])
        .await
        .expect("added");
    let tasks = claim(&*store, TaskKind::Mail, in_seconds(1)).await;
    let due = in_seconds(500);
    let retry = Outcome::Retry {
        due,
        error: "nobody there".to_owned(),
    };
    store.settle_task(&tasks[0], retry).await.expect("settled");
    assert_eq!(
        store.next_task(TaskKind::Mail).await.expect("an outbox"),
        Some(due)
    );
    assert_eq!(claim(&*store, TaskKind::Mail, in_seconds(400)).await, []);
    let again = claim(&*store, TaskKind::Mail, due).await;
    assert_eq!(again[0].attempts, 2);
    assert_eq!(again[0].payload, tasks[0].payload);
    assert_eq!(again[0].added_at, tasks[0].added_at);
}

pub(crate) async fn a_task_is_given_up(store: Arc<dyn Store>) {
    store
        .add_tasks(vec![task("1", TaskKind::Mail, now())])
        .await
        .expect("added");
    let tasks = claim(&*store, TaskKind::Mail, in_seconds(1)).await;
    let gave_up = Outcome::GaveUp("no such address".to_owned());
    store
        .settle_task(&tasks[0], gave_up)
        .await
        .expect("settled");
    assert_eq!(
        store.next_task(TaskKind::Mail).await.expect("an outbox"),
        None
    );
    assert_eq!(claim(&*store, TaskKind::Mail, in_seconds(1_000)).await, []);
    store
        .add_tasks(vec![task("1", TaskKind::Mail, now())])
        .await
        .expect("its key is used");
    assert_eq!(
        store.next_task(TaskKind::Mail).await.expect("an outbox"),
        None
    );
}

pub(crate) async fn kinds_do_not_mix(store: Arc<dyn Store>) {
    let new = TaskKind::ALL.map(|kind| task(kind.name(), kind, now()));
    store.add_tasks(new.into()).await.expect("added");
    for kind in TaskKind::ALL {
        let tasks = claim(&*store, kind, in_seconds(1)).await;
        assert_eq!(keys(&tasks), [kind.name()]);
    }
}

pub(crate) async fn the_next_task_is_known(store: Arc<dyn Store>) {
    let next = async || store.next_task(TaskKind::Mail).await.expect("an outbox");
    assert_eq!(next().await, None);
    let (soon, later) = (in_seconds(10), in_seconds(20));
    let new = [("later", later), ("soon", soon)].map(|(key, due)| task(key, TaskKind::Mail, due));
    store.add_tasks(new.into()).await.expect("added");
    assert_eq!(next().await, Some(soon));
    let tasks = claim(&*store, TaskKind::Mail, soon).await;
    assert_eq!(next().await, Some(later), "the end of the lease is later");
    store
        .settle_task(&tasks[0], Outcome::Done)
        .await
        .expect("settled");
    let tasks = claim(&*store, TaskKind::Mail, later).await;
    assert_eq!(next().await, Some(later + LEASE));
    store
        .settle_task(&tasks[0], Outcome::Done)
        .await
        .expect("settled");
    assert_eq!(next().await, None);
}

pub(crate) async fn finished_tasks_are_pruned(store: Arc<dyn Store>) {
    let due = in_seconds(-1_000);
    let new = ["done", "gave up", "retried", "claimed"].map(|key| task(key, TaskKind::Mail, due));
    store.add_tasks(new.into()).await.expect("added");
    for task in claim(&*store, TaskKind::Mail, now()).await {
        let outcome = match task.key.as_str() {
            "done" => Outcome::Done,
            "gave up" => Outcome::GaveUp("no".to_owned()),
            "retried" => Outcome::Retry {
                due,
                error: "no".to_owned(),
            },
            _ => continue,
        };
        store.settle_task(&task, outcome).await.expect("settled");
    }
    let retention = social::store::Retention {
        tasks_for: Duration::from_secs(100),
        ..NOTHING
    };
    let known = ["done", "gave up", "retried", "claimed"];
    store
        .prune(in_seconds(50), retention)
        .await
        .expect("pruned");
    assert_eq!(
        forgotten(&*store, &known).await,
        [""; 0],
        "all are too young"
    );
    store
        .prune(in_seconds(200), retention)
        .await
        .expect("pruned");
    assert_eq!(forgotten(&*store, &known).await, ["done", "gave up"]);
}

/// Returns those of the keys that can be added once more; they are added and claimed, as a push.
async fn forgotten(store: &dyn Store, known: &[&str]) -> Vec<String> {
    let new = known.iter().map(|key| task(key, TaskKind::Push, now()));
    store.add_tasks(new.collect()).await.expect("added");
    let mut added: Vec<_> = claim(store, TaskKind::Push, in_seconds(1)).await;
    added.sort_by(|one, other| one.key.cmp(&other.key));
    added.into_iter().map(|task| task.key).collect()
}
