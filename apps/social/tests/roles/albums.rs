//! Albums in memory: what one process changes all show, and the loss of a process or of NATS takes
//! no page away.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::webs::Webs;
use crate::kit::app::{Client, send};
use crate::kit::wait::until;

/// Returns the pictures of an album, as the API shows it.
async fn shown(client: &Client, album: &str) -> Vec<Value> {
    let path = format!("/api/albums/{album}/pictures");
    let page: Value = client.get(&path).await.json(StatusCode::OK);
    let pictures = page["pictures"].as_array();
    pictures.expect("a page has pictures").clone()
}

/// Returns the identifiers of an album's pictures, the newest first.
async fn ids(client: &Client, album: &str) -> Vec<String> {
    let pictures = shown(client, album).await.into_iter();
    let id = |picture: Value| picture["id"].as_str().map(str::to_owned);
    pictures.filter_map(id).collect()
}

async fn describe(client: &Client, picture: &str, alt: &str) {
    let request = client.request(Method::PATCH, &format!("/api/pictures/{picture}"));
    let described = send(request.json(&json!({"alt": alt}))).await;
    described.expect(StatusCode::OK);
}

async fn delete(client: &Client, picture: &str) {
    let deleted = client.delete(&format!("/api/pictures/{picture}")).await;
    deleted.expect(StatusCode::NO_CONTENT);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_an_album_shows_in_every_process_at_once() {
    let webs = Webs::start().await;
    let ada = webs.user("ada").await;
    let albums = [webs.album_here(&ada).await, webs.album_there(&ada).await];
    for album in albums {
        for (changes, other) in [(&ada.here, &ada.there), (&ada.there, &ada.here)] {
            let before = ids(other, &album).await;
            let first = changes.picture(&album).await;
            let second = changes.picture(&album).await;
            let mut all = vec![second.clone(), first.clone()];
            all.extend_from_slice(&before);
            for client in [other, changes] {
                assert_eq!(ids(client, &album).await, all);
            }
            describe(changes, &first, "A black square.").await;
            assert_eq!(shown(other, &album).await[1]["alt"], "A black square.");
            delete(changes, &second).await;
            for client in [other, changes] {
                assert_eq!(ids(client, &album).await, all[1..]);
            }
        }
        let gone = ada.there.delete(&format!("/api/albums/{album}")).await;
        gone.expect(StatusCode::NO_CONTENT);
        let path = format!("/api/albums/{album}/pictures");
        let text = ada.here.get(&path).await.problem(StatusCode::NOT_FOUND);
        assert_eq!(text, "there is no such album");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_album_outlives_the_process_that_has_it_in_memory() {
    let mut webs = Webs::start().await;
    let ada = webs.user("ada").await;
    let (here, there) = (&ada.here, &ada.there);
    let album = webs.album_there(&ada).await;
    let before = ids(here, &album).await;
    assert_eq!(ids(there, &album).await, before);

    webs.there.kill();
    assert_eq!(ids(here, &album).await, before);
    let activated = webs.activated_here();
    let picture = here.picture(&album).await;
    let all = [vec![picture.clone()], before].concat();
    assert_eq!(ids(here, &album).await, all);
    // Now this process has it.
    until(async || {
        assert_eq!(ids(here, &album).await, all);
        webs.activated_here() > activated
    })
    .await;
    let like = here.put(&format!("/api/pictures/{picture}/like")).await;
    like.expect(StatusCode::OK);
    // A count comes with its place in the log, however old both are.
    until(async || {
        let pictures = shown(here, &album).await;
        assert_eq!(pictures[0]["likes"], pictures[0]["likes_seq"]);
        assert_eq!(pictures[0]["liked"], true, "that is never old");
        pictures[0]["likes"] == 1
    })
    .await;
    let second = here.picture(&album).await;
    assert_eq!(ids(here, &album).await[..2], [second, picture]);
}

#[tokio::test(flavor = "multi_thread")]
async fn albums_are_shown_and_changed_without_nats() {
    let mut webs = Webs::start().await;
    let ada = webs.user("ada").await;
    let albums = [webs.album_here(&ada).await, webs.album_there(&ada).await];
    webs.nats.stop();
    for album in &albums {
        let before = ids(&ada.here, album).await;
        assert_eq!(ids(&ada.there, album).await, before);
        let picture = ada.here.picture(album).await;
        let all = [vec![picture], before].concat();
        assert_eq!(ids(&ada.here, album).await, all);
        // The process that could not be told shows it some seconds later.
        until(async || ids(&ada.there, album).await == all).await;
    }
    webs.nats.run();
    for album in &albums {
        until(async || {
            let picture = ada.there.picture(album).await;
            ids(&ada.here, album).await.first() == Some(&picture)
        })
        .await;
    }
}
