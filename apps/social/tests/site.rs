//! The network behind `greenroom serve examples/sites/social.toml`, the real program.

mod kit;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use futures_util::{SinkExt, StreamExt};
use http::StatusCode;
use http::header::ACCEPT_ENCODING;
use kit::app::{Client, TestApp, send};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

/// The address at which the file has the network.
const UPSTREAM: &str = "127.0.0.1:5001";

/// The program that serves the file, until it is dropped.
struct Site {
    child: Child,
    address: String,
    _directory: TempDir,
}

impl Site {
    fn before(app: &TestApp) -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sites/social.toml");
        let text = std::fs::read_to_string(file).expect("it is there");
        assert!(text.contains(UPSTREAM));
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("social.toml");
        let text = text.replace(UPSTREAM, &app.address.to_string());
        std::fs::write(&file, text).expect("it can be written");
        let mut child = Command::new(program())
            .arg("serve")
            .arg(&file)
            .args(["--listen", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut log = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let line = log.find(|line| line.as_ref().is_ok_and(|line| line.contains("listening")));
        let line = line.expect("it listens").expect("it is text");
        let (_, rest) = line.split_once("http://").expect("it says where");
        let address = rest.split(['/', ' ', '"']).next().unwrap_or_default();
        // Else it would wait for a reader one day.
        std::thread::spawn(move || log.for_each(drop));
        Self {
            child,
            address: address.to_owned(),
            _directory: directory,
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the path of the program `greenroom`, which the tests of the workspace build.
fn program() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_social")).with_file_name("greenroom");
    let shown = path.display();
    assert!(
        path.exists(),
        "{shown} is not built: run `cargo build -p greenroom-cli`"
    );
    path
}

#[tokio::test]
async fn people_their_pictures_and_the_feed_are_served_by_a_file() {
    let app = TestApp::with(|settings| {
        let proxy = "127.0.0.1/32".parse().expect("a network");
        settings.trusted_proxies = vec![proxy];
    })
    .await;
    let site = Site::before(&app);
    let ada: Client = app.client().at(&site.address).signed_up("ada").await;
    let page = ada.get("/").await;
    page.expect(StatusCode::OK);
    assert_eq!(page.header("x-frame-options"), "DENY");

    let album = ada.album("Of a site").await;
    let picture = ada.picture(&album).await;
    let shown: Value = ada
        .get(&format!("/api/pictures/{picture}"))
        .await
        .json(StatusCode::OK);
    assert_eq!(shown["likes"], 0);

    let feed = format!("ws://{}/feed", site.address);
    let (mut feed, _) = connect_async(feed).await.expect("it is a WebSocket");
    let topic = format!("/picture/{picture}/likes");
    let watch = json!({"watch": {&topic: null}}).to_string();
    feed.send(Message::text(watch)).await.expect("it reads");
    let at = feed.next().await.expect("it responds").expect("a message");
    assert!(at.to_string().contains("\"at\""), "{at}");
    ada.put(&format!("/api/pictures/{picture}/like"))
        .await
        .expect(StatusCode::OK);
    let event = feed.next().await.expect("it responds").expect("a message");
    assert!(event.to_string().contains("\"total\":1"), "{event}");

    let page = String::from_utf8_lossy(&page.body).into_owned();
    let style = page.split('"').find(|text| text.ends_with("/app.css"));
    let style = ada.request(Method::GET, style.expect("it has a style"));
    let style = send(style.header(ACCEPT_ENCODING, "zstd")).await;
    style.expect(StatusCode::OK);
    assert_eq!(style.header("content-encoding"), "zstd");
    ada.get("/ready").await.expect(StatusCode::NOT_FOUND);
}
