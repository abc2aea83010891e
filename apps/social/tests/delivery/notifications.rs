//! Web Push and webhooks, as browsers and programs get them.

use std::time::Duration;

use axum::http::StatusCode;
use jiff::SignedDuration;
use social::model::{Picture, PushSubscription, Session, TaskKind, User, UserChange};
use url::Url;

use crate::fakes::Behaviour;
use crate::fakes::push_service::PushService;
use crate::fakes::webhook::Webhook;
use crate::fixture::Fixture;
use crate::wait::found;

async fn picture(fixture: &Fixture) -> (User, Picture) {
    let user = fixture.user("ada").await;
    let album = fixture.album(&user).await;
    let picture = fixture.picture(&album, "The sea").await;
    (user, picture)
}

async fn set_webhook(fixture: &Fixture, user: &User, webhook: Url) {
    let change = UserChange {
        webhook: Some(Some(webhook)),
        ..UserChange::default()
    };
    fixture
        .store
        .update_user(user.id, change)
        .await
        .expect("the storage is there");
}

async fn subscribe(fixture: &Fixture, service: &PushService, browsers: &[&str], user: &User) {
    for browser in browsers {
        let subscription = service.subscribe(browser, user.id);
        fixture
            .store
            .insert_push(&subscription)
            .await
            .expect("the storage is there");
    }
}

#[tokio::test]
async fn each_browser_gets_what_it_can_decrypt() {
    let (fixture, service) = (Fixture::open().await, PushService::start());
    let replica = fixture.replica();
    let (ada, picture) = picture(&fixture).await;
    subscribe(&fixture, &service, &["laptop", "phone"], &ada).await;
    fixture
        .ring(&picture, "like", "bob", &[TaskKind::Push])
        .await;
    fixture.done(&replica, TaskKind::Push).await;

    let mut messages = service.messages.all();
    messages.sort_by(|one, other| one.to.cmp(&other.to));
    let to: Vec<_> = messages.iter().map(|message| message.to.as_str()).collect();
    assert_eq!(to, ["laptop", "phone"]);
    assert_eq!(messages[0].text["title"], "bob likes your picture");
    assert_eq!(messages[0].text["body"], "The sea");
    assert_eq!(
        messages[0].text["url"],
        format!("http://127.0.0.1:5001/pictures/{}", picture.id)
    );
    assert_eq!(messages[0].ttl, 86_400);
    assert_eq!(
        Some(messages[0].signed_with.as_str()),
        replica.outbox.push_key()
    );
}

#[tokio::test]
async fn a_browser_that_fails_is_tried_again_and_no_other() {
    let (fixture, service) = (Fixture::open().await, PushService::start());
    let replica = fixture.replica();
    let (ada, picture) = picture(&fixture).await;
    subscribe(&fixture, &service, &["laptop", "phone"], &ada).await;
    service.set_behaviour(
        "phone",
        Behaviour::Fails(StatusCode::INTERNAL_SERVER_ERROR, None),
    );
    fixture
        .ring(&picture, "comment", "bob", &[TaskKind::Push])
        .await;
    replica.outbox.wake(TaskKind::Push);
    service.messages.at_least(2).await;
    service.set_behaviour("phone", Behaviour::Responds);
    fixture.done(&replica, TaskKind::Push).await;
    let count = |name| {
        service
            .messages
            .all()
            .iter()
            .filter(|message| message.to == name)
            .count()
    };
    assert_eq!((count("laptop"), count("phone")), (1, 2));
}

#[tokio::test]
async fn a_browser_that_is_gone_is_forgotten() {
    let (fixture, service) = (Fixture::open().await, PushService::start());
    let replica = fixture.replica();
    let (ada, picture) = picture(&fixture).await;
    subscribe(&fixture, &service, &["laptop", "phone"], &ada).await;
    service.set_behaviour("phone", Behaviour::Fails(StatusCode::GONE, None));
    fixture
        .ring(&picture, "like", "bob", &[TaskKind::Push])
        .await;
    fixture.done(&replica, TaskKind::Push).await;
    let left = fixture
        .store
        .pushes(ada.id)
        .await
        .expect("the storage is there");
    let left: Vec<_> = left.into_iter().map(|browser| browser.endpoint).collect();
    assert_eq!(left, [service.endpoint("laptop")]);
}

/// It may be a browser that somebody else uses now.
#[tokio::test]
async fn a_browser_whose_session_has_ended_by_itself_is_forgotten() {
    let (fixture, service) = (Fixture::open().await, PushService::start());
    let replica = fixture.replica();
    let (ada, picture) = picture(&fixture).await;
    for (name, seconds) in [("library", 60), ("laptop", 3_600)] {
        let session = Session {
            token_hash: format!("of the {name}"),
            user: ada.id,
            csrf: String::new(),
            expires_at: fixture.now() + SignedDuration::from_secs(seconds),
            generation: ada.generation,
        };
        let browser = PushSubscription {
            session: Some(session.token_hash.clone()),
            ..service.subscribe(name, ada.id)
        };
        let store = &fixture.store;
        store.insert_session(&session).await.expect("it is there");
        store.insert_push(&browser).await.expect("it is there");
    }
    fixture.advance(Duration::from_mins(2));
    fixture
        .ring(&picture, "like", "bob", &[TaskKind::Push])
        .await;
    fixture.done(&replica, TaskKind::Push).await;
    let told = service.messages.all();
    let to: Vec<_> = told.iter().map(|message| message.to.as_str()).collect();
    assert_eq!(to, ["laptop"]);
    let left = fixture.store.pushes(ada.id).await.expect("it is there");
    assert_eq!(left.len(), 1);
}

#[tokio::test]
async fn a_push_service_is_left_alone_as_long_as_it_asks() {
    let (fixture, service) = (Fixture::open().await, PushService::start());
    let replica = fixture.replica();
    let (ada, picture) = picture(&fixture).await;
    subscribe(&fixture, &service, &["phone"], &ada).await;
    service.set_behaviour(
        "phone",
        Behaviour::Fails(StatusCode::TOO_MANY_REQUESTS, Some(1_800)),
    );
    fixture
        .ring(&picture, "like", "bob", &[TaskKind::Push])
        .await;
    replica.outbox.wake(TaskKind::Push);
    service.messages.at_least(1).await;
    let wait = settled_until(&fixture, TaskKind::Push).await;
    assert!((1_700..=1_800).contains(&wait.as_secs()), "{wait}");
    service.set_behaviour("phone", Behaviour::Responds);
    fixture.advance(Duration::from_mins(30));
    fixture.done(&replica, TaskKind::Push).await;
    assert_eq!(service.messages.count(), 2);
}

/// Returns the time until the next try, as soon as that is more than a lease.
async fn settled_until(fixture: &Fixture, kind: TaskKind) -> SignedDuration {
    found(async || {
        let due = fixture.store.next_task(kind).await;
        let due = due.expect("the storage is there").expect("it is not done");
        let wait = due.duration_since(fixture.now());
        (wait.as_secs() > 60).then_some(wait)
    })
    .await
}

#[tokio::test]
async fn a_webhook_is_told_until_it_takes_it() {
    let (fixture, program) = (Fixture::open().await, Webhook::start());
    let replica = fixture.replica();
    let (ada, picture) = picture(&fixture).await;
    set_webhook(&fixture, &ada, program.url()).await;
    program
        .behaviour
        .set(Behaviour::Fails(StatusCode::BAD_GATEWAY, None));
    fixture
        .ring(&picture, "comment", "bob", &[TaskKind::Webhook])
        .await;
    replica.outbox.wake(TaskKind::Webhook);
    program.posted.at_least(1).await;
    program.behaviour.set(Behaviour::Responds);
    fixture.done(&replica, TaskKind::Webhook).await;
    let posted = program.posted.all();
    assert_eq!(posted.len(), 2);
    assert_eq!(posted[0], posted[1], "it can tell that they are the same");
    assert_eq!(posted[0]["kind"], "comment");
    assert_eq!(posted[0]["by"], "bob");
    assert_eq!(posted[0]["picture"], picture.id.to_string());
}

#[tokio::test]
async fn a_webhook_that_is_gone_is_not_told_again() {
    let (fixture, program) = (Fixture::open().await, Webhook::start());
    let replica = fixture.replica();
    let (ada, picture) = picture(&fixture).await;
    set_webhook(&fixture, &ada, program.url()).await;
    program
        .behaviour
        .set(Behaviour::Fails(StatusCode::GONE, None));
    fixture
        .ring(&picture, "like", "bob", &[TaskKind::Webhook])
        .await;
    fixture.done(&replica, TaskKind::Webhook).await;
    assert_eq!(program.posted.count(), 1);
}

#[tokio::test]
async fn a_webhook_that_hangs_does_not_hold_up_others() {
    let (mut fixture, program, slow) = (Fixture::open().await, Webhook::start(), Webhook::start());
    fixture.settings.webhook.timeout = Duration::from_secs(30);
    let replica = fixture.replica();
    let (ada, picture) = picture(&fixture).await;
    set_webhook(&fixture, &ada, slow.url()).await;
    slow.behaviour.set(Behaviour::Hangs);
    fixture
        .ring(&picture, "like", "bob", &[TaskKind::Webhook])
        .await;
    replica.outbox.wake(TaskKind::Webhook);
    slow.posted.at_least(1).await;
    set_webhook(&fixture, &ada, program.url()).await;
    fixture
        .ring(&picture, "comment", "bob", &[TaskKind::Webhook])
        .await;
    replica.outbox.wake(TaskKind::Webhook);
    program.posted.at_least(1).await;
    assert_eq!(slow.posted.count(), 1);
}

#[tokio::test]
async fn many_webhooks_of_a_user_that_hang_do_not_hold_up_those_of_others() {
    let (mut fixture, program, slow) = (Fixture::open().await, Webhook::start(), Webhook::start());
    fixture.settings.webhook.timeout = Duration::from_secs(30);
    let replica = fixture.replica();
    let (ada, hers) = picture(&fixture).await;
    let bob = fixture.user("bob").await;
    let his = fixture.picture(&fixture.album(&bob).await, "").await;
    set_webhook(&fixture, &ada, slow.url()).await;
    set_webhook(&fixture, &bob, program.url()).await;
    slow.behaviour.set(Behaviour::Hangs);
    // As many as a replica does at a time, and some more.
    for number in 0..20 {
        let by = format!("fan{number}");
        fixture.ring(&hers, "like", &by, &[TaskKind::Webhook]).await;
    }
    replica.outbox.wake(TaskKind::Webhook);
    slow.posted.at_least(4).await;
    fixture
        .ring(&his, "like", "eve", &[TaskKind::Webhook])
        .await;
    replica.outbox.wake(TaskKind::Webhook);
    program.posted.at_least(1).await;
    assert_eq!(slow.posted.count(), 4, "a quarter of the places");
}

/// The addresses are rejected before a connection: nothing arrives, and there is no retry.
#[tokio::test]
async fn nothing_is_sent_to_private_addresses() {
    let (mut fixture, program, service) = (
        Fixture::open().await,
        Webhook::start(),
        PushService::start(),
    );
    fixture.settings.webhook.allow_private = false;
    fixture.settings.push.allow_private = false;
    let replica = fixture.replica();
    let (ada, picture) = picture(&fixture).await;
    subscribe(&fixture, &service, &["phone"], &ada).await;
    fixture
        .ring(&picture, "like", "bob", &[TaskKind::Push])
        .await;
    fixture.done(&replica, TaskKind::Push).await;
    let port = program.url().port().expect("it has one");
    let hosts = [
        "http://127.0.0.1",
        "https://127.0.0.1",
        "https://localhost",
        "https://[::1]",
    ];
    for (number, host) in hosts.into_iter().enumerate() {
        let webhook = format!("{host}:{port}/hook").parse().expect("it is a URL");
        set_webhook(&fixture, &ada, webhook).await;
        let begin = fixture.now();
        fixture
            .ring(
                &picture,
                "comment",
                &format!("bob{number}"),
                &[TaskKind::Webhook],
            )
            .await;
        fixture.done(&replica, TaskKind::Webhook).await;
        let took = fixture.now().duration_since(begin);
        assert!(took.as_secs() < 3_600, "{host} was given up at once");
    }
    assert_eq!((program.posted.count(), service.messages.count()), (0, 0));
}
