//! Responses to users while the third party misbehaves.

use std::time::Duration;

use axum::http::StatusCode;
use futures_util::future::join_all;
use greenroom::actor::{ActorSystem, Dispatcher};
use serde_json::json;
use social::Failure;
use social::config::ShareSettings;
use social::model::Id;
use social::share::Share;
use url::Url;

use crate::fakes::Behaviour;
use crate::fakes::third_party::ThirdParty;

pub(crate) fn start(settings: &ShareSettings) -> Share {
    let system = ActorSystem::builder()
        .dispatcher("actors", Dispatcher::tokio())
        .build()
        .expect("a system is built");
    Share::start(&system, settings).expect("the settings are right")
}

pub(crate) async fn share(share: &Share) -> Result<Url, Failure> {
    let link: Url = "https://social.example/pictures/1"
        .parse()
        .expect("it is a URL");
    share.share(Id::new(), &link, "The sea").await
}

fn server_error() -> Behaviour {
    Behaviour::Fails(StatusCode::INTERNAL_SERVER_ERROR, None)
}

fn retry_after(failure: &Failure) -> Duration {
    match failure {
        Failure::Unavailable { retry_after, .. } => *retry_after,
        other => panic!("it is not available: {other:?}"),
    }
}

#[tokio::test]
async fn a_picture_is_shared_with_token_and_key() {
    let party = ThirdParty::start();
    let sharer = start(&party.settings());
    let link: Url = "https://social.example/pictures/1"
        .parse()
        .expect("it is a URL");
    let picture = Id::new();
    let shown = sharer
        .share(picture, &link, "The sea")
        .await
        .expect("it is shared");
    assert_eq!(shown.as_str(), format!("https://third.example/{picture}"));
    let taken = party.shares.all();
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].authorization, "Bearer token-1");
    assert_eq!(taken[0].key, picture.to_string());
    assert_eq!(
        taken[0].body,
        json!({"picture": link, "caption": "The sea"})
    );
}

#[tokio::test]
async fn a_failure_that_passes_is_not_noticed() {
    let party = ThirdParty::start();
    let sharer = start(&party.settings());
    party.service.set(server_error());
    let (result, ()) = tokio::join!(share(&sharer), async {
        party.shares.at_least(1).await;
        party.service.set(Behaviour::Responds);
    });
    result.expect("the second try succeeds");
    let keys: Vec<_> = party
        .shares
        .all()
        .into_iter()
        .map(|share| share.key)
        .collect();
    assert_eq!(keys.len(), 2);
    assert_eq!(
        keys[0], keys[1],
        "the third party can tell that it is the same"
    );
}

#[tokio::test]
async fn lies_are_told_from_responses() {
    let party = ThirdParty::start();
    let lies = [
        "no JSON".to_owned(),
        "{}".to_owned(),
        json!({"url": 7}).to_string(),
        json!({"url": "javascript:alert(1)"}).to_string(),
        json!({"url": "https://third.example/", "more": "x".repeat(100_000)}).to_string(),
    ];
    for lie in lies {
        let sharer = start(&party.settings()); // each with a breaker of its own
        party.service.set(Behaviour::RespondsWith(lie.clone()));
        let failure = share(&sharer).await.expect_err("it is a lie");
        assert!(
            matches!(failure, Failure::BadUpstream(_)),
            "{lie:.40}: {failure:?}"
        );
    }
    assert_eq!(party.shares.count(), 5, "who lies is not asked again");
}

#[tokio::test]
async fn a_rejection_is_passed_on_and_opens_nothing() {
    let party = ThirdParty::start();
    let sharer = start(&party.settings());
    party
        .service
        .set(Behaviour::Fails(StatusCode::FORBIDDEN, None));
    for _ in 0..10 {
        let failure = share(&sharer).await.expect_err("it is refused");
        assert!(
            matches!(&failure, Failure::BadUpstream(reason) if reason.contains("403")),
            "{failure:?}"
        );
    }
    assert_eq!(party.shares.count(), 10);
}

#[tokio::test]
async fn a_third_party_that_fails_is_left_alone_for_a_while() {
    let party = ThirdParty::start();
    let sharer = start(&party.settings());
    party.service.set(server_error());
    let mut failure = share(&sharer).await.expect_err("it fails");
    while matches!(failure, Failure::BadUpstream(_)) {
        failure = share(&sharer).await.expect_err("it fails");
    }
    assert!(
        party.shares.count() >= 5,
        "five failures in a row open the breaker"
    );
    assert!(retry_after(&failure) >= Duration::from_secs(1));

    party.service.set(Behaviour::Responds);
    let works_again = async {
        while let Err(failure) = share(&sharer).await {
            let rest = retry_after(&failure);
            tokio::time::sleep(rest / 10).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_mins(1), works_again).await;
    in_time.expect("it is tried again after a rest");
    let all = join_all((0..20).map(|_| share(&sharer))).await;
    assert!(
        all.iter().all(Result::is_ok),
        "the breaker is closed: {all:?}"
    );
}

#[tokio::test]
async fn who_cannot_be_reached_is_said_to_be() {
    let party = ThirdParty::start();
    let mut settings = party.settings();
    let unused = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let port = unused.local_addr().expect("it is bound").port();
    drop(unused);
    settings
        .url
        .set_port(Some(port))
        .expect("a URL can have a port");
    let failure = share(&start(&settings)).await.expect_err("nobody is there");
    assert!(matches!(failure, Failure::BadUpstream(_)), "{failure:?}");
}

#[tokio::test]
async fn a_third_party_that_hangs_holds_up_nobody_else() {
    let (party, other) = (ThirdParty::start(), ThirdParty::start());
    let mut settings = party.settings();
    settings.timeout = Duration::from_secs(2);
    let (hanging, sharer) = (start(&settings), start(&other.settings()));
    share(&hanging).await.expect("it works at first");
    party.service.set(Behaviour::Hangs);
    let hundred = join_all((0..100).map(|_| share(&hanging)));
    let bound = settings.timeout * 2 + Duration::from_secs(20);
    let (failures, ()) = tokio::join!(tokio::time::timeout(bound, hundred), async {
        party.shares.at_least(50).await;
        share(&sharer).await.expect("another one is not concerned");
    });
    let failures = failures.expect("all end by themselves");
    for result in failures {
        let failure = result.expect_err("it hangs");
        assert!(matches!(failure, Failure::UpstreamTimeout), "{failure:?}");
    }
}

#[tokio::test]
async fn more_than_may_be_under_way_are_refused_at_once() {
    let party = ThirdParty::start();
    let mut settings = party.settings();
    settings.concurrency_max = 2;
    settings.timeout = Duration::from_secs(30);
    let sharer = start(&settings);
    party.service.set(Behaviour::Hangs);
    let refused = async {
        party.shares.at_least(2).await;
        share(&sharer).await
    };
    let third = tokio::select! {
        _ = join_all((0..2).map(|_| share(&sharer))) => panic!("they hang"),
        third = refused => third,
    };
    assert!(retry_after(&third.expect_err("it is one too many")) > Duration::ZERO);
}
