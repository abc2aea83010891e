//! The token, by a clock that the test moves.

use std::sync::mpsc;
use std::time::Duration;

use axum::http::StatusCode;
use futures_util::future::join_all;
use serde_json::json;
use social::Failure;
use tokio::time::advance;

use crate::fakes::Behaviour;
use crate::fakes::third_party::ThirdParty;
use crate::faults::{share, start};

/// A guard that holds the paused clock still, though all tasks wait for a socket: it moves by
/// `advance` only.
struct Held {
    _until_dropped: mpsc::Sender<()>,
}

fn hold_clock() -> Held {
    let (sender, receiver) = mpsc::channel::<()>();
    tokio::task::spawn_blocking(move || receiver.recv());
    Held {
        _until_dropped: sender,
    }
}

#[tokio::test]
async fn one_request_serves_all_who_ask_at_once() {
    let party = ThirdParty::start();
    let sharer = start(&party.settings());
    let all = join_all((0..100).map(|_| share(&sharer))).await;
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    assert_eq!(party.tokens.count(), 1);
    assert_eq!(party.shares.count(), 100);
}

#[tokio::test(start_paused = true)]
async fn a_token_is_renewed_before_it_expires() {
    let _held = hold_clock();
    let party = ThirdParty::start();
    party.expires_in.set(Some(1_000));
    let sharer = start(&party.settings());
    share(&sharer).await.expect("it is shared");
    advance(Duration::from_secs(799)).await;
    share(&sharer).await.expect("it is shared");
    assert_eq!(party.tokens.count(), 1);
    advance(Duration::from_secs(1)).await;
    party.tokens.at_least(2).await;
}

#[tokio::test(start_paused = true)]
async fn a_token_is_renewed_every_half_an_hour_whatever_its_provider_says() {
    let _held = hold_clock();
    for expires_in in [None, Some(1_000_000_000)] {
        let party = ThirdParty::start();
        party.expires_in.set(expires_in);
        let sharer = start(&party.settings());
        share(&sharer).await.expect("it is shared");
        advance(Duration::from_secs(1_799)).await;
        share(&sharer).await.expect("it is shared");
        assert_eq!(party.tokens.count(), 1);
        advance(Duration::from_secs(1)).await;
        party.tokens.at_least(2).await;
        advance(Duration::from_mins(30)).await;
        party.tokens.at_least(3).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_old_token_serves_while_its_provider_is_away() {
    let _held = hold_clock();
    let party = ThirdParty::start();
    party.expires_in.set(Some(1_000));
    let sharer = start(&party.settings());
    share(&sharer).await.expect("it is shared");
    party
        .provider
        .set(Behaviour::Fails(StatusCode::INTERNAL_SERVER_ERROR, None));
    advance(Duration::from_secs(800)).await;
    party.tokens.at_least(2).await;
    share(&sharer).await.expect("the old token is good");
    advance(Duration::from_secs(200)).await;
    party.tokens.at_least(3).await;
    let failure = share(&sharer).await.expect_err("it has expired");
    assert!(
        matches!(failure, Failure::Unavailable { .. }),
        "{failure:?}"
    );
    party.provider.set(Behaviour::Responds);
    advance(Duration::from_mins(1)).await; // the longest rest
    party.tokens.at_least(4).await;
    share(&sharer).await.expect("there is a new token");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_refused_is_renewed_once() {
    let _held = hold_clock();
    let party = ThirdParty::start();
    let sharer = start(&party.settings());
    share(&sharer).await.expect("it is shared");
    advance(Duration::from_secs(2)).await;
    party.revoke();
    let all = join_all((0..10).map(|_| share(&sharer))).await;
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    assert_eq!(party.tokens.count(), 2);

    party
        .service
        .set(Behaviour::Fails(StatusCode::UNAUTHORIZED, None));
    let failure = share(&sharer).await.expect_err("no token is taken");
    assert!(matches!(failure, Failure::BadUpstream(_)), "{failure:?}");
    assert_eq!(party.tokens.count(), 2, "it is not the token that is wrong");
}

#[tokio::test]
async fn a_provider_that_lies_gives_no_token_and_a_reason() {
    let lies = [
        (json!({"token_type": "Bearer"}), "access_token"),
        (json!({"access_token": "", "token_type": "Bearer"}), "empty"),
        (
            json!({"access_token": "a\nb", "token_type": "Bearer"}),
            "characters",
        ),
        (json!({"access_token": "a", "token_type": "mac"}), "bearer"),
        (
            json!({"access_token": "a", "token_type": "Bearer", "expires_in": 0}),
            "expired",
        ),
        (
            json!({"access_token": "a", "token_type": "Bearer", "expires_in": -1}),
            "-1",
        ),
        (
            json!({"access_token": "a".repeat(100_000), "token_type": "Bearer"}),
            "longer",
        ),
        (json!("a"), "no token"),
    ];
    for (lie, reason) in lies {
        let party = ThirdParty::start();
        party.provider.set(Behaviour::RespondsWith(lie.to_string()));
        let failure = share(&start(&party.settings()))
            .await
            .expect_err("there is no token");
        let Failure::Unavailable {
            source,
            retry_after,
            ..
        } = failure
        else {
            panic!("it is for now: {failure:?}");
        };
        let said = source.expect("there is a reason").to_string();
        assert!(said.contains(reason), "{said} (expected: {reason})");
        assert!(retry_after > Duration::ZERO);
        assert_eq!(party.shares.count(), 0);
    }
}

#[tokio::test]
async fn a_provider_that_hangs_delays_its_own_responses_only() {
    let party = ThirdParty::start();
    let mut settings = party.settings();
    settings.timeout = Duration::from_secs(1);
    party.provider.set(Behaviour::Hangs);
    let sharer = start(&settings);
    let all = join_all((0..100).map(|_| share(&sharer))).await;
    for result in all {
        let failure = result.expect_err("there is no token");
        assert!(
            matches!(failure, Failure::Unavailable { .. }),
            "{failure:?}"
        );
    }
    assert_eq!(party.tokens.count(), 1, "one request for all");
    party.provider.set(Behaviour::Responds);
    party.tokens.at_least(2).await; // asked again without anybody's doing
    share(&sharer).await.expect("there is a token");
}
