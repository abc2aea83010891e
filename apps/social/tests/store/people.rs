use std::sync::Arc;

use futures_util::future::join_all;
use social::model::{
    ApiKey, Effects, Id, PushSubscription, Session, TaskKind, Ticket, TicketPurpose, User,
    UserChange, topic,
};
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
        wanted_email: Some("ada@example.org".to_owned()),
        ..UserChange::default()
    };
    ada = User {
        display: "Ada L.".to_owned(),
        wanted_email: Some("ada@example.org".to_owned()),
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

pub(crate) async fn users_are_found_by_their_address(store: Arc<dyn Store>) {
    let ada = insert_user(&*store, "ada").await;
    let twin = User {
        email: ada.email.clone(),
        ..user("twin")
    };
    let inserted = store.insert_user(&twin, Effects::default()).await;
    inserted.expect("the name is free");
    let found = async |email: &str, limit| {
        let found = store.users_by_email(email, limit).await;
        found.expect("asked")
    };
    assert_eq!(found(&ada.email, 10).await, [ada.clone(), twin]);
    assert_eq!(found(&ada.email, 1).await.len(), 1);
    let change = UserChange {
        email: Some("new@example.org".to_owned()),
        ..UserChange::default()
    };
    let changed = store.update_user(ada.id, change).await.expect("changed");
    assert_eq!(found("new@example.org", 10).await, Vec::from_iter(changed));
    assert_eq!(found("ada@example.or", 10).await, []);
}

pub(crate) async fn a_new_generation_ends_sessions(store: Arc<dyn Store>) {
    let ada = insert_user(&*store, "ada").await;
    let of_ada = |token: &str, generation| Session {
        user: ada.id,
        generation,
        ..session(token, 60)
    };
    let keep = async |session: &Session| store.insert_session(session).await.expect("kept");
    let live = async |token: &str| {
        let live = store.live_session(token, now()).await;
        live.expect("asked").map(|(_, user)| user)
    };
    keep(&of_ada("before", 0)).await;
    store
        .insert_push(&browser("1", ada.id))
        .await
        .expect("kept");
    let mut ticket = ticket("reset", 60);
    ticket.user = ada.id;
    store.insert_ticket(&ticket).await.expect("kept");
    assert_eq!(live("before").await, Some(ada.clone()));

    let change = UserChange {
        password: Some("another".to_owned()),
        ends_sessions: true,
        ..UserChange::default()
    };
    let changed = store.update_user(ada.id, change).await.expect("changed");
    let changed = changed.expect("she is there");
    assert_eq!(
        (changed.password.as_str(), changed.generation),
        ("another", 1)
    );
    assert_eq!(live("before").await, None);
    assert_eq!(store.session("before", now()).await.expect("asked"), None);
    assert_eq!(store.pushes(ada.id).await.expect("asked"), []);
    assert_eq!(store.ticket("reset", now()).await.expect("asked"), None);
    // A check of the old password from before comes too late.
    keep(&of_ada("late", 0)).await;
    assert_eq!(live("late").await, None);
    keep(&of_ada("after", 1)).await;
    assert_eq!(live("after").await, Some(changed));
}

pub(crate) async fn a_browser_goes_with_its_session(store: Arc<dyn Store>) {
    let ada = Id::new();
    let of_session = |name: &str, session: Option<&str>| PushSubscription {
        session: session.map(str::to_owned),
        ..browser(name, ada)
    };
    let kept = [of_session("1", Some("b")), of_session("2", None)];
    for browser in kept.iter().chain([&of_session("3", Some("a"))]) {
        store.insert_push(browser).await.expect("kept");
    }
    store.delete_session("a").await.expect("deleted");
    let mut left = store.pushes(ada).await.expect("browsers");
    left.sort_by(|one, other| one.endpoint.cmp(&other.endpoint));
    assert_eq!(left, kept);
}

pub(crate) async fn a_ticket_is_used_once(store: Arc<dyn Store>) {
    let ada = insert_user(&*store, "ada").await;
    let ticket = Ticket {
        user: ada.id,
        generation: ada.generation,
        ..ticket("one", 60)
    };
    store.insert_ticket(&ticket).await.expect("kept");
    let found = async |now| store.ticket("one", now).await.expect("asked");
    assert_eq!(found(now()).await.as_ref(), Some(&ticket));
    assert_eq!(found(in_seconds(61)).await, None);
    let use_up = async |password: &str, key: &str| {
        let change = UserChange {
            password: Some(password.to_owned()),
            ..UserChange::default()
        };
        let tasks = vec![task(key, TaskKind::Mail, now())];
        let changed = store.use_ticket(&ticket, change, tasks).await;
        changed.expect("asked").map(|user| user.password)
    };
    assert_eq!(use_up("first", "1").await.as_deref(), Some("first"));
    assert_eq!(found(now()).await, None);
    assert_eq!(use_up("second", "2").await, None);
    let stored = store.user(ada.id).await.expect("found");
    assert_eq!(stored.expect("she is there").password, "first");
    let tasks = sample::claim(&*store, TaskKind::Mail, in_seconds(1)).await;
    assert_eq!(sample::keys(&tasks), ["1"]);
}

pub(crate) async fn old_tickets_are_pruned(store: Arc<dyn Store>) {
    for (token, seconds) in [("old", 10), ("young", 1_000)] {
        store
            .insert_ticket(&ticket(token, seconds))
            .await
            .expect("kept");
    }
    store.prune(in_seconds(100), NOTHING).await.expect("pruned");
    for (token, is_there) in [("old", false), ("young", true)] {
        let ticket = store.ticket(token, now()).await.expect("asked");
        assert_eq!(ticket.is_some(), is_there, "{token}");
    }
}

fn ticket(token_hash: &str, seconds: i64) -> Ticket {
    Ticket {
        token_hash: token_hash.to_owned(),
        user: Id::new(),
        purpose: TicketPurpose::ResetPassword,
        email: "ada@example.org".to_owned(),
        generation: 3,
        expires_at: in_seconds(seconds),
    }
}

pub(crate) async fn a_deleted_user_is_hidden_until_nothing_is_left(store: Arc<dyn Store>) {
    let ada = user("ada");
    let bell = topic::bell(ada.id);
    let effects = sample::events(vec![event(&bell, "1", 1)]);
    store
        .insert_user(&ada, effects)
        .await
        .expect("the name is free");
    let grace = insert_user(&*store, "grace").await;
    let theirs = key(ada.id, 1);
    store.insert_key(&theirs).await.expect("kept");
    store.purge_user(ada.id).await.expect("nothing to do");
    assert!(store.delete_user(ada.id).await.expect("deleted"));
    assert!(!store.delete_user(ada.id).await.expect("gone already"));

    assert_eq!(store.user(ada.id).await.expect("asked"), None);
    assert_eq!(store.user_by_name("ada").await.expect("asked"), None);
    assert_eq!(
        store.users_by_email(&ada.email, 9).await.expect("asked"),
        []
    );
    assert_eq!(store.users(None, 9).await.expect("asked"), [grace]);
    assert_eq!(store.key(theirs.id).await.expect("asked"), None);
    let change = store.update_user(ada.id, UserChange::default()).await;
    assert_eq!(change.expect("nobody to change"), None);
    let tasks = sample::claim(&*store, TaskKind::Remove, in_seconds(1)).await;
    assert_eq!(tasks[0].key, format!("remove-user:{}", ada.id));
    assert_eq!(tasks[0].payload, serde_json::json!({"user": ada.id}));
    let again = store.insert_user(&user("ada"), Effects::default()).await;
    assert!(is_conflict(&again), "{again:?}");

    store.purge_user(ada.id).await.expect("purged");
    assert_eq!(store.events(&bell, 0, 9).await.expect("a log"), []);
    insert_user(&*store, "ada").await;
}
