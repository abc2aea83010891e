use std::sync::Arc;

use futures_util::future::join_all;
use social::model::{ApiKey, Effects, Id, PushSubscription, Session, TaskKind, User, UserChange};
use social::store::Store;

use super::sample::{self, NOTHING, event, in_seconds, insert_user, is_conflict, now, task, user};

pub(crate) async fn users_are_found_by_identifier_and_by_name(store: Arc<dyn Store>) {
    let ada = insert_user(&*store, "ada").await;
    assert_eq!(store.user(ada.id).await.expect("found"), Some(ada.clone()));
    assert_eq!(store.user_by_name("ada").await.expect("found"), Some(ada));
    assert_eq!(store.user(Id::new()).await.expect("not found"), None);
    assert_eq!(store.user_by_name("ad").await.expect("not found"), None);
}

pub(crate) async fn names_are_unique(store: Arc<dyn Store>) {
    let ada = insert_user(&*store, "ada").await;
    let effects = Effects {
        events: vec![event("/timeline", "other", 1)],
        tasks: vec![task("other", TaskKind::Mail, now())],
    };
    let other = store.insert_user(&user("ada"), effects).await;
    assert!(is_conflict(&other), "{other:?}");
    assert_eq!(store.user_by_name("ada").await.expect("found"), Some(ada));
    let written = store.events("/timeline", 0, 10).await.expect("a log");
    assert_eq!(written, [], "effects without their cause");
    let next = store.next_task(TaskKind::Mail).await.expect("an outbox");
    assert_eq!(next, None, "effects without their cause");
}

pub(crate) async fn of_ten_users_of_one_name_at_once_one_is_added(store: Arc<dyn Store>) {
    let users: Vec<_> = (0..10).map(|_| user("ada")).collect();
    let inserts = users.iter().map(|user| {
        let effects = sample::events(vec![event("/timeline", &user.id.to_string(), 1)]);
        store.insert_user(user, effects)
    });
    let results = join_all(inserts).await;
    let added: Vec<_> = users
        .iter()
        .zip(&results)
        .filter(|(_, result)| result.is_ok())
        .map(|(user, _)| user.clone())
        .collect();
    assert_eq!(added.len(), 1, "{results:?}");
    assert_eq!(
        results.iter().filter(|result| is_conflict(result)).count(),
        9,
        "{results:?}"
    );
    assert_eq!(
        store.user_by_name("ada").await.expect("found").as_ref(),
        added.first()
    );
    assert_eq!(store.users(None, 100).await.expect("users"), added);
    let written = store.events("/timeline", 0, 100).await.expect("a log");
    assert_eq!(written.len(), 1);
}

pub(crate) async fn users_are_listed_in_pages(store: Arc<dyn Store>) {
    let mut users = Vec::new();
    for number in 0..5 {
        users.push(insert_user(&*store, &format!("user{number}")).await);
    }
    assert_eq!(store.users(None, 3).await.expect("users"), users[..3]);
    assert_eq!(
        store.users(Some(users[2].id), 3).await.expect("users"),
        users[3..]
    );
    assert_eq!(store.users(Some(users[4].id), 3).await.expect("users"), []);
}

pub(crate) async fn a_change_touches_only_what_it_names(store: Arc<dyn Store>) {
    let mut ada = insert_user(&*store, "ada").await;
    let grace = insert_user(&*store, "grace").await;
    let change = UserChange {
        about: Some("Countess".to_owned()),
        digest: Some(false),
        ..UserChange::default()
    };
    ada = User {
        about: "Countess".to_owned(),
        digest: false,
        ..ada
    };
    let changed = store.update_user(ada.id, change).await.expect("changed");
    assert_eq!(changed.as_ref(), Some(&ada));

    let change = UserChange {
        display: Some("Ada L.".to_owned()),
        webhook: Some(None),
        ..UserChange::default()
    };
    ada = User {
        display: "Ada L.".to_owned(),
        webhook: None,
        ..ada
    };
    let changed = store.update_user(ada.id, change).await.expect("changed");
    assert_eq!(changed.as_ref(), Some(&ada));

    let nothing = store.update_user(ada.id, UserChange::default()).await;
    assert_eq!(nothing.expect("left as it was").as_ref(), Some(&ada));
    assert_eq!(store.user(ada.id).await.expect("found"), Some(ada));
    assert_eq!(store.user(grace.id).await.expect("found"), Some(grace));
    let nobody = store.update_user(Id::new(), UserChange::default()).await;
    assert_eq!(nobody.expect("nobody to change"), None);
}

pub(crate) async fn what_was_seen_of_the_bell_never_goes_back(store: Arc<dyn Store>) {
    let ada = insert_user(&*store, "ada").await;
    for (seen, stored) in [(7, 7), (3, 7), (8, 8)] {
        let change = UserChange {
            bell_seen: Some(seen),
            ..UserChange::default()
        };
        let changed = store.update_user(ada.id, change).await.expect("changed");
        assert_eq!(changed.map(|user| user.bell_seen), Some(stored), "{seen}");
    }
}

pub(crate) async fn sessions_end(store: Arc<dyn Store>) {
    let session = session("a", 60);
    store.insert_session(&session).await.expect("kept");
    store
        .insert_session(&self::session("b", 60))
        .await
        .expect("kept");
    let found = |now| store.session("a", now);
    assert_eq!(found(now()).await.expect("found"), Some(session));
    assert_eq!(found(in_seconds(61)).await.expect("it has ended"), None);
    store.delete_session("a").await.expect("deleted");
    assert_eq!(found(now()).await.expect("it is gone"), None);
    store.delete_session("a").await.expect("nothing to delete");
    let other = store.session("b", now()).await.expect("found");
    assert!(other.is_some(), "another session has gone too");
}

pub(crate) async fn old_sessions_are_pruned(store: Arc<dyn Store>) {
    store
        .insert_session(&session("old", 10))
        .await
        .expect("kept");
    store
        .insert_session(&session("young", 1_000))
        .await
        .expect("kept");
    store.prune(in_seconds(100), NOTHING).await.expect("pruned");
    let old = store.session("old", now()).await.expect("no session");
    assert_eq!(
        old, None,
        "it would still be valid at this time, were it not pruned"
    );
    let young = store.session("young", now()).await.expect("a session");
    assert!(young.is_some());
}

fn session(token_hash: &str, seconds: i64) -> Session {
    Session {
        token_hash: token_hash.to_owned(),
        user: Id::new(),
        csrf: "csrf".to_owned(),
        expires_at: in_seconds(seconds),
        generation: 0,
    }
}

pub(crate) async fn keys_belong_to_their_user(store: Arc<dyn Store>) {
    let (ada, grace) = (Id::new(), Id::new());
    let keys = [key(ada, 1), key(ada, 2), key(grace, 3)];
    for key in &keys {
        store.insert_key(key).await.expect("kept");
    }
    assert_eq!(store.keys(ada).await.expect("keys"), keys[..2]);
    assert_eq!(
        store.key(keys[2].id).await.expect("found").as_ref(),
        Some(&keys[2])
    );
    let deleted = |key: &ApiKey, user| {
        let id = key.id;
        let store = Arc::clone(&store);
        async move { store.delete_key(id, user).await.expect("asked") }
    };
    assert!(!deleted(&keys[0], grace).await, "it is not hers");
    assert!(deleted(&keys[0], ada).await);
    assert!(!deleted(&keys[0], ada).await, "it is gone already");
    assert_eq!(store.key(keys[0].id).await.expect("gone"), None);
    assert_eq!(store.keys(ada).await.expect("keys"), keys[1..2]);
}

fn key(user: Id, byte: u8) -> ApiKey {
    ApiKey {
        id: Id::new(),
        user,
        name: "script".to_owned(),
        secret: vec![byte, 0, 255],
        created_at: now(),
    }
}

pub(crate) async fn a_nonce_is_used_once(store: Arc<dyn Store>) {
    let (key, other) = (Id::new(), Id::new());
    let is_first = |key, nonce| store.use_nonce(key, nonce, in_seconds(60));
    assert!(is_first(key, "1").await.expect("noted"));
    assert!(!is_first(key, "1").await.expect("noted"));
    assert!(is_first(key, "2").await.expect("noted"));
    assert!(
        is_first(other, "1").await.expect("noted"),
        "another key's nonces are its own"
    );
}

pub(crate) async fn of_ten_uses_of_a_nonce_at_once_one_is_the_first(store: Arc<dyn Store>) {
    let key = Id::new();
    let uses = (0..10).map(|_| store.use_nonce(key, "1", in_seconds(60)));
    let first = join_all(uses).await.into_iter();
    let first: Vec<_> = first
        .filter(|first| *first.as_ref().expect("noted"))
        .collect();
    assert_eq!(first.len(), 1);
}

pub(crate) async fn old_nonces_are_pruned(store: Arc<dyn Store>) {
    let key = Id::new();
    for (nonce, expires) in [("old", in_seconds(10)), ("young", in_seconds(1_000))] {
        assert!(store.use_nonce(key, nonce, expires).await.expect("noted"));
    }
    store.prune(in_seconds(100), NOTHING).await.expect("pruned");
    let is_first = |nonce| store.use_nonce(key, nonce, in_seconds(1_000));
    assert!(
        is_first("old").await.expect("noted"),
        "it was to be forgotten"
    );
    assert!(
        !is_first("young").await.expect("noted"),
        "it was not to be forgotten"
    );
}

pub(crate) async fn a_browser_is_kept_once(store: Arc<dyn Store>) {
    let (ada, grace) = (Id::new(), Id::new());
    let first = browser("1", ada);
    let second = browser("2", ada);
    for browser in [&first, &second] {
        store.insert_push(browser).await.expect("kept");
    }
    let mut kept = store.pushes(ada).await.expect("browsers");
    kept.sort_by(|one, other| one.endpoint.cmp(&other.endpoint));
    assert_eq!(kept, [first, second.clone()]);

    let moved = PushSubscription {
        auth: "new".to_owned(),
        ..browser("1", grace)
    };
    store.insert_push(&moved).await.expect("replaced");
    assert_eq!(
        store.pushes(ada).await.expect("browsers"),
        std::slice::from_ref(&second)
    );
    assert_eq!(store.pushes(grace).await.expect("browsers"), [moved]);
    store
        .delete_push(second.endpoint.as_str())
        .await
        .expect("deleted");
    assert_eq!(store.pushes(ada).await.expect("browsers"), []);
}

fn browser(name: &str, user: Id) -> PushSubscription {
    PushSubscription {
        endpoint: format!("https://push.example.org/{name}")
            .parse()
            .expect("a URL"),
        user,
        p256dh: "key".to_owned(),
        auth: "secret".to_owned(),
        session: None,
    }
}
