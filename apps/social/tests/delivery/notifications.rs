//! Web Push and webhooks, as browsers and programs get them.

use std::time::Duration;

use axum::http::StatusCode;
use jiff::SignedDuration;
use social::model::{Picture, TaskKind, User, UserChange};
use url::Url;

use crate::fakes::Mood;
use crate::fakes::push_service::PushService;
use crate::fakes::webhook::Webhook;
use crate::office::Office;

async fn picture(office: &Office) -> (User, Picture) {
    let user = office.user("ada").await;
    let album = office.album(&user).await;
    let picture = office.picture(&album, "The sea").await;
    (user, picture)
}

async fn set_webhook(office: &Office, user: &User, webhook: Url) {
    let change = UserChange {
        webhook: Some(Some(webhook)),
        ..UserChange::default()
    };
    office
        .store
        .update_user(user.id, change)
        .await
        .expect("the storage is there");
}

async fn subscribe(office: &Office, service: &PushService, browsers: &[&str], user: &User) {
    for browser in browsers {
        let subscription = service.subscribe(browser, user.id);
        office
            .store
            .insert_push(&subscription)
            .await
            .expect("the storage is there");
    }
}

#[tokio::test]
async fn each_browser_gets_what_it_can_decrypt() {
    let (office, service) = (Office::open().await, PushService::start());
    let replica = office.replica();
    let (ada, picture) = picture(&office).await;
    subscribe(&office, &service, &["laptop", "phone"], &ada).await;
    office
        .ring(&picture, "like", "bob", &[TaskKind::Push])
        .await;
    office.done(&replica, TaskKind::Push).await;

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
    let (office, service) = (Office::open().await, PushService::start());
    let replica = office.replica();
    let (ada, picture) = picture(&office).await;
    subscribe(&office, &service, &["laptop", "phone"], &ada).await;
    service.set_mood(
        "phone",
        Mood::Fails(StatusCode::INTERNAL_SERVER_ERROR, None),
    );
    office
        .ring(&picture, "comment", "bob", &[TaskKind::Push])
        .await;
    replica.outbox.wake(TaskKind::Push);
    service.messages.at_least(2).await;
    service.set_mood("phone", Mood::Answers);
    office.done(&replica, TaskKind::Push).await;
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
    let (office, service) = (Office::open().await, PushService::start());
    let replica = office.replica();
    let (ada, picture) = picture(&office).await;
    subscribe(&office, &service, &["laptop", "phone"], &ada).await;
    service.set_mood("phone", Mood::Fails(StatusCode::GONE, None));
    office
        .ring(&picture, "like", "bob", &[TaskKind::Push])
        .await;
    office.done(&replica, TaskKind::Push).await;
    let left = office
        .store
        .pushes(ada.id)
        .await
        .expect("the storage is there");
    let left: Vec<_> = left.into_iter().map(|browser| browser.endpoint).collect();
    assert_eq!(left, [service.endpoint("laptop")]);
}

#[tokio::test]
async fn a_push_service_is_left_alone_as_long_as_it_asks() {
    let (office, service) = (Office::open().await, PushService::start());
    let replica = office.replica();
    let (ada, picture) = picture(&office).await;
    subscribe(&office, &service, &["phone"], &ada).await;
    service.set_mood(
        "phone",
        Mood::Fails(StatusCode::TOO_MANY_REQUESTS, Some(1_800)),
    );
    office
        .ring(&picture, "like", "bob", &[TaskKind::Push])
        .await;
    replica.outbox.wake(TaskKind::Push);
    service.messages.at_least(1).await;
    let wait = settled_until(&office, TaskKind::Push).await;
    assert!((1_700..=1_800).contains(&wait.as_secs()), "{wait}");
    service.set_mood("phone", Mood::Answers);
    office.advance(Duration::from_mins(30));
    office.done(&replica, TaskKind::Push).await;
    assert_eq!(service.messages.count(), 2);
}

/// Returns the time until the next try, as soon as that is more than a lease.
async fn settled_until(office: &Office, kind: TaskKind) -> SignedDuration {
    loop {
        let due = office
            .store
            .next_task(kind)
            .await
            .expect("the storage is there");
        let wait = due.expect("it is not done").duration_since(office.now());
        if wait.as_secs() > 60 {
            return wait;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_webhook_is_told_until_it_takes_it() {
    let (office, program) = (Office::open().await, Webhook::start());
    let replica = office.replica();
    let (ada, picture) = picture(&office).await;
    set_webhook(&office, &ada, program.url()).await;
    program.mood.set(Mood::Fails(StatusCode::BAD_GATEWAY, None));
    office
        .ring(&picture, "comment", "bob", &[TaskKind::Webhook])
        .await;
    replica.outbox.wake(TaskKind::Webhook);
    program.posted.at_least(1).await;
    program.mood.set(Mood::Answers);
    office.done(&replica, TaskKind::Webhook).await;
    let posted = program.posted.all();
    assert_eq!(posted.len(), 2);
    assert_eq!(posted[0], posted[1], "it can tell that they are the same");
    assert_eq!(posted[0]["kind"], "comment");
    assert_eq!(posted[0]["by"], "bob");
    assert_eq!(posted[0]["picture"], picture.id.to_string());
}

#[tokio::test]
async fn a_webhook_that_is_gone_is_not_told_again() {
    let (office, program) = (Office::open().await, Webhook::start());
    let replica = office.replica();
    let (ada, picture) = picture(&office).await;
    set_webhook(&office, &ada, program.url()).await;
    program.mood.set(Mood::Fails(StatusCode::GONE, None));
    office
        .ring(&picture, "like", "bob", &[TaskKind::Webhook])
        .await;
    office.done(&replica, TaskKind::Webhook).await;
    assert_eq!(program.posted.count(), 1);
}

#[tokio::test]
async fn a_webhook_that_hangs_does_not_hold_up_others() {
    let (mut office, program, slow) = (Office::open().await, Webhook::start(), Webhook::start());
    office.settings.webhook.timeout = Duration::from_secs(30);
    let replica = office.replica();
    let (ada, picture) = picture(&office).await;
    set_webhook(&office, &ada, slow.url()).await;
    slow.mood.set(Mood::Hangs);
    office
        .ring(&picture, "like", "bob", &[TaskKind::Webhook])
        .await;
    replica.outbox.wake(TaskKind::Webhook);
    slow.posted.at_least(1).await;
    set_webhook(&office, &ada, program.url()).await;
    office
        .ring(&picture, "comment", "bob", &[TaskKind::Webhook])
        .await;
    replica.outbox.wake(TaskKind::Webhook);
    program.posted.at_least(1).await;
    assert_eq!(slow.posted.count(), 1);
}

/// The addresses are rejected before a connection: nothing arrives, and there is no retry.
#[tokio::test]
async fn nothing_is_sent_to_private_addresses() {
    let (mut office, program, service) =
        (Office::open().await, Webhook::start(), PushService::start());
    office.settings.webhook.allow_private = false;
    office.settings.push.allow_private = false;
    let replica = office.replica();
    let (ada, picture) = picture(&office).await;
    subscribe(&office, &service, &["phone"], &ada).await;
    office
        .ring(&picture, "like", "bob", &[TaskKind::Push])
        .await;
    office.done(&replica, TaskKind::Push).await;
    let port = program.url().port().expect("it has one");
    let hosts = [
        "http://127.0.0.1",
        "https://127.0.0.1",
        "https://localhost",
        "https://[::1]",
    ];
    for (number, host) in hosts.into_iter().enumerate() {
        let webhook = format!("{host}:{port}/hook").parse().expect("it is a URL");
        set_webhook(&office, &ada, webhook).await;
        let begin = office.now();
        office
            .ring(
                &picture,
                "comment",
                &format!("bob{number}"),
                &[TaskKind::Webhook],
            )
            .await;
        office.done(&replica, TaskKind::Webhook).await;
        let took = office.now().duration_since(begin);
        assert!(took.as_secs() < 3_600, "{host} was given up at once");
    }
    assert_eq!((program.posted.count(), service.messages.count()), (0, 0));
}
