//! Mails, as they arrive at a real server.

use std::time::Duration;

use greenroom::actor::{ActorSystem, Dispatcher};
use greenroom::bus::Bus;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde_json::json;
use social::feed::Feed;
use social::model::{TaskKind, User, UserChange};
use social::outbox::Outbox;

use crate::fixture::Fixture;
use crate::smtp::{Mail, SmtpSink, distinct};
use crate::wait::until;

async fn welcome(fixture: &Fixture, name: &str) -> User {
    let user = fixture.unconfirmed(name).await;
    let key = format!("welcome:{}", user.id);
    fixture
        .add(
            &key,
            TaskKind::Mail,
            json!({"mail": "welcome", "user": user.id}),
        )
        .await;
    user
}

async fn fixture(sink: &SmtpSink) -> Fixture {
    let mut fixture = Fixture::open().await;
    fixture.settings.smtp = Some(sink.url());
    fixture
}

#[tokio::test]
async fn who_signs_up_is_welcomed_once() {
    let sink = SmtpSink::start();
    let fixture = fixture(&sink).await;
    let ada = welcome(&fixture, "ada").await;
    let (one, other) = (fixture.replica(), fixture.replica());
    one.outbox.wake(TaskKind::Mail);
    other.outbox.wake(TaskKind::Mail);
    fixture.done(&one, TaskKind::Mail).await;
    // The same again, as after a crash: the key is known.
    let key = format!("welcome:{}", ada.id);
    fixture
        .add(
            &key,
            TaskKind::Mail,
            json!({"mail": "welcome", "user": ada.id}),
        )
        .await;
    fixture.done(&one, TaskKind::Mail).await;
    let mails = sink.mails();
    assert_eq!(mails.len(), 1);
    assert_eq!(mails[0].to, ["ada@example.org"]);
    assert_eq!(mails[0].headers["subject"], "Welcome to Greenroom social");
    assert_eq!(
        mails[0].headers["from"],
        "Greenroom social <social@localhost>"
    );
    assert_eq!(mails[0].text.lines().next(), Some("Hello ada,"));
    assert!(
        mails[0].html.contains("<strong>ada</strong>"),
        "{}",
        mails[0].html
    );
    assert!(mails[0].headers.contains_key("date"));
}

#[tokio::test]
async fn mails_wait_for_a_server_that_is_away() {
    let mut sink = SmtpSink::start();
    sink.kill();
    let fixture = fixture(&sink).await;
    let replica = fixture.replica();
    welcome(&fixture, "ada").await;
    replica.outbox.wake(TaskKind::Mail);
    failed_once(&fixture).await;
    assert_eq!(sink.mails().len(), 0);
    sink.restart();
    fixture.done(&replica, TaskKind::Mail).await;
    assert_eq!(sink.mails().len(), 1);
}

/// Whoever took an account over would change its address twice.
#[tokio::test]
async fn every_former_address_is_notified_whatever_came_after() {
    let sink = SmtpSink::start();
    let fixture = fixture(&sink).await;
    let ada = fixture.user("ada").await;
    let change = UserChange {
        email: Some("third@example.org".to_owned()),
        ..UserChange::default()
    };
    let changed = fixture.store.update_user(ada.id, change).await;
    changed.expect("the storage is there");
    for (from, to) in [
        ("ada@example.org", "second@example.org"),
        ("second@example.org", "third@example.org"),
    ] {
        let payload = json!({"mail": "moved", "user": ada.id, "from": from, "to": to});
        fixture.add(from, TaskKind::Mail, payload).await;
    }
    // Long after the changes.
    fixture.advance(Duration::from_mins(5));
    let replica = fixture.replica();
    replica.outbox.wake(TaskKind::Mail);
    fixture.done(&replica, TaskKind::Mail).await;
    let mails = sink.mails();
    let mut notified: Vec<_> = mails.iter().flat_map(|mail| &mail.to).collect();
    notified.sort();
    assert_eq!(notified, ["ada@example.org", "second@example.org"]);
}

/// Waits until the first try was recorded as failed: the next one is due later, but before a lease
/// would end.
async fn failed_once(fixture: &Fixture) {
    until(async || {
        let due = fixture.store.next_task(TaskKind::Mail).await;
        let due = due.expect("the storage is there").expect("it is not done");
        let wait = due.duration_since(fixture.now());
        wait.is_positive() && wait.as_secs() < 50
    })
    .await;
}

/// The server accepts connections, and sends nothing.
#[tokio::test]
async fn a_server_that_hangs_is_not_waited_for() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = silent.local_addr().expect("it is bound");
    let mut fixture = Fixture::open().await;
    fixture.settings.smtp = Some(format!("smtp://{address}").parse().expect("it is a URL"));
    fixture.settings.mail.timeout = Duration::from_millis(100);
    let replica = fixture.replica();
    welcome(&fixture, "ada").await;
    replica.outbox.wake(TaskKind::Mail);
    failed_once(&fixture).await;
}

#[tokio::test]
async fn who_waits_for_longer_than_a_try_lasts_is_told_at_the_start() {
    let mut fixture = Fixture::open().await;
    fixture.settings.mail.timeout = Duration::from_mins(1);
    let system = ActorSystem::builder()
        .dispatcher("actors", Dispatcher::pool(1))
        .build()
        .expect("a system is built");
    let feed = Feed::start(
        &system,
        &Bus::in_process(),
        &fixture.store,
        &fixture.settings.feed,
    );
    let feed = feed.expect("a feed");
    let (store, files) = (&fixture.store, fixture.files());
    let started = Outbox::start(&system, store, &files, &feed, &fixture.settings);
    let error = started.expect_err("it is refused").to_string();
    assert!(error.contains("`mail.timeout` is 60s"), "{error}");
}

#[tokio::test]
async fn no_mail_is_lost_when_the_server_is_killed() {
    const MAILS: usize = 100;
    let mut sink = SmtpSink::start();
    let fixture = fixture(&sink).await;
    let replica = fixture.replica();
    for number in 0..MAILS {
        welcome(&fixture, &format!("user{number}")).await;
        replica.outbox.wake(TaskKind::Mail);
    }
    for arrived in [20, 60] {
        sink.at_least(arrived).await;
        sink.kill();
        sink.restart();
    }
    fixture.done(&replica, TaskKind::Mail).await;
    let mails = sink.mails();
    assert_eq!(distinct(&mails), MAILS);
    let mut recipients: Vec<_> = mails
        .iter()
        .map(|mail| (&mail.to, &mail.headers["message-id"]))
        .collect();
    recipients.sort_unstable();
    recipients.dedup();
    assert_eq!(
        recipients.len(),
        MAILS,
        "a mail that came twice has the same Message-ID"
    );
}

#[tokio::test]
async fn a_mailbox_that_does_not_exist_is_not_tried_for_ever() {
    let sink = SmtpSink::start();
    let fixture = fixture(&sink).await;
    let replica = fixture.replica();
    welcome(&fixture, "refused").await;
    welcome(&fixture, "ada").await;
    let begin = fixture.now();
    fixture.done(&replica, TaskKind::Mail).await;
    let recipients: Vec<_> = sink.mails().into_iter().flat_map(|mail| mail.to).collect();
    assert_eq!(recipients, ["ada@example.org"]);
    let took = fixture.now().duration_since(begin);
    assert!(
        took.as_secs() < 3_600,
        "it gave up at once, not after days of trying"
    );
}

#[tokio::test]
async fn without_a_server_mails_go_to_the_log() {
    let fixture = Fixture::open().await;
    let replica = fixture.replica();
    welcome(&fixture, "ada").await;
    fixture.done(&replica, TaskKind::Mail).await;
}

/// Returns the time until just after the hour of today's digest, or tomorrow's if that was before.
fn digest_is_due(fixture: &Fixture) -> Duration {
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    let today = now.date().at(fixture.settings.mail.digest_hour, 0, 0, 0);
    let today = today.to_zoned(TimeZone::UTC).expect("it is a time of UTC");
    let next = if today > now { today } else { today + 1.day() };
    let until = Duration::try_from(next.duration_since(&now)).expect("it is to come");
    until + Duration::from_secs(1)
}

async fn news_for(fixture: &Fixture, name: &str) -> User {
    let user = fixture.user(name).await;
    ring_for(fixture, &user).await;
    user
}

async fn ring_for(fixture: &Fixture, user: &User) {
    let album = fixture.album(user).await;
    let picture = fixture.picture(&album, "The <sea>").await;
    for by in ["bob", "eve"] {
        fixture.ring(&picture, "like", by, &[]).await;
    }
    fixture.ring(&picture, "comment", "bob", &[]).await;
}

#[tokio::test]
async fn a_digest_comes_once_a_day_to_who_has_news_and_an_address_and_wants_it() {
    let sink = SmtpSink::start();
    let fixture = fixture(&sink).await;
    news_for(&fixture, "ada").await;
    fixture.user("quiet").await;
    let stranger = fixture.unconfirmed("stranger").await;
    ring_for(&fixture, &stranger).await;
    let eve = news_for(&fixture, "eve").await;
    let no_digest = UserChange {
        digest: Some(false),
        ..UserChange::default()
    };
    fixture
        .store
        .update_user(eve.id, no_digest)
        .await
        .expect("the storage is there");

    fixture.advance(digest_is_due(&fixture));
    let (one, other) = (fixture.replica(), fixture.replica()); // each looks when it starts
    sink.at_least(1).await;
    fixture.done(&one, TaskKind::Mail).await;
    fixture.done(&other, TaskKind::Mail).await;
    let third = fixture.replica(); // as after a restart on the same day
    welcome(&fixture, "last").await;
    fixture.done(&third, TaskKind::Mail).await;

    let mails = sink.mails();
    let digests: Vec<&Mail> = mails
        .iter()
        .filter(|mail| mail.headers["subject"].contains("today"))
        .collect();
    assert_eq!(digests.len(), 1);
    let digest = digests[0];
    assert_eq!(digest.to, ["ada@example.org"]);
    assert!(digest.text.contains("The <sea>"), "{}", digest.text);
    assert!(
        digest.text.contains("2 likes (bob, eve)"),
        "{}",
        digest.text
    );
    assert!(digest.text.contains("1 comment (bob)"), "{}", digest.text);
    assert!(
        !digest.html.contains("<sea>"),
        "what users write is no HTML: {}",
        digest.html
    );
    assert_eq!(
        digest.headers["list-unsubscribe"],
        "<http://127.0.0.1:5001/settings>"
    );
}
