//! A network of several processes, with a real NATS server: pages here, pictures in processes of
//! their own, which are killed; two processes with pages of albums that are in the memory of one.

mod kit;
mod roles {
    pub(crate) mod albums;
    pub(crate) mod network;
    pub(crate) mod process;
    pub(crate) mod webs;
}

use std::process::Command;

use http::StatusCode;
use kit::app::png;
use roles::network::Network;
use serde_json::Value;

#[tokio::test(flavor = "multi_thread")]
async fn pictures_are_resized_by_another_process() {
    let network = Network::start().await;
    let ada = network.web.user("ada").await;
    let album = ada.album("Elsewhere").await;
    let nobody = ada.upload(&album, &[("picture", &png(40, 30))]).await;
    let text = nobody.problem(StatusCode::SERVICE_UNAVAILABLE);
    assert!(text.contains("queue of pictures"), "{text}");
    assert!(!nobody.header("retry-after").is_empty());
    assert_eq!(network.files(), Vec::<String>::new(), "none stays");

    let images = network.images("images1").await;
    images.known_to(&ada, &album).await;
    let response = ada.upload(&album, &[("picture", &png(4_000, 3_000))]).await;
    let pictures: Value = response.json(StatusCode::CREATED);
    let picture = &pictures[0];
    assert_eq!(picture["width"], 4_000);
    let id = picture["id"].as_str().expect("it has one");
    for size in ["small", "medium", "large", "original"] {
        let file = ada.get(&format!("/files/{id}/{size}")).await;
        file.expect(StatusCode::OK);
        let decoded = image::load_from_memory(&file.body).expect("it is a picture");
        assert_eq!(decoded.width() * 3, decoded.height() * 4, "{size}");
    }
    let text = ada.upload(&album, &[("picture", b"no picture")]).await;
    let text = text.problem(StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert!(text.contains("GIF, JPEG, PNG and WebP are taken"), "{text}");
    let kept = ada.get(&format!("/api/albums/{album}/pictures")).await;
    let kept: Value = kept.json(StatusCode::OK);
    let kept = kept["pictures"].as_array().expect("a page has pictures");
    assert_eq!(network.files().len(), 4 * kept.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_without_the_web_shows_itself_to_operators_only() {
    let network = Network::start().await;
    let images = network.images("images1").await;
    assert_eq!(images.get("/health").await.0, StatusCode::OK);
    let (status, text) = images.get("/greenroom/status").await;
    assert_eq!(status, StatusCode::OK);
    assert!(text.contains("\"pictures\""), "{text}");
    assert_eq!(images.get("/api/timeline").await.0, StatusCode::NOT_FOUND);
    assert_eq!(images.listening(), 1, "at the address for operators");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_fails_clearly_when_its_process_is_killed_and_the_next_goes_elsewhere() {
    let network = Network::start().await;
    let mut first = network.images("images1").await;
    let second = network.images("images2").await;
    let ada = network.web.user("ada").await;
    let album = ada.album("Elsewhere").await;
    first.known_to(&ada, &album).await;
    second.known_to(&ada, &album).await;
    // The upload is at one of the two; again, until it was at the one that is killed.
    let lost = loop {
        let before = network.files().len();
        first.signal("STOP");
        second.signal("STOP");
        let (client, to) = (ada.clone(), album.clone());
        let upload =
            tokio::spawn(async move { client.upload(&to, &[("picture", &png(40, 30))]).await });
        network.more_files_than(before).await;
        first.kill();
        second.signal("CONT");
        let response = upload.await.expect("it does not panic");
        if response.status == StatusCode::SERVICE_UNAVAILABLE {
            break response;
        }
        response.expect(StatusCode::CREATED);
        first.restart().await;
        first.known_to(&ada, &album).await;
    };
    let text = lost.problem(StatusCode::SERVICE_UNAVAILABLE);
    assert!(text.contains("queue of pictures"), "{text}");
    assert!(!lost.header("retry-after").is_empty());
    for _ in 0..10 {
        let next = ada.upload(&album, &[("picture", &png(40, 30))]).await;
        next.expect(StatusCode::CREATED);
    }
    let kept = ada
        .get(&format!("/api/albums/{album}/pictures?limit=60"))
        .await;
    let kept: Value = kept.json(StatusCode::OK);
    let kept = kept["pictures"].as_array().expect("a page has pictures");
    assert_eq!(network.files().len(), 4 * kept.len(), "nothing of it stays");
}

#[tokio::test]
async fn a_wrong_role_is_told_with_those_that_there_are() {
    let output = Command::new(env!("CARGO_BIN_EXE_social"))
        .args(["--role", "web,image"])
        .output()
        .expect("the program was built for this test");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    let text = "`image` is no role: `web`, `images` and `outbox` are";
    assert!(said.contains(text), "{said}");
}
